//! The difference between the observed and the desired state. Pure: no client, no clock.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{ApiResource, DynamicObject, Patch};
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde_json::{Value, json};

use crate::api::DittoServer;
use crate::config::Config;
use crate::objects::{self, percona};
use crate::observe::{Database, Observation, Observed};

/// One write, safe to repeat.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The kind of object.
    pub resource: ApiResource,
    /// Its name.
    pub name: String,
    /// The desired object, whole (applied) or in part (merged).
    pub patch: Patch<Value>,
}

impl Step {
    /// What is written, for people.
    pub fn target(&self) -> String {
        format!("{} {}", self.resource.kind, self.name)
    }

    /// Whether it writes the server itself.
    pub fn is_server(&self) -> bool {
        self.resource.kind == "StatefulSet"
    }

    fn apply(resource: ApiResource, object: Value) -> Self {
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let patch = Patch::Apply(object);
        Self { resource, name, patch }
    }
}

/// What to do next, and what stands in the way.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// What the configuration comes to.
    pub config: Config,
    /// The writes, in order.
    pub steps: Vec<Step>,
}

impl Plan {
    /// What to do about a server.
    pub fn of(server: &DittoServer, observed: &Observation) -> Self {
        let config = Config::judge(server, observed);
        let mut steps = Vec::new();
        steps.extend(database(server, observed));
        if let Config::Valid(_) = config {
            steps.extend(unless_so(&observed.config_map, objects::config_map(server)));
        }
        for (found, desired) in observed.services.iter().zip(objects::services(server)) {
            steps.extend(unless_so(found, desired));
        }
        steps.extend(the_server(server, observed, &config));
        Self { config, steps }
    }

    /// Whether the server itself is to be written.
    pub fn has_server(&self) -> bool {
        self.steps.iter().any(Step::is_server)
    }
}

/// The database is made where it is asked for and missing. After that it belongs to its own operator, except that no
/// owner reference to a `DittoServer` may stay on it, whoever set it: garbage collection would follow it.
fn database(server: &DittoServer, observed: &Observation) -> Option<Step> {
    match observed.database.as_ref().ok()? {
        Database::Absent if server.spec.percona.enabled => Some(Step::apply(percona(), objects::database(server))),
        Database::Present(object) => disown(object),
        Database::Absent | Database::NotInstalled => None,
    }
}

/// Takes every reference to a `DittoServer` off a database, this server's or an older one's of the same name; nothing
/// where there is none. It holds the version it was made from, so that no other reference is lost.
pub fn disown(database: &DynamicObject) -> Option<Step> {
    let group = format!("{}/", DittoServer::group(&()));
    let is_ours = |one: &&OwnerReference| one.kind == "DittoServer" && one.api_version.starts_with(&group);
    let (ours, others): (Vec<_>, Vec<_>) = database.owner_references().iter().partition(is_ours);
    let version = &database.metadata.resource_version;
    (!ours.is_empty()).then(|| Step {
        resource: percona(),
        name: database.name_any(),
        patch: Patch::Merge(json!({"metadata": {"resourceVersion": version, "ownerReferences": others}})),
    })
}

/// The server waits for its database and its storage class once, when it is made. Later it is only held back by a
/// configuration that cannot be used: it goes on with the last good one, and still stops and starts.
fn the_server(server: &DittoServer, observed: &Observation, config: &Config) -> Option<Step> {
    let found = observed.stateful_set.as_ref().ok()?;
    match (config, found) {
        (Config::Valid(_), None) if !observed.has_database(server) => None,
        (Config::Valid(_), None) if observed.storage_class.is_err() || observed.lacks_class(server).is_some() => None,
        (Config::Valid(hash), _) => {
            let desired = objects::stateful_set(server, hash);
            // Claims cannot change, and the API server writes their sizes in its own way (`1024Mi` is `1Gi`):
            // comparing them would always find a difference.
            let mut comparable = desired.clone();
            comparable["spec"]["volumeClaimTemplates"].take();
            let step = Step::apply(ApiResource::erase::<StatefulSet>(&()), desired);
            (found.is_none() || !covers(&json!(found), &comparable)).then_some(step)
        }
        (_, Some(set)) if replicas(set) != server.spec.replicas => Some(Step {
            resource: ApiResource::erase::<StatefulSet>(&()),
            name: server.name_any(),
            patch: Patch::Merge(json!({"spec": {"replicas": server.spec.replicas}})),
        }),
        _ => None,
    }
}

/// How many replicas a `StatefulSet` asks for.
pub fn replicas(set: &StatefulSet) -> i32 {
    set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1)
}

/// A step that makes an object so, unless it is. An object that could not be read is left alone.
fn unless_so<K: Resource<DynamicType = ()> + Serialize>(found: &Observed<K>, desired: Value) -> Option<Step> {
    let found = json!(found.as_ref().ok()?);
    (!covers(&found, &desired)).then(|| Step::apply(ApiResource::erase::<K>(&()), desired))
}

/// Whether the observed object matches the desired one. Defaults that the API server adds are no difference, nor are empty
/// fields that it leaves out; null matches anything, lists are compared as a whole.
fn covers(found: &Value, desired: &Value) -> bool {
    let is_empty = |value: &Value| [json!(null), json!(0), json!([]), json!({})].contains(value);
    match (found, desired) {
        (_, Value::Null) => true,
        (Value::Object(found), Value::Object(desired)) => desired
            .iter()
            .all(|(key, desired)| covers(found.get(key).unwrap_or(&Value::Null), desired)),
        (Value::Array(found), Value::Array(desired)) => {
            found.len() == desired.len() && found.iter().zip(desired).all(|(found, desired)| covers(found, desired))
        }
        _ => found == desired || (is_empty(found) && is_empty(desired)),
    }
}

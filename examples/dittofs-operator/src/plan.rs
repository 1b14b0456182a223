//! The difference between what there is and what there should be. Pure: no client, no clock.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::core::DynamicObject;
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde_json::{Value, json};

use crate::api::DittoServer;
use crate::config::Config;
use crate::objects;
use crate::observe::{Database, Observation, Seen};

/// One write, safe to repeat.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Make an object so.
    Apply(Value),
    /// Only start or stop the server, whatever else its spec says.
    Scale(i32),
    /// Take our owner references off the database by this merge patch: it must outlive its server.
    Disown(Value),
}

impl Step {
    /// What is written: kind and name, for people.
    pub fn target(&self, server: &DittoServer) -> String {
        match self {
            Self::Apply(object) => {
                let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
                format!("{} {}", text("/kind"), text("/metadata/name"))
            }
            Self::Scale(_) => format!("StatefulSet {}", server.metadata.name.as_deref().unwrap_or_default()),
            Self::Disown(_) => format!("PerconaPGCluster {}", server.database_name()),
        }
    }

    /// Whether it writes the server itself.
    pub fn is_server(&self) -> bool {
        match self {
            Self::Apply(object) => object["kind"] == "StatefulSet",
            Self::Scale(_) => true,
            Self::Disown(_) => false,
        }
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
    /// What to do about a server that lives.
    pub fn of(server: &DittoServer, seen: &Observation) -> Self {
        let config = Config::judge(server, seen);
        let mut steps = Vec::new();
        steps.extend(database(server, &seen.database));
        if let Config::Valid(_) = config {
            steps.extend(unless_so(&seen.config_map, objects::config_map(server)));
        }
        for (found, wanted) in seen.services.iter().zip(objects::services(server)) {
            steps.extend(unless_so(found, wanted));
        }
        steps.extend(the_server(server, seen, &config));
        Self { config, steps }
    }

    /// Nothing is to be made for a server that is going.
    pub fn of_deleted(server: &DittoServer, seen: &Observation) -> Self {
        Self {
            config: Config::judge(server, seen),
            steps: Vec::new(),
        }
    }

    /// Whether a step makes a status untrue that says Ready: the status must admit it first.
    pub fn disturbs(&self, seen: &Observation) -> bool {
        matches!(seen.stateful_set, Ok(Some(_))) && self.steps.iter().any(Step::is_server)
    }

    /// Whether the `StatefulSet` is made for the first time.
    pub fn creates_server(&self, seen: &Observation) -> bool {
        matches!(seen.stateful_set, Ok(None)) && self.steps.iter().any(Step::is_server)
    }
}

/// The database is made where it is asked for and missing. After that it belongs to its own operator, except that no
/// owner reference to a `DittoServer` may stay on it, whoever put it there: garbage collection would follow it.
fn database(server: &DittoServer, database: &Database) -> Option<Step> {
    match database {
        Database::Absent if server.spec.percona.enabled => Some(Step::Apply(objects::database(server))),
        Database::Present(object) => disown(object).map(Step::Disown),
        Database::Absent | Database::NotInstalled | Database::Unknown(_) => None,
    }
}

/// The merge patch that takes every reference to a `DittoServer` off a database, this server's or an older one's of the
/// same name; nothing where there is none. It holds the version it was made from, so that no other reference is lost.
pub fn disown(database: &DynamicObject) -> Option<Value> {
    let is_ours = |reference: &OwnerReference| {
        reference.kind == "DittoServer"
            && reference
                .api_version
                .starts_with(&*format!("{}/", DittoServer::group(&())))
    };
    let (ours, others): (Vec<_>, Vec<_>) = database.owner_references().iter().partition(|one| is_ours(one));
    let version = &database.metadata.resource_version;
    (!ours.is_empty()).then(|| json!({"metadata": {"resourceVersion": version, "ownerReferences": others}}))
}

/// The server waits for its database and its storage class once, when it is made. Later it is only held back by a
/// configuration that cannot be used: it goes on with the last good one, and still stops and starts.
fn the_server(server: &DittoServer, seen: &Observation, config: &Config) -> Option<Step> {
    let found = seen.stateful_set.as_ref().ok()?;
    match (config, found) {
        (Config::Valid(_), None) if !is_database_ready(server, &seen.database) => None,
        (Config::Valid(_), None) if lacks_class(server, seen) || seen.storage_class.is_err() => None,
        (Config::Valid(hash), found) => {
            let wanted = objects::stateful_set(server, hash);
            let differs = found
                .as_ref()
                .is_none_or(|set| !covers(&json!(set), &without_claims(wanted.clone())));
            differs.then_some(Step::Apply(wanted))
        }
        (_, Some(set)) if replicas(set) != server.spec.replicas => Some(Step::Scale(server.spec.replicas)),
        _ => None,
    }
}

/// Claims cannot change, and the API server writes their sizes in its own way (`1024Mi` is `1Gi`): comparing them would
/// find a difference for ever.
fn without_claims(mut set: Value) -> Value {
    if let Some(spec) = set["spec"].as_object_mut() {
        spec.remove("volumeClaimTemplates");
    }
    set
}

/// How many replicas a `StatefulSet` asks for.
pub fn replicas(set: &StatefulSet) -> i32 {
    set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1)
}

/// Whether the database is ready, or none is asked for.
pub fn is_database_ready(server: &DittoServer, database: &Database) -> bool {
    !server.spec.percona.enabled
        || matches!(database, Database::Present(object) if Database::is_ready(object) == Ok(true))
}

/// Whether the spec names a `StorageClass` that does not exist.
pub fn lacks_class(server: &DittoServer, seen: &Observation) -> bool {
    server.spec.storage.storage_class_name.is_some() && matches!(seen.storage_class, Ok(None))
}

/// A step that makes an object so, unless it is. An object that could not be read is left alone.
fn unless_so<K: Serialize>(found: &Seen<K>, wanted: Value) -> Option<Step> {
    let found = match found {
        Ok(found) => json!(found),
        Err(_) => return None,
    };
    (!covers(&found, &wanted)).then_some(Step::Apply(wanted))
}

/// Whether everything wanted is there already. The API server adds defaults, which are no difference, and leaves out
/// what is empty, which is none either; lists are wanted whole.
fn covers(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => wanted.iter().all(|(key, wanted)| {
            found
                .get(key)
                .map_or_else(|| is_empty(wanted), |found| covers(found, wanted))
        }),
        (Value::Array(found), Value::Array(wanted)) => {
            found.len() == wanted.len() && found.iter().zip(wanted).all(|(found, wanted)| covers(found, wanted))
        }
        (found, wanted) => found == wanted || (is_empty(found) && is_empty(wanted)),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.values().all(is_empty),
    }
}

//! Observes the cluster: all the reading, in one place.
//!
//! "No answer" is a value here, never an absence: an object that could not be read is not one that does not exist.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::DynamicObject;
use kube::{Api, Client, Resource, ResourceExt};
use kube_status::readers::{self, Health};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::api::DittoServer;
use crate::objects::{PERCONA_CRD, SERVER, percona};

/// An object as it was observed, or that it does not exist, or why that is not known.
pub type Observed<T> = Result<Option<T>, String>;

/// Everything the operator knows of a server's surroundings at one moment.
#[derive(Clone, Debug)]
pub struct Observation {
    /// The configuration.
    pub config_map: Observed<ConfigMap>,
    /// The Services, in the order of [`crate::objects::services`].
    pub services: Vec<Observed<Service>>,
    /// The server.
    pub stateful_set: Observed<StatefulSet>,
    /// The Secrets that the spec names.
    pub secrets: Vec<(String, Observed<Secret>)>,
    /// The class of the volume; absent also where the spec names none.
    pub storage_class: Observed<StorageClass>,
    /// The PostgreSQL cluster, whether it is asked for or not.
    pub database: Result<Database, String>,
}

impl Observation {
    /// The class that the spec names and that does not exist.
    pub fn lacks_class<'a>(&self, server: &'a DittoServer) -> Option<&'a String> {
        let class = server.spec.storage.storage_class_name.as_ref();
        class.filter(|_| matches!(self.storage_class, Ok(None)))
    }

    /// The first thing that could not be read.
    pub fn unread(&self) -> Option<&String> {
        let services = self.services.iter().map(|service| service.as_ref().err());
        let secrets = self.secrets.iter().map(|(_, secret)| secret.as_ref().err());
        let others = [
            self.config_map.as_ref().err(),
            self.stateful_set.as_ref().err(),
            self.storage_class.as_ref().err(),
            self.database.as_ref().err(),
        ];
        others.into_iter().chain(services).chain(secrets).flatten().next()
    }

    /// Whether the database is ready, or none is asked for.
    pub fn has_database(&self, server: &DittoServer) -> bool {
        let is_ready = |database: &Database| database.is_ready() == Ok(true);
        !server.spec.percona.enabled || self.database.as_ref().is_ok_and(is_ready)
    }
}

/// A PostgreSQL cluster as it was found.
#[derive(Clone, Debug)]
pub enum Database {
    /// The API server does not know such clusters.
    NotInstalled,
    /// There is none.
    Absent,
    /// There is one.
    Present(Box<DynamicObject>),
}

impl Database {
    /// Whether Percona's operator calls it ready; an answer of a wrong shape is an error that names it.
    pub fn is_ready(&self) -> Result<bool, String> {
        let Self::Present(object) = self else {
            return Ok(false);
        };
        if object.metadata.deletion_timestamp.is_some() {
            return Ok(false);
        }
        match object.data.pointer("/status/state") {
            None | Some(Value::Null) => Ok(false),
            Some(Value::String(state)) => Ok(state == "ready"),
            Some(other) => Err(format!(
                "PerconaPGCluster {}: status.state is {other}, not a word",
                object.name_any()
            )),
        }
    }

    /// The cluster that was made for this server; one that was not is used, and never changed or deleted.
    pub fn ours(&self, server: &DittoServer) -> Option<&DynamicObject> {
        match self {
            Self::Present(object) if object.labels().get(SERVER) == server.metadata.name.as_ref() => Some(object),
            _ => None,
        }
    }
}

/// Reads everything about a server.
pub async fn observe(client: &Client, server: &DittoServer) -> Observation {
    let (name, namespace) = (server.name_any(), server.namespace().unwrap_or_default());
    let mut services = Vec::new();
    for name in [&name, &server.named("headless"), &server.named("api")] {
        services.push(get(Api::namespaced(client.clone(), &namespace), name).await);
    }
    let mut secrets = Vec::new();
    for secret in &server.spec.secret_refs {
        let found = get(Api::namespaced(client.clone(), &namespace), &secret.name).await;
        secrets.push((secret.name.clone(), found));
    }
    Observation {
        config_map: get(Api::namespaced(client.clone(), &namespace), &server.named("config")).await,
        services,
        stateful_set: get(Api::namespaced(client.clone(), &namespace), &name).await,
        secrets,
        storage_class: match &server.spec.storage.storage_class_name {
            Some(class) => get(Api::all(client.clone()), class).await,
            None => Ok(None),
        },
        database: database(client, server).await,
    }
}

/// Reads the PostgreSQL cluster of a server. Whether such clusters can exist at all is asked first: a 404 for the
/// object and a 404 for its kind cannot be distinguished by anything that every API server promises.
pub async fn database(client: &Client, server: &DittoServer) -> Result<Database, String> {
    let crd: Option<CustomResourceDefinition> = get(Api::all(client.clone()), PERCONA_CRD).await?;
    let reading = crd.and_then(|crd| readers::read(&crd).ok());
    if reading.is_none_or(|reading| reading.health != Health::Ready) {
        return Ok(Database::NotInstalled);
    }
    let namespace = server.namespace().unwrap_or_default();
    let clusters: Api<DynamicObject> = Api::namespaced_with(client.clone(), &namespace, &percona());
    let name = server.database_name();
    match clusters.get_opt(&name).await {
        Ok(Some(object)) => Ok(Database::Present(Box::new(object))),
        Ok(None) => Ok(Database::Absent),
        Err(error) => Err(unread("PerconaPGCluster", &name, &error)),
    }
}

async fn get<K>(api: Api<K>, name: &str) -> Observed<K>
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned,
{
    let found = api.get_opt(name).await;
    found.map_err(|error| unread(&K::kind(&()), name, &error))
}

fn unread(kind: &str, name: &str, error: &kube::Error) -> String {
    format!("{kind} {name} could not be read: {error}")
}

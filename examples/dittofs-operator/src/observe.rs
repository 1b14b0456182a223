//! What there is: all the reading, in one place.
//!
//! "No answer" is a value here, never an absence: an object that could not be read is not one that does not exist.

use futures::future::join_all;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::DynamicObject;
use kube::{Api, Client, Resource, ResourceExt};
use kube_status::readers;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::api::DittoServer;
use crate::objects::{PERCONA_DEFINITION, SERVER, percona};

/// An object as it was found, or not, or why nobody can tell.
pub type Seen<T> = Result<Option<T>, String>;

/// Everything the operator knows of a server's surroundings at one moment.
#[derive(Clone, Debug)]
pub struct Observation {
    /// The configuration.
    pub config_map: Seen<ConfigMap>,
    /// The Services, in the order of [`crate::objects::services`].
    pub services: Vec<Seen<Service>>,
    /// The server.
    pub stateful_set: Seen<StatefulSet>,
    /// The Secrets that the spec names.
    pub secrets: Vec<(String, Seen<Secret>)>,
    /// The class of the volume; absent also where the spec names none.
    pub storage_class: Seen<StorageClass>,
    /// The PostgreSQL cluster, whether it is asked for or not.
    pub database: Database,
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
    /// Nobody can tell.
    Unknown(String),
}

impl Database {
    /// Whether Percona's operator calls it ready; an answer of a wrong shape is an error that names it.
    pub fn is_ready(object: &DynamicObject) -> Result<bool, String> {
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

/// Reads everything about a server, all at once.
pub async fn observe(client: &Client, server: &DittoServer) -> Observation {
    let namespace = server.namespace().unwrap_or_default();
    let name = server.name_any();
    let (config_name, headless, api) = (server.config_name(), server.headless_name(), server.api_name());
    let secrets = server.spec.secret_refs.iter().map(|secret| async {
        let found = get::<Secret>(Api::namespaced(client.clone(), &namespace), &secret.name).await;
        (secret.name.clone(), found)
    });
    let service = |name| get::<Service>(Api::namespaced(client.clone(), &namespace), name);
    let (config_map, services, stateful_set, secrets, storage_class, database) = tokio::join!(
        get(Api::namespaced(client.clone(), &namespace), &config_name),
        join_all([service(&name), service(&headless), service(&api)]),
        get(Api::namespaced(client.clone(), &namespace), &name),
        join_all(secrets),
        async {
            match &server.spec.storage.storage_class_name {
                Some(class) => get(Api::all(client.clone()), class).await,
                None => Ok(None),
            }
        },
        database(client, server),
    );
    Observation {
        config_map,
        services,
        stateful_set,
        secrets,
        storage_class,
        database,
    }
}

/// Reads the PostgreSQL cluster of a server. Whether such clusters can exist at all is asked first: a 404 for the
/// object and a 404 for its kind are told apart by nothing that every API server promises.
pub async fn database(client: &Client, server: &DittoServer) -> Database {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    match get(definitions, PERCONA_DEFINITION).await {
        Ok(Some(definition)) if is_served(&definition) => {}
        Ok(_) => return Database::NotInstalled,
        Err(why) => return Database::Unknown(why),
    }
    let namespace = server.namespace().unwrap_or_default();
    let clusters: Api<DynamicObject> = Api::namespaced_with(client.clone(), &namespace, &percona());
    let name = server.database_name();
    match clusters.get_opt(&name).await {
        Ok(Some(object)) => Database::Present(Box::new(object)),
        Ok(None) => Database::Absent,
        Err(error) => Database::Unknown(unread("PerconaPGCluster", &name, &error)),
    }
}

/// Whether objects of a definition can be asked for.
pub fn is_served(definition: &CustomResourceDefinition) -> bool {
    readers::read(definition).is_ok_and(|reading| reading.verdict == readers::Verdict::Ready)
}

async fn get<K>(api: Api<K>, name: &str) -> Seen<K>
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned,
{
    api.get_opt(name)
        .await
        .map_err(|error| unread(&K::kind(&()), name, &error))
}

fn unread(kind: &str, name: &str, error: &kube::Error) -> String {
    format!("{kind} {name} could not be read: {error}")
}

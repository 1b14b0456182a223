//! What wakes the operator: servers, what they own, what they refer to, and databases as soon as there can be any.

use std::sync::Arc;
use std::time::Duration;

use futures::stream::{Stream, StreamExt};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::core::{DynamicObject, NamespaceResourceScope};
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::{Controller, watcher};
use kube::{Api, Client, Resource, ResourceExt};

use crate::api::DittoServer;
use crate::controller::{Context, on_error, reconcile};
use crate::objects::percona;

/// How long until databases are watched for again, where there cannot be any.
const PAUSE: Duration = Duration::from_secs(5);

/// Runs the operator for one namespace, or for all, until it is dropped.
pub async fn run(context: Context, namespace: Option<&str>) {
    let client = context.client.clone();
    let all = watcher::Config::default();
    let servers = Controller::new(scoped::<DittoServer>(&client, namespace), all.clone());
    let (by_secret, by_class) = (servers.store(), servers.store());
    let servers = servers
        .owns(scoped::<StatefulSet>(&client, namespace), all.clone())
        .owns(scoped::<ConfigMap>(&client, namespace), all.clone())
        .owns(scoped::<Service>(&client, namespace), all.clone())
        .watches(scoped::<Secret>(&client, namespace), all.clone(), move |secret| {
            let (home, name) = (secret.namespace(), secret.name_any());
            let reads = |server: &DittoServer| server.spec.secret_refs.iter().any(|reference| reference.name == name);
            those(&by_secret, |server| server.namespace() == home && reads(server))
        })
        .watches(Api::<StorageClass>::all(client.clone()), all, move |class| {
            let name = Some(class.name_any());
            those(&by_class, |server| server.spec.storage.storage_class_name == name)
        })
        .reconcile_all_on(databases(&client, namespace));
    let reconciled = servers.run(reconcile, on_error, Arc::new(context));
    reconciled
        .for_each(|result| async move {
            if let Err(error) = result {
                tracing::debug!(%error, "not reconciled");
            }
        })
        .await;
}

fn scoped<K>(client: &Client, namespace: Option<&str>) -> Api<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    match namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    }
}

/// The servers that fit.
fn those(store: &Store<DittoServer>, matches: impl Fn(&DittoServer) -> bool) -> Vec<ObjectRef<DittoServer>> {
    let servers = store.state();
    let matching = servers.iter().filter(|server| matches(server));
    matching.map(|server| ObjectRef::from_obj(&**server)).collect()
}

/// An item for every change of a database, and when the kind appears.
///
/// Watching a kind that is not installed fails again and again, and a controller pauses all its watches after an
/// error. So this watch is kept apart, and its errors are dropped after a pause.
fn databases(client: &Client, namespace: Option<&str>) -> impl Stream<Item = ()> + Send + 'static {
    let resource = percona();
    let api: Api<DynamicObject> = match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    watcher::watcher(api, watcher::Config::default()).filter_map(|event| async move {
        if event.is_err() {
            tokio::time::sleep(PAUSE).await;
        }
        event.ok().map(drop)
    })
}

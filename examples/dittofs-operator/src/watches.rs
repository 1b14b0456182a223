//! What wakes the operator: servers, what they own, what they refer to, and databases as soon as there can be any.

use std::sync::Arc;

use futures::channel::mpsc;
use futures::stream::{BoxStream, StreamExt};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::{DynamicObject, NamespaceResourceScope};
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::watcher::{self, Event};
use kube::runtime::{Controller, WatchStreamExt};
use kube::{Api, Client, Resource, ResourceExt};

use crate::api::DittoServer;
use crate::controller::{Context, on_error, reconcile};
use crate::objects::{PERCONA_DEFINITION, percona};
use crate::observe::is_served;

/// Runs the operator for one namespace, or for all, until it is dropped.
pub async fn run(context: Context, namespace: Option<&str>) {
    let client = context.client.clone();
    let (woken, wakes) = mpsc::unbounded();
    let servers = Controller::new(scoped::<DittoServer>(&client, namespace), watcher::Config::default());
    let (by_secret, by_class) = (servers.store(), servers.store());
    let servers = servers
        .owns(scoped::<StatefulSet>(&client, namespace), watcher::Config::default())
        .owns(scoped::<ConfigMap>(&client, namespace), watcher::Config::default())
        .owns(scoped::<Service>(&client, namespace), watcher::Config::default())
        .watches(
            scoped::<Secret>(&client, namespace),
            watcher::Config::default(),
            move |secret| {
                let home = secret.namespace();
                let name = secret.name_any();
                those(&by_secret, |server| {
                    server.namespace() == home && server.spec.secret_refs.iter().any(|reference| reference.name == name)
                })
            },
        )
        .watches(
            Api::<StorageClass>::all(client.clone()),
            watcher::Config::default(),
            move |class| {
                let name = Some(class.name_any());
                those(&by_class, |server| server.spec.storage.storage_class_name == name)
            },
        )
        .reconcile_all_on(wakes)
        .run(reconcile, on_error, Arc::new(context))
        .for_each(|result| async move {
            if let Err(error) = result {
                tracing::debug!(%error, "not reconciled");
            }
        });
    tokio::select! {
        () = servers => {}
        () = follow_databases(&client, namespace, woken) => {}
    }
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
fn those(store: &Store<DittoServer>, fits: impl Fn(&DittoServer) -> bool) -> Vec<ObjectRef<DittoServer>> {
    let servers = store.state();
    let fitting = servers.iter().filter(|server| fits(server));
    fitting.map(|server| ObjectRef::from_obj(&**server)).collect()
}

/// Wakes every server when a database changes, or when databases begin or cease to exist as a kind.
///
/// Watching a kind that is not installed fails again and again, and a controller pauses all its watches after an
/// error. So the definition is watched, and the databases only while it is served.
async fn follow_databases(client: &Client, namespace: Option<&str>, woken: mpsc::UnboundedSender<()>) {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let only = watcher::Config::default().fields(&format!("metadata.name={PERCONA_DEFINITION}"));
    let mut definition = watcher::watcher(definitions, only).default_backoff().boxed();
    let mut databases: Option<BoxStream<'static, ()>> = None;
    loop {
        tokio::select! {
            Some(event) = definition.next() => {
                match event {
                    Ok(Event::Apply(found) | Event::InitApply(found)) if is_served(&found) => {
                        databases.get_or_insert_with(|| changes(client, namespace));
                    }
                    Ok(Event::Apply(_) | Event::Delete(_) | Event::Init) => databases = None,
                    Ok(Event::InitApply(_) | Event::InitDone) => {}
                    Err(_) => continue,
                }
            }
            Some(()) = next(&mut databases) => {}
        }
        if woken.unbounded_send(()).is_err() {
            return;
        }
    }
}

/// The next change of a database; never, while there cannot be one.
async fn next(databases: &mut Option<BoxStream<'static, ()>>) -> Option<()> {
    match databases {
        Some(databases) => databases.next().await,
        None => std::future::pending().await,
    }
}

fn changes(client: &Client, namespace: Option<&str>) -> BoxStream<'static, ()> {
    let resource = percona();
    let api: Api<DynamicObject> = match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let seen = watcher::watcher(api, watcher::Config::default())
        .default_backoff()
        .touched_objects();
    seen.filter_map(|object| async move { object.ok().map(drop) }).boxed()
}

//! A whole controller: a `Cache` is ready when its deployment is. It reads, summarises, writes status once, and tells
//! what turned.
//!
//! Run it against any cluster that has the CRD: `cargo run --example controller --features client,schemars`.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use kube::runtime::{Controller, controller::Action, reflector::ObjectRef, watcher};
use kube::{Api, Client, CustomResource, Resource, ResourceExt};
use kube_status::events::{EventPublisher, Notice, Recorder};
use kube_status::writer::{StatusWriter, WriteError};
use kube_status::{
    Condition, ConditionType, Conditioned, Draft, Polarity, Summary, conditions_schema, find, readers, set,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "example.org",
    version = "v1",
    kind = "Cache",
    namespaced,
    status = "CacheStatus"
)]
#[kube(derive = "Conditioned")]
struct CacheSpec {}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
struct CacheStatus {
    #[schemars(schema_with = "conditions_schema::<CacheCondition>")]
    conditions: Vec<Condition>,
}

#[derive(Clone, Copy, ConditionType)]
enum CacheCondition {
    /// The cache serves.
    Ready,
    /// The deployment behind the cache runs as it should.
    DeploymentReady,
}

struct Context {
    client: Client,
    events: EventPublisher,
    writer: StatusWriter,
}

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Kube(#[from] kube::Error),
    #[error(transparent)]
    Read(#[from] readers::ReadError),
    #[error(transparent)]
    Merge(#[from] kube_status::merge::MergeError),
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// What the cache should say, and what is worth an event. Pure: a test needs no server.
fn report(cache: &mut Cache, deployment: Option<&Deployment>, now: Timestamp) -> Result<Option<Notice>, Error> {
    let reading = deployment.map(readers::read).transpose()?;
    let missing = || Draft::bad(CacheCondition::DeploymentReady, "DeploymentMissing");
    let draft = reading
        .as_ref()
        .map_or_else(missing, |reading| reading.draft(CacheCondition::DeploymentReady));
    let _ = set(cache, draft, now);
    let summary = Summary::new(CacheCondition::Ready).declared([CacheCondition::DeploymentReady]);
    let change = summary.set(cache, now)?;
    let ready = find(cache.conditions(), CacheCondition::Ready);
    Ok(ready.and_then(|ready| Notice::of_transition(ready, Polarity::Positive, None, change)))
}

async fn reconcile(cache: Arc<Cache>, context: Arc<Context>) -> Result<Action, Error> {
    let namespace = cache.namespace().unwrap_or_default();
    let deployments = Api::<Deployment>::namespaced(context.client.clone(), &namespace);
    let deployment = deployments.get_opt(&cache.name_any()).await?;

    let mut next = (*cache).clone();
    let notice = report(&mut next, deployment.as_ref(), Timestamp::now())?;
    let caches = Api::<Cache>::namespaced(context.client.clone(), &namespace);
    let status = next.status.unwrap_or_default();
    match context.writer.apply(&caches, &cache, &status).await {
        Err(error) if error.is_race() || error.is_not_found() => return Ok(Action::await_change()),
        written => drop(written?),
    }
    if let Some(notice) = notice {
        context.events.record(&cache.object_ref(&()), notice);
    }
    Ok(Action::requeue(Duration::from_secs(300)))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::try_default().await?;
    let context = Context {
        client: client.clone(),
        events: EventPublisher::builder("cache-controller").start(client.clone()),
        writer: StatusWriter::new("cache-controller"),
    };
    Controller::new(Api::<Cache>::all(client.clone()), watcher::Config::default())
        .watches(
            Api::<Deployment>::all(client),
            watcher::Config::default(),
            |deployment| {
                // The deployment of the same name, with any owner.
                let home = deployment.namespace()?;
                Some(ObjectRef::new(&deployment.name_any()).within(&home))
            },
        )
        .run(
            reconcile,
            |_, _, _| Action::requeue(Duration::from_secs(5)),
            Arc::new(context),
        )
        .for_each(|result| async move {
            if let Err(error) = result {
                eprintln!("{error}");
            }
        })
        .await;
    Ok(())
}

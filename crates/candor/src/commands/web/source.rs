//! The watches: one for each kind of object, for all viewers together. They only read.

use std::sync::{Arc, RwLock};
use std::time::Duration;

use candor_api::ValkeyNode;
use candor_api::redkey::CLUSTER_LABEL;
use candor_operator::objects::labels;
use futures::StreamExt;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use kube::Api;
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Config, watcher};
use tokio::sync::watch;

use super::world::World;
use crate::commands::cluster::Kind;
use crate::commands::connect::Connected;
use crate::commands::errors::CommandError;
use crate::commands::liveness::LEASE;

/// Interval of the question whether the API server responds.
const CONTACT: Duration = Duration::from_secs(2);

/// Objects of one page of a list. A page is in memory as a whole, so it is small.
const PAGE: u32 = 20;

/// A kind of object that is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// Clusters of a kind.
    Clusters(Kind),
    /// `ValkeyNode` objects.
    Members,
    /// Pods of the members of a kind.
    Pods(Kind),
    /// Events about clusters of a kind.
    Events(Kind),
    /// The operator's lease.
    Leases,
    /// Kubernetes nodes, for their zones.
    Nodes,
}

impl Source {
    /// Everything that is watched.
    pub const ALL: [Self; 9] = [
        Self::Clusters(Kind::ValkeyCluster),
        Self::Clusters(Kind::RedkeyCluster),
        Self::Members,
        Self::Pods(Kind::ValkeyCluster),
        Self::Pods(Kind::RedkeyCluster),
        Self::Events(Kind::ValkeyCluster),
        Self::Events(Kind::RedkeyCluster),
        Self::Leases,
        Self::Nodes,
    ];

    /// As users call it.
    pub fn name(self) -> String {
        match self {
            Self::Clusters(kind) => format!("{}s", kind.name()),
            Self::Members => "ValkeyNodes".to_owned(),
            Self::Pods(kind) => format!("pods of {}s", kind.name()),
            Self::Events(kind) => format!("events of {}s", kind.name()),
            Self::Leases => "leases".to_owned(),
            Self::Nodes => "zones of nodes".to_owned(),
        }
    }

    fn resource(self) -> ApiResource {
        match self {
            Self::Clusters(kind) => kind.resource(),
            Self::Members => ApiResource::erase::<ValkeyNode>(&()),
            Self::Pods(_) => ApiResource::erase::<Pod>(&()),
            Self::Events(_) => ApiResource::erase::<Event>(&()),
            Self::Leases => ApiResource::erase::<Lease>(&()),
            Self::Nodes => ApiResource::erase::<Node>(&()),
        }
    }

    /// Which objects of that resource.
    fn config(self) -> Config {
        let all = Config::default().page_size(PAGE);
        match self {
            Self::Clusters(_) | Self::Members | Self::Nodes => all,
            Self::Pods(Kind::ValkeyCluster) => all.labels(labels::CLUSTER),
            Self::Pods(Kind::RedkeyCluster) => all.labels(CLUSTER_LABEL),
            Self::Events(kind) => all.fields(&format!("involvedObject.kind={}", kind.name())),
            Self::Leases => all.fields(&format!("metadata.name={LEASE}")),
        }
    }
}

/// The world, shared between the watches and the viewers.
pub type Shared = Arc<RwLock<World>>;

/// Whether to watch every namespace: yes, unless the user names one or may not list all.
pub async fn is_everywhere(at: &Connected, named: bool) -> Result<bool, CommandError> {
    if named {
        return Ok(false);
    }
    let mut refused = None;
    for kind in Kind::ALL {
        let api: Api<DynamicObject> = Api::all_with(at.client.clone(), &kind.resource());
        match api.list_metadata(&ListParams::default().limit(1)).await {
            Ok(_) => return Ok(true),
            Err(kube::Error::Api(status)) if status.code == 403 => refused = Some(false),
            // The kind is not installed.
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => return Err(CommandError::of(&error, kind.name())),
        }
    }
    Ok(refused.unwrap_or(true))
}

/// Watches a kind of object for ever.
pub async fn follow(at: Connected, source: Source, everywhere: bool, world: Shared, changed: watch::Sender<u64>) {
    let resource = source.resource();
    let api: Api<DynamicObject> = if everywhere || source == Source::Nodes {
        Api::all_with(at.client, &resource)
    } else {
        Api::namespaced_with(at.client, &at.namespace, &resource)
    };
    let mut events = std::pin::pin!(watcher(api, source.config()).default_backoff());
    while let Some(event) = events.next().await {
        {
            let Ok(mut world) = world.write() else { return };
            match event {
                Ok(event) => {
                    world.hear(Timestamp::now());
                    take(&mut world, source, event);
                }
                // A kind that is not installed has no clusters.
                Err(error) if is_missing(&error) => {
                    world.begin(source);
                    world.complete(source);
                }
                Err(error) => world.fail(source, text(&error)),
            }
            let revision = world.revision();
            changed.send_if_modified(|last| std::mem::replace(last, revision) != revision);
        }
        // A burst of events must not keep viewers waiting for the lock.
        tokio::task::yield_now().await;
    }
}

fn take(world: &mut World, source: Source, event: watcher::Event<DynamicObject>) {
    match event {
        watcher::Event::Init => world.begin(source),
        watcher::Event::InitApply(object) | watcher::Event::Apply(object) => world.apply(source, object),
        watcher::Event::InitDone => world.complete(source),
        watcher::Event::Delete(object) => world.remove(source, &object),
    }
}

fn is_missing(error: &watcher::Error) -> bool {
    matches!(error, watcher::Error::InitialListFailed(kube::Error::Api(status)) if status.code == 404)
}

fn text(error: &watcher::Error) -> String {
    use watcher::Error::{InitialListFailed, WatchError, WatchFailed, WatchStartFailed};
    match error {
        InitialListFailed(kube::Error::Api(status)) | WatchStartFailed(kube::Error::Api(status)) => {
            status.message.clone()
        }
        WatchError(status) => status.message.clone(),
        InitialListFailed(error) | WatchStartFailed(error) | WatchFailed(error) => crate::commands::chain(error),
        other @ watcher::Error::NoResourceVersion => other.to_string(),
    }
}

/// Asks the API server every few seconds whether it responds, so that the age of the data is known also when nothing
/// changes.
pub async fn contact(at: Connected, world: Shared) {
    loop {
        let version = tokio::time::timeout(CONTACT, at.client.apiserver_version()).await;
        if matches!(version, Ok(Ok(_)))
            && let Ok(mut world) = world.write()
        {
            world.hear(Timestamp::now());
        }
        tokio::time::sleep(CONTACT).await;
    }
}

//! What the servers themselves report: asked every second, once for all viewers of a cluster, and only while a viewer
//! looks at it or has just done so.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, RwLock, Weak};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use valkey_admin::client::Node;
use valkey_admin::info::Info;

use super::source::Shared;
use super::world::Key;
use crate::commands::cluster::MemberId;
use crate::commands::connect::Connected;
use crate::commands::servers;
use crate::commands::snapshot::Snapshot;

/// Interval of the queries.
const QUERY: Duration = Duration::from_secs(1);
/// Queries after the last viewer has left: a page that is loaded again uses the open connections.
const LINGER: u32 = 3;

/// The latest figures of one cluster.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// What each server reports.
    pub servers: BTreeMap<MemberId, Info>,
    /// Why there are none.
    pub note: Option<String>,
}

/// Figures of the clusters that somebody looks at.
#[derive(Default)]
pub struct Watching(Mutex<HashMap<Key, Weak<RwLock<Figures>>>>);

impl Watching {
    /// The figures of a cluster, kept current for as long as the caller holds them.
    pub fn of(&self, at: &Connected, world: &Shared, key: &Key) -> Arc<RwLock<Figures>> {
        let Ok(mut all) = self.0.lock() else {
            return Arc::default();
        };
        if let Some(figures) = all.get(key).and_then(Weak::upgrade) {
            return figures;
        }
        all.retain(|_, figures| figures.strong_count() > 0);
        let figures: Arc<RwLock<Figures>> = Arc::default();
        all.insert(key.clone(), Arc::downgrade(&figures));
        let mut at = at.clone();
        at.namespace.clone_from(&key.namespace);
        tokio::spawn(ask(at, world.clone(), key.clone(), figures.clone()));
        figures
    }
}

/// Asks until no viewer is left.
async fn ask(at: Connected, world: Shared, key: Key, to: Arc<RwLock<Figures>>) {
    let mut unwatched = 0;
    let mut known: Vec<(String, Option<String>)> = Vec::new();
    let mut nodes: BTreeMap<MemberId, Node> = BTreeMap::new();
    loop {
        let snapshot = world
            .read()
            .ok()
            .and_then(|world| world.snapshot(&key, Timestamp::now()));
        let figures = match snapshot {
            Some(snapshot) => figures(&at, &snapshot, &mut known, &mut nodes).await,
            None => Figures::default(),
        };
        if let Ok(mut to) = to.write() {
            *to = figures;
        }
        // Without viewers, only this task holds them.
        unwatched = if Arc::strong_count(&to) == 1 { unwatched + 1 } else { 0 };
        if unwatched > LINGER {
            return;
        }
        tokio::time::sleep(QUERY).await;
    }
}

async fn figures(
    at: &Connected,
    snapshot: &Snapshot,
    known: &mut Vec<(String, Option<String>)>,
    nodes: &mut BTreeMap<MemberId, Node>,
) -> Figures {
    let address = |pod: &Pod| pod.status.as_ref().and_then(|status| status.pod_ip.clone());
    let pods: Vec<_> = snapshot.pods.iter().map(|pod| (pod.name_any(), address(pod))).collect();
    if pods != *known || nodes.is_empty() {
        match servers::reach(at, &snapshot.object, &snapshot.pods).await {
            Ok(reached) => (*known, *nodes) = (pods, reached),
            Err(note) => {
                return Figures {
                    servers: BTreeMap::new(),
                    note: Some(note),
                };
            }
        }
    }
    let servers = servers::figures(nodes).await;
    let note = (servers.is_empty() && !nodes.is_empty()).then(|| {
        "no server can be reached from here: keys are as of the last change, lag, memory and load are not shown"
            .to_owned()
    });
    Figures { servers, note }
}

//! Data sources. Servers are queried every second over persistent connections. The API server is queried only when a
//! watch reports a change, and periodically.

use std::collections::BTreeMap;
use std::time::Duration;

use candor_api::ValkeyNode;
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::ResourceExt;
use kube::api::ApiResource;
use kube::runtime::watcher::Config;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout};
use valkey_admin::client::Node;
use valkey_admin::info::Info;

use crate::commands::changes::{Scope, listen};
use crate::commands::cluster::{ClusterRef, Kind, MemberId};
use crate::commands::connect::Connected;
use crate::commands::servers;
use crate::commands::snapshot::{Include, Snapshot};

/// Interval of the queries to servers.
const QUERY: Duration = Duration::from_secs(1);
/// Interval at which data without a watch (the lease) is fetched again.
const REFRESH: Duration = Duration::from_secs(10);
/// Retry interval while the API server does not respond.
const RETRY: Duration = Duration::from_secs(2);
/// Many changes within this time are one snapshot.
const GATHER: Duration = Duration::from_millis(500);
/// After this long without a response, the screen shows the problem.
const PATIENCE: Duration = Duration::from_secs(5);

/// An update of the screen.
#[derive(Debug)]
pub enum Update {
    /// A complete snapshot.
    Snapshot(Box<Snapshot>),
    /// Replies of the servers.
    Servers(BTreeMap<MemberId, Info>),
    /// The API server could not be queried; holds the message.
    Trouble(String),
}

/// Sends updates for as long as the receiver exists.
pub async fn run(at: Connected, cluster: ClusterRef, include: Include, updates: mpsc::Sender<Update>) {
    let (changed, mut changes) = mpsc::channel(1);
    // Dropping the set ends its tasks.
    let _watches = watches(&at, &cluster, &changed);
    let mut tick = interval(QUERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut reached = Reached::default();
    let mut through = false;
    loop {
        let started = Instant::now();
        let (update, next) = match timeout(PATIENCE, Snapshot::take(&at, &cluster, &include)).await {
            Ok(Ok(mut snapshot)) => {
                snapshot.notes.extend(reached.reach(&at, &snapshot).await);
                snapshot.servers = servers::figures(&reached.nodes).await;
                through = snapshot.servers.is_empty() && !reached.nodes.is_empty();
                if through {
                    ask_through_api_server(&at, &mut snapshot).await;
                }
                (Update::Snapshot(Box::new(snapshot)), started + REFRESH)
            }
            Ok(Err(error)) => (Update::Trouble(error.to_string()), started + RETRY),
            Err(_) => {
                let message = format!("the API server did not respond for {} s", PATIENCE.as_secs());
                (Update::Trouble(message), Instant::now() + RETRY)
            }
        };
        if updates.send(update).await.is_err() {
            return;
        }
        loop {
            tokio::select! {
                _ = changes.recv() => {
                    sleep_until(started + GATHER).await;
                    break;
                }
                () = sleep_until(next) => break,
                // By exec only with each snapshot: that is not for every second.
                _ = tick.tick(), if !through => {
                    let figures = servers::figures(&reached.nodes).await;
                    if updates.send(Update::Servers(figures)).await.is_err() {
                        return;
                    }
                }
            }
        }
    }
}

/// Asks the servers by exec in their pods, and says so.
async fn ask_through_api_server(at: &Connected, snapshot: &mut Snapshot) {
    match servers::through_api_server(at, &snapshot.object, &snapshot.pods).await {
        Ok(answers) => {
            snapshot.servers = answers;
            let note = "no server can be reached from here: the figures come through the API server, every 10 s";
            snapshot.notes.push(note.to_owned());
        }
        Err(message) => {
            let note = format!("no server can be reached from here, and not through the API server either: {message}");
            snapshot.notes.push(note);
        }
    }
}

/// Watches the objects that the snapshot is made of.
fn watches(at: &Connected, cluster: &ClusterRef, changed: &mpsc::Sender<()>) -> JoinSet<()> {
    let ClusterRef { kind, name } = cluster;
    let one = Config::default().fields(&format!("metadata.name={name}"));
    let members = Config::default().labels(&kind.member_selector(name));
    let about = Config::default().fields(&format!("involvedObject.name={name}"));
    let of_members = match kind {
        Kind::ValkeyCluster => ApiResource::erase::<ValkeyNode>(&()),
        Kind::RedkeyCluster => ApiResource::erase::<Pod>(&()),
    };
    let mut tasks = JoinSet::new();
    for (resource, which) in [
        (kind.resource(), one),
        (of_members, members),
        (ApiResource::erase::<Event>(&()), about),
    ] {
        tasks.spawn(listen(at.clone(), Scope::Namespace, resource, which, changed.clone()));
    }
    tasks
}

/// Connections to servers, rebuilt when pods change.
#[derive(Default)]
struct Reached {
    pods: Vec<(String, Option<String>)>,
    nodes: BTreeMap<MemberId, Node>,
}

impl Reached {
    /// Connects to the servers; returns why they could not be reached, if they could not.
    async fn reach(&mut self, at: &Connected, snapshot: &Snapshot) -> Option<String> {
        let address = |pod: &Pod| pod.status.as_ref().and_then(|status| status.pod_ip.clone());
        let pods: Vec<_> = snapshot.pods.iter().map(|pod| (pod.name_any(), address(pod))).collect();
        if pods == self.pods && !self.nodes.is_empty() {
            return None;
        }
        match servers::reach(at, &snapshot.object, &snapshot.pods).await {
            Ok(nodes) => {
                (self.pods, self.nodes) = (pods, nodes);
                None
            }
            Err(message) => Some(message),
        }
    }
}

//! Data sources. Servers are queried every second over persistent connections. The API server is queried only when a
//! watch reports a change, and periodically.

use std::collections::BTreeMap;
use std::time::Duration;

use candor_api::{ValkeyCluster, ValkeyNode};
use candor_engine::model::MemberRef;
use candor_operator::objects::labels;
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::ResourceExt;
use kube::runtime::watcher::Config;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout};
use valkey_admin::client::Node;
use valkey_admin::info::Info;

use crate::commands::connect::Connected;
use crate::commands::news::listen;
use crate::commands::picture::{Picture, Wish};
use crate::commands::servers;

/// Interval of the queries to servers.
const BEAT: Duration = Duration::from_secs(1);
/// Interval at which data without a watch (the lease) is fetched again.
const ANEW: Duration = Duration::from_secs(10);
/// Retry interval while the API server does not respond.
const AGAIN: Duration = Duration::from_secs(2);
/// Many changes within this time are one snapshot.
const APART: Duration = Duration::from_millis(500);
/// After this long without a response, the screen shows the problem.
const PATIENCE: Duration = Duration::from_secs(5);

/// An update of the screen.
#[derive(Debug)]
pub enum Update {
    /// A complete snapshot.
    Picture(Box<Picture>),
    /// Replies of the servers.
    Servers(BTreeMap<MemberRef, Info>),
    /// The API server could not be queried; holds the message.
    Trouble(String),
}

/// Sends updates for as long as the receiver exists.
pub async fn run(at: Connected, name: String, wish: Wish, told: mpsc::Sender<Update>) {
    let (rings, mut bell) = mpsc::channel(1);
    let near = Some(at.namespace.clone());
    let one = Config::default().fields(&format!("metadata.name={name}"));
    let members = Config::default().labels(&format!("{}={name}", labels::CLUSTER));
    let about = Config::default().fields(&format!("involvedObject.name={name}"));
    let client = || at.client.clone();
    let mut watches = tokio::task::JoinSet::new();
    watches.spawn(listen::<ValkeyCluster>(client(), near.clone(), one, rings.clone()));
    watches.spawn(listen::<ValkeyNode>(client(), near.clone(), members, rings.clone()));
    watches.spawn(listen::<Event>(client(), near, about, rings));
    let mut beat = interval(BEAT);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut reached = Reached::default();
    loop {
        let looked = Instant::now();
        let (update, next) = match timeout(PATIENCE, Picture::take(&at, &name, &wish)).await {
            Ok(Ok(mut picture)) => {
                if let Some(words) = reached.reach(&at, &picture).await {
                    picture.notes.push(words);
                }
                picture.servers = servers::figures(&reached.nodes).await;
                (Update::Picture(Box::new(picture)), looked + ANEW)
            }
            Ok(Err(error)) => (Update::Trouble(error.to_string()), looked + AGAIN),
            Err(_) => {
                let words = format!("the API server did not answer for {} s", PATIENCE.as_secs());
                (Update::Trouble(words), Instant::now() + AGAIN)
            }
        };
        if told.send(update).await.is_err() {
            return;
        }
        loop {
            tokio::select! {
                _ = bell.recv() => {
                    sleep_until(looked + APART).await;
                    break;
                }
                () = sleep_until(next) => break,
                _ = beat.tick() => {
                    let figures = servers::figures(&reached.nodes).await;
                    if told.send(Update::Servers(figures)).await.is_err() {
                        return;
                    }
                }
            }
        }
    }
}

/// Connections to servers, rebuilt when pods change.
#[derive(Default)]
struct Reached {
    pods: Vec<(String, Option<String>)>,
    nodes: BTreeMap<MemberRef, Node>,
}

impl Reached {
    /// Connects to the servers; returns why they could not be reached, if they could not.
    async fn reach(&mut self, at: &Connected, picture: &Picture) -> Option<String> {
        let address = |pod: &Pod| pod.status.as_ref().and_then(|status| status.pod_ip.clone());
        let pods: Vec<_> = picture.pods.iter().map(|pod| (pod.name_any(), address(pod))).collect();
        if pods == self.pods && !self.nodes.is_empty() {
            return None;
        }
        match servers::reach(at, &picture.cluster, &picture.pods).await {
            Ok(nodes) => {
                (self.pods, self.nodes) = (pods, nodes);
                None
            }
            Err(words) => Some(words),
        }
    }
}

//! Where the figures come from. Servers are asked every second over connections that stay open; the API server only
//! when a watch says that something changed, and now and then.

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

/// Servers are asked this often.
const BEAT: Duration = Duration::from_secs(1);
/// What no watch tells (the lease) is looked at again after this long.
const ANEW: Duration = Duration::from_secs(10);
/// While the API server does not answer, it is tried this often.
const AGAIN: Duration = Duration::from_secs(2);
/// Many changes at once are one picture.
const APART: Duration = Duration::from_millis(500);
/// After this long without an answer it is said so.
const PATIENCE: Duration = Duration::from_secs(5);

/// Something new.
#[derive(Debug)]
pub enum Update {
    /// Everything.
    Picture(Box<Picture>),
    /// What servers said.
    Servers(BTreeMap<MemberRef, Info>),
    /// The API server could not be asked, in words.
    Trouble(String),
}

/// Tells what is new for as long as somebody listens.
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

/// Connections to servers, made anew when pods come and go.
#[derive(Default)]
struct Reached {
    pods: Vec<(String, Option<String>)>,
    nodes: BTreeMap<MemberRef, Node>,
}

impl Reached {
    /// Why servers could not be reached, if they could not.
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

//! The member monitor: one lightweight connection per member, and what it observes between two reconciles.
//!
//! | topic | module |
//! |---|---|
//! | which members are monitored, and queries of their state | here |
//! | monitoring one member: connect, probe, notice changes, reconnect | `member` |
//! | reachability of a member | `reachability` |
//! | the commands of a probe, and how replies become facts | `questions` |
//! | whether a replica has its primary's data | `following` |
//! | whether the primary confirms a replica that was frozen | `acknowledged` |
//! | intervals, timeouts and backoff | `timing` |
//! | triggering a reconcile, once for many changes | `trigger` |
//!
//! The monitor collects facts and triggers reconciles. It makes no decisions. It notices a closed connection when it
//! closes, not at the next probe. A healthy member costs two small queries per second and triggers no reconcile.
//!
//! # Timeout, refused connection, and rejection
//!
//! | event at the member's address | value |
//! |---|---|
//! | connection refused, and no earlier connection succeeded | [`Server::Nowhere`]: not up yet, nothing terminated |
//! | connection refused, and an earlier connection succeeded | [`Server::Dead`]: that process has terminated |
//! | no reply within a second, connection timeout, unreachable address | [`Server::Silent`]: proves nothing |
//! | rejected user, TLS error, undecodable reply | [`Server::Silent`], and [`Monitor::trouble`] has the message |
//! | any other reply, also LOADING, BUSY and MASTERDOWN | [`Server::Up`], with the last full reply if it is too busy |
//!
//! An earlier connection is a TCP connection to exactly this address since its monitoring started, with or without a
//! reply. Pods get new addresses, so a refused connection at a new pod says nothing about the old one. An operator
//! that has just started has no earlier connections. It cannot confirm by itself that a process has terminated: it
//! needs the container status from Kubernetes.

mod acknowledged;
mod following;
mod member;
mod questions;
mod reachability;
mod timing;
mod trigger;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use candor_engine::model::MemberRef;
use candor_engine::observation::Server;
use futures::future::join_all;
use tokio::sync::mpsc::UnboundedSender;
use valkey_admin::client::{Endpoint, Node};

use member::Watched;
use trigger::Trigger;

/// The kinds of clusters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClusterKind {
    /// `ValkeyCluster`.
    #[default]
    Valkey,
    /// `RedkeyCluster`.
    Redkey,
}

impl ClusterKind {
    /// The name of the kind in Kubernetes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Valkey => "ValkeyCluster",
            Self::Redkey => "RedkeyCluster",
        }
    }
}

/// Identifies a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterKey {
    /// Its kind.
    pub kind: ClusterKind,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// Monitors the members of all clusters. Clones are handles to the same monitor.
#[derive(Clone)]
pub struct Monitor {
    trigger: UnboundedSender<ClusterKey>,
    clusters: Arc<Mutex<HashMap<ClusterKey, Watch>>>,
}

/// Monitors the members of one cluster.
struct Watch {
    trigger: Arc<Trigger>,
    members: BTreeMap<MemberRef, Watched>,
}

impl Monitor {
    /// Creates a monitor without members. It sends a cluster's key to `trigger` when something about its members
    /// changes.
    pub fn new(trigger: UnboundedSender<ClusterKey>) -> Self {
        Self {
            trigger,
            clusters: Arc::default(),
        }
    }

    /// Sets the members of a cluster and their endpoints. A member with an unchanged endpoint is not affected. If only
    /// the credentials changed, the monitor reconnects and retains the member's state. All other members are removed
    /// or added.
    pub fn watch(&self, cluster: &ClusterKey, members: BTreeMap<MemberRef, Endpoint>) {
        let mut clusters = self.clusters();
        let watch = clusters.entry(cluster.clone()).or_insert_with(|| Watch {
            trigger: Trigger::new(cluster.clone(), self.trigger.clone()),
            members: BTreeMap::new(),
        });
        watch.members.retain(|at, _| members.contains_key(at));
        for (at, endpoint) in members {
            let before = watch.members.remove(&at);
            let watched = match before {
                Some(same) if *same.endpoint() == endpoint && same.is_running() => same,
                before => Watched::begin(at, endpoint, watch.trigger.clone(), before),
            };
            watch.members.insert(at, watched);
        }
    }

    /// Stops monitoring a cluster.
    pub fn forget(&self, cluster: &ClusterKey) {
        self.clusters().remove(cluster);
    }

    /// Queries every member of a cluster concurrently for its full state. A member that is known to be terminated or
    /// not responding is not queried: the known state is returned. A healthy member replies within milliseconds. For a
    /// member that stops responding now, this waits until that is certain, at most a second.
    pub async fn scrape(&self, cluster: &ClusterKey) -> BTreeMap<MemberRef, Server> {
        let asked: Vec<_> = {
            let clusters = self.clusters();
            let members = clusters.get(cluster).map(|watch| watch.members.iter());
            let members = members.into_iter().flatten();
            members.map(|(at, watched)| (*at, watched.ask())).collect()
        };
        let answers = asked.into_iter().map(|(at, answer)| async move { (at, answer.await) });
        let mut observation: BTreeMap<MemberRef, Server> = join_all(answers).await.into_iter().collect();
        self.outlived(cluster, &mut observation);
        self.unconfirmed(cluster, &mut observation);
        observation
    }

    /// Corrects a replica that lost its link while its primary kept replying. The replica was in sync, but now lacks
    /// the writes since then.
    fn outlived(&self, cluster: &ClusterKey, observation: &mut BTreeMap<MemberRef, Server>) {
        let clusters = self.clusters();
        let Some(watch) = clusters.get(cluster) else { return };
        for (at, server) in observation {
            let Server::Up(facts) = server else { continue };
            let Some(lost) = watch.members.get(at).and_then(Watched::link_lost) else {
                continue;
            };
            let mut others = watch.members.values();
            let primary = others.find(|other| other.endpoint().address == lost.primary);
            if primary.is_some_and(|primary| primary.outlived(lost.at)) {
                facts.was_in_sync = false;
            }
        }
    }

    /// A client for sending commands to a member. Its connection is separate from the monitor's connection. It is
    /// opened on first use and closed after it has been idle for a while.
    pub fn node(&self, cluster: &ClusterKey, member: MemberRef) -> Option<Node> {
        let clusters = self.clusters();
        clusters.get(cluster)?.members.get(&member).map(Watched::node)
    }

    /// The error message of the server or of the network, if a member gives no usable reply.
    pub fn trouble(&self, cluster: &ClusterKey, member: MemberRef) -> Option<String> {
        let clusters = self.clusters();
        clusters.get(cluster)?.members.get(&member)?.trouble()
    }

    /// Members that reject the operator's user or its password, with their endpoints.
    pub fn rejecting(&self, cluster: &ClusterKey) -> BTreeMap<MemberRef, Endpoint> {
        let clusters = self.clusters();
        let members = clusters.get(cluster).into_iter().flat_map(|watch| &watch.members);
        let rejecting = members.filter(|(_, member)| member.refuses_us());
        rejecting.map(|(at, member)| (*at, member.endpoint().clone())).collect()
    }

    fn clusters(&self) -> MutexGuard<'_, HashMap<ClusterKey, Watch>> {
        self.clusters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

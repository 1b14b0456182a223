//! One light connection per member, and what it tells between two looks.
//!
//! | you look for | it is in |
//! |---|---|
//! | who is watched, and the questions others ask of it | here |
//! | one member's watch: connect, beat, notice, reconnect | `member` |
//! | how a member stands | `standing` |
//! | what is asked, and how answers become facts | `questions` |
//! | whether a replica has its primary's data | `following` |
//! | how often, how long, how soon again | `tempo` |
//! | calling for a reconcile, once for many changes | `bell` |
//!
//! The pulse gathers facts and calls; it decides nothing. A connection's end is noticed when it happens, not at the
//! next beat; a healthy member costs two small questions a second and calls for nothing.
//!
//! # What a silence, a refusal and an absence are
//!
//! | what happened at the member's address | the value |
//! |---|---|
//! | refused, and nobody was ever seen to listen there | [`Server::Nowhere`]: not up yet; nothing has died |
//! | refused, and somebody listened there before | [`Server::Dead`]: that process is gone |
//! | a question unanswered for a second, a connection that cannot be made, an address that cannot be reached | [`Server::Silent`]: nothing is proved |
//! | an answer that cannot be used: our user is refused, TLS fails, nonsense | [`Server::Silent`], and [`Pulse::trouble`] has the words |
//! | any other answer, LOADING, BUSY and MASTERDOWN among them | [`Server::Up`], with what it said last where it is too busy to say more |
//!
//! "Somebody listened" is a TCP connection that was made to this very address since it is watched, answered or not:
//! pods get new addresses, so a refusal at a new pod says nothing about the old one. An operator that has just
//! started has seen nobody listen and proves no death by itself; Kubernetes' word on the container does that.

mod bell;
mod following;
mod member;
mod questions;
mod standing;
mod tempo;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use candor_engine::model::MemberRef;
use candor_engine::observation::Server;
use futures::future::join_all;
use tokio::sync::mpsc::UnboundedSender;
use valkey_admin::client::{Endpoint, Node};

use bell::Bell;
use member::Watched;

/// Which cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterKey {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// The watch over the members of all clusters. Clones are handles of the same one.
#[derive(Clone)]
pub struct Pulse {
    trigger: UnboundedSender<ClusterKey>,
    clusters: Arc<Mutex<HashMap<ClusterKey, Watch>>>,
}

/// The watch over one cluster.
struct Watch {
    bell: Arc<Bell>,
    members: BTreeMap<MemberRef, Watched>,
}

impl Pulse {
    /// Watches nobody yet. A cluster's key is sent when something about its members changed.
    pub fn new(trigger: UnboundedSender<ClusterKey>) -> Self {
        Self {
            trigger,
            clusters: Arc::default(),
        }
    }

    /// Says who the members of a cluster are, and where. Who is watched at the same endpoint stays so untouched; at
    /// the same address with other credentials the connection is made anew and what is known is kept; everybody else
    /// is dropped or begun.
    pub fn watch(&self, cluster: &ClusterKey, members: BTreeMap<MemberRef, Endpoint>) {
        let mut clusters = self.clusters();
        let watch = clusters.entry(cluster.clone()).or_insert_with(|| Watch {
            bell: Bell::new(cluster.clone(), self.trigger.clone()),
            members: BTreeMap::new(),
        });
        watch.members.retain(|at, _| members.contains_key(at));
        for (at, endpoint) in members {
            let before = watch.members.remove(&at);
            let watched = match before {
                Some(same) if *same.endpoint() == endpoint && same.is_running() => same,
                before => Watched::begin(at, endpoint, watch.bell.clone(), before),
            };
            watch.members.insert(at, watched);
        }
    }

    /// Watches a cluster no longer.
    pub fn forget(&self, cluster: &ClusterKey) {
        self.clusters().remove(cluster);
    }

    /// Asks every member of a cluster for everything, at once. A member that is known dead or silent is not asked:
    /// what is known is the answer. Who answers does so in milliseconds; who falls silent just now is waited for
    /// until that is certain, a second at most.
    pub async fn scrape(&self, cluster: &ClusterKey) -> BTreeMap<MemberRef, Server> {
        let asked: Vec<_> = {
            let clusters = self.clusters();
            let members = clusters.get(cluster).map(|watch| watch.members.iter());
            let members = members.into_iter().flatten();
            members.map(|(at, watched)| (*at, watched.ask())).collect()
        };
        let answers = asked.into_iter().map(|(at, answer)| async move { (at, answer.await) });
        let mut seen: BTreeMap<MemberRef, Server> = join_all(answers).await.into_iter().collect();
        self.outlived(cluster, &mut seen);
        seen
    }

    /// A replica whose link broke while its primary went on answering misses what was written since: it was in sync
    /// once, but that is over.
    fn outlived(&self, cluster: &ClusterKey, seen: &mut BTreeMap<MemberRef, Server>) {
        let clusters = self.clusters();
        let Some(watch) = clusters.get(cluster) else { return };
        for (at, server) in seen {
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

    /// A member for whoever acts on it. Its connection is apart from the pulse's, made when first needed and ended
    /// when it has not been asked for in a while.
    pub fn node(&self, cluster: &ClusterKey, member: MemberRef) -> Option<Node> {
        let clusters = self.clusters();
        clusters.get(cluster)?.members.get(&member).map(Watched::node)
    }

    /// Why a member that should answer gives nothing that can be used, in its own words or the network's.
    pub fn trouble(&self, cluster: &ClusterKey, member: MemberRef) -> Option<String> {
        let clusters = self.clusters();
        clusters.get(cluster)?.members.get(&member)?.trouble()
    }

    /// Members whose servers reject our user or its password, and where they are.
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

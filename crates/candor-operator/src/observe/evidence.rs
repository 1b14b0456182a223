//! Whether the node of a vanished pod confirms that the pod has terminated. A missing pod object alone proves nothing:
//! behind a partition its server may still acknowledge writes. Its node confirms the termination in these cases:
//!
//! - The kubelet renewed the node's Lease after the pod was first missing (and the node is Ready, if the operator may
//!   watch nodes). The kubelet then also knows that the pod must terminate. A node's `Ready` condition alone stays
//!   `True` for 40 s after the kubelet was cut off. Renewals are compared with each other, never with a clock: the
//!   node's clock may be wrong.
//! - The node is deleted, and its Lease with it.
//! - The node has the taint `node.kubernetes.io/out-of-service`.
//!
//! Every node renews its Lease every 10 s, so Leases are not watched. A Lease is read when evidence is needed, at most
//! once a second.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use candor_engine::memory::Memory;
use candor_engine::model::MemberRef;
use candor_engine::observation::{Member, Observation, Server};
use futures::future::join_all;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::{Api, Client};
use tokio::time::timeout;

use crate::runtime::cache::{Cache, ClusterKey};
use crate::runtime::context::Context;

/// The namespace in which kubelets renew the Leases of their nodes.
pub const NODE_LEASES: &str = "kube-node-lease";
/// The taint that an administrator sets after a node was shut down permanently.
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";
/// How long a reading is valid.
const FRESH: Duration = Duration::from_secs(1);
/// The longest time that a reconcile waits for a Lease.
const PATIENCE: Duration = Duration::from_millis(500);

/// The result of reading a node's Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    /// The last renewal, by the node's own clock.
    Renewed(Timestamp),
    /// The Lease does not exist.
    Missing,
    /// The Lease could not be read.
    Unread,
}

/// Leases that were read, and the pods that wait for a renewal. Everything here may be lost in a crash: evidence is
/// then delayed by one renewal.
#[derive(Default)]
pub struct NodeLeases {
    readings: Mutex<HashMap<String, (Instant, Reading)>>,
    missed: Mutex<HashMap<(ClusterKey, String), Missed>>,
}

/// A pod that is missing, or has a container status that may be outdated.
#[derive(Clone, Copy, Debug)]
struct Missed {
    /// The renewal that was read first after the pod was missing.
    first: Timestamp,
    /// Whether the Lease was renewed since.
    renewed: bool,
}

/// A node's state according to the watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reachability {
    /// The operator cannot watch nodes.
    Unseen,
    Ready,
    NotReady,
    OutOfService,
    /// There is no node of that name.
    Absent,
}

/// One question: has this node confirmed that this pod has terminated? Member, uid of the pod and name of the node.
type Question = (MemberRef, String, String);

/// Checks the nodes of lost members' pods. Only shards without a responding primary need evidence.
pub async fn observe(context: &Context, key: &ClusterKey, memory: &Memory, observation: &mut Observation) {
    let (vanished, reported) = questions(memory, observation);
    let all = || vanished.iter().chain(&reported);
    let nodes: BTreeSet<&String> = all().map(|(_, _, node)| node).collect();
    let asked = nodes
        .into_iter()
        .map(async |node| (node.clone(), context.node_leases.read(&context.client, node).await));
    let readings: BTreeMap<String, Reading> = join_all(asked).await.into_iter().collect();
    let nodes = &context.caches.nodes;
    let confirms = |(_, uid, node): &Question| {
        let reading = readings.get(node).copied().unwrap_or(Reading::Unread);
        context
            .node_leases
            .confirms((key, uid), reachability(node, nodes), reading)
    };
    for question in vanished.iter().filter(|question| confirms(question)) {
        if let Some(member) = observation.members.get_mut(&question.0) {
            member.last_node_believed = true;
        }
    }
    for question in reported.iter().filter(|question| confirms(question)) {
        if let Some(pod) = observation
            .members
            .get_mut(&question.0)
            .and_then(|member| member.pod.as_mut())
        {
            pod.node_believed = true;
        }
    }
    let uids = all().map(|(_, uid, _)| uid.clone()).collect();
    context.node_leases.keep(key, &uids);
}

/// Two lists: pods in status that no longer exist, and pods with a container that was reported terminated by a report
/// that may be outdated.
fn questions(memory: &Memory, observation: &Observation) -> (Vec<Question>, Vec<Question>) {
    let (mut vanished, mut reported) = (Vec::new(), Vec::new());
    let lost = observation
        .members
        .iter()
        .filter(|(at, _)| observation.primary(at.shard).is_none());
    for (at, member) in lost {
        let last = memory
            .topology
            .get(&at.shard)
            .and_then(|before| before.pods.get(&at.node));
        let pod = member.pod.as_ref();
        if let Some(last) = last.filter(|last| pod.is_none_or(|pod| pod.uid != last.uid) && !last.terminated) {
            vanished.push((*at, last.uid.clone(), last.node.clone()));
        }
        let ended = pod.filter(|pod| pod.ended && !refuses(member));
        if let Some((pod, node)) = ended.and_then(|pod| Some((pod, pod.node.clone()?))) {
            reported.push((*at, pod.uid.clone(), node));
        }
    }
    (vanished, reported)
}

/// A refused connection proves that the pod's node is reachable, so its container status is not outdated.
fn refuses(member: &Member) -> bool {
    matches!(member.server, Server::Dead { .. } | Server::Nowhere) && member.ip().is_some()
}

fn reachability(name: &str, nodes: &Cache<Node>) -> Reachability {
    // While the watch of nodes fails, the cached nodes may be outdated.
    if !nodes.is_ready() || nodes.trouble(crate::runtime::cache::ClusterKind::Valkey).is_some() {
        return Reachability::Unseen;
    }
    let Some(node) = nodes.get_in("", name) else {
        return Reachability::Absent;
    };
    let mut taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    if taints.any(|taint| taint.key == OUT_OF_SERVICE) {
        return Reachability::OutOfService;
    }
    let mut conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    if conditions.any(|one| one.type_ == "Ready" && one.status == "True") {
        Reachability::Ready
    } else {
        Reachability::NotReady
    }
}

impl NodeLeases {
    /// Reads the Lease of a node, unless the last reading is still valid.
    async fn read(&self, client: &Client, node: &str) -> Reading {
        let known = locked(&self.readings).get(node).copied();
        if let Some((_, reading)) = known.filter(|(read, _)| read.elapsed() < FRESH) {
            return reading;
        }
        let api: Api<Lease> = Api::namespaced(client.clone(), NODE_LEASES);
        let reading = match timeout(PATIENCE, api.get_opt(node)).await {
            Ok(Ok(Some(lease))) => {
                let renewed = lease.spec.and_then(|spec| spec.renew_time);
                renewed.map_or(Reading::Unread, |time| Reading::Renewed(time.0))
            }
            Ok(Ok(None)) => Reading::Missing,
            Ok(Err(error)) => {
                tracing::warn!(node, %error, "failed to read the node's Lease: without it no pod of that node is confirmed \
                    terminated. Grant `get leases.coordination.k8s.io` in kube-node-lease to the operator's service account");
                Reading::Unread
            }
            Err(_) => Reading::Unread,
        };
        let mut readings = locked(&self.readings);
        readings.retain(|_, (read, _)| read.elapsed() < FRESH);
        readings.insert(node.to_owned(), (Instant::now(), reading));
        reading
    }

    /// Whether a node confirms that a missing pod has terminated.
    fn confirms(&self, (key, uid): (&ClusterKey, &str), reachability: Reachability, reading: Reading) -> bool {
        let renewed = match reading {
            Reading::Renewed(time) => {
                let mut missed = locked(&self.missed);
                let first = Missed {
                    first: time,
                    renewed: false,
                };
                let missed = missed.entry((key.clone(), uid.to_owned())).or_insert(first);
                missed.renewed |= time != missed.first;
                missed.renewed
            }
            Reading::Missing | Reading::Unread => false,
        };
        match reachability {
            Reachability::OutOfService => true,
            Reachability::NotReady => false,
            Reachability::Ready | Reachability::Unseen => renewed,
            Reachability::Absent => renewed || reading == Reading::Missing,
        }
    }

    /// Removes everything about a deleted cluster.
    pub fn forget(&self, key: &ClusterKey) {
        self.keep(key, &BTreeSet::new());
    }

    /// Removes all pods of a cluster except these.
    fn keep(&self, key: &ClusterKey, uids: &BTreeSet<String>) {
        locked(&self.missed).retain(|(cluster, uid), _| cluster != key || uids.contains(uid));
    }
}

fn locked<T>(held: &Mutex<T>) -> MutexGuard<'_, T> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_confirms_the_end_of_a_pod_only_after_it_was_heard_from_again_or_is_gone() {
        use Reading::{Missing, Renewed, Unread};
        let [early, late] = [1, 11].map(|second| Renewed(Timestamp::from_second(second).unwrap()));
        let table: [(Reachability, &[Reading], bool); 12] = [
            (Reachability::Ready, &[early], false),
            (Reachability::Ready, &[early, early], false),
            (Reachability::Ready, &[early, late], true),
            // The node's clock was set back.
            (Reachability::Ready, &[late, early], true),
            (Reachability::Ready, &[early, Unread, late], true),
            (Reachability::Ready, &[Missing, Unread], false),
            (Reachability::Unseen, &[early, late], true),
            (Reachability::Unseen, &[early, Missing], false),
            (Reachability::NotReady, &[early, late], false),
            (Reachability::Absent, &[early, early], false),
            (Reachability::Absent, &[early, Missing], true),
            (Reachability::OutOfService, &[Unread], true),
        ];
        let key = ClusterKey {
            kind: crate::runtime::cache::ClusterKind::Valkey,
            namespace: "default".to_owned(),
            name: "c".to_owned(),
        };
        for (reachability, readings, confirmed) in table {
            let leases = NodeLeases::default();
            let reported = readings
                .iter()
                .map(|reading| leases.confirms((&key, "1"), reachability, *reading));
            assert_eq!(reported.last(), Some(confirmed), "{reachability:?} {readings:?}");
        }
    }

    #[test]
    fn a_node_is_unseen_while_nodes_cannot_be_watched() {
        use kube::runtime::watcher::Event;
        let nodes: Cache<Node> = Cache::of_namespaces();
        let node = serde_json::json!({"metadata": {"name": "near", "resourceVersion": "1"},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        let node: Node = serde_json::from_value(node).unwrap();
        nodes.expect(&crate::runtime::cache::Source::default());
        assert_eq!(reachability("near", &nodes), Reachability::Unseen);
        for event in [Event::Init, Event::InitApply(node), Event::InitDone] {
            let _ = nodes.take(&crate::runtime::cache::Source::default(), event);
        }
        assert_eq!(reachability("near", &nodes), Reachability::Ready);
        assert_eq!(reachability("gone", &nodes), Reachability::Absent);
        nodes.fail(
            crate::runtime::cache::ClusterKind::Valkey,
            "connection refused".to_owned(),
        );
        assert_eq!(reachability("near", &nodes), Reachability::Unseen);
        assert_eq!(reachability("gone", &nodes), Reachability::Unseen);
    }

    #[test]
    fn a_pod_that_is_missed_later_waits_for_a_renewal_of_its_own() {
        let [first, second, third] =
            [1, 11, 21].map(|second| Reading::Renewed(Timestamp::from_second(second).unwrap()));
        let key = ClusterKey {
            kind: crate::runtime::cache::ClusterKind::Valkey,
            namespace: "default".to_owned(),
            name: "c".to_owned(),
        };
        let leases = NodeLeases::default();
        let confirms = |uid, reading| leases.confirms((&key, uid), Reachability::Ready, reading);
        assert!(!confirms("1", first));
        assert!(confirms("1", second));
        assert!(!confirms("2", second), "it may have been cut off since");
        assert!(confirms("2", third));
        leases.keep(&key, &BTreeSet::from(["2".to_owned()]));
        assert!(!confirms("1", third), "forgotten, it is missed anew");
        assert!(confirms("2", third));
    }
}

//! The operator's Prometheus metrics.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use candor_engine::model::MemberRef;
use prometheus_client::encoding::{EncodeLabelSet, text::encode};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::runtime::cache::ClusterKey;

/// Failover by the servers' own election.
const ELECTION: &str = "election";
/// All kinds of failovers.
const FAILOVERS: [&str; 4] = ["agreement", "vote", "takeover", ELECTION];

/// Labels of a cluster.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct OfCluster {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its kind: clusters of two kinds may have one name.
    pub resource: &'static str,
}

impl From<&ClusterKey> for OfCluster {
    fn from(key: &ClusterKey) -> Self {
        Self {
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            resource: key.kind.name(),
        }
    }
}

/// Labels of a cluster, and a kind.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct OfClusterAnd {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// A state, a kind of operation or a kind of failover.
    pub kind: String,
    /// The kind of the cluster.
    pub resource: &'static str,
}

impl OfClusterAnd {
    /// The labels of a cluster and a kind.
    pub fn new(key: &ClusterKey, kind: impl Into<String>) -> Self {
        Self {
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            kind: kind.into(),
            resource: key.kind.name(),
        }
    }
}

/// Labels of a cluster, and one of its problems.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct Trouble {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The condition that does not have its expected status.
    pub condition: String,
    /// The condition's reason.
    pub reason: String,
    /// `Error`, `Warning` or `Info`.
    pub severity: String,
    /// The kind of the cluster.
    pub resource: &'static str,
}

/// Label: how a reconcile ended.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct Ended {
    /// `written`, `unchanged`, `raced`, `failed` or `gone`.
    pub outcome: &'static str,
}

/// Label: the kind of an object.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct OfKind {
    /// `ValkeyCluster`, `Pod` and so on.
    pub kind: String,
}

struct Clock {
    state: String,
    /// All states that the cluster has been in.
    states: BTreeSet<String>,
    operation: Option<String>,
    troubles: Vec<Trouble>,
    counted: Instant,
}

/// All metrics.
pub struct Metrics {
    registry: Registry,
    reconciles: Family<Ended, Counter>,
    duration: Histogram,
    panics: Family<OfCluster, Counter>,
    undecodable: Family<OfKind, Gauge>,
    /// 1 while Ready is True.
    pub ready: Family<OfCluster, Gauge>,
    operations: Family<OfClusterAnd, Gauge>,
    state: Family<OfClusterAnd, Gauge>,
    troubles: Family<Trouble, Gauge>,
    leading: Gauge,
    states: Family<OfClusterAnd, Counter<f64, AtomicU64>>,
    /// What each cluster is doing, and since when.
    clocks: Mutex<HashMap<ClusterKey, Clock>>,
    /// Slots that moved to another owner.
    pub slots_moved: Family<OfCluster, Counter>,
    failovers: Family<OfClusterAnd, Counter>,
    /// Replicas that were ordered to fail over, and how.
    orders: Mutex<HashMap<(ClusterKey, MemberRef), &'static str>>,
    /// Status writes.
    pub status_writes: Family<OfCluster, Counter>,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("candor");
        // From one millisecond to beyond one second, the longest time that a reconcile should take.
        let buckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5];
        let metrics = Self {
            reconciles: Family::default(),
            duration: Histogram::new(buckets),
            panics: Family::default(),
            undecodable: Family::default(),
            ready: Family::default(),
            operations: Family::default(),
            state: Family::default(),
            troubles: Family::default(),
            leading: Gauge::default(),
            states: Family::default(),
            slots_moved: Family::default(),
            failovers: Family::default(),
            status_writes: Family::default(),
            clocks: Mutex::default(),
            orders: Mutex::default(),
            registry: Registry::default(),
        };
        registry.register("reconciles", "Reconciles by how they ended", metrics.reconciles.clone());
        registry.register(
            "reconcile_seconds",
            "How long a reconcile took",
            metrics.duration.clone(),
        );
        registry.register(
            "reconcile_panics",
            "Reconciles of a cluster that panicked: a defect of the operator",
            metrics.panics.clone(),
        );
        registry.register(
            "undecodable_objects",
            "Objects that cannot be decoded and are skipped",
            metrics.undecodable.clone(),
        );
        registry.register("cluster_ready", "1 while the cluster is Ready", metrics.ready.clone());
        registry.register(
            "cluster_operations",
            "Operations in progress by kind",
            metrics.operations.clone(),
        );
        registry.register(
            "cluster_state",
            "1 for the state that the cluster is in",
            metrics.state.clone(),
        );
        registry.register(
            "cluster_trouble",
            "1 for every condition of a cluster that is not as it should be",
            metrics.troubles.clone(),
        );
        registry.register(
            "leading",
            "1 while this operator is the one that acts",
            metrics.leading.clone(),
        );
        registry.register(
            "cluster_state_seconds",
            "Seconds spent in each state",
            metrics.states.clone(),
        );
        registry.register(
            "slots_moved",
            "Slots that changed their owner",
            metrics.slots_moved.clone(),
        );
        registry.register(
            "failovers",
            "Primaries that were replaced by a replica, by who decided it",
            metrics.failovers.clone(),
        );
        registry.register(
            "status_writes",
            "Writes of a cluster's status",
            metrics.status_writes.clone(),
        );
        Self { registry, ..metrics }
    }
}

impl Metrics {
    /// Counts a finished reconcile.
    pub fn reconciled(&self, outcome: &'static str, took: Duration) {
        self.reconciles.get_or_create(&Ended { outcome }).inc();
        self.duration.observe(took.as_secs_f64());
    }

    /// Counts a reconcile that panicked.
    pub fn panicked(&self, key: &ClusterKey) {
        self.panics.get_or_create(&key.into()).inc();
    }

    /// Updates how many objects of a kind one watch could not decode, from the previous number to the current one. A
    /// kind may have several watches.
    pub fn undecodable(&self, kind: &str, before: usize, now: usize) {
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        if before != now {
            let kind = OfKind { kind: kind.to_owned() };
            self.undecodable
                .get_or_create(&kind)
                .inc_by(number(now) - number(before));
        }
    }

    /// Sets the current state of a cluster. The time since the last update counts for the previous state.
    pub fn is_in(&self, key: &ClusterKey, state: &str, operation: Option<&str>) {
        let mut clocks = self.clocks();
        let clock = clocks.entry(key.clone()).or_insert_with(|| Clock {
            state: state.to_owned(),
            states: BTreeSet::new(),
            operation: None,
            troubles: Vec::new(),
            counted: Instant::now(),
        });
        self.count(key, clock);
        if clock.state != state {
            self.state.remove(&OfClusterAnd::new(key, &clock.state));
        }
        self.state.get_or_create(&OfClusterAnd::new(key, state)).set(1);
        state.clone_into(&mut clock.state);
        clock.states.insert(state.to_owned());
        if clock.operation.as_deref() != operation {
            if let Some(over) = clock.operation.take() {
                self.operations.remove(&OfClusterAnd::new(key, over));
            }
            if let Some(begun) = operation {
                self.operations.get_or_create(&OfClusterAnd::new(key, begun)).set(1);
            }
            clock.operation = operation.map(str::to_owned);
        }
    }

    /// Replaces the problems of a cluster.
    pub fn has_troubles(&self, key: &ClusterKey, now: Vec<Trouble>) {
        let mut clocks = self.clocks();
        let Some(clock) = clocks.get_mut(key) else { return };
        for over in clock.troubles.iter().filter(|one| !now.contains(one)) {
            self.troubles.remove(over);
        }
        for trouble in &now {
            self.troubles.get_or_create(trouble).set(1);
        }
        clock.troubles = now;
    }

    /// Records that a replica was ordered to fail over. That is not counted as a failover: the order may be repeated,
    /// or may have no effect.
    pub fn failover_sent(&self, key: &ClusterKey, to: MemberRef, by: &'static str) {
        self.orders().insert((key.clone(), to), by);
    }

    /// Counts a failover: a member replaced another one as the primary of its shard, by the operator's order or by the
    /// servers' own election.
    pub fn took_over(&self, key: &ClusterKey, member: MemberRef) {
        let ordered = self.orders().remove(&(key.clone(), member));
        let kind = OfClusterAnd::new(key, ordered.unwrap_or(ELECTION));
        self.failovers.get_or_create(&kind).inc();
    }

    /// Sets whether this operator is the leader.
    pub fn leads(&self, leading: bool) {
        self.leading.set(i64::from(leading));
    }

    fn count(&self, key: &ClusterKey, clock: &mut Clock) {
        let spent = self.states.get_or_create(&OfClusterAnd::new(key, &clock.state));
        spent.inc_by(clock.counted.elapsed().as_secs_f64());
        clock.counted = Instant::now();
    }

    /// Removes all metrics of a deleted cluster.
    pub fn forget(&self, key: &ClusterKey) {
        self.ready.remove(&key.into());
        self.panics.remove(&key.into());
        self.slots_moved.remove(&key.into());
        self.status_writes.remove(&key.into());
        for kind in FAILOVERS {
            self.failovers.remove(&OfClusterAnd::new(key, kind));
        }
        self.orders().retain(|(cluster, _), _| cluster != key);
        let Some(clock) = self.clocks().remove(key) else { return };
        self.state.remove(&OfClusterAnd::new(key, &clock.state));
        for state in clock.states.iter().chain([&clock.state]) {
            self.states.remove(&OfClusterAnd::new(key, state));
        }
        for trouble in &clock.troubles {
            self.troubles.remove(trouble);
        }
        if let Some(operation) = clock.operation {
            self.operations.remove(&OfClusterAnd::new(key, operation));
        }
    }

    fn orders(&self) -> std::sync::MutexGuard<'_, HashMap<(ClusterKey, MemberRef), &'static str>> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn clocks(&self) -> std::sync::MutexGuard<'_, HashMap<ClusterKey, Clock>> {
        self.clocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All metrics in the text format of Prometheus.
    pub fn text(&self) -> String {
        for (key, clock) in self.clocks().iter_mut() {
            self.count(key, clock);
        }
        let mut text = String::new();
        // Writing into a String cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> ClusterKey {
        ClusterKey {
            kind: crate::runtime::cache::ClusterKind::Valkey,
            namespace: "shop".to_owned(),
            name: "c".to_owned(),
        }
    }

    fn trouble(condition: &str) -> Trouble {
        Trouble {
            namespace: "shop".to_owned(),
            name: "c".to_owned(),
            condition: condition.to_owned(),
            reason: "Why".to_owned(),
            severity: "Error".to_owned(),
            resource: "ValkeyCluster",
        }
    }

    fn says(metrics: &Metrics, begin: &str) -> Vec<String> {
        let text = metrics.text();
        text.lines()
            .filter(|line| line.starts_with(begin))
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn a_cluster_is_in_one_state_and_has_only_the_troubles_of_now() {
        let metrics = Metrics::default();
        metrics.is_in(&key(), "Reconciling", None);
        metrics.has_troubles(&key(), vec![trouble("Degraded"), trouble("Ready")]);
        metrics.is_in(&key(), "Ready", None);
        metrics.has_troubles(&key(), vec![trouble("DataLost")]);
        assert_eq!(
            says(&metrics, "candor_cluster_state{"),
            [r#"candor_cluster_state{namespace="shop",name="c",kind="Ready",resource="ValkeyCluster"} 1"#]
        );
        assert_eq!(
            says(&metrics, "candor_cluster_trouble{"),
            [
                r#"candor_cluster_trouble{namespace="shop",name="c",condition="DataLost",reason="Why",severity="Error",resource="ValkeyCluster"} 1"#
            ]
        );
        metrics.forget(&key());
        assert!(says(&metrics, "candor_cluster_state{").is_empty());
        assert!(says(&metrics, "candor_cluster_trouble{").is_empty());
    }

    #[test]
    fn a_failover_counts_when_it_is_done_and_a_cluster_that_is_gone_leaves_nothing_behind() {
        let metrics = Metrics::default();
        let member = |node| MemberRef {
            shard: candor_engine::model::ShardIndex(0),
            node,
        };
        metrics.is_in(&key(), "Ready", Some("Roll"));
        metrics.slots_moved.get_or_create(&(&key()).into()).inc_by(3);
        for _ in 0..3 {
            metrics.failover_sent(&key(), member(1), "agreement");
        }
        assert!(
            says(&metrics, "candor_failovers_total{").is_empty(),
            "nothing is done yet"
        );
        metrics.took_over(&key(), member(1));
        metrics.took_over(&key(), member(0));
        let mut counted = says(&metrics, "candor_failovers_total{");
        counted.sort();
        assert_eq!(
            counted,
            [
                r#"candor_failovers_total{namespace="shop",name="c",kind="agreement",resource="ValkeyCluster"} 1"#,
                r#"candor_failovers_total{namespace="shop",name="c",kind="election",resource="ValkeyCluster"} 1"#,
            ]
        );
        metrics.forget(&key());
        let text = metrics.text();
        assert!(!text.contains("shop"), "{text}");
    }

    #[test]
    fn who_leads_says_so() {
        let metrics = Metrics::default();
        assert_eq!(says(&metrics, "candor_leading"), ["candor_leading 0"]);
        metrics.leads(true);
        assert_eq!(says(&metrics, "candor_leading"), ["candor_leading 1"]);
    }
}

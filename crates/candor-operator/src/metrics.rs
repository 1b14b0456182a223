//! What the operator counts, for Prometheus.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use prometheus_client::encoding::{EncodeLabelSet, text::encode};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::cache::ClusterKey;

/// Which cluster.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct OfCluster {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl From<&ClusterKey> for OfCluster {
    fn from(key: &ClusterKey) -> Self {
        Self {
            namespace: key.namespace.clone(),
            name: key.name.clone(),
        }
    }
}

/// Which cluster, and one word about it.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct OfClusterAnd {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The word: a state, a kind of operation, a kind of failover.
    pub kind: String,
}

impl OfClusterAnd {
    /// A cluster and a word.
    pub fn new(key: &ClusterKey, kind: impl Into<String>) -> Self {
        Self {
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            kind: kind.into(),
        }
    }
}

/// How a reconcile ended.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct Ended {
    /// `written`, `unchanged`, `failed`.
    pub outcome: &'static str,
}

struct Clock {
    state: String,
    operation: Option<String>,
    counted: Instant,
}

/// Everything that is counted.
pub struct Metrics {
    registry: Registry,
    reconciles: Family<Ended, Counter>,
    duration: Histogram,
    /// 1 while Ready is True.
    pub ready: Family<OfCluster, Gauge>,
    operations: Family<OfClusterAnd, Gauge>,
    states: Family<OfClusterAnd, Counter<f64, AtomicU64>>,
    /// What each cluster is doing, and since when.
    clocks: Mutex<HashMap<ClusterKey, Clock>>,
    /// Slots that changed their owner.
    pub slots_moved: Family<OfCluster, Counter>,
    /// Failovers asked for, by kind.
    pub failovers: Family<OfClusterAnd, Counter>,
    /// Status writes.
    pub status_writes: Family<OfCluster, Counter>,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("candor");
        // From a millisecond to the second that a reconcile may last.
        let buckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5];
        let metrics = Self {
            reconciles: Family::default(),
            duration: Histogram::new(buckets),
            ready: Family::default(),
            operations: Family::default(),
            states: Family::default(),
            slots_moved: Family::default(),
            failovers: Family::default(),
            status_writes: Family::default(),
            clocks: Mutex::default(),
            registry: Registry::default(),
        };
        registry.register("reconciles", "Reconciles by how they ended", metrics.reconciles.clone());
        registry.register(
            "reconcile_seconds",
            "How long a reconcile took",
            metrics.duration.clone(),
        );
        registry.register("cluster_ready", "1 while the cluster is Ready", metrics.ready.clone());
        registry.register(
            "cluster_operations",
            "Operations in progress by kind",
            metrics.operations.clone(),
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
        registry.register("failovers", "Failovers asked for by kind", metrics.failovers.clone());
        registry.register(
            "status_writes",
            "Writes of a cluster's status",
            metrics.status_writes.clone(),
        );
        Self { registry, ..metrics }
    }
}

impl Metrics {
    /// A reconcile ended.
    pub fn reconciled(&self, outcome: &'static str, took: Duration) {
        self.reconciles.get_or_create(&Ended { outcome }).inc();
        self.duration.observe(took.as_secs_f64());
    }

    /// What a cluster is now: the time since the last word counts for what it was before.
    pub fn is_in(&self, key: &ClusterKey, state: &str, operation: Option<&str>) {
        let mut clocks = self.clocks();
        let clock = clocks.entry(key.clone()).or_insert_with(|| Clock {
            state: state.to_owned(),
            operation: None,
            counted: Instant::now(),
        });
        self.count(key, clock);
        state.clone_into(&mut clock.state);
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

    fn count(&self, key: &ClusterKey, clock: &mut Clock) {
        let spent = self.states.get_or_create(&OfClusterAnd::new(key, &clock.state));
        spent.inc_by(clock.counted.elapsed().as_secs_f64());
        clock.counted = Instant::now();
    }

    /// A cluster is gone: what was said of it goes too.
    pub fn forget(&self, key: &ClusterKey) {
        self.ready.remove(&key.into());
        if let Some(operation) = self.clocks().remove(key).and_then(|clock| clock.operation) {
            self.operations.remove(&OfClusterAnd::new(key, operation));
        }
    }

    fn clocks(&self) -> std::sync::MutexGuard<'_, HashMap<ClusterKey, Clock>> {
        self.clocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All of it, as Prometheus reads it.
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

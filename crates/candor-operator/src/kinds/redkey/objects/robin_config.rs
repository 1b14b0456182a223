//! `application-configmap.yml`: the desired state that a restarted Robin starts from. Its keys are those of users'
//! existing templates.

use candor_api::RedkeyClusterSpec;
use candor_api::redkey::spec::{RobinCluster, RobinMetrics, RobinReconciler};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde::{Deserialize, Serialize};

/// The key of the `ConfigMap`.
pub const KEY: &str = "application-configmap.yml";

/// The whole file. Unknown keys are ignored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Configuration {
    /// Labels of every metric.
    pub metadata: Metadata,
    /// The cluster.
    pub redis: Redis,
}

/// Labels of every metric.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metadata {
    /// The namespace of the cluster.
    pub namespace: String,
}

/// The cluster and how Robin manages it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redis {
    /// Always false, because the servers form a cluster.
    pub standalone: bool,
    /// Its reconcile loop.
    pub reconciler: Reconciler,
    /// The desired state.
    pub cluster: Cluster,
    /// What Robin measures.
    pub metrics: Metrics,
}

/// Robin's reconcile loop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reconciler {
    /// Seconds between two reconciles of an idle cluster.
    pub interval_seconds: i32,
    /// Seconds after which a finished operation is removed.
    pub operation_cleanup_interval_seconds: i32,
}

/// The desired state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cluster {
    /// Namespace of the cluster.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// How many primaries.
    pub primaries: i32,
    /// How many replicas each of them has.
    pub replicas_per_primary: i32,
    /// The status to start from.
    pub status: String,
    /// Whether data is stored in memory only.
    pub ephemeral: bool,
    /// Seconds between two full checks.
    pub health_probe_interval_seconds: i32,
    /// Seconds that a fault may last before it counts as an error.
    pub healing_time_seconds: i32,
    /// Maximum number of connection attempts.
    pub max_retries: i32,
    /// The pause between two attempts, such as `10s`.
    pub back_off: String,
}

/// What Robin measures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metrics {
    /// Seconds between two measurements.
    pub interval_seconds: i32,
    /// Fields of INFO that become metrics.
    #[serde(default)]
    pub redis_info_keys: Vec<String>,
}

/// Why the file cannot be parsed.
#[derive(Debug, thiserror::Error)]
#[error("reading {KEY}: it is not a configuration of Robin; the operator writes it anew when its ConfigMap is deleted")]
pub struct ConfigurationError(#[source] serde_norway::Error);

impl Configuration {
    /// The configuration for a cluster with this status.
    pub fn of(namespace: &str, name: &str, spec: &RedkeyClusterSpec, status: &str) -> Self {
        let written = spec
            .robin
            .as_ref()
            .and_then(|robin| robin.config.clone())
            .unwrap_or_default();
        let reconciler: RobinReconciler = written.reconciler.unwrap_or_default();
        let cluster: RobinCluster = written.cluster.unwrap_or_default();
        let metrics: RobinMetrics = written.metrics.unwrap_or_default();
        Self {
            metadata: Metadata {
                namespace: namespace.to_owned(),
            },
            redis: Redis {
                standalone: false,
                reconciler: Reconciler {
                    interval_seconds: reconciler.interval_seconds,
                    operation_cleanup_interval_seconds: reconciler.operation_clean_up_interval_seconds,
                },
                cluster: Cluster {
                    namespace: namespace.to_owned(),
                    name: name.to_owned(),
                    primaries: spec.primaries,
                    replicas_per_primary: spec.replicas_per_primary,
                    status: status.to_owned(),
                    ephemeral: spec.ephemeral,
                    health_probe_interval_seconds: cluster.health_probe_period_seconds,
                    healing_time_seconds: cluster.healing_time_seconds,
                    max_retries: cluster.max_retries,
                    back_off: duration(&cluster.back_off),
                },
                metrics: Metrics {
                    interval_seconds: metrics.interval_seconds,
                    redis_info_keys: metrics.redis_info_keys,
                },
            },
        }
    }

    /// Writes the file as YAML.
    pub fn yaml(&self) -> Result<String, serde_norway::Error> {
        serde_norway::to_string(self)
    }

    /// Parses the file.
    pub fn parse(text: &str) -> Result<Self, ConfigurationError> {
        serde_norway::from_str(text).map_err(ConfigurationError)
    }
}

/// Formats a duration; a plain number is in seconds.
fn duration(written: &IntOrString) -> String {
    match written {
        IntOrString::Int(seconds) => format!("{seconds}s"),
        IntOrString::String(text) if text.ends_with(|c: char| c.is_ascii_digit()) => format!("{text}s"),
        IntOrString::String(text) => text.clone(),
    }
}

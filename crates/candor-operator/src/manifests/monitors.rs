//! Scrape targets, as objects of the Prometheus operator.

use candor_api::redkey;
use serde_json::{Value, json};

use super::operator::{METRICS, labels, selector};
use super::{NAME, Options};
use crate::objects::labels::CLUSTER;

/// The name of Robin's port for Prometheus.
const ROBIN_METRICS: &str = "prometheus";

/// Scrapes the operator.
pub(super) fn of_operator(options: &Options) -> Value {
    json!({
        "apiVersion": "monitoring.coreos.com/v1", "kind": "ServiceMonitor",
        "metadata": {"name": NAME, "namespace": options.namespace, "labels": labels()},
        "spec": {
            "selector": {"matchLabels": selector()},
            // The metrics' labels `namespace` and `name` are those of a cluster, not of the operator.
            "endpoints": [{"port": METRICS, "interval": "15s", "honorLabels": true}],
        },
    })
}

/// Scrapes the exporter beside every server. The names of cluster, shard and member become labels of every metric.
pub(super) fn of_members(options: &Options) -> Value {
    let copied = [
        ("valkey_io_cluster", "valkey_cluster"),
        ("valkey_io_shard_index", "shard"),
        ("valkey_io_node_index", "node"),
    ];
    let relabel: Vec<Value> = copied
        .iter()
        .map(|(label, target)| {
            json!({"sourceLabels": [format!("__meta_kubernetes_pod_label_{label}")], "targetLabel": target})
        })
        .collect();
    json!({
        "apiVersion": "monitoring.coreos.com/v1", "kind": "PodMonitor",
        "metadata": {"name": "candor-members", "namespace": options.namespace, "labels": labels()},
        "spec": {
            "namespaceSelector": namespaces(options),
            "selector": {"matchExpressions": [{"key": CLUSTER, "operator": "Exists"}]},
            "podMetricsEndpoints": [{"port": METRICS, "interval": "15s", "relabelings": relabel}],
        },
    })
}

/// Scrapes the agent of every `RedkeyCluster`, which reports the metrics of its servers.
pub(super) fn of_robins(options: &Options) -> Value {
    json!({
        "apiVersion": "monitoring.coreos.com/v1", "kind": "PodMonitor",
        "metadata": {"name": "candor-robins", "namespace": options.namespace, "labels": labels()},
        "spec": {
            "namespaceSelector": namespaces(options),
            "selector": {"matchLabels": {redkey::COMPONENT_LABEL: redkey::ROBIN}},
            "podMetricsEndpoints": [{"port": ROBIN_METRICS, "interval": "15s", "honorLabels": true}],
        },
    })
}

/// Where pods are scraped.
fn namespaces(options: &Options) -> Value {
    if options.watch_namespaces.is_empty() {
        json!({"any": true})
    } else {
        json!({"matchNames": options.watch_namespaces})
    }
}

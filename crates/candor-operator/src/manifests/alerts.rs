//! Prometheus alerts. Each alert has a runbook (`docs/runbooks`) and a test (`deploy/monitoring/alerts.test.yaml`, run
//! by `make monitoring`).

use serde_json::{Value, json};

use super::{NAME, NAMESPACE, operator};

/// Severity of an alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// Pages: data is unavailable, lost, or at risk because nothing is healed.
    Critical,
    /// A ticket: clients are served, and somebody should look today.
    Warning,
}

impl Urgency {
    fn word(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::Warning => "warning",
        }
    }
}

/// One alert.
#[derive(Clone, Copy, Debug)]
pub struct Alert {
    /// Name of the alert and of its runbook.
    pub name: &'static str,
    /// Prometheus expression that is true while the problem exists.
    pub expr: &'static str,
    /// How long the expression must be true before the alert fires.
    pub lasting: &'static str,
    /// Severity.
    pub urgency: Urgency,
    /// Summary in one sentence, with the labels of the affected object.
    pub summary: &'static str,
}

const fn alert(
    name: &'static str,
    urgency: Urgency,
    lasting: &'static str,
    expr: &'static str,
    summary: &'static str,
) -> Alert {
    Alert {
        name,
        expr,
        lasting,
        urgency,
        summary,
    }
}

use Urgency::{Critical, Warning};

/// Alerts on the operator's metrics.
pub const OF_OPERATOR: &[Alert] = &[
    alert(
        "CandorNobodyLeads",
        Critical,
        "2m",
        "absent(candor_leading == 1)",
        "No operator is the leader: nothing is healed or scaled, and no status is updated.",
    ),
    alert(
        "CandorClusterFailed",
        // A typo in spec.users is enough for this state; slots that are down page by CandorClusterDegraded.
        Warning,
        "1m",
        "candor_cluster_state{kind=\"Failed\"} == 1",
        "Cluster {{ $labels.namespace }}/{{ $labels.name }} needs a user: the operator cannot continue by itself.",
    ),
    alert(
        "CandorDataLost",
        Critical,
        "0m",
        "candor_cluster_trouble{condition=\"DataLost\"} == 1",
        "Cluster {{ $labels.namespace }}/{{ $labels.name }} lost the data of a shard.",
    ),
    alert(
        "CandorClusterDegraded",
        Critical,
        "2m",
        "candor_cluster_trouble{condition=\"Degraded\",reason=~\"PrimaryLost|QuorumLost|SlotsUncovered|DataLost\"} == 1",
        "Slots of cluster {{ $labels.namespace }}/{{ $labels.name }} are down: {{ $labels.reason }}.",
    ),
    alert(
        "RedkeyClusterError",
        Warning,
        "5m",
        "candor_cluster_state{kind=\"Error\"} == 1",
        "RedkeyCluster {{ $labels.namespace }}/{{ $labels.name }} has had the status Error for 5 minutes.",
    ),
    alert(
        "RedkeyClusterUnknown",
        // Robin heals by itself meanwhile; slots that are down page by ValkeyClusterDown.
        Warning,
        "2m",
        // Its status stays as it was while its Ready condition is Unknown.
        "candor_cluster_ready == 0 and on (namespace, name, resource) candor_cluster_state{kind=\"Ready\"} == 1",
        "Whether RedkeyCluster {{ $labels.namespace }}/{{ $labels.name }} is ready is not known: its pods cannot be listed.",
    ),
    alert(
        "RedkeyRobinNotReady",
        Warning,
        "5m",
        "candor_cluster_trouble{condition=\"RobinReady\"} == 1",
        "Robin of RedkeyCluster {{ $labels.namespace }}/{{ $labels.name }} has not been ready for 5 minutes: {{ $labels.reason }}.",
    ),
    alert(
        "CandorClusterNotReady",
        Warning,
        "15m",
        "candor_cluster_ready == 0",
        "Cluster {{ $labels.namespace }}/{{ $labels.name }} has not been Ready for 15 minutes.",
    ),
    alert(
        "CandorOperationTakesLong",
        Warning,
        "1h",
        "candor_cluster_operations == 1",
        "{{ $labels.kind }} of cluster {{ $labels.namespace }}/{{ $labels.name }} has been running for an hour.",
    ),
    alert(
        "CandorReconcilesFail",
        Warning,
        "10m",
        "sum(rate(candor_reconciles_total{outcome=\"failed\"}[5m])) / sum(rate(candor_reconciles_total[5m])) > 0.1",
        "More than a tenth of the operator's reconciles fail.",
    ),
    alert(
        "CandorReconcilesSlow",
        Warning,
        "10m",
        "histogram_quantile(0.99, sum by (le) (rate(candor_reconcile_seconds_bucket[5m]))) > 1",
        "One reconcile in a hundred takes longer than a second: faults are noticed late.",
    ),
    alert(
        "CandorReconcilePanics",
        Warning,
        "0m",
        "increase(candor_reconcile_panics_total[10m]) > 0",
        "Reconciles of cluster {{ $labels.namespace }}/{{ $labels.name }} panic: its status may be out of date.",
    ),
    alert(
        "CandorUndecodableObjects",
        Warning,
        "5m",
        "candor_undecodable_objects > 0",
        "The operator skips {{ $value }} objects of kind {{ $labels.kind }} that it cannot decode.",
    ),
];

/// Alerts on the servers' metrics.
pub const OF_MEMBERS: &[Alert] = &[
    alert(
        "ValkeyMemberDown",
        Warning,
        "2m",
        "redis_up == 0",
        "The server in pod {{ $labels.namespace }}/{{ $labels.pod }} does not answer its exporter.",
    ),
    alert(
        "ValkeyClusterDown",
        Critical,
        "1m",
        // Of a RedkeyCluster, Robin says what its servers report.
        "redis_cluster_state == 0 or max by (namespace, pod) (redis_cluster_metrics{cluster_state=\"fail\"}) > 0",
        "Servers report that their cluster is down, in pod {{ $labels.namespace }}/{{ $labels.pod }}.",
    ),
    alert(
        "ValkeyReplicaLinkDown",
        Warning,
        "2m",
        "redis_master_link_up == 0",
        "The replica in pod {{ $labels.namespace }}/{{ $labels.pod }} has no link to its primary.",
    ),
    alert(
        "ValkeyMemoryNearlyFull",
        Warning,
        "5m",
        "redis_memory_used_bytes / (redis_memory_max_bytes > 0) > 0.9",
        "The server in pod {{ $labels.namespace }}/{{ $labels.pod }} uses {{ $value | humanizePercentage }} of its memory.",
    ),
    alert(
        "ValkeyConnectionsRefused",
        Warning,
        "0m",
        "increase(redis_rejected_connections_total[5m]) > 0",
        "The server in pod {{ $labels.namespace }}/{{ $labels.pod }} rejects connections: maxclients is reached.",
    ),
    alert(
        "ValkeyPersistenceFails",
        Critical,
        "1m",
        "redis_aof_last_write_status == 0 or redis_rdb_last_bgsave_status == 0",
        "The server in pod {{ $labels.namespace }}/{{ $labels.pod }} cannot write its data to its volume.",
    ),
];

/// The rules in the format of Prometheus.
pub fn rules() -> Value {
    let group = |name: &str, alerts: &[Alert]| {
        let rules: Vec<Value> = alerts.iter().map(rule).collect();
        json!({"name": name, "rules": rules})
    };
    json!({"groups": [group("candor-operator", OF_OPERATOR), group("candor-members", OF_MEMBERS)]})
}

/// The same rules as a `PrometheusRule` for the Prometheus operator.
pub fn prometheus_rule() -> Value {
    json!({
        "apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule",
        "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": operator::labels()},
        "spec": rules(),
    })
}

fn rule(alert: &Alert) -> Value {
    json!({
        "alert": alert.name,
        "expr": alert.expr,
        "for": alert.lasting,
        "labels": {"severity": alert.urgency.word()},
        "annotations": {"summary": alert.summary, "runbook": format!("docs/runbooks/{}.md", alert.name)},
    })
}

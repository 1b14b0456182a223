//! A Grafana dashboard: all clusters by the operator's metrics, then the servers of the selected cluster. A test in
//! `candor` verifies that the metrics exist.

use serde_json::{Value, json};

struct Panel {
    title: &'static str,
    /// Grafana's panel type.
    kind: &'static str,
    unit: &'static str,
    /// Width in columns; the dashboard has 24.
    width: u64,
    /// Expressions, each with its legend.
    shows: &'static [(&'static str, &'static str)],
}

const fn panel(
    title: &'static str,
    kind: &'static str,
    unit: &'static str,
    width: u64,
    shows: &'static [(&'static str, &'static str)],
) -> Panel {
    Panel {
        title,
        kind,
        unit,
        width,
        shows,
    }
}

/// Panels about all clusters.
const CLUSTERS: &[Panel] = &[
    panel(
        "Clusters",
        "stat",
        "short",
        4,
        &[("count(candor_cluster_ready)", "clusters")],
    ),
    panel("Ready", "stat", "short", 4, &[("sum(candor_cluster_ready)", "ready")]),
    panel(
        "Leading operators",
        "stat",
        "short",
        4,
        &[("sum(candor_leading)", "leading")],
    ),
    panel(
        "What is wrong now",
        "table",
        "short",
        12,
        &[(
            "candor_cluster_trouble == 1",
            "{{namespace}}/{{name}} {{condition}} {{reason}}",
        )],
    ),
    panel(
        "State",
        "state-timeline",
        "short",
        24,
        &[(
            "candor_cluster_state{namespace=~\"$namespace\",name=~\"$cluster\"}",
            "{{namespace}}/{{name}} {{kind}}",
        )],
    ),
    panel(
        "Operations",
        "state-timeline",
        "short",
        12,
        &[("candor_cluster_operations", "{{namespace}}/{{name}} {{kind}}")],
    ),
    panel(
        "Slots moved a second",
        "timeseries",
        "short",
        6,
        &[(
            "sum by (namespace, name, resource) (rate(candor_slots_moved_total[1m]))",
            "{{namespace}}/{{name}}",
        )],
    ),
    panel(
        "Failovers in an hour",
        "timeseries",
        "short",
        6,
        &[(
            "sum by (namespace, name, resource, kind) (increase(candor_failovers_total[1h]))",
            "{{namespace}}/{{name}} {{kind}}",
        )],
    ),
];

/// Panels about the operator.
const OPERATOR: &[Panel] = &[
    panel(
        "Reconciles a second by outcome",
        "timeseries",
        "ops",
        8,
        &[("sum by (outcome) (rate(candor_reconciles_total[1m]))", "{{outcome}}")],
    ),
    panel(
        "Duration of a reconcile",
        "timeseries",
        "s",
        8,
        &[
            (
                "histogram_quantile(0.5, sum by (le) (rate(candor_reconcile_seconds_bucket[5m])))",
                "half",
            ),
            (
                "histogram_quantile(0.99, sum by (le) (rate(candor_reconcile_seconds_bucket[5m])))",
                "99 of 100",
            ),
        ],
    ),
    panel(
        "Status writes a second",
        "timeseries",
        "ops",
        8,
        &[("sum(rate(candor_status_writes_total[1m]))", "writes")],
    ),
];

/// Panels about the servers of the selected cluster.
const MEMBERS: &[Panel] = &[
    panel(
        "Commands a second",
        "timeseries",
        "ops",
        8,
        &[("sum by (pod) (rate(redis_commands_processed_total{OF}[1m]))", "{{pod}}")],
    ),
    panel(
        "Memory",
        "timeseries",
        "bytes",
        8,
        &[
            ("redis_memory_used_bytes{OF}", "{{pod}}"),
            ("max(redis_memory_max_bytes{OF} > 0)", "limit"),
        ],
    ),
    panel(
        "Keys",
        "timeseries",
        "short",
        8,
        &[("sum by (pod) (redis_db_keys{OF})", "{{pod}}")],
    ),
    panel(
        "Clients",
        "timeseries",
        "short",
        8,
        &[
            ("redis_connected_clients{OF}", "{{pod}}"),
            ("redis_blocked_clients{OF}", "{{pod}} blocked"),
        ],
    ),
    panel(
        "Bytes behind the primary",
        "timeseries",
        "bytes",
        8,
        &[(
            "max by (namespace, valkey_cluster, shard) (redis_master_repl_offset{OF}) \
             - on (namespace, valkey_cluster, shard) group_right () redis_slave_repl_offset{OF}",
            "{{pod}}",
        )],
    ),
    panel(
        "Link to the primary",
        "state-timeline",
        "short",
        8,
        &[("redis_master_link_up{OF}", "{{pod}}")],
    ),
    panel(
        "Hits",
        "timeseries",
        "percentunit",
        8,
        &[(
            "sum(rate(redis_keyspace_hits_total{OF}[5m])) / (sum(rate(redis_keyspace_hits_total{OF}[5m])) + \
             sum(rate(redis_keyspace_misses_total{OF}[5m])))",
            "hits",
        )],
    ),
    panel(
        "Evicted and expired keys a second",
        "timeseries",
        "ops",
        8,
        &[
            ("sum(rate(redis_evicted_keys_total{OF}[5m]))", "evicted"),
            ("sum(rate(redis_expired_keys_total{OF}[5m]))", "expired"),
        ],
    ),
    panel(
        "Slowest commands",
        "timeseries",
        "s",
        8,
        &[(
            "topk(5, sum by (cmd) (rate(redis_commands_duration_seconds_total{OF}[5m])) / \
             sum by (cmd) (rate(redis_commands_total{OF}[5m])))",
            "{{cmd}}",
        )],
    ),
    panel(
        "Network",
        "timeseries",
        "Bps",
        8,
        &[
            ("sum(rate(redis_net_input_bytes_total{OF}[1m]))", "in"),
            ("sum(rate(redis_net_output_bytes_total{OF}[1m]))", "out"),
        ],
    ),
    panel(
        "Servers that report the cluster as up",
        "timeseries",
        "short",
        8,
        &[("sum(redis_cluster_state{OF})", "up"), ("count(redis_up{OF})", "all")],
    ),
    panel(
        "Slow log entries",
        "timeseries",
        "short",
        8,
        &[("redis_slowlog_length{OF}", "{{pod}}")],
    ),
];

/// Panels about the servers of the selected `RedkeyCluster`, as Robin reports them.
const REDKEY: &[Panel] = &[
    panel(
        "Commands a second",
        "timeseries",
        "ops",
        8,
        &[(
            "sum by (instanceId) (rate(redis_total_commands_processed{ROBIN}[5m]))",
            "{{instanceId}}",
        )],
    ),
    panel(
        "Memory",
        "timeseries",
        "bytes",
        8,
        &[("redis_used_memory{ROBIN}", "{{instanceId}}")],
    ),
    panel(
        "Keys",
        "timeseries",
        "short",
        8,
        &[("sum by (instanceId) (redis_keyspace_keys{ROBIN})", "{{instanceId}}")],
    ),
    panel(
        "Clients",
        "timeseries",
        "short",
        8,
        &[("redis_connected_clients{ROBIN}", "{{instanceId}}")],
    ),
    panel(
        "Errors and warnings of Robin's checks",
        "timeseries",
        "short",
        8,
        &[
            ("redis_cluster_check_errors{ROBIN}", "{{namespace}}/{{cluster}} errors"),
            (
                "redis_cluster_check_warnings{ROBIN}",
                "{{namespace}}/{{cluster}} warnings",
            ),
        ],
    ),
    panel(
        "Robin is not ready",
        "state-timeline",
        "short",
        8,
        &[(
            "candor_cluster_trouble{condition=\"RobinReady\",namespace=~\"$namespace\",name=~\"$cluster\"}",
            "{{namespace}}/{{name}} {{reason}}",
        )],
    ),
];

/// Label selector of the selected Robins: replaces `{ROBIN}` in an expression.
const ROBIN: &str = "{namespace=~\"$namespace\",cluster=~\"$cluster\"}";
/// Label selector of the selected servers: replaces `{OF}` in an expression.
const OF: &str = "{namespace=~\"$namespace\",valkey_cluster=~\"$cluster\"}";
const HEIGHT: u64 = 7;
const WIDTH: u64 = 24;

/// The dashboard.
pub fn dashboard() -> Value {
    let mut panels = Vec::new();
    let mut y = 0;
    for (title, row) in [
        ("Clusters", CLUSTERS),
        ("Operator", OPERATOR),
        ("Servers of $cluster", MEMBERS),
        ("Servers of RedkeyCluster $cluster", REDKEY),
    ] {
        panels.push(json!({
            "id": panels.len() + 1, "type": "row", "title": title, "collapsed": false, "panels": [],
            "gridPos": {"x": 0, "y": y, "w": WIDTH, "h": 1},
        }));
        y += 1;
        let mut x = 0;
        for one in row {
            if x + one.width > WIDTH {
                (x, y) = (0, y + HEIGHT);
            }
            panels.push(draw(one, panels.len() + 1, x, y));
            x += one.width;
        }
        y += HEIGHT;
    }
    json!({
        "uid": "candor", "title": "Candor", "tags": ["candor", "valkey"], "editable": true, "schemaVersion": 39,
        "refresh": "10s", "time": {"from": "now-1h", "to": "now"}, "timezone": "browser",
        "templating": {"list": [
            {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Prometheus"},
            variable("namespace", "label_values(candor_cluster_ready, namespace)"),
            variable("cluster", "label_values(candor_cluster_ready{namespace=~\"$namespace\"}, name)"),
        ]},
        "panels": panels,
    })
}

fn variable(name: &str, query: &str) -> Value {
    json!({
        "name": name, "type": "query", "label": name, "query": query, "refresh": 2, "multi": true, "includeAll": true,
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "current": {"text": "All", "value": "$__all"},
    })
}

fn draw(panel: &Panel, id: usize, x: u64, y: u64) -> Value {
    let source = json!({"type": "prometheus", "uid": "${datasource}"});
    let targets: Vec<Value> = panel
        .shows
        .iter()
        .zip('A'..='Z')
        .map(|((expr, legend), letter)| {
            json!({
                "refId": letter.to_string(), "expr": expr.replace("{OF}", OF).replace("{ROBIN}", ROBIN), "legendFormat": legend,
                "datasource": source, "instant": panel.kind == "table" || panel.kind == "stat",
                "format": if panel.kind == "table" { "table" } else { "time_series" },
            })
        })
        .collect();
    json!({
        "id": id, "title": panel.title, "type": panel.kind, "datasource": source, "targets": targets,
        "gridPos": {"x": x, "y": y, "w": panel.width, "h": HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": []},
    })
}

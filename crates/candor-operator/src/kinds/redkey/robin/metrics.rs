//! `GET /metrics`: Prometheus text with the metric names that existing dashboards use.
//!
//! | metric | labels beside `cluster` and `namespace` | value |
//! |---|---|---|
//! | `redis_<INFO key>` | `instanceId`, the pod | the number; a text is a label of the same name, with the value -1 |
//! | `redis_keyspace_keys`, `_expires`, `_avg_ttl` | `instanceId`, `database` | the number |
//! | `redis_cluster_metrics` | fields of `CLUSTER INFO` | the time of the measurement |
//! | `redis_nodes_metrics` | fields of one server | the time of the measurement |
//! | `redis_cluster_check_errors`, `_warnings`, `_command_output_code` | | the result of `GET /v1/cluster/check` |

use std::collections::BTreeMap;
use std::fmt::Write;

use super::api::{Check, Node};

/// Content type of the text.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The INFO fields that are measured if the spec names none.
pub const DEFAULT_KEYS: [&str; 4] = [
    "used_memory",
    "connected_clients",
    "total_commands_processed",
    "instantaneous_ops_per_sec",
];

/// The keys of `CLUSTER INFO` that become labels.
const CLUSTER_KEYS: [&str; 6] = [
    "cluster_state",
    "cluster_slots_assigned",
    "cluster_slots_ok",
    "cluster_slots_fail",
    "cluster_known_nodes",
    "cluster_size",
];

/// Everything that was measured, as the servers reported it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measurement {
    /// The cluster.
    pub cluster: String,
    /// Its namespace.
    pub namespace: String,
    /// Time of the measurement, in seconds since the epoch.
    pub time: f64,
    /// `INFO all` of every server that replied, by pod.
    pub info: BTreeMap<String, String>,
    /// `CLUSTER INFO` of one server.
    pub cluster_info: Option<String>,
    /// The servers, each with the slots that it owns.
    pub nodes: Vec<(Node, String)>,
    /// What is wrong with the cluster.
    pub check: Option<Check>,
}

/// The text of a measurement. `keys` are the fields of INFO that become metrics. If empty, [`DEFAULT_KEYS`] are used.
pub fn text(measured: &Measurement, keys: &[String]) -> String {
    let mut page = Page::default();
    let common = [
        ("cluster".to_owned(), measured.cluster.clone()),
        ("namespace".to_owned(), measured.namespace.clone()),
    ];
    let labels = |more: &[(&str, &str)]| -> Labels {
        let more = more.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        common.iter().cloned().chain(more).collect()
    };
    let desired = |key: &str| {
        if keys.is_empty() {
            DEFAULT_KEYS.contains(&key)
        } else {
            keys.iter().any(|one| one == key)
        }
    };
    for (pod, info) in &measured.info {
        for (key, value) in fields(info) {
            let name = key.replace('-', "_");
            if let Some(database) = key
                .strip_prefix("db")
                .filter(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
            {
                let database = format!("db{database}");
                for (part, figure) in parts(value) {
                    if matches!(part, "keys" | "expires" | "avg_ttl") {
                        let labels = labels(&[("instanceId", pod), ("database", &database)]);
                        page.add(
                            &format!("redis_keyspace_{part}"),
                            labels,
                            figure.parse().unwrap_or(-1.0),
                        );
                    }
                }
            } else if desired(&name) && value.contains('=') {
                for (part, figure) in parts(value) {
                    page.figure(
                        &format!("{name}_{}", part.replace('-', "_")),
                        figure,
                        labels(&[("instanceId", pod)]),
                    );
                }
            } else if desired(&name) {
                page.figure(&name, value, labels(&[("instanceId", pod)]));
            }
        }
    }
    if let Some(info) = &measured.cluster_info {
        let said: Vec<(&str, &str)> = fields(info).filter(|(key, _)| CLUSTER_KEYS.contains(key)).collect();
        page.add("redis_cluster_metrics", labels(&said), measured.time);
    }
    for (node, slots) in &measured.nodes {
        let failures = node.failures.to_string();
        let labels = labels(&[
            ("nodeId", &node.id),
            ("nodeIp", &node.ip),
            ("role", &node.role),
            ("slots", slots),
            ("primaryId", &node.primary_id),
            ("nodeFailures", &failures),
        ]);
        page.add("redis_nodes_metrics", labels, measured.time);
    }
    if let Some(check) = &measured.check {
        let count = |list: &[String]| u32::try_from(list.len()).map_or(f64::MAX, f64::from);
        page.add("redis_cluster_check_errors", labels(&[]), count(&check.errors));
        page.add("redis_cluster_check_warnings", labels(&[]), count(&check.warnings));
        // The exit code that `redis-cli --cluster check` would have.
        let code = if check.errors.is_empty() { 0.0 } else { 1.0 };
        page.add("redis_cluster_check_command_output_code", labels(&[]), code);
    }
    page.text()
}

/// The fields of a reply, one per line.
fn fields(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_once(':'))
}

/// Splits `a=1,b=2`.
fn parts(value: &str) -> impl Iterator<Item = (&str, &str)> {
    value.split(',').filter_map(|part| part.split_once('='))
}

type Labels = BTreeMap<String, String>;

/// Metrics by name: the text format groups all values of a metric.
#[derive(Default)]
struct Page(BTreeMap<String, Vec<(Labels, f64)>>);

impl Page {
    /// Adds a number, or a text as a label.
    fn figure(&mut self, key: &str, value: &str, mut labels: Labels) {
        let name = format!("redis_{key}");
        let figure = value.parse::<f64>().ok().filter(|figure| figure.is_finite());
        if figure.is_none() {
            labels.insert(key.to_owned(), value.to_owned());
        }
        self.add(&name, labels, figure.unwrap_or(-1.0));
    }

    fn add(&mut self, name: &str, labels: Labels, value: f64) {
        // Servers and their modules choose field names freely.
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if !name.chars().all(plain) || !labels.keys().all(|key| key.chars().all(plain)) {
            return;
        }
        self.0.entry(name.to_owned()).or_default().push((labels, value));
    }

    fn text(&self) -> String {
        let mut out = String::new();
        for (name, values) in &self.0 {
            // Writing to a String cannot fail, here and below.
            let _ = writeln!(out, "# TYPE {name} gauge");
            for (labels, value) in values {
                let labels: Vec<String> = labels
                    .iter()
                    .map(|(key, value)| format!("{key}=\"{}\"", escaped(value)))
                    .collect();
                let _ = writeln!(out, "{name}{{{}}} {value}", labels.join(","));
            }
        }
        out
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

//! Converts a server's replies into the Prometheus text format.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::tables::{COUNTERS, GAUGES};

/// A server's replies: the lines of `INFO` and `CLUSTER INFO`, by name.
#[derive(Debug, Default)]
pub struct InfoFields<'a>(BTreeMap<&'a str, &'a str>);

impl<'a> InfoFields<'a> {
    /// Parses replies; a line without a colon is ignored.
    pub fn read(answers: &[&'a str]) -> Self {
        let lines = answers.iter().flat_map(|answer| answer.lines());
        let lines = lines.filter(|line| !line.starts_with('#'));
        Self(lines.filter_map(|line| line.trim_end().split_once(':')).collect())
    }

    /// The value of one line.
    pub fn get(&self, name: &str) -> Option<&'a str> {
        self.0.get(name).copied()
    }

    /// Lines with a name that starts with `prefix`, together with the rest of the name.
    fn begin(&self, prefix: &'static str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let lines = self
            .0
            .range(prefix..)
            .take_while(move |(name, _)| name.starts_with(prefix));
        lines.map(move |(name, value)| (&name[prefix.len()..], *value))
    }
}

/// The text, metric by metric.
#[derive(Debug, Default)]
pub struct Page(String);

impl Page {
    /// All metrics of the replies.
    pub fn of(reply: &InfoFields<'_>) -> Self {
        let mut page = Self::default();
        for (kind, table) in [("gauge", GAUGES), ("counter", COUNTERS)] {
            for (line, metric) in table {
                if let Some(value) = reply.get(line).and_then(number) {
                    page.head(metric, kind, &format!("{line} of {}.", source(line)));
                    page.value(metric, &[], value);
                }
            }
        }
        page.instance(reply);
        page.replication(reply);
        page.databases(reply);
        page.commands(reply);
        page.latencies(reply);
        page.errors(reply);
        page
    }

    /// A single metric without labels.
    pub fn one(&mut self, metric: &str, kind: &str, help: &str, value: f64) {
        self.head(metric, kind, help);
        self.value(metric, &[], value);
    }

    /// The page in the Prometheus text format.
    pub fn text(self) -> String {
        self.0
    }

    fn head(&mut self, metric: &str, kind: &str, help: &str) {
        // Writing into a String cannot fail.
        let _ = writeln!(self.0, "# HELP redis_{metric} {help}");
        let _ = writeln!(self.0, "# TYPE redis_{metric} {kind}");
    }

    fn value(&mut self, metric: &str, labels: &[(&str, &str)], value: f64) {
        let _ = write!(self.0, "redis_{metric}");
        for (index, (name, text)) in labels.iter().enumerate() {
            let before = if index == 0 { '{' } else { ',' };
            let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(self.0, "{before}{name}=\"{text}\"");
        }
        let _ = writeln!(self.0, "{} {value}", if labels.is_empty() { "" } else { "}" });
    }

    /// The identity of the server, as labels.
    fn instance(&mut self, reply: &InfoFields<'_>) {
        let version = reply.get("valkey_version").or_else(|| reply.get("redis_version"));
        let names = [
            ("role", reply.get("role")),
            ("redis_version", version),
            (
                "redis_mode",
                reply.get("server_mode").or_else(|| reply.get("redis_mode")),
            ),
            ("os", reply.get("os")),
            ("maxmemory_policy", reply.get("maxmemory_policy")),
            ("tcp_port", reply.get("tcp_port")),
            ("run_id", reply.get("run_id")),
            ("process_id", reply.get("process_id")),
            ("master_replid", reply.get("master_replid")),
        ];
        let labels: Vec<(&str, &str)> = names.map(|(name, value)| (name, value.unwrap_or_default())).into();
        self.head(
            "instance_info",
            "gauge",
            "Who the server is: role, version and ids of INFO.",
        );
        self.value("instance_info", &labels, 1.0);
        if let Some(fork) = reply.get("latest_fork_usec").and_then(number) {
            let help = "How long the last fork took: latest_fork_usec of INFO.";
            self.one("latest_fork_seconds", "gauge", help, fork / 1e6);
        }
        let figure = |line: &str| reply.get(line).and_then(number);
        if let (Some(now), Some(up)) = (figure("server_time_usec"), figure("uptime_in_seconds")) {
            let help = "When the server started, in seconds since 1970.";
            self.one("start_time_seconds", "gauge", help, (now / 1e6).floor() - up);
        }
    }

    /// A replica's link to its primary, and a primary's replicas.
    fn replication(&mut self, reply: &InfoFields<'_>) {
        if let Some(host) = reply.get("master_host") {
            let labels = [
                ("master_host", host),
                ("master_port", reply.get("master_port").unwrap_or_default()),
            ];
            let lines = [
                ("master_link_status", "master_link_up"),
                ("master_last_io_seconds_ago", "master_last_io_seconds_ago"),
                ("master_sync_in_progress", "master_sync_in_progress"),
                ("slave_repl_offset", "slave_repl_offset"),
            ];
            for (line, metric) in lines {
                if let Some(value) = reply.get(line).and_then(number) {
                    self.head(metric, "gauge", &format!("{line} of INFO, at a replica."));
                    self.value(metric, &labels, value);
                }
            }
            let read_only = ("read_only", reply.get("slave_read_only").unwrap_or_default());
            self.head(
                "slave_info",
                "gauge",
                "The primary of a replica, and whether the replica is read-only.",
            );
            self.value("slave_info", &[labels[0], labels[1], read_only], 1.0);
        }
        let replicas: Vec<BTreeMap<&str, &str>> = reply
            .begin("slave")
            .filter(|(rest, _)| rest.bytes().all(|byte| byte.is_ascii_digit()))
            .map(|(_, value)| pairs(value))
            .collect();
        for (part, metric) in [
            ("offset", "connected_slave_offset_bytes"),
            ("lag", "connected_slave_lag_seconds"),
        ] {
            if replicas.is_empty() {
                break;
            }
            self.head(metric, "gauge", &format!("{part} of every replica, at its primary."));
            for replica in &replicas {
                let of = |name: &str| replica.get(name).copied().unwrap_or_default();
                let labels = [
                    ("slave_ip", of("ip")),
                    ("slave_port", of("port")),
                    ("slave_state", of("state")),
                ];
                self.value(metric, &labels, number(of(part)).unwrap_or(f64::NAN));
            }
        }
    }

    /// `db0:keys=1,expires=0,avg_ttl=0`.
    fn databases(&mut self, reply: &InfoFields<'_>) {
        let all: Vec<(String, BTreeMap<&str, &str>)> = reply
            .begin("db")
            .filter(|(rest, _)| rest.bytes().all(|byte| byte.is_ascii_digit()))
            .map(|(rest, value)| (format!("db{rest}"), pairs(value)))
            .collect();
        let parts = [
            ("keys", "db_keys", 1.0),
            ("expires", "db_keys_expiring", 1.0),
            ("avg_ttl", "db_avg_ttl_seconds", 1000.0),
        ];
        for (part, metric, over) in parts {
            self.head(metric, "gauge", &format!("{part} of every database in INFO."));
            for (name, values) in &all {
                if let Some(value) = values.get(part).and_then(|text| number(text)) {
                    self.value(metric, &[("db", name)], value / over);
                }
            }
        }
    }

    /// `cmdstat_get:calls=1,usec=2,…`.
    fn commands(&mut self, reply: &InfoFields<'_>) {
        let all: Vec<(&str, BTreeMap<&str, &str>)> = reply
            .begin("cmdstat_")
            .map(|(name, value)| (name, pairs(value)))
            .collect();
        let parts = [
            ("calls", "commands_total", 1.0),
            ("usec", "commands_duration_seconds_total", 1e6),
            ("rejected_calls", "commands_rejected_calls_total", 1.0),
            ("failed_calls", "commands_failed_calls_total", 1.0),
        ];
        for (part, metric, over) in parts {
            if all.is_empty() {
                break;
            }
            self.head(metric, "counter", &format!("{part} of every command in INFO."));
            for (name, values) in &all {
                if let Some(value) = values.get(part).and_then(|text| number(text)) {
                    self.value(metric, &[("cmd", name)], value / over);
                }
            }
        }
    }

    /// `latency_percentiles_usec_get:p50=1.003,p99=2.007,p99.9=8.031`, with the sum and count from `cmdstat_get`.
    fn latencies(&mut self, reply: &InfoFields<'_>) {
        let metric = "latency_percentiles_usec";
        for (index, (name, value)) in reply.begin("latency_percentiles_usec_").enumerate() {
            if index == 0 {
                self.head(
                    metric,
                    "summary",
                    "Microseconds that calls of a command took: latency_percentiles of INFO.",
                );
            }
            for (percentile, text) in pairs(value) {
                if let (Some(percentile), Some(value)) = (percentile.strip_prefix('p'), number(text)) {
                    self.value(metric, &[("cmd", name), ("quantile", percentile)], value);
                }
            }
            let calls = reply.get(&format!("cmdstat_{name}")).map(pairs).unwrap_or_default();
            for (part, end) in [("usec", "sum"), ("calls", "count")] {
                if let Some(value) = calls.get(part).and_then(|text| number(text)) {
                    self.value(&format!("{metric}_{end}"), &[("cmd", name)], value);
                }
            }
        }
    }

    /// `errorstat_ERR:count=1`.
    fn errors(&mut self, reply: &InfoFields<'_>) {
        let all: Vec<(&str, f64)> = reply
            .begin("errorstat_")
            .filter_map(|(name, value)| Some((name, number(pairs(value).get("count")?)?)))
            .collect();
        if !all.is_empty() {
            self.head(
                "errors_total",
                "counter",
                "Replies with an error, by its first word: errorstat of INFO.",
            );
        }
        for (name, value) in all {
            self.value("errors_total", &[("err", name)], value);
        }
    }
}

/// The command that returns a line.
fn source(line: &str) -> &'static str {
    match line {
        "slowlog_length" => "SLOWLOG LEN",
        // Both are in INFO, although they start like the lines of CLUSTER INFO.
        "cluster_connections" | "cluster_enabled" => "INFO",
        cluster if cluster.starts_with("cluster_") => "CLUSTER INFO",
        _ => "INFO",
    }
}

/// A value: numbers unchanged, words for good and bad as 1 and 0.
fn number(text: &str) -> Option<f64> {
    match text.trim_end_matches('%') {
        "ok" | "up" | "yes" => Some(1.0),
        "err" | "fail" | "down" | "no" => Some(0.0),
        plain => plain.parse().ok().filter(|value: &f64| value.is_finite()),
    }
}

fn pairs(text: &str) -> BTreeMap<&str, &str> {
    text.split(',').filter_map(|part| part.split_once('=')).collect()
}

#[cfg(test)]
mod tests;

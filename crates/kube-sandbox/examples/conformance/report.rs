//! What was compared and what differed, gathered so that one cause is one line.

use std::collections::BTreeMap;

use serde_json::Value;

use super::known;
use super::normal::{Difference, differences};
use super::operation::Operation;

/// One request and how the two answers to it differ.
pub struct Compared {
    operation: Operation,
    code: u64,
    differences: Vec<Difference>,
}

impl Compared {
    pub fn new(operation: Operation, real: &Value, ours: &Value) -> Self {
        Self {
            operation,
            code: real["code"].as_u64().unwrap_or_default(),
            differences: differences(real, ours),
        }
    }
}

impl Compared {
    /// Whether a write left the two servers with different objects, as far as its answers tell.
    pub fn parts_the_servers(&self) -> bool {
        let unexplained = |d: &Difference| known::reason(&self.operation, d).is_none();
        let dry = self.operation.query.iter().any(|(key, _)| key == "dryRun");
        let failed = self.code >= 400 && !self.differences.iter().any(|d| d.place == "code");
        self.operation.method != "GET" && !dry && !failed && self.differences.iter().any(unexplained)
    }
}

/// Differences of one signature: what was asked and where the answers differ.
struct Group {
    count: u64,
    example: String,
}

#[derive(Default)]
pub struct Report {
    /// Whether values are printed in full; else their beginning.
    whole: bool,
    sequences: u64,
    requests: u64,
    rejected: u64,
    watches: u64,
    differing_sequences: u64,
    labels: BTreeMap<String, u64>,
    groups: BTreeMap<String, Group>,
    known: BTreeMap<&'static str, u64>,
}

impl Report {
    /// A report that prints values in full, or else their beginning.
    pub fn new(whole: bool) -> Self {
        Self {
            whole,
            ..Self::default()
        }
    }

    pub fn add(&mut self, number: u64, compared: Vec<Compared>) {
        let longest = if self.whole { usize::MAX } else { 700 };
        self.sequences += 1;
        let mut differing = false;
        for one in compared {
            self.requests += 1;
            self.rejected += u64::from(one.code >= 400);
            let verb = one.operation.label.split(' ').next().unwrap_or_default().to_owned();
            self.watches += u64::from(verb.starts_with("watch"));
            *self.labels.entry(verb).or_default() += 1;
            let rejection = one.differences.iter().any(|d| d.place == "code");
            for difference in &one.differences {
                // Two answers of different codes have nothing else in common; their messages name the cause.
                if rejection && difference.place != "body.message" && difference.place != "code" {
                    continue;
                }
                if let Some(reason) = known::reason(&one.operation, difference) {
                    *self.known.entry(reason).or_default() += 1;
                    continue;
                }
                differing = true;
                let signature = signature(&one.operation.label, difference, rejection);
                let group = self.groups.entry(signature).or_insert_with(|| Group {
                    count: 0,
                    example: format!(
                        "#{number} {}\n      real {}\n      ours {}",
                        short(&one.operation.to_string(), longest),
                        shown(difference.real.as_ref(), longest),
                        shown(difference.ours.as_ref(), longest),
                    ),
                });
                group.count += 1;
            }
        }
        self.differing_sequences += u64::from(differing);
    }

    pub fn unexplained(&self) -> u64 {
        self.groups.values().map(|group| group.count).sum()
    }

    pub fn print(&self, seed: u64) {
        let mut groups: Vec<(&String, &Group)> = self.groups.iter().collect();
        groups.sort_by_key(|(_, group)| std::cmp::Reverse(group.count));
        for (signature, group) in &groups {
            println!("{:>5}  {signature}\n      {}", group.count, group.example);
        }
        let verbs: Vec<String> = self
            .labels
            .iter()
            .map(|(verb, count)| format!("{verb} {count}"))
            .collect();
        println!("requests by kind: {}", verbs.join(", "));
        for (reason, count) in &self.known {
            println!("known: {count} x {reason}");
        }
        println!(
            "seed {seed}: {} sequences, {} requests ({} rejected by the real server, {} watches); \
             {} sequences with unexplained differences, {} differences of {} kinds",
            self.sequences,
            self.requests,
            self.rejected,
            self.watches,
            self.differing_sequences,
            self.unexplained(),
            groups.len(),
        );
    }
}

/// One cause, one signature: the kind and the place, whichever verb showed it; rejections also by verb.
fn signature(label: &str, difference: &Difference, rejection: bool) -> String {
    let (verb, plural) = label.split_once(' ').unwrap_or((label, ""));
    let place = difference
        .place
        .trim_start_matches("body.")
        .trim_start_matches("items[].")
        .trim_start_matches("[].object.");
    if rejection || place == "message" || place.is_empty() || place == "body" || place == "items" {
        format!("{plural} {verb} @ {}", difference.place)
    } else {
        format!("{plural} @ {place}")
    }
}

fn shown(value: Option<&Value>, longest: usize) -> String {
    value.map_or_else(|| "(absent)".into(), |value| short(&value.to_string(), longest))
}

fn short(text: &str, longest: usize) -> String {
    if text.chars().count() <= longest {
        return text.to_owned();
    }
    let begin: String = text.chars().take(longest).collect();
    format!("{begin} …")
}

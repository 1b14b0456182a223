//! Merges the defaults, the text of the spec, and the keys that the operator owns.

use super::text::{self, Directive, TextError};
use super::{Password, memory};

/// Where a server stores its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    /// In a folder of the pod: a restarted container still has it, a new pod does not.
    Ephemeral,
    /// On a volume.
    Volume,
}

/// The folder with the data of a server.
pub const DATA_FOLDER: &str = "/data";

/// Values that the operator sets unless the text sets the key.
const DEFAULTS: &[(&str, &str)] = &[
    ("maxmemory", "1600mb"),
    ("maxmemory-samples", "5"),
    ("maxmemory-policy", "allkeys-lru"),
    ("protected-mode", "no"),
    ("cluster-require-full-coverage", "no"),
    ("cluster-migration-barrier", "1"),
    // A primary that gave up its last slot must not copy the keys of another one before it leaves.
    ("cluster-allow-replica-migration", "no"),
    ("cluster-node-timeout", "15000"),
    // A new replica does not wait 5 seconds for other replicas that might need a full synchronization too.
    ("repl-diskless-sync-delay", "0"),
    ("appendonly", "yes"),
];

/// Additional defaults of an ephemeral cluster: docs/decisions, "the append-only file of an ephemeral cluster".
const EPHEMERAL_DEFAULTS: &[(&str, &str)] = &[("appendfsync", "no"), ("save", "\"\"")];

/// Keys that only the operator sets.
const OWNED: &[(&str, &str)] = &[
    ("cluster-enabled", "yes"),
    ("cluster-config-file", "nodes.conf"),
    ("dir", DATA_FOLDER),
    ("port", "6379"),
];

/// Announced values. The text may repeat these values, but only the operator may set others.
const ANNOUNCED: &[(&str, &str)] = &[
    ("cluster-announce-port", "6379"),
    ("cluster-announce-bus-port", "16379"),
];

/// A line of the text that has no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ignored {
    /// Line number, starting at 1.
    pub line: usize,
    /// The key.
    pub key: String,
    /// Why it has no effect, and what to do about it. It never contains a password.
    pub reason: String,
}

impl std::fmt::Display for Ignored {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            out,
            "spec.config, line {}: {} is ignored: {}",
            self.line, self.key, self.reason
        )
    }
}

/// The configuration of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    /// `redis.conf`, without any password.
    pub file: String,
    /// The lines of the text that change something, in their order. Comments, passwords, owned keys, and keys that
    /// only repeat a default are left out.
    pub changes: Vec<String>,
    /// The servers' password: from the Secret, or otherwise from the text.
    pub password: Option<Password>,
    /// Lines of the text that have no effect.
    pub ignored: Vec<Ignored>,
    /// In bytes; 0 means no limit.
    pub maxmemory: u64,
    /// Whether a restarted container finds usable data.
    pub keeps_data: bool,
    /// In milliseconds.
    pub node_timeout: u64,
}

/// Merges the text over the defaults. `secret` is the password from the Secret that `spec.auth` references. It takes
/// precedence over a password in the text.
pub fn merge(text: &str, storage: Storage, secret: Option<&Password>) -> Result<Merged, TextError> {
    let written = text::parse(text)?;
    let mut ignored = Vec::new();
    let password = password(&written, secret, &mut ignored)?;
    let (owned, free): (Vec<&Directive>, Vec<&Directive>) = written
        .iter()
        .filter(|one| !matches!(one.key.as_str(), "requirepass" | "masterauth"))
        .partition(|one| owned_value(&one.key).is_some());
    ignored.extend(owned.iter().filter_map(|one| not_ours(one)));
    ignored.sort_by_key(|one| one.line);

    let ephemeral = EPHEMERAL_DEFAULTS.iter().filter(|_| storage == Storage::Ephemeral);
    let all: Vec<&(&str, &str)> = DEFAULTS.iter().chain(ephemeral).collect();
    let repeats_default = |one: &Directive| {
        let alone = free.iter().filter(|other| other.key == one.key).count() == 1;
        let default = all.iter().find(|(key, _)| *key == one.key);
        alone && default.is_some_and(|(_, value)| one.single() == Some(value.trim_matches('"')))
    };
    let changes = free.iter().filter(|one| !repeats_default(one));
    let changes = changes.map(|one| one.written.clone()).collect();
    let defaults = all.iter().filter(|(key, _)| free.iter().all(|one| one.key != *key));
    let defaults = defaults.map(|(key, value)| format!("{key} {value}"));
    let free_lines = free.iter().map(|one| one.written.clone());
    // The last line of a key takes effect.
    let owned_lines = OWNED.iter().map(|(key, value)| format!("{key} {value}"));
    let lines: Vec<String> = defaults.chain(free_lines).chain(owned_lines).collect();
    let file = lines.join("\n") + "\n";

    let last = |key: &str| free.iter().rev().find(|one| one.key == key);
    let maxmemory = last("maxmemory").map_or(Some(memory::bytes("1600mb").unwrap_or_default()), |one| {
        one.single().and_then(memory::bytes)
    });
    let node_timeout = last("cluster-node-timeout").map_or(Some(15000), |one| one.single()?.parse().ok());
    Ok(Merged {
        file,
        changes,
        password,
        ignored,
        maxmemory: maxmemory.ok_or_else(|| wrong(last("maxmemory"), "write bytes such as 100mb or 2gb"))?,
        keeps_data: storage == Storage::Volume || logs(last("appendonly").copied())? || saves(&free),
        node_timeout: node_timeout
            .ok_or_else(|| wrong(last("cluster-node-timeout"), "write milliseconds such as 15000"))?,
    })
}

fn wrong(at: Option<&&Directive>, instead: &'static str) -> TextError {
    TextError::Value {
        line: at.map_or(0, |one| one.line),
        key: at.map_or_else(String::new, |one| one.key.clone()),
        instead,
    }
}

/// The required value of a key. An empty value is different on every server.
fn owned_value(key: &str) -> Option<&'static str> {
    let fixed = OWNED.iter().chain(ANNOUNCED).find(|(owned, _)| *owned == key);
    let fixed = fixed.map(|(_, value)| *value);
    fixed.or_else(|| key.starts_with("cluster-announce-").then_some(""))
}

/// Why an owned key has no effect. None if it has the operator's value.
fn not_ours(one: &Directive) -> Option<Ignored> {
    let ours = owned_value(&one.key)?;
    let same = |value: &str| match one.key.as_str() {
        "dir" => value.trim_end_matches('/') == ours,
        _ => value.eq_ignore_ascii_case(ours),
    };
    if one.single().is_some_and(same) {
        return None;
    }
    let reason = if ours.is_empty() {
        "the operator sets it for every server; remove the line".to_owned()
    } else {
        format!("the operator sets it to {ours}; remove the line")
    };
    Some(Ignored {
        line: one.line,
        key: one.key.clone(),
        reason,
    })
}

/// The effective password. Servers authenticate to each other with it, so `masterauth` always has the same value.
fn password(
    written: &[Directive],
    secret: Option<&Password>,
    ignored: &mut Vec<Ignored>,
) -> Result<Option<Password>, TextError> {
    let read = |one: &Directive| {
        one.single().map(Password::new).ok_or_else(|| TextError::Password {
            line: one.line,
            key: one.key.clone(),
        })
    };
    let mut of_text = None;
    for one in written.iter().filter(|one| one.key == "requirepass") {
        of_text = read(one)?;
    }
    let effective = secret.cloned().or(of_text);
    for one in written {
        let reason = match one.key.as_str() {
            "requirepass" if secret.is_some() => "the Secret of spec.auth has the password; remove the line",
            "masterauth" => "servers log in to each other with requirepass; remove the line",
            _ => continue,
        };
        if read(one)? != effective {
            ignored.push(Ignored {
                line: one.line,
                key: one.key.clone(),
                reason: reason.to_owned(),
            });
        }
    }
    Ok(effective)
}

/// Whether the append-only file is enabled.
fn logs(set: Option<&Directive>) -> Result<bool, TextError> {
    match set.map(|one| one.single().unwrap_or_default().to_ascii_lowercase()) {
        None => Ok(true),
        Some(word) if word == "yes" => Ok(true),
        Some(word) if word == "no" => Ok(false),
        Some(_) => Err(wrong(set.as_ref(), "write yes or no")),
    }
}

/// Whether snapshots are enabled: `save ""` cancels all save points before it. An ephemeral cluster has no snapshots
/// by default, and a volume retains data anyway.
fn saves(free: &[&Directive]) -> bool {
    let points = free.iter().filter(|one| one.key == "save");
    points.fold(false, |_, one| one.values.iter().any(|value| !value.is_empty()))
}

//! Tracks which server runs with which settings. Configuration is compared with the values that the server returns.
//! Users cannot be compared, because a server rewrites their rules. The operator therefore adds a marker to the
//! server's user list: a disabled user with the hash of the whole user set as its password hash. The marker is lost
//! when the process ends, and so are the users that it stands for.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use candor_engine::model::MemberRef;
use candor_engine::observation::Applied;
use valkey_admin::client::{Node, NodeError};

use crate::objects::hash::sha256;
use crate::objects::{MIGRATOR, Settings, agrees};
use crate::runtime::cache::ClusterKey;

/// The marker's name.
pub const MARKER: &str = "_applied";

/// The scratch user on which ACL rules are validated. It exists only during validation.
const PREFLIGHT: &str = "_trial";

/// Known settings by member. An entry is valid for one process: if the run id changes, it is discarded.
#[derive(Default)]
pub struct AppliedSettings {
    known: Mutex<HashMap<Place, Known>>,
}

/// A member of a cluster.
pub type Place = (ClusterKey, MemberRef);

/// A server process: its cluster, its member and its run id.
#[derive(Clone, Copy, Debug)]
pub struct Process<'a> {
    /// Its cluster.
    pub cluster: &'a ClusterKey,
    /// Its member.
    pub member: MemberRef,
    /// Its run id.
    pub run_id: &'a str,
}

impl Process<'_> {
    /// The member that the process belongs to.
    pub fn place(&self) -> Place {
        (self.cluster.clone(), self.member)
    }
}

#[derive(Clone, Debug, PartialEq)]
struct Known {
    run_id: String,
    settings: String,
    config: Applied,
    users: Applied,
}

impl AppliedSettings {
    /// Whether a server runs with these settings. The server is queried only if the answer is not cached.
    pub async fn observe(
        &self,
        node: &Node,
        process: Process<'_>,
        settings: &Settings,
    ) -> Result<(Applied, Applied), NodeError> {
        let hash = hash(settings);
        let known = self.lock().get(&process.place()).cloned();
        if let Some(known) = known.filter(|known| known.run_id == process.run_id && known.settings == hash) {
            return Ok((known.config, known.users));
        }
        let live = config(node, settings.config.keys().map(String::as_str)).await?;
        let same = settings
            .config
            .iter()
            .all(|(key, desired)| live.get(key).is_some_and(|live| agrees(key, desired, live)));
        let config = if same { Applied::Yes } else { Applied::No };
        let lines = node.acl_list().await?;
        let marker = format!("#{}", users_hash(settings));
        let marked = lines.iter().any(|line| {
            let mut message = line.split_whitespace();
            message.next() == Some("user") && message.next() == Some(MARKER) && message.any(|word| word == marker)
        });
        // An operator that terminated during validation may have left the scratch user behind.
        let left = lines.iter().any(|line| {
            let name = line.split_whitespace().nth(1).unwrap_or_default();
            [MIGRATOR, PREFLIGHT].contains(&name) && !settings.users.contains_key(name)
        });
        let users = if marked && !left { Applied::Yes } else { Applied::No };
        self.remember(process, &hash, |known| {
            known.config = config.clone();
            known.users = users.clone();
        });
        Ok((config, users))
    }

    /// Sets the server's live configuration to the desired values. If the server rejects a value, its error message is
    /// cached.
    pub async fn configure(&self, node: &Node, process: Process<'_>, settings: &Settings) -> Result<(), NodeError> {
        let live = config(node, settings.config.keys().map(String::as_str)).await?;
        let differs =
            |(key, desired): &(&String, &String)| !live.get(*key).is_some_and(|live| agrees(key, desired, live));
        let changes: Vec<(&str, &str)> = settings
            .config
            .iter()
            .filter(differs)
            .map(|(key, desired)| (key.as_str(), desired.as_str()))
            .collect();
        let result = if changes.is_empty() {
            Ok(())
        } else {
            node.config_set(&changes).await
        };
        let config = verdict(&result);
        if let Some(config) = config {
            self.remember(process, &hash(settings), |known| known.config = config.clone());
        }
        result
    }

    /// Sets the server's live users to the desired ones.
    pub async fn apply_users(&self, node: &Node, process: Process<'_>, settings: &Settings) -> Result<(), NodeError> {
        let result = set_users(node, settings).await;
        if let Some(users) = verdict(&result) {
            self.remember(process, &hash(settings), |known| known.users = users.clone());
        }
        result
    }

    fn remember(&self, process: Process<'_>, hash: &str, change: impl Fn(&mut Known)) {
        let mut known = self.lock();
        let fresh = || Known {
            run_id: process.run_id.to_owned(),
            settings: hash.to_owned(),
            config: Applied::No,
            users: Applied::No,
        };
        let entry = known.entry(process.place()).or_insert_with(fresh);
        if entry.run_id != process.run_id || entry.settings != hash {
            *entry = fresh();
        }
        change(entry);
    }

    /// Removes all entries of a deleted cluster.
    pub fn forget(&self, cluster: &ClusterKey) {
        self.lock().retain(|(key, _), _| key != cluster);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Place, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Result of an attempt: applied, rejected with the server's error message, or `None` if the server did not respond.
fn verdict(result: &Result<(), NodeError>) -> Option<Applied> {
    match result {
        Ok(()) => Some(Applied::Yes),
        Err(error) => error
            .server_message()
            .map(|message| Applied::Rejected(message.to_owned())),
    }
}

async fn config<'a>(node: &Node, keys: impl Iterator<Item = &'a str>) -> Result<BTreeMap<String, String>, NodeError> {
    let mut live = BTreeMap::new();
    for key in keys {
        if let Some(value) = node.config_get(key).await? {
            live.insert(key.to_owned(), value);
        }
    }
    Ok(live)
}

/// Whether the server accepts the users. Their rules are first validated on a disabled scratch user, before any
/// existing user is changed.
async fn try_users(node: &Node, settings: &Settings) -> Result<(), NodeError> {
    let given: Vec<&Vec<String>> = settings
        .users
        .iter()
        .filter(|(user, _)| !user.starts_with('_'))
        .map(|(_, rules)| rules)
        .collect();
    if given.is_empty() {
        return Ok(());
    }
    let mut tried = Ok(());
    for rules in given {
        let rules: Vec<String> = rules.iter().cloned().chain(["off".to_owned()]).collect();
        tried = node.acl_set_user(PREFLIGHT, &rules).await;
        if tried.is_err() {
            break;
        }
    }
    node.acl_delete_users(&[PREFLIGHT]).await?;
    tried
}

async fn set_users(node: &Node, settings: &Settings) -> Result<(), NodeError> {
    try_users(node, settings).await?;
    for (user, rules) in &settings.users {
        node.acl_set_user(user, rules).await?;
    }
    let lines = node.acl_list().await?;
    let there = lines.iter().filter_map(|line| line.split_whitespace().nth(1));
    let gone: Vec<&str> = there
        .filter(|user| *user != "default" && *user != MARKER && !settings.users.contains_key(*user))
        .collect();
    if !gone.is_empty() {
        node.acl_delete_users(&gone).await?;
    }
    let marker = [
        "reset".to_owned(),
        "off".to_owned(),
        format!("#{}", users_hash(settings)),
    ];
    node.acl_set_user(MARKER, &marker).await
}

fn hash(settings: &Settings) -> String {
    let mut text = String::new();
    for (key, value) in &settings.config {
        text.extend([key, "\0", value, "\0"]);
    }
    text.push('\u{1}');
    text.push_str(&users_hash(settings));
    sha256(text.as_bytes())
}

fn users_hash(settings: &Settings) -> String {
    let mut text = String::new();
    for (user, rules) in &settings.users {
        text.extend([user, "\0"]);
        for rule in rules {
            text.extend([rule, "\0"]);
        }
        text.push('\u{1}');
    }
    sha256(text.as_bytes())
}

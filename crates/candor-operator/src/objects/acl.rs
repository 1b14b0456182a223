//! ACL rules of all users: the operator's own users and those of the spec. Passwords appear only as hashes.

use std::collections::BTreeMap;

use candor_api::valkey::spec::User;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use valkey_admin::Capabilities;
use valkey_admin::capability::MoveBy;

use super::system_users::{EXPORTER, MIGRATOR, OPERATOR, REPLICATION};
use super::{Inputs, Problem, hash, names};

/// ACL rules by user name. Each rule list is complete: it begins with `reset`.
pub(super) type Users = BTreeMap<String, Vec<String>>;

// A server reads the ACL file before the operator knows its version. A server rejects the whole file if it does not
// know one command in it. The rules therefore name no command that was added after Redis 7.0.

/// Everything that cluster administration needs, without access to any key.
const OPERATOR_RULES: &[&str] = &[
    "resetchannels",
    "+ping",
    "+hello",
    "+info",
    "+role",
    "+dbsize",
    "+cluster",
    "+config|get",
    "+config|set",
    "+acl|list",
    "+acl|getuser",
    "+acl|setuser",
    "+acl|deluser",
    "+acl|users",
    "+acl|whoami",
    "+client|id",
    "+client|setname",
    "+client|kill",
    "+client|list",
    "+command",
    "+latency|latest",
    "+failover",
    "+replicaof",
    "+wait",
    "+time",
];

/// Commands that probes and the metrics exporter run.
const EXPORTER_RULES: &[&str] = &[
    "resetchannels",
    "+ping",
    "+hello",
    "+info",
    "+role",
    "+dbsize",
    "+cluster|info",
    "+cluster|nodes",
    "+cluster|myid",
    "+cluster|shards",
    "+cluster|slots",
    "+config|get",
    "+client|setname",
    "+command",
    "+latency|latest",
    "+latency|histogram",
    "+slowlog|len",
    "+time",
];

/// Commands that a replica runs on its primary, and that the source of a slot migration (Valkey 9) runs on its target.
/// The target receives the keys as commands of this user.
const REPLICATION_RULES: &[&str] = &[
    "~*",
    "&*",
    "+ping",
    "+psync",
    "+sync",
    "+replconf",
    "+select",
    "+multi",
    "+exec",
    "+@write",
    "+publish",
    "+spublish",
    "+cluster",
];

/// Commands for migrating keys one by one, on the source and on the target, and for flushing a member that leaves.
const MIGRATOR_RULES: &[&str] = &[
    "~*",
    "resetchannels",
    "+ping",
    "+hello",
    "+info",
    "+select",
    "+asking",
    "+migrate",
    "+restore",
    "+restore-asking",
    "+dump",
    "+del",
    "+unlink",
    "+pttl",
    "+memory|usage",
    "+cluster",
    "+flushall",
];

/// The rules of the user that migrates keys one by one. Servers with slot migration do not have this user: code that
/// needs it there creates it first and deletes it afterwards.
pub fn migrator(password: &str) -> Vec<String> {
    system(MIGRATOR, password, MIGRATOR_RULES).1
}

/// The rules of the operator's own user.
pub fn operator(password: &str) -> Vec<String> {
    system(OPERATOR, password, OPERATOR_RULES).1
}

fn system(name: &str, password: &str, rules: &[&str]) -> (String, Vec<String>) {
    let head = ["reset".to_owned(), "on".to_owned(), digest(password.as_bytes())];
    (
        name.to_owned(),
        head.into_iter().chain(rules.iter().map(ToString::to_string)).collect(),
    )
}

fn digest(password: &[u8]) -> String {
    format!("#{}", hash::sha256(password))
}

/// Every user that the servers must have.
pub(super) fn users(inputs: &Inputs<'_>) -> Result<Users, Problem> {
    let passwords = inputs.passwords;
    let mut users = Users::from([
        system(OPERATOR, &passwords.operator, OPERATOR_RULES),
        system(EXPORTER, &passwords.exporter, EXPORTER_RULES),
        system(REPLICATION, &passwords.replication, REPLICATION_RULES),
    ]);
    if inputs
        .version
        .is_some_and(|version| Capabilities::of(version).moves == MoveBy::Legacy)
    {
        users.insert(MIGRATOR.to_owned(), migrator(&passwords.migrator));
    }
    for user in &inputs.cluster.spec.users {
        users.insert(user.name.clone(), rules(inputs, user)?);
    }
    Ok(users)
}

/// The ACL file that a starting server reads.
pub(super) fn file(users: &Users) -> String {
    let line = |(name, rules): (&String, &Vec<String>)| {
        // Users in the file start empty. `reset` is only needed for users of a running server.
        let rules: Vec<&str> = rules
            .iter()
            .map(String::as_str)
            .filter(|rule| *rule != "reset")
            .collect();
        format!("user {name} {}\n", rules.join(" "))
    };
    users.iter().map(line).collect()
}

/// An ACL file with the desired rules of the operator's own users, and all other users as a server last accepted them.
/// A server does not start if it does not know one rule in the file. The file therefore contains no rule that no
/// running server has accepted.
pub(super) fn file_with_others_of(desired: &str, before: &str) -> String {
    let own = |line: &&str| {
        let name = line.split_whitespace().nth(1);
        name.is_some_and(|name| name.starts_with('_'))
    };
    let others = before.lines().filter(|line| !own(line) && !line.is_empty());
    let lines = desired.lines().filter(own).chain(others);
    lines.flat_map(|line| [line, "\n"]).collect()
}

fn rules(inputs: &Inputs<'_>, user: &User) -> Result<Vec<String>, Problem> {
    let at = format!("spec.users[{}]", user.name);
    let enabled = user.enabled.unwrap_or(true);
    let mut rules = vec!["reset".to_owned(), if enabled { "on" } else { "off" }.to_owned()];
    let raw = raw(user);
    rules.extend(passwords(inputs, user, &raw)?);
    let commands = user.commands.as_ref();
    let allow = commands
        .into_iter()
        .flat_map(|commands| &commands.allow)
        .map(|name| signed('+', name));
    let deny = commands
        .into_iter()
        .flat_map(|commands| &commands.deny)
        .map(|name| signed('-', name));
    rules.extend(allow.chain(deny));
    if let Some(keys) = &user.keys {
        let kinds = [
            ("~", &keys.read_write),
            ("%R~", &keys.read_only),
            ("%W~", &keys.write_only),
        ];
        rules.extend(
            kinds
                .iter()
                .flat_map(|(sign, patterns)| patterns.iter().map(move |one| format!("{sign}{one}"))),
        );
    }
    rules.push("resetchannels".to_owned());
    let channels = user.channels.iter().flat_map(|channels| &channels.patterns);
    rules.extend(channels.map(|pattern| format!("&{pattern}")));
    // A rule that contains a space would become two rules. A rule that contains a line end would define a second user.
    if let Some(broken) = rules
        .iter()
        .find(|rule| rule.contains(|c: char| c.is_whitespace() || c.is_control()))
    {
        return Err(Problem::shape(
            at,
            format!("{broken:?} has a space in it: ACL rules are single words"),
        ));
    }
    if let Some(unknown) = raw.iter().find(|rule| !is_rule(rule)) {
        let known = "one of +command, -command, +@category, ~pattern, %R~pattern, &channel, on, off, nopass …";
        return Err(Problem::shape(
            format!("{at}.permissions"),
            format!("{unknown:?} is no ACL rule; write {known}"),
        ));
    }
    rules.extend(raw);
    Ok(rules)
}

/// The raw permissions, split into words. A password in plain text is replaced by its hash.
fn raw(user: &User) -> Vec<String> {
    let message = user.permissions.iter().flat_map(|text| text.split_whitespace());
    message
        .map(|word| match word.strip_prefix('>') {
            Some(password) => digest(password.as_bytes()),
            None => word.to_owned(),
        })
        .collect()
}

/// Whether a word can be an ACL rule. A server rejects the whole file because of one invalid rule and does not start.
fn is_rule(word: &str) -> bool {
    const WORDS: &[&str] = &[
        "on",
        "off",
        "nopass",
        "resetpass",
        "reset",
        "allkeys",
        "resetkeys",
        "allchannels",
        "resetchannels",
        "allcommands",
        "nocommands",
        "alldbs",
        "resetdbs",
        "clearselectors",
        "sanitize-payload",
        "skip-sanitize-payload",
    ];
    const SIGNS: &[&str] = &["+", "-", "~", "%R~", "%W~", "%RW~", "&", "#", "!", "<", "(", "db="];
    // A selector in parentheses may contain spaces, so its words are checked one by one.
    let inner = word.trim_end_matches(')');
    WORDS.contains(&inner)
        || SIGNS
            .iter()
            .any(|sign| word.len() > sign.len() && word.starts_with(sign))
}

/// `get` and `+get` mean the same.
fn signed(sign: char, name: &str) -> String {
    format!("{sign}{}", name.strip_prefix(['+', '-']).unwrap_or(name))
}

fn passwords(inputs: &Inputs<'_>, user: &User, raw: &[String]) -> Result<Vec<String>, Problem> {
    if user.nopass == Some(true) {
        return Ok(vec!["nopass".to_owned()]);
    }
    if user.resetpass == Some(true) {
        return Ok(vec!["resetpass".to_owned()]);
    }
    let named = user.password_secret.clone().unwrap_or_default();
    let raw_password = raw.iter().any(|rule| rule == "nopass" || rule.starts_with('#'));
    let disabled = user.enabled == Some(false);
    if user.password_secret.is_none() && (raw_password || disabled) {
        return Ok(Vec::new());
    }
    let secret = named
        .name
        .unwrap_or_else(|| names::users_secret(&inputs.cluster.name_any()));
    let keys = if named.keys.is_empty() {
        vec![user.name.clone()]
    } else {
        named.keys
    };
    let purpose = format!("it holds the password of the user {}", user.name);
    let found = inputs.secrets.get(&secret).ok_or_else(|| Problem::MissingSecret {
        name: secret.clone(),
        purpose: format!("{purpose} under the key {}", keys.join(", ")),
    })?;
    keys.iter()
        .map(|key| Ok(digest(value(found, &secret, key, &purpose)?)))
        .collect()
}

/// The value of a key in a Secret, without the trailing line end that editors and `echo` add.
pub(super) fn value<'s>(secret: &'s Secret, name: &str, key: &str, purpose: &str) -> Result<&'s [u8], Problem> {
    let value = secret
        .data
        .as_ref()
        .and_then(|data| data.get(key))
        .map(|value| value.0.as_slice());
    let text = value.map(|value| value.strip_suffix(b"\n").unwrap_or(value));
    let text = text.map(|text| text.strip_suffix(b"\r").unwrap_or(text));
    match text {
        Some(text) if !text.is_empty() => Ok(text),
        found => Err(Problem::MissingKey {
            name: name.to_owned(),
            key: key.to_owned(),
            empty: found.is_some(),
            purpose: purpose.to_owned(),
        }),
    }
}

/// The user `default` as a server creates it when no configuration mentions it.
pub(super) fn untouched_default() -> Vec<String> {
    ["reset", "on", "nopass", "~*", "&*", "+@all"].map(str::to_owned).into()
}

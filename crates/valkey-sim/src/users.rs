//! Users: names, passwords as hashes, rules kept as written. Permissions are not enforced.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use sha2::{Digest, Sha256};
use valkey_admin::Reply;

/// One user.
#[derive(Clone, Debug, Default)]
struct User {
    on: bool,
    no_password: bool,
    hashes: Vec<String>,
    rules: Vec<String>,
}

/// All users of a server.
#[derive(Clone, Debug)]
pub struct Users(BTreeMap<String, User>);

impl Users {
    /// From the lines of `users.acl`; without any, the default user needs no password.
    pub fn read(lines: &[String]) -> Self {
        let default_user = User {
            on: true,
            no_password: true,
            hashes: Vec::new(),
            rules: ["~*", "&*", "+@all"].map(str::to_owned).to_vec(),
        };
        let mut users = Self(BTreeMap::from([("default".to_owned(), default_user)]));
        for line in lines {
            let mut fields = line.split_whitespace().skip_while(|rule| *rule == "user");
            if let Some(name) = fields.next() {
                // A line that a real server would refuse to start with is left out here.
                let _ = users.set(name, &fields.map(str::to_owned).collect::<Vec<_>>());
            }
        }
        users
    }

    /// Whether a user can authenticate with a password.
    pub fn admits(&self, name: &str, password: &str) -> bool {
        let hash = sha256(password);
        let authenticates = |user: &User| user.on && (user.no_password || user.hashes.contains(&hash));
        self.0.get(name).is_some_and(authenticates)
    }

    /// Whether there is a user of this name.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Whether no password is needed.
    pub fn open(&self) -> bool {
        self.0.get("default").is_some_and(|user| user.on && user.no_password)
    }

    /// `ACL SETUSER`; the error message of the server.
    pub fn set(&mut self, name: &str, rules: &[String]) -> Result<(), String> {
        let mut user = self.0.get(name).cloned().unwrap_or_default();
        for rule in rules {
            match rule.as_str() {
                "reset" => user = User::default(),
                "on" => user.on = true,
                "off" => user.on = false,
                "nopass" => (user.no_password, user.hashes) = (true, Vec::new()),
                "resetpass" => (user.no_password, user.hashes) = (false, Vec::new()),
                rule if rule.starts_with('>') => user.hashes.push(sha256(&rule[1..])),
                rule if rule.starts_with('#') => user.hashes.push(rule[1..].to_owned()),
                rule if is_unknown(rule) => {
                    return Err(format!(
                        "ERR Error in ACL SETUSER modifier '{rule}': Unknown command or category name in ACL"
                    ));
                }
                rule if rule.starts_with(['+', '-', '~', '&', '%', '(', '<', '!']) => user.rules.push(rule.to_owned()),
                "allkeys"
                | "allchannels"
                | "allcommands"
                | "nocommands"
                | "resetkeys"
                | "resetchannels"
                | "clearselectors"
                | "sanitize-payload"
                | "skip-sanitize-payload"
                | "alldbs" => {
                    user.rules.push(rule.clone());
                }
                rule => return Err(format!("ERR Error in ACL SETUSER modifier '{rule}': Syntax error")),
            }
        }
        self.0.insert(name.to_owned(), user);
        Ok(())
    }

    /// `ACL DELUSER`; how many there were.
    pub fn delete(&mut self, names: &[String]) -> usize {
        let there = names.iter().filter(|name| *name != "default");
        there.filter(|name| self.0.remove(*name).is_some()).count()
    }

    /// `ACL LIST`.
    pub fn list(&self) -> Reply {
        let line = |(name, user): (&String, &User)| {
            let mut text = format!("user {name} {}", if user.on { "on" } else { "off" });
            if user.no_password {
                text.push_str(" nopass");
            }
            text.push_str(" sanitize-payload");
            for hash in &user.hashes {
                let _ = write!(text, " #{hash}");
            }
            for rule in &user.rules {
                let _ = write!(text, " {rule}");
            }
            Reply::from(text.as_str())
        };
        Reply::Array(self.0.iter().map(line).collect())
    }
}

/// A command with this at the beginning of its name does not exist.
const MISSING_COMMAND: &str = "nosuch";

fn is_unknown(rule: &str) -> bool {
    let name = rule.strip_prefix(['+', '-']).map(|name| name.trim_start_matches('@'));
    name.is_some_and(|name| name.starts_with(MISSING_COMMAND))
}

fn sha256(text: &str) -> String {
    Sha256::digest(text.as_bytes())
        .iter()
        .fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        })
}

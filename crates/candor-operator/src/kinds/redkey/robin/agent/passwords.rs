//! Which password each server accepts. A changed password reaches Robin's files before the servers: until a server
//! accepts the new one, Robin stays connected with the one before, so that a rotation interrupts nothing.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use valkey_admin::client::{Credentials, Endpoint};

use crate::kinds::redkey::config::Password;
use crate::kinds::redkey::objects::PORT;

/// The user of Redis servers that have one password.
const USER: &str = "default";
/// How many passwords are remembered if changes follow each other faster than servers are updated.
const REMEMBERED: usize = 4;

/// The passwords of a cluster. `None` is no password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passwords {
    /// The desired one first, then those before it.
    known: VecDeque<Option<Password>>,
    /// The servers that have another password than the desired one, with that password.
    outdated: BTreeMap<u32, Option<Password>>,
}

impl Passwords {
    pub(super) fn new(current: Option<Password>) -> Self {
        Self {
            known: VecDeque::from([current]),
            outdated: BTreeMap::new(),
        }
    }

    /// The desired password.
    pub fn desired(&self) -> Option<&Password> {
        self.known.front().and_then(Option::as_ref)
    }

    /// The servers that have another password, by ordinal. Robin's connections to them use that one.
    pub fn outdated(&self) -> impl Iterator<Item = u32> {
        self.outdated.keys().copied()
    }

    /// Changes the desired password. These servers are running.
    pub(super) fn change(&mut self, desired: Option<Password>, servers: impl IntoIterator<Item = u32>) {
        let before = self.desired().cloned();
        if desired == before {
            return;
        }
        for ordinal in servers {
            self.outdated.entry(ordinal).or_insert_with(|| before.clone());
        }
        self.outdated.retain(|_, has| *has != desired);
        self.known.retain(|one| *one != desired);
        self.known.push_front(desired);
        self.known.truncate(REMEMBERED);
    }

    /// A server rejects the password that is used for it: the next one is tried.
    pub(super) fn rejected(&mut self, ordinal: u32) {
        let used = self.outdated.remove(&ordinal);
        let at = used.map_or(Some(0), |used| self.known.iter().position(|one| *one == used));
        // After the oldest one, the desired one is tried again.
        if let Some(next) = at.and_then(|at| self.known.get(at + 1)) {
            self.outdated.insert(ordinal, next.clone());
        }
    }

    /// A server accepts the desired password.
    pub(super) fn updated(&mut self, ordinal: u32) {
        self.outdated.remove(&ordinal);
    }

    /// Forgets servers that are gone.
    pub(super) fn retain(&mut self, exists: impl Fn(u32) -> bool) {
        self.outdated.retain(|ordinal, _| exists(*ordinal));
    }

    /// How to connect to a server.
    pub(super) fn endpoint(&self, ordinal: u32, ip: IpAddr) -> Endpoint {
        match self.outdated.get(&ordinal) {
            Some(password) => endpoint(ip, password.as_ref()),
            None => self.desired_endpoint(ip),
        }
    }

    /// How to connect to a server with the desired password.
    pub(super) fn desired_endpoint(&self, ip: IpAddr) -> Endpoint {
        endpoint(ip, self.desired())
    }
}

fn endpoint(ip: IpAddr, password: Option<&Password>) -> Endpoint {
    let credentials = password.map(|password| Credentials {
        user: USER.to_owned(),
        password: password.expose().to_owned(),
    });
    Endpoint {
        credentials,
        ..Endpoint::plain(ip, PORT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The passwords that are used for the first servers; empty for none.
    fn used<const N: usize>(passwords: &Passwords) -> [String; N] {
        std::array::from_fn(|ordinal| {
            let endpoint = passwords.endpoint(u32::try_from(ordinal).unwrap(), IpAddr::from([10, 0, 0, 1]));
            endpoint
                .credentials
                .map(|credentials| credentials.password)
                .unwrap_or_default()
        })
    }

    #[test]
    fn servers_keep_their_password_until_they_accept_the_new_one() {
        let mut passwords = Passwords::new(Password::new("a"));
        passwords.change(Password::new("b"), [0, 1]);
        assert_eq!(used(&passwords), ["a", "a", "b"]);
        passwords.updated(0);
        passwords.change(Password::new("c"), [0, 1, 2]);
        assert_eq!(used(&passwords), ["b", "a", "b", "c"]);
        assert_eq!(passwords.outdated().collect::<Vec<_>>(), [0, 1, 2]);
    }

    #[test]
    fn a_rejected_password_is_followed_by_the_one_before_and_then_by_the_desired_one() {
        let mut passwords = Passwords::new(Password::new("a"));
        passwords.rejected(0);
        assert_eq!(used(&passwords), ["a"], "there is no other one");
        passwords.change(None, []);
        passwords.change(Password::new("c"), []);
        for expected in ["", "a", "c", ""] {
            passwords.rejected(0);
            assert_eq!(used(&passwords), [expected]);
        }
    }

    #[test]
    fn a_password_that_is_changed_back_is_the_one_of_servers_that_never_had_the_other() {
        let mut passwords = Passwords::new(Password::new("a"));
        passwords.change(None, [0, 1]);
        passwords.updated(0);
        passwords.change(Password::new("a"), [0, 1]);
        assert_eq!(used(&passwords), ["", "a"]);
        assert_eq!(passwords.outdated().collect::<Vec<_>>(), [0]);
    }
}

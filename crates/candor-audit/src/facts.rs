//! What one server reports about itself, parsed from its replies.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// What a server replied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    /// Its id in the cluster.
    pub id: String,
    /// `cluster_state:ok`, as the server reports it.
    pub ok: bool,
    /// Its role.
    pub role: Role,
    /// The slots that it claims.
    pub slots: Vec<RangeInclusive<u16>>,
    /// The config epoch of its claim.
    pub epoch: u64,
    /// Whether a slot is being imported or migrated with the legacy commands.
    pub moving: bool,
}

/// The role of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// It accepts writes.
    Primary,
    /// It replicates another server.
    Replica {
        /// The id of its primary.
        of: String,
        /// Its link is up and no full synchronization is in progress.
        linked: bool,
    },
}

/// Why a reply could not be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unread {
    /// A field that every server sends is missing.
    #[error("the answer to {command} has no {field}")]
    Missing { command: &'static str, field: &'static str },
    /// A line that does not have the format that servers use.
    #[error("this line of CLUSTER NODES is not understood: {0}")]
    Line(String),
}

impl Facts {
    /// Parses the replies to `INFO replication`, `CLUSTER INFO` and `CLUSTER NODES`.
    pub fn read(info: &str, cluster: &str, nodes: &str) -> Result<Self, Unread> {
        let info = fields(info);
        let cluster = fields(cluster);
        let missing = |command, field| Unread::Missing { command, field };
        let state = cluster.get("cluster_state");
        let ok = *state.ok_or(missing("CLUSTER INFO", "cluster_state"))? == "ok";
        let mine = nodes.lines().find(|line| flags(line).any(|flag| flag == "myself"));
        let mine = mine.ok_or(missing("CLUSTER NODES", "line of its own"))?;
        let fields: Vec<&str> = mine.split_ascii_whitespace().collect();
        let unread = || Unread::Line(mine.to_owned());
        let [id, _, _, primary, _, _, epoch, _, slots @ ..] = fields.as_slice() else {
            return Err(unread());
        };
        let role = match *info.get("role").ok_or(missing("INFO", "role"))? {
            "master" => Role::Primary,
            _ => Role::Replica {
                of: (*primary).to_owned(),
                linked: info.get("master_link_status") == Some(&"up")
                    && info.get("master_sync_in_progress") != Some(&"1"),
            },
        };
        let (marks, owned): (Vec<&str>, Vec<&str>) = slots.iter().partition(|field| field.starts_with('['));
        Ok(Self {
            id: (*id).to_owned(),
            ok,
            role,
            slots: owned.into_iter().map(range).collect::<Option<_>>().ok_or_else(unread)?,
            epoch: epoch.parse().map_err(|_| unread())?,
            moving: !marks.is_empty(),
        })
    }

    /// Whether it is a primary that owns slots.
    pub fn owns(&self) -> bool {
        self.role == Role::Primary && !self.slots.is_empty()
    }
}

/// `name:value` lines; every other line of an INFO reply is ignored.
fn fields(text: &str) -> BTreeMap<&str, &str> {
    text.lines()
        .filter_map(|line| line.trim_end().split_once(':'))
        .collect()
}

fn flags(line: &str) -> impl Iterator<Item = &str> {
    line.split_ascii_whitespace().nth(2).unwrap_or_default().split(',')
}

fn range(field: &str) -> Option<RangeInclusive<u16>> {
    let (from, to) = field.split_once('-').unwrap_or((field, field));
    let (from, to) = (from.parse().ok()?, to.parse().ok()?);
    (from <= to && to < crate::slots::SLOTS).then_some(from..=to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PRIMARY: &str = "# Replication\r\nrole:master\r\nconnected_slaves:1\r\n";
    const OK: &str = "cluster_enabled:1\r\ncluster_state:ok\r\n";

    fn line(flags: &str, rest: &str) -> String {
        format!(
            "aa 127.1.0.1:6379@16379,host {flags} - 0 0 7 connected{rest}\nbb 127.1.0.2:6379@16379 slave aa 0 0 7 connected\n"
        )
    }

    #[test]
    fn a_primary_with_ranges_and_a_single_slot() {
        let facts = Facts::read(PRIMARY, OK, &line("myself,master", " 0-5460 7000")).unwrap();
        assert_eq!(facts.slots, [0..=5460, 7000..=7000]);
        assert_eq!(
            (facts.id.as_str(), facts.epoch, facts.ok, facts.moving),
            ("aa", 7, true, false)
        );
        assert!(facts.owns());
    }

    #[test]
    fn a_slot_on_its_way_is_no_owned_slot() {
        let facts = Facts::read(PRIMARY, OK, &line("myself,master", " 0-9 [12-<-bb]")).unwrap();
        assert_eq!(facts.slots, [0..=9]);
        assert!(facts.moving);
    }

    #[test]
    fn a_replica_is_linked_when_its_link_is_up_and_no_copy_runs() {
        let nodes = "bb 127.1.0.2:6379@16379 myself,slave aa 0 0 7 connected\n";
        for (fields, linked) in [
            ("master_link_status:up\r\nmaster_sync_in_progress:0", true),
            ("master_link_status:down\r\nmaster_sync_in_progress:0", false),
            ("master_link_status:up\r\nmaster_sync_in_progress:1", false),
            ("", false),
        ] {
            let facts = Facts::read(&format!("role:slave\r\n{fields}\r\n"), OK, nodes).unwrap();
            let of = "aa".to_owned();
            assert_eq!(facts.role, Role::Replica { of, linked }, "{fields}");
        }
    }

    #[test]
    fn a_reply_without_a_required_field_is_an_error_that_names_it() {
        let error = Facts::read(PRIMARY, OK, "").unwrap_err();
        assert_eq!(error.to_string(), "the answer to CLUSTER NODES has no line of its own");
    }

    proptest! {
        #[test]
        fn no_reply_makes_the_parser_panic(info in ".*", cluster in ".*", nodes in "(myself|[ ,\\-\n0-9a-f\\[]){0,60}") {
            let _ = Facts::read(&info, &cluster, &nodes);
            let _ = Facts::read(PRIMARY, OK, &nodes);
        }
    }
}

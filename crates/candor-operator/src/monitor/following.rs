//! Tracks from probe to probe whether a replica has its primary's data.

use std::net::SocketAddr;

use tokio::time::Instant;
use valkey_admin::info::Info;
use valkey_admin::role::{Link, Role};

/// The last observed state of a replica's link.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Following {
    primary: Option<(String, u16)>,
    /// The replica was in sync when its link was last up, and has not started a full synchronization since.
    synced: bool,
    /// The highest replication offset observed.
    offset: u64,
    /// When the link was first observed down.
    lost: Option<Instant>,
}

/// A link that went down.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LinkLost {
    /// The primary's address.
    pub(super) primary: SocketAddr,
    /// When it was observed.
    pub(super) at: Instant,
}

impl Following {
    /// Evaluates a probe. A probe reports links and full synchronizations, but not offsets: `ROLE` reports -1 as soon
    /// as the link is down.
    pub(super) fn probe(&mut self, role: &Role, now: Instant) {
        let Role::Replica {
            host,
            port,
            link,
            offset,
        } = role
        else {
            *self = Self::default();
            return;
        };
        self.of(host, *port);
        match link {
            Link::Connected => {
                self.synced = true;
                self.lost = None;
                self.offset = self.offset.max(offset.unwrap_or(0));
            }
            Link::Sync => {
                self.synced = false;
                self.lost = None;
            }
            Link::Connect | Link::Connecting | Link::None => {
                self.lost.get_or_insert(now);
            }
        }
    }

    /// Evaluates a full observation, which also shows whether the replica retained its replication offset. A replica
    /// drops its offset as soon as it starts to load a full synchronization, and reports 1 (none) until it is
    /// finished. A retained offset therefore proves that none was started, even a short one between two probes.
    ///
    /// A newly started operator has no earlier probes. It trusts the replica's own report: a retained offset, together
    /// with a link that was up during the lifetime of this process.
    pub(super) fn whole(&mut self, info: &Info) -> bool {
        let Some(up) = &info.upstream else {
            *self = Self::default();
            return false;
        };
        self.of(&up.host, up.port);
        let offset = info.offset.unwrap_or(0);
        if info.in_sync() {
            (self.synced, self.lost, self.offset) = (true, None, offset);
        } else if up.link_up || up.syncing || info.loading || offset <= 1 || offset < self.offset {
            (self.synced, self.offset) = (false, 0);
        } else {
            self.synced |= up.down_since_seconds.is_some();
        }
        self.synced
    }

    /// The address of the primary.
    pub(super) fn primary(&self) -> Option<SocketAddr> {
        let (host, port) = self.primary.as_ref()?;
        Some(SocketAddr::new(host.parse().ok()?, *port))
    }

    /// The link, if it is down.
    pub(super) fn lost(&self) -> Option<LinkLost> {
        Some(LinkLost {
            primary: self.primary()?,
            at: self.lost?,
        })
    }

    /// Resets the state if the primary changed: another primary has another replication stream.
    fn of(&mut self, host: &str, port: u16) {
        let known = self.primary.as_ref();
        if known.is_none_or(|(h, p)| h != host || *p != port) {
            *self = Self {
                primary: Some((host.to_owned(), port)),
                ..Self::default()
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(link: Link, offset: i64) -> Role {
        Role::Replica {
            host: "10.0.0.1".to_owned(),
            port: 6379,
            link,
            offset: u64::try_from(offset).ok(),
        }
    }

    fn info(link: &str, syncing: u8, offset: u64, down: i64) -> Info {
        let text = format!(
            "role:slave\r\nmaster_host:10.0.0.1\r\nmaster_port:6379\r\nmaster_link_status:{link}\r\n\
             master_sync_in_progress:{syncing}\r\nslave_repl_offset:{offset}\r\nmaster_link_down_since_seconds:{down}\r\n"
        );
        Info::parse(&text).unwrap()
    }

    #[test]
    fn a_link_that_breaks_leaves_it_in_sync_and_a_copy_does_not() {
        let now = Instant::now();
        let mut observation = Following::default();
        observation.probe(&role(Link::Connected, 500), now);
        assert_eq!(observation.lost(), None);
        observation.probe(&role(Link::Connecting, -1), now);
        assert_eq!(
            observation.lost().map(|lost| lost.primary.to_string()).as_deref(),
            Some("10.0.0.1:6379")
        );
        assert!(observation.whole(&info("down", 0, 500, 0)));
        observation.probe(&role(Link::Sync, -1), now);
        assert!(!observation.whole(&info("down", 1, 500, 3)));
    }

    #[test]
    fn a_copy_that_began_and_broke_between_two_beats_is_seen_by_the_place_it_lost() {
        for offset in [0, 1, 400] {
            let mut observation = Following::default();
            observation.probe(&role(Link::Connected, 500), Instant::now());
            assert!(!observation.whole(&info("down", 0, offset, 2)), "{offset}");
        }
    }

    #[test]
    fn a_new_operator_believes_a_replica_that_was_linked_and_kept_its_place() {
        assert!(Following::default().whole(&info("down", 0, 500, 4)));
        assert!(
            !Following::default().whole(&info("down", 0, 500, -1)),
            "never linked: a place read from a file"
        );
        assert!(!Following::default().whole(&info("down", 0, 1, 4)), "no place");
    }

    #[test]
    fn another_primary_is_another_stream() {
        let mut observation = Following::default();
        observation.probe(&role(Link::Connected, 500), Instant::now());
        let other = Info::parse(
            "role:slave\r\nmaster_host:10.0.0.2\r\nmaster_port:6379\r\nmaster_link_status:down\r\nslave_repl_offset:500\r\n",
        );
        assert!(!observation.whole(&other.unwrap()));
        observation.probe(
            &Role::Primary {
                offset: 9,
                followers: Vec::new(),
            },
            Instant::now(),
        );
        assert_eq!(observation, Following::default());
    }
}

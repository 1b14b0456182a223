//! One member's state: what a server process holds in memory, and what outlives it on a disk.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Instant;

use valkey_admin::migrations::{Direction, Progress};
use valkey_admin::nodes::Mark;
use valkey_admin::{NodeId, SlotSet};

use crate::users::Users;

/// What a member is started with.
#[derive(Clone, Debug)]
pub struct Start {
    /// What it says it is: `9.1.2`.
    pub version: String,
    /// `valkey.conf`, key by key.
    pub config: BTreeMap<String, String>,
    /// `users.acl`, line by line; empty: the default user without a password.
    pub users: Vec<String>,
    /// What an earlier process left.
    pub disk: Option<Disk>,
}

impl Default for Start {
    fn default() -> Self {
        Self {
            version: "9.1.2".to_owned(),
            config: BTreeMap::new(),
            users: Vec::new(),
            disk: None,
        }
    }
}

/// What outlives a process on a volume: `nodes.conf` and the dataset.
#[derive(Clone, Debug)]
pub struct Disk {
    pub(crate) map: Map,
    pub(crate) keys: Keys,
}

/// Keys by slot: only how many.
pub type Keys = BTreeMap<u16, u64>;

/// What a node knows of the cluster.
#[derive(Clone, Debug)]
pub struct Map {
    /// Itself.
    pub id: NodeId,
    /// Its shard, which its replicas share.
    pub shard: NodeId,
    /// The primary that it replicates.
    pub primary: Option<NodeId>,
    /// What it owns.
    pub slots: SlotSet,
    /// Its own epoch.
    pub epoch: u64,
    /// The largest epoch it has seen.
    pub current_epoch: u64,
    /// The others.
    pub peers: BTreeMap<NodeId, Peer>,
    /// Slots on their way by hand.
    pub marks: BTreeMap<u16, Mark>,
}

/// Another node, as one node sees it.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools)] // the wire's own flags, each independent of the others
pub struct Peer {
    /// Where it is.
    pub ip: IpAddr,
    /// Its shard.
    pub shard: NodeId,
    /// The primary that it replicates.
    pub primary: Option<NodeId>,
    /// What it owns.
    pub slots: SlotSet,
    /// Its epoch.
    pub epoch: u64,
    /// Met, and not known yet: its id is made up.
    pub handshake: bool,
    /// Another node has its address now.
    pub no_address: bool,
    /// The link to it is up.
    pub linked: bool,
    /// Suspected.
    pub suspected: bool,
    /// Failed, by majority.
    pub failed: bool,
    /// Since when it does not answer.
    pub missed: Option<Instant>,
}

impl Peer {
    /// A node at an address.
    pub fn at(ip: IpAddr, handshake: bool) -> Self {
        Self {
            ip,
            shard: fresh_id(),
            primary: None,
            slots: SlotSet::new(),
            epoch: 0,
            handshake,
            no_address: false,
            linked: false,
            suspected: false,
            failed: false,
            missed: None,
        }
    }
}

/// How a replica stands to its primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follow {
    /// No link; `can_resync` is whether it still has its place in the stream of this run of its primary.
    Down {
        /// Since when, if it was ever up.
        since: Option<Instant>,
        /// Whether a partial sync is enough.
        can_resync: bool,
    },
    /// A copy runs.
    Copying {
        /// Until then.
        until: Instant,
    },
    /// In step.
    Up,
}

/// A slot migration.
#[derive(Clone, Debug)]
pub struct Job {
    /// Its name, the same on both sides.
    pub name: String,
    /// Which side this is.
    pub direction: Direction,
    /// What moves.
    pub slots: SlotSet,
    /// From.
    pub source: NodeId,
    /// To.
    pub target: NodeId,
    /// How it stands.
    pub progress: Progress,
    /// Why it ended so.
    pub message: String,
    /// When it is over.
    pub due: Instant,
}

/// A running server process.
#[derive(Clone, Debug)]
pub struct Node {
    /// What it knows of the cluster.
    pub map: Map,
    /// Its keys.
    pub keys: Keys,
    /// A new one for every process.
    pub run_id: String,
    /// When it began.
    pub began: Instant,
    /// What it says it is.
    pub version: String,
    /// How it follows.
    pub follow: Follow,
    /// Its place in the stream.
    pub offset: u64,
    /// Its options.
    pub config: BTreeMap<String, String>,
    /// Its users.
    pub users: Users,
    /// Nodes that are banned by `CLUSTER FORGET`, and until when.
    pub banned: BTreeMap<NodeId, Instant>,
    /// Migrations it remembers, the newest first.
    pub jobs: Vec<Job>,
    /// When it will be elected.
    pub election: Option<Instant>,
}

/// A random id.
pub(crate) fn fresh_id() -> NodeId {
    let text: String = (0..40).map(|_| fastrand::digit(16)).collect();
    text.parse().expect("40 hexadecimal digits")
}

impl Node {
    /// A process that begins.
    pub fn new(start: &Start, now: Instant) -> Self {
        let id = fresh_id();
        let map = Map {
            id,
            shard: fresh_id(),
            primary: None,
            slots: SlotSet::new(),
            epoch: 0,
            current_epoch: 0,
            peers: BTreeMap::new(),
            marks: BTreeMap::new(),
        };
        let disk = start.disk.clone().unwrap_or(Disk { map, keys: Keys::new() });
        Self {
            map: disk.map,
            keys: disk.keys,
            run_id: fresh_id().to_string(),
            began: now,
            version: start.version.clone(),
            follow: Follow::Down {
                since: None,
                can_resync: false,
            },
            offset: 1,
            config: start.config.clone(),
            users: Users::read(&start.users),
            banned: BTreeMap::new(),
            jobs: Vec::new(),
            election: None,
        }
    }

    /// What it would find on its disk.
    pub fn disk(&self) -> Disk {
        Disk {
            map: self.map.clone(),
            keys: self.keys.clone(),
        }
    }

    /// An option as a number.
    pub fn millis(&self, option: &str, default: u64) -> u64 {
        self.config
            .get(option)
            .and_then(|text| text.parse().ok())
            .unwrap_or(default)
    }

    /// How many keys it has.
    pub fn total(&self) -> u64 {
        self.keys.values().sum()
    }
}

impl Map {
    /// Who owns slots, with what, itself included.
    pub fn owners(&self) -> impl Iterator<Item = (NodeId, &SlotSet)> {
        let me = (self.id, &self.slots);
        let peers = self.peers.iter().map(|(id, peer)| (*id, &peer.slots));
        std::iter::once(me).chain(peers).filter(|(_, slots)| !slots.is_empty())
    }

    /// Slots that have an owner.
    pub fn covered(&self) -> SlotSet {
        self.owners().fold(SlotSet::new(), |all, (_, slots)| all.union(slots))
    }

    /// Whether it believes that a node has failed.
    pub fn is_failed(&self, id: NodeId) -> bool {
        self.peers.get(&id).is_some_and(|peer| peer.failed)
    }

    /// `cluster_state:ok`: every slot has an owner that has not failed, and most owners are there.
    pub fn is_ok(&self) -> bool {
        let owners: Vec<NodeId> = self.owners().map(|(id, _)| id).collect();
        let failed = |id: &&NodeId| self.peers.get(id).is_some_and(|peer| peer.failed || peer.suspected);
        let there = owners.len() - owners.iter().filter(failed).count();
        let failed: BTreeSet<NodeId> = owners.iter().copied().filter(|id| self.is_failed(*id)).collect();
        self.covered().is_full() && failed.is_empty() && there * 2 > owners.len()
    }

    /// Gives slots to a node, in this map.
    pub fn assign(&mut self, slots: &SlotSet, to: NodeId) {
        let me = self.id;
        self.slots = self.slots.difference(slots);
        for peer in self.peers.values_mut() {
            if !peer.slots.is_empty() {
                peer.slots = peer.slots.difference(slots);
            }
        }
        if to == me {
            self.slots = self.slots.union(slots);
        } else if let Some(peer) = self.peers.get_mut(&to) {
            peer.slots = peer.slots.union(slots);
        }
        self.marks
            .retain(|slot, _| valkey_admin::Slot::new(*slot).is_none_or(|slot| !slots.contains(slot)));
    }
}

//! The world: members by address, and what happens to them.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, sleep_until};
use valkey_admin::Slot;

use crate::node::{Disk, Follow, Node, Start};
use crate::wire;

/// Where members listen.
pub const PORT: u16 = 6379;

/// How fast life is. Real servers take ten to a hundred times as long.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// The interval between two rounds of gossip while maps change.
    pub gossip: Duration,
    /// A full copy.
    pub copy: Duration,
    /// From the start of an election or failover to the promotion.
    pub election: Duration,
    /// A slot migration.
    pub migration: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            gossip: Duration::from_millis(2),
            copy: Duration::from_millis(5),
            election: Duration::from_millis(5),
            migration: Duration::from_millis(5),
        }
    }
}

/// Whether a process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It does.
    Running,
    /// It is stopped: connections stay open and no command is replied to.
    Frozen,
    /// It has ended: connections are closed, and new ones are refused.
    Ended,
}

/// An injected reply of all members to a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InjectedReply {
    /// Rejected with this message.
    Reject(String),
    /// Acknowledged with OK, but not performed.
    AcknowledgeOnly,
    /// Never replied to; other commands are.
    NoReply,
}

/// An undecodable reply of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undecodable {
    /// Bytes that are not of the protocol.
    Noise,
    /// A number, whatever the command.
    WrongType,
    /// A map of the cluster without itself in it.
    MapWithoutItself,
    /// A text that never ends.
    EndlessText,
}

/// A member with its process, running or frozen.
pub(crate) struct Member {
    pub(crate) node: Node,
    pub(crate) mode: watch::Sender<Mode>,
}

impl Member {
    pub(crate) fn is(&self, mode: Mode) -> bool {
        *self.mode.borrow() == mode
    }
}

/// Everything, behind one lock.
pub(crate) struct State {
    pub(crate) timing: Timing,
    pub(crate) members: BTreeMap<IpAddr, Member>,
    /// By the beginning of the command.
    pub(crate) injected: BTreeMap<String, InjectedReply>,
    /// No member can write to its disk.
    pub(crate) disks_full: bool,
    /// Members that send bad replies.
    pub(crate) garbled: BTreeMap<IpAddr, Undecodable>,
}

impl State {
    /// The injected reply to a command, if any.
    pub(crate) fn injected_reply(&self, arguments: &[String]) -> Option<InjectedReply> {
        let command = arguments.join(" ").to_ascii_uppercase();
        let struck = self.injected.iter().find(|(begin, _)| command.starts_with(*begin));
        struck.map(|(_, reply)| reply.clone())
    }
}

pub(crate) struct Inner {
    state: Mutex<State>,
    changed: Notify,
    pub(crate) commands: AtomicU64,
}

impl Inner {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a round of gossip: something changed.
    pub(crate) fn wake_gossip(&self) {
        self.changed.notify_one();
    }
}

/// A handle of the world; it ends with the last one.
#[derive(Clone)]
pub struct World(Arc<Inner>);

impl World {
    /// An empty world.
    pub fn new(timing: Timing) -> Self {
        let inner = Arc::new(Inner {
            state: Mutex::new(State {
                timing,
                members: BTreeMap::new(),
                injected: BTreeMap::new(),
                disks_full: false,
                garbled: BTreeMap::new(),
            }),
            changed: Notify::new(),
            commands: AtomicU64::new(0),
        });
        tokio::spawn(gossip(Arc::downgrade(&inner), timing.gossip));
        Self(inner)
    }

    /// A free address. The process id keeps programs apart, the counter worlds.
    pub fn address() -> IpAddr {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        loop {
            let [_, _, high, low] = NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes();
            let block = 128 + u8::try_from(std::process::id() % 96).unwrap_or(0);
            let ip = Ipv4Addr::new(127, block, high, low);
            if low != 0 && low != 255 && std::net::TcpListener::bind((ip, PORT)).is_ok() {
                return ip.into();
            }
        }
    }

    /// Starts a member; when this returns it answers.
    pub async fn start(&self, ip: IpAddr, start: &Start) -> io::Result<()> {
        let listener = TcpListener::bind((ip, PORT)).await?;
        let (mode, watched) = watch::channel(Mode::Running);
        let node = Node::new(start, Instant::now());
        let before = self.0.state().members.insert(ip, Member { node, mode });
        if let Some(before) = before {
            before.mode.send_replace(Mode::Ended);
        }
        tokio::spawn(wire::serve(listener, ip, Arc::downgrade(&self.0), watched));
        self.0.wake_gossip();
        Ok(())
    }

    /// Kills a member; returns what it left on its disk, for a member with a volume.
    pub fn kill(&self, ip: IpAddr) -> Option<Disk> {
        let member = self.0.state().members.remove(&ip)?;
        member.mode.send_replace(Mode::Ended);
        self.0.wake_gossip();
        Some(member.node.disk())
    }

    /// Ends a member as SIGTERM does: with `shutdown-on-sigterm failover` a primary fails over first.
    pub fn stop(&self, ip: IpAddr) -> Option<Disk> {
        let mut state = self.0.state();
        let node = &state.members.get(&ip)?.node;
        let fails_over_first = node
            .config
            .get("shutdown-on-sigterm")
            .is_some_and(|how| how.contains("failover"));
        let id = node.map.id;
        let candidate = state.members.iter().find(|(_, other)| {
            other.node.map.primary == Some(id) && other.node.follow == Follow::Up && other.is(Mode::Running)
        });
        if let Some(candidate) = candidate.map(|(candidate, _)| *candidate).filter(|_| fails_over_first) {
            state.promote(candidate);
        }
        drop(state);
        self.kill(ip)
    }

    /// Stops a member's process: it keeps its connections and answers nothing.
    pub fn freeze(&self, ip: IpAddr) {
        self.switch(ip, Mode::Frozen);
    }

    /// Lets it go on.
    pub fn thaw(&self, ip: IpAddr) {
        self.switch(ip, Mode::Running);
    }

    fn switch(&self, ip: IpAddr, mode: Mode) {
        if let Some(member) = self.0.state().members.get(&ip) {
            member.mode.send_replace(mode);
        }
        self.0.wake_gossip();
    }

    /// Fills every member's disk, or makes room again.
    pub fn fill_disks(&self, full: bool) {
        self.0.state().disks_full = full;
    }

    /// Makes a member send bad replies from now on, or good ones again.
    pub fn garble(&self, ip: IpAddr, undecodable: Option<Undecodable>) {
        let garbled = &mut self.0.state().garbled;
        match undecodable {
            Some(undecodable) => drop(garbled.insert(ip, undecodable)),
            None => drop(garbled.remove(&ip)),
        }
    }

    /// Gives every command with this prefix (`CLUSTER MEET`) the injected reply from now on.
    pub fn inject(&self, command: &str, reply: InjectedReply) {
        self.0.state().injected.insert(command.to_ascii_uppercase(), reply);
    }

    /// Removes all injected replies.
    pub fn clear_injected(&self) {
        self.0.state().injected.clear();
    }

    /// Writes so many new keys of a slot at a member, if it owns the slot.
    pub fn write(&self, ip: IpAddr, slot: Slot, keys: u64) -> bool {
        let mut state = self.0.state();
        let Some(member) = state.members.get_mut(&ip) else {
            return false;
        };
        if !member.node.map.slots.contains(slot) || !member.is(Mode::Running) {
            return false;
        }
        *member.node.keys.entry(slot.get()).or_default() += keys;
        member.node.offset += keys;
        drop(state);
        self.0.wake_gossip();
        true
    }

    /// Reads the state of a member; none if no member runs there.
    pub fn inspect<T>(&self, ip: IpAddr, at: impl FnOnce(&Node) -> T) -> Option<T> {
        self.0.state().members.get(&ip).map(|member| at(&member.node))
    }

    /// The addresses of the members.
    pub fn members(&self) -> Vec<IpAddr> {
        self.0.state().members.keys().copied().collect()
    }

    /// How many commands were answered so far.
    pub fn commands(&self) -> u64 {
        self.0.commands.load(Ordering::Relaxed)
    }
}

/// Runs rounds of gossip as long as the world exists.
async fn gossip(world: Weak<Inner>, interval: Duration) {
    loop {
        let Some(inner) = world.upgrade() else { return };
        let round = inner.state().round(Instant::now());
        let next = round.next().map(tokio::time::Instant::from_std);
        if round.changed {
            drop(inner);
            sleep(interval).await;
            continue;
        }
        let longest = tokio::time::Instant::now() + Duration::from_secs(1);
        tokio::select! {
            () = inner.changed.notified() => {}
            () = sleep_until(next.unwrap_or(longest).min(longest)) => {}
        }
    }
}

//! What was seen, in one instant. "No answer" is a value here, never an absence: what is not known must not be taken
//! for empty.

use std::collections::BTreeMap;
use std::net::IpAddr;

use jiff::Timestamp;
use valkey_admin::migrations::Migration;
use valkey_admin::{ClusterNodes, NodeEntry, NodeId, SlotSet, Version};

use crate::model::{MemberRef, ShardIndex};

/// Everything that is known about a cluster right now.
#[derive(Clone, Debug, Default)]
pub struct Observation {
    /// Every member that is wanted, has an object, or is remembered.
    pub members: BTreeMap<MemberRef, Member>,
    /// Why pods could not be listed; then nothing about pods is known.
    pub pods_unknown: Option<String>,
    /// Why no server can be asked anything, and what a person can do about it; then nothing about members is known.
    pub locked_out: Option<String>,
    /// Whether the objects of the whole cluster (Services, ConfigMap, Secrets …) are as wanted.
    pub objects_ready: bool,
    /// What keeps the first object from being made: "Secret shop-users is missing".
    pub missing: Vec<String>,
    /// The cluster is being deleted.
    pub deleting: bool,
    /// What is wrong with the spec, where only the operator can judge it.
    pub problems: Vec<Problem>,
    /// Why Secrets that the spec names could not be read; then nothing can be said of what is to be made of them.
    pub secrets_unread: Option<String>,
    /// Whether what members would be restarted into was seen to start.
    pub trial: Trial,
    /// A pod of a trial is there that nobody needs any more.
    pub old_trial: bool,
}

/// What is known of the pod that is made and thrown away before members are restarted into the like of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Trial {
    /// Nothing is to be tried: a roll would change nothing of pods that a trial could tell anything of.
    #[default]
    Needless,
    /// It is to be made.
    Missing {
        /// What it tries.
        template: String,
    },
    /// It has no answer yet.
    UnderWay,
    /// It started: members can be rolled.
    Passed,
    /// It cannot run, and so could no member.
    Refused {
        /// Why.
        trouble: Trouble,
        /// Nobody works on it any more, and only a new one can tell whether that is still so.
        stale: bool,
    },
}

/// Something in the spec that cannot be done, in words a person can act on. Running members are left as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Which part of the spec.
    pub about: About,
    /// What is wrong and what to write instead.
    pub words: String,
}

/// The parts of a spec that a problem can be about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum About {
    /// `config`, TLS, containers, scheduling: how servers are to be run.
    Configuration,
    /// `users` and their Secrets.
    Users,
    /// `persistence`.
    Storage,
}

/// One member.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Member {
    /// Its Deployment or StatefulSet.
    pub workload: Workload,
    /// Its pod; the living one where there are two for a moment.
    pub pod: Option<Pod>,
    /// Its volume.
    pub volume: Volume,
    /// How the claim on its volume stands.
    pub claim: Claim,
    /// The node of the pod that status remembers was heard from after that pod was gone, or is deleted or tainted
    /// out-of-service: what ran there has terminated. Asked only while the shard has no primary. A pod that vanished
    /// from an unreachable node proves nothing.
    pub last_node_believed: bool,
    /// The uids of its pods whose server was reported terminated for good: they are being deleted, deleted or failed, so
    /// that no kubelet starts it again.
    pub terminated_pods: Vec<String>,
    /// Addresses of its other pods, where it has two for a moment.
    pub other_addresses: Vec<IpAddr>,
    /// In one of those a server may still run: one that cannot be reached, on a machine that is cut off, serves those
    /// who are cut off with it.
    pub lingers: bool,
    /// Its server.
    pub server: Server,
    /// Whether its server accepts the operator's user.
    pub login: Login,
    /// What came of what its server said, where that cannot be understood, while others can be.
    pub nonsense: Option<String>,
}

/// A member's workload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Workload {
    /// Not there.
    #[default]
    Absent,
    /// There, and not as wanted.
    Outdated,
    /// There, as wanted.
    Current,
    /// Being deleted.
    Leaving,
}

/// A member's volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Volume {
    /// None: data lives in memory.
    #[default]
    None,
    /// There, with whatever it holds.
    Kept,
    /// There, and proved to have owned no slots when its member left.
    Drained,
}

/// How a claim on a volume stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Claim {
    /// There is none.
    #[default]
    Absent,
    /// It waits for a volume; with what is known of why.
    Pending(String),
    /// It has its volume, of the size that is wanted.
    Bound,
    /// It is smaller than wanted and was not told yet.
    TooSmall,
    /// It grows.
    Resizing,
    /// It cannot be had or cannot grow, in the words of whoever said so.
    Failed(String),
}

/// A member's pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // facts that are independent of each other
pub struct Pod {
    /// Its name.
    pub name: String,
    /// Its uid: a pod that is made again has another one under the same name.
    pub uid: String,
    /// The Kubernetes node that it was bound to.
    pub node: Option<String>,
    /// Its address, once it has one.
    pub ip: Option<IpAddr>,
    /// It runs what the workload wants.
    pub current: bool,
    /// It is being deleted.
    pub leaving: bool,
    /// Kubernetes reported the server's container as ended: proof of death.
    pub ended: bool,
    /// It was reported as ended and runs again, and what runs in it has never answered its kubelet: the process before
    /// it is dead, and this one serves nobody yet.
    pub restarted: bool,
    /// Its node was heard from after its container was reported terminated, or is gone for good: the report is not
    /// outdated. Asked only where nothing else tells.
    pub node_believed: bool,
    /// Its node takes no new pods: it is being drained, or will be.
    pub node_closed: bool,
    /// Why it cannot run: the scheduler's or the kubelet's words.
    pub trouble: Option<Trouble>,
}

/// Why a pod does not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Nowhere to run, in the scheduler's words.
    Unschedulable(String),
    /// It does not start: image, configuration, crash; in the kubelet's words.
    NotStarting(String),
}

/// What its server said, or did not say.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Server {
    /// It has no address yet.
    #[default]
    Nowhere,
    /// Nobody listens at its address, and an open connection was closed before: the process is gone.
    Dead {
        /// Since when.
        since: Timestamp,
    },
    /// It does not answer: frozen, slow, unreachable. Nothing is proved.
    Silent {
        /// Since when.
        since: Timestamp,
    },
    /// It answered.
    Up(Box<Facts>),
}

/// Whether a server accepts the operator's user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Login {
    /// It does, or that is not known.
    #[default]
    Accepted,
    /// It does not, and it may be a server of another cluster.
    Rejected,
    /// It does not, it is proven to be a member, and it lets the operator set its user again.
    Repairable,
}

/// What a server said.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::struct_excessive_bools)] // facts that are independent of each other
pub struct Facts {
    /// Its id.
    pub id: NodeId,
    /// The cluster as it sees it, itself included.
    pub map: ClusterNodes,
    /// `cluster_state:ok`.
    pub ok: bool,
    /// It reads a dataset.
    pub loading: bool,
    /// For a replica: link up and no copy running.
    pub in_sync: bool,
    /// For a replica: it was in sync when its link was last up, and has not begun a copy since.
    pub was_in_sync: bool,
    /// Keys it holds.
    pub keys: u64,
    /// Its place in the replication stream.
    pub offset: u64,
    /// The node timeout it runs with.
    pub node_timeout: u64,
    /// What it is; unknown until it said so.
    pub version: Option<Version>,
    /// A new one with every start of the process.
    pub run_id: String,
    /// For a replica: its own link to its primary is down.
    pub link_down: bool,
    /// Whether it runs with the wanted configuration, as far as that can be set while it runs.
    pub config: Applied,
    /// Whether it has the wanted users.
    pub users: Applied,
    /// Whether it serves the wanted certificate.
    pub certificate: Applied,
    /// It cannot write to its disk, in its own words: as a primary it refuses every write then.
    pub disk_failed: Option<String>,
    /// Slot migrations it remembers (Valkey 9 and later), the newest first.
    pub migrations: Vec<Migration>,
}

/// Whether something that is set at run time is as wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Applied {
    /// It is.
    #[default]
    Yes,
    /// Not yet.
    No,
    /// The server will not have it, in its own words.
    Refused(String),
}

impl Facts {
    /// A server that said who it is and whom it knows, and nothing else of note.
    pub fn new(id: NodeId, map: ClusterNodes) -> Self {
        Self {
            id,
            map,
            ok: false,
            loading: false,
            in_sync: false,
            was_in_sync: false,
            keys: 0,
            offset: 0,
            node_timeout: 0,
            version: None,
            run_id: String::new(),
            link_down: false,
            config: Applied::Yes,
            users: Applied::Yes,
            certificate: Applied::Yes,
            disk_failed: None,
            migrations: Vec::new(),
        }
    }

    /// Its own line in its own map.
    pub fn me(&self) -> Option<&NodeEntry> {
        self.map.get(self.id)
    }

    /// Whether it calls itself a primary.
    pub fn is_primary(&self) -> bool {
        self.me().is_some_and(|me| me.flags.primary)
    }

    /// What it owns, by its own word.
    pub fn slots(&self) -> SlotSet {
        self.me().map(|me| me.slots.clone()).unwrap_or_default()
    }

    /// It knows nobody but itself, has no slots and no keys: it can be joined to any cluster without harm. One that
    /// still reads its dataset counts no keys yet, and proves nothing by that.
    pub fn is_blank(&self) -> bool {
        self.map.0.len() <= 1 && self.slots().is_empty() && self.keys == 0 && !self.loading
    }

    /// Whether it knows another node and is past the handshake with it.
    pub fn knows(&self, id: NodeId) -> bool {
        self.map
            .get(id)
            .is_some_and(|entry| !entry.flags.handshake && !entry.flags.no_address)
    }
}

impl Member {
    /// Whether anything of it is there: a workload, a pod, a volume, a server that answers.
    pub fn exists(&self) -> bool {
        self.workload != Workload::Absent
            || self.pod.is_some()
            || self.volume != Volume::None
            || self.server != Server::Nowhere
    }

    /// What its server said, if it spoke.
    pub fn facts(&self) -> Option<&Facts> {
        match &self.server {
            Server::Up(facts) => Some(facts),
            _ => None,
        }
    }

    /// Its address.
    pub fn ip(&self) -> Option<IpAddr> {
        self.pod.as_ref().and_then(|pod| pod.ip)
    }

    /// Its pod is not on its way out, and on no machine that is being drained.
    pub fn stays(&self) -> bool {
        self.pod.as_ref().is_none_or(|pod| !pod.node_closed && !pod.leaving)
    }
}

impl Observation {
    /// Members whose server answered.
    pub fn answering(&self) -> impl Iterator<Item = (MemberRef, &Facts)> {
        self.members
            .iter()
            .filter_map(|(at, member)| Some((*at, member.facts()?)))
    }

    /// The member with this id.
    pub fn with_id(&self, id: NodeId) -> Option<MemberRef> {
        self.answering().find(|(_, facts)| facts.id == id).map(|(at, _)| at)
    }

    /// The members of one shard.
    pub fn shard(&self, shard: ShardIndex) -> impl Iterator<Item = (MemberRef, &Member)> {
        self.members
            .iter()
            .filter(move |(at, _)| at.shard == shard)
            .map(|(at, member)| (*at, member))
    }

    /// The answering primary of a shard: the one that owns slots by its own word, with the newest epoch where two
    /// claim it; else none.
    pub fn primary(&self, shard: ShardIndex) -> Option<(MemberRef, &Facts)> {
        let owners = self.shard(shard).filter_map(|(at, member)| Some((at, member.facts()?)));
        owners
            .filter(|(_, facts)| facts.is_primary() && !facts.slots().is_empty())
            .max_by_key(|(at, facts)| (facts.me().map(|me| me.epoch), std::cmp::Reverse(*at)))
    }

    /// Who owns which slots: the answering primaries' own words.
    pub fn owners(&self) -> BTreeMap<ShardIndex, SlotSet> {
        let shards: std::collections::BTreeSet<ShardIndex> = self.members.keys().map(|at| at.shard).collect();
        shards
            .into_iter()
            .map(|shard| {
                (
                    shard,
                    self.primary(shard).map(|(_, facts)| facts.slots()).unwrap_or_default(),
                )
            })
            .collect()
    }
}

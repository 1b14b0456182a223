//! The observed state at one instant. "No answer" is a value here, never an absence: unknown must not be treated as
//! empty.

mod orphan;

pub use orphan::{Orphan, OrphanedPod};

use std::collections::BTreeMap;
use std::net::IpAddr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use valkey_admin::migrations::Migration;
use valkey_admin::{ClusterNodes, NodeEntry, NodeId, SlotSet, Version};

use crate::model::{MemberRef, ShardIndex};

/// Everything that is known about a cluster now.
#[derive(Clone, Debug, Default)]
pub struct Observation {
    /// Every member that is desired, has an object, or is remembered in status.
    pub members: BTreeMap<MemberRef, Member>,
    /// Why pods could not be listed. If set, nothing about pods is known.
    pub pods_unknown: Option<String>,
    /// The Secret with the operator's own credentials. If they are lost, nothing about members is known.
    pub credentials: Credentials,
    /// Whether the objects of the whole cluster (Services, `ConfigMap`, Secrets …) match the desired state.
    pub objects_ready: bool,
    /// What prevents creating the first object: "Secret shop-users is missing".
    pub missing: Vec<String>,
    /// The cluster is being deleted.
    pub deleting: bool,
    /// Problems in the spec that only the operator can detect.
    pub problems: Vec<Problem>,
    /// Why Secrets that the spec names could not be read. If set, nothing that depends on them can be built.
    pub secrets_unread: Option<String>,
    /// Whether a pod of the template that members would be rolled to has started.
    pub preflight: Preflight,
    /// A preflight pod exists that is no longer needed.
    pub old_preflight: bool,
    /// Names of the pods at the addresses of unknown nodes in the cluster map.
    pub pods_at: BTreeMap<IpAddr, String>,
}

/// The Secret with the operator's own credentials.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Credentials {
    /// It exists.
    #[default]
    Stored,
    /// It does not exist, and can be created: this process knows its content, or no server was given any.
    Missing,
    /// Servers have credentials that are lost.
    Lost {
        /// Why, and what a user can do about it.
        message: String,
        /// Whether a proven member lets the operator set new ones.
        recoverable: bool,
    },
}

/// The state of the preflight pod: it is created and deleted before members are restarted with the same template.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Preflight {
    /// No preflight is needed: a rolling update would change nothing about pods that a preflight pod could verify.
    #[default]
    Needless,
    /// It has to be created.
    Missing {
        /// The template that it verifies.
        template: String,
    },
    /// It has neither started nor failed yet.
    UnderWay,
    /// It started: members can be rolled.
    Passed,
    /// It cannot run, so no member could either.
    Rejected {
        /// Why.
        trouble: Trouble,
        /// The pod has ended, some time ago. Only a new preflight pod can show whether the problem persists.
        stale: bool,
    },
}

/// A part of the spec that cannot be carried out, with a message that a user can act on. Running members are left as
/// they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Which part of the spec.
    pub about: About,
    /// What is wrong and how to correct it.
    pub message: String,
}

/// The parts of a spec that a problem can be about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum About {
    /// `config`, TLS, containers, scheduling: how servers run.
    Configuration,
    /// `users` and their Secrets.
    Users,
    /// `persistence`.
    Storage,
}

/// One member.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Member {
    /// Its Deployment or `StatefulSet`.
    pub workload: Workload,
    /// Its pod; the one that is not terminating if there are two for a moment.
    pub pod: Option<Pod>,
    /// Its volume.
    pub volume: Volume,
    /// The state of the claim on its volume.
    pub claim: Claim,
    /// The uid of that claim: a claim that is recreated under the same name has another volume.
    pub claim_uid: String,
    /// Whether the last pod's node confirms that the pod has terminated: the node was heard from after the pod was
    /// gone, or the node is deleted or tainted out-of-service. Queried only while the shard has no primary. A pod that
    /// vanished from an unreachable node proves nothing.
    pub last_node_believed: bool,
    /// The uids of its pods in which the server is confirmed terminated. These pods are being deleted, deleted or
    /// failed, so no kubelet restarts the server.
    pub terminated_pods: Vec<String>,
    /// Addresses of its other pods, if it has two for a moment.
    pub other_addresses: Vec<IpAddr>,
    /// A server may still be running in one of the other pods. On a partitioned node it is unreachable for the
    /// operator and still serves clients in the same partition.
    pub may_run_elsewhere: bool,
    /// The pod that it last ran in, if that pod lost its labels.
    pub orphan: Orphan,
    /// Its server.
    pub server: Server,
    /// Whether its server accepts the operator's user.
    pub login: Login,
    /// Decode error for this member, if other members' replies could be decoded.
    pub undecodable: Option<String>,
}

/// A member's workload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Workload {
    /// It does not exist.
    #[default]
    Absent,
    /// It exists and does not match the desired state.
    Outdated,
    /// It exists and matches the desired state.
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
    /// It exists, and may hold data.
    Kept,
    /// It exists, and its member was proven to own no slots when it left.
    Drained,
}

/// The state of a claim on a volume.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Claim {
    /// There is none.
    #[default]
    Absent,
    /// It waits for a volume; with the reason as far as it is known.
    Pending(String),
    /// It has its volume, of the desired size.
    Bound,
    /// It is smaller than desired, and no expansion was requested yet.
    TooSmall,
    /// It is being expanded.
    Resizing,
    /// It cannot be bound or expanded, with the message of the component that rejected it.
    Failed(String),
}

/// A member's pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // facts that are independent of each other
pub struct Pod {
    /// Its name.
    pub name: String,
    /// Its uid: a pod that is recreated under the same name has another uid.
    pub uid: String,
    /// The Kubernetes node that it was bound to.
    pub node: Option<String>,
    /// Its address, once it has one.
    pub ip: Option<IpAddr>,
    /// It runs the template of its workload.
    pub current: bool,
    /// It is being deleted.
    pub leaving: bool,
    /// Kubernetes reported the server's container as terminated: evidence that the process is gone.
    pub ended: bool,
    /// The container was reported terminated and runs again, and the new process has not passed its startup probe yet.
    /// The previous process is gone, and the new one does not serve clients yet.
    pub restarted: bool,
    /// Its node was heard from after its container was reported terminated, or the node is removed for good: the
    /// report is not stale. Queried only if there is no other evidence.
    pub node_believed: bool,
    /// Its node is cordoned: it is being drained, or will be.
    pub cordoned: bool,
    /// The zone of its node, empty if the node has none; `None` while nothing is known about the node.
    pub zone: Option<String>,
    /// Why it cannot run: the message of the scheduler or the kubelet.
    pub trouble: Option<Trouble>,
}

/// Why a pod does not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It cannot be scheduled, with the scheduler's message.
    Unschedulable(String),
    /// It does not start: image, configuration, crash; with the kubelet's message.
    NotStarting(String),
}

impl Trouble {
    /// The message of the scheduler or of the kubelet.
    pub fn message(&self) -> &str {
        match self {
            Self::Unschedulable(message) | Self::NotStarting(message) => message,
        }
    }
}

/// The state of a member's server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum Server {
    /// It has no address yet.
    #[default]
    Nowhere,
    /// It refuses connections, and an open connection was closed before: the process is gone.
    Dead {
        /// Since when.
        since: Timestamp,
    },
    /// It does not respond: frozen, slow or unreachable. Nothing is proven.
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
    /// It does, or it is not known.
    #[default]
    Accepted,
    /// It does not, and it may be a server of another cluster.
    Rejected,
    /// It does not, it is proven to be a member, and it lets the operator set its user again.
    Repairable,
}

/// What a server reported.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(clippy::struct_excessive_bools)] // facts that are independent of each other
pub struct Facts {
    /// Its id.
    pub id: NodeId,
    /// Its cluster map, itself included.
    pub map: ClusterNodes,
    /// `cluster_state:ok`.
    pub ok: bool,
    /// It loads a dataset.
    pub loading: bool,
    /// For a replica: the link is up and no full sync is running.
    pub in_sync: bool,
    /// For a replica: it was in sync when its link was last up, and has not started a full sync since.
    pub was_in_sync: bool,
    /// Keys it holds.
    pub keys: u64,
    /// The memory it uses.
    #[serde(default)]
    pub memory: MemoryUse,
    /// Its replication offset.
    pub offset: u64,
    /// The node timeout it runs with.
    pub node_timeout: u64,
    /// Its version; unknown until it reports one.
    pub version: Option<Version>,
    /// Its run id: every start of the process has a new one.
    pub run_id: String,
    /// For a replica: its own link to its primary is down.
    pub link_down: bool,
    /// Whether it runs with the desired configuration, as far as it can be set at run time.
    pub config: Applied,
    /// Whether it has the desired users.
    pub users: Applied,
    /// Whether it serves the desired certificate.
    pub certificate: Applied,
    /// The error of its last write to disk, if it cannot write: a primary rejects every write then.
    pub disk_failed: Option<String>,
    /// Slot migrations it remembers (Valkey 9 and later), newest first.
    pub migrations: Vec<Migration>,
}

/// The memory of a server, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryUse {
    /// In use.
    pub used: u64,
    /// `maxmemory`; 0 is no limit.
    pub limit: u64,
}

impl MemoryUse {
    /// The bytes that are left; none if there is no limit.
    pub fn free(self) -> Option<u64> {
        (self.limit > 0).then(|| self.limit.saturating_sub(self.used))
    }
}

/// Whether a run-time setting matches the desired state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Applied {
    /// It is.
    #[default]
    Yes,
    /// Not yet.
    No,
    /// The server rejected it, with this message.
    Rejected(String),
}

impl Facts {
    /// A server that reported its id and its cluster map, with defaults for everything else.
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
            memory: MemoryUse::default(),
            migrations: Vec::new(),
        }
    }

    /// Its own entry in its cluster map.
    pub fn me(&self) -> Option<&NodeEntry> {
        self.map.get(self.id)
    }

    /// Whether it reports itself as a primary.
    pub fn is_primary(&self) -> bool {
        self.me().is_some_and(|me| me.flags.primary)
    }

    /// The slots that it reports as its own.
    pub fn slots(&self) -> SlotSet {
        self.me().map(|me| me.slots.clone()).unwrap_or_default()
    }

    /// It reports ok, and its own map has an owner for every slot. With `cluster-require-full-coverage no` a server
    /// reports ok with holes in its map.
    pub fn serves_all(&self) -> bool {
        self.ok && self.map.covered().is_full()
    }

    /// It knows no other node and has no slots and no keys: it can join any cluster without harm. A server that still
    /// loads its dataset reports no keys yet, so that proves nothing.
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
    /// Whether the member exists in any form: a workload, a pod, a volume, or a server with an address.
    pub fn exists(&self) -> bool {
        self.workload != Workload::Absent
            || self.pod.is_some()
            || self.volume != Volume::None
            || self.server != Server::Nowhere
    }

    /// What its server reported, if it responded.
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

    /// Its pod is neither terminating nor on a cordoned node.
    pub fn stays(&self) -> bool {
        self.pod.as_ref().is_none_or(|pod| !pod.cordoned && !pod.leaving)
    }
}

impl Observation {
    /// Members with a server that responded.
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

    /// The responding primary of a shard: the member that reports slots as its own, with the newest epoch if two
    /// members claim them; else none.
    pub fn primary(&self, shard: ShardIndex) -> Option<(MemberRef, &Facts)> {
        let owners = self.shard(shard).filter_map(|(at, member)| Some((at, member.facts()?)));
        owners
            .filter(|(_, facts)| facts.is_primary() && !facts.slots().is_empty())
            .max_by_key(|(at, facts)| (facts.me().map(|me| me.epoch), std::cmp::Reverse(*at)))
    }

    /// Slots that have an owner in the map of a responding member. A server keeps the owner of a slot until another
    /// server claims it, even when the owner itself has dropped the slot: a node in whose own map the slot
    /// has no owner is not its owner.
    pub fn claimed(&self) -> SlotSet {
        let maps = || self.answering().map(|(_, facts)| facts);
        let covered: BTreeMap<NodeId, SlotSet> = maps().map(|facts| (facts.id, facts.map.covered())).collect();
        let owners = maps()
            .flat_map(|facts| &facts.map.0)
            .filter(|entry| !entry.slots.is_empty());
        owners.fold(SlotSet::new(), |all, entry| match covered.get(&entry.id) {
            Some(covered) if !covered.is_full() => all.union(&entry.slots.intersection(covered)),
            _ => all.union(&entry.slots),
        })
    }

    /// Which shard owns which slots, as the responding primaries report it.
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

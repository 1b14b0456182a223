//! Executes steps on servers.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use candor_engine::model::MemberRef;
use candor_engine::observation::{Member, Observation};
use candor_engine::outcome::Failure;
use candor_engine::slots::SlotMove;
use candor_engine::step::{FailoverBy, Step};
use valkey_admin::capability::{Capabilities, MoveBy};
use valkey_admin::client::{Credentials, Deadlines, Failover, Node, NodeError, SetSlot};
use valkey_admin::mover::{Advance, Legacy, Move, MoveError, Primaries, Push, SlotMover};
use valkey_admin::{NodeId, SlotSet};

use crate::credentials::presented::Served;
use crate::monitor::Monitor;
use crate::objects::{PORT, Settings, migrator};
use crate::observe::applied::{AppliedSettings, Process};
use crate::runtime::cache::ClusterKey;

/// Factor for the time budget of a turn that moves keys: it connects as another user first.
const KEYS_TURN: u32 = 2;
/// Response timeout of a server while it sends keys.
const KEYS_WITHIN: Duration = Duration::from_secs(3);

/// Why a step failed on a server.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The member has no address.
    #[error("member {0} has no address; its pod must run first")]
    Nowhere(MemberRef),
    /// The server failed or rejected the command.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// The slot mover could not complete a turn.
    #[error(transparent)]
    Mover(#[from] MoveError),
    /// The server aborted a slot migration, with its error message.
    #[error("{0} slots could not be moved: {1}")]
    Moves(usize, String),
}

impl ServerError {
    /// Whether there was no response: the command may have been executed.
    pub fn is_unanswered(&self) -> bool {
        match self {
            Self::Nowhere(_) => true,
            Self::Node(error) | Self::Mover(MoveError::Node(error)) => error.is_unanswered(),
            Self::Mover(MoveError::UnknownNode(_)) | Self::Moves(..) => false,
        }
    }
}

impl From<ServerError> for Failure {
    fn from(error: ServerError) -> Self {
        if error.is_unanswered() {
            Self::unanswered(error.to_string())
        } else {
            Self::rejected(error.to_string())
        }
    }
}

/// How to access keys, and how a source authenticates at a destination when keys are moved individually.
#[derive(Clone)]
pub enum KeyAccess {
    /// As a user that exists only for this: the operator's own user may not access keys.
    OwnUser(Credentials),
    /// As the same user as for all commands, with this password if there is one.
    SameUser(Option<Credentials>),
}

/// The servers of one cluster, as this reconcile observed them.
pub struct Servers<'a> {
    pub key: &'a ClusterKey,
    pub monitor: &'a Monitor,
    pub observation: &'a Observation,
    pub applied: &'a AppliedSettings,
    pub served: &'a Served,
    pub settings: Option<&'a Settings>,
    /// How to access keys.
    pub keys: KeyAccess,
    /// The member monitor's name of a member.
    pub place: fn(MemberRef) -> MemberRef,
    pub budget: Duration,
    /// Called with the number of slots that moved.
    pub moved: Arc<dyn Fn(usize) + Send + Sync>,
}

/// The error of a primary that receives `CLUSTER FAILOVER`.
const TO_A_REPLICA: &str = "should send CLUSTER FAILOVER to a replica";

impl Servers<'_> {
    /// Executes one step; does nothing for steps that do not concern servers.
    pub async fn act(&self, step: &Step) -> Result<(), ServerError> {
        match step {
            Step::SetNodeTimeout { member, millis } => {
                let millis = millis.to_string();
                self.node(*member)?
                    .config_set(&[("cluster-node-timeout", &millis)])
                    .await?;
            }
            Step::Meet { at, with } | Step::Announce { at, to: with } => {
                let ip = self.observation.members.get(with).and_then(Member::ip);
                let ip = ip.ok_or(ServerError::Nowhere(*with))?;
                self.node(*at)?.meet(ip, PORT).await?;
            }
            Step::AddSlots { member, slots } => self.node(*member)?.add_slots(slots).await?,
            Step::Replicate { member, primary } => self.node(*member)?.replicate(*primary).await?,
            Step::Failover { to, by } => match self.node(*to)?.failover(how(*by)).await {
                // Already the primary: an earlier order was executed after the observation.
                Err(error)
                    if error
                        .server_message()
                        .is_some_and(|message| message.contains(TO_A_REPLICA)) => {}
                other => other?,
            },
            Step::MoveSlots { moves, legacy } => self.advance(moves, *legacy).await?,
            Step::Stabilize { member, slots } => {
                let node = self.node(*member)?;
                for slot in slots.iter() {
                    node.set_slot(slot, SetSlot::Stable).await?;
                }
            }
            Step::Configure(member) => {
                if let Some((settings, process)) = self.settings.zip(self.process(*member)) {
                    self.applied.configure(&self.node(*member)?, process, settings).await?;
                }
            }
            Step::ApplyUsers(member) => {
                if let Some((settings, process)) = self.settings.zip(self.process(*member)) {
                    self.applied
                        .apply_users(&self.node(*member)?, process, settings)
                        .await?;
                }
            }
            Step::Forget { at, node } => match self.node(*at)?.forget(*node).await {
                // Already forgotten: by an earlier attempt that lost its response, or by the server itself.
                Err(error)
                    if error
                        .server_message()
                        .is_some_and(|message| message.contains("Unknown node")) => {}
                other => other?,
            },
            Step::Reset(member) => {
                let node = self.node(*member)?;
                // A replica rejects FLUSHALL, but a reset empties it.
                let facts = self.observation.members.get(member).and_then(Member::facts);
                if facts.is_none_or(candor_engine::observation::Facts::is_primary) {
                    let keys = self.with_keys(&node).await?;
                    keys.flush_all(Duration::from_secs(5)).await?;
                }
                node.reset(true).await?;
                self.without_keys(*member, &node).await?;
            }
            Step::ReloadCertificate(member) => {
                let names = ["tls-cert-file", "tls-key-file", "tls-ca-cert-file"];
                let paths = ["/tls/tls.crt", "/tls/tls.key", "/tls/ca.crt"];
                let options: Vec<(&str, &str)> = names.into_iter().zip(paths).collect();
                // Setting the same path again makes the server reload the files.
                let read = self.node(*member)?.config_set(&options).await;
                self.served.told(&(self.key.clone(), *member), &read);
                read?;
            }
            Step::CreateCredentials
            | Step::WriteObjects
            | Step::CreateMember(_)
            | Step::DeleteMember(_)
            | Step::DeleteOrphanedPod(_)
            | Step::RollMember(_)
            | Step::RecreateSet
            | Step::StopServers
            | Step::CreatePreflight
            | Step::EndPreflight
            | Step::RepairCredentials(_)
            | Step::ExpandVolume(_)
            | Step::ReuseVolume(_)
            | Step::ClearFailoverRequest { .. }
            | Step::DeclareLost { .. } => {}
        }
        Ok(())
    }

    fn node(&self, member: MemberRef) -> Result<Node, ServerError> {
        let node = self.monitor.node(self.key, (self.place)(member));
        node.ok_or(ServerError::Nowhere(member))
    }

    /// Connects to the same server as the user that may access keys, and creates that user first: the operator's own
    /// user may not access keys.
    async fn with_keys(&self, node: &Node) -> Result<Node, NodeError> {
        let mut endpoint = node.endpoint().clone();
        if let KeyAccess::OwnUser(user) = &self.keys {
            node.acl_set_user(&user.user, &migrator(&user.password)).await?;
            endpoint.credentials = Some(user.clone());
        }
        // Responses wait behind the keys that the server sends meanwhile.
        let deadlines = Deadlines {
            answer: KEYS_WITHIN,
            ..Deadlines::default()
        };
        Ok(Node::new(endpoint, deadlines))
    }

    /// Deletes that user again if slots move without it.
    async fn without_keys(&self, member: MemberRef, node: &Node) -> Result<(), NodeError> {
        let KeyAccess::OwnUser(user) = &self.keys else {
            return Ok(());
        };
        let version = self
            .observation
            .members
            .get(&member)
            .and_then(|member| member.facts()?.version);
        if version.is_some_and(|version| Capabilities::of(version).moves == MoveBy::Push) {
            node.acl_delete_users(&[&user.user]).await?;
        }
        Ok(())
    }

    fn process(&self, member: MemberRef) -> Option<Process<'_>> {
        let facts = self.observation.members.get(&member)?.facts()?;
        Some(Process {
            cluster: self.key,
            member,
            run_id: &facts.run_id,
        })
    }

    /// One turn of the slot mover that all sources support.
    async fn advance(&self, moves: &[SlotMove], legacy: bool) -> Result<(), ServerError> {
        let mut primaries: Primaries = HashMap::new();
        let mut push = !legacy;
        let mut ids: HashMap<candor_engine::model::ShardIndex, NodeId> = HashMap::new();
        for (at, facts) in self.observation.answering().filter(|(_, facts)| facts.is_primary()) {
            primaries.insert(facts.id, self.node(at)?);
            let by_version = facts.version.map(|version| Capabilities::of(version).moves);
            push &= by_version == Some(MoveBy::Push);
        }
        for shard in moves.iter().flat_map(|one| [one.from, one.to]) {
            if let Some(id) = self.primary_of(shard) {
                ids.insert(shard, id);
            }
        }
        let named: Vec<Move> = moves
            .iter()
            .filter_map(|one| {
                Some(Move {
                    from: *ids.get(&one.from)?,
                    to: *ids.get(&one.to)?,
                    slots: one.slots.clone(),
                })
            })
            .collect();
        let turn = if push {
            Push.advance(&primaries, &named, self.budget).await?
        } else {
            self.one_by_one(&primaries, &named).await?
        };
        (self.moved)(turn.moved.len());
        failed(&turn)
    }

    /// One turn of the slot migration that accesses keys.
    async fn one_by_one(&self, primaries: &Primaries, moves: &[Move]) -> Result<Advance, ServerError> {
        let mut keyed: Primaries = HashMap::new();
        for (id, node) in primaries {
            keyed.insert(*id, self.with_keys(node).await?);
        }
        let credentials = match &self.keys {
            KeyAccess::OwnUser(user) => Some(user.clone()),
            KeyAccess::SameUser(user) => user.clone(),
        };
        let legacy = Legacy { credentials };
        let turn = legacy.advance(&keyed, moves, self.budget * KEYS_TURN).await;
        for (at, facts) in self.observation.answering().filter(|(_, facts)| facts.is_primary()) {
            if let Some(node) = primaries.get(&facts.id) {
                self.without_keys(at, node).await?;
            }
        }
        Ok(turn?)
    }

    /// The node id of a shard's primary: the owner of its slots, else the node that its members replicate.
    fn primary_of(&self, shard: candor_engine::model::ShardIndex) -> Option<NodeId> {
        let owner = self.observation.primary(shard).map(|(_, facts)| facts.id);
        owner.or_else(|| {
            let members = || self.observation.shard(shard).filter_map(|(_, member)| member.facts());
            let followed = members().find_map(|facts| facts.me()?.primary);
            let is_one = |id: &NodeId| members().any(|facts| facts.id == *id && facts.is_primary());
            followed
                .filter(is_one)
                .or_else(|| members().find(|facts| facts.is_primary()).map(|facts| facts.id))
        })
    }
}

fn failed(turn: &Advance) -> Result<(), ServerError> {
    let Some((_, message)) = turn.failed.first() else {
        return Ok(());
    };
    let slots = turn
        .failed
        .iter()
        .fold(SlotSet::new(), |all, (one, _)| all.union(&one.slots));
    Err(ServerError::Moves(slots.len(), message.clone()))
}

fn how(by: FailoverBy) -> Failover {
    match by {
        FailoverBy::Planned => Failover::Agreed,
        FailoverBy::Forced => Failover::Force,
        FailoverBy::Takeover => Failover::Takeover,
    }
}

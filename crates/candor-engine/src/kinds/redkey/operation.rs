//! Which operation runs, and the plan for it.
//!
//! An operation is chosen by comparing the spec with the `StatefulSet` and with what status remembers. Its mode is
//! decided when it begins: fast recreates the cluster without its keys, slow keeps every key. The newest spec wins at
//! any time: the target may change in the middle of an operation, its mode does not.

use std::collections::BTreeMap;

use candor_api::redkey::status::{ClusterStatus, Operation, OperationKind, OperationMode};
use candor_api::redkey::{FAILOVER, MAINTENANCE};
use candor_api::{RedkeyCluster, RedkeyClusterSpec, RedkeyClusterStatus};
use jiff::Timestamp;

use super::memory;
use super::rows::{Creating, Progress, Row, Work};
use crate::attempts::Attempts;
use crate::kinds::count;
use crate::memory::Memory;
use crate::model::{Desired, FailoverRequest, MemberRef, NoFailoverRequest, Roll, ShardIndex, SlotGoal};
use crate::observation::{Credentials, Member, Observation};
use crate::plan::{Plan, Stage};
use crate::seats::{Ordinal, Seating, Seats, Shape, seat};
use crate::step::Step;

/// The live `StatefulSet`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Set {
    /// How many pods it runs.
    pub replicas: u32,
    /// The revision of its pod template.
    pub revision: String,
    /// It is being deleted.
    pub leaving: bool,
    /// The existing operator made it, and it was taken over.
    pub adopted: bool,
}

/// The desired `StatefulSet`, as far as the operation decides it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetGoal {
    /// How many pods it should run. Fewer than now only after the plan confirmed that the last ones own no slots.
    pub replicas: u32,
    /// Whether the desired pod template may be written: in a slow operation not before the extra server has joined.
    pub template: bool,
}

/// All inputs of a plan.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// The cluster with its last status.
    pub cluster: &'a RedkeyCluster,
    /// Its `StatefulSet`, if it exists.
    pub set: Option<&'a Set>,
    /// Why nothing may be changed: the existing operator still runs.
    pub other_operator: Option<&'a str>,
    /// The revision of the pod template that the spec asks for.
    pub revision: &'a str,
    /// The servers by ordinal.
    pub members: &'a BTreeMap<Ordinal, Member>,
    /// Everything else that was observed; its members are empty.
    pub base: &'a Observation,
    /// Recent attempts.
    pub attempts: &'a Attempts,
    /// The desired node timeout in milliseconds.
    pub node_timeout: u64,
    /// The time of the reconcile.
    pub now: Timestamp,
}

/// An operation that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Running {
    /// Which.
    pub kind: OperationKind,
    /// How it treats keys.
    pub mode: OperationMode,
    /// The ordinal of the extra server of a slow upgrade.
    pub extra: Option<Ordinal>,
}

/// A plan, and everything that it was made from.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The desired state.
    pub desired: Desired,
    /// The observed state, with every server in its seat.
    pub observed: Observation,
    /// What status remembered.
    pub memory: Memory,
    /// The plan.
    pub plan: Plan,
    /// The row that the stage calls for.
    pub progress: Progress,
    /// The running operation.
    pub operation: Option<Running>,
    /// The seats to remember.
    pub seats: Seats,
    /// The desired `StatefulSet`.
    pub set: SetGoal,
    /// The cluster is being taken over: it counts as complete once nothing is left to do.
    pub adopting: bool,
    /// Whether the observed topology is remembered: not before every server of a cluster that is being taken over has
    /// responded.
    pub remembers: bool,
    /// Why nothing is changed: the existing operator still runs.
    pub other_operator: Option<String>,
}

/// Whether the operator reports status and makes no changes.
pub fn is_paused(cluster: &RedkeyCluster) -> bool {
    let annotations = cluster.metadata.annotations.as_ref();
    let asked = annotations.and_then(|all| all.get(MAINTENANCE));
    cluster.spec.paused || asked.is_some_and(|value| value == "true")
}

/// Plans the next steps of a cluster.
pub fn plan(input: &Input<'_>) -> Planned {
    let nothing = RedkeyClusterStatus::default();
    let status = input.cluster.status.as_ref().unwrap_or(&nothing);
    let mut memory = memory::memory(status);
    let adopting = !status.formed && input.set.is_some_and(|set| set.adopted) && !is_fast(status);
    memory.formed |= adopting;
    let view = View {
        input,
        spec: &input.cluster.spec,
        status,
        formed: memory.formed,
        memory,
        seats: memory::seats(status),
        adopting,
    };
    let mut planned = view.plan();
    // No other object can be built without Robin's credentials, the preflight pod neither.
    let executes = planned.other_operator.is_none() && !input.base.deleting && !planned.desired.paused;
    if executes && input.base.credentials == Credentials::Missing {
        planned.plan.steps = vec![Step::CreateCredentials];
    }
    planned
}

/// The failover that a user requests: `SHARD/NODE[/ORDINAL]`.
fn requested_failover(cluster: &RedkeyCluster) -> Option<Result<FailoverRequest, NoFailoverRequest>> {
    let text = cluster.metadata.annotations.as_ref()?.get(FAILOVER)?;
    let mut parts = text.split('/');
    let (shard, node, ordinal) = (parts.next(), parts.next(), parts.next());
    // The engine names a member by its shard and its place there.
    let whole = match (shard, node, ordinal, parts.next()) {
        (Some(shard), Some(node), Some(ordinal), None) => format!("{shard}/{node}/{shard}-{ordinal}"),
        _ => text.clone(),
    };
    Some(whole.parse().map_err(|_| NoFailoverRequest(text.clone())))
}

/// Whether an operation runs that recreates the cluster.
fn is_fast(status: &RedkeyClusterStatus) -> bool {
    let running = status.operation.as_ref();
    running.is_some_and(|one| one.mode == OperationMode::Fast && one.kind != OperationKind::Hibernate)
}

/// The inputs with what follows from them.
pub(super) struct View<'a> {
    pub(super) input: &'a Input<'a>,
    pub(super) spec: &'a RedkeyClusterSpec,
    pub(super) status: &'a RedkeyClusterStatus,
    /// The cluster was complete once, here or under the existing operator.
    pub(super) formed: bool,
    pub(super) memory: Memory,
    pub(super) seats: Seats,
    pub(super) adopting: bool,
}

impl View<'_> {
    fn plan(&self) -> Planned {
        if self.input.base.deleting {
            return self.with_plan(Plan::new(Stage::Deleting, Vec::new()), None);
        }
        if let Some(message) = self.input.other_operator {
            return self.stand_back(message);
        }
        if self.input.set.is_some_and(|set| set.revision.is_empty()) {
            return self.adopt();
        }
        if self.spec.primaries == 0 {
            return self.hibernate();
        }
        if !self.input.base.problems.is_empty() || self.input.base.secrets_unread.is_some() {
            return self.reject();
        }
        if let Some(planned) = self.wake().or_else(|| self.meet_adopted()) {
            return planned;
        }
        let scaling = self.scaling();
        let fast = self.mode() == OperationMode::Fast;
        let recreating = fast && self.is_running();
        if !self.formed && !recreating {
            return self.create();
        }
        if fast && (scaling.is_some() || self.template_differs() || self.is_running()) {
            return self.recreate(scaling);
        }
        if let Some(kind) = scaling.or_else(|| self.running_scale()) {
            let planned = self.scale(kind);
            let done = scaling.is_none() && planned.plan.stage.is_settled();
            if !done || !self.template_differs() {
                return planned;
            }
        }
        if self.template_differs() || self.running().is_some_and(|one| one.kind == OperationKind::Upgrade) {
            return self.upgrade();
        }
        self.steady()
    }

    /// A spec that cannot be carried out starts no operation and continues none. Servers are still healed.
    pub(super) fn reject(&self) -> Planned {
        let planned = self.planned(self.shape(false), SlotGoal::Keep, Roll::Never, None);
        let progress = blocked(&planned).unwrap_or(Progress::Steady(ClusterStatus::Error));
        Planned { progress, ..planned }
    }

    pub(super) fn running(&self) -> Option<&Operation> {
        self.status.operation.as_ref()
    }

    /// Whether an operation runs that changes servers.
    pub(super) fn is_running(&self) -> bool {
        use OperationKind::{ScaleDown, ScaleUp, Upgrade};
        self.running()
            .is_some_and(|one| matches!(one.kind, ScaleUp | ScaleDown | Upgrade))
    }

    /// The mode of the running operation, or the one that a new operation would have. Taking over never purges keys.
    fn mode(&self) -> OperationMode {
        let latched = self.running().filter(|_| self.is_running()).map(|one| one.mode);
        latched.unwrap_or(if self.spec.purge_keys_on_rebalance && !self.adopting {
            OperationMode::Fast
        } else {
            OperationMode::Slow
        })
    }

    /// The number of servers that the spec asks for.
    pub(super) fn nodes(&self) -> u32 {
        count(self.spec.nodes())
    }

    pub(super) fn shape(&self, extra: bool) -> Shape {
        Shape {
            primaries: count(self.spec.primaries),
            replicas: count(self.spec.replicas_per_primary),
            extra,
        }
    }

    /// Whether a server runs, or would be started, with another template than desired.
    fn template_differs(&self) -> bool {
        let set = self.input.set.is_some_and(|set| set.revision != self.input.revision);
        set || self.outdated().next().is_some()
    }

    /// Servers with a pod of another template than desired.
    pub(super) fn outdated(&self) -> impl Iterator<Item = Ordinal> {
        let stale = |member: &Member| member.pod.as_ref().is_some_and(|pod| !pod.current && !pod.leaving);
        let members = self.input.members.iter();
        members
            .filter(move |(_, member)| stale(member))
            .map(|(ordinal, _)| *ordinal)
    }

    /// Plans for a topology.
    pub(super) fn planned(&self, shape: Shape, slots: SlotGoal, roll: Roll, running: Option<Running>) -> Planned {
        let seating = seat(shape, &self.previous_seats(shape), &self.roles());
        let observed = self.seated(shape, &seating);
        let desired = self.desired(shape, &seating, slots, roll);
        let input = self.input;
        let mut plan = crate::plan::plan(&desired, &observed, &self.memory, input.attempts, input.now);
        // As long as the request is there, the old primary that catches up is not reported as lost.
        if !plan.stage.is_settled() {
            plan.steps
                .retain(|step| *step != Step::ClearFailoverRequest { rejected: None });
        }
        let replicas = input.set.map_or(0, |set| set.replicas).max(shape.seats());
        let current = input.set.is_none_or(|set| set.revision == input.revision);
        Planned {
            progress: Progress::Steady(status_of(&plan, &observed)),
            desired,
            observed,
            memory: self.memory.clone(),
            set: SetGoal {
                replicas,
                template: current || !self.formed,
            },
            plan,
            operation: running,
            seats: self.seats_to_remember(&seating),
            adopting: self.adopting,
            remembers: true,
            other_operator: None,
        }
    }

    /// The desired state. A server that has to give up slots before it takes its seat is not desired there yet.
    fn desired(&self, shape: Shape, seating: &Seating, slots: SlotGoal, roll: Roll) -> Desired {
        let seats = seating.seats.iter();
        let taken = seats.filter(|(ordinal, shard)| seating.memory.get(ordinal).is_none_or(|now| now == *shard));
        let seats = taken.map(|(node, shard)| MemberRef {
            shard: *shard,
            node: *node,
        });
        Desired {
            shards: shape.primaries.saturating_add(u32::from(shape.extra)),
            replicas: shape.replicas,
            seats: Some(seats.collect()),
            slots,
            roll,
            paused: is_paused(self.input.cluster),
            node_timeout: self.input.node_timeout,
            persistence: !self.spec.ephemeral,
            version: None,
            downgrade: true,
            downgrade_annotation: "",
            failover: requested_failover(self.input.cluster),
        }
    }

    pub(super) fn with_plan(&self, plan: Plan, running: Option<Running>) -> Planned {
        let planned = self.planned(self.shape(false), SlotGoal::Keep, Roll::Never, running);
        Planned { plan, ..planned }
    }

    fn create(&self) -> Planned {
        let running = Running {
            kind: OperationKind::Create,
            mode: OperationMode::Slow,
            extra: None,
        };
        let planned = self.planned(self.shape(false), SlotGoal::Even, Roll::Never, Some(running));
        let planned = self.with_retained(planned);
        let stage = match planned.plan.stage {
            Stage::Healthy => Creating::Done,
            _ if starting(&planned) || self.is_retained_missing() => Creating::Starting,
            _ => Creating::Forming,
        };
        self.running_at(planned, Work::Create(stage))
    }

    pub(super) fn running_at(&self, planned: Planned, work: Work) -> Planned {
        let same = self.running().map(|one| one.revision.as_str()).unwrap_or_default();
        let upgrade = matches!(work, Work::SlowUpgrade { .. });
        let restarted = upgrade && !same.is_empty() && same != self.input.revision;
        let blocked = blocked(&planned);
        Planned {
            progress: blocked.unwrap_or(Progress::Running { work, restarted }),
            ..planned
        }
    }

    /// No operation runs, or the last one is done.
    fn steady(&self) -> Planned {
        let planned = self.planned(self.shape(false), SlotGoal::Even, Roll::Never, None);
        match blocked(&planned) {
            Some(progress) => Planned { progress, ..planned },
            None => planned,
        }
    }
}

/// The row that is stored.
pub fn stored(cluster: &RedkeyCluster) -> Row {
    cluster.status.as_ref().map(Row::of).unwrap_or_default()
}

/// Pods are missing, or do not respond yet.
pub(super) fn starting(planned: &Planned) -> bool {
    let missing = |at: MemberRef| {
        planned
            .observed
            .members
            .get(&at)
            .is_none_or(|member| member.facts().is_none())
    };
    planned.desired.members().any(missing)
}

/// Stages that stop an operation: a person must act, or nothing is known.
pub(super) fn blocked(planned: &Planned) -> Option<Progress> {
    match &planned.plan.stage {
        _ if planned.desired.paused => Some(Progress::Steady(ClusterStatus::Maintenance)),
        Stage::Rejected { .. } => Some(Progress::Steady(ClusterStatus::Error)),
        stage if stage.is_unseen() => Some(Progress::Unchanged),
        _ => None,
    }
}

/// The status of a cluster that no operation changes.
fn status_of(plan: &Plan, observed: &Observation) -> ClusterStatus {
    let missing = |shard: ShardIndex| !observed.shard(shard).any(|(_, member)| member.facts().is_some());
    match &plan.stage {
        Stage::Healthy => ClusterStatus::Ready,
        Stage::Rejected { .. } => ClusterStatus::Error,
        Stage::QuorumLost { .. } | Stage::Creating { .. } | Stage::Stuck { .. } => ClusterStatus::Initializing,
        // No server serves its slots, and no replica can take them.
        Stage::PrimaryLost(lost) if lost.iter().any(|one| missing(one.shard)) => ClusterStatus::Initializing,
        _ => ClusterStatus::Configuring,
    }
}

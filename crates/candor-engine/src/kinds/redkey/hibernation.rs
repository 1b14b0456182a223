//! `primaries: 0` and back, and a cluster that is deleted and created again: every server with a volume comes back before
//! the cluster is scaled.

use std::collections::BTreeSet;

use candor_api::redkey::status::{ClusterStatus, OperationKind, OperationMode};

use super::operation::{Planned, Running, SetGoal, View, blocked, is_paused, starting};
use super::rows::{Creating, Progress, Work};
use crate::model::{MemberRef, Roll, ShardIndex, SlotGoal};
use crate::observation::{Member, Volume};
use crate::plan::{Plan, Stage};
use crate::seats::{Ordinal, Shape};
use crate::step::Step;

impl View<'_> {
    /// `primaries: 0`: no server runs. Volumes and what is remembered about them stay.
    pub(super) fn hibernate(&self) -> Planned {
        let running = Running {
            kind: OperationKind::Hibernate,
            mode: OperationMode::Fast,
            extra: None,
        };
        let asleep = self.input.set.is_none_or(|set| set.replicas == 0);
        let gone = asleep && self.input.members.values().all(|member| member.pod.is_none());
        let blind = self.input.base.pods_unknown.is_some();
        let mut plan = match (asleep, gone) {
            (false, _) => Plan::new(Stage::Removing, vec![Step::StopServers]),
            (true, false) => Plan::new(Stage::Removing, Vec::new()),
            (true, true) if !self.input.base.objects_ready => Plan::new(Stage::Writing, vec![Step::WriteObjects]),
            (true, true) => Plan::new(Stage::Healthy, Vec::new()),
        };
        if blind || is_paused(self.input.cluster) {
            plan.steps.clear();
        }
        let status = if gone {
            ClusterStatus::Ready
        } else {
            ClusterStatus::ScalingDown
        };
        let planned = self.with_plan(plan, (!gone).then_some(running));
        let progress = blocked(&planned).unwrap_or(Progress::Steady(status));
        Planned {
            progress: if blind { Progress::Unchanged } else { progress },
            seats: self.seats.clone(),
            set: SetGoal {
                replicas: 0,
                template: true,
            },
            ..planned
        }
    }

    /// Back from `primaries: 0` with volumes: every remembered server comes back first, because slots and keys are on
    /// its volume. Only then the cluster is scaled.
    pub(super) fn wake(&self) -> Option<Planned> {
        let was_asleep = self.input.set.is_some_and(|set| set.replicas == 0)
            || self.running().is_some_and(|one| one.kind == OperationKind::Hibernate);
        if !was_asleep || self.spec.ephemeral || !self.formed || self.seats.is_empty() {
            return None;
        }
        let shards: BTreeSet<ShardIndex> = self.seats.values().copied().collect();
        let primaries = u32::try_from(shards.len()).unwrap_or(u32::MAX);
        let servers = u32::try_from(self.seats.len()).unwrap_or(u32::MAX);
        let shape = Shape {
            primaries,
            replicas: (servers / primaries.max(1)).saturating_sub(1),
            extra: false,
        };
        let running = Running {
            kind: OperationKind::Hibernate,
            mode: OperationMode::Slow,
            extra: None,
        };
        let planned = self.planned(shape, SlotGoal::Even, Roll::Never, Some(running));
        (!planned.plan.stage.is_settled()).then(|| {
            let stage = if starting(&planned) {
                Creating::Starting
            } else {
                Creating::Forming
            };
            self.running_at(planned, Work::Create(stage))
        })
    }

    /// A new cluster over the volumes of an earlier one: every server with a volume that may have slots and keys comes
    /// back, also those that the spec does not ask for. They give up their slots and leave before the cluster is Ready.
    pub(super) fn with_retained(&self, mut planned: Planned) -> Planned {
        // Which server belongs to which shard is known only when all of them have responded.
        planned.remembers = !self.status.topology.is_empty() || !self.is_retained_missing();
        let servers = self.retained().last().map_or(0, |(ordinal, _)| ordinal + 1);
        if servers <= planned.set.replicas || is_paused(self.input.cluster) {
            return planned;
        }
        planned.set.replicas = servers;
        // One step scales to the number of servers; a new StatefulSet has it from the start.
        if self.input.set.is_some_and(|set| !set.leaving) && self.input.base.problems.is_empty() {
            let beyond = |at: &&MemberRef| at.node + 1 == servers;
            let last = planned.observed.members.keys().find(beyond);
            planned.plan.steps.extend(last.map(|at| Step::CreateMember(*at)));
        }
        planned
    }

    /// Whether a server with a retained volume does not respond: what is on the volume is unknown.
    pub(super) fn is_retained_missing(&self) -> bool {
        self.retained().any(|(_, member)| member.facts().is_none())
    }

    /// Servers with volumes that were not proven to be without slots.
    fn retained(&self) -> impl Iterator<Item = (Ordinal, &Member)> {
        let members = self.input.members.iter();
        let retained = members.filter(|(_, member)| member.volume == Volume::Kept);
        retained.map(|(ordinal, member)| (*ordinal, member))
    }
}

//! Slow scaling: which direction, and how far it is.

use candor_api::redkey::status::{OperationKind, OperationMode, SeatTopology};

use super::operation::{Planned, Running, View};
use super::rows::{Growing, Shrinking, Work};
use crate::kinds::count;
use crate::model::{Roll, SlotGoal};
use crate::plan::{Plan, Rejection, Stage};
use crate::step::{FailoverBy, Step};

impl View<'_> {
    /// Whether servers have to be added or removed, compared with what status remembers: a `StatefulSet` that was scaled
    /// by hand is drift, and no operation. When the number of servers stays and the topology changes, the number of
    /// primaries decides.
    pub(super) fn scaling(&self) -> Option<OperationKind> {
        use std::cmp::Ordering::{Equal, Greater, Less};
        let extra = self.running().and_then(|one| one.extra_node).map(count);
        let regular = || self.seats.iter().filter(|(ordinal, _)| Some(**ordinal) != extra);
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let have = number(regular().count());
        let joined = |one: &SeatTopology| !one.node_id.is_empty() && Some(count(one.ordinal)) != extra;
        let shards = self
            .status
            .topology
            .iter()
            .filter(|shard| shard.members.iter().any(joined));
        let shards = number(shards.count());
        if have == 0 {
            return None;
        }
        match (self.nodes().cmp(&have), count(self.spec.primaries).cmp(&shards)) {
            (Greater, _) | (Equal, Greater) => Some(OperationKind::ScaleUp),
            (Less, _) | (Equal, Less) => Some(OperationKind::ScaleDown),
            (Equal, Equal) => None,
        }
        .filter(|_| self.formed)
    }

    pub(super) fn running_scale(&self) -> Option<OperationKind> {
        let kind = self.running()?.kind;
        matches!(kind, OperationKind::ScaleUp | OperationKind::ScaleDown).then_some(kind)
    }

    /// Slow scaling: slots move, every key is kept.
    pub(super) fn scale(&self, kind: OperationKind) -> Planned {
        let running = Running {
            kind,
            mode: OperationMode::Slow,
            extra: None,
        };
        let planned = self.planned(self.shape(false), SlotGoal::Even, Roll::Never, Some(running));
        if let Some(message) = self.too_little_memory(&planned) {
            let rejection = Rejection::NotEnoughMemory;
            let plan = Plan::new(Stage::Rejected { rejection, message }, Vec::new());
            return self.running_at(Planned { plan, ..planned }, Work::SlowScaleDown(Shrinking::Slots));
        }
        let settled = self.input.set.is_some_and(|set| set.replicas == self.nodes());
        let work = if kind == OperationKind::ScaleUp {
            Work::SlowScaleUp(match planned.plan.stage {
                Stage::Healthy => Growing::Done,
                Stage::Moving { .. } | Stage::Replicating { .. } | Stage::Assigning | Stage::Uncovered { .. } => {
                    Growing::Slots
                }
                _ => Growing::Pods,
            })
        } else {
            let hands_over = |step: &Step| {
                let by = FailoverBy::Planned;
                matches!(step, Step::Failover { by: how, .. } if *how == by)
            };
            Work::SlowScaleDown(match planned.plan.stage {
                Stage::Healthy if settled => Shrinking::Done,
                Stage::Removing if !planned.plan.pending().any(hands_over) => Shrinking::Pods,
                _ => Shrinking::Slots,
            })
        };
        self.running_at(planned, work)
    }
}

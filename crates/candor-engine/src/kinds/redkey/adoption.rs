//! Taking over a cluster that the existing operator left running: without a restart, and without a lost key.
//!
//! The `StatefulSet` is written first (`OnDelete`, the revision that its template stands for). Then the servers are
//! queried: their topology is the truth, wherever the existing operator stopped. Until nothing is left to do the
//! cluster is being adopted, and every operation that it needs keeps its keys.

use std::time::Duration;

use candor_api::redkey::status::ClusterStatus;

use super::operation::{Planned, SetGoal, View, blocked, is_paused};
use super::rows::Progress;
use crate::model::{Roll, SlotGoal};
use crate::plan::{Plan, Stage};
use crate::step::Step;

/// When to check again whether the existing operator has ended.
const CHECK: Duration = Duration::from_secs(5);

impl View<'_> {
    /// The existing operator still runs: two operators of one cluster would undo the work of each other.
    pub(super) fn stand_back(&self, message: &str) -> Planned {
        let mut plan = Plan::new(Stage::Writing, Vec::new());
        plan.requeue_after = CHECK;
        Planned {
            progress: Progress::Unchanged,
            other_operator: Some(message.to_owned()),
            remembers: false,
            ..self.with_plan(plan, None)
        }
    }

    /// The first write to the `StatefulSet` of the existing operator. It needs a spec that can be carried out, because
    /// the revision of that spec is written.
    pub(super) fn adopt(&self) -> Planned {
        if !self.input.base.problems.is_empty() || self.input.base.secrets_unread.is_some() {
            return Planned {
                remembers: false,
                ..self.reject()
            };
        }
        let steps = if is_paused(self.input.cluster) {
            Vec::new()
        } else {
            vec![Step::WriteObjects]
        };
        let planned = self.with_plan(Plan::new(Stage::Writing, steps), None);
        Planned {
            progress: blocked(&planned).unwrap_or(Progress::Unchanged),
            set: SetGoal {
                template: false,
                ..planned.set
            },
            remembers: false,
            ..planned
        }
    }

    /// Waits until every server of an adopted cluster has responded once: which slots a server owns, and which server
    /// it replicates, is not known before. Nothing is sent to the servers that respond.
    pub(super) fn meet_adopted(&self) -> Option<Planned> {
        let servers = self.input.set.map_or(0, |set| set.replicas);
        let responds = |ordinal| {
            let member = self.input.members.get(&ordinal);
            member.is_some_and(|member| member.facts().is_some())
        };
        if !self.adopting || !self.status.topology.is_empty() || (0..servers).all(responds) {
            return None;
        }
        let mut planned = self.planned(self.shape(false), SlotGoal::Keep, Roll::Never, None);
        planned.plan.steps.retain(|step| *step == Step::WriteObjects);
        let stuck = matches!(planned.plan.stage, Stage::Stuck { .. });
        if !stuck && !planned.plan.stage.is_unseen() {
            let shards = 0;
            planned.plan.stage = Stage::Creating { shards };
        }
        let progress = blocked(&planned).unwrap_or(Progress::Steady(ClusterStatus::Initializing));
        Some(Planned {
            progress,
            remembers: false,
            ..planned
        })
    }
}

//! Fast scaling and upgrading: the `StatefulSet` is recreated without its keys.

use std::collections::BTreeMap;

use candor_api::redkey::status::{OperationKind, OperationMode};

use super::operation::{Planned, Running, SetGoal, View, starting};
use super::rows::{Recreating, Work};
use crate::memory::Memory;
use crate::model::{Roll, SlotGoal};
use crate::observation::{Observation, Preflight};
use crate::plan::{Plan, Stage};
use crate::seats::Seats;
use crate::step::Step;

impl View<'_> {
    /// Fast scaling and upgrading: the `StatefulSet` is recreated, and the cluster is formed from blank servers.
    pub(super) fn recreate(&self, scaling: Option<OperationKind>) -> Planned {
        let latched = self.running().filter(|_| self.is_running()).map(|one| one.kind);
        let kind = scaling.or(latched).unwrap_or(OperationKind::Upgrade);
        let running = Some(Running {
            kind,
            mode: OperationMode::Fast,
            extra: None,
        });
        let matches = self
            .input
            .set
            .is_some_and(|set| set.replicas == self.nodes() && set.revision == self.input.revision && !set.leaving);
        let mut planned = self.planned(self.shape(false), SlotGoal::Even, Roll::Never, running);
        let stage = if !matches {
            planned = self.replace_set(planned);
            Recreating::Pods
        } else if planned.plan.stage.is_settled() {
            Recreating::Done
        } else if starting(&planned) {
            Recreating::Pods
        } else {
            Recreating::Forming
        };
        let work = match kind {
            OperationKind::ScaleUp => Work::FastScaleUp(stage),
            OperationKind::ScaleDown => Work::FastScaleDown(stage),
            _ => Work::FastUpgrade(stage),
        };
        self.running_at(planned, work)
    }

    /// Deletes the `StatefulSet`, after the preflight of its new template, and creates the new one. From here on
    /// nothing of the old cluster is remembered.
    fn replace_set(&self, planned: Planned) -> Planned {
        let shards = 0;
        let plan = match self.input.set {
            None => Plan::new(Stage::Creating { shards }, vec![Step::WriteObjects]),
            Some(set) if set.leaving => Plan::new(Stage::Creating { shards }, Vec::new()),
            Some(_) => self.preflight(),
        };
        let observed = Observation {
            members: BTreeMap::new(),
            ..planned.observed
        };
        Planned {
            plan,
            observed,
            memory: Memory::default(),
            seats: Seats::new(),
            set: SetGoal {
                replicas: self.nodes(),
                template: true,
            },
            ..planned
        }
    }

    fn preflight(&self) -> Plan {
        let base = self.input.base;
        let creating = Stage::Creating { shards: 0 };
        let preflight = match &base.preflight {
            Preflight::Missing { template } if self.input.attempts.preflight_was_rejected(template) => {
                &Preflight::Passed
            }
            other => other,
        };
        match preflight {
            Preflight::Needless | Preflight::Passed => Plan::new(creating, vec![Step::RecreateSet]),
            Preflight::Missing { .. } => Plan::new(creating, vec![Step::CreatePreflight]),
            Preflight::UnderWay => Plan::new(creating, Vec::new()),
            Preflight::Rejected { trouble, stale } => {
                let (member, trouble) = (None, trouble.clone());
                let steps = stale.then_some(Step::EndPreflight).into_iter().collect();
                Plan::new(Stage::Stuck { member, trouble }, steps)
            }
        }
    }
}

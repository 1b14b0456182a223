//! What must hold in every state, and what a converged cluster looks like.

use std::collections::{BTreeMap, BTreeSet};

use candor_api::{ValkeyCluster, ValkeyClusterSpec, ValkeyClusterStatus};
use candor_engine::kinds::valkey::report::{ReportInput, report};
use candor_engine::plan::Stage;
use candor_engine::step::Step;
use jiff::Timestamp;
use valkey_admin::SlotSet;

use super::{Process, World, at};

impl World {
    /// Checks the invariants of every state.
    pub fn check(&self) {
        let mut owned = SlotSet::new();
        // A partitioned process counts too: writes that it acknowledges must not be lost.
        for process in self.processes.values().filter(|process| process.alive) {
            assert!(
                owned.intersection(&process.slots).is_empty(),
                "two own the same slots: {self:#?}"
            );
            owned = owned.union(&process.slots);
            assert!(
                process.follows.is_none() || process.slots.is_empty(),
                "a replica owns slots: {self:#?}"
            );
        }
    }

    /// Whether the cluster is complete and matches the newest spec.
    pub fn is_as_desired(&self) -> bool {
        let desired: BTreeSet<(u32, u32)> = self.desired().members().map(at).collect();
        let alive: Vec<&Process> = self.processes.values().filter(|process| process.is_here()).collect();
        let there: BTreeSet<(u32, u32)> = alive.iter().map(|process| process.at).collect();
        let owned = alive
            .iter()
            .fold(SlotSet::new(), |all, process| all.union(&process.slots));
        let synced = alive
            .iter()
            .all(|process| process.follows.is_none() || self.in_sync(process));
        let current = alive.iter().all(|process| process.current == self.target);
        let primaries = alive.iter().filter(|process| !process.slots.is_empty()).count();
        let idle = alive.iter().all(|process| is_idle(process));
        desired == there
            && idle
            && self.secret
            && self.asked.is_none()
            && alive.len() == there.len()
            && owned.is_full()
            && synced
            && current
            && primaries == self.shards as usize
    }

    /// Checks that a converged cluster is idle: after one tick, the plan is empty.
    pub fn check_rest(&self) {
        let mut world = self.clone();
        for _ in 0..3 {
            world.tick();
            world.turn(.., true);
        }
        world.tick();
        assert_eq!(world.plan().steps, [], "as wanted, and still busy: {world:#?}");
    }

    /// Checks that data is lost only if every copy of it is lost, and that the loss was reported.
    pub fn check_data(&self) {
        for process in self.processes.values().filter(|process| process.alive && self.filled) {
            let missing = process.slots.difference(&process.data).difference(&self.lost);
            assert!(
                missing.is_empty() && (self.lost.is_empty() || !self.persistent),
                "the data of {missing} is gone and nobody said so: {self:#?}"
            );
        }
    }

    /// Checks that Ready is reported only if the cluster matches the spec.
    pub fn check_report(&self) {
        let (observed, desired) = (self.observe(), self.desired());
        let plan = self.plan_from(&observed);
        // The property tests of the report cover the other stages: they are never reported as Ready.
        if plan.stage != Stage::Healthy {
            return;
        }
        let mut cluster = ValkeyCluster::new("sim", ValkeyClusterSpec::default());
        cluster.status = Some(ValkeyClusterStatus::default());
        let report = report(&ReportInput {
            cluster: &cluster,
            nodes: &BTreeMap::new(),
            desired: &desired,
            observed: &observed,
            memory: &self.memory,
            plan: &plan,
            outcomes: &[],
            now: Timestamp::UNIX_EPOCH,
        });
        if kube_status::is_true(&report.status.conditions, "Ready") {
            assert!(
                !plan.steps.iter().any(Step::disturbs)
                    && Self {
                        asked: None,
                        ..self.clone()
                    }
                    .is_as_desired(),
                "ready, and not as wanted: {self:#?}"
            );
        }
    }
}

/// Whether no slot migration is in progress.
pub(super) fn is_idle(process: &Process) -> bool {
    process.jobs.is_empty() && process.leaving.is_empty() && process.coming.is_empty()
}

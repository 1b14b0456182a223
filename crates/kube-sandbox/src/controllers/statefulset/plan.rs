//! The next steps of a `StatefulSet`: one pod at a time in order, or all at once. Pure.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetStatus};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};
use kube::ResourceExt;

use super::identity::{self, desired, start};
use crate::controllers::pods::{self, is_available, is_finished, is_ready, is_terminating};

/// A revision by name, and the template it stands for.
#[derive(Clone, Debug)]
pub struct Revision {
    /// The `ControllerRevision`'s name.
    pub name: String,
    /// What pods of it are made from.
    pub template: PodTemplateSpec,
}

/// One step.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Make a pod, its missing claims first.
    Create(Box<Pod>, Vec<PersistentVolumeClaim>),
    /// Make claims that a waiting pod lacks.
    Claims(Arc<Pod>, Vec<PersistentVolumeClaim>),
    /// Put a pod's labels right.
    Correct(Box<Pod>),
    /// Give a claim the owners that the retention policy wants.
    Own(Arc<PersistentVolumeClaim>, Vec<OwnerReference>),
    /// Delete a pod.
    Delete(Arc<Pod>),
}

/// Steps and status.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// In this order.
    pub steps: Vec<Step>,
    /// What is true before the steps.
    pub status: StatefulSetStatus,
}

/// The input of the plan.
pub struct View<'a> {
    /// The set.
    pub set: &'a StatefulSet,
    /// The revision pods had before the rollout.
    pub current: &'a Revision,
    /// The desired revision of pods.
    pub update: &'a Revision,
    /// The set's pods.
    pub pods: &'a [Arc<Pod>],
    /// Every claim of the namespace by name.
    pub claim: &'a (dyn Fn(&str) -> Option<Arc<PersistentVolumeClaim>> + Sync),
    /// The time.
    pub now: &'a Time,
}

/// Whether the walk over the pods goes on.
enum Walk {
    On,
    Stop,
}

impl View<'_> {
    /// Decides.
    pub fn plan(&self) -> Plan {
        let mut steps = Vec::new();
        let mut status = self.count();
        if self.set.metadata.deletion_timestamp.is_none() {
            self.walk(&mut steps, &mut status);
        }
        self.complete(&mut status);
        Plan { steps, status }
    }

    fn parallel(&self) -> bool {
        let policy = self
            .set
            .spec
            .as_ref()
            .and_then(|spec| spec.pod_management_policy.as_deref());
        policy == Some("Parallel")
    }

    fn min_ready(&self) -> i32 {
        self.set
            .spec
            .as_ref()
            .and_then(|spec| spec.min_ready_seconds)
            .unwrap_or_default()
    }

    fn ordinal(&self, pod: &Pod) -> Option<i32> {
        identity::ordinal(&self.set.name_any(), &pod.name_any())
    }

    fn unavailable(&self, pod: Option<&Arc<Pod>>) -> bool {
        pod.is_none_or(|pod| !is_available(pod, self.min_ready(), self.now) || is_terminating(pod))
    }

    fn walk(&self, steps: &mut Vec<Step>, status: &mut StatefulSetStatus) {
        let ordinals: Vec<i32> = (start(self.set)..start(self.set) + desired(self.set)).collect();
        let replicas: Vec<Option<&Arc<Pod>>> = ordinals
            .iter()
            .map(|ordinal| self.pods.iter().find(|pod| self.ordinal(pod) == Some(*ordinal)))
            .collect();
        for (ordinal, pod) in ordinals.iter().zip(&replicas) {
            let walk = match pod {
                None => self.create(*ordinal, steps),
                Some(pod) => self.tend(pod, *ordinal, steps),
            };
            if matches!(walk, Walk::Stop) && !self.parallel() {
                return;
            }
        }
        let mut condemned: Vec<(i32, &Arc<Pod>)> = self
            .pods
            .iter()
            .filter_map(|pod| Some((self.ordinal(pod)?, pod)))
            .filter(|(ordinal, _)| !identity::in_range(self.set, *ordinal))
            .collect();
        condemned.sort_by_key(|(ordinal, _)| std::cmp::Reverse(*ordinal));
        for (ordinal, pod) in &condemned {
            self.own_claims(pod, *ordinal, steps);
        }
        let first_unhealthy = replicas
            .iter()
            .copied()
            .flatten()
            .chain(condemned.iter().rev().map(|(_, pod)| *pod))
            .find(|pod| self.unavailable(Some(pod)))
            .map(|pod| pod.name_any());
        for (_, pod) in &condemned {
            if matches!(self.condemn(pod, first_unhealthy.as_deref(), steps), Walk::Stop) && !self.parallel() {
                return;
            }
        }
        self.roll(&replicas, steps, status);
    }

    fn create(&self, ordinal: i32, steps: &mut Vec<Step>) -> Walk {
        let name = format!("{}-{ordinal}", self.set.name_any());
        let claims = identity::claims(self.set, ordinal);
        let stale = claims
            .iter()
            .filter_map(|claim| (self.claim)(&claim.name_any()))
            .any(|claim| identity::is_stale(self.set, &claim, &name, None));
        if !stale {
            let revision = self.revision_for(ordinal);
            let pod = identity::pod(self.set, &revision.template, &revision.name, ordinal);
            steps.push(Step::Create(Box::new(pod), self.missing(claims)));
        }
        Walk::Stop
    }

    fn missing(&self, mut claims: Vec<PersistentVolumeClaim>) -> Vec<PersistentVolumeClaim> {
        claims.retain(|claim| (self.claim)(&claim.name_any()).is_none());
        claims
    }

    /// Below the partition (or, without one, while the old revision still counts that many) pods come back as they
    /// were.
    fn revision_for(&self, ordinal: i32) -> &Revision {
        let spec = self.set.spec.as_ref();
        let strategy = spec.and_then(|spec| spec.update_strategy.as_ref());
        let on_delete = strategy.and_then(|strategy| strategy.type_.as_deref()) == Some("OnDelete");
        let partition = strategy
            .and_then(|strategy| strategy.rolling_update.as_ref())
            .map(|rolling| rolling.partition.unwrap_or_default());
        let current = self
            .set
            .status
            .as_ref()
            .and_then(|status| status.current_replicas)
            .unwrap_or_default();
        let keeps = match partition {
            Some(partition) => ordinal < start(self.set) + partition,
            None => !on_delete && ordinal < start(self.set) + current,
        };
        if keeps { self.current } else { self.update }
    }

    fn tend(&self, pod: &Arc<Pod>, ordinal: i32, steps: &mut Vec<Step>) -> Walk {
        if is_finished(pod) {
            // A pod that ended comes back whatever its exit code; the new one is made when this one is gone.
            if !is_terminating(pod) {
                steps.push(Step::Delete(pod.clone()));
            }
            return Walk::Stop;
        }
        if pods::phase(pod) == "Pending" {
            let missing = self.missing(identity::claims(self.set, ordinal));
            if !missing.is_empty() {
                steps.push(Step::Claims(pod.clone(), missing));
            }
        }
        let waits = is_terminating(pod)
            || pods::phase(pod) != "Running"
            || !is_ready(pod)
            || !is_available(pod, self.min_ready(), self.now);
        if waits && !self.parallel() {
            self.own_claims(pod, ordinal, steps);
            return Walk::Stop;
        }
        if let Some(right) = identity::corrected(self.set, pod, ordinal) {
            steps.push(Step::Correct(Box::new(right)));
        }
        self.own_claims(pod, ordinal, steps);
        Walk::On
    }

    fn own_claims(&self, pod: &Arc<Pod>, ordinal: i32, steps: &mut Vec<Step>) {
        for claim in identity::claims(self.set, ordinal) {
            if let Some(claim) = (self.claim)(&claim.name_any())
                && let Some(owners) = identity::claim_owners(self.set, pod, &claim)
            {
                steps.push(Step::Own(claim, owners));
            }
        }
    }

    fn condemn(&self, pod: &Arc<Pod>, first_unhealthy: Option<&str>, steps: &mut Vec<Step>) -> Walk {
        if is_terminating(pod) {
            return Walk::Stop;
        }
        let healthy = pods::phase(pod) == "Running" && is_available(pod, self.min_ready(), self.now);
        if !healthy && !self.parallel() && first_unhealthy != Some(pod.name_any().as_str()) {
            return Walk::Stop;
        }
        steps.push(Step::Delete(pod.clone()));
        Walk::Stop
    }

    /// From the highest ordinal down to the partition, one pod at a time, each only when those above it are well.
    fn roll(&self, replicas: &[Option<&Arc<Pod>>], steps: &mut Vec<Step>, status: &mut StatefulSetStatus) {
        let strategy = self.set.spec.as_ref().and_then(|spec| spec.update_strategy.as_ref());
        if strategy.and_then(|strategy| strategy.type_.as_deref()) == Some("OnDelete") {
            return;
        }
        let partition = strategy
            .and_then(|strategy| strategy.rolling_update.as_ref())
            .and_then(|rolling| rolling.partition)
            .unwrap_or_default();
        let lowest = usize::try_from(partition).unwrap_or_default();
        for pod in replicas.iter().skip(lowest).rev() {
            if let Some(pod) = pod
                && identity::revision(pod) != self.update.name
                && !is_terminating(pod)
            {
                // A finished pod is being deleted by an earlier step already.
                if !is_finished(pod) {
                    steps.push(Step::Delete((*pod).clone()));
                    status.current_replicas = status
                        .current_replicas
                        .map(|count| count - 1)
                        .filter(|count| *count > 0);
                }
                return;
            }
            if self.unavailable(*pod) {
                return;
            }
        }
    }

    fn count(&self) -> StatefulSetStatus {
        let count = |test: &dyn Fn(&Pod) -> bool| {
            let number = self
                .pods
                .iter()
                .filter(|pod| self.ordinal(pod).is_some() && test(pod))
                .count();
            i32::try_from(number).unwrap_or(i32::MAX)
        };
        let nonzero = |count: i32| (count != 0).then_some(count);
        let ready = |pod: &Pod| pods::phase(pod) == "Running" && is_ready(pod);
        let of = |name: &str| count(&|pod| !is_terminating(pod) && identity::revision(pod) == name);
        let old = self.set.status.clone().unwrap_or_default();
        StatefulSetStatus {
            replicas: count(&|_| true),
            ready_replicas: nonzero(count(&ready)),
            available_replicas: Some(count(&|pod| {
                ready(pod) && is_available(pod, self.min_ready(), self.now)
            })),
            current_replicas: nonzero(of(&self.current.name)),
            updated_replicas: nonzero(of(&self.update.name)),
            current_revision: Some(self.current.name.clone()),
            update_revision: Some(self.update.name.clone()),
            collision_count: Some(old.collision_count.unwrap_or_default()),
            observed_generation: self.set.metadata.generation,
            conditions: old.conditions,
        }
    }

    /// When every pod is of the new revision, the new is the current one.
    fn complete(&self, status: &mut StatefulSetStatus) {
        let strategy = self.set.spec.as_ref().and_then(|spec| spec.update_strategy.as_ref());
        let rolls = strategy.and_then(|strategy| strategy.type_.as_deref()) != Some("OnDelete");
        let desired = desired(self.set);
        let all = [status.updated_replicas, status.ready_replicas, Some(status.replicas)];
        if rolls && all.iter().all(|count| count.unwrap_or_default() == desired) {
            status.current_replicas = status.updated_replicas;
            status.current_revision.clone_from(&status.update_revision);
        }
    }

    /// Seconds until the next ready pod becomes available.
    pub fn next_available(&self) -> Option<i64> {
        let waiting = self
            .pods
            .iter()
            .filter_map(|pod| pods::available_in(pod, self.min_ready(), self.now));
        waiting.min()
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;

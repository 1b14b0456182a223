//! `ReplicaSets`: a number of pods of one template.

mod plan;

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Pod;
use kube::{Resource, ResourceExt};

use self::plan::{Failure, Plan};
use super::owners::{self, Claim};
use super::plane::Plane;
use super::pods;
use super::runtime::{Controller, Error, ObjectKey, Queue, Writer, now};

/// The controller of `ReplicaSets`.
pub struct ReplicaSets {
    plane: Plane,
}

impl ReplicaSets {
    /// A controller on the plane.
    pub fn new(plane: &Plane) -> Self {
        Self {
            plane: Plane {
                recorder: plane.recorder.named("replicaset-controller"),
                ..plane.clone()
            },
        }
    }

    /// Which sets a pod's change concerns: its controller, or (for an orphan) every set that selects it.
    pub fn concerned(plane: &Plane, pod: &Pod, queue: &Queue<ObjectKey>) {
        let namespace = pod.namespace().unwrap_or_default();
        match owners::controller_of(pod) {
            Some(owner) if owner.kind == ReplicaSet::kind(&()) => queue.add(ObjectKey::new(namespace, &owner.name)),
            Some(_) => {}
            None => {
                for set in plane.caches.replica_sets.within(&namespace) {
                    if owners::matches(selector(&set).as_ref(), pod) {
                        queue.add(ObjectKey::of(&*set));
                    }
                }
            }
        }
    }

    /// The pods of the set, after adopting orphans and releasing those that do not match any more.
    async fn claim(&self, set: &ReplicaSet) -> Result<Vec<Arc<Pod>>, Error> {
        let selector = selector(set);
        let namespace = set.namespace().unwrap_or_default();
        let writer = Writer::within(&self.plane.client, &namespace, &self.plane.caches.pods);
        let mut ours = Vec::new();
        for pod in self.plane.caches.pods.within(&namespace) {
            let matches = owners::matches(selector.as_ref(), &*pod);
            match owners::claim(set, matches, &*pod) {
                Claim::Ours => ours.push(pod),
                Claim::Adopt if pods::is_active(&pod) => {
                    ours.push(writer.merge(&pod.name_any(), &owners::adoption(set, &*pod)).await?);
                }
                Claim::Release => {
                    writer.merge(&pod.name_any(), &owners::release(set, &*pod)).await?;
                }
                Claim::Adopt | Claim::Foreign => {}
            }
        }
        Ok(ours)
    }

    async fn carry_out(&self, set: &ReplicaSet, plan: &Plan) -> Option<Failure> {
        let created = self.create(set, plan.create).await;
        let deleted = self.delete(set, &plan.delete).await;
        created.or(deleted)
    }

    /// In batches that double, so that a rejection (a quota, an invalid template) costs few requests.
    async fn create(&self, set: &ReplicaSet, count: usize) -> Option<Failure> {
        let template = set
            .spec
            .as_ref()
            .and_then(|spec| spec.template.clone())
            .unwrap_or_default();
        let namespace = set.namespace().unwrap_or_default();
        let writer = Writer::within(&self.plane.client, &namespace, &self.plane.caches.pods);
        let mut pod = pods::from_template(&template, owners::controller_reference(set), &namespace);
        pod.metadata.generate_name = Some(format!("{}-", set.name_any()));
        let (mut left, mut batch) = (count, 1);
        while left > 0 {
            batch = batch.min(left);
            let results = join_all((0..batch).map(|_| writer.create(&pod))).await;
            let mut failure = None;
            for result in results {
                match result {
                    Ok(made) => {
                        let message = format!("Created pod: {}", made.name_any());
                        self.plane.recorder.normal(set, "SuccessfulCreate", message);
                    }
                    Err(error) => {
                        let message = error.message();
                        let event = format!("Error creating: {message}");
                        self.plane.recorder.warning(set, "FailedCreate", event);
                        failure = Some(Failure { message });
                    }
                }
            }
            if failure.is_some() {
                return failure;
            }
            left -= batch;
            batch *= 2;
        }
        None
    }

    async fn delete(&self, set: &ReplicaSet, pods: &[Arc<Pod>]) -> Option<Failure> {
        let namespace = set.namespace().unwrap_or_default();
        let writer = Writer::within(&self.plane.client, &namespace, &self.plane.caches.pods);
        let results = join_all(pods.iter().map(|pod| writer.delete(pod))).await;
        let mut failure = None;
        for (pod, result) in pods.iter().zip(results) {
            match result {
                Ok(()) => {
                    let message = format!("Deleted pod: {}", pod.name_any());
                    self.plane.recorder.normal(set, "SuccessfulDelete", message);
                }
                Err(error) => {
                    let message = error.message();
                    let event = format!("Error deleting: {message}");
                    self.plane.recorder.warning(set, "FailedDelete", event);
                    failure = Some(Failure { message });
                }
            }
        }
        failure
    }

    /// The pods of every set with the same owner: pods are deleted first from nodes that hold more of them.
    fn related(&self, set: &ReplicaSet, ours: &[Arc<Pod>]) -> Vec<Arc<Pod>> {
        let Some(owner) = owners::controller_of(set) else {
            return ours.to_vec();
        };
        let namespace = set.namespace().unwrap_or_default();
        let family: Vec<String> = self
            .plane
            .caches
            .replica_sets
            .within(&namespace)
            .iter()
            .filter(|other| owners::is_controlled_by(&***other, &owner.uid))
            .filter_map(|other| other.uid())
            .collect();
        let mut pods = self.plane.caches.pods.within(&namespace);
        pods.retain(|pod| {
            owners::controller_of(&**pod).is_some_and(|owner| family.contains(&owner.uid)) && pods::is_active(pod)
        });
        pods
    }
}

fn selector(set: &ReplicaSet) -> Option<kube::core::Selector> {
    owners::selector(&set.spec.as_ref()?.selector)
}

impl Controller for ReplicaSets {
    const NAME: &'static str = "replicaset";

    async fn reconcile(&self, key: &ObjectKey) -> Result<Option<Duration>, Error> {
        let Some(set) = self.plane.caches.replica_sets.get(key) else {
            return Ok(None);
        };
        let mut active = self.claim(&set).await?;
        active.retain(|pod| pods::is_active(pod));
        let now = now();
        let plan = plan::plan(&set, &active, &self.related(&set, &active), &now);
        let failure = self.carry_out(&set, &plan).await;

        let status = plan::status(&set, &active, failure.as_ref(), &now);
        if !plan::is_same_status(&status, &set.status.clone().unwrap_or_default()) {
            let mut updated = (*set).clone();
            updated.status = Some(status);
            Writer::within(&self.plane.client, &key.namespace, &self.plane.caches.replica_sets)
                .replace_status(&updated)
                .await?;
        }
        if let Some(failure) = failure {
            return Err(Error::NotYet(failure.message));
        }
        let min_ready = set
            .spec
            .as_ref()
            .and_then(|spec| spec.min_ready_seconds)
            .unwrap_or_default();
        let soonest = active
            .iter()
            .filter_map(|pod| pods::available_in(pod, min_ready, &now))
            .min();
        Ok(soonest.map(|left| Duration::from_secs(left.unsigned_abs())))
    }
}

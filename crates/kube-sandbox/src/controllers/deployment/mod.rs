//! Deployments: a rollout from one template to the next, over `ReplicaSets`.

mod decide;
mod rollout;
mod status;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use kube::{Resource, ResourceExt};
use serde_json::json;

use self::decide::{Decision, Write, decide};
use super::owners::{self, Claim};
use super::plane::Plane;
use super::pods;
use super::runtime::{Controller, Error, ObjectKey, Queue, Writer, now};

pub(super) use rollout::resolve;

/// The controller of Deployments.
pub struct Deployments {
    plane: Plane,
}

impl Deployments {
    /// A controller on the plane.
    pub fn new(plane: &Plane) -> Self {
        Self {
            plane: Plane {
                recorder: plane.recorder.named("deployment-controller"),
                ..plane.clone()
            },
        }
    }

    /// Which deployments a set's change concerns.
    pub fn concerned(plane: &Plane, set: &ReplicaSet, queue: &Queue<ObjectKey>) {
        let namespace = set.namespace().unwrap_or_default();
        match owners::controller_of(set) {
            Some(owner) if owner.kind == Deployment::kind(&()) => queue.add(ObjectKey::new(namespace, &owner.name)),
            Some(_) => {}
            None => {
                for deployment in plane.caches.deployments.within(&namespace) {
                    if owners::matches(selector(&deployment).as_ref(), set) {
                        queue.add(ObjectKey::of(&*deployment));
                    }
                }
            }
        }
    }

    /// A pod that went away may be the last one a Recreate waits for.
    pub fn concerned_by_pod(plane: &Plane, pod: &Pod, queue: &Queue<ObjectKey>) {
        let namespace = pod.namespace().unwrap_or_default();
        let set = owners::controller_of(pod)
            .filter(|owner| owner.kind == ReplicaSet::kind(&()))
            .and_then(|owner| plane.caches.replica_sets.find(&namespace, &owner.name));
        let Some(owner) = set.as_deref().and_then(owners::controller_of) else {
            return;
        };
        let key = ObjectKey::new(namespace, &owner.name);
        if plane
            .caches
            .deployments
            .get(&key)
            .is_some_and(|deployment| rollout::recreates(&deployment))
        {
            queue.add(key);
        }
    }

    async fn claim(&self, deployment: &Deployment) -> Result<Vec<Arc<ReplicaSet>>, Error> {
        let selector = selector(deployment);
        let namespace = deployment.namespace().unwrap_or_default();
        let writer = self.sets(&namespace);
        let mut ours = Vec::new();
        for set in self.plane.caches.replica_sets.within(&namespace) {
            match owners::claim(deployment, owners::matches(selector.as_ref(), &*set), &*set) {
                Claim::Ours => ours.push(set),
                Claim::Adopt => ours.push(
                    writer
                        .merge(&set.name_any(), &owners::adoption(deployment, &*set))
                        .await?,
                ),
                Claim::Release => {
                    writer
                        .merge(&set.name_any(), &owners::release(deployment, &*set))
                        .await?;
                }
                Claim::Foreign => {}
            }
        }
        Ok(ours)
    }

    fn sets(&self, namespace: &str) -> Writer<'_, ReplicaSet> {
        Writer::within(&self.plane.client, namespace, &self.plane.caches.replica_sets)
    }

    /// Whether pods of a set other than the new one still exist, terminating ones included.
    fn others_run(&self, deployment: &Deployment, sets: &[Arc<ReplicaSet>]) -> bool {
        let new = rollout::find_new(deployment, sets).and_then(|set| set.uid());
        let old: Vec<String> = sets
            .iter()
            .filter_map(|set| set.uid())
            .filter(|uid| Some(uid) != new.as_ref())
            .collect();
        let namespace = deployment.namespace().unwrap_or_default();
        self.plane.caches.pods.within(&namespace).iter().any(|pod| {
            owners::controller_of(&**pod).is_some_and(|owner| old.contains(&owner.uid)) && !pods::is_finished(pod)
        })
    }

    async fn carry_out(&self, deployment: &Deployment, decision: &mut Decision) -> Result<(), Error> {
        let namespace = deployment.namespace().unwrap_or_default();
        for write in std::mem::take(&mut decision.writes) {
            match write {
                Write::Create(set) => self.create(deployment, &set, decision).await?,
                Write::Update(set, event) => {
                    self.sets(&namespace).replace(&set).await?;
                    if let Some(event) = event {
                        self.plane.recorder.normal(deployment, "ScalingReplicaSet", event);
                    }
                }
                Write::Delete(set) => self.sets(&namespace).delete(&set).await?,
            }
        }
        Ok(())
    }

    async fn create(&self, deployment: &Deployment, set: &ReplicaSet, decision: &mut Decision) -> Result<(), Error> {
        let namespace = deployment.namespace().unwrap_or_default();
        match self.sets(&namespace).create(set).await {
            Ok(_) => {
                let (name, size) = (set.name_any(), rollout::size(set));
                if size > 0 {
                    let message = format!("Scaled up replica set {name} from 0 to {size}");
                    self.plane.recorder.normal(deployment, "ScalingReplicaSet", message);
                }
                Ok(())
            }
            Err(error) if error.already_exists() => {
                // Another template with the same hash, or a set of another owner: the next attempt uses another name.
                let count = decision.status.collision_count.unwrap_or_default() + 1;
                decision.status = deployment.status.clone().unwrap_or_default();
                decision.status.collision_count = Some(count);
                decision.revision = None;
                Ok(())
            }
            Err(error) => {
                let message = format!(
                    "Failed to create new replica set \"{}\": {}",
                    set.name_any(),
                    error.message()
                );
                self.plane
                    .recorder
                    .warning(deployment, status::reason::CREATE_ERROR, message.clone());
                if status::deadline(deployment).is_some() {
                    let failed =
                        status::condition("Progressing", "False", status::reason::CREATE_ERROR, message, &now());
                    let mut updated = deployment.status.clone().unwrap_or_default();
                    status::set(&mut updated, failed);
                    decision.status = updated;
                    self.write_status(deployment, decision).await?;
                }
                Err(error)
            }
        }
    }

    async fn write_status(
        &self,
        deployment: &Deployment,
        decision: &Decision,
    ) -> Result<Option<Arc<Deployment>>, Error> {
        if deployment.status.as_ref() == Some(&decision.status) {
            return Ok(None);
        }
        let mut updated = deployment.clone();
        updated.status = Some(decision.status.clone());
        Ok(Some(self.deployments(deployment).replace_status(&updated).await?))
    }

    fn deployments(&self, deployment: &Deployment) -> Writer<'_, Deployment> {
        let namespace = deployment.namespace().unwrap_or_default();
        Writer::within(&self.plane.client, &namespace, &self.plane.caches.deployments)
    }
}

fn selector(deployment: &Deployment) -> Option<kube::core::Selector> {
    owners::selector(&deployment.spec.as_ref()?.selector)
}

impl Controller for Deployments {
    const NAME: &'static str = "deployment";

    async fn reconcile(&self, key: &ObjectKey) -> Result<Option<Duration>, Error> {
        let Some(deployment) = self.plane.caches.deployments.get(key) else {
            return Ok(None);
        };
        let sets = self.claim(&deployment).await?;
        let now = now();
        let mut decision = decide(&deployment, &sets, self.others_run(&deployment, &sets), &now);
        self.carry_out(&deployment, &mut decision).await?;
        self.write_status(&deployment, &decision).await?;
        if let Some(revision) = &decision.revision
            && deployment.annotations().get(rollout::REVISION) != Some(revision)
        {
            let patch = json!({"metadata": {"annotations": {rollout::REVISION: revision}}});
            self.deployments(&deployment).merge(&key.name, &patch).await?;
        }
        let left = status::seconds_to_deadline(&deployment, &decision.status, &now);
        Ok(left.map(|seconds| Duration::from_secs(seconds.unsigned_abs())))
    }
}

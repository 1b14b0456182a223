//! `StatefulSets`: pods with stable names, an order and their own claims.

mod identity;
mod plan;
mod revision;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet, StatefulSetStatus};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::{Resource, ResourceExt};
use serde_json::json;

use self::plan::{Plan, Revision, Step, View};
use self::revision::Update;
use super::owners::{self, Claim};
use super::plane::Plane;
use super::runtime::{Controller, Error, ObjectKey, Queue, Writer, now};

/// The controller of `StatefulSets`.
pub struct StatefulSets {
    plane: Plane,
}

impl StatefulSets {
    /// A controller on the plane.
    pub fn new(plane: &Plane) -> Self {
        Self {
            plane: Plane {
                recorder: plane.recorder.named("statefulset-controller"),
                ..plane.clone()
            },
        }
    }

    /// Which sets a pod's change concerns.
    pub fn concerned(plane: &Plane, pod: &Pod, queue: &Queue<ObjectKey>) {
        let namespace = pod.namespace().unwrap_or_default();
        match owners::controller_of(pod) {
            Some(owner) if owner.kind == StatefulSet::kind(&()) => queue.add(ObjectKey::new(namespace, &owner.name)),
            Some(_) => {}
            None => {
                for set in plane.caches.stateful_sets.within(&namespace) {
                    if owners::matches(selector(&set).as_ref(), pod) {
                        queue.add(ObjectKey::of(&*set));
                    }
                }
            }
        }
    }

    fn pods(&self, namespace: &str) -> Writer<'_, Pod> {
        Writer::within(&self.plane.client, namespace, &self.plane.caches.pods)
    }

    fn claims(&self, namespace: &str) -> Writer<'_, PersistentVolumeClaim> {
        Writer::within(&self.plane.client, namespace, &self.plane.caches.claims)
    }

    fn revisions(&self, namespace: &str) -> Writer<'_, ControllerRevision> {
        Writer::within(&self.plane.client, namespace, &self.plane.caches.revisions)
    }

    async fn claim(&self, set: &StatefulSet) -> Result<Vec<Arc<Pod>>, Error> {
        let selector = selector(set);
        let namespace = set.namespace().unwrap_or_default();
        let mut ours = Vec::new();
        for pod in self.plane.caches.pods.within(&namespace) {
            // Only a pod with a name of the set's own is a member, whatever its labels.
            let named = identity::ordinal(&set.name_any(), &pod.name_any()).is_some();
            let matches = owners::matches(selector.as_ref(), &*pod) && named;
            match owners::claim(set, matches, &*pod) {
                Claim::Ours => ours.push(pod),
                Claim::Adopt => {
                    let patch = owners::adoption(set, &*pod);
                    ours.push(self.pods(&namespace).merge(&pod.name_any(), &patch).await?);
                }
                Claim::Release => {
                    let patch = owners::release(set, &*pod);
                    self.pods(&namespace).merge(&pod.name_any(), &patch).await?;
                }
                Claim::Foreign => {}
            }
        }
        Ok(ours)
    }

    async fn history(&self, set: &StatefulSet) -> Result<Vec<Arc<ControllerRevision>>, Error> {
        let selector = selector(set);
        let namespace = set.namespace().unwrap_or_default();
        let mut ours = Vec::new();
        for revision in self.plane.caches.revisions.within(&namespace) {
            let matches = owners::matches(selector.as_ref(), &*revision);
            match owners::claim(set, matches, &*revision) {
                Claim::Ours => ours.push(revision),
                Claim::Adopt => {
                    let patch = owners::adoption(set, &*revision);
                    ours.push(self.revisions(&namespace).merge(&revision.name_any(), &patch).await?);
                }
                Claim::Release | Claim::Foreign => {}
            }
        }
        Ok(ours)
    }

    /// The update revision, made or renumbered where needed.
    async fn update_revision(
        &self,
        set: &StatefulSet,
        history: &[Arc<ControllerRevision>],
    ) -> Result<Arc<ControllerRevision>, Error> {
        let writer = self.revisions(&set.namespace().unwrap_or_default());
        match revision::place(set, history) {
            Update::Latest(revision) => Ok(revision),
            Update::Again(revision) => writer.replace(&revision).await,
            Update::New(revision) => match writer.create(&revision).await {
                Err(error) if error.already_exists() => {
                    self.count_collision(set).await?;
                    Err(Error::NotYet(format!(
                        "the revision name {} is taken; the next one is tried",
                        revision.name_any()
                    )))
                }
                other => other,
            },
        }
    }

    async fn count_collision(&self, set: &StatefulSet) -> Result<(), Error> {
        let mut status = set.status.clone().unwrap_or_default();
        status.collision_count = Some(status.collision_count.unwrap_or_default() + 1);
        self.write_status(set, status).await
    }

    async fn write_status(&self, set: &StatefulSet, status: StatefulSetStatus) -> Result<(), Error> {
        if set.status.as_ref() != Some(&status) {
            let mut updated = set.clone();
            updated.status = Some(status);
            let namespace = set.namespace().unwrap_or_default();
            Writer::within(&self.plane.client, &namespace, &self.plane.caches.stateful_sets)
                .replace_status(&updated)
                .await?;
        }
        Ok(())
    }

    async fn carry_out(&self, set: &StatefulSet, steps: Vec<Step>) -> Result<(), Error> {
        let namespace = set.namespace().unwrap_or_default();
        let mut failed = None;
        for step in steps {
            let result = match step {
                Step::Create(pod, claims) => self.create(set, &pod, claims).await,
                Step::Claims(pod, claims) => self.create_claims(set, &pod.name_any(), claims).await,
                Step::Correct(pod) => self.pods(&namespace).replace(&pod).await.map(drop),
                Step::Own(claim, owners) => {
                    let patch = json!({"metadata": {"ownerReferences": owners,
                        "uid": claim.uid(), "resourceVersion": claim.resource_version()}});
                    self.claims(&namespace).merge(&claim.name_any(), &patch).await.map(drop)
                }
                Step::Delete(pod) => {
                    let result = self.pods(&namespace).delete(&pod).await;
                    self.record(set, "delete", &pod.name_any(), &result);
                    result
                }
            };
            failed = failed.or(result.err());
        }
        failed.map_or(Ok(()), Err)
    }

    async fn create(&self, set: &StatefulSet, pod: &Pod, claims: Vec<PersistentVolumeClaim>) -> Result<(), Error> {
        let made = self.create_claims(set, &pod.name_any(), claims).await;
        let result = match made {
            Ok(()) => self
                .pods(&set.namespace().unwrap_or_default())
                .create(pod)
                .await
                .map(drop),
            Err(error) => Err(error),
        };
        if result.as_ref().err().is_none_or(|error| !error.already_exists()) {
            self.record(set, "create", &pod.name_any(), &result);
        }
        result
    }

    async fn create_claims(
        &self,
        set: &StatefulSet,
        pod: &str,
        claims: Vec<PersistentVolumeClaim>,
    ) -> Result<(), Error> {
        for claim in claims {
            let (name, owner) = (claim.name_any(), set.name_any());
            match self.claims(&set.namespace().unwrap_or_default()).create(&claim).await {
                Ok(_) => {
                    let message = format!("create Claim {name} Pod {pod} in StatefulSet {owner} success");
                    self.plane.recorder.normal(set, "SuccessfulCreate", message);
                }
                Err(error) if error.already_exists() => {}
                Err(error) => {
                    let why = error.message();
                    let message =
                        format!("create Claim {name} for Pod {pod} in StatefulSet {owner} failed error: {why}");
                    self.plane.recorder.warning(set, "FailedCreate", message);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn record(&self, set: &StatefulSet, verb: &str, pod: &str, result: &Result<(), Error>) {
        let owner = set.name_any();
        match result {
            Ok(()) => {
                let reason = if verb == "create" {
                    "SuccessfulCreate"
                } else {
                    "SuccessfulDelete"
                };
                let message = format!("{verb} Pod {pod} in StatefulSet {owner} successful");
                self.plane.recorder.normal(set, reason, message);
            }
            Err(error) => {
                let reason = if verb == "create" {
                    "FailedCreate"
                } else {
                    "FailedDelete"
                };
                let why = error.message();
                let message = format!("{verb} Pod {pod} in StatefulSet {owner} failed error: {why}");
                self.plane.recorder.warning(set, reason, message);
            }
        }
    }
}

fn selector(set: &StatefulSet) -> Option<kube::core::Selector> {
    owners::selector(&set.spec.as_ref()?.selector)
}

fn readable(revision: &ControllerRevision, set: &StatefulSet) -> Revision {
    let own = || set.spec.as_ref().map(|spec| spec.template.clone());
    Revision {
        name: revision.name_any(),
        template: revision::template(revision).or_else(own).unwrap_or_default(),
    }
}

impl Controller for StatefulSets {
    const NAME: &'static str = "statefulset";

    async fn reconcile(&self, key: &ObjectKey) -> Result<Option<Duration>, Error> {
        let Some(set) = self.plane.caches.stateful_sets.get(key) else {
            return Ok(None);
        };
        let pods = self.claim(&set).await?;
        let history = self.history(&set).await?;
        let update = self.update_revision(&set, &history).await?;
        let known = set.status.as_ref().and_then(|status| status.current_revision.clone());
        let current = history
            .iter()
            .find(|revision| Some(revision.name_any()) == known)
            .unwrap_or(&update);
        let (now, claims) = (now(), &self.plane.caches.claims);
        let view = View {
            set: &set,
            current: &readable(current, &set),
            update: &readable(&update, &set),
            pods: &pods,
            claim: &|name| claims.find(&key.namespace, name),
            now: &now,
        };
        let Plan { steps, status } = view.plan();
        let again = view.next_available();
        let live = [current.name_any(), update.name_any()];
        let live: Vec<&str> = live.iter().map(String::as_str).collect();
        let surplus = revision::surplus(&set, &pods, &history, &live);

        let done = self.carry_out(&set, steps).await;
        self.write_status(&set, status).await?;
        done?;
        for revision in surplus {
            self.revisions(&key.namespace).delete(&revision).await?;
        }
        Ok(again.map(|seconds| Duration::from_secs(seconds.unsigned_abs())))
    }
}

//! `PodDisruptionBudgets`: how many pods may be evicted now. The eviction API of the server counts the status down.

mod status;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;
use kube::api::{Api, DynamicObject};

use super::owners;
use super::plane::Plane;
use super::runtime::{Controller, Error, ObjectKey, Queue, Writer, now};

/// The controller of `PodDisruptionBudgets`.
pub struct Budgets {
    plane: Plane,
}

impl Budgets {
    /// A controller on the plane.
    pub fn new(plane: &Plane) -> Self {
        Self {
            plane: Plane {
                recorder: plane.recorder.named("controllermanager"),
                ..plane.clone()
            },
        }
    }

    /// Which budgets a pod's change concerns.
    pub fn concerned(plane: &Plane, pod: &Pod, queue: &Queue<ObjectKey>) {
        for budget in plane.caches.budgets.within(&pod.namespace().unwrap_or_default()) {
            if owners::matches(selector(&budget).as_ref(), pod) {
                queue.add(ObjectKey::of(&*budget));
            }
        }
    }

    /// A change of size concerns every budget of the namespace.
    pub fn concerned_by_scale<K: kube::Resource>(plane: &Plane, workload: &K, queue: &Queue<ObjectKey>) {
        for budget in plane.caches.budgets.within(&workload.namespace().unwrap_or_default()) {
            queue.add(ObjectKey::of(&*budget));
        }
    }

    /// The sum of the sizes of the pods' controllers.
    async fn scale(&self, namespace: &str, pods: &[Arc<Pod>]) -> Result<Result<i32, String>, Error> {
        let mut sizes: BTreeMap<String, i32> = BTreeMap::new();
        for pod in pods {
            let Some(owner) = owners::controller_of(&**pod) else {
                continue;
            };
            if sizes.contains_key(&owner.uid) {
                continue;
            }
            let Some((uid, size)) = self.size(namespace, owner).await? else {
                return Ok(Err(format!("found no controllers for pod \"{}\"", pod.name_any())));
            };
            // A set of a Deployment counts as the Deployment: during a rollout there are several.
            sizes.insert(uid, size);
        }
        Ok(Ok(sizes.values().sum()))
    }

    async fn size(&self, namespace: &str, owner: &OwnerReference) -> Result<Option<(String, i32)>, Error> {
        let caches = &self.plane.caches;
        match owner.kind.as_str() {
            "ReplicaSet" => {
                let Some(set) = caches.replica_sets.find(namespace, &owner.name) else {
                    return Ok(None);
                };
                let parent = owners::controller_of(&*set).filter(|parent| parent.kind == "Deployment");
                let deployment = parent.and_then(|parent| caches.deployments.find(namespace, &parent.name));
                if let Some(deployment) = deployment {
                    let size = deployment.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
                    return Ok(Some((deployment.uid().unwrap_or_default(), size)));
                }
                let size = set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
                Ok(Some((owner.uid.clone(), size)))
            }
            "StatefulSet" => {
                let set = caches.stateful_sets.find(namespace, &owner.name);
                let size = |spec: &k8s_openapi::api::apps::v1::StatefulSetSpec| spec.replicas;
                Ok(set.map(|set| (owner.uid.clone(), set.spec.as_ref().and_then(size).unwrap_or(1))))
            }
            _ => self.scale_of_any(namespace, owner).await,
        }
    }

    /// The size of any other kind comes from its scale subresource, if it has one.
    async fn scale_of_any(&self, namespace: &str, owner: &OwnerReference) -> Result<Option<(String, i32)>, Error> {
        let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
        let Some(served) = self.plane.resources.of_kind(group, &owner.kind) else {
            return Ok(None);
        };
        let api: Api<DynamicObject> = Api::namespaced_with(self.plane.client.clone(), namespace, &served.resource);
        match api.get_scale(&owner.name).await {
            Ok(scale) => {
                let size = scale.spec.and_then(|spec| spec.replicas).unwrap_or_default();
                Ok(Some((owner.uid.clone(), size)))
            }
            Err(kube::Error::Api(status)) if status.code == 404 || status.code == 405 => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

fn selector(budget: &PodDisruptionBudget) -> Option<kube::core::Selector> {
    owners::selector(budget.spec.as_ref()?.selector.as_ref()?)
}

impl Controller for Budgets {
    const NAME: &'static str = "disruption";

    async fn reconcile(&self, key: &ObjectKey) -> Result<Option<Duration>, Error> {
        let Some(budget) = self.plane.caches.budgets.get(key) else {
            return Ok(None);
        };
        let selector = selector(&budget);
        let mut pods = self.plane.caches.pods.within(&key.namespace);
        pods.retain(|pod| owners::matches(selector.as_ref(), &**pod));
        if pods.is_empty()
            && budget
                .status
                .as_ref()
                .is_none_or(|status| status.observed_generation != budget.metadata.generation)
        {
            self.plane.recorder.normal(&*budget, "NoPods", "No matching pods found");
        }
        let scale = self.scale(&key.namespace, &pods).await?;
        if let Err(trouble) = &scale {
            let message = format!("Failed to calculate the number of expected pods: {trouble}");
            self.plane
                .recorder
                .warning(&*budget, "CalculateExpectedPodCountFailed", message);
        }
        let outcome = status::status(&budget, &pods, &scale, &now());
        for pod in outcome.late {
            let message = format!(
                "Pod was expected by PDB {}/{} to be deleted but it wasn't",
                key.namespace, key.namespace
            );
            self.plane.recorder.warning(&*pod, "NotDeleted", message);
        }
        if budget.status.as_ref() != Some(&outcome.status) {
            let mut updated = (*budget).clone();
            updated.status = Some(outcome.status);
            Writer::within(&self.plane.client, &key.namespace, &self.plane.caches.budgets)
                .replace_status(&updated)
                .await?;
        }
        Ok(outcome.again.map(|seconds| Duration::from_secs(seconds.unsigned_abs())))
    }
}

//! Endpoints and `EndpointSlices` of services with a selector.

mod members;
mod slices;
mod subsets;
#[cfg(test)]
mod tests;

use std::time::Duration;

use k8s_openapi::api::core::v1::{Endpoints, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::ResourceExt;

use super::plane::Plane;
use super::runtime::{Controller, Error, ObjectKey, Queue, Writer, now};

/// When the change that led to a write was seen.
const TRIGGERED: &str = "endpoints.kubernetes.io/last-change-trigger-time";

fn triggered() -> String {
    now().0.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The controller of both forms.
pub struct ServiceEndpoints {
    plane: Plane,
}

impl ServiceEndpoints {
    /// A controller on the plane.
    pub fn new(plane: &Plane) -> Self {
        Self { plane: plane.clone() }
    }

    /// Which services a pod's change concerns.
    pub fn concerned(plane: &Plane, pod: &Pod, queue: &Queue<ObjectKey>) {
        for service in plane.caches.services.within(&pod.namespace().unwrap_or_default()) {
            if members::selects(&service, pod) {
                queue.add(ObjectKey::of(&*service));
            }
        }
    }

    /// Someone touched a slice: its service puts it right.
    pub fn concerned_by_slice(_: &Plane, slice: &EndpointSlice, queue: &Queue<ObjectKey>) {
        if slice.labels().get(slices::MANAGED).map(String::as_str) == Some(slices::MANAGER)
            && let Some(service) = slice.labels().get(slices::SERVICE)
        {
            queue.add(ObjectKey::new(slice.namespace().unwrap_or_default(), service));
        }
    }

    async fn old_form(&self, key: &ObjectKey, service: &Service, members: &[members::Member]) -> Result<(), Error> {
        let mut desired = subsets::endpoints(service, members);
        desired.annotations_mut().insert(TRIGGERED.into(), triggered());
        let writer = Writer::within(&self.plane.client, &key.namespace, &self.plane.caches.endpoints);
        match self.plane.caches.endpoints.get(key) {
            None => writer.create(&desired).await.map(drop),
            Some(known) if known.subsets == desired.subsets && known.labels() == desired.labels() => Ok(()),
            Some(known) => {
                let mut changed: Endpoints = (*known).clone();
                changed.subsets = desired.subsets;
                changed.metadata.labels = desired.metadata.labels;
                changed.annotations_mut().insert(TRIGGERED.into(), triggered());
                writer.replace(&changed).await.map(drop)
            }
        }
    }

    async fn new_form(&self, key: &ObjectKey, service: &Service, members: &[members::Member]) -> Result<(), Error> {
        let mut existing = self.plane.caches.slices.within(&key.namespace);
        existing.retain(|slice| {
            let label = |key: &str| slice.labels().get(key).map(String::as_str);
            label(slices::SERVICE) == Some(&key.name) && label(slices::MANAGED) == Some(slices::MANAGER)
        });
        let nodes = &self.plane.caches.nodes;
        let plan = slices::plan(service, members, &existing, &|name| nodes.find("", name));
        let writer = Writer::within(&self.plane.client, &key.namespace, &self.plane.caches.slices);
        for mut slice in plan.create {
            slice.annotations_mut().insert(TRIGGERED.into(), triggered());
            writer.create(&slice).await?;
        }
        for mut slice in plan.update {
            slice.annotations_mut().insert(TRIGGERED.into(), triggered());
            writer.replace(&slice).await?;
        }
        for slice in &plan.delete {
            writer.delete(slice).await?;
        }
        Ok(())
    }
}

impl Controller for ServiceEndpoints {
    const NAME: &'static str = "endpoints";

    async fn reconcile(&self, key: &ObjectKey) -> Result<Option<Duration>, Error> {
        let caches = &self.plane.caches;
        let service = caches
            .services
            .get(key)
            .filter(|service| service.metadata.deletion_timestamp.is_none());
        let Some(service) = service else {
            // Slices have an owner and are collected; Endpoints have none.
            if let Some(left) = caches.endpoints.get(key)
                && left.labels().contains_key("endpoints.kubernetes.io/managed-by")
            {
                Writer::within(&self.plane.client, &key.namespace, &caches.endpoints)
                    .delete(&left)
                    .await?;
            }
            return Ok(None);
        };
        let selects = service
            .spec
            .as_ref()
            .and_then(|spec| spec.selector.as_ref())
            .is_some_and(|all| !all.is_empty());
        let external = service.spec.as_ref().and_then(|spec| spec.type_.as_deref()) == Some("ExternalName");
        if !selects || external {
            return Ok(None);
        }
        let members = members::members(&service, &caches.pods.within(&key.namespace));
        self.old_form(key, &service, &members).await?;
        self.new_form(key, &service, &members).await?;
        Ok(None)
    }
}

//! The claims' side: binding, provisioning, expansion, protection.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimStatus, Pod};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::ResourceExt;
use kube::api::Api;
use serde_json::json;

use super::matching::{BIND_COMPLETED, BOUND_BY_CONTROLLER, Next, View, is_for};
use super::{expand, folder};
use crate::controllers::plane::Plane;
use crate::controllers::pods;
use crate::controllers::runtime::{Controller, Error, ObjectKey, Queue, Writer, now};
use crate::scheduler::volumes::{SELECTED_NODE, claim_names};

const PROTECTION: &str = "kubernetes.io/pvc-protection";
const PROVISIONER_NOTES: [&str; 2] = [
    "volume.beta.kubernetes.io/storage-provisioner",
    "volume.kubernetes.io/storage-provisioner",
];

/// The controller of claims.
pub struct Claims {
    plane: Plane,
}

impl Claims {
    /// A controller on the plane.
    pub fn new(plane: &Plane) -> Self {
        Self {
            plane: Plane {
                recorder: plane.recorder.named("persistentvolume-controller"),
                ..plane.clone()
            },
        }
    }

    /// A pod that came or went may free, protect or grow its claims.
    pub fn concerned(_: &Plane, pod: &Pod, queue: &Queue<ObjectKey>) {
        let namespace = pod.namespace().unwrap_or_default();
        for name in claim_names(pod) {
            queue.add(ObjectKey::new(&namespace, name));
        }
    }

    /// A volume concerns its claim, or (if it is free) every claim that waits.
    pub fn concerned_by_volume(plane: &Plane, volume: &PersistentVolume, queue: &Queue<ObjectKey>) {
        match volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref()) {
            Some(claim) => {
                let (namespace, name) = (claim.namespace.clone(), claim.name.clone());
                queue.add(ObjectKey::new(namespace.unwrap_or_default(), name.unwrap_or_default()));
            }
            None => waiting(plane, queue),
        }
    }

    /// A class concerns every claim that waits.
    pub fn concerned_by_class(plane: &Plane, _: &StorageClass, queue: &Queue<ObjectKey>) {
        waiting(plane, queue);
    }

    fn claims(&self, namespace: &str) -> Writer<'_, PersistentVolumeClaim> {
        Writer::within(&self.plane.client, namespace, &self.plane.caches.claims)
    }

    fn volumes(&self) -> Writer<'_, PersistentVolume> {
        Writer::new(Api::all(self.plane.client.clone()), &self.plane.caches.volumes)
    }

    fn users(&self, claim: &PersistentVolumeClaim) -> Vec<Arc<Pod>> {
        let name = claim.name_any();
        let mut pods = self.plane.caches.pods.within(&claim.namespace().unwrap_or_default());
        pods.retain(|pod| {
            pods::node_name(pod).is_some() && !pods::is_finished(pod) && claim_names(pod).contains(&name)
        });
        pods
    }

    /// Adds the finalizer, or removes it from a claim that is being deleted and that no pod uses.
    async fn protect(&self, claim: &Arc<PersistentVolumeClaim>) -> Result<Arc<PersistentVolumeClaim>, Error> {
        let mut finalizers = claim.finalizers().to_vec();
        let protected = finalizers.iter().any(|name| name == PROTECTION);
        let leaving = claim.metadata.deletion_timestamp.is_some();
        if !leaving && !protected {
            finalizers.push(PROTECTION.into());
        } else if leaving && protected && self.users(claim).is_empty() {
            finalizers.retain(|name| name != PROTECTION);
        } else {
            return Ok(claim.clone());
        }
        let writer = self.claims(&claim.namespace().unwrap_or_default());
        writer.set_finalizers(claim, &finalizers).await
    }

    async fn write_status(
        &self,
        claim: &PersistentVolumeClaim,
        status: PersistentVolumeClaimStatus,
    ) -> Result<(), Error> {
        if claim.status.as_ref() != Some(&status) {
            let mut updated = claim.clone();
            updated.status = Some(status);
            self.claims(&claim.namespace().unwrap_or_default())
                .replace_status(&updated)
                .await?;
        }
        Ok(())
    }

    async fn phase(&self, claim: &PersistentVolumeClaim, phase: &str) -> Result<bool, Error> {
        let mut status = claim.status.clone().unwrap_or_default();
        let changed = status.phase.as_deref() != Some(phase);
        status.phase = Some(phase.into());
        self.write_status(claim, status).await?;
        Ok(changed)
    }

    /// Both sides name each other; the volume first, so that no other claim can take it.
    async fn bind(&self, claim: &PersistentVolumeClaim, volume: &Arc<PersistentVolume>) -> Result<(), Error> {
        let mut volume = volume.clone();
        let complete = is_for(&volume, claim)
            && volume
                .spec
                .as_ref()
                .and_then(|spec| spec.claim_ref.as_ref())
                .is_some_and(|claim| claim.uid.is_some());
        if !complete {
            let mut taken = (*volume).clone();
            let spec = taken.spec.get_or_insert_default();
            if spec.claim_ref.is_none() {
                taken.annotations_mut().insert(BOUND_BY_CONTROLLER.into(), "yes".into());
            }
            taken.spec.get_or_insert_default().claim_ref = Some(folder::reference(claim));
            volume = self.volumes().replace(&taken).await?;
        }
        if volume.status.as_ref().and_then(|status| status.phase.as_deref()) != Some("Bound") {
            let mut updated = (*volume).clone();
            updated.status.get_or_insert_default().phase = Some("Bound".into());
            volume = self.volumes().replace_status(&updated).await?;
        }
        let mut bound = claim.clone();
        let spec = bound.spec.get_or_insert_default();
        let by_us = spec.volume_name.as_deref().unwrap_or_default().is_empty();
        spec.volume_name = Some(volume.name_any());
        bound.annotations_mut().insert(BIND_COMPLETED.into(), "yes".into());
        if by_us {
            bound.annotations_mut().insert(BOUND_BY_CONTROLLER.into(), "yes".into());
        }
        let bound = self
            .claims(&claim.namespace().unwrap_or_default())
            .replace(&bound)
            .await?;
        self.settle(&bound, &volume).await
    }

    async fn settle(&self, claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> Result<(), Error> {
        let mut status = claim.status.clone().unwrap_or_default();
        if status.phase.as_deref() != Some("Bound") || status.capacity.is_none() {
            status.phase = Some("Bound".into());
            let spec = volume.spec.clone().unwrap_or_default();
            status.access_modes = spec.access_modes;
            status.capacity = spec.capacity;
            return self.write_status(claim, status).await;
        }
        self.grow(claim, volume).await
    }

    async fn grow(&self, claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> Result<(), Error> {
        let running = |pod: &&Arc<Pod>| pods::phase(pod) == "Running";
        let users = self.users(claim);
        let mounted = users.iter().find(running);
        let recorder = self.plane.recorder.named("volume_expand");
        match expand::next(claim, volume, mounted.is_some(), &now()) {
            None => Ok(()),
            Some(expand::Step::Announce(status)) => {
                let message = format!("External resizer is resizing volume {}", volume.name_any());
                recorder.normal(claim, "Resizing", message);
                self.write_status(claim, status).await
            }
            Some(expand::Step::GrowVolume(size)) => {
                let patch = json!({"spec": {"capacity": {"storage": size}}});
                self.volumes().merge(&volume.name_any(), &patch).await.map(drop)
            }
            Some(expand::Step::AwaitFileSystem(status)) => {
                let message = "Require file system resize of volume on node";
                recorder.normal(claim, "FileSystemResizeRequired", message);
                self.write_status(claim, status).await
            }
            Some(expand::Step::Finish(status)) => {
                if let Some(pod) = mounted {
                    let message = format!(
                        "MountVolume.NodeExpandVolume succeeded for volume \"{}\"",
                        volume.name_any()
                    );
                    recorder
                        .named("kubelet")
                        .normal(&**pod, "FileSystemResizeSuccessful", message);
                }
                self.write_status(claim, status).await
            }
        }
    }

    async fn note_provisioner(
        &self,
        claim: &Arc<PersistentVolumeClaim>,
        provisioner: &str,
    ) -> Result<Arc<PersistentVolumeClaim>, Error> {
        if PROVISIONER_NOTES
            .iter()
            .all(|key| claim.annotations().get(*key).is_some_and(|name| name == provisioner))
        {
            return Ok(claim.clone());
        }
        let notes: serde_json::Map<_, _> = PROVISIONER_NOTES
            .iter()
            .map(|key| ((*key).to_owned(), json!(provisioner)))
            .collect();
        let writer = self.claims(&claim.namespace().unwrap_or_default());
        writer
            .merge(&claim.name_any(), &json!({"metadata": {"annotations": notes}}))
            .await
    }

    async fn provision(&self, claim: &Arc<PersistentVolumeClaim>, class: &StorageClass) -> Result<(), Error> {
        let claim = self.note_provisioner(claim, &class.provisioner).await?;
        let node = claim.annotations().get(SELECTED_NODE);
        let node = node.and_then(|name| self.plane.caches.nodes.find("", name));
        let root = &self.plane.settings.volumes;
        let volume = folder::volume(&claim, class, node.as_deref(), root);
        let recorder = self.plane.recorder.named(super::matching::PROVISIONER);
        let key = ObjectKey::of(&*claim);
        let message = format!("External provisioner is provisioning volume for claim \"{key}\"");
        recorder.normal(&*claim, "Provisioning", message);
        let made = match folder::make(&root.join(volume.name_any())).await {
            Ok(()) => self.volumes().create(&volume).await,
            Err(error) => Err(error),
        };
        match made {
            Ok(_) => {
                let message = format!("Successfully provisioned volume {}", volume.name_any());
                recorder.normal(&*claim, "ProvisioningSucceeded", message);
                Ok(())
            }
            Err(error) if error.already_exists() => Ok(()),
            Err(error) => {
                let class = class.name_any();
                let message = format!(
                    "failed to provision volume with StorageClass \"{class}\": {}",
                    error.message()
                );
                recorder.warning(&*claim, "ProvisioningFailed", message);
                Err(error)
            }
        }
    }
}

fn waiting(plane: &Plane, queue: &Queue<ObjectKey>) {
    for claim in plane.caches.claims.all() {
        if claim.status.as_ref().and_then(|status| status.phase.as_deref()) != Some("Bound") {
            queue.add(ObjectKey::of(&*claim));
        }
    }
}

impl Controller for Claims {
    const NAME: &'static str = "persistentvolumeclaim";

    async fn reconcile(&self, key: &ObjectKey) -> Result<Option<Duration>, Error> {
        let caches = &self.plane.caches;
        let Some(claim) = caches.claims.get(key) else {
            return Ok(None);
        };
        let claim = self.protect(&claim).await?;
        if claim.metadata.deletion_timestamp.is_some() {
            return Ok(None);
        }
        let view = View {
            volumes: &caches.volumes.all(),
            classes: &caches.classes.all(),
            node: &|name| caches.nodes.find("", name),
        };
        match view.next(&claim) {
            Next::Class(name) => {
                let patch = json!({"spec": {"storageClassName": name}});
                self.claims(&key.namespace).merge(&key.name, &patch).await?;
            }
            Next::Wait(reason, message) => {
                self.phase(&claim, "Pending").await?;
                self.plane.recorder.normal(&*claim, reason, message);
            }
            Next::Trouble(reason, message) => {
                self.phase(&claim, "Pending").await?;
                self.plane.recorder.warning(&*claim, reason, message);
            }
            Next::Bind(volume) => self.bind(&claim, &volume).await?,
            Next::Provision(class) => self.provision(&claim, &class).await?,
            Next::External(provisioner) => {
                self.note_provisioner(&claim, &provisioner).await?;
                let message = format!(
                    "Waiting for a volume to be created either by the external provisioner '{provisioner}' or \
                     manually by the system administrator. If volume creation is delayed, please verify that the \
                     provisioner is running and correctly registered."
                );
                self.plane.recorder.normal(&*claim, "ExternalProvisioning", message);
            }
            Next::Lost(reason, message) => {
                if self.phase(&claim, "Lost").await? {
                    self.plane.recorder.warning(&*claim, reason, message);
                }
            }
            Next::Settled(volume) => self.settle(&claim, &volume).await?,
        }
        Ok(None)
    }
}

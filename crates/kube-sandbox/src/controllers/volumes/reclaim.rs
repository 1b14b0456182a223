//! The volumes' side: available, bound, released, given back.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::ResourceExt;
use kube::api::Api;

use super::folder::{self, PROTECTION};
use crate::controllers::plane::Plane;
use crate::controllers::runtime::{Controller, Error, ObjectKey, Queue, Writer};

/// The controller of volumes.
pub struct Volumes {
    plane: Plane,
}

/// How a volume stands with its claim.
#[derive(Debug, PartialEq, Eq)]
enum ClaimState {
    Available,
    Bound,
    Released,
}

impl Volumes {
    /// A controller on the plane.
    pub fn new(plane: &Plane) -> Self {
        Self {
            plane: Plane {
                recorder: plane.recorder.named("persistentvolume-controller"),
                ..plane.clone()
            },
        }
    }

    /// A claim concerns its volume.
    pub fn concerned(plane: &Plane, claim: &PersistentVolumeClaim, queue: &Queue<ObjectKey>) {
        if let Some(name) = claim.spec.as_ref().and_then(|spec| spec.volume_name.as_ref()) {
            queue.add(ObjectKey::new("", name));
        }
        // A claim that went may have a volume made for it that it never got to name.
        for volume in plane.caches.volumes.all() {
            if super::matching::is_for(&volume, claim) {
                queue.add(ObjectKey::of(&*volume));
            }
        }
    }

    fn writer(&self) -> Writer<'_, PersistentVolume> {
        Writer::new(Api::all(self.plane.client.clone()), &self.plane.caches.volumes)
    }

    async fn claim_state(&self, volume: &PersistentVolume) -> Result<ClaimState, Error> {
        let Some(claim) = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref()) else {
            return Ok(ClaimState::Available);
        };
        let Some(uid) = claim.uid.as_ref().filter(|uid| !uid.is_empty()) else {
            return Ok(ClaimState::Available);
        };
        let (namespace, name) = (
            claim.namespace.clone().unwrap_or_default(),
            claim.name.clone().unwrap_or_default(),
        );
        let same = |found: &PersistentVolumeClaim| found.uid().as_ref() == Some(uid);
        if self
            .plane
            .caches
            .claims
            .find(&namespace, &name)
            .is_some_and(|found| same(&found))
        {
            return Ok(ClaimState::Bound);
        }
        // Data is at stake: ask the server itself before calling a volume released.
        let api: Api<PersistentVolumeClaim> = Api::namespaced(self.plane.client.clone(), &namespace);
        let found = api.get_opt(&name).await?;
        Ok(if found.is_some_and(|found| same(&found)) {
            ClaimState::Bound
        } else {
            ClaimState::Released
        })
    }

    async fn phase(
        &self,
        volume: &Arc<PersistentVolume>,
        phase: &str,
        message: Option<String>,
    ) -> Result<Arc<PersistentVolume>, Error> {
        let status = volume.status.clone().unwrap_or_default();
        if status.phase.as_deref() == Some(phase) && status.message == message {
            return Ok(volume.clone());
        }
        let mut updated = (**volume).clone();
        let status = updated.status.get_or_insert_default();
        status.phase = Some(phase.into());
        status.message = message;
        self.writer().replace_status(&updated).await
    }

    async fn reclaim(&self, volume: &Arc<PersistentVolume>) -> Result<(), Error> {
        let policy = volume
            .spec
            .as_ref()
            .and_then(|spec| spec.persistent_volume_reclaim_policy.as_deref());
        if policy != Some("Delete") {
            return Ok(());
        }
        let Some(path) = folder::own_folder(volume, &self.plane.settings.volumes) else {
            let foreign = volume.annotations().contains_key(super::matching::PROVISIONED_BY);
            if !foreign {
                let name = volume.name_any();
                let message = format!(
                    "error getting deleter volume plugin for volume \"{name}\": no deletable volume plugin matched"
                );
                self.plane
                    .recorder
                    .warning(&**volume, "VolumeFailedDelete", message.clone());
                self.phase(volume, "Failed", Some(message)).await?;
            }
            return Ok(());
        };
        folder::remove(&path).await?;
        self.writer().delete(volume).await
    }

    /// Adds the finalizer, or removes it from a volume that is being deleted and that no claim has.
    async fn protect(&self, volume: &Arc<PersistentVolume>, bound: bool) -> Result<(), Error> {
        let mut finalizers = volume.finalizers().to_vec();
        let protected = finalizers.iter().any(|name| name == PROTECTION);
        let leaving = volume.metadata.deletion_timestamp.is_some();
        if !leaving && !protected {
            finalizers.push(PROTECTION.into());
        } else if leaving && protected && !bound {
            finalizers.retain(|name| name != PROTECTION);
        } else {
            return Ok(());
        }
        self.writer().set_finalizers(volume, &finalizers).await.map(drop)
    }
}

impl Controller for Volumes {
    const NAME: &'static str = "persistentvolume";

    async fn reconcile(&self, key: &ObjectKey) -> Result<Option<Duration>, Error> {
        let Some(volume) = self.plane.caches.volumes.get(key) else {
            return Ok(None);
        };
        let claim_state = self.claim_state(&volume).await?;
        let failed = volume.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Failed");
        let volume = match claim_state {
            ClaimState::Available => self.phase(&volume, "Available", None).await?,
            ClaimState::Bound => self.phase(&volume, "Bound", None).await?,
            ClaimState::Released if failed => volume,
            ClaimState::Released => self.phase(&volume, "Released", None).await?,
        };
        self.protect(&volume, claim_state == ClaimState::Bound).await?;
        if claim_state == ClaimState::Released
            && !failed
            && let Some(volume) = self.plane.caches.volumes.get(key)
        {
            self.reclaim(&volume).await?;
        }
        Ok(None)
    }
}

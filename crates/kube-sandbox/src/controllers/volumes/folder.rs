//! The sandbox's own volumes: a folder each.

use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::{
    HostPathVolumeSource, Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, ObjectReference,
    PersistentVolume, PersistentVolumeClaim, PersistentVolumeSpec, VolumeNodeAffinity,
};
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use serde_json::json;

use super::matching::{PROVISIONED_BY, PROVISIONER, requested};
use crate::controllers::runtime::Error;

/// Keeps a volume while a claim has it.
pub const PROTECTION: &str = "kubernetes.io/pv-protection";
const ZONE: &str = "topology.kubernetes.io/zone";

/// The class every sandbox starts with, made like that of a local development cluster.
pub fn standard_class() -> StorageClass {
    let class = json!({"metadata": {"name": "standard",
            "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": PROVISIONER, "reclaimPolicy": "Delete", "volumeBindingMode": "WaitForFirstConsumer",
        "allowVolumeExpansion": true});
    serde_json::from_value(class).unwrap_or_default()
}

/// The reference by which a volume names its claim.
pub fn reference(claim: &PersistentVolumeClaim) -> ObjectReference {
    ObjectReference {
        kind: Some("PersistentVolumeClaim".into()),
        api_version: Some("v1".into()),
        namespace: claim.namespace(),
        name: claim.metadata.name.clone(),
        uid: claim.uid(),
        resource_version: claim.resource_version(),
        field_path: None,
    }
}

/// The volume for a claim. One made for a pod's node can be used from that node's whole zone, as a cloud's disk can.
pub fn volume(
    claim: &PersistentVolumeClaim,
    class: &StorageClass,
    node: Option<&Node>,
    root: &Path,
) -> PersistentVolume {
    let name = format!("pvc-{}", claim.uid().unwrap_or_default());
    let spec = claim.spec.clone().unwrap_or_default();
    let zone = node
        .and_then(|node| node.labels().get(ZONE))
        .map(|zone| VolumeNodeAffinity {
            required: Some(NodeSelector {
                node_selector_terms: vec![NodeSelectorTerm {
                    match_expressions: Some(vec![NodeSelectorRequirement {
                        key: ZONE.into(),
                        operator: "In".into(),
                        values: Some(vec![zone.clone()]),
                    }]),
                    match_fields: None,
                }],
            }),
        });
    PersistentVolume {
        metadata: ObjectMeta {
            annotations: Some([(PROVISIONED_BY.to_owned(), PROVISIONER.to_owned())].into()),
            finalizers: Some(vec![PROTECTION.into()]),
            name: Some(name.clone()),
            ..ObjectMeta::default()
        },
        spec: Some(PersistentVolumeSpec {
            access_modes: spec.access_modes,
            capacity: requested(claim).map(|size| [("storage".to_owned(), size.clone())].into()),
            claim_ref: Some(reference(claim)),
            host_path: Some(HostPathVolumeSource {
                path: root.join(&name).to_string_lossy().into_owned(),
                type_: Some("DirectoryOrCreate".into()),
            }),
            mount_options: class.mount_options.clone(),
            node_affinity: zone,
            persistent_volume_reclaim_policy: Some(class.reclaim_policy.clone().unwrap_or_else(|| "Delete".into())),
            storage_class_name: class.metadata.name.clone(),
            volume_mode: spec.volume_mode,
            ..PersistentVolumeSpec::default()
        }),
        status: None,
    }
}

/// The folder of a volume that this provisioner made, and no other: only such a folder may be removed.
pub fn own_folder(volume: &PersistentVolume, root: &Path) -> Option<PathBuf> {
    if volume.annotations().get(PROVISIONED_BY).map(String::as_str) != Some(PROVISIONER) {
        return None;
    }
    let path = PathBuf::from(&volume.spec.as_ref()?.host_path.as_ref()?.path);
    // Exactly one plain name below the root: a path that climbs out is not ours.
    (path.parent() == Some(root) && path.file_name()?.to_string_lossy() == volume.name_any()).then_some(path)
}

/// Makes a folder that any user of a pod can write to.
pub async fn make(path: &Path) -> Result<(), Error> {
    use std::os::unix::fs::PermissionsExt;
    let failed = |source| Error::Folder {
        path: path.display().to_string(),
        source,
    };
    tokio::fs::create_dir_all(path).await.map_err(failed)?;
    let open = std::fs::Permissions::from_mode(0o777);
    tokio::fs::set_permissions(path, open).await.map_err(failed)
}

/// Removes a folder; that it is gone already is no error.
pub async fn remove(path: &Path) -> Result<(), Error> {
    match tokio::fs::remove_dir_all(path).await {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => Err(Error::Folder {
            path: path.display().to_string(),
            source,
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_of_our_own_making_are_removed() {
        let root = Path::new("/data/volumes");
        let volume = |name: &str, path: &str, by: &str| -> PersistentVolume {
            serde_json::from_value(json!({"metadata": {"name": name, "annotations": {PROVISIONED_BY: by}},
                "spec": {"hostPath": {"path": path}}}))
            .unwrap()
        };
        assert!(own_folder(&volume("pvc-1", "/data/volumes/pvc-1", PROVISIONER), root).is_some());
        for (name, path, by) in [
            ("pvc-1", "/data/volumes/pvc-1", "someone/else"),
            ("pvc-1", "/etc", PROVISIONER),
            ("pvc-1", "/data/volumes", PROVISIONER),
            ("pvc-1", "/data/volumes/pvc-1/../../x", PROVISIONER),
            ("pvc-1", "/data/volumes/pvc-2", PROVISIONER),
        ] {
            assert_eq!(own_folder(&volume(name, path, by), root), None, "{path}");
        }
    }

    #[test]
    fn the_standard_class_waits_for_its_first_consumer() {
        let class = standard_class();
        assert_eq!(class.provisioner, PROVISIONER);
        assert_eq!(class.volume_binding_mode.as_deref(), Some("WaitForFirstConsumer"));
        assert_eq!(class.allow_volume_expansion, Some(true));
    }
}

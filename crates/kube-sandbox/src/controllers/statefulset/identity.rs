//! The identity of a pod of a `StatefulSet`: ordinal, name, labels, claims. Pure.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{
    PersistentVolumeClaim, PersistentVolumeClaimVolumeSource, Pod, PodTemplateSpec, Volume,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::ResourceExt;

use crate::controllers::{owners, pods};

/// The label with the pod's own name.
pub const POD_NAME_LABEL: &str = "statefulset.kubernetes.io/pod-name";
/// The label with the ordinal.
pub const INDEX_LABEL: &str = "apps.kubernetes.io/pod-index";
/// The label with the revision the pod was made from.
pub const REVISION_LABEL: &str = "controller-revision-hash";

/// The desired replicas of the set.
pub fn desired(set: &StatefulSet) -> i32 {
    set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1).max(0)
}

/// The first ordinal.
pub fn start(set: &StatefulSet) -> i32 {
    let ordinals = set.spec.as_ref().and_then(|spec| spec.ordinals.as_ref());
    ordinals.and_then(|ordinals| ordinals.start).unwrap_or_default()
}

/// The ordinal in a pod's name, if the pod is named as the set's pods are.
pub fn ordinal(set: &str, pod: &str) -> Option<i32> {
    let digits = pod.strip_prefix(set)?.strip_prefix('-')?;
    // "web-01" is not a name the set gives.
    let canonical = digits == "0" || !digits.starts_with('0');
    (canonical && digits.bytes().all(|digit| digit.is_ascii_digit())).then(|| digits.parse().ok())?
}

/// Whether an ordinal is among the desired ones.
pub fn in_range(set: &StatefulSet, ordinal: i32) -> bool {
    ordinal >= start(set) && ordinal < start(set) + desired(set)
}

/// The revision a pod was made from.
pub fn revision(pod: &Pod) -> &str {
    pod.labels().get(REVISION_LABEL).map_or("", String::as_str)
}

/// The pod of an ordinal, made from one revision's template.
pub fn pod(set: &StatefulSet, template: &PodTemplateSpec, revision: &str, ordinal: i32) -> Pod {
    let namespace = set.namespace().unwrap_or_default();
    let mut pod = pods::from_template(template, owners::controller_reference(set), &namespace);
    let name = format!("{}-{ordinal}", set.name_any());
    pod.metadata.name = Some(name.clone());
    pod.metadata.generate_name = Some(format!("{}-", set.name_any()));
    pod.labels_mut().insert(REVISION_LABEL.into(), revision.into());
    identify(set, &mut pod, ordinal);
    let spec = pod.spec.get_or_insert_default();
    spec.hostname = Some(name);
    spec.subdomain = set
        .spec
        .as_ref()
        .and_then(|spec| spec.service_name.clone())
        .filter(|name| !name.is_empty());
    mount_claims(set, &mut pod, ordinal);
    pod
}

fn identify(set: &StatefulSet, pod: &mut Pod, ordinal: i32) {
    let name = format!("{}-{ordinal}", set.name_any());
    pod.labels_mut().insert(POD_NAME_LABEL.into(), name);
    pod.labels_mut().insert(INDEX_LABEL.into(), ordinal.to_string());
}

fn mount_claims(set: &StatefulSet, pod: &mut Pod, ordinal: i32) {
    let mut volumes: Vec<Volume> = templates(set)
        .iter()
        .map(|template| Volume {
            name: template.name_any(),
            persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
                claim_name: claim_name(set, template, ordinal),
                read_only: None,
            }),
            ..Volume::default()
        })
        .collect();
    let spec = pod.spec.get_or_insert_default();
    for volume in spec.volumes.take().unwrap_or_default() {
        if volumes.iter().all(|claim| claim.name != volume.name) {
            volumes.push(volume);
        }
    }
    spec.volumes = (!volumes.is_empty()).then_some(volumes);
}

/// The pod with its labels put right, if they are wrong.
pub fn corrected(set: &StatefulSet, pod: &Pod, ordinal: i32) -> Option<Pod> {
    let mut right = pod.clone();
    identify(set, &mut right, ordinal);
    (right != *pod).then_some(right)
}

fn templates(set: &StatefulSet) -> &[PersistentVolumeClaim] {
    let templates = set.spec.as_ref().and_then(|spec| spec.volume_claim_templates.as_ref());
    templates.map_or(&[], Vec::as_slice)
}

fn claim_name(set: &StatefulSet, template: &PersistentVolumeClaim, ordinal: i32) -> String {
    format!("{}-{}-{ordinal}", template.name_any(), set.name_any())
}

/// The claims of an ordinal.
pub fn claims(set: &StatefulSet, ordinal: i32) -> Vec<PersistentVolumeClaim> {
    let selector = set
        .spec
        .as_ref()
        .and_then(|spec| spec.selector.match_labels.clone())
        .unwrap_or_default();
    let mut claims = Vec::new();
    for template in templates(set) {
        let mut labels: BTreeMap<String, String> = template.labels().clone();
        labels.extend(selector.clone());
        claims.push(PersistentVolumeClaim {
            metadata: ObjectMeta {
                name: Some(claim_name(set, template, ordinal)),
                namespace: set.namespace(),
                labels: (!labels.is_empty()).then_some(labels),
                annotations: template.metadata.annotations.clone(),
                ..ObjectMeta::default()
            },
            spec: template.spec.clone(),
            status: None,
        });
    }
    claims
}

/// What becomes of the claims when the set is deleted, and when it is scaled down: `true` deletes.
fn deletes(set: &StatefulSet) -> (bool, bool) {
    let policy = set
        .spec
        .as_ref()
        .and_then(|spec| spec.persistent_volume_claim_retention_policy.as_ref());
    let is_delete = |word: Option<&String>| word.is_some_and(|word| word == "Delete");
    (
        is_delete(policy.and_then(|policy| policy.when_deleted.as_ref())),
        is_delete(policy.and_then(|policy| policy.when_scaled.as_ref())),
    )
}

/// Whether a claim still belongs to an earlier pod of the same name and is about to be collected: a new pod must
/// not take it.
pub fn is_stale(set: &StatefulSet, claim: &PersistentVolumeClaim, pod: &str, uid: Option<&str>) -> bool {
    let (_, when_scaled) = deletes(set);
    when_scaled
        && claim
            .owner_references()
            .iter()
            .any(|owner| owner.kind == "Pod" && owner.name == pod && Some(owner.uid.as_str()) != uid)
}

/// The owners a claim should have by the retention policy, if it has others now.
pub fn claim_owners(set: &StatefulSet, pod: &Pod, claim: &PersistentVolumeClaim) -> Option<Vec<OwnerReference>> {
    let ordinal = ordinal(&set.name_any(), &pod.name_any())?;
    let (ours, theirs): (Vec<_>, Vec<_>) = claim.owner_references().iter().cloned().partition(|owner| {
        owner.kind == "StatefulSet" && owner.name == set.name_any()
            || owner.kind == "Pod" && owner.name == pod.name_any()
    });
    let current = |owner: &OwnerReference| {
        Some(&owner.uid) == set.metadata.uid.as_ref() || Some(&owner.uid) == pod.metadata.uid.as_ref()
    };
    // A claim of an earlier set or pod of the same name is the garbage collector's business.
    if !ours.iter().all(current) {
        return None;
    }
    let mut owners = theirs;
    let foreign_controller = owners.iter().any(|owner| owner.controller == Some(true));
    let (when_deleted, when_scaled) = deletes(set);
    let leaving = !in_range(set, ordinal);
    if !foreign_controller {
        if when_scaled && leaving {
            owners.push(owners::controller_reference(pod));
        } else if when_deleted {
            owners.push(owners::controller_reference(set));
        }
    }
    (owners != claim.owner_references()).then_some(owners)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn set(more: &Value) -> StatefulSet {
        let mut value = json!({
            "metadata": {"name": "web", "namespace": "n", "uid": "s"},
            "spec": {"replicas": 2, "serviceName": "web-hs", "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": {"labels": {"app": "web"}}, "spec": {
                    "containers": [{"name": "c"}], "volumes": [{"name": "data", "emptyDir": {}}, {"name": "tmp", "emptyDir": {}}]}},
                "volumeClaimTemplates": [{"metadata": {"name": "data", "labels": {"x": "y"}},
                    "spec": {"accessModes": ["ReadWriteOnce"]}}]}});
        json_patch::merge(&mut value, more);
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn ordinals_are_read_only_from_names_the_set_gives() {
        let cases = [
            ("web-0", Some(0)),
            ("web-12", Some(12)),
            ("web-01", None),
            ("web-", None),
            ("web-x", None),
            ("web-1-2", None),
            ("other-1", None),
            ("web--1", None),
        ];
        for (name, expected) in cases {
            assert_eq!(ordinal("web", name), expected, "{name}");
        }
    }

    #[test]
    fn a_pod_carries_its_identity_and_its_claims() {
        let set = set(&json!({}));
        let template = &set.spec.as_ref().unwrap().template;
        let pod = pod(&set, template, "web-abc", 1);
        assert_eq!(pod.name_any(), "web-1");
        assert_eq!(pod.labels()[POD_NAME_LABEL], "web-1");
        assert_eq!(pod.labels()[INDEX_LABEL], "1");
        assert_eq!(revision(&pod), "web-abc");
        let spec = pod.spec.unwrap();
        assert_eq!(
            (spec.hostname.as_deref(), spec.subdomain.as_deref()),
            (Some("web-1"), Some("web-hs"))
        );
        let volumes = spec.volumes.unwrap();
        assert_eq!(
            volumes.iter().map(|volume| volume.name.as_str()).collect::<Vec<_>>(),
            ["data", "tmp"]
        );
        assert_eq!(
            volumes[0].persistent_volume_claim.as_ref().unwrap().claim_name,
            "data-web-1"
        );
        let claims = claims(&set, 1);
        assert_eq!(claims[0].name_any(), "data-web-1");
        assert_eq!(claims[0].labels()["app"], "web");
        assert_eq!(claims[0].labels()["x"], "y");
    }

    #[test]
    fn the_retention_policy_is_written_as_owners_of_the_claim() {
        let policy = |deleted: &str, scaled: &str| {
            set(&json!({"spec": {"persistentVolumeClaimRetentionPolicy":
                {"whenDeleted": deleted, "whenScaled": scaled}}}))
        };
        let cases = [
            ("Retain", "Retain", "web-0", None),
            ("Retain", "Retain", "web-5", None),
            ("Delete", "Retain", "web-0", Some("StatefulSet")),
            ("Delete", "Retain", "web-5", Some("StatefulSet")),
            ("Retain", "Delete", "web-0", None),
            ("Retain", "Delete", "web-5", Some("Pod")),
            ("Delete", "Delete", "web-0", Some("StatefulSet")),
            ("Delete", "Delete", "web-5", Some("Pod")),
        ];
        for (deleted, scaled, name, expected) in cases {
            let set = policy(deleted, scaled);
            let pod: Pod = serde_json::from_value(json!({"metadata": {"name": name, "uid": "p"}})).unwrap();
            let mut claim = claims(&set, 0).remove(0);
            let owners = claim_owners(&set, &pod, &claim);
            let kinds = owners.as_ref().map(|owners| owners[0].kind.as_str());
            assert_eq!(kinds, expected, "{deleted} {scaled} {name}");
            claim.metadata.owner_references = owners;
            assert_eq!(claim_owners(&set, &pod, &claim), None, "stable");
        }
    }

    #[test]
    fn a_claim_of_an_earlier_pod_is_stale_when_scaling_deletes() {
        let set = set(&json!({"spec": {"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"}}}));
        let mut claim = claims(&set, 0).remove(0);
        assert!(!is_stale(&set, &claim, "web-0", None));
        claim.metadata.owner_references = serde_json::from_value(json!([
            {"apiVersion": "v1", "kind": "Pod", "name": "web-0", "uid": "earlier", "controller": true}]))
        .unwrap();
        assert!(is_stale(&set, &claim, "web-0", None));
    }
}

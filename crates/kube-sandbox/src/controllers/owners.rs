//! Controller references, and the rules by which a set adopts or releases an object.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, OwnerReference};
use kube::core::{Selector, SelectorExt};
use kube::{Resource, ResourceExt};
use serde_json::{Value, json};

/// The reference of an object's managing controller.
pub fn controller_of<K: Resource>(object: &K) -> Option<&OwnerReference> {
    let owners = object.meta().owner_references.as_ref()?;
    owners.iter().find(|owner| owner.controller == Some(true))
}

/// Whether `owner` is the managing controller of `object`.
pub fn is_controlled_by<K: Resource>(object: &K, owner_uid: &str) -> bool {
    controller_of(object).is_some_and(|owner| owner.uid == owner_uid)
}

/// The reference that a controller sets on the objects it creates.
pub fn controller_reference<K: Resource<DynamicType = ()>>(owner: &K) -> OwnerReference {
    OwnerReference {
        api_version: K::api_version(&()).into_owned(),
        kind: K::kind(&()).into_owned(),
        name: owner.name_any(),
        uid: owner.uid().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// A label selector ready to match. One that cannot be parsed matches nothing, so that no object of another owner is adopted.
pub fn selector(of: &LabelSelector) -> Option<Selector> {
    Selector::try_from(of.clone()).ok()
}

/// Whether an object's labels match; an absent selector matches nothing.
pub fn matches<K: Resource>(selector: Option<&Selector>, object: &K) -> bool {
    selector.is_some_and(|selector| selector.matches(object.labels()))
}

/// What a set does about an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// The set owns it already.
    Ours,
    /// An orphan that matches: adopt it.
    Adopt,
    /// Owned, but it no longer matches: release it.
    Release,
    /// Another owner's, or it does not match.
    Foreign,
}

/// Decides about one object. A set that is being deleted adopts and releases nothing.
pub fn claim<O: Resource, K: Resource>(owner: &O, matches: bool, object: &K) -> Claim {
    let leaving = owner.meta().deletion_timestamp.is_some();
    let uid = owner.meta().uid.as_deref().unwrap_or_default();
    match controller_of(object) {
        Some(controller) if controller.uid != uid => Claim::Foreign,
        Some(_) if matches => Claim::Ours,
        Some(_) if leaving => Claim::Foreign,
        Some(_) => Claim::Release,
        None if leaving || !matches || object.meta().deletion_timestamp.is_some() => Claim::Foreign,
        None => Claim::Adopt,
    }
}

/// The patch that adopts.
pub fn adoption<O: Resource<DynamicType = ()>, K: Resource>(owner: &O, object: &K) -> Value {
    let mut owners = object.owner_references().to_vec();
    owners.push(controller_reference(owner));
    json!({"metadata": {
        "ownerReferences": owners, "uid": object.uid(), "resourceVersion": object.resource_version(),
    }})
}

/// The patch that releases.
pub fn release<O: Resource, K: Resource>(owner: &O, object: &K) -> Value {
    let uid = owner.meta().uid.as_deref().unwrap_or_default();
    let others: Vec<_> = object
        .owner_references()
        .iter()
        .filter(|other| other.uid != uid)
        .collect();
    json!({"metadata": {
        "ownerReferences": if others.is_empty() { Value::Null } else { json!(others) },
        "uid": object.uid(), "resourceVersion": object.resource_version(),
    }})
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::apps::v1::ReplicaSet;
    use k8s_openapi::api::core::v1::Pod;

    fn set(leaving: bool) -> ReplicaSet {
        serde_json::from_value(json!({"metadata": {"name": "s", "uid": "s1",
            "deletionTimestamp": leaving.then_some("2026-01-01T00:00:00Z")}}))
        .unwrap()
    }

    fn pod(controller: Option<&str>, leaving: bool) -> Pod {
        let owners = controller.map(
            |uid| json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "x", "uid": uid, "controller": true}]),
        );
        serde_json::from_value(json!({"metadata": {"name": "p", "ownerReferences": owners,
            "deletionTimestamp": leaving.then_some("2026-01-01T00:00:00Z")}}))
        .unwrap()
    }

    #[test]
    fn orphans_are_adopted_owned_pods_left_alone_and_relabelled_ones_released() {
        let cases = vec![
            (set(false), pod(None, false), true, Claim::Adopt),
            (set(false), pod(None, false), false, Claim::Foreign),
            (set(false), pod(None, true), true, Claim::Foreign),
            (set(false), pod(Some("s1"), false), true, Claim::Ours),
            (set(false), pod(Some("s1"), false), false, Claim::Release),
            (set(false), pod(Some("other"), false), true, Claim::Foreign),
            (set(true), pod(None, false), true, Claim::Foreign),
            (set(true), pod(Some("s1"), false), false, Claim::Foreign),
            (set(true), pod(Some("s1"), false), true, Claim::Ours),
        ];
        for (set, pod, matches, expected) in cases {
            assert_eq!(claim(&set, matches, &pod), expected, "{pod:?} matches={matches}");
        }
    }

    #[test]
    fn releasing_keeps_the_other_owners() {
        let mut pod = pod(Some("s1"), false);
        let second = OwnerReference {
            uid: "keep".into(),
            ..OwnerReference::default()
        };
        pod.metadata.owner_references.as_mut().unwrap().push(second);
        let patch = release(&set(false), &pod);
        assert_eq!(patch["metadata"]["ownerReferences"].as_array().unwrap().len(), 1);
        assert_eq!(patch["metadata"]["ownerReferences"][0]["uid"], "keep");
    }
}

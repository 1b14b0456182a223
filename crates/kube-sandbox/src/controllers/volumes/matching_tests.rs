//! Claims, volumes and classes in a line each.

use super::*;
use serde_json::{Value, json};

fn claim(more: &Value) -> PersistentVolumeClaim {
    let mut value = json!({"metadata": {"name": "c", "namespace": "n", "uid": "c1"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "5Gi"}}, "storageClassName": ""}});
    json_patch::merge(&mut value, more);
    serde_json::from_value(value).unwrap()
}

fn volume(name: &str, size: &str, more: &Value) -> Arc<PersistentVolume> {
    let mut value = json!({"metadata": {"name": name}, "spec": {"capacity": {"storage": size},
        "accessModes": ["ReadWriteOnce"]}, "status": {"phase": "Available"}});
    json_patch::merge(&mut value, more);
    Arc::new(serde_json::from_value(value).unwrap())
}

fn class(name: &str, provisioner: &str, mode: &str, default: bool) -> Arc<StorageClass> {
    Arc::new(
        serde_json::from_value(
            json!({"metadata": {"name": name, "annotations": {DEFAULT_CLASS: default.to_string()}},
            "provisioner": provisioner, "volumeBindingMode": mode}),
        )
        .unwrap(),
    )
}

fn next(claim: &PersistentVolumeClaim, volumes: &[Arc<PersistentVolume>], classes: &[Arc<StorageClass>]) -> Next {
    let node: Arc<Node> =
        Arc::new(serde_json::from_value(json!({"metadata": {"name": "n1", "labels": {"host": "n1"}}})).unwrap());
    let view = View {
        volumes,
        classes,
        node: &|name| (name == "n1").then(|| node.clone()),
    };
    view.next(claim)
}

#[test]
fn the_smallest_volume_that_suits_is_taken() {
    let none = json!({});
    let volumes = [
        volume("small", "1Gi", &none),
        volume("large", "50Gi", &none),
        volume("fit", "6Gi", &none),
        volume(
            "taken",
            "5Gi",
            &json!({"spec": {"claimRef": {"name": "other", "namespace": "n"}}}),
        ),
        volume("classy", "5Gi", &json!({"spec": {"storageClassName": "x"}})),
        volume("block", "5Gi", &json!({"spec": {"volumeMode": "Block"}})),
        volume("readonly", "5Gi", &json!({"spec": {"accessModes": ["ReadOnlyMany"]}})),
        volume("released", "5Gi", &json!({"status": {"phase": "Released"}})),
    ];
    assert_eq!(next(&claim(&none), &volumes, &[]), Next::Bind(volumes[2].clone()));
    let labelled = claim(&json!({"spec": {"selector": {"matchLabels": {"no": "such"}}}}));
    assert!(matches!(next(&labelled, &volumes, &[]), Next::Wait("FailedBinding", _)));
}

#[test]
fn a_reserved_volume_goes_to_its_claim_only() {
    let reserved = volume(
        "mine",
        "50Gi",
        &json!({"spec": {"claimRef": {"name": "c", "namespace": "n"}}}),
    );
    let smaller = volume("other", "5Gi", &json!({}));
    assert_eq!(
        next(&claim(&json!({})), &[smaller, reserved.clone()], &[]),
        Next::Bind(reserved)
    );
    let earlier = volume(
        "mine",
        "50Gi",
        &json!({"spec": {"claimRef": {"name": "c", "namespace": "n", "uid": "earlier"}}}),
    );
    assert!(matches!(
        next(&claim(&json!({})), &[earlier], &[]),
        Next::Wait("FailedBinding", _)
    ));
}

#[test]
fn the_storage_class_decides_the_provisioner_and_the_binding_mode() {
    let now = class("now", PROVISIONER, "Immediate", false);
    let later = class("later", PROVISIONER, "WaitForFirstConsumer", true);
    let foreign = class("foreign", "example.com/disk", "Immediate", false);
    let classes = [now.clone(), later.clone(), foreign];
    let of = |class: Value| claim(&json!({"spec": {"storageClassName": class}}));
    assert_eq!(next(&of(json!("now")), &[], &classes), Next::Provision(now));
    let message = "waiting for first consumer to be created before binding".to_owned();
    assert_eq!(
        next(&of(json!("later")), &[], &classes),
        Next::Wait("WaitForFirstConsumer", message)
    );
    assert_eq!(
        next(&of(json!("foreign")), &[], &classes),
        Next::External("example.com/disk".into())
    );
    let unknown = "storageclass.storage.k8s.io \"none\" not found".to_owned();
    assert_eq!(
        next(&of(json!("none")), &[], &classes),
        Next::Trouble("ProvisioningFailed", unknown)
    );
    assert_eq!(next(&of(json!(null)), &[], &classes), Next::Class("later".into()));
    let mut chosen = of(json!("later"));
    chosen.annotations_mut().insert(SELECTED_NODE.into(), "n1".into());
    assert_eq!(next(&chosen, &[], &classes), Next::Provision(later));
}

#[test]
fn a_delayed_claim_takes_a_free_volume_of_the_chosen_node() {
    let local = class("local", "kubernetes.io/no-provisioner", "WaitForFirstConsumer", false);
    let on = |host: &str| {
        volume(
            host,
            "5Gi",
            &json!({"spec": {"storageClassName": "local", "nodeAffinity": {"required":
            {"nodeSelectorTerms": [{"matchExpressions": [{"key": "host", "operator": "In", "values": [host]}]}]}}}}),
        )
    };
    let mut claim = claim(&json!({"spec": {"storageClassName": "local"}}));
    let volumes = [on("n0"), on("n1")];
    assert!(matches!(
        next(&claim, &volumes, std::slice::from_ref(&local)),
        Next::Wait("WaitForFirstConsumer", _)
    ));
    claim.annotations_mut().insert(SELECTED_NODE.into(), "n1".into());
    assert_eq!(next(&claim, &volumes, &[local]), Next::Bind(volumes[1].clone()));
}

#[test]
fn a_bound_claim_is_settled_lost_or_misbound() {
    let bound = claim(&json!({"metadata": {"annotations": {BIND_COMPLETED: "yes"}}, "spec": {"volumeName": "v"}}));
    let mine = volume(
        "v",
        "5Gi",
        &json!({"spec": {"claimRef": {"name": "c", "namespace": "n", "uid": "c1"}}}),
    );
    assert_eq!(next(&bound, std::slice::from_ref(&mine), &[]), Next::Settled(mine));
    assert!(matches!(next(&bound, &[], &[]), Next::Lost("ClaimLost", _)));
    let theirs = volume(
        "v",
        "5Gi",
        &json!({"spec": {"claimRef": {"name": "x", "namespace": "n", "uid": "x1"}}}),
    );
    assert!(matches!(next(&bound, &[theirs], &[]), Next::Lost("ClaimMisbound", _)));
}

#[test]
fn a_volume_named_by_the_user_must_be_free_and_suit() {
    let asks = claim(&json!({"spec": {"volumeName": "v"}}));
    let free = volume("v", "5Gi", &json!({}));
    assert_eq!(next(&asks, std::slice::from_ref(&free), &[]), Next::Bind(free));
    assert!(matches!(
        next(&asks, &[volume("v", "1Gi", &json!({}))], &[]),
        Next::Trouble("VolumeMismatch", _)
    ));
    let taken = volume(
        "v",
        "5Gi",
        &json!({"spec": {"claimRef": {"name": "x", "namespace": "n"}}}),
    );
    let message = "volume \"v\" already bound to a different claim.".to_owned();
    assert_eq!(next(&asks, &[taken], &[]), Next::Trouble("FailedBinding", message));
}

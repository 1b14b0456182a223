//! Objects of a cluster that a person edits or deletes are as desired again within seconds. No pod of a server is
//! replaced, and no key is lost.

use std::time::{Duration, Instant};

use k8s_openapi::api::apps::v1::StatefulSet;
use kube::api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use super::spec;
use crate::support::redkey::{NAME, Redkey};
use crate::support::{Operator, Stage};

/// "Within seconds", on a busy host.
const SOON: Duration = Duration::from_secs(10);

/// An object, an edit, and the field that shows it.
struct Edit {
    kind: (&'static str, &'static str, &'static str),
    name: &'static str,
    patch: fn() -> Value,
    field: &'static str,
}

const EDITS: &[Edit] = &[
    Edit {
        kind: ("", "v1", "ConfigMap"),
        name: "cache",
        patch: || json!({"data": {"redis.conf": "maxmemory 1mb\n"}}),
        field: "/data/redis.conf",
    },
    Edit {
        kind: ("", "v1", "ConfigMap"),
        name: "cache-robin",
        patch: || json!({"data": {"application-configmap.yml": "redis: {}\n"}}),
        field: "/data/application-configmap.yml",
    },
    Edit {
        kind: ("", "v1", "Service"),
        name: "cache",
        patch: || json!({"spec": {"selector": {"redkey-cluster-name": "other"}}}),
        field: "/spec/selector/redkey-cluster-name",
    },
    Edit {
        kind: ("", "v1", "Service"),
        name: "cache",
        patch: || json!({"spec": {"ports": [{"name": "other", "port": 7000}]}}),
        field: "/spec/ports/0/port",
    },
    Edit {
        kind: ("policy", "v1", "PodDisruptionBudget"),
        name: "cache-pdb",
        patch: || json!({"spec": {"maxUnavailable": 3}}),
        field: "/spec/maxUnavailable",
    },
    Edit {
        kind: ("apps", "v1", "StatefulSet"),
        name: "cache",
        patch: || json!({"spec": {"updateStrategy": {"type": "RollingUpdate"}}}),
        field: "/spec/updateStrategy/type",
    },
    Edit {
        kind: ("apps", "v1", "StatefulSet"),
        name: "cache",
        patch: || json!({"spec": {"template": {"metadata": {"labels": {"team": "other"}}}}}),
        field: "/spec/template/metadata/labels/team",
    },
    Edit {
        kind: ("apps", "v1", "Deployment"),
        name: "cache-robin",
        patch: || json!({"spec": {"replicas": 2}}),
        field: "/spec/replicas",
    },
    Edit {
        kind: ("rbac.authorization.k8s.io", "v1", "Role"),
        name: "cache-robin",
        patch: || json!({"rules": []}),
        field: "/rules",
    },
];

fn api(stage: &Stage, (group, version, kind): (&str, &str, &str)) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    Api::default_namespaced_with(stage.client(), &resource)
}

fn with_budget() -> Value {
    let mut spec = spec(3, true);
    spec["labels"] = json!({"team": "shop"});
    spec["pdb"] = json!({"enabled": true, "pdbSizeUnavailable": 1});
    spec
}

/// A ready cluster that purges its keys when it is upgraded or scaled, its keys, and the uids of its pods.
async fn begin(cluster: Redkey<'_>) -> (u64, Vec<Option<String>>) {
    cluster.create(with_budget()).await;
    cluster.ready().await;
    (cluster.write_keys().await, uids(cluster).await)
}

async fn uids(cluster: Redkey<'_>) -> Vec<Option<String>> {
    cluster.pods().await.iter().map(ResourceExt::uid).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_object_that_is_edited_is_as_desired_again() {
    let stage = Stage::set().await;
    let cluster = Redkey(&stage);
    let operator = Operator::start(stage.client());
    let (keys, pods) = begin(cluster).await;
    for edit in EDITS {
        let what = format!("{} {} at {}", edit.kind.2, edit.name, edit.field);
        let api = api(&stage, edit.kind);
        let field = async || {
            let object = json!(api.get(edit.name).await.unwrap());
            object.pointer(edit.field).cloned()
        };
        let before = field().await;
        let patch = Patch::Merge((edit.patch)());
        let edited = api.patch(edit.name, &PatchParams::default(), &patch).await.unwrap();
        assert_ne!(json!(edited).pointer(edit.field).cloned(), before, "{what}");
        let begun = Instant::now();
        cluster.until(&what, async || field().await == before).await;
        assert!(begun.elapsed() < SOON, "{what}: {:?}", begun.elapsed());
    }
    cluster.ready().await;
    assert_eq!(cluster.keys(), keys, "nothing is purged");
    assert_eq!(uids(cluster).await, pods, "no server was replaced");
    assert_eq!(cluster.events("RedkeyClusterUpgrading").await, Vec::<String>::new());
    operator.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_object_that_is_deleted_comes_back() {
    let stage = Stage::set().await;
    let cluster = Redkey(&stage);
    let operator = Operator::start(stage.client());
    let (keys, pods) = begin(cluster).await;
    let rbac = "rbac.authorization.k8s.io";
    for (kind, name) in [
        (("", "v1", "ConfigMap"), "cache"),
        (("", "v1", "ConfigMap"), "cache-robin"),
        (("", "v1", "Service"), "cache"),
        (("policy", "v1", "PodDisruptionBudget"), "cache-pdb"),
        (("", "v1", "ServiceAccount"), "cache-robin"),
        ((rbac, "v1", "Role"), "cache-robin"),
        ((rbac, "v1", "RoleBinding"), "cache-robin"),
        (("apps", "v1", "Deployment"), "cache-robin"),
        (("", "v1", "Secret"), "cache-robin"),
    ] {
        let what = format!("{} {name}", kind.2);
        let api = api(&stage, kind);
        let old = api.get(name).await.unwrap().uid();
        api.delete(name, &DeleteParams::default()).await.unwrap();
        let begun = Instant::now();
        cluster
            .until(&what, async || {
                let now = api.get_opt(name).await.unwrap();
                now.is_some_and(|now| now.uid() != old)
            })
            .await;
        assert!(begun.elapsed() < SOON, "{what}: {:?}", begun.elapsed());
    }
    cluster
        .until("Robin responds", async || cluster.says("RobinReady", "True").await)
        .await;
    cluster.ready().await;
    assert_eq!(cluster.keys(), keys, "nothing is purged");
    assert_eq!(uids(cluster).await, pods, "no server was replaced");
    operator.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_set_that_is_scaled_up_by_hand_is_scaled_back() {
    let stage = Stage::set().await;
    let cluster = Redkey(&stage);
    let operator = Operator::start(stage.client());
    let (keys, pods) = begin(cluster).await;
    let sets: Api<StatefulSet> = Api::namespaced(stage.client(), "default");
    let patch = Patch::Merge(json!({"spec": {"replicas": 5}}));
    sets.patch(NAME, &PatchParams::default(), &patch).await.unwrap();
    cluster
        .until("scaled back", async || {
            let set = sets.get(NAME).await.unwrap();
            set.spec.unwrap().replicas == Some(3) && cluster.pods().await.len() == 3
        })
        .await;
    cluster.ready().await;
    assert_eq!(cluster.keys(), keys, "nothing is purged");
    assert_eq!(uids(cluster).await, pods, "no server was replaced");
    operator.end().await;
}

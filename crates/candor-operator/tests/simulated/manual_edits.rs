//! Objects of a cluster that a user deleted or edited: the operator restores each of them, writes no other object, and
//! the cluster becomes Ready again.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use candor_api::ValkeyNode;
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::{Resource, ResourceExt};
use serde_json::{Value, json};

use crate::support::{Operator, Stage, is_ready};

const PATIENCE: Duration = Duration::from_secs(60);

fn kinds() -> [ApiResource; 7] {
    fn of<K: Resource<DynamicType = ()>>() -> ApiResource {
        ApiResource::erase::<K>(&())
    }
    [
        of::<Service>(),
        of::<ConfigMap>(),
        of::<Secret>(),
        of::<PodDisruptionBudget>(),
        of::<Deployment>(),
        of::<StatefulSet>(),
        of::<ValkeyNode>(),
    ]
}

/// An object without the fields that the API server and other controllers write.
fn essence(object: &DynamicObject) -> Value {
    let mut data = object.data.clone();
    data.as_object_mut().map(|data| data.remove("status"));
    // The API server assigns new values to every new Service.
    for drawn in ["clusterIP", "clusterIPs"] {
        data["spec"].as_object_mut().map(|spec| spec.remove(drawn));
    }
    let mut annotations = object.annotations().clone();
    annotations.remove("deployment.kubernetes.io/revision");
    json!({"labels": object.labels(), "annotations": annotations, "owners": object.owner_references().len(), "data": data})
}

/// How often an object was written, not counting status updates by other controllers.
fn version(object: &DynamicObject) -> String {
    let generation = object.metadata.generation.map(|generation| generation.to_string());
    let version = generation.or_else(|| object.resource_version());
    format!("{} {}", object.uid().unwrap_or_default(), version.unwrap_or_default())
}

/// Every object of a cluster, by kind and name.
async fn objects(stage: &Stage, cluster: &str) -> BTreeMap<String, DynamicObject> {
    let mut found = BTreeMap::new();
    for kind in kinds() {
        let api: Api<DynamicObject> = Api::default_namespaced_with(stage.client(), &kind);
        let ours = ListParams::default().labels(&format!("valkey.io/cluster={cluster}"));
        for object in api.list(&ours).await.unwrap() {
            found.insert(format!("{} {}", kind.kind, object.name_any()), object);
        }
    }
    found
}

/// Edits one object as a user would, or deletes it if `edit` is None.
async fn touch(stage: &Stage, which: &str, edit: Option<&Value>) {
    let (kind, name) = which.split_once(' ').unwrap();
    let kind = kinds().into_iter().find(|one| one.kind == kind).unwrap();
    let api: Api<DynamicObject> = Api::default_namespaced_with(stage.client(), &kind);
    match edit {
        None => drop(api.delete(name, &DeleteParams::default()).await.unwrap()),
        Some(edit) => {
            let patch = Patch::Merge(edit);
            drop(api.patch(name, &PatchParams::default(), &patch).await.unwrap());
        }
    }
}

async fn is_put_right(stage: &Stage, cluster: &str, which: &str, edit: Option<&Value>) {
    let before = objects(stage, cluster).await;
    touch(stage, which, edit).await;
    let begun = Instant::now();
    let after = loop {
        let now = objects(stage, cluster).await;
        let back = now.get(which).is_some_and(|object| {
            let touched = object.resource_version() != before[which].resource_version();
            touched && object.metadata.deletion_timestamp.is_none() && essence(object) == essence(&before[which])
        });
        let ready = is_ready(&stage.clusters("default").get(cluster).await.unwrap());
        if back && ready {
            break now;
        }
        let found = now.get(which).map(essence);
        assert!(
            begun.elapsed() < PATIENCE,
            "{which} {edit:?}: ready {ready}, wanted {}, found {found:?}",
            essence(&before[which])
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!(
        after.keys().collect::<Vec<_>>(),
        before.keys().collect::<Vec<_>>(),
        "{which} {edit:?}"
    );
    for (name, object) in after.iter().filter(|(name, _)| *name != which) {
        assert_eq!(
            version(object),
            version(&before[name]),
            "{name} was written for {which} {edit:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_or_edited_object_is_restored_and_no_other_object_is_written() {
    let stage = Stage::set().await;
    let operator = Operator::start(stage.client());
    stage.create("cart", json!({"shards": 3, "replicas": 1})).await;
    let kept = json!({"shards": 1, "replicas": 1, "persistence": {"size": "1Gi"}});
    stage.create("kept", kept).await;
    stage.ready("cart").await;
    stage.ready("kept").await;
    let image = json!({"spec": {"template": {"spec": {"containers": [
        {"name": "server", "image": "valkey/valkey:9.1-by-hand"}]}}}});
    let none = json!({"spec": {"replicas": 0}});
    let table = [
        (
            "cart",
            "Service valkey-cart",
            json!({"spec": {"publishNotReadyAddresses": false}}),
        ),
        (
            "cart",
            "Service valkey-cart-client",
            json!({"spec": {"selector": {"app": "another"}}}),
        ),
        (
            "cart",
            "ConfigMap valkey-cart",
            json!({"data": {"valkey.conf": "appendonly no"}}),
        ),
        (
            "cart",
            "Secret internal-cart-acl",
            json!({"stringData": {"users.acl": "user default off"}}),
        ),
        (
            "cart",
            "PodDisruptionBudget valkey-cart",
            json!({"spec": {"maxUnavailable": 3}}),
        ),
        (
            "cart",
            "ValkeyNode cart-1-0",
            json!({"metadata": {"labels": {"valkey.io/node-index": "9"}}}),
        ),
        ("cart", "Deployment valkey-cart-1-1", none.clone()),
        ("cart", "Deployment valkey-cart-2-1", image.clone()),
        ("kept", "StatefulSet valkey-kept-0-1", none),
        ("kept", "StatefulSet valkey-kept-0-1", image),
    ];
    for (cluster, which, edit) in &table {
        is_put_right(&stage, cluster, which, Some(edit)).await;
        if !which.contains("2-1") {
            is_put_right(&stage, cluster, which, None).await;
        }
    }
    operator.end().await;
}

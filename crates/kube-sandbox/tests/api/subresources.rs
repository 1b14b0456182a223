//! Subresources and custom resources.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, EvictParams, GroupVersionKind, Patch, PatchParams, PostParams,
};
use kube::{Api, ResourceExt};
use kube_sandbox::Sandbox;
use serde_json::{Value, json};

use crate::common::typed;

/// There is no controller that makes it, and no pod without it.
async fn default_account(sandbox: &Sandbox) {
    let accounts: Api<ServiceAccount> = Api::namespaced(sandbox.client(), "default");
    let account = typed(json!({"metadata": {"name": "default"}}));
    accounts.create(&PostParams::default(), &account).await.unwrap();
}

fn deployment() -> Deployment {
    typed(json!({
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            },
        },
        "status": {"replicas": 7},
    }))
}

fn pod(name: &str) -> Pod {
    typed(json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}}))
}

fn definition() -> CustomResourceDefinition {
    typed(json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}, "scale": {
                    "specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size",
                }},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "required": ["size"], "properties": {
                        "size": {"type": "integer", "minimum": 0},
                        "color": {"type": "string", "default": "red"},
                    }},
                    "status": {"type": "object", "properties": {"size": {"type": "integer"}}},
                }}},
            }],
        },
    }))
}

fn widgets(sandbox: &Sandbox) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Widget"));
    Api::namespaced_with(sandbox.client(), "default", &resource)
}

fn widget(name: &str, spec: &Value) -> DynamicObject {
    typed(json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}))
}

#[tokio::test]
async fn spec_and_status_are_written_separately_and_only_spec_counts_generations() {
    let sandbox = Sandbox::bare().await.unwrap();
    let deployments: Api<Deployment> = Api::namespaced(sandbox.client(), "default");
    let made = deployments.create(&PostParams::default(), &deployment()).await.unwrap();
    assert_eq!(made.metadata.generation, Some(1));
    assert_eq!(made.status.unwrap().replicas, None);
    let status = json!({"status": {"replicas": 2}, "spec": {"replicas": 9}});
    let patched = deployments
        .patch_status("web", &PatchParams::default(), &Patch::Merge(&status))
        .await
        .unwrap();
    assert_eq!(patched.metadata.generation, Some(1));
    assert_eq!(patched.spec.unwrap().replicas, Some(2));
    assert_eq!(patched.status.unwrap().replicas, Some(2));
    let both = json!({"status": {"replicas": 5}, "spec": {"replicas": 3}});
    let patched = deployments
        .patch("web", &PatchParams::default(), &Patch::Merge(&both))
        .await
        .unwrap();
    assert_eq!(patched.metadata.generation, Some(2));
    assert_eq!(patched.status.unwrap().replicas, Some(2));
}

#[tokio::test]
async fn scale_reads_and_writes_replicas() {
    let sandbox = Sandbox::bare().await.unwrap();
    let deployments: Api<Deployment> = Api::namespaced(sandbox.client(), "default");
    deployments.create(&PostParams::default(), &deployment()).await.unwrap();
    let scale = deployments.get_scale("web").await.unwrap();
    assert_eq!(scale.spec.unwrap().replicas, Some(2));
    assert_eq!(scale.status.unwrap().selector.as_deref(), Some("app=web"));
    let patch = json!({"spec": {"replicas": 4}});
    deployments
        .patch_scale("web", &PatchParams::default(), &Patch::Merge(&patch))
        .await
        .unwrap();
    let read = deployments.get("web").await.unwrap();
    assert_eq!(
        (read.spec.unwrap().replicas, read.metadata.generation),
        (Some(4), Some(2))
    );
}

#[tokio::test]
async fn a_pod_is_bound_once_and_then_has_a_grace_period() {
    let sandbox = Sandbox::bare().await.unwrap();
    let pods: Api<Pod> = Api::namespaced(sandbox.client(), "default");
    let rejected = pods.create(&PostParams::default(), &pod("a")).await.unwrap_err();
    assert_eq!(
        rejected.to_string().split(": Forbidden").next().unwrap_or_default(),
        "ApiError: pods \"a\" is forbidden: error looking up service account default/default: serviceaccount \
         \"default\" not found",
    );
    default_account(&sandbox).await;
    pods.create(&PostParams::default(), &pod("a")).await.unwrap();
    let binding = json!({
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "node-1"},
    });
    let client = sandbox.client();
    let bind = || {
        let request = http::Request::post("/api/v1/namespaces/default/pods/a/binding")
            .header("content-type", "application/json")
            .body(serde_json::to_vec(&binding).unwrap())
            .unwrap();
        client.request::<Value>(request)
    };
    bind().await.unwrap();
    let again = bind().await.unwrap_err();
    assert!(again.to_string().contains("already assigned to node"), "{again}");
    let waiting = pods
        .delete("a", &DeleteParams::default())
        .await
        .unwrap()
        .left()
        .unwrap();
    assert_eq!(waiting.metadata.deletion_grace_period_seconds, Some(30));
    let now = DeleteParams {
        grace_period_seconds: Some(0),
        ..DeleteParams::default()
    };
    pods.delete("a", &now).await.unwrap();
    assert!(pods.get_opt("a").await.unwrap().is_none());
}

#[tokio::test]
async fn an_eviction_without_budget_deletes() {
    let sandbox = Sandbox::bare().await.unwrap();
    default_account(&sandbox).await;
    let pods: Api<Pod> = Api::namespaced(sandbox.client(), "default");
    pods.create(&PostParams::default(), &pod("a")).await.unwrap();
    pods.evict("a", &EvictParams::default()).await.unwrap();
    assert!(pods.get_opt("a").await.unwrap().is_none());
}

#[tokio::test]
async fn a_crd_serves_its_kind_and_deletes_its_objects_with_it() {
    let sandbox = Sandbox::bare().await.unwrap();
    let crds: Api<CustomResourceDefinition> = Api::all(sandbox.client());
    crds.create(&PostParams::default(), &definition()).await.unwrap();
    let established = crds.get("widgets.example.com").await.unwrap();
    let conditions = established.status.unwrap().conditions.unwrap();
    assert!(
        conditions
            .iter()
            .any(|c| c.type_ == "Established" && c.status == "True")
    );
    let widgets = widgets(&sandbox);
    let made = widgets
        .create(
            &PostParams::default(),
            &widget("a", &json!({"size": 1, "unknown": true})),
        )
        .await
        .unwrap();
    assert_eq!(made.data["spec"], json!({"size": 1, "color": "red"}));
    assert_eq!(made.metadata.generation, Some(1));
    let wrong = widgets
        .create(&PostParams::default(), &widget("b", &json!({"size": -1})))
        .await
        .unwrap_err();
    assert!(wrong.to_string().contains("spec.size"), "{wrong}");
    assert_eq!(widgets.get_scale("a").await.unwrap().spec.unwrap().replicas, Some(1));
    crds.delete("widgets.example.com", &DeleteParams::default())
        .await
        .unwrap();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while crds.get_opt("widgets.example.com").await.unwrap().is_some() {
        assert!(std::time::Instant::now() < deadline, "the definition never went");
        tokio::task::yield_now().await;
    }
    assert!(widgets.get("a").await.is_err());
    assert_eq!(made.name_any(), "a");
}

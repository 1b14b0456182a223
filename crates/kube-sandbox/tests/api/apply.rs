//! Server-side apply over the wire.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use kube_sandbox::Sandbox;
use serde_json::{Value, json};

fn config(data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data})
}

#[tokio::test]
async fn apply_creates_then_changes_and_removes_what_it_leaves_out() {
    let sandbox = Sandbox::bare().await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(sandbox.client(), "default");
    let by = PatchParams::apply("one");
    let made = maps
        .patch("a", &by, &Patch::Apply(config(&json!({"x": "1", "y": "1"}))))
        .await
        .unwrap();
    assert_eq!(made.managed_fields().len(), 1);
    let changed = maps
        .patch("a", &by, &Patch::Apply(config(&json!({"x": "2"}))))
        .await
        .unwrap();
    assert_eq!(
        changed.data.clone().unwrap().into_iter().collect::<Vec<_>>(),
        [("x".into(), "2".into())]
    );
    let again = maps
        .patch("a", &by, &Patch::Apply(config(&json!({"x": "2"}))))
        .await
        .unwrap();
    assert_eq!(again.resource_version(), changed.resource_version());
}

#[tokio::test]
async fn two_managers_conflict_over_one_field_until_one_forces() {
    let sandbox = Sandbox::bare().await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(sandbox.client(), "default");
    maps.patch(
        "a",
        &PatchParams::apply("one"),
        &Patch::Apply(config(&json!({"x": "1"}))),
    )
    .await
    .unwrap();
    let other = Patch::Apply(config(&json!({"x": "2"})));
    let conflict = maps.patch("a", &PatchParams::apply("two"), &other).await.unwrap_err();
    match conflict {
        kube::Error::Api(status) => {
            assert_eq!(status.code, 409);
            assert!(
                status.message.contains("conflict with \"one\": .data.x"),
                "{}",
                status.message
            );
        }
        other => panic!("{other}"),
    }
    let forced = maps
        .patch("a", &PatchParams::apply("two").force(), &other)
        .await
        .unwrap();
    assert_eq!(forced.data.unwrap()["x"], "2");
}

#[tokio::test]
async fn an_apply_to_status_touches_nothing_else() {
    let sandbox = Sandbox::bare().await.unwrap();
    let deployments: Api<Deployment> = Api::namespaced(sandbox.client(), "default");
    let template = json!({
        "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    let made = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template},
    });
    deployments
        .patch("a", &PatchParams::apply("one"), &Patch::Apply(made))
        .await
        .unwrap();
    let status = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"},
        "spec": {"replicas": 7}, "status": {"replicas": 3},
    });
    let after = deployments
        .patch_status("a", &PatchParams::apply("two"), &Patch::Apply(status))
        .await
        .unwrap();
    assert_eq!(after.status.unwrap().replicas, Some(3));
    assert_eq!(after.spec.unwrap().replicas, Some(1));
    assert_eq!(after.metadata.generation, Some(1));
}

//! Cascades, dangling owners and namespaces, for built-in and custom kinds.

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, ServiceAccount};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::{Resource, ResourceExt};
use serde_json::{Value, json};

use crate::world::{self, World};

fn map(name: &str, owners: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "ownerReferences": owners}})
}

fn owner<K: Resource<DynamicType = ()>>(of: &K, blocks: bool) -> Value {
    json!({"apiVersion": K::api_version(&()), "kind": K::kind(&()), "name": of.name_any(), "uid": of.uid(),
        "blockOwnerDeletion": blocks})
}

async fn deleted<K: world::Kind>(world: &World, name: &str) {
    let what = format!("{} {name} to go", K::kind(&()));
    world
        .eventually(&what, async || {
            world.api::<K>().get_opt(name).await.unwrap().is_none().then_some(())
        })
        .await;
}

#[tokio::test]
async fn deleting_a_deployment_deletes_its_sets_and_pods() {
    let world = World::start().await;
    world.create::<Deployment>(world::deployment("web", 2, "a:1")).await;
    world
        .eventually("two pods", async || {
            (world.list::<Pod>("").await.len() == 2).then_some(())
        })
        .await;
    world.keep_pods_ready();
    world
        .api::<Deployment>()
        .delete("web", &DeleteParams::default())
        .await
        .unwrap();
    world
        .eventually("everything to go", async || {
            let sets = world.list::<ReplicaSet>("").await;
            let pods = world.list::<Pod>("").await;
            (sets.is_empty() && pods.is_empty()).then_some(())
        })
        .await;
}

#[tokio::test]
async fn a_foreground_deletion_waits_for_those_that_block() {
    let world = World::start().await;
    let parent: ConfigMap = world.create(map("parent", &json!([]))).await;
    let mut blocking = map("blocking", &json!([owner(&parent, true)]));
    blocking["metadata"]["finalizers"] = json!(["example.com/hold"]);
    world.create::<ConfigMap>(blocking).await;
    world
        .create::<ConfigMap>(map("free", &json!([owner(&parent, false)])))
        .await;
    world
        .api::<ConfigMap>()
        .delete("parent", &DeleteParams::foreground())
        .await
        .unwrap();
    deleted::<ConfigMap>(&world, "free").await;
    world
        .until::<ConfigMap>("blocking", "its deletion", |map| {
            map.metadata.deletion_timestamp.is_some()
        })
        .await;
    let waiting = world.api::<ConfigMap>().get("parent").await.unwrap();
    assert_eq!(waiting.finalizers(), ["foregroundDeletion"]);
    let release = json!({"metadata": {"finalizers": null}});
    world
        .api::<ConfigMap>()
        .patch("blocking", &PatchParams::default(), &Patch::Merge(release))
        .await
        .unwrap();
    deleted::<ConfigMap>(&world, "parent").await;
}

#[tokio::test]
async fn orphans_lose_the_reference_and_live() {
    let world = World::start().await;
    let parent: ConfigMap = world.create(map("parent", &json!([]))).await;
    world
        .create::<ConfigMap>(map("child", &json!([owner(&parent, true)])))
        .await;
    world
        .api::<ConfigMap>()
        .delete("parent", &DeleteParams::orphan())
        .await
        .unwrap();
    deleted::<ConfigMap>(&world, "parent").await;
    let child = world.api::<ConfigMap>().get("child").await.unwrap();
    assert!(child.owner_references().is_empty() && child.metadata.deletion_timestamp.is_none());
}

#[tokio::test]
async fn a_dependent_is_collected_only_when_it_has_no_owner_left() {
    let world = World::start().await;
    let solid: ConfigMap = world.create(map("solid", &json!([]))).await;
    let missing = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "missing", "uid": "11111111-1111-1111-1111-111111111111"});
    world.create::<ConfigMap>(map("dangling", &json!([missing]))).await;
    world
        .create::<ConfigMap>(map("half", &json!([missing, owner(&solid, false)])))
        .await;
    deleted::<ConfigMap>(&world, "dangling").await;
    world
        .until::<ConfigMap>("half", "one owner", |map| map.owner_references().len() == 1)
        .await;
}

fn widgets() -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}})
}

fn widget_resource() -> ApiResource {
    ApiResource {
        group: "example.com".into(),
        version: "v1".into(),
        api_version: "example.com/v1".into(),
        kind: "Widget".into(),
        plural: "widgets".into(),
    }
}

#[tokio::test]
async fn custom_resources_own_and_are_owned() {
    let world = World::start().await;
    world.create_cluster::<CustomResourceDefinition>(widgets()).await;
    let api: Api<DynamicObject> = Api::namespaced_with(world.client.clone(), "default", &widget_resource());
    let widget = DynamicObject::new("w", &widget_resource());
    let made = world
        .eventually("the widget", async || {
            api.create(&PostParams::default(), &widget).await.ok()
        })
        .await;
    let reference = json!([{"apiVersion": "example.com/v1", "kind": "Widget", "name": "w", "uid": made.uid()}]);
    world.create::<ConfigMap>(map("child", &reference)).await;
    api.delete("w", &DeleteParams::default()).await.unwrap();
    deleted::<ConfigMap>(&world, "child").await;
}

#[tokio::test]
async fn a_deleted_namespace_reports_what_remains_and_is_removed_when_empty() {
    let world = World::start().await;
    world.create_cluster::<CustomResourceDefinition>(widgets()).await;
    let spaces: Api<Namespace> = Api::all(world.client.clone());
    let space: Namespace = serde_json::from_value(json!({"metadata": {"name": "busy"}})).unwrap();
    spaces.create(&PostParams::default(), &space).await.unwrap();
    let accounts: Api<ServiceAccount> = Api::namespaced(world.client.clone(), "busy");
    world
        .eventually("the default account", async || {
            accounts.get_opt("default").await.unwrap()
        })
        .await;
    let maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), "busy");
    let held: ConfigMap =
        serde_json::from_value(json!({"metadata": {"name": "held", "finalizers": ["example.com/hold"]}})).unwrap();
    maps.create(&PostParams::default(), &held).await.unwrap();
    let api: Api<DynamicObject> = Api::namespaced_with(world.client.clone(), "busy", &widget_resource());
    let widget = DynamicObject::new("w", &widget_resource());
    world
        .eventually("the widget", async || {
            api.create(&PostParams::default(), &widget).await.ok()
        })
        .await;

    spaces.delete("busy", &DeleteParams::default()).await.unwrap();
    let message = world.eventually("the conditions", async || {
        let space = spaces.get("busy").await.unwrap();
        let status = space.status.unwrap_or_default();
        assert_eq!(status.phase.as_deref(), Some("Terminating"));
        let conditions = status.conditions?;
        let one = conditions
            .iter()
            .find(|c| c.type_ == "NamespaceFinalizersRemaining" && c.status == "True")?;
        one.message.clone()
    });
    assert_eq!(
        message.await,
        "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances"
    );
    assert!(
        api.list(&ListParams::default()).await.unwrap().items.is_empty(),
        "the widget went first"
    );
    let release = json!({"metadata": {"finalizers": null}});
    maps.patch("held", &PatchParams::default(), &Patch::Merge(release))
        .await
        .unwrap();
    world
        .eventually("the namespace to go", async || {
            spaces.get_opt("busy").await.unwrap().is_none().then_some(())
        })
        .await;
}

//! Controllers beside concurrent clients: what is deleted takes everything along, and nothing that was released.

use futures::future::join_all;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams,
};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

use crate::world::World;

const ROUNDS: usize = 20;
const WRITERS: usize = 4;

fn typed<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// Creates objects from several tasks until the server rejects one with a code of `ends`.
async fn create_until_rejected(objects: Api<DynamicObject>, object: Value, ends: &'static [u16]) {
    let writers = (0..WRITERS).map(|writer| {
        let (objects, mut object) = (objects.clone(), object.clone());
        tokio::spawn(async move {
            for number in 0.. {
                object["metadata"]["name"] = json!(format!("o-{writer}-{number}"));
                match objects.create(&PostParams::default(), &typed(object.clone())).await {
                    Ok(_) => {}
                    Err(kube::Error::Api(status)) if ends.contains(&status.code) => break,
                    Err(other) => panic!("{other}"),
                }
            }
        })
    });
    for writer in join_all(writers.collect::<Vec<_>>()).await {
        writer.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_is_left_of_a_namespace_that_was_deleted_under_concurrent_creates() {
    let world = World::start().await;
    let namespaces: Api<Namespace> = Api::all(world.client.clone());
    for round in 0..ROUNDS {
        let name = format!("round-{round}");
        let namespace = typed(json!({"metadata": {"name": name}}));
        namespaces.create(&PostParams::default(), &namespace).await.unwrap();
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "ConfigMap"));
        let maps = Api::namespaced_with(world.client.clone(), &name, &resource);
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}});
        let writers = tokio::spawn(create_until_rejected(maps, map, &[403, 404]));
        namespaces.delete(&name, &DeleteParams::default()).await.unwrap();
        writers.await.unwrap();
        world
            .eventually("the namespace to go", async || {
                namespaces.get_opt(&name).await.unwrap().is_none().then_some(())
            })
            .await;
        let maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), &name);
        let left = maps.list(&ListParams::default()).await.unwrap().items;
        let left: Vec<String> = left.iter().map(ResourceExt::name_any).collect();
        assert!(left.is_empty(), "left in {name}: {left:?}");
    }
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
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {}}},
            }],
        },
    }))
}

fn widgets(client: Client) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Widget"));
    Api::namespaced_with(client, "default", &resource)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_is_left_of_a_crd_that_was_deleted_under_concurrent_creates() {
    let world = World::start().await;
    let crds: Api<CustomResourceDefinition> = Api::all(world.client.clone());
    for round in 0..ROUNDS {
        // The same name again: what was left of the last round would be served now.
        crds.create(&PostParams::default(), &definition()).await.unwrap();
        let widgets = widgets(world.client.clone());
        let found = widgets.list(&ListParams::default()).await.unwrap();
        assert!(found.items.is_empty(), "round {round}: {}", found.items.len());
        let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {}});
        let writers = tokio::spawn(create_until_rejected(widgets, widget, &[404, 405]));
        crds.delete("widgets.example.com", &DeleteParams::default())
            .await
            .unwrap();
        writers.await.unwrap();
        world
            .eventually("the definition to go", async || {
                crds.get_opt("widgets.example.com")
                    .await
                    .unwrap()
                    .is_none()
                    .then_some(())
            })
            .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_object_released_by_its_owner_survives_the_owner() {
    let world = World::start().await;
    let maps: Api<ConfigMap> = world.api();
    let map = |name: String, owners: Value| {
        typed::<ConfigMap>(json!({"metadata": {"name": name, "ownerReferences": owners}}))
    };
    let rounds = (0..ROUNDS * WRITERS).map(|round| {
        let maps = maps.clone();
        tokio::spawn(async move {
            let (parent, child) = (format!("parent-{round}"), format!("child-{round}"));
            let params = PostParams::default();
            let owner = maps.create(&params, &map(parent.clone(), json!([]))).await.unwrap();
            let reference = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": parent, "uid": owner.uid()});
            maps.create(&params, &map(child.clone(), json!([reference])))
                .await
                .unwrap();
            let release = Patch::Merge(json!({"metadata": {"ownerReferences": null}}));
            let (deletion, by) = (DeleteParams::default(), PatchParams::default());
            // Varies the distance between the deletion and the release.
            maps.delete(&parent, &deletion).await.unwrap();
            for _ in 0..round {
                tokio::task::yield_now().await;
            }
            match maps.patch(&child, &by, &release).await {
                Ok(_) => Some(child),
                Err(kube::Error::Api(status)) if status.code == 404 => None,
                Err(other) => panic!("{other}"),
            }
        })
    });
    let released: Vec<String> = join_all(rounds.collect::<Vec<_>>())
        .await
        .into_iter()
        .filter_map(Result::unwrap)
        .collect();
    assert!(!released.is_empty(), "no release came before the collector");
    // The collector works in the order of arrival: when this one is collected, all before it were judged.
    let owner = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "none", "uid": "none"}]);
    let last = map("last".into(), owner);
    maps.create(&PostParams::default(), &last).await.unwrap();
    world
        .eventually("the last object to be collected", async || {
            maps.get_opt("last").await.unwrap().is_none().then_some(())
        })
        .await;
    for name in released {
        assert!(maps.get_opt(&name).await.unwrap().is_some(), "{name} was collected");
    }
}

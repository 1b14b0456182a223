//! Concurrent writers of one object: the server retries what a real API server retries, and loses no write.

use std::future::Future;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use k8s_openapi::api::rbac::v1::Role;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use kube_sandbox::Sandbox;
use serde_json::{Value, json};
use tokio::sync::Barrier;

use crate::common::typed;

const WRITERS: usize = 6;
const ROUNDS: usize = 60;

/// Runs `write` in [`WRITERS`] tasks that start together, and returns what each of them returned.
async fn together<T, F>(write: impl Fn(usize) -> F) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let start = Arc::new(Barrier::new(WRITERS));
    let tasks = (0..WRITERS).map(|writer| {
        let (start, write) = (start.clone(), write(writer));
        tokio::spawn(async move {
            start.wait().await;
            write.await
        })
    });
    let results = futures::future::join_all(tasks.collect::<Vec<_>>()).await;
    results.into_iter().map(Result::unwrap).collect()
}

/// A client without sockets between it and the server: requests run truly in parallel.
fn client(sandbox: &Sandbox) -> Client {
    sandbox.client_as("admin", &["system:masters"])
}

fn code<T>(result: &kube::Result<T>) -> u16 {
    match result {
        Ok(_) => 200,
        Err(kube::Error::Api(status)) => status.code,
        Err(other) => panic!("{other}"),
    }
}

fn config_map(name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_applies_of_a_new_object_all_succeed_and_merge() {
    let sandbox = Sandbox::bare().await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client(&sandbox), "default");
    for round in 0..ROUNDS {
        let name = format!("round-{round}");
        let results = together(|writer| {
            let (maps, name) = (maps.clone(), name.clone());
            async move {
                let config = config_map(&name, &json!({format!("key-{writer}"): "x"}));
                let by = PatchParams::apply(&format!("writer-{writer}"));
                maps.patch(&name, &by, &Patch::Apply(config)).await
            }
        })
        .await;
        for result in results {
            result.unwrap();
        }
        let stored = maps.get(&name).await.unwrap();
        assert_eq!(stored.data.clone().unwrap().len(), WRITERS);
        assert_eq!(stored.managed_fields().len(), WRITERS);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn apply_that_races_with_deletions_never_fails() {
    let sandbox = Sandbox::bare().await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client(&sandbox), "default");
    let codes = together(|writer| {
        let maps = maps.clone();
        async move {
            let mut codes = Vec::new();
            for _ in 0..ROUNDS {
                if writer % 2 == 0 {
                    let by = PatchParams::apply(&format!("writer-{writer}"));
                    let config = config_map("a", &json!({format!("key-{writer}"): "x"}));
                    codes.push(code(&maps.patch("a", &by, &Patch::Apply(config)).await));
                } else {
                    let deleted = code(&maps.delete("a", &DeleteParams::default()).await);
                    assert!(matches!(deleted, 200 | 404), "{deleted}");
                }
            }
            codes
        }
    })
    .await;
    assert!(codes.concat().iter().all(|code| *code == 200), "{codes:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_updates_that_create_all_succeed() {
    let sandbox = Sandbox::bare().await.unwrap();
    let roles: Api<Role> = Api::namespaced(client(&sandbox), "default");
    for round in 0..ROUNDS {
        let name = format!("round-{round}");
        let results = together(|_| {
            let (roles, name) = (roles.clone(), name.clone());
            async move {
                let role: Role = typed(json!({"metadata": {"name": name}, "rules": []}));
                roles.replace(&name, &PostParams::default(), &role).await
            }
        })
        .await;
        for result in results {
            result.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_creates_of_one_name_succeed_once() {
    let sandbox = Sandbox::bare().await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client(&sandbox), "default");
    for round in 0..ROUNDS {
        let name = format!("round-{round}");
        let mut codes = together(|_| {
            let (maps, name) = (maps.clone(), name.clone());
            async move {
                let map = typed(config_map(&name, &json!({})));
                code(&maps.create(&PostParams::default(), &map).await)
            }
        })
        .await;
        codes.sort_unstable();
        let (first, others) = codes.split_first().unwrap();
        assert!(
            *first == 200 && others.iter().all(|code| *code == 409),
            "{first} {others:?}"
        );
    }
}

fn deployment() -> Deployment {
    typed(json!({
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            },
        },
    }))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_patches_without_a_version_are_all_kept() {
    let sandbox = Sandbox::bare().await.unwrap();
    let deployments: Api<Deployment> = Api::namespaced(client(&sandbox), "default");
    deployments.create(&PostParams::default(), &deployment()).await.unwrap();
    together(|writer| {
        let deployments = deployments.clone();
        async move {
            let by = PatchParams::default();
            for round in 0..ROUNDS {
                let annotations = json!({"metadata": {"annotations": {format!("{writer}-{round}"): "x"}}});
                let result = match writer {
                    0 => deployments
                        .patch("web", &by, &Patch::Merge(annotations))
                        .await
                        .map(drop),
                    1 => deployments
                        .patch("web", &by, &Patch::Strategic(annotations))
                        .await
                        .map(drop),
                    2 => {
                        let condition = json!({"type": format!("C{round}"), "status": "True"});
                        let status = json!({"status": {"conditions": [condition]}});
                        deployments
                            .patch_status("web", &by, &Patch::Strategic(status))
                            .await
                            .map(drop)
                    }
                    3 => {
                        let add =
                            json!({"op": "add", "path": format!("/metadata/labels/{writer}-{round}"), "value": "x"});
                        let first = json!({"op": "test", "path": "/metadata/name", "value": "web"});
                        let labels = json!({"metadata": {"labels": {"by": "json-patch"}}});
                        deployments.patch("web", &by, &Patch::Merge(labels)).await.unwrap();
                        let patch: json_patch::Patch = typed(json!([first, add]));
                        deployments
                            .patch("web", &by, &Patch::<Value>::Json(patch))
                            .await
                            .map(drop)
                    }
                    4 => {
                        let scale = json!({"spec": {"replicas": round + 1}});
                        deployments
                            .patch_scale("web", &by, &Patch::Merge(scale))
                            .await
                            .map(drop)
                    }
                    _ => {
                        let annotations = json!({format!("{writer}-{round}"): "x"});
                        let config = json!({"apiVersion": "apps/v1", "kind": "Deployment",
                            "metadata": {"name": "web", "annotations": annotations}});
                        let by = PatchParams::apply(&format!("round-{round}"));
                        deployments.patch("web", &by, &Patch::Apply(config)).await.map(drop)
                    }
                };
                result.unwrap();
            }
        }
    })
    .await;
    let stored = deployments.get("web").await.unwrap();
    for round in 0..ROUNDS {
        for writer in [0, 1, 5] {
            assert!(
                stored.annotations().contains_key(&format!("{writer}-{round}")),
                "{writer} {round}"
            );
        }
        assert!(stored.labels().contains_key(&format!("3-{round}")), "{round}");
    }
    assert_eq!(stored.status.unwrap().conditions.unwrap().len(), ROUNDS);
    assert_eq!(stored.spec.unwrap().replicas, Some(i32::try_from(ROUNDS).unwrap()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_concurrent_updates_with_one_version_exactly_one_succeeds() {
    let sandbox = Sandbox::bare().await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client(&sandbox), "default");
    let mut current = maps
        .create(&PostParams::default(), &typed(config_map("a", &json!({}))))
        .await
        .unwrap();
    for round in 0..ROUNDS {
        let results = together(|writer| {
            let (maps, mut map) = (maps.clone(), current.clone());
            map.annotations_mut().insert("by".into(), format!("{round}-{writer}"));
            async move { maps.replace("a", &PostParams::default(), &map).await }
        })
        .await;
        let codes: Vec<u16> = results.iter().map(code).collect();
        assert_eq!(codes.iter().filter(|code| **code == 200).count(), 1, "{codes:?}");
        assert!(codes.iter().all(|code| matches!(code, 200 | 409)), "{codes:?}");
        current = results.into_iter().find_map(Result::ok).unwrap();
        assert_eq!(maps.get("a").await.unwrap(), current);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn object_is_removed_when_concurrent_writers_have_removed_all_finalizers() {
    let sandbox = Sandbox::bare().await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client(&sandbox), "default");
    let finalizer = |writer: usize| format!("example.com/writer-{writer}");
    for round in 0..ROUNDS {
        let name = format!("round-{round}");
        let mut map = config_map(&name, &json!({}));
        map["metadata"]["finalizers"] = (0..WRITERS).map(finalizer).collect();
        maps.create(&PostParams::default(), &typed(map)).await.unwrap();
        maps.delete(&name, &DeleteParams::default()).await.unwrap();
        together(|writer| {
            let (maps, name, own) = (maps.clone(), name.clone(), finalizer(writer));
            async move {
                // Every writer removes its own finalizer, with the version that it has read.
                while let Some(mut map) = maps.get_opt(&name).await.unwrap() {
                    if !map.finalizers().contains(&own) {
                        break;
                    }
                    map.finalizers_mut().retain(|finalizer| *finalizer != own);
                    let code = code(&maps.replace(&name, &PostParams::default(), &map).await);
                    assert!(matches!(code, 200 | 409), "{code}");
                }
            }
        })
        .await;
        assert!(maps.get_opt(&name).await.unwrap().is_none(), "{name} is still there");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn deletion_with_a_version_never_removes_a_newer_object() {
    let sandbox = Sandbox::bare().await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client(&sandbox), "default");
    for round in 0..ROUNDS {
        let name = format!("round-{round}");
        let made = maps
            .create(&PostParams::default(), &typed(config_map(&name, &json!({}))))
            .await
            .unwrap();
        let codes = together(|writer| {
            let (maps, name, made) = (maps.clone(), name.clone(), made.clone());
            async move {
                if writer == 0 {
                    let params = DeleteParams {
                        preconditions: Some(kube::api::Preconditions {
                            resource_version: made.resource_version(),
                            uid: made.uid(),
                        }),
                        ..DeleteParams::default()
                    };
                    code(&maps.delete(&name, &params).await)
                } else {
                    let patch = json!({"data": {format!("key-{writer}"): "x"}});
                    code(&maps.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await)
                }
            }
        })
        .await;
        let (deleted, patched) = codes.split_first().unwrap();
        let patches = patched.iter().filter(|code| **code == 200).count();
        match deleted {
            200 => assert_eq!(patches, 0, "a patched object was deleted: {codes:?}"),
            409 => assert_eq!(maps.get(&name).await.unwrap().data.unwrap().len(), WRITERS - 1),
            other => panic!("{other}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_services_never_share_an_address_or_a_node_port() {
    let sandbox = Sandbox::bare().await.unwrap();
    let services: Api<Service> = Api::namespaced(client(&sandbox), "default");
    for round in 0..ROUNDS {
        let codes = together(|writer| {
            let services = services.clone();
            async move {
                let service: Service = typed(json!({
                    "metadata": {"name": format!("s-{round}-{writer}")},
                    "spec": {"clusterIP": format!("10.96.1.{}", round + 1), "ports": [{"port": 80}]},
                }));
                code(&services.create(&PostParams::default(), &service).await)
            }
        })
        .await;
        assert_eq!(codes.iter().filter(|code| **code == 200).count(), 1, "{codes:?}");
    }
}

fn definition(default: usize) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "default": {}, "properties": {
                        "size": {"type": "integer", "default": default},
                    }},
                }}},
            }],
        },
    })
}

fn widgets(client: Client) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Widget"));
    Api::namespaced_with(client, "default", &resource)
}

fn widget(name: &str) -> DynamicObject {
    typed(json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}}))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn schema_that_is_served_is_the_stored_one_after_concurrent_updates() {
    let sandbox = Sandbox::bare().await.unwrap();
    let crds: Api<CustomResourceDefinition> = Api::all(client(&sandbox));
    let widgets = widgets(client(&sandbox));
    for round in 0..ROUNDS {
        together(|writer| {
            let crds = crds.clone();
            async move {
                let by = PatchParams::apply("one").force();
                let config = definition(round * WRITERS + writer + 1);
                crds.patch("widgets.example.com", &by, &Patch::Apply(config))
                    .await
                    .unwrap();
            }
        })
        .await;
        let stored = serde_json::to_value(crds.get("widgets.example.com").await.unwrap()).unwrap();
        let made = widgets
            .create(&PostParams::default(), &widget(&format!("round-{round}")))
            .await
            .unwrap();
        let schema = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/size/default";
        assert_eq!(
            Some(&made.data["spec"]["size"]),
            stored.pointer(schema),
            "round {round}"
        );
    }
}

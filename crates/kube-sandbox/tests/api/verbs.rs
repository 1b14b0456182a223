//! The verbs over HTTPS, with the client an operator would use.

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, PropagationPolicy, WatchEvent, WatchParams};
use kube::{Api, ResourceExt};
use kube_sandbox::Sandbox;
use serde_json::json;

fn config_map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name, "labels": {"of": "test"}}, "data": {"a": "1"}})).unwrap()
}

fn code(error: kube::Error) -> (u16, String) {
    match error {
        kube::Error::Api(status) => (status.code, status.reason.clone()),
        other => panic!("not an API error: {other}"),
    }
}

#[tokio::test]
async fn an_object_lives_through_create_get_update_patch_and_delete() {
    let sandbox = Sandbox::start().await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(sandbox.client(), "default");
    let made = maps.create(&PostParams::default(), &config_map("a")).await.unwrap();
    assert!(made.uid().is_some() && made.creation_timestamp().is_some());
    assert_eq!(
        code(maps.create(&PostParams::default(), &config_map("a")).await.unwrap_err()),
        (409, "AlreadyExists".into())
    );
    let mut read = maps.get("a").await.unwrap();
    read.data.as_mut().unwrap().insert("b".into(), "2".into());
    let updated = maps.replace("a", &PostParams::default(), &read).await.unwrap();
    assert_ne!(updated.resource_version(), made.resource_version());
    let stale = maps.replace("a", &PostParams::default(), &read).await.unwrap_err();
    assert_eq!(code(stale), (409, "Conflict".into()));
    let patch = json!({"data": {"a": null, "c": "3"}});
    let patched = maps
        .patch("a", &PatchParams::default(), &Patch::Merge(&patch))
        .await
        .unwrap();
    assert_eq!(patched.data.unwrap().into_keys().collect::<Vec<_>>(), ["b", "c"]);
    maps.delete("a", &DeleteParams::default()).await.unwrap();
    assert_eq!(code(maps.get("a").await.unwrap_err()), (404, "NotFound".into()));
}

#[tokio::test]
async fn an_update_that_changes_nothing_writes_nothing() {
    let sandbox = Sandbox::start().await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(sandbox.client(), "default");
    let made = maps.create(&PostParams::default(), &config_map("a")).await.unwrap();
    let again = maps.replace("a", &PostParams::default(), &made).await.unwrap();
    assert_eq!(again.resource_version(), made.resource_version());
}

#[tokio::test]
async fn finalizers_hold_an_object_until_the_last_one_goes() {
    let sandbox = Sandbox::start().await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(sandbox.client(), "default");
    let mut held = config_map("held");
    held.metadata.finalizers = Some(vec!["example.com/hold".into()]);
    maps.create(&PostParams::default(), &held).await.unwrap();
    let deletion = maps.delete("held", &DeleteParams::default()).await.unwrap();
    let waiting = deletion.left().expect("the object itself, because it is still there");
    assert!(waiting.metadata.deletion_timestamp.is_some());
    let free = json!({"metadata": {"finalizers": null}});
    maps.patch("held", &PatchParams::default(), &Patch::Merge(&free))
        .await
        .unwrap();
    assert_eq!(code(maps.get("held").await.unwrap_err()).0, 404);
}

#[tokio::test]
async fn a_cascade_is_asked_for_by_finalizers() {
    let sandbox = Sandbox::builder().controllers(false).start().await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(sandbox.client(), "default");
    for (name, policy, expected) in [
        ("f", PropagationPolicy::Foreground, "foregroundDeletion"),
        ("o", PropagationPolicy::Orphan, "orphan"),
    ] {
        maps.create(&PostParams::default(), &config_map(name)).await.unwrap();
        let how = DeleteParams {
            propagation_policy: Some(policy),
            ..DeleteParams::default()
        };
        let waiting = maps.delete(name, &how).await.unwrap().left().unwrap();
        assert_eq!(waiting.finalizers(), [expected]);
    }
}

#[tokio::test]
async fn lists_come_in_chunks_of_one_revision() {
    let sandbox = Sandbox::start().await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(sandbox.client(), "kube-public");
    for name in ["a", "b", "c"] {
        maps.create(&PostParams::default(), &config_map(name)).await.unwrap();
    }
    let of_test = ListParams::default().labels("of=test");
    let first = maps.list(&of_test.clone().limit(2)).await.unwrap();
    assert_eq!(first.iter().map(ResourceExt::name_any).collect::<Vec<_>>(), ["a", "b"]);
    maps.create(&PostParams::default(), &config_map("bb")).await.unwrap();
    maps.delete("c", &DeleteParams::default()).await.unwrap();
    let token = first.metadata.continue_.clone().unwrap();
    let rest = maps.list(&of_test.limit(2).continue_token(&token)).await.unwrap();
    assert_eq!(rest.iter().map(ResourceExt::name_any).collect::<Vec<_>>(), ["c"]);
    assert_eq!(rest.metadata.resource_version, first.metadata.resource_version);
}

#[tokio::test]
async fn a_watch_adds_what_enters_its_selection_and_deletes_what_leaves_it() {
    let sandbox = Sandbox::start().await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(sandbox.client(), "default");
    let start = maps
        .list(&ListParams::default())
        .await
        .unwrap()
        .metadata
        .resource_version
        .unwrap();
    let params = WatchParams::default().labels("of=test").timeout(20);
    let events = maps.watch(&params, &start).await.unwrap();
    maps.create(&PostParams::default(), &config_map("a")).await.unwrap();
    let data = json!({"data": {"a": "2"}});
    maps.patch("a", &PatchParams::default(), &Patch::Merge(&data))
        .await
        .unwrap();
    let away = json!({"metadata": {"labels": {"of": "other"}}});
    maps.patch("a", &PatchParams::default(), &Patch::Merge(&away))
        .await
        .unwrap();
    let seen: Vec<&str> = events
        .take(3)
        .map_ok(|event| match event {
            WatchEvent::Added(_) => "added",
            WatchEvent::Modified(_) => "modified",
            WatchEvent::Deleted(_) => "deleted",
            _ => "other",
        })
        .try_collect()
        .await
        .unwrap();
    assert_eq!(seen, ["added", "modified", "deleted"]);
}

#[tokio::test]
async fn a_watch_from_before_the_compaction_is_gone() {
    let sandbox = Sandbox::start().await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(sandbox.client(), "default");
    let made = maps.create(&PostParams::default(), &config_map("a")).await.unwrap();
    sandbox.api().store().compact();
    let version = (made.resource_version().unwrap().parse::<u64>().unwrap() - 1).to_string();
    let mut events = maps.watch(&WatchParams::default(), &version).await.unwrap().boxed();
    match events.next().await.unwrap().unwrap() {
        WatchEvent::Error(status) => assert_eq!((status.code, status.reason.as_str()), (410, "Expired")),
        other => panic!("expected an error, got {other:?}"),
    }
}

#[tokio::test]
async fn clients_inside_the_process_see_the_same_server() {
    let sandbox = Sandbox::start().await.unwrap();
    let inside: Api<Namespace> = Api::all(sandbox.client_as("system:kube-controller-manager", &["system:masters"]));
    let outside: Api<Namespace> = Api::all(sandbox.client());
    assert_eq!(
        inside.list(&ListParams::default()).await.unwrap().items.len(),
        outside.list(&ListParams::default()).await.unwrap().items.len()
    );
}

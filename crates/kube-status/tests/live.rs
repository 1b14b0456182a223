//! The client parts on a real API server. Ignored unless asked for: they need a cluster in KUBECONFIG and the right to
//! make a namespace and a CRD.
//!
//!     cargo test -p kube-status --features client --test live -- --ignored
#![cfg(feature = "client")]

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Event, Namespace};
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams,
};
use kube::{Client, Resource, ResourceExt};
use kube_status::events::{EventPublisher, Notice, RecordedEvents, Recorder};
use kube_status::finalizer::{Cleaned, Cleanup, Finalization, Finalizer};
use kube_status::writer::{Shared, StatusWriter, WriteError, Written};
use kube_status::{Condition, Draft, Ownership, Status};
use serde_json::{Value, json};

async fn namespace(client: &Client, name: &str) -> Namespace {
    let api: Api<Namespace> = Api::all(client.clone());
    let name = format!("kube-status-{name}-{}", std::process::id());
    let namespace = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
    api.create(&PostParams::default(), &namespace).await.unwrap()
}

async fn config_map(client: &Client, namespace: &str) -> ConfigMap {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let map = serde_json::from_value(json!({"metadata": {"name": "a"}})).unwrap();
    api.create(&PostParams::default(), &map).await.unwrap()
}

async fn flushed(publisher: &EventPublisher) {
    assert!(publisher.flush(Duration::from_secs(20)).await);
    assert_eq!(publisher.dropped(), 0, "the API server took everything");
}

#[tokio::test]
#[ignore = "needs a cluster"]
async fn events_are_taken_counted_and_readable_through_both_apis() {
    let client = Client::try_default().await.unwrap();
    let home = namespace(&client, "events").await.name_any();
    let map = config_map(&client, &home).await;
    let about = map.object_ref(&());
    let start = || {
        EventPublisher::builder("shop-controller")
            .instance("shop-0")
            .start(client.clone())
    };
    let publisher = start();
    let notice = || Notice::warning("CleanupFailed", "no answer from 10.0.0.1");
    publisher.record(&about, notice());
    flushed(&publisher).await;
    publisher.record(&about, notice());
    publisher.record(
        &about,
        Notice::warning("R".repeat(400), "ä".repeat(5_000)).action("A".repeat(400)),
    );
    flushed(&publisher).await;
    let restarted = start();
    restarted.record(&about, notice());
    flushed(&restarted).await;

    let events: Api<Event> = Api::namespaced(client.clone(), &home);
    let series = || async {
        let fields = ListParams::default().fields("involvedObject.name=a,reason=CleanupFailed,source=shop-controller");
        let mut found = events.list(&fields).await.unwrap().items;
        assert_eq!(found.len(), 1, "one event for the same news");
        found.remove(0)
    };
    let event = series().await;
    assert_eq!((event.count, event.series.as_ref().unwrap().count), (Some(3), Some(3)));
    assert_eq!(events.list(&ListParams::default()).await.unwrap().items.len(), 2);

    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("events.k8s.io", "v1", "Event"));
    let newer: Api<DynamicObject> = Api::namespaced_with(client.clone(), &home, &resource);
    let observed = newer.get(&event.name_any()).await.unwrap().data;
    assert_eq!(observed["note"], json!("no answer from 10.0.0.1"));
    assert_eq!(
        (&observed["reportingController"], &observed["deprecatedCount"]),
        (&json!("shop-controller"), &json!(3))
    );

    events
        .delete(&event.name_any(), &DeleteParams::default())
        .await
        .unwrap();
    restarted.record(&about, notice());
    flushed(&restarted).await;
    assert_eq!(series().await.count, Some(4), "an expired event is made anew");
}

#[tokio::test]
#[ignore = "needs a cluster"]
async fn an_event_about_a_cluster_scoped_object_is_taken() {
    let client = Client::try_default().await.unwrap();
    let home = namespace(&client, "scope").await;
    let publisher = EventPublisher::builder("shop-controller").start(client.clone());
    publisher.record(&home.object_ref(&()), Notice::normal("Seen", "a namespace"));
    flushed(&publisher).await;
    let events: Api<Event> = Api::namespaced(client, "default");
    let fields = format!("involvedObject.name={}", home.name_any());
    assert_eq!(
        events
            .list(&ListParams::default().fields(&fields))
            .await
            .unwrap()
            .items
            .len(),
        1
    );
}

struct Nothing;

impl Cleanup<ConfigMap> for Nothing {
    type Error = String;
    async fn safe_part(&self, _: &ConfigMap) -> Result<(), String> {
        Ok(())
    }
    async fn cleanup(&self, _: &ConfigMap) -> Result<Cleaned, String> {
        Ok(Cleaned::Complete)
    }
}

#[tokio::test]
#[ignore = "needs a cluster"]
async fn a_finalizer_goes_on_and_comes_off_beside_others() {
    let client = Client::try_default().await.unwrap();
    let home = namespace(&client, "finalizer").await.name_any();
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), &home);
    let events = RecordedEvents::default();
    let finalizer = Finalizer::new("shop.io/cleanup", events.clone());
    let stale = config_map(&client, &home).await;
    // Another writer is faster each time: both patches meet a list that they were not computed from.
    let other = |list: Value| json!({"metadata": {"finalizers": list}});
    let set = |list: Value| Patch::Merge(other(list));
    api.patch("a", &PatchParams::default(), &set(json!(["other.io/x"])))
        .await
        .unwrap();
    let Finalization::Held(held) = finalizer.reconcile(&api, &stale, &(), None, &Nothing).await.unwrap() else {
        panic!("held")
    };
    assert_eq!(held.finalizers(), ["other.io/x", "shop.io/cleanup"]);
    assert_eq!(
        finalizer.reconcile(&api, &held, &(), None, &Nothing).await.unwrap(),
        Finalization::Live
    );

    api.delete("a", &DeleteParams::default()).await.unwrap();
    let going = api.get("a").await.unwrap();
    api.patch("a", &PatchParams::default(), &set(json!(["shop.io/cleanup"])))
        .await
        .unwrap();
    assert_eq!(
        finalizer.reconcile(&api, &going, &(), None, &Nothing).await.unwrap(),
        Finalization::Released
    );
    assert!(
        api.get_opt("a").await.unwrap().is_none(),
        "the last finalizer takes the object with it"
    );
    assert_eq!(
        finalizer.reconcile(&api, &going, &(), None, &Nothing).await.unwrap(),
        Finalization::Released,
        "twice does no harm"
    );
    assert_eq!(events.reasons()[..2], ["Deleting", "CleanupComplete"]);
}

/// The definition of a Cart with conditions as a map by type, made once for all tests of this process.
async fn carts(client: &Client, namespace: &str) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("kube-status.example", "v1", "Cart"));
    let kinds = ApiResource::from_gvk(&GroupVersionKind::gvk(
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
    ));
    let texts = ["type", "status", "reason", "message", "lastTransitionTime", "colour"];
    let mut fields: serde_json::Map<_, _> = texts
        .iter()
        .map(|name| ((*name).to_owned(), json!({"type": "string"})))
        .collect();
    fields.insert(
        "observedGeneration".to_owned(),
        json!({"type": "integer", "format": "int64"}),
    );
    fields["message"]["maxLength"] = json!(32_768);
    let status = json!({"type": "object", "properties": {
        "phase": {"type": "string"}, "weight": {"type": "integer"},
        "conditions": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
            "items": {"type": "object", "required": ["type", "status"], "properties": fields}}}});
    let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "carts.kube-status.example"},
        "spec": {"group": "kube-status.example", "scope": "Namespaced", "names": {"plural": "carts", "kind": "Cart"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object"}, "status": status}}}}]}});
    let crds: Api<DynamicObject> = Api::all_with(client.clone(), &kinds);
    let params = PatchParams::apply("kube-status-test").force();
    crds.patch("carts.kube-status.example", &params, &Patch::Apply(&crd))
        .await
        .unwrap();
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource);
    let served = async {
        loop {
            let crd = crds.get("carts.kube-status.example").await.unwrap();
            let established = kube_status::readers::read(&crd).unwrap();
            if established.status() == Status::True && api.list(&ListParams::default()).await.is_ok() {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), served)
        .await
        .expect("the definition is served");
    api
}

async fn cart(api: &Api<DynamicObject>) -> DynamicObject {
    let cart = serde_json::from_value(
        json!({"apiVersion": "kube-status.example/v1", "kind": "Cart", "metadata": {"name": "a"}, "spec": {}}),
    );
    api.create(&PostParams::default(), &cart.unwrap()).await.unwrap()
}

fn condition(type_: &'static str, status: Status, message: &str) -> Condition {
    Draft::new(type_, status, "R")
        .message(message)
        .into_condition(1, Timestamp::now())
}

#[tokio::test]
#[ignore = "needs a cluster"]
async fn an_owned_status_is_applied_whole_once_and_never_from_an_old_version() {
    let client = Client::try_default().await.unwrap();
    let home = namespace(&client, "own").await.name_any();
    let api = carts(&client, &home).await;
    let writer = StatusWriter::new("shop-controller");
    let new = cart(&api).await;
    let conditions = [
        condition("Paused", Status::False, ""),
        condition("Ready", Status::True, &"ä".repeat(30_000)),
    ];
    let first = json!({"phase": "Pending", "weight": 1, "conditions": conditions});
    let Written::Changed(observed) = writer.apply(&api, &new, &first).await.unwrap() else {
        panic!("written")
    };
    assert_eq!(observed.data["status"]["weight"], json!(1));
    assert_eq!(
        writer.apply(&api, &observed, &first).await.unwrap(),
        Written::Unchanged,
        "what is read back says the same"
    );

    let second = json!({"phase": "Running", "conditions": [condition("Ready", Status::True, "ok")]});
    assert!(matches!(
        writer.apply(&api, &new, &second).await.unwrap_err(),
        WriteError::Stale { .. }
    ));
    let Written::Changed(observed) = writer.apply(&api, &observed, &second).await.unwrap() else {
        panic!("written")
    };
    let status = &observed.data["status"];
    assert_eq!(
        (status["weight"].clone(), status["conditions"].as_array().unwrap().len()),
        (Value::Null, 1),
        "what is not said goes"
    );

    api.delete("a", &DeleteParams::default()).await.unwrap();
    assert!(writer.apply(&api, &observed, &first).await.unwrap_err().is_not_found());
}

#[tokio::test]
#[ignore = "needs a cluster"]
async fn a_shared_object_keeps_what_others_wrote() {
    let client = Client::try_default().await.unwrap();
    let home = namespace(&client, "shared").await.name_any();
    let api = carts(&client, &home).await;
    let writer = StatusWriter::new("shop-controller");
    let observed = cart(&api).await;
    let painted = json!({"type": "Painted", "status": "True", "colour": "red"});
    let body = json!({"apiVersion": "kube-status.example/v1", "kind": "Cart", "metadata": {"name": "a"}, "status": {"conditions": [painted]}});
    api.patch_status("a", &PatchParams::apply("painter"), &Patch::Apply(&body))
        .await
        .unwrap();

    let after = [condition("Ready", Status::True, "ok")];
    let shared = Shared::new(&after, Timestamp::now()).ownership(Ownership::of(["Ready"]));
    let Written::Changed(latest) = writer.patch(&api, &observed, &shared).await.unwrap() else {
        panic!("written")
    };
    let stored = latest.data["status"]["conditions"].as_array().unwrap().clone();
    assert_eq!(
        (stored.len(), &stored[1]),
        (2, &painted),
        "one retry, and the painter's words are there"
    );

    let read: Vec<Condition> = vec![
        after[0].clone(),
        serde_json::from_value(json!({"type": "Painted", "status": "True",
        "reason": "NoReasonReported", "message": "", "lastTransitionTime": "1970-01-01T00:00:00Z"}))
        .unwrap(),
    ];
    let again = Shared::new(&read, Timestamp::now());
    assert_eq!(writer.patch(&api, &latest, &again).await.unwrap(), Written::Unchanged);
}

//! The event publisher against an API server that is slow, forgetful or refuses.
#![cfg(feature = "client")]

mod support;

use std::time::Duration;

use http::Method;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use kube_status::events::{EventPublisher, Notice, Recorder};
use serde_json::{Value, json};
use support::{FakeApi, Fault};

fn noon() -> Timestamp {
    "2026-02-05T12:00:00.123456Z".parse().unwrap()
}

fn later() -> Timestamp {
    "2026-02-05T12:05:00.5Z".parse().unwrap()
}

fn publisher(api: &FakeApi) -> EventPublisher {
    publisher_at(api, noon)
}

fn publisher_at(api: &FakeApi, clock: fn() -> Timestamp) -> EventPublisher {
    EventPublisher::builder("valkeycluster-controller")
        .instance("candor-0")
        .request_timeout(Duration::from_millis(200))
        .clock(clock)
        .start(api.client())
}

fn cluster() -> ObjectReference {
    ObjectReference {
        api_version: Some("valkey.io/v1alpha1".to_owned()),
        kind: Some("ValkeyCluster".to_owned()),
        namespace: Some("shop".to_owned()),
        name: Some("prod".to_owned()),
        uid: Some("u-1".to_owned()),
        ..ObjectReference::default()
    }
}

async fn settled(publisher: &EventPublisher) {
    assert!(
        publisher.flush(Duration::from_secs(20)).await,
        "the publisher should come to rest"
    );
}

fn events(api: &FakeApi) -> Vec<Value> {
    let mut events = api.objects();
    for event in &mut events {
        event["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    }
    events
}

#[tokio::test]
async fn an_event_carries_the_old_fields_and_the_new_ones() {
    let api = FakeApi::default();
    let publisher = publisher(&api);
    publisher.record(
        &cluster(),
        Notice::normal("ClusterReady", "Cluster ready with 3 shards and 1 replicas"),
    );
    settled(&publisher).await;
    let event = events(&api).pop().unwrap();
    let name = event["metadata"]["name"].clone();
    assert!(name.as_str().unwrap().starts_with("prod."), "{name}");
    assert_eq!(
        event,
        json!({
            "apiVersion": "v1", "kind": "Event",
            "metadata": {"name": name, "namespace": "shop"},
            "involvedObject": {"apiVersion": "valkey.io/v1alpha1", "kind": "ValkeyCluster", "namespace": "shop", "name": "prod", "uid": "u-1"},
            "type": "Normal", "reason": "ClusterReady", "message": "Cluster ready with 3 shards and 1 replicas",
            "action": "Reconcile", "source": {"component": "valkeycluster-controller"},
            "reportingComponent": "valkeycluster-controller", "reportingInstance": "candor-0",
            "eventTime": "2026-02-05T12:00:00.123456Z",
            "firstTimestamp": "2026-02-05T12:00:00Z", "lastTimestamp": "2026-02-05T12:00:00Z", "count": 1,
        })
    );
    assert_eq!(api.requests()[0].path, "/api/v1/namespaces/shop/events");
}

#[tokio::test]
async fn a_repetition_is_counted_in_the_same_event_and_another_note_is_another_event() {
    let api = FakeApi::default();
    let publisher = publisher(&api);
    let failed = || Notice::warning("NodeAddFailed", "no route to 10.0.0.1");
    publisher.record(&cluster(), failed());
    settled(&publisher).await;
    publisher.record(&cluster(), failed());
    settled(&publisher).await;
    publisher.record(&cluster(), Notice::warning("NodeAddFailed", "no route to 10.0.0.2"));
    settled(&publisher).await;
    let mut counts: Vec<_> = events(&api)
        .iter()
        .map(|event| {
            (
                event["message"].clone(),
                event["count"].clone(),
                event["series"]["count"].clone(),
            )
        })
        .collect();
    counts.sort_by_key(|(message, ..)| message.to_string());
    assert_eq!(
        counts,
        [
            (json!("no route to 10.0.0.1"), json!(2), json!(2)),
            (json!("no route to 10.0.0.2"), json!(1), Value::Null),
        ]
    );
    assert_eq!(
        (
            api.count(&Method::POST),
            api.count(&Method::PATCH),
            api.count(&Method::GET)
        ),
        (2, 1, 0)
    );
}

#[tokio::test]
async fn repetitions_that_wait_cost_one_request() {
    let api = FakeApi::default();
    let publisher = publisher(&api);
    for _ in 0..50 {
        publisher.record(&cluster(), Notice::warning("RebalanceFailed", "busy"));
    }
    settled(&publisher).await;
    assert_eq!(events(&api)[0]["count"], json!(50));
    assert_eq!(api.requests().len(), 1, "nothing runs between the records of one task");
}

#[tokio::test]
async fn a_restarted_controller_goes_on_counting() {
    let api = FakeApi::default();
    let notice = || Notice::warning("CleanupFailed", "no answer");
    let first = publisher(&api);
    first.record(&cluster(), notice());
    settled(&first).await;
    drop(first);
    let second = publisher_at(&api, later);
    second.record(&cluster(), notice());
    settled(&second).await;
    let event = &events(&api)[0];
    assert_eq!(event["count"], json!(2));
    assert_eq!(event["firstTimestamp"], json!("2026-02-05T12:00:00Z"));
    assert_eq!(event["lastTimestamp"], json!("2026-02-05T12:05:00Z"));
    assert_eq!(
        event["series"]["lastObservedTime"],
        json!("2026-02-05T12:05:00.500000Z")
    );
}

#[tokio::test]
async fn an_expired_event_is_made_anew_and_the_series_goes_on() {
    let api = FakeApi::default();
    let publisher = publisher(&api);
    let notice = || Notice::warning("CleanupFailed", "no answer");
    publisher.record(&cluster(), notice());
    settled(&publisher).await;
    api.fault(
        Method::PATCH,
        Fault::Before(Box::new(std::collections::BTreeMap::clear)),
    );
    publisher.record(&cluster(), notice());
    settled(&publisher).await;
    assert_eq!(events(&api)[0]["count"], json!(2));
}

#[tokio::test]
async fn a_lost_response_does_not_count_twice() {
    let api = FakeApi::default();
    api.fault(Method::POST, Fault::LoseResponse(504));
    let publisher = publisher(&api);
    publisher.record(&cluster(), Notice::normal("Created", "x"));
    settled(&publisher).await;
    assert_eq!(events(&api).len(), 1);
    assert_eq!(events(&api)[0]["count"], json!(1));
    assert_eq!(publisher.dropped(), 0);
}

#[tokio::test]
async fn an_api_server_that_hangs_costs_the_recorder_nothing_and_the_event_at_most_two_tries() {
    let api = FakeApi::default();
    api.fault(Method::POST, Fault::Hang);
    api.fault(Method::POST, Fault::Hang);
    let publisher = publisher(&api);
    publisher.record(&cluster(), Notice::normal("Lost", "x"));
    publisher.record(&cluster(), Notice::normal("Kept", "x"));
    settled(&publisher).await;
    let reasons: Vec<_> = events(&api).iter().map(|event| event["reason"].clone()).collect();
    assert_eq!(reasons, [json!("Kept")]);
    assert_eq!(publisher.dropped(), 1);
}

#[tokio::test]
async fn a_rejection_is_final_and_a_transient_error_is_retried() {
    let api = FakeApi::default();
    api.fault(Method::POST, Fault::Reject(403));
    let publisher = publisher(&api);
    publisher.record(&cluster(), Notice::normal("Forbidden", "x"));
    settled(&publisher).await;
    assert_eq!((api.count(&Method::POST), publisher.dropped()), (1, 1));
    api.fault(Method::POST, Fault::Reject(500));
    publisher.record(&cluster(), Notice::normal("Tried", "x"));
    settled(&publisher).await;
    assert_eq!((api.count(&Method::POST), publisher.dropped()), (3, 1));
    assert_eq!(events(&api).len(), 1);
}

#[tokio::test]
async fn a_full_queue_drops_and_counts() {
    let api = FakeApi::default();
    let publisher = EventPublisher::builder("c").room(2).start(api.client());
    for reason in ["A", "B", "C"] {
        publisher.record(&cluster(), Notice::normal(reason, "x"));
    }
    assert_eq!(publisher.dropped(), 1);
    settled(&publisher).await;
    assert_eq!(events(&api).len(), 2);
}

#[tokio::test]
async fn the_task_ends_with_its_last_handle_and_sends_what_was_recorded_before() {
    let api = FakeApi::default();
    let publisher = publisher(&api);
    let other = publisher.clone();
    drop(publisher);
    other.record(&cluster(), Notice::normal("LastWords", "x"));
    drop(other);
    let sent = async {
        while events(&api).is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), sent)
        .await
        .expect("the last words are sent");
}

//! The finalizer against an API server on which others work too.
#![cfg(feature = "client")]

mod support;

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use http::Method;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube_status::events::RecordedEvents;
use kube_status::finalizer::{Cleaned, Cleanup, Deadline, Finalization, Finalizer, FinalizerError, Stage};
use kube_status::{Condition, Draft};
use serde_json::{Value, json};
use support::{FakeApi, Fault, Objects};

const MAPS: &str = "/api/v1/namespaces/shop/configmaps";
const MAP: &str = "/api/v1/namespaces/shop/configmaps/a";
const OURS: &str = "shop.io/cleanup";

fn maps(api: &FakeApi) -> Api<ConfigMap> {
    Api::namespaced(api.client(), "shop")
}

fn map(api: &FakeApi, deleted: bool, finalizers: &[&str]) -> ConfigMap {
    let mut object =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "shop", "uid": "u-1"}});
    if deleted {
        object["metadata"]["deletionTimestamp"] = json!("2026-02-05T10:00:00Z");
    }
    if !finalizers.is_empty() {
        object["metadata"]["finalizers"] = json!(finalizers);
    }
    serde_json::from_value(api.put(MAPS, object)).unwrap()
}

fn finalizers(api: &FakeApi) -> Value {
    api.get(MAP)
        .map_or(Value::Null, |object| object["metadata"]["finalizers"].clone())
}

/// Plays back results; remembers what was run.
#[derive(Default)]
struct Script {
    safe: Mutex<VecDeque<Result<(), String>>>,
    clean: Mutex<VecDeque<Result<Cleaned, String>>>,
    ran: Mutex<Vec<&'static str>>,
    hangs: bool,
}

impl Script {
    fn cleaning(results: impl IntoIterator<Item = Result<Cleaned, String>>) -> Self {
        Self {
            clean: Mutex::new(results.into_iter().collect()),
            ..Self::default()
        }
    }

    fn unsafe_for(self, reconciles: usize) -> Self {
        *self.safe.lock().unwrap() = (0..reconciles).map(|_| Err("forbidden".to_owned())).collect();
        self
    }

    fn ran(&self) -> Vec<&'static str> {
        self.ran.lock().unwrap().clone()
    }
}

impl Cleanup<ConfigMap> for Script {
    type Error = String;

    async fn safe_part(&self, _: &ConfigMap) -> Result<(), String> {
        self.ran.lock().unwrap().push("safe");
        self.safe.lock().unwrap().pop_front().unwrap_or(Ok(()))
    }

    async fn cleanup(&self, _: &ConfigMap) -> Result<Cleaned, String> {
        self.ran.lock().unwrap().push("clean");
        if self.hangs {
            std::future::pending::<()>().await;
        }
        self.clean.lock().unwrap().pop_front().unwrap_or(Ok(Cleaned::Complete))
    }
}

fn at_10_00_05() -> Timestamp {
    "2026-02-05T10:00:05Z".parse().unwrap()
}

fn at_11_00() -> Timestamp {
    "2026-02-05T11:00:00Z".parse().unwrap()
}

fn finalizer(events: &RecordedEvents) -> Finalizer<RecordedEvents> {
    Finalizer::new(OURS, events.clone()).clock(at_10_00_05)
}

async fn reconcile(
    finalizer: &Finalizer<RecordedEvents>,
    api: &FakeApi,
    object: &ConfigMap,
    script: &Script,
) -> Finalization<ConfigMap> {
    finalizer
        .reconcile(&maps(api), object, &(), None, script)
        .await
        .unwrap()
}

#[tokio::test]
async fn a_new_object_is_held_before_anything_is_made_for_it() {
    for present in [vec![], vec!["other.io/x"]] {
        let api = FakeApi::default();
        let events = RecordedEvents::default();
        let object = map(&api, false, &present);
        let Finalization::Held(held) = reconcile(&finalizer(&events), &api, &object, &Script::default()).await else {
            panic!("held")
        };
        assert!(held.metadata.finalizers.unwrap().contains(&OURS.to_owned()));
        assert_eq!(finalizers(&api).as_array().unwrap().len(), present.len() + 1);
        assert_eq!(api.requests()[0].content_type, "application/json-patch+json");
        assert!(events.reasons().is_empty());
    }
}

#[tokio::test]
async fn a_held_object_is_left_alone() {
    let api = FakeApi::default();
    let object = map(&api, false, &[OURS]);
    assert_eq!(
        reconcile(
            &finalizer(&RecordedEvents::default()),
            &api,
            &object,
            &Script::default()
        )
        .await,
        Finalization::Live
    );
    assert!(api.requests().is_empty());
}

#[tokio::test]
async fn holding_does_not_undo_what_others_did_meanwhile() {
    let api = FakeApi::default();
    let object = map(&api, false, &[]);
    api.fault(
        Method::PATCH,
        Fault::Before(Box::new(|objects: &mut Objects| {
            objects.get_mut(MAP).unwrap()["metadata"]["finalizers"] = json!(["other.io/x"]);
        })),
    );
    let Finalization::Held(_) = reconcile(
        &finalizer(&RecordedEvents::default()),
        &api,
        &object,
        &Script::default(),
    )
    .await
    else {
        panic!("held")
    };
    assert_eq!(finalizers(&api), json!(["other.io/x", OURS]));

    let api = FakeApi::default();
    let object = map(&api, false, &[]);
    api.fault(
        Method::PATCH,
        Fault::Before(Box::new(|objects: &mut Objects| {
            objects.get_mut(MAP).unwrap()["metadata"]["finalizers"] = json!([OURS]);
        })),
    );
    let Finalization::Held(_) = reconcile(
        &finalizer(&RecordedEvents::default()),
        &api,
        &object,
        &Script::default(),
    )
    .await
    else {
        panic!("held")
    };
    assert_eq!(finalizers(&api), json!([OURS]), "never twice");
}

#[tokio::test]
async fn an_object_deleted_before_it_was_held_is_let_go() {
    let api = FakeApi::default();
    let object = map(&api, false, &["other.io/x"]);
    api.fault(
        Method::PATCH,
        Fault::Before(Box::new(|objects: &mut Objects| {
            objects.get_mut(MAP).unwrap()["metadata"]["deletionTimestamp"] = json!("2026-02-05T10:00:00Z");
        })),
    );
    assert_eq!(
        reconcile(
            &finalizer(&RecordedEvents::default()),
            &api,
            &object,
            &Script::default()
        )
        .await,
        Finalization::NotHeld
    );
    assert_eq!(finalizers(&api), json!(["other.io/x"]));
}

#[tokio::test]
async fn a_clean_object_is_released_with_its_events() {
    let api = FakeApi::default();
    let events = RecordedEvents::default();
    let object = map(&api, true, &["other.io/x", OURS]);
    let script = Script::default();
    assert_eq!(
        reconcile(&finalizer(&events), &api, &object, &script).await,
        Finalization::Released
    );
    assert_eq!(finalizers(&api), json!(["other.io/x"]));
    assert_eq!(script.ran(), ["safe", "clean"]);
    assert_eq!(events.reasons(), ["Deleting", "CleanupComplete"]);
    let (about, notice) = &events.all()[0];
    assert_eq!(
        (about.kind.as_deref(), about.uid.as_deref()),
        (Some("ConfigMap"), Some("u-1"))
    );
    assert_eq!(notice.note, "ConfigMap is being deleted, cleaning up resources");
    assert_eq!(
        api.requests()[0].body,
        json!([
            {"op": "test", "path": "/metadata/uid", "value": "u-1"},
            {"op": "test", "path": "/metadata/finalizers/1", "value": OURS},
            {"op": "remove", "path": "/metadata/finalizers/1"},
        ])
    );
}

#[tokio::test]
async fn a_changed_list_of_finalizers_is_retried_and_no_other_finalizer_is_removed() {
    let api = FakeApi::default();
    let object = map(&api, true, &["other.io/x", OURS]);
    api.fault(
        Method::PATCH,
        Fault::Before(Box::new(|objects: &mut Objects| {
            objects.get_mut(MAP).unwrap()["metadata"]["finalizers"] = json!([OURS, "third.io/y"]);
        })),
    );
    assert_eq!(
        reconcile(
            &finalizer(&RecordedEvents::default()),
            &api,
            &object,
            &Script::default()
        )
        .await,
        Finalization::Released
    );
    assert_eq!(finalizers(&api), json!(["third.io/y"]));
    assert_eq!((api.count(&Method::PATCH), api.count(&Method::GET)), (2, 1));
}

#[tokio::test]
async fn another_object_of_the_same_name_keeps_its_finalizer() {
    let api = FakeApi::default();
    let object = map(&api, true, &[OURS]);
    api.fault(
        Method::PATCH,
        Fault::Before(Box::new(|objects: &mut Objects| {
            objects.get_mut(MAP).unwrap()["metadata"]["uid"] = json!("u-2");
        })),
    );
    assert_eq!(
        reconcile(
            &finalizer(&RecordedEvents::default()),
            &api,
            &object,
            &Script::default()
        )
        .await,
        Finalization::Released
    );
    assert_eq!(finalizers(&api), json!([OURS]));
}

#[tokio::test]
async fn an_object_that_is_already_deleted_is_released() {
    let api = FakeApi::default();
    let object = map(&api, true, &[OURS]);
    api.fault(Method::PATCH, Fault::Before(Box::new(Objects::clear)));
    assert_eq!(
        reconcile(
            &finalizer(&RecordedEvents::default()),
            &api,
            &object,
            &Script::default()
        )
        .await,
        Finalization::Released
    );
}

#[tokio::test]
async fn writers_that_always_conflict_end_in_an_error() {
    let api = FakeApi::default();
    let object = map(&api, true, &[OURS]);
    for _ in 0..5 {
        api.fault(Method::PATCH, Fault::Reject(409));
    }
    let events = RecordedEvents::default();
    let error = finalizer(&events)
        .reconcile(&maps(&api), &object, &(), None, &Script::default())
        .await
        .unwrap_err();
    assert!(matches!(error, FinalizerError::Contended { .. }), "{error}");
    assert!(events.reasons().is_empty(), "nothing is said that did not happen");
    api.fault(Method::PATCH, Fault::Reject(500));
    let error = finalizer(&events)
        .reconcile(&maps(&api), &object, &(), None, &Script::default())
        .await
        .unwrap_err();
    assert!(matches!(error, FinalizerError::Api { .. }), "{error}");
}

#[tokio::test]
async fn after_the_deadline_the_safe_part_still_runs_first_and_cleanup_gets_one_try() {
    let api = FakeApi::default();
    let events = RecordedEvents::default();
    let object = map(&api, true, &[OURS]);
    let script = Script::cleaning([Err("no route".to_owned())]);
    let late = Finalizer::new(OURS, events.clone()).clock(at_11_00);
    assert_eq!(reconcile(&late, &api, &object, &script).await, Finalization::Released);
    assert_eq!(script.ran(), ["safe", "clean"]);
    assert_eq!(events.reasons(), ["Deleting", "CleanupFailed", "CleanupTimeout"]);
    assert_eq!(events.all()[2].1.note, "Cleanup was given up after 3600 s: no route");
    assert_eq!(api.get(MAP), None);
}

#[tokio::test]
async fn the_safe_part_is_not_given_up_at_the_deadline() {
    let api = FakeApi::default();
    let events = RecordedEvents::default();
    let object = map(&api, true, &[OURS]);
    let script = Script::default().unsafe_for(1);
    let late = Finalizer::new(OURS, events.clone()).clock(at_11_00);
    let Finalization::Deleting { draft, retry_after } = reconcile(&late, &api, &object, &script).await else {
        panic!("kept")
    };
    assert_eq!(
        (draft.reason.as_ref(), retry_after),
        (Stage::SafePartFailed.as_str(), Duration::from_secs(10))
    );
    assert_eq!(script.ran(), ["safe"], "the cleanup proper waits for it");
    assert!(api.requests().is_empty());
    assert_eq!(reconcile(&late, &api, &object, &script).await, Finalization::Released);
}

#[tokio::test]
async fn a_cleanup_that_hangs_is_cut_off() {
    let api = FakeApi::default();
    let events = RecordedEvents::default();
    let object = map(&api, true, &[OURS]);
    let script = Script {
        hangs: true,
        ..Script::default()
    };
    let short = Deadline {
        release_after: SignedDuration::ZERO,
        last_try: SignedDuration::from_millis(50),
        ..Deadline::default()
    };
    assert_eq!(
        reconcile(&finalizer(&events).deadline(short), &api, &object, &script).await,
        Finalization::Released
    );
    assert_eq!(
        events.all().last().unwrap().1.note,
        "Cleanup was given up after 5 s: no answer within 0.05 s"
    );
}

static SECONDS: AtomicI64 = AtomicI64::new(0);

fn stepped() -> Timestamp {
    let start: Timestamp = "2026-02-05T10:00:00Z".parse().unwrap();
    start + SignedDuration::from_secs(SECONDS.load(Ordering::SeqCst))
}

/// A deletion with a cleanup that never ends, through a controller that restarts before every reconcile and
/// knows only what the status says.
#[tokio::test]
async fn a_stuck_cleanup_warns_at_30_seconds_and_ends_at_60() {
    let api = FakeApi::default();
    let object = map(&api, true, &[OURS]);
    let events = RecordedEvents::default();
    let mut condition: Option<Condition> = None;
    let mut reconciles = Vec::new();
    loop {
        let finalizer = Finalizer::new(OURS, events.clone()).clock(stepped);
        let script = Script::cleaning([Ok(Cleaned::Pending("Waiting for 2 pods".to_owned()))]);
        reconciles.push(SECONDS.load(Ordering::SeqCst));
        match finalizer
            .reconcile(&maps(&api), &object, &(), condition.as_ref(), &script)
            .await
            .unwrap()
        {
            Finalization::Deleting { draft, retry_after } => {
                let draft: Draft<'static> = draft;
                condition = Some(draft.into_condition(1, stepped()));
                SECONDS.fetch_add(i64::try_from(retry_after.as_secs()).unwrap(), Ordering::SeqCst);
            }
            Finalization::Released => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(reconciles, [0, 10, 20, 30, 40, 50, 60]);
    assert_eq!(events.reasons(), ["Deleting", "CleanupSlow", "CleanupTimeout"]);
    assert_eq!(api.get(MAP), None);
}

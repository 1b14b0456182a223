//! The status writer against an API server with other writers.
#![cfg(feature = "client")]

mod support;

use http::Method;
use jiff::Timestamp;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use kube_status::writer::{Shared, StatusWriter, WriteError, Written};
use kube_status::{Condition, Draft, Location, Ownership, Status};
use serde_json::{Value, json};
use support::{FakeApi, Fault, Objects};

const CARTS: &str = "/apis/shop.io/v1/namespaces/shop/carts";
const CART: &str = "/apis/shop.io/v1/namespaces/shop/carts/a";

fn now() -> Timestamp {
    "2026-02-05T10:00:00Z".parse().unwrap()
}

fn carts(api: &FakeApi) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("shop.io", "v1", "Cart"));
    Api::namespaced_with(api.client(), "shop", &resource)
}

/// Stores a cart with this status and returns it as a controller would have read it.
fn cart(api: &FakeApi, status: &Value) -> DynamicObject {
    let stored = api.put(
        CARTS,
        json!({"apiVersion": "shop.io/v1", "kind": "Cart",
        "metadata": {"name": "a", "namespace": "shop", "generation": 2, "uid": "u-1"}, "spec": {}, "status": status}),
    );
    serde_json::from_value(stored).unwrap()
}

fn writer() -> StatusWriter {
    StatusWriter::new("shop-controller")
}

fn condition(type_: &'static str, status: Status, message: &str) -> Condition {
    Draft::new(type_, status, "R").message(message).into_condition(2, now())
}

fn stored(type_: &str, status: &str, message: &str) -> Value {
    json!({"type": type_, "status": status, "reason": "R", "message": message, "observedGeneration": 2,
           "lastTransitionTime": "2026-02-05T10:00:00Z"})
}

fn conditions(api: &FakeApi) -> Value {
    api.get(CART).unwrap()["status"]["conditions"].clone()
}

mod own_resource {
    use super::*;

    #[tokio::test]
    async fn one_apply_of_the_whole_status_with_the_version_it_was_computed_from() {
        let api = FakeApi::default();
        let observed = cart(&api, &json!({"phase": "Pending", "gone": 1}));
        let written = writer()
            .apply(&carts(&api), &observed, &json!({"phase": "Running", "empty": null}))
            .await
            .unwrap();
        let Written::Changed(after) = written else {
            panic!("something changed")
        };
        assert_eq!(after.data["status"], json!({"phase": "Running"}));
        let requests = api.requests();
        assert_eq!(requests.len(), 1);
        assert_eq!(requests[0].path, format!("{CART}/status"));
        assert_eq!(requests[0].content_type, "application/apply-patch+yaml");
        assert!(requests[0].query.contains("fieldManager=shop-controller") && requests[0].query.contains("force=true"));
        assert_eq!(
            requests[0].body,
            json!({"apiVersion": "shop.io/v1", "kind": "Cart",
            "metadata": {"name": "a", "resourceVersion": "1"}, "status": {"phase": "Running"}})
        );
    }

    #[tokio::test]
    async fn nothing_is_sent_when_nothing_changed() {
        let api = FakeApi::default();
        let observed = cart(
            &api,
            &json!({"phase": "Running", "conditions": [stored("Ready", "True", ""), stored("Paused", "False", "")]}),
        );
        let reordered = json!({"phase": "Running", "note": null, "conditions": [stored("Paused", "False", ""), stored("Ready", "True", "")]});
        assert_eq!(
            writer().apply(&carts(&api), &observed, &reordered).await.unwrap(),
            Written::Unchanged
        );
        assert!(api.requests().is_empty());
    }

    #[tokio::test]
    async fn a_status_computed_from_an_old_version_is_not_written() {
        let api = FakeApi::default();
        let observed = cart(&api, &json!({"phase": "Pending"}));
        cart(&api, &json!({"phase": "ChangedByAnother"}));
        let error = writer()
            .apply(&carts(&api), &observed, &json!({"phase": "Running"}))
            .await
            .unwrap_err();
        assert!(matches!(error, WriteError::Stale { .. }) && error.is_race());
        assert_eq!(
            error.to_string(),
            "status of Cart shop/a not written: it was changed since it was read; reconcile again from the new version"
        );
        assert_eq!(api.get(CART).unwrap()["status"]["phase"], json!("ChangedByAnother"));
        assert_eq!(api.requests().len(), 1, "no retry with the same status");
    }

    #[tokio::test]
    async fn long_messages_are_cut_once_and_then_rest() {
        let api = FakeApi::default();
        let observed = cart(&api, &json!({}));
        let status = json!({"conditions": [stored("Ready", "False", &"ä".repeat(30_000))]});
        let Written::Changed(after) = writer().apply(&carts(&api), &observed, &status).await.unwrap() else {
            panic!("written")
        };
        assert!(conditions(&api)[0]["message"].as_str().unwrap().len() <= 32_768);
        assert_eq!(
            writer().apply(&carts(&api), &after, &status).await.unwrap(),
            Written::Unchanged
        );
    }

    #[tokio::test]
    async fn a_deleted_or_never_read_object_is_an_error_of_its_own() {
        let api = FakeApi::default();
        let observed = cart(&api, &json!({}));
        api.fault(Method::PATCH, Fault::Before(Box::new(Objects::clear)));
        assert!(
            writer()
                .apply(&carts(&api), &observed, &json!({"a": 1}))
                .await
                .unwrap_err()
                .is_not_found()
        );
        let mut unread = observed;
        unread.metadata.resource_version = None;
        let error = writer()
            .apply(&carts(&api), &unread, &json!({"a": 1}))
            .await
            .unwrap_err();
        assert!(
            matches!(
                error,
                WriteError::Unidentified {
                    field: "metadata.resourceVersion"
                }
            ),
            "{error}"
        );
    }
}

mod shared_object {
    use super::*;

    #[tokio::test]
    async fn other_writers_conditions_are_sent_back_as_they_were() {
        let api = FakeApi::default();
        let foreign =
            json!({"type": "Painted", "status": "True", "lastHeartbeatTime": "2026-02-05T09:00:00Z", "colour": "red"});
        let observed = cart(&api, &json!({"conditions": [foreign]}));
        let mut after = vec![condition("Ready", Status::True, "ok")];
        let painted: Condition = serde_json::from_value(
            json!({"type": "Painted", "status": "True", "reason": "NoReasonReported",
            "message": "", "lastTransitionTime": "1970-01-01T00:00:00Z"}),
        )
        .unwrap();
        after.push(painted);
        let written = writer()
            .patch(&carts(&api), &observed, &Shared::new(&after, now()))
            .await
            .unwrap();
        assert!(written.is_changed());
        assert_eq!(conditions(&api), json!([stored("Ready", "True", "ok"), foreign]));
        let request = &api.requests()[0];
        assert_eq!(
            (request.path.as_str(), request.content_type.as_str()),
            (format!("{CART}/status").as_str(), "application/merge-patch+json")
        );
        assert_eq!(request.body["metadata"], json!({"resourceVersion": "1"}));
        assert_eq!(
            request.body["status"].as_object().unwrap().len(),
            1,
            "nothing but the conditions"
        );
    }

    #[tokio::test]
    async fn our_own_changed_condition_keeps_the_foreign_fields_of_its_entry() {
        let api = FakeApi::default();
        let mut mine = stored("Ready", "True", "ok");
        mine["lastHeartbeatTime"] = json!("2026-02-05T09:00:00Z");
        let observed = cart(&api, &json!({"conditions": [mine]}));
        let after = [condition("Ready", Status::False, "broken")];
        let _ = writer()
            .patch(&carts(&api), &observed, &Shared::new(&after, now()))
            .await
            .unwrap();
        let mut expected = stored("Ready", "False", "broken");
        expected["lastHeartbeatTime"] = json!("2026-02-05T09:00:00Z");
        assert_eq!(conditions(&api), json!([expected]));
    }

    #[tokio::test]
    async fn a_faster_writer_of_another_type_costs_a_retry_and_loses_nothing() {
        let api = FakeApi::default();
        let observed = cart(&api, &json!({"conditions": []}));
        for round in 0..3 {
            api.fault(
                Method::PATCH,
                Fault::Before(Box::new(move |objects| {
                    objects.get_mut(CART).unwrap()["status"]["conditions"] =
                        json!([stored("Painted", "True", &format!("coat {round}"))]);
                })),
            );
        }
        let after = [condition("Ready", Status::True, "ok")];
        let written = writer()
            .patch(&carts(&api), &observed, &Shared::new(&after, now()))
            .await
            .unwrap();
        assert!(written.is_changed());
        assert_eq!(
            conditions(&api),
            json!([stored("Ready", "True", "ok"), stored("Painted", "True", "coat 2")])
        );
        assert_eq!((api.count(&Method::PATCH), api.count(&Method::GET)), (4, 3));
    }

    #[tokio::test]
    async fn retries_are_bounded() {
        let api = FakeApi::default();
        let observed = cart(&api, &json!({}));
        for _ in 0..3 {
            api.fault(Method::PATCH, Fault::Reject(409));
        }
        let after = [condition("Ready", Status::True, "ok")];
        let error = writer()
            .attempts(3)
            .patch(&carts(&api), &observed, &Shared::new(&after, now()))
            .await
            .unwrap_err();
        assert!(matches!(error, WriteError::Contended { attempts: 3, .. }) && error.is_race());
        assert_eq!(api.count(&Method::PATCH), 3);
    }

    #[tokio::test]
    async fn a_conflict_on_an_unowned_type_is_an_error_and_on_an_owned_one_is_not() {
        let after = [condition("Ready", Status::True, "ours")];
        let clash = || {
            let api = FakeApi::default();
            let observed = cart(&api, &json!({}));
            api.fault(
                Method::PATCH,
                Fault::Before(Box::new(|objects| {
                    objects.get_mut(CART).unwrap()["status"] =
                        json!({"conditions": [stored("Ready", "False", "theirs")]});
                })),
            );
            (api, observed)
        };
        let (api, observed) = clash();
        let error = writer()
            .patch(&carts(&api), &observed, &Shared::new(&after, now()))
            .await
            .unwrap_err();
        let WriteError::Conflict { source, .. } = error else {
            panic!("{error}")
        };
        assert_eq!(source.type_name(), "Ready");
        assert_eq!(conditions(&api)[0]["message"], json!("theirs"), "never overwritten");

        let (api, observed) = clash();
        let owned = Shared::new(&after, now()).ownership(Ownership::of(["Ready"]));
        assert!(
            writer()
                .patch(&carts(&api), &observed, &owned)
                .await
                .unwrap()
                .is_changed()
        );
        assert_eq!(conditions(&api)[0]["message"], json!("ours"));
    }

    #[tokio::test]
    async fn nothing_is_sent_when_nothing_changed_or_the_latest_has_it_already() {
        let api = FakeApi::default();
        let observed = cart(&api, &json!({"conditions": [stored("Ready", "True", "ok")]}));
        let after = [condition("Ready", Status::True, "ok")];
        assert_eq!(
            writer()
                .patch(&carts(&api), &observed, &Shared::new(&after, now()))
                .await
                .unwrap(),
            Written::Unchanged
        );
        assert!(api.requests().is_empty());

        let transitioned = [condition("Ready", Status::False, "down")];
        api.fault(
            Method::PATCH,
            Fault::Before(Box::new(|objects| {
                objects.get_mut(CART).unwrap()["status"]["conditions"][0] = stored("Ready", "False", "down");
            })),
        );
        assert_eq!(
            writer()
                .patch(&carts(&api), &observed, &Shared::new(&transitioned, now()))
                .await
                .unwrap(),
            Written::Unchanged
        );
        assert_eq!((api.count(&Method::PATCH), api.count(&Method::GET)), (1, 1));
    }

    #[tokio::test]
    async fn long_messages_are_cut_once_and_then_rest() {
        let api = FakeApi::default();
        let observed = cart(&api, &json!({}));
        let after = [condition("Ready", Status::False, &"ä".repeat(30_000))];
        let Written::Changed(later) = writer()
            .patch(&carts(&api), &observed, &Shared::new(&after, now()))
            .await
            .unwrap()
        else {
            panic!("written")
        };
        assert!(conditions(&api)[0]["message"].as_str().unwrap().len() <= 32_768);
        assert_eq!(
            writer()
                .patch(&carts(&api), &later, &Shared::new(&after, now()))
                .await
                .unwrap(),
            Written::Unchanged
        );
    }

    #[tokio::test]
    async fn both_generations_live_side_by_side_in_their_places() {
        use kube_status::severity;
        let api = FakeApi::default();
        let observed = cart(&api, &json!({"conditions": [stored("Ready", "True", "")]}));
        let first = [severity::Draft::bad("Ready", severity::Severity::Warning, "Slow", "disk").into_condition(now())];
        let shared = Shared::new(&first, now()).at(Location::DEPRECATED_V1BETA1);
        let _ = writer().patch(&carts(&api), &observed, &shared).await.unwrap();
        let status = api.get(CART).unwrap()["status"].clone();
        assert_eq!(
            status["deprecated"]["v1beta1"]["conditions"][0]["severity"],
            json!("Warning")
        );
        assert_eq!(status["conditions"], json!([stored("Ready", "True", "")]));
    }

    #[tokio::test]
    async fn a_removed_severity_is_removed_from_status() {
        use kube_status::severity;
        let api = FakeApi::default();
        let observed = cart(
            &api,
            &json!({"conditions": [{"type": "Ready", "status": "False", "severity": "Error", "reason": "R",
            "lastTransitionTime": "2026-02-05T09:00:00Z"}]}),
        );
        let good = [severity::Draft::good("Ready").into_condition(now())];
        let _ = writer()
            .patch(&carts(&api), &observed, &Shared::new(&good, now()))
            .await
            .unwrap();
        assert_eq!(
            conditions(&api),
            json!([{"type": "Ready", "status": "True", "lastTransitionTime": "2026-02-05T10:00:00Z"}])
        );
    }

    #[tokio::test]
    async fn other_fields_follow_the_conditions_and_only_when_they_differ() {
        let api = FakeApi::default();
        let observed = cart(&api, &json!({"weight": 1}));
        let after = [condition("Ready", Status::True, "ok")];
        let fields = json!({"weight": 2});
        let Written::Changed(later) = writer()
            .patch(&carts(&api), &observed, &Shared::new(&after, now()).fields(&fields))
            .await
            .unwrap()
        else {
            panic!("written")
        };
        assert_eq!(api.get(CART).unwrap()["status"]["weight"], json!(2));
        let bodies: Vec<_> = api
            .requests()
            .iter()
            .map(|request| request.body["status"].clone())
            .collect();
        assert!(
            bodies[0]["conditions"].is_array() && bodies[1] == json!({"weight": 2}),
            "{bodies:?}"
        );
        let again = Shared::new(&after, now()).fields(&fields);
        assert_eq!(
            writer().patch(&carts(&api), &later, &again).await.unwrap(),
            Written::Unchanged
        );
        assert_eq!(api.requests().len(), 2);
    }

    #[tokio::test]
    async fn conditions_that_cannot_be_read_are_not_written_over() {
        let api = FakeApi::default();
        let observed = cart(&api, &json!({"conditions": [{"type": "Ready", "status": "Maybe"}]}));
        let after = [condition("Ready", Status::True, "ok")];
        let error = writer()
            .patch(&carts(&api), &observed, &Shared::new(&after, now()))
            .await
            .unwrap_err();
        let WriteError::Malformed { source, .. } = error else {
            panic!("{error}")
        };
        assert_eq!(source.field, "status.conditions[0].status");
        assert!(api.requests().is_empty());
    }
}

//! The layer in front of a small test server, and in front of the sandbox.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use http::{Request, Response};
use http_body_util::{BodyExt, StreamBody};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::client::Body;
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tokio::time::Instant;
use tower::{Layer, Service, service_fn};

use super::*;
use crate::Sandbox;

/// A server with one config map: every write adds one to its version, every read returns it.
fn counter() -> (Arc<AtomicUsize>, Faults, impl Fn(&Faults) -> FaultService) {
    let version = Arc::new(AtomicUsize::new(1));
    let server = version.clone();
    let make = move |faults: &Faults| {
        let server = server.clone();
        faults.layer().layer(service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move {
                if RequestInfo::of(&request).writes() {
                    server.fetch_add(1, Ordering::SeqCst);
                }
                let now = server.load(Ordering::SeqCst).to_string();
                let object =
                    json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a", "resourceVersion": now}});
                Ok::<_, std::io::Error>(Response::new(layer::whole(object.to_string().into())))
            }
        }))
    };
    (version, Faults::seeded(1), make)
}

async fn ask(service: &mut FaultService, method: &str, path: &str) -> Result<(u16, Value), Lost> {
    let request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
    match service.call(request).await {
        Ok(answer) => {
            let code = answer.status().as_u16();
            let bytes = answer.into_body().collect().await.unwrap().to_bytes();
            Ok((code, serde_json::from_slice(&bytes).unwrap()))
        }
        Err(error) => Err(*error.downcast_ref::<Lost>().expect("only the faults fail here")),
    }
}

const PATH: &str = "/api/v1/namespaces/a/configmaps/a";

#[tokio::test]
async fn a_rejected_request_never_reaches_the_server_and_is_in_the_log() {
    let table = [
        (Fault::conflict(), 409, "Conflict"),
        (Fault::gone(), 410, "Expired"),
        (Fault::too_many_requests(3), 429, "TooManyRequests"),
        (Fault::internal_error(), 500, "InternalError"),
        (Fault::unavailable(), 503, "ServiceUnavailable"),
    ];
    for (fault, code, reason) in table {
        let (version, faults, make) = counter();
        faults.add(Rule::new("second write").writes().nth(2).then(fault));
        let mut client = make(&faults);
        assert_eq!(ask(&mut client, "PUT", PATH).await.unwrap().0, 200);
        let (got, status) = ask(&mut client, "PUT", PATH).await.unwrap();
        assert_eq!((got, status["reason"].as_str()), (code, Some(reason)));
        if code == 429 {
            assert_eq!(status["details"]["retryAfterSeconds"], 3);
        }
        assert_eq!(version.load(Ordering::SeqCst), 2, "one write passed");
        let log = faults.log();
        assert_eq!(log.len(), 1);
        assert_eq!((log[0].request, log[0].rule.as_str()), (2, "second write"));
        assert_eq!(log[0].what, "update configmaps a/a");
    }
}

#[tokio::test]
async fn a_lost_response_took_effect_and_a_dropped_request_did_not() {
    let (version, faults, make) = counter();
    faults.add(Rule::new("drop").writes().nth(1).then(Fault::Drop));
    faults.add(Rule::new("lose").writes().nth(2).then(Fault::LoseResponse));
    let mut client = make(&faults);
    assert_eq!(ask(&mut client, "PATCH", PATH).await, Err(Lost::Request));
    assert_eq!(version.load(Ordering::SeqCst), 1);
    assert_eq!(ask(&mut client, "PATCH", PATH).await, Err(Lost::Answer));
    assert_eq!(version.load(Ordering::SeqCst), 2);
    assert_eq!(faults.writes().len(), 1, "only what reached the server counts");
}

#[tokio::test]
async fn a_delay_forwards_the_request_later_and_a_time_out_answers_504() {
    let (version, faults, make) = counter();
    faults.add(Rule::new("slow").writes().nth(1).then(Fault::delay_ms(70)));
    faults.add(
        Rule::new("time-out")
            .writes()
            .nth(2)
            .then(Fault::TimeOut(Duration::from_millis(50))),
    );
    let mut client = make(&faults);
    let start = Instant::now();
    assert_eq!(ask(&mut client, "PUT", PATH).await.unwrap().0, 200);
    assert!(start.elapsed() >= Duration::from_millis(70));
    let (code, status) = ask(&mut client, "PUT", PATH).await.unwrap();
    assert_eq!((code, status["reason"].as_str()), (504, Some("Timeout")));
    assert!(start.elapsed() >= Duration::from_millis(120));
    assert_eq!(version.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_crash_comes_after_the_write_and_lasts_until_the_client_is_revived() {
    let (version, faults, make) = counter();
    faults.add(Rule::new("after the second write").writes().nth(2).then(Fault::Crash));
    let killed = Arc::new(Mutex::new(Vec::new()));
    let (seen, at) = (killed.clone(), version.clone());
    faults.on_crash(move || seen.lock().unwrap().push(at.load(Ordering::SeqCst)));
    let mut client = make(&faults);
    ask(&mut client, "PUT", PATH).await.unwrap();
    assert_eq!(ask(&mut client, "PUT", PATH).await, Err(Lost::Crashed));
    assert_eq!(
        *killed.lock().unwrap(),
        [3],
        "the write had taken effect when the client was killed"
    );
    tokio::time::timeout(Duration::from_secs(5), faults.crashed())
        .await
        .expect("crashed() resolves");
    assert_eq!(ask(&mut client, "GET", PATH).await, Err(Lost::Crashed));
    faults.revive();
    assert!(!faults.is_crashed());
    assert_eq!(ask(&mut client, "GET", PATH).await.unwrap().0, 200);
}

#[tokio::test]
async fn a_crash_ends_requests_that_are_still_waiting() {
    let (_, faults, make) = counter();
    faults.add(
        Rule::new("slow")
            .verb(Verb::Get)
            .then(Fault::Delay(Duration::from_secs(3600))),
    );
    faults.add(Rule::new("crash").writes().then(Fault::Crash));
    let mut client = make(&faults);
    let mut other = client.clone();
    let (slow, write) = tokio::join!(ask(&mut client, "GET", PATH), ask(&mut other, "PUT", PATH));
    assert_eq!((slow, write), (Err(Lost::Crashed), Err(Lost::Crashed)));
}

#[tokio::test]
async fn a_stale_read_returns_an_older_version() {
    let (_, faults, make) = counter();
    let faults = faults.remembering();
    let mut client = make(&faults);
    let version = |answer: (u16, Value)| answer.1["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    assert_eq!(version(ask(&mut client, "GET", PATH).await.unwrap()), "1");
    ask(&mut client, "PUT", PATH).await.unwrap();
    faults.add(Rule::new("stale").verb(Verb::Get).then(Fault::StaleRead { back: 1 }));
    assert_eq!(version(ask(&mut client, "GET", PATH).await.unwrap()), "1");
    assert_eq!(
        version(ask(&mut client, "GET", PATH).await.unwrap()),
        "1",
        "it stays stale"
    );
    faults.calm();
    assert_eq!(version(ask(&mut client, "GET", PATH).await.unwrap()), "2");
    faults.add(Rule::new("too far").verb(Verb::Get).then(Fault::StaleRead { back: 9 }));
    assert_eq!(version(ask(&mut client, "GET", PATH).await.unwrap()), "2");
    assert_eq!(faults.log().last().unwrap().done, Done::NothingOlder);
}

#[tokio::test]
async fn the_same_seed_strikes_the_same_requests() {
    let run = |seed: u64| async move {
        let (_, _, make) = counter();
        let faults = Faults::seeded(seed).with(Rule::new("some").chance(0.3).then(Fault::unavailable()));
        let mut client = make(&faults);
        for _ in 0..50 {
            ask(&mut client, "GET", PATH).await.unwrap();
        }
        faults.log().iter().map(|record| record.request).collect::<Vec<u64>>()
    };
    let first = run(11).await;
    assert_eq!(first, run(11).await);
    assert_ne!(first, run(12).await);
    assert!((5..30).contains(&first.len()), "{first:?}");
}

/// The changes that a client receives when the server of the watch sends these events at these milliseconds.
async fn watched(events: &[(u64, &str, &str, u32)], fault: WatchFault) -> (Vec<String>, Faults) {
    let faults = Faults::seeded(1).with(Rule::new("w").verb(Verb::Watch).then(Fault::Watch(fault)));
    let events: Vec<(u64, String)> = events
        .iter()
        .map(|(at, change, name, version)| {
            let object = json!({"metadata": {"name": name, "resourceVersion": version.to_string()}});
            (*at, format!("{}\n", json!({"type": change, "object": object})))
        })
        .collect();
    let mut service = faults.layer().layer(service_fn(move |_: Request<Body>| {
        let events = events.clone();
        async move {
            let start = Instant::now();
            let lines = futures::stream::iter(events).then(move |(at, line)| async move {
                tokio::time::sleep_until(start + Duration::from_millis(at)).await;
                // Lines come in pieces, as they do on a real connection.
                let (a, b) = line.split_at(line.len() / 2);
                [a.to_owned(), b.to_owned()].map(|piece| Ok::<_, std::io::Error>(http_body::Frame::data(piece.into())))
            });
            Ok::<_, std::io::Error>(Response::new(
                StreamBody::new(lines.flat_map(futures::stream::iter)).boxed_unsync(),
            ))
        }
    }));
    let request = Request::builder()
        .uri("/api/v1/pods?watch=true")
        .body(Body::empty())
        .unwrap();
    let body = service.call(request).await.unwrap().into_body();
    let mut text = String::new();
    let mut came = Vec::new();
    let mut frames = body.into_data_stream();
    while let Some(bytes) = frames.try_next().await.unwrap() {
        text.push_str(std::str::from_utf8(&bytes).unwrap());
        while let Some(end) = text.find('\n') {
            let event: Value = serde_json::from_str(&text[..end]).unwrap();
            text.drain(..=end);
            let (change, object) = (event["type"].as_str().unwrap(), &event["object"]);
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let version = object["metadata"]["resourceVersion"].as_str().unwrap_or_default();
            came.push(format!("{change} {name}{version}"));
        }
    }
    (came, faults)
}

#[tokio::test]
async fn late_events_keep_their_order() {
    let events = [(0, "ADDED", "a", 1), (10, "MODIFIED", "a", 2), (20, "BOOKMARK", "", 3)];
    let start = Instant::now();
    let (came, _) = watched(&events, WatchFault::Lag(Duration::from_millis(200))).await;
    assert!(start.elapsed() >= Duration::from_millis(210));
    assert_eq!(came, ["ADDED a1", "MODIFIED a2", "BOOKMARK 3"]);
}

#[tokio::test]
async fn events_of_one_object_within_the_window_become_one() {
    let events = [
        (0, "ADDED", "a", 1),
        (5, "MODIFIED", "b", 2),
        (10, "MODIFIED", "a", 3),
        (20, "MODIFIED", "b", 4),
        (30, "ADDED", "c", 5),
        (40, "DELETED", "c", 6),
        (1500, "MODIFIED", "a", 7),
    ];
    let (came, faults) = watched(&events, WatchFault::Coalesce(Duration::from_millis(500))).await;
    assert_eq!(came, ["ADDED a3", "MODIFIED b4", "MODIFIED a7"]);
    assert_eq!(
        faults
            .log()
            .iter()
            .filter(|r| matches!(r.done, Done::EventMerged(_)))
            .count(),
        3
    );
}

#[tokio::test]
async fn lost_events_never_come_and_are_named_in_the_log() {
    let events = [
        (0, "ADDED", "a", 1),
        (1, "ADDED", "b", 2),
        (2, "DELETED", "a", 3),
        (3, "ADDED", "c", 4),
    ];
    let (came, faults) = watched(&events, WatchFault::Lose { from: 2, count: 2 }).await;
    assert_eq!(came, ["ADDED a1", "ADDED c4"]);
    let lost: Vec<Done> = faults.log().into_iter().skip(1).map(|record| record.done).collect();
    assert_eq!(
        lost,
        [Done::EventLost("ADDED b".into()), Done::EventLost("DELETED a".into())]
    );
}

#[tokio::test]
async fn a_watch_is_cut_or_expires_after_so_many_events() {
    let events = [(0, "ADDED", "a", 1), (1, "ADDED", "b", 2), (2, "ADDED", "c", 3)];
    let (came, _) = watched(&events, WatchFault::Cut { after: 2 }).await;
    assert_eq!(came, ["ADDED a1", "ADDED b2"]);
    let (came, _) = watched(&events, WatchFault::Expire { after: 1 }).await;
    assert_eq!(came, ["ADDED a1", "ERROR "]);
}

async fn sandbox() -> (Sandbox, kube::Config) {
    let sandbox = Sandbox::bare().await.unwrap();
    let config = config(sandbox.kubeconfig()).await;
    (sandbox, config)
}

async fn config(kubeconfig: &str) -> kube::Config {
    let parsed = kube::config::Kubeconfig::from_yaml(kubeconfig).unwrap();
    kube::Config::from_custom_kubeconfig(parsed, &kube::config::KubeConfigOptions::default())
        .await
        .unwrap()
}

fn map(name: &str, value: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}, "data": {"v": value}})).unwrap()
}

#[tokio::test]
async fn a_client_of_the_sandbox_dies_after_each_of_its_writes_in_turn() {
    let (_sandbox, config) = sandbox().await;
    for point in 1..=3 {
        let faults = Faults::seeded(0).with(Rule::new("crash").writes().nth(point).then(Fault::Crash));
        let client = kube::client::ClientBuilder::try_from(config.clone())
            .unwrap()
            .with_layer(&faults.layer())
            .build();
        let api: Api<ConfigMap> = Api::namespaced(client, "default");
        let mut done = 0;
        for step in 1..=3 {
            let name = format!("p{point}-{step}");
            if api.create(&PostParams::default(), &map(&name, "x")).await.is_err() {
                break;
            }
            done = step;
        }
        assert_eq!(done, point - 1, "the crash takes the answer of write {point}");
        faults.revive();
        let names: Vec<String> = api
            .list(&ListParams::default())
            .await
            .unwrap()
            .iter()
            .map(ResourceExt::name_any)
            .collect();
        let mine = names
            .iter()
            .filter(|name| name.starts_with(&format!("p{point}-")))
            .count();
        assert_eq!(mine as u64, point, "and leaves its effect: {names:?}");
    }
}

#[tokio::test]
async fn a_lost_lease_has_another_holder_and_the_client_gets_a_conflict() {
    let (sandbox, config) = sandbox().await;
    let faults = Faults::seeded(0).with(
        Rule::new("rival")
            .resource("leases")
            .verb(Verb::Patch)
            .nth(1)
            .then(Fault::LoseLease { to: "rival".into() }),
    );
    let client = kube::client::ClientBuilder::try_from(config)
        .unwrap()
        .with_layer(&faults.layer())
        .build();
    let api: Api<Lease> = Api::namespaced(client, "default");
    let lease = serde_json::from_value(
        json!({"metadata": {"name": "l"}, "spec": {"holderIdentity": "me", "leaseDurationSeconds": 10}}),
    );
    api.create(&PostParams::default(), &lease.unwrap()).await.unwrap();
    let renew = Patch::Merge(json!({"spec": {"holderIdentity": "me"}}));
    let error = api.patch("l", &PatchParams::default(), &renew).await.unwrap_err();
    assert!(
        matches!(&error, kube::Error::Api(status) if status.code == 409),
        "{error}"
    );
    let spec = Api::<Lease>::namespaced(sandbox.client(), "default")
        .get("l")
        .await
        .unwrap()
        .spec
        .unwrap();
    assert_eq!(
        (spec.holder_identity.as_deref(), spec.lease_transitions),
        (Some("rival"), Some(1))
    );
}

#[tokio::test]
async fn the_proxy_passes_requests_and_watches_over_both_protocols() {
    let (_sandbox, upstream) = sandbox().await;
    for tls in [true, false] {
        let faults = Faults::seeded(0).with(
            Rule::new("no")
                .verb(Verb::Delete)
                .nth(1)
                .then(Fault::too_many_requests(0)),
        );
        let proxy = if tls {
            FaultProxy::https(upstream.clone(), &faults).await.unwrap()
        } else {
            FaultProxy::http(upstream.clone(), &faults).await.unwrap()
        };
        let client = Client::try_from(config(proxy.kubeconfig()).await).unwrap();
        let api: Api<ConfigMap> = Api::namespaced(client, "default");
        let name = format!("proxied-{tls}");
        let made = api.create(&PostParams::default(), &map(&name, "1")).await.unwrap();
        let from = made.resource_version().unwrap();
        let fields = WatchParams::default().fields(&format!("metadata.name={name}"));
        let mut events = api.watch(&fields, &from).await.unwrap().boxed();
        let change = Patch::Merge(json!({"data": {"v": "2"}}));
        api.patch(&name, &PatchParams::default(), &change).await.unwrap();
        let event = tokio::time::timeout(Duration::from_secs(10), events.try_next())
            .await
            .expect("an event")
            .unwrap();
        assert!(matches!(event, Some(WatchEvent::Modified(map)) if map.data.as_ref().unwrap()["v"] == "2"));
        // The client tries again after 429 by itself, so the fault shows in the log and not in the answer.
        let _ = api.delete(&name, &DeleteParams::default()).await;
        assert_eq!(faults.log()[0].rule, "no");
    }
}

//! The watch of nodes when it fails.

use std::time::Duration;

use kube::Client;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::*;

#[tokio::test]
async fn nodes_are_unknown_while_their_watch_fails() {
    let server = tower::service_fn(async |request: axum::http::Request<kube::client::Body>| {
        let watch = request.uri().query().is_some_and(|query| query.contains("watch="));
        let node = serde_json::json!({"metadata": {"name": "near", "resourceVersion": "1"}});
        let list = serde_json::json!({"apiVersion": "v1", "kind": "NodeList", "metadata": {"resourceVersion": "1"},
            "items": [node]});
        let failed = serde_json::json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 500,
            "reason": "InternalError", "message": "no watch today"});
        let (code, body) = if watch { (500, failed) } else { (200, list) };
        let body = kube::client::Body::from(body.to_string().into_bytes());
        let response = axum::http::Response::builder().status(code).body(body);
        Ok::<_, std::convert::Infallible>(response.unwrap())
    });
    let (changed, _changes) = tokio::sync::mpsc::unbounded_channel();
    let mut watching = Watching {
        client: Client::new(server, "default"),
        namespaces: Vec::new(),
        relist: Duration::from_secs(600),
        changed,
        metrics: Arc::default(),
        tasks: JoinSet::new(),
        kind: ClusterKind::Valkey,
        gate: tokio::sync::watch::channel(true).1,
    };
    let caches = Caches::default();
    watching.nodes(&caches);
    let begun = Instant::now();
    while caches.nodes.trouble(ClusterKind::Valkey).is_none() {
        assert!(
            begun.elapsed() < Duration::from_secs(10),
            "the failed watch is not noticed"
        );
        sleep(Duration::from_millis(5)).await;
    }
    assert!(caches.nodes.get_in("", "near").is_some(), "it was listed before");
}

//! Users' Secrets that are rotated, deleted and emptied while servers run.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::http::Request;
use candor_api::ValkeyCluster;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::client::Body;
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use valkey_admin::client::{Deadlines, Endpoint, Node};

use crate::support::{Operator, Stage, is_ready};

const PATIENCE: Duration = Duration::from_secs(60);

fn secrets(stage: &Stage) -> Api<Secret> {
    Api::default_namespaced(stage.client())
}

async fn make(stage: &Stage, password: &str) {
    let secret = json!({"metadata": {"name": "cart-users"}, "stringData": {"app": password}});
    let secret = serde_json::from_value(secret).unwrap();
    secrets(stage).create(&PostParams::default(), &secret).await.unwrap();
}

async fn rotate(stage: &Stage, password: &str) {
    let patch = Patch::Merge(json!({"stringData": {"app": password}}));
    secrets(stage)
        .patch("cart-users", &PatchParams::default(), &patch)
        .await
        .unwrap();
}

/// Whether every server accepts the user with this password.
fn everywhere(stage: &Stage, password: &str) -> bool {
    let admits = |ip| stage.world.inspect(ip, |node| node.users.admits("app", password));
    stage.world.members().into_iter().all(|ip| admits(ip) == Some(true))
}

/// Whether any server accepts the user with this password.
fn anywhere(stage: &Stage, password: &str) -> bool {
    let admits = |ip| stage.world.inspect(ip, |node| node.users.admits("app", password));
    stage.world.members().into_iter().any(|ip| admits(ip) == Some(true))
}

/// Waits until only this password works and the cluster is Ready.
async fn works(stage: &Stage, password: &str, former: &[&str]) {
    let begun = Instant::now();
    while !everywhere(stage, password) || former.iter().any(|old| anywhere(stage, old)) {
        assert!(begun.elapsed() < PATIENCE, "{password} never worked");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    stage.until("cart", "Ready", PATIENCE, is_ready).await;
    println!("{password} works after {:?}", begun.elapsed());
}

/// Waits until no pod and no cluster has changed for two seconds: then only a change can cause a reconcile.
async fn at_rest(stage: &Stage) {
    let pods: Api<Pod> = Api::default_namespaced(stage.client());
    let begun = Instant::now();
    let (mut before, mut since) = (Vec::new(), Instant::now());
    while since.elapsed() < Duration::from_secs(2) {
        let mut now = vec![stage.clusters("default").get("cart").await.unwrap().resource_version()];
        now.extend(
            pods.list(&ListParams::default())
                .await
                .unwrap()
                .iter()
                .map(ResourceExt::resource_version),
        );
        if now != before {
            (before, since) = (now, Instant::now());
        }
        assert!(begun.elapsed() < PATIENCE, "it never rests");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn reports(cluster: &ValkeyCluster, expected: &str) -> bool {
    let conditions = cluster.status.iter().flat_map(|status| &status.conditions);
    let mut users = conditions.filter(|one| one.type_ == "UsersApplied" && one.status == "False");
    !is_ready(cluster) && users.any(|one| one.message.contains(expected))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn passwords_follow_their_secret_and_users_keep_working_while_it_is_missing_or_empty() {
    let stage = Stage::set().await;
    let operator = Operator::start(stage.client());
    make(&stage, "one").await;
    let users = json!([{"name": "app", "commands": {"allow": ["@read"]}}]);
    stage
        .create("cart", json!({"shards": 2, "replicas": 1, "users": users}))
        .await;
    stage.ready("cart").await;
    works(&stage, "one", &[]).await;
    rotate(&stage, "two").await;
    works(&stage, "two", &["one"]).await;
    rotate(&stage, "three").await;
    rotate(&stage, "four").await;
    works(&stage, "four", &["one", "two", "three"]).await;

    secrets(&stage)
        .delete("cart-users", &DeleteParams::default())
        .await
        .unwrap();
    let expected = "Secret cart-users is missing: it holds the password of the user app";
    stage
        .until("cart", "told", Duration::from_secs(5), |cluster| {
            reports(cluster, expected)
        })
        .await;
    assert!(everywhere(&stage, "four"), "nobody took it away");
    make(&stage, "five").await;
    works(&stage, "five", &["four"]).await;

    rotate(&stage, "").await;
    let expected = "Secret cart-users has an empty value under the key app";
    stage
        .until("cart", "told", Duration::from_secs(5), |cluster| {
            reports(cluster, expected)
        })
        .await;
    assert!(everywhere(&stage, "five"), "nobody took it away");
    rotate(&stage, "six").await;
    works(&stage, "six", &["five"]).await;
    operator.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_with_the_label_of_another_cluster_is_read_and_followed() {
    let stage = Stage::set().await;
    let operator = Operator::start(stage.client());
    let users = json!([{"name": "app", "commands": {"allow": ["@read"]}}]);
    stage.create("cart", json!({"shards": 1, "users": users})).await;
    let expected = "Secret cart-users is missing";
    let missing = |cluster: &ValkeyCluster| {
        let status = cluster.status.as_ref();
        status.is_some_and(|status| status.message.contains(expected))
    };
    stage.until("cart", "told", PATIENCE, missing).await;
    let metadata = json!({"name": "cart-users", "labels": {"valkey.io/cluster": "other"}});
    let secret = json!({"metadata": metadata, "stringData": {"app": "one"}});
    let secret = serde_json::from_value(secret).unwrap();
    secrets(&stage).create(&PostParams::default(), &secret).await.unwrap();
    works(&stage, "one", &[]).await;
    // Otherwise a reconcile with another cause might notice the change.
    at_rest(&stage).await;
    rotate(&stage, "two").await;
    works(&stage, "two", &["one"]).await;
    operator.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_that_an_operator_left_behind_when_it_ended_is_removed_by_the_next() {
    let stage = Stage::set().await;
    let operator = Operator::start(stage.client());
    stage.create("cart", json!({"shards": 1, "replicas": 1})).await;
    stage.ready("cart").await;
    operator.end().await;
    let left = ["_migrator", "_trial"];
    let has = |ip| stage.world.inspect(ip, |node| left.map(|user| node.users.has(user)));
    let members = stage.world.members();
    for ip in &members {
        let node = Node::new(Endpoint::plain(*ip, 6379), Deadlines::default());
        for user in left {
            let rules = ["on", "nopass", "~*", "+@all"].map(str::to_owned);
            node.acl_set_user(user, &rules).await.unwrap();
        }
        assert_eq!(has(*ip), Some([true, true]));
    }
    let operator = Operator::start(stage.client());
    let begun = Instant::now();
    while !members.iter().all(|ip| has(*ip) == Some([false, false])) {
        assert!(begun.elapsed() < PATIENCE, "a user was left behind");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    stage.ready("cart").await;
    operator.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_is_read_again_for_a_new_cluster_of_the_same_name() {
    let stage = Stage::set().await;
    let reads = Arc::<AtomicUsize>::default();
    let counted = {
        let (client, reads) = (stage.client(), reads.clone());
        tower::service_fn(move |request: Request<Body>| {
            let read = request.method() == "GET" && request.uri().path().ends_with("/secrets/cart-users");
            reads.fetch_add(usize::from(read), Ordering::SeqCst);
            let client = client.clone();
            async move { client.send(request).await }
        })
    };
    let operator = Operator::start(Client::new(counted, "default"));
    make(&stage, "one").await;
    let spec = json!({"shards": 1, "users": [{"name": "app", "commands": {"allow": ["@read"]}}]});
    let clusters = stage.clusters("default");
    for _ in 0..2 {
        let before = reads.load(Ordering::SeqCst);
        stage.create("cart", spec.clone()).await;
        stage.ready("cart").await;
        // Its content was forgotten with the cluster.
        assert!(reads.load(Ordering::SeqCst) > before, "the content was still in memory");
        clusters.delete("cart", &DeleteParams::default()).await.unwrap();
        let begun = Instant::now();
        while clusters.get_opt("cart").await.unwrap().is_some() {
            assert!(begun.elapsed() < PATIENCE, "it is still there");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    operator.end().await;
}

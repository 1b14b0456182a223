//! Robin when its surroundings fail.

use std::time::Duration;

use candor_operator::kinds::redkey::robin::link::RobinView;
use kube::api::DeleteParams;

use crate::bench::{Bench, Counting, NAME, key, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_its_permissions_it_waits_and_continues_when_it_has_them() {
    let bench = Bench::four().await;
    let cluster = bench.clusters().get(NAME).await.unwrap();
    let binding = bench.objects(&cluster, None).role_binding;
    let bindings = kube::Api::namespaced(bench.sandbox.client(), "default");
    let name = binding.metadata.name.clone().unwrap();
    bindings.delete(&name, &DeleteParams::default()).await.unwrap();
    let _robin = bench.robin_with(Counting::default());
    let mut operator = bench.operator();
    until("it listens", async || {
        tokio::net::TcpStream::connect((bench.address, 8080)).await.is_ok()
    })
    .await;
    assert_eq!(bench.get("/health").await["status"], "OK");
    assert!(matches!(operator.links.view(&key()), RobinView::Connecting { .. }));
    let (code, body) = bench.call("GET", "/v1/cluster/check", "").await;
    assert_eq!(code, 500, "{body}");
    bindings
        .create(&kube::api::PostParams::default(), &binding)
        .await
        .unwrap();
    operator.settled(4, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_cluster_is_driven_no_longer() {
    let bench = Bench::four().await;
    let driver = Counting::default();
    let _robin = bench.robin_with(driver.clone());
    let mut operator = bench.operator();
    operator.settled(4, 1).await;
    bench.clusters().delete(NAME, &DeleteParams::default()).await.unwrap();
    operator.links.refresh(&key());
    until("the configuration decides again", async || {
        bench.get("/v1/redkeycluster/status").await["status"] == "Configuring"
    })
    .await;
    let rounds = driver.rounds.load(std::sync::atomic::Ordering::SeqCst);
    // Every refresh observes anew, and gossip may still bring news.
    let (mut calm, mut refreshes) = (0, 0);
    while calm < 3 {
        refreshes += 1;
        assert!(refreshes < 60, "the observation never settles: {:?}", operator.frame());
        operator.links.refresh(&key());
        let news = tokio::time::timeout(Duration::from_millis(300), operator.triggers.recv()).await;
        calm = if news.is_ok() { 0 } else { calm + 1 };
    }
    assert_eq!(driver.rounds.load(std::sync::atomic::Ordering::SeqCst), rounds);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_taken_port_is_named() {
    let bench = Bench::four().await;
    let taken = tokio::net::TcpListener::bind((bench.address, 8443)).await.unwrap();
    let error = bench.robin().ended().await.to_string();
    assert!(error.contains(&format!("{}:8443", bench.address)), "{error}");
    drop(taken);
}

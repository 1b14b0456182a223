//! Configuration and credentials that change while Robin runs.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::Duration;

use candor_engine::observation::Server as Seen;
use candor_operator::kinds::redkey::robin::link::{Frame, RobinView};
use serde_json::json;

use crate::bench::{Bench, Counting, key, until};
use crate::servers::{Generation, Server};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn token_and_certificate_rotate_without_an_outage() {
    let mut bench = Bench::four().await;
    let _robin = bench.robin();
    let mut operator = bench.operator();
    operator
        .until("all are up", Duration::from_secs(10), |frame| frame.servers.len() == 4)
        .await;
    let cluster = bench.clusters().get("c").await.unwrap();
    let old = bench.credentials.clone();
    bench.credentials = old.rotate("c", &ring::rand::SystemRandom::new()).unwrap();
    bench.write(&bench.objects(&cluster, None));
    operator.links.follow(&key(), Some(bench.endpoint()));
    until("the new token is accepted", async || {
        assert!(matches!(operator.links.view(&key()), RobinView::Live { .. }));
        bench.put("/v1/redkeycluster/status", r#"{"status":"Ready"}"#).await.0 == 200
    })
    .await;
    // An operator that knows only the new ones finds Robin too.
    bench.credentials.previous = None;
    let mut second = bench.operator();
    second
        .until("live", Duration::from_secs(5), |frame| frame.servers.len() == 4)
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_password_is_changed_at_every_server_without_losing_sight_of_any() {
    let options = ["--requirepass", "old", "--masterauth", "old"];
    let servers: Vec<Server> = (0..3).map(|_| Server::start(Generation::Redis8, &options)).collect();
    for server in &servers {
        let node = server.node_as("default", "old");
        until("it answers", async || node.ping().await.is_ok()).await;
    }
    let bench = Bench::of(servers, json!({"primaries": 3})).await;
    let cluster = bench.clusters().get("c").await.unwrap();
    bench.write(&bench.objects(&cluster, Some("old")));
    let driver = Counting::default();
    let _robin = bench.robin_with(driver.clone());
    let mut operator = bench.operator();
    operator.settled(3, 1).await;

    // From here on every frame must show every server.
    let lost = Arc::new(Mutex::new(None));
    let watcher = {
        let (links, lost) = (operator.links.clone(), lost.clone());
        tokio::spawn(async move {
            loop {
                let view = links.view(&key());
                let up = |frame: &Frame| frame.servers.values().all(|one| matches!(one.server, Seen::Up(_)));
                if !matches!(&view, RobinView::Live { frame, .. } if up(frame)) {
                    lost.lock().unwrap().get_or_insert(format!("{view:?}"));
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
    };
    bench.write(&bench.objects(&cluster, Some("new")));
    until("the driver sees the servers that are to be changed", async || {
        driver.outdated_passwords.load(Ordering::SeqCst) == 3
    })
    .await;
    for (changed, server) in bench.servers.iter().enumerate() {
        let node = server.node_as("default", "old");
        node.config_set(&[("requirepass", "new"), ("masterauth", "new")])
            .await
            .unwrap();
        until("the change is noticed", async || {
            driver.outdated_passwords.load(Ordering::SeqCst) == 2 - changed
        })
        .await;
    }
    watcher.abort();
    assert_eq!(*lost.lock().unwrap(), None);
    // A server that was changed by hand to the password before is found again.
    let node = bench.servers[1].node_as("default", "new");
    node.config_set(&[("requirepass", "old")]).await.unwrap();
    let mut kill = redis::cmd("CLIENT");
    node.order(kill.arg("KILL").arg("TYPE").arg("normal").arg("SKIPME").arg("yes"))
        .await
        .unwrap();
    until("it is found with the previous password", async || {
        driver.outdated_passwords.load(Ordering::SeqCst) == 1
    })
    .await;
    operator.settled(3, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unusable_files_are_rejected_at_startup_and_ignored_later() {
    let bench = Bench::four().await;
    let folder = bench.settings().credentials;
    let file = |name: &str| folder.join(name);
    let good = std::fs::read(file("tls.crt")).unwrap();
    for (name, content, reason) in [
        ("tls.crt", "", "tls.crt is empty"),
        ("tls.crt", "no PEM", "cannot be used together"),
        ("token", "", "token is empty"),
    ] {
        let before = std::fs::read(file(name)).unwrap();
        std::fs::write(file(name), content).unwrap();
        let error = bench.robin().ended().await.to_string();
        assert!(error.contains(reason), "{error} instead of {reason}");
        std::fs::write(file(name), before).unwrap();
    }
    let config = std::fs::read(bench.config()).unwrap();
    std::fs::write(bench.config(), "redis: 1").unwrap();
    let error = bench.robin().ended().await.to_string();
    assert!(error.contains("application-configmap.yml"), "{error}");
    std::fs::write(bench.config(), config).unwrap();

    let _robin = bench.robin();
    let mut operator = bench.operator();
    operator
        .until("live", Duration::from_secs(10), |frame| frame.servers.len() == 4)
        .await;
    operator.calm().await;
    std::fs::write(file("tls.crt"), "no PEM").unwrap();
    std::fs::write(file("requirepass"), "wrong").unwrap();
    let calm = tokio::time::timeout(Duration::from_secs(4), operator.triggers.recv()).await;
    assert!(calm.is_err(), "{:?}", operator.links.view(&key()));
    std::fs::write(file("tls.crt"), good).unwrap();
}

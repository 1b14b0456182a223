//! A slow scale-down near `maxmemory`: no key is evicted and no write fails on the way.

use candor_tests::{Cluster, Kind, Server, World};
use serde_json::json;

/// The size of a value. With 450 of them, three servers use about 19 of their 24 MB each.
const SIZE: usize = 100 * 1024;
const KEYS: usize = 450;
/// How many are left when they fit into two servers: about 19 of 24 MB each.
const FITTING: usize = 300;

async fn servers(cluster: &Cluster<'_>) -> Vec<Server> {
    cluster.servers().await.into_values().collect()
}

/// Sends a command about a key to all servers; one of them owns it.
async fn sent(servers: &[Server], words: &[&str]) -> bool {
    let mut done = false;
    for server in servers {
        done |= server.ask::<redis::Value>(words).await.is_some();
    }
    done
}

/// Asserts that these many keys exist and that no server has evicted any.
async fn has(cluster: &Cluster<'_>, keys: usize) {
    let mut found = 0;
    for server in servers(cluster).await {
        found += server.ask::<usize>(&["DBSIZE"]).await.unwrap();
        let stats: String = server.ask(&["INFO", "stats"]).await.unwrap();
        assert!(stats.contains("evicted_keys:0\r\n"), "{}: {stats}", server.pod);
    }
    assert_eq!(found, keys);
}

async fn scaled_down_near_the_limit(scenario: &str, policy: &str) {
    let world = World::start(scenario).await;
    let cluster = Cluster::of(Kind::RedkeyCluster, &world, "cache");
    let config = format!("maxmemory 24mb\nmaxmemory-policy {policy}\n");
    cluster
        .create(json!({"primaries": 3, "purgeKeysOnRebalance": false, "image": "redis:8.0", "config": config}))
        .await;
    cluster.ready().await;
    let value = "x".repeat(SIZE);
    let all = servers(&cluster).await;
    for key in 0..KEYS {
        assert!(sent(&all, &["SET", &format!("key-{key}"), &value]).await, "{key}");
    }
    has(&cluster, KEYS).await;

    // They do not fit into two servers: nothing moves.
    cluster.change(json!({"primaries": 2})).await;
    cluster
        .until("rejected", |object| {
            let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let said = |one: &serde_json::Value| {
                let message = one["message"].as_str().unwrap_or_default();
                one["type"] == "Ready" && one["reason"] == "NotEnoughMemory" && message.contains("of their maxmemory")
            };
            object["status"]["status"] == "Error" && conditions.iter().any(said)
        })
        .await;
    has(&cluster, KEYS).await;
    assert_eq!(cluster.pods().await.len(), 3);

    // As soon as they do, the operation goes on by itself.
    for key in FITTING..KEYS {
        assert!(sent(&all, &["DEL", &format!("key-{key}")]).await, "{key}");
    }
    cluster.ready().await;
    assert_eq!(cluster.pods().await.len(), 2);
    has(&cluster, FITTING).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scale_down_near_maxmemory_evicts_nothing() {
    scaled_down_near_the_limit("rkcl-lru", "allkeys-lru").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scale_down_near_maxmemory_does_not_fail_without_eviction() {
    scaled_down_near_the_limit("rkcl-noeviction", "noeviction").await;
}

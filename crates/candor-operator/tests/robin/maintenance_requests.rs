//! Requests of the HTTP API on real servers, as a person sends them in Maintenance.

use candor_operator::kinds::redkey::robin::agent::Planning;
use serde_json::{Value, json};
use valkey_admin::{NodeId, Slot, SlotSet};

use crate::bench::{Bench, Operator, key, until};
use crate::servers::{Generation, cluster};

/// Keys that are written, one in each of these slots: `{06S}` is in slot 0.
const KEYS: [&str; 3] = ["06S", "{06S}-a", "{06S}-b"];

/// A cluster of three primaries and a blank server that knows them, in Maintenance.
async fn in_maintenance() -> (Bench, Operator) {
    let shares = [Some("0-5460"), Some("5461-10922"), Some("10923-16383"), None];
    let bench = Bench::of(cluster(Generation::Redis8, &shares).await, json!({"primaries": 3})).await;
    let operator = bench.operator();
    (bench, operator)
}

async fn pause(bench: &Bench, operator: &Operator) {
    let paused = json!({"metadata": {"annotations": {"redkey.inditex.dev/maintenance": "true"}}});
    bench.patch(paused).await;
    operator.links.refresh(&key());
    until("it is in Maintenance", async || {
        bench.get("/v1/redkeycluster/status").await == json!({"status": "Maintenance"})
    })
    .await;
    until("the servers are known", async || {
        let nodes = bench.get("/v1/cluster/nodes").await;
        nodes["nodes"]
            .as_array()
            .is_some_and(|nodes| nodes.len() == bench.servers.len())
    })
    .await;
}

/// The slots that a server owns, by its own word.
async fn slots(bench: &Bench, server: usize) -> SlotSet {
    let node = bench.servers[server].node();
    let map = node.cluster_nodes().await.unwrap();
    map.0.iter().find(|entry| entry.flags.myself).unwrap().slots.clone()
}

/// The ids of the nodes that a server knows.
async fn known(bench: &Bench, server: usize) -> Vec<NodeId> {
    let map = bench.servers[server].node().cluster_nodes().await.unwrap();
    map.0.iter().map(|entry| entry.id).collect()
}

async fn set(bench: &Bench, server: usize, key: &str) {
    let mut command = redis::cmd("SET");
    command.arg(key).arg("value");
    bench.servers[server].node().order(&command).await.unwrap();
}

/// Repeats a request until it is completed.
async fn completed(bench: &Bench, path: &str, body: &str) {
    until("it is completed", async || {
        let (code, answer) = bench.put(path, body).await;
        assert!([200, 201, 202].contains(&code), "{path}: {code} {answer}");
        code == 200 && answer == json!({"status": "Completed"})
    })
    .await;
}

/// Waits until a request that is not asked about has ended.
async fn ended(bench: &Bench, operation: &str) {
    until("it has ended", async || {
        bench.get("/v1/cluster/status").await != json!({"status": operation})
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_moves_the_slots_with_their_keys_and_nothing_else() {
    let (bench, operator) = in_maintenance().await;
    let _robin = bench.robin_with(Planning::default());
    pause(&bench, &operator).await;
    for key in KEYS {
        set(&bench, 0, key).await;
    }
    let some = r#"{"from":"0","to":"c-1","slots":100}"#;
    assert_eq!(bench.put("/v1/cluster/move", some).await.0, 201);
    completed(&bench, "/v1/cluster/move", some).await;
    assert_eq!(slots(&bench, 0).await.len(), 5461 - 100);
    assert_eq!(slots(&bench, 1).await.len(), 5462 + 100);
    assert_eq!(slots(&bench, 2).await.len(), 5461);
    let moved = bench.servers[1].node();
    let keys = moved.count_keys_in_slot(Slot::new(0).unwrap()).await.unwrap();
    assert_eq!(keys, 3, "the keys have moved with their slot");

    let all = r#"{"from":"c-0","to":"3","slots":0}"#;
    completed(&bench, "/v1/cluster/move", all).await;
    assert!(slots(&bench, 0).await.is_empty());
    assert_eq!(slots(&bench, 3).await.len(), 5461 - 100);

    // A server without slots can be reset: it knows nobody afterwards, and nobody knows it.
    let before = bench.servers[0].node().my_id().await.unwrap();
    completed(&bench, "/v1/cluster/reset/0", "").await;
    assert_eq!(known(&bench, 0).await.len(), 1);
    for other in 1..4 {
        assert!(!known(&bench, other).await.contains(&before));
    }

    for (path, body, message) in [
        ("/v1/cluster/reset/c-1", "", "owns 5562 slots: move them away first"),
        (
            "/v1/cluster/move",
            r#"{"from":"1","to":"2","slots":6000}"#,
            "owns 5562 slots, not 6000",
        ),
    ] {
        let mut answer = (0, Value::Null);
        until("it has failed", async || {
            answer = bench.put(path, body).await;
            answer.0 == 500
        })
        .await;
        assert!(answer.1["error"].as_str().unwrap().contains(message), "{answer:?}");
    }
    assert_eq!(slots(&bench, 1).await.len(), 5562, "a rejected request changes nothing");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_topology_is_applied_in_maintenance() {
    let (bench, operator) = in_maintenance().await;
    let _robin = bench.robin_with(Planning::default());
    pause(&bench, &operator).await;
    let four = r#"{"primaries":4,"replicas_per_primary":0}"#;
    assert_eq!(bench.put("/v1/redkeycluster/replicas", four).await.0, 201);
    assert_eq!(bench.put("/v1/redkeycluster/replicas", four).await.0, 200);
    until("every server owns a quarter", async || {
        let mut even = true;
        for server in 0..4 {
            even &= slots(&bench, server).await.len() == 4096;
        }
        even
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repair_covers_slots_and_forming_anew_empties_the_servers() {
    let shares = [Some("0-5460"), Some("5461-10922"), Some("10923-16383")];
    let bench = Bench::of(cluster(Generation::Redis8, &shares).await, json!({"primaries": 3})).await;
    let operator = bench.operator();
    let _robin = bench.robin_with(Planning::default());
    pause(&bench, &operator).await;
    set(&bench, 0, "06S").await;
    for server in &bench.servers {
        let some: SlotSet = "16383".parse().unwrap();
        server.node().delete_slots(&some).await.unwrap();
    }
    assert_eq!(slots(&bench, 2).await.len(), 5460);
    assert_eq!(bench.put("/v1/cluster/fix", "").await.0, 201);
    ended(&bench, "Fixing").await;
    assert_eq!(slots(&bench, 2).await.len(), 5461);

    let before = known(&bench, 0).await;
    assert_eq!(bench.put("/v1/cluster/recreate", "").await.0, 201);
    assert_eq!(bench.get("/v1/cluster/status").await, json!({"status": "Recreating"}));
    ended(&bench, "Recreating").await;
    let after = known(&bench, 0).await;
    assert_eq!(after.len(), 3);
    assert!(after.iter().all(|id| !before.contains(id)), "every node is new");
    let mut covered = 0;
    for server in 0..3 {
        covered += slots(&bench, server).await.len();
    }
    assert_eq!(covered, 16_384);
    let keys = bench.servers[0]
        .node()
        .count_keys_in_slot(Slot::new(0).unwrap())
        .await
        .unwrap();
    assert_eq!(keys, 0, "the keys are gone by request");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn maintenance_of_robin_alone_is_set_over_http() {
    let (bench, operator) = in_maintenance().await;
    let _robin = bench.robin_with(Planning::default());
    bench.patch_status("Ready").await;
    operator.links.refresh(&key());
    // The status of the cluster replaces what is set over HTTP whenever it changes.
    until("it knows the new status", async || {
        bench.get("/v1/redkeycluster/status").await == json!({"status": "Ready"})
    })
    .await;
    until("the servers are known", async || {
        bench.get("/v1/cluster/nodes").await["nodes"]
            .as_array()
            .is_some_and(|nodes| nodes.len() == 4)
    })
    .await;
    let moving = r#"{"from":"0","to":"1","slots":10}"#;
    assert_eq!(bench.put("/v1/cluster/move", moving).await.0, 409);
    let status = r#"{"status":"Maintenance"}"#;
    assert_eq!(bench.put("/v1/redkeycluster/status", status).await.0, 200);
    completed(&bench, "/v1/cluster/move", moving).await;
    assert_eq!(slots(&bench, 1).await.len(), 5472);
}

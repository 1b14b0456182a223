//! Robin's HTTP API with its real state.

use std::time::Duration;

use serde_json::json;

use crate::bench::{Bench, Counting, key, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_describe_the_servers() {
    let mut bench = Bench::four().await;
    let _robin = bench.robin();
    let mut operator = bench.operator();
    operator
        .until("all are up", Duration::from_secs(10), |frame| frame.servers.len() == 4)
        .await;
    assert_eq!(bench.get("/health").await, json!({"status": "OK"}));
    assert_eq!(
        bench.get("/v1/redkeycluster/replicas").await,
        json!({"primaries": 3, "replicas_per_primary": 0})
    );
    assert_eq!(
        bench.get("/v1/redkeycluster/status").await,
        json!({"status": "Unknown"})
    );
    bench.patch_status("Ready").await;
    operator.links.refresh(&key());
    until("the operator's status is known", async || {
        bench.get("/v1/redkeycluster/status").await == json!({"status": "Ready"})
    })
    .await;
    assert_eq!(
        bench.get("/v1/cluster/check").await,
        json!({"errors": [], "warnings": []})
    );
    let nodes = bench.get("/v1/cluster/nodes").await;
    let nodes = nodes["nodes"].as_array().unwrap();
    let of = |field: &str| nodes.iter().map(|node| node[field].clone()).collect::<Vec<_>>();
    assert_eq!(of("name"), ["c-0", "c-1", "c-2", "c-3"]);
    assert_eq!(of("role"), ["primary", "primary", "primary", "replica"]);
    assert_eq!(nodes[3]["primaryId"], nodes[0]["id"]);
    assert_eq!(
        of("ip"),
        bench.servers.iter().map(|one| one.ip.to_string()).collect::<Vec<_>>()
    );
    assert_eq!(of("failures"), [0, 0, 0, 0]);
    assert_eq!(of("linkStatus"), ["connected"; 4]);
    let (code, metrics) = bench.call("GET", "/metrics", "").await;
    assert_eq!(code, 200);
    for line in [
        "redis_connected_clients{cluster=\"c\",instanceId=\"c-0\",namespace=\"default\"} ",
        "redis_used_memory{cluster=\"c\",instanceId=\"c-3\",namespace=\"default\"} ",
        "cluster_slots_assigned=\"16384\"",
        "redis_cluster_check_errors{cluster=\"c\",namespace=\"default\"} 0",
        "slots=\"5461-10922\"",
    ] {
        assert!(metrics.contains(line), "{line}\n{metrics}");
    }

    bench.servers[1].kill();
    until("the fault is in the check", async || {
        let check = bench.get("/v1/cluster/check").await.to_string();
        check.contains("c-1 refuses connections") && check.contains("has failed")
    })
    .await;
    // Each of the others learns of it by gossip.
    until("all others report its failure", async || {
        bench.get("/v1/cluster/nodes").await["nodes"][1]["failures"] == 3
    })
    .await;
    let nodes = bench.get("/v1/cluster/nodes").await;
    assert_eq!(nodes["nodes"][1]["linkStatus"], "disconnected");
    assert_eq!(nodes["nodes"][1]["role"], "primary", "the others still know it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_run_in_maintenance_and_conflict_with_the_plan_otherwise() {
    let bench = Bench::four().await;
    let driver = Counting {
        failing: true,
        ..Counting::default()
    };
    let _robin = bench.robin_with(driver);
    let mut operator = bench.operator();
    operator.settled(4, 1).await;
    let moving = r#"{"from":"0","to":"c-1","slots":0}"#;
    for (path, body) in [
        ("/v1/cluster/move", moving),
        ("/v1/cluster/recreate", ""),
        ("/v1/cluster/reset/1", ""),
        ("/v1/redkeycluster/replicas", r#"{"primaries":4}"#),
    ] {
        let (code, body) = bench.put(path, body).await;
        assert_eq!(code, 409, "{path}: {body}");
    }
    let same = r#"{"primaries":3,"replicas_per_primary":0}"#;
    assert_eq!(bench.put("/v1/redkeycluster/replicas", same).await.0, 200);
    for (path, body) in [
        ("/v1/cluster/move", r#"{"from":"0","to":"9"}"#),
        ("/v1/cluster/move", r#"{"from":"0","to":"c-0"}"#),
        ("/v1/cluster/move", r#"{"from":"+1","to":"0"}"#),
        ("/v1/cluster/move", r#"{"from":"d-1","to":"0"}"#),
        ("/v1/cluster/reset/4", ""),
    ] {
        let (code, body) = bench.put(path, body).await;
        assert_eq!(code, 400, "{path}: {body}");
    }
    // A repair is what Robin does anyway.
    let progress = (202, json!({"status": "In progress"}));
    assert_eq!(bench.put("/v1/cluster/fix", "").await.0, 201);
    assert_eq!(bench.put("/v1/cluster/fix", "").await, progress);
    assert_eq!(bench.get("/v1/cluster/status").await, json!({"status": "Fixing"}));
    assert_eq!(bench.put("/v1/cluster/recreate", "").await.0, 409);
    until("it has finished", async || {
        bench.get("/v1/cluster/status").await != json!({"status": "Fixing"})
    })
    .await;

    let paused = json!({"metadata": {"annotations": {"redkey.inditex.dev/maintenance": "true"}}});
    bench.patch(paused).await;
    operator.links.refresh(&key());
    until("it is in maintenance", async || {
        bench.get("/v1/redkeycluster/status").await == json!({"status": "Maintenance"})
    })
    .await;
    let rejected = bench.put("/v1/redkeycluster/status", r#"{"status":"Ready"}"#).await;
    assert_eq!(rejected.0, 409, "{rejected:?}");
    assert_eq!(bench.put("/v1/cluster/reset/c-1", "").await, progress);
    until("the reset is completed", async || {
        bench.put("/v1/cluster/reset/1", "").await == (200, json!({"status": "Completed"}))
    })
    .await;
    let other = r#"{"primaries":4,"replicas_per_primary":0}"#;
    assert_eq!(bench.put("/v1/redkeycluster/replicas", other).await.0, 201);
    assert_eq!(bench.get("/v1/redkeycluster/replicas").await["primaries"], 4);

    assert_eq!(bench.put("/v1/cluster/move", moving).await.0, 201);
    assert_eq!(bench.get("/v1/cluster/status").await, json!({"status": "Resharding"}));
    until("the move has failed", async || {
        bench.get("/v1/cluster/status").await == json!({"status": "ReshardingError"})
    })
    .await;
    let failed = bench.put("/v1/cluster/move", moving).await;
    assert_eq!(failed, (500, json!({"error": "c-1 is full"})));
    assert_eq!(
        bench.put("/v1/cluster/move", moving).await.0,
        201,
        "and it is tried again"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_status_is_served_until_the_operator_writes_another() {
    let bench = Bench::four().await;
    let _robin = bench.robin_with(Counting::default());
    let mut operator = bench.operator();
    operator.settled(4, 1).await;
    let status = r#"{"status":"NoReconciling"}"#;
    let set = bench.put("/v1/redkeycluster/status", status).await;
    assert_eq!(set, (200, json!({"status": "NoReconciling"})));
    bench.patch_status("Configuring").await;
    operator.links.refresh(&key());
    until("the operator's status counts", async || {
        bench.get("/v1/redkeycluster/status").await == json!({"status": "Configuring"})
    })
    .await;
}

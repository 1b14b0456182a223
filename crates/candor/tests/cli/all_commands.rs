//! Every command on real servers, in the order in which a user would run them. Tests start in the order of their
//! names, and this one takes longest: the others run in parallel.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::desk::support::is_ready;
use crate::real::Real;
use crate::runner::{end, lines, next, run};

/// The annotation that requests a failover of a cluster.
const FAILOVER: &str = candor_api::valkey::FAILOVER;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_command_works_on_a_running_cluster() {
    let real = Real::start().await;
    let none = real.run("status").await.well();
    assert!(none.contains("There is no cluster here"), "{none}");
    real.create("shop", json!({"shards": 2, "replicas": 1})).await;
    real.create("alone", json!({"shards": 1})).await;
    for name in ["shop", "alone"] {
        real.until(name, "Ready", is_ready).await;
    }

    looks(&real).await;
    describes(&real).await;
    plans(&real).await;
    fails_over(&real).await;
    refuses_failovers(&real).await;
    pauses(&real).await;
    restarts(&real).await;
    reports(&real).await;
    needs_an_operator(&real).await;
    real.end().await;
}

async fn looks(real: &Real) {
    let list = real.run("status").await.well();
    for part in ["shop", "2/2", "Ready", "ClusterHealthy"] {
        assert!(list.contains(part), "{part} is missing: {list}");
    }
    assert!(real.run("status -A -o wide").await.well().contains("default"));
    let one = real.run("status shop --conditions").await.well();
    assert!(one.starts_with("default/shop: Ready for "), "{one}");
    for part in ["0-8191", "primary", "InSync", "ClusterFormed", "ClusterReady"] {
        assert!(one.contains(part), "{part} is missing: {one}");
    }
    let data = real.json("status shop").await;
    assert_eq!(data["answer"]["state"], "Ready");
    assert_eq!(data["operator"]["state"], "alive");
    let members = data["shards"].as_array().unwrap().iter();
    let members: Vec<&Value> = members.flat_map(|one| one["members"].as_array().unwrap()).collect();
    assert!(
        members.len() == 4 && members.iter().all(|one| one["asked"] == true),
        "every server was asked: {data}"
    );
    assert!(real.run("status shop -o yaml").await.well().contains("state: Ready"));
    let doctor = real.run("doctor").await.well();
    for part in ["holds the lease", "4 of 4 servers answer"] {
        assert!(doctor.contains(part), "{part} is missing: {doctor}");
    }
    let mut completes = real.command("-- candor status sh");
    completes
        .env("COMPLETE", "bash")
        .env("_CLAP_COMPLETE_INDEX", "2")
        .env("_CLAP_IFS", "\n");
    assert_eq!(run(completes).await.well().trim(), "shop");
}

async fn describes(real: &Real) {
    let tree = real.run("describe shop").await.well();
    // Equal lines are grouped: the primaries, and the replicas.
    for part in ["ValkeyCluster/shop", "See shop-0-0, shop-1-0", "See shop-0-1, shop-1-1"] {
        assert!(tree.contains(part), "{part} is missing: {tree}");
    }
    let all = real.run("describe shop --show-conditions all").await.well();
    assert!(all.contains("Pod/valkey-shop-1-1"), "{all}");
    assert!(real.run("events shop").await.well().contains("PrimaryCreated"));
    let wide = real.run("events shop --members").await.well();
    assert!(wide.contains("ValkeyCluster/shop:"), "{wide}");
    let history = real.run("history shop").await.well();
    assert!(history.contains("so far") && history.contains("Ready"), "{history}");
}

async fn plans(real: &Real) {
    let plan = real.run("plan shop --shards 3").await.well();
    assert!(plan.contains("from 2 shards with 1 replica each to 3 shards"), "{plan}");
    let manifest = "apiVersion: valkey.io/v1alpha1\nkind: ValkeyCluster\nmetadata: {name: fresh}\nspec: {shards: 1}\n";
    std::fs::write(real.folder.path().join("fresh.yaml"), manifest).unwrap();
    let plan = real.run("plan -f fresh.yaml").await.well();
    assert!(plan.contains("default/fresh is new"), "{plan}");
    let clusters = real.json("status").await["clusters"].as_array().unwrap().len();
    assert_eq!(clusters, 2, "nothing was changed");
    real.until("shop", "as it was", |cluster| {
        is_ready(cluster) && cluster.spec.shards == 2
    })
    .await;
}

async fn fails_over(real: &Real) {
    let primary = async || {
        let data = real.json("status shop").await;
        data["shards"][1]["members"][0]["member"].as_str().unwrap().to_owned()
    };
    assert_eq!(primary().await, "1-0");
    let output = real.run("failover shop --shard 1").await.well();
    assert!(output.contains("member 1-1 is the primary of shard 1"), "{output}");
    assert_eq!(primary().await, "1-1");
    let events = real.run("events shop").await.well();
    for part in ["FailoverInitiated", "FailoverCompleted"] {
        assert!(events.contains(part), "{part} is missing: {events}");
    }
    assert!(!events.contains("Lost"), "no member was lost: {events}");
    real.until("shop", "Ready", is_ready).await;
    let output = real.run("failover shop --shard 1 --to 1-0").await.well();
    assert!(output.contains("member 1-0 is the primary of shard 1"), "{output}");
    let left = real.clusters().get("shop").await.unwrap().metadata.annotations;
    assert!(
        !left.clone().unwrap_or_default().contains_key(FAILOVER),
        "the request was taken away: {left:?}"
    );
    real.until("shop", "Ready", is_ready).await;
}

async fn refuses_failovers(real: &Real) {
    for (words, why) in [
        ("--shard 7", "shop has no shard 7; its shards: 0 to 1"),
        ("--shard 1 --to 1-0", "member 1-0 is the primary of shard 1 already"),
    ] {
        let output = real.run(&format!("failover shop {words}")).await.badly();
        assert!(output.contains(why), "{output}");
    }
    let output = real.run("failover alone --shard 0").await.badly();
    assert!(output.contains("has no replica to promote"), "{output}");
    // A request that a user writes without the CLI is answered too.
    let status = real.clusters().get("alone").await.unwrap().status.unwrap();
    let asked = format!("0/{}", status.topology[0].members[0].node_id);
    real.write("alone", json!({"metadata": {"annotations": {FAILOVER: asked}}}))
        .await;
    real.until("alone", "answered", |cluster| {
        let left = cluster.metadata.annotations.clone().unwrap_or_default();
        !left.contains_key(FAILOVER)
    })
    .await;
    let reported = async { while !real.run("events alone").await.well().contains("shard 0 has no replica") {} };
    let reported = tokio::time::timeout(Duration::from_secs(20), reported).await;
    reported.expect("the operator says why it is not done");
}

async fn pauses(real: &Real) {
    assert!(real.run("pause shop").await.well().contains("is paused"));
    real.until("shop", "paused", |cluster| {
        let conditions = cluster.status.iter().flat_map(|status| &status.conditions);
        conditions
            .into_iter()
            .any(|one| one.type_ == "Paused" && one.status == "True")
    })
    .await;
    let status = real.run("status shop --conditions").await.well();
    assert!(status.contains("Paused for"), "{status}");
    let refused = real.run("failover shop --shard 1").await.badly();
    assert!(refused.contains("candor resume shop"), "{refused}");
    assert!(real.run("pause shop").await.well().contains("already"));
    assert!(real.run("resume shop").await.well().contains("is resumed"));
    assert!(real.run("resume shop").await.well().contains("is not paused"));
    real.until("shop", "Ready", is_ready).await;
}

/// Every member is replaced while `status --watch` and an audit run.
async fn restarts(real: &Real) {
    let before = real.pods_of("shop").await;
    let mut audit = real.begin("audit shop --rate 200 -o json");
    assert!(next(&mut lines(audit.stderr.take())).await.contains("auditing"));
    let mut watch = real.begin("status shop --watch");
    let mut seen = lines(watch.stdout.take());
    assert!(next(&mut seen).await.contains("default/shop Ready ClusterHealthy"));

    assert!(real.run("restart shop").await.well().contains("one by one"));
    let mut changes = next(&mut seen).await;
    assert!(!changes.contains("shop Ready "), "{changes}");
    let replaced = async {
        loop {
            let after = real.pods_of("shop").await;
            let others = before
                .iter()
                .all(|(member, pod)| after.get(member).is_some_and(|now| now != pod));
            if others && after.len() == before.len() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let replaced = tokio::time::timeout(crate::runner::PATIENCE, replaced).await;
    replaced.expect("every pod is another in time");
    while !changes.contains("default/shop Ready ClusterHealthy") {
        changes = next(&mut seen).await;
    }
    assert!(end(watch, Signal::INT).await.fine, "Ctrl-C is no error");
    let output = end(audit, Signal::INT).await;
    assert!(output.fine, "{output:?}");
    let audit: Value = serde_json::from_str(&output.out).unwrap();
    assert_eq!(audit["writes"]["lost"], 0, "{audit}");
    assert!(audit["writes"]["acknowledged"].as_u64().unwrap() > 100, "{audit}");
}

async fn reports(real: &Real) {
    let output = real.run("report shop --file shop.tar.gz").await.well();
    assert!(output.contains("Secrets are redacted"), "{output}");
    let file = std::fs::File::open(real.folder.path().join("shop.tar.gz")).unwrap();
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(file));
    let names: Vec<String> = archive
        .entries()
        .unwrap()
        .map(|entry| entry.unwrap().path().unwrap().display().to_string())
        .collect();
    for part in [
        "status.txt",
        "objects/ValkeyCluster-shop.yaml",
        "events.txt",
        "servers/1-1.txt",
        "operator.log",
        "server.log",
    ] {
        assert!(
            names.iter().any(|name| name.ends_with(part)),
            "{part} is missing: {names:?}"
        );
    }
}

/// Without an operator, every answer says so, and since when.
async fn needs_an_operator(real: &Real) {
    real.operators(0).await;
    let gone = async {
        loop {
            let output = real.run("status").await.well();
            if output.contains("No operator has been alive for ") {
                return output;
            }
        }
    };
    let gone = tokio::time::timeout(crate::runner::PATIENCE, gone).await;
    let gone = gone.expect("the lease is given back in time");
    assert!(gone.contains("(lease candor/candor-operator, "), "{gone}");
    let one = real.run("status shop --conditions").await.well();
    assert!(one.contains("No operator has been alive for "), "{one}");
    assert!(one.contains("When last seen, ") && one.contains("Ready for "), "{one}");
    let refused = real.run("failover shop --shard 1").await.badly();
    assert!(refused.contains("candor doctor"), "{refused}");
    let doctor = real.run("doctor").await;
    assert!(!doctor.fine && doctor.out.contains("No operator"), "{doctor:?}");
}

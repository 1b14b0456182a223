//! A rolling update is reported as what it is: no status and no event of it reads like a fault.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use candor_api::ValkeyCluster;
use candor_api::valkey::status::{OperationKind, State};
use futures::TryStreamExt;
use kube::runtime::watcher;
use serde_json::json;
use tokio::task::JoinHandle;

use crate::events;
use crate::support::{Operator, Stage};

/// What is wrong with a status during a rolling update.
fn wrong(cluster: &ValkeyCluster) -> Option<String> {
    let status = cluster.status.as_ref()?;
    let kind = status.operation.as_ref().map(|operation| operation.kind);
    let planned = matches!(kind, None | Some(OperationKind::Roll | OperationKind::Configure));
    let degraded = status.conditions.iter().any(|one| one.type_ == "Degraded");
    let fine = planned && !degraded && matches!(status.state, Some(State::Ready | State::Reconciling));
    (!fine).then(|| format!("{:?} {kind:?}: {}", status.state, status.message))
}

/// What is wrong, and all messages.
type Found = Arc<Mutex<(BTreeSet<String>, BTreeSet<String>)>>;

/// Collects what is wrong with any status that is written from now on, and all messages.
fn follow(stage: &Stage) -> (JoinHandle<()>, Found) {
    let found = Found::default();
    let (api, observation) = (stage.clusters("default"), found.clone());
    let task = tokio::spawn(async move {
        let mut changes = std::pin::pin!(watcher::watcher(api, watcher::Config::default()));
        while let Ok(Some(change)) = changes.try_next().await {
            if let watcher::Event::Apply(cluster) | watcher::Event::InitApply(cluster) = change {
                let mut observation = observation.lock().unwrap();
                observation.0.extend(wrong(&cluster));
                observation.1.extend(cluster.status.map(|status| status.message));
            }
        }
    });
    (task, found)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_update_never_reads_like_a_fault() {
    let kept = json!({"size": "1Gi"});
    let table = [
        (json!({"shards": 3, "replicas": 1}), false),
        (json!({"shards": 1, "replicas": 2}), false),
        (json!({"shards": 3, "replicas": 1, "persistence": kept}), false),
        // Every shard is down while its only member restarts.
        (json!({"shards": 3, "replicas": 0, "persistence": kept}), true),
    ];
    for (spec, down) in table {
        let stage = Stage::set().await;
        let operator = Operator::start(stage.client());
        stage.create("cart", spec.clone()).await;
        stage.ready("cart").await;
        let (task, found) = follow(&stage);
        stage.change("cart", json!({"image": "valkey/valkey:9.1.3"})).await;
        stage.ready("cart").await;
        task.abort();
        let (wrong, messages) = found.lock().unwrap().clone();
        assert_eq!(wrong, BTreeSet::new(), "{spec}");
        let restarting = messages
            .iter()
            .any(|message| message.contains("is restarting (planned)"));
        assert_eq!(restarting, down, "{spec}: {messages:?}");
        for reason in ["PrimaryLost", "ReplicaLost", "QuorumLost", "DataLost"] {
            assert_eq!(events(&stage, reason).await, [] as [String; 0], "{spec}");
        }
        operator.end().await;
    }
}

//! Commands that servers reject: what Robin fails to do is in the status that the operator writes.

use serde_json::json;
use valkey_sim::InjectedReply;

use super::{replicated, spec};
use crate::support::redkey::{NAME, Redkey};
use crate::support::{Operator, Stage};

fn not_today() -> InjectedReply {
    InjectedReply::Reject("ERR not today".to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_requested_failover_that_servers_reject_fails_and_is_reported() {
    let stage = Stage::set().await;
    let cluster = Redkey(&stage);
    let operator = Operator::start(stage.client());
    cluster.create(replicated()).await;
    cluster.ready().await;
    let status = cluster.status().await;
    let shard = status.topology.iter().find(|shard| shard.shard == 1).unwrap();
    let primary = shard.members.iter().find(|one| one.is_primary).unwrap();
    stage.world.inject("CLUSTER FAILOVER", not_today());
    cluster
        .annotate("redkey.inditex.dev/failover", &format!("1/{}", primary.node_id))
        .await;
    let answered = async || {
        let annotations = stage.redkey_clusters().get(NAME).await.unwrap().metadata.annotations;
        annotations.is_none_or(|all| !all.contains_key("redkey.inditex.dev/failover"))
    };
    cluster.until("answered", answered).await;
    let condition = async || {
        let events = cluster.events("FailoverFailed").await;
        events
            .iter()
            .any(|one| one.contains("servers rejected it 5 times: ") && one.contains("not today"))
    };
    cluster.until("reported", condition).await;
    cluster.ready().await;
    operator.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slots_that_robin_cannot_move_are_reported_until_it_can() {
    let stage = Stage::set().await;
    let cluster = Redkey(&stage);
    let operator = Operator::start(stage.client());
    cluster.create(spec(2, false)).await;
    cluster.ready().await;
    let keys = cluster.write_keys().await;
    stage.world.inject("CLUSTER SETSLOT", not_today());
    cluster.change(json!({"primaries": 3})).await;
    let reported = async || {
        let status = cluster.status().await;
        let failed = status.operation.as_ref().is_some_and(|running| running.attempts > 0);
        let ready = status.conditions.iter().find(|one| one.type_ == "Ready");
        failed && ready.is_some_and(|ready| ready.reason == "RebalanceFailed" && ready.message.contains("not today"))
    };
    cluster.until("reported", reported).await;
    let condition = async || !cluster.events("SlotRebalanceFailed").await.is_empty();
    cluster.until("an event", condition).await;
    stage.world.clear_injected();
    cluster.ready().await;
    assert_eq!(cluster.keys(), keys);
    assert_eq!(cluster.owners().len(), 3);
    operator.end().await;
}

//! What people do to the objects and servers of a cluster.

use std::time::Duration;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::api::{DeleteParams, Patch, PatchParams, PropagationPolicy};
use kube::{Api, ResourceExt};
use serde_json::json;

use super::{send, spec};
use crate::support::redkey::{NAME, Redkey};
use crate::support::{Operator, Stage};

fn sets(stage: &Stage) -> Api<StatefulSet> {
    Api::namespaced(stage.client(), "default")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_set_deleted_without_its_pods_in_mid_scaling_comes_back_and_takes_them() {
    let stage = Stage::set().await;
    let cluster = Redkey(&stage);
    let operator = Operator::start(stage.client());
    cluster.create(spec(3, false)).await;
    cluster.ready().await;
    let keys = cluster.write_keys().await;
    let before: Vec<_> = cluster.pods().await.iter().map(ResourceExt::uid).collect();
    cluster.change(json!({"primaries": 5})).await;
    cluster.row("ScalingUp/PodScaling").await;
    let orphan = DeleteParams {
        propagation_policy: Some(PropagationPolicy::Orphan),
        ..DeleteParams::default()
    };
    sets(&stage).delete(NAME, &orphan).await.unwrap();
    cluster.ready().await;
    assert_eq!(cluster.keys(), keys);
    assert_eq!(cluster.owners().len(), 5);
    let after: Vec<_> = cluster.pods().await.iter().map(ResourceExt::uid).collect();
    assert!(before.iter().all(|uid| after.contains(uid)), "no pod was replaced");
    operator.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_image_edited_in_the_set_of_a_purging_cluster_is_reverted_and_purges_nothing() {
    let stage = Stage::set().await;
    let cluster = Redkey(&stage);
    let operator = Operator::start(stage.client());
    cluster.create(spec(2, true)).await;
    cluster.ready().await;
    let keys = cluster.write_keys().await;
    let pods: Vec<_> = cluster.pods().await.iter().map(ResourceExt::uid).collect();
    let edit = json!({"spec": {"template": {"spec": {"containers": [{"name": "redis", "image": "redis:7.0"}]}}}});
    let how = PatchParams::default();
    sets(&stage).patch(NAME, &how, &Patch::Strategic(edit)).await.unwrap();
    let image = async || {
        let set = sets(&stage).get(NAME).await.unwrap();
        let containers = set.spec.unwrap().template.spec.unwrap().containers;
        containers.into_iter().find(|one| one.name == "redis")?.image
    };
    cluster
        .until("reverted", async || image().await.as_deref() == Some("redis:8.0"))
        .await;
    cluster.ready().await;
    assert_eq!(cluster.keys(), keys, "nothing is purged");
    let after: Vec<_> = cluster.pods().await.iter().map(ResourceExt::uid).collect();
    assert_eq!(after, pods, "no pod was replaced");
    operator.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fast_upgrade_to_an_image_that_does_not_exist_keeps_every_key() {
    let stage = Stage::set().await;
    let cluster = Redkey(&stage);
    let operator = Operator::start(stage.client());
    cluster.create(spec(2, true)).await;
    cluster.ready().await;
    let keys = cluster.write_keys().await;
    cluster.change(json!({"image": "redis:no-such"})).await;
    let reported = async || {
        let ready = cluster.condition("Ready").await;
        ready.is_some_and(|ready| ready.status == "False" && ready.message.contains("redis:no-such"))
    };
    cluster.until("reported", reported).await;
    assert_eq!(cluster.keys(), keys);
    assert_eq!(cluster.owners().len(), 2);
    cluster.change(json!({"image": "redis:8.0"})).await;
    cluster.ready().await;
    assert_eq!(cluster.keys(), keys, "the image is as it was: nothing to upgrade");
    operator.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_uncovered_slot_is_reported_within_a_second() {
    let stage = Stage::set().await;
    let cluster = Redkey(&stage);
    let operator = Operator::start(stage.client());
    cluster.create(spec(3, false)).await;
    cluster.ready().await;
    // Right after a change servers are asked more often.
    let idle = async || {
        let ready = cluster.condition("Ready").await.unwrap();
        Timestamp::now().duration_since(ready.last_transition_time.0) > SignedDuration::from_secs(3)
    };
    cluster.until("idle", idle).await;
    let owner = cluster.servers().await[&0];
    let slot = stage
        .world
        .inspect(owner, |node| node.map.slots.iter().next().unwrap())
        .unwrap();
    for ip in cluster.servers().await.into_values() {
        let slot = slot.get().to_string();
        send(ip, &["CLUSTER", "DELSLOTSRANGE", &slot, &slot]).await;
    }
    // A second in pauses of this task: where the machine is busy, the operator has as little of it as the test.
    let mut pauses = 0;
    while cluster.says("Ready", "True").await {
        assert!(pauses < 100, "Ready for a second");
        tokio::time::sleep(Duration::from_millis(10)).await;
        pauses += 1;
    }
    cluster.ready().await;
    operator.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_that_a_user_demoted_is_promoted_again() {
    let stage = Stage::set().await;
    let cluster = Redkey(&stage);
    let operator = Operator::start(stage.client());
    cluster.create(spec(3, false)).await;
    cluster.ready().await;
    let servers = cluster.servers().await;
    let primary = stage.world.inspect(servers[&1], |node| node.map.id).unwrap();
    let owned = stage
        .world
        .inspect(servers[&0], |node| node.map.slots.ranges())
        .unwrap();
    for range in owned {
        let (first, last) = (range.first().to_string(), range.last().to_string());
        send(servers[&0], &["CLUSTER", "DELSLOTSRANGE", &first, &last]).await;
    }
    send(servers[&0], &["CLUSTER", "REPLICATE", &primary.to_string()]).await;
    cluster
        .until("not Ready", async || !cluster.says("Ready", "True").await)
        .await;
    cluster.ready().await;
    assert_eq!(cluster.owners().len(), 3);
    operator.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_valkey_cluster_of_the_same_name_lives_beside_it() {
    let stage = Stage::set().await;
    let cluster = Redkey(&stage);
    let operator = Operator::start(stage.client());
    cluster.create(spec(2, false)).await;
    stage.create(NAME, json!({"shards": 2, "replicas": 0})).await;
    cluster.ready().await;
    stage.ready(NAME).await;
    let keys = cluster.write_keys().await;
    stage
        .clusters("default")
        .delete(NAME, &DeleteParams::default())
        .await
        .unwrap();
    let gone = async || stage.clusters("default").get_opt(NAME).await.unwrap().is_none();
    cluster.until("gone", gone).await;
    cluster.ready().await;
    assert_eq!(cluster.keys(), keys);
    assert_eq!(cluster.owners().len(), 2);
    operator.end().await;
}

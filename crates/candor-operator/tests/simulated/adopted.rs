//! Clusters of the existing operator of `RedkeyCluster`: left alone while it runs, taken over when it has ended. Their
//! servers do not run here: what is written to Kubernetes is what counts.

use std::time::{Duration, Instant};

use candor_api::RedkeyCluster;
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Resource, ResourceExt};
use serde_json::{Value, json};

use crate::support::{Operator, Stage};

const PATIENCE: Duration = Duration::from_secs(30);
const LEASE: &str = "db95d8a6.inditex.dev";

fn clusters(stage: &Stage) -> Api<RedkeyCluster> {
    Api::default_namespaced(stage.client())
}

fn sets(stage: &Stage) -> Api<StatefulSet> {
    Api::default_namespaced(stage.client())
}

fn robins(stage: &Stage) -> Api<Deployment> {
    Api::default_namespaced(stage.client())
}

async fn create(stage: &Stage, name: &str) -> RedkeyCluster {
    let cluster = json!({"apiVersion": "redkey.inditex.dev/v1", "kind": "RedkeyCluster", "metadata": {"name": name},
        "spec": {"primaries": 3, "image": "redis:8"}});
    let cluster = serde_json::from_value(cluster).unwrap();
    clusters(stage).create(&PostParams::default(), &cluster).await.unwrap()
}

/// The objects that the existing operator has made for a cluster.
async fn left_behind(stage: &Stage, name: &str, owners: Value, manager: &str) {
    let params = PostParams {
        field_manager: Some(manager.to_owned()),
        ..PostParams::default()
    };
    let labels =
        |component: &str| json!({"redkey-cluster-name": name, "redis.redkeycluster.operator/component": component});
    let pod = |container: &str| {
        json!({"metadata": {"labels": labels(container)},
        "spec": {"containers": [{"name": container, "image": "redis:8"}]}})
    };
    let set = json!({"metadata": {"name": name, "labels": labels("redis"), "ownerReferences": owners},
        "spec": {"replicas": 3, "serviceName": name, "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": labels("redis")}, "template": pod("redis"),
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}}});
    let set = serde_json::from_value(set).unwrap();
    sets(stage).create(&params, &set).await.unwrap();
    let robin = json!({"metadata": {"name": format!("{name}-robin"), "labels": labels("robin"), "ownerReferences": owners},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels("robin")}, "template": pod("robin")}});
    let robin = serde_json::from_value(robin).unwrap();
    robins(stage).create(&params, &robin).await.unwrap();
}

/// Renews the Lease of the existing operator, or gives it up.
async fn lease(stage: &Stage, holder: &str) {
    let api: Api<Lease> = Api::namespaced(stage.client(), "kube-system");
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": LEASE},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 60, "renewTime": MicroTime(Timestamp::now())}});
    let params = PatchParams::apply("manager").force();
    api.patch(LEASE, &params, &Patch::Apply(lease)).await.unwrap();
}

async fn until(stage: &Stage, name: &str, what: &str, so: impl Fn(&RedkeyCluster) -> bool) {
    let begun = Instant::now();
    loop {
        let cluster = clusters(stage).get(name).await.unwrap();
        if so(&cluster) {
            return;
        }
        let status = serde_json::to_string_pretty(&cluster.status).unwrap();
        assert!(begun.elapsed() < PATIENCE, "{name} not {what}: {status}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn reports(cluster: &RedkeyCluster, reason: &str, expected: &str) -> bool {
    let mut conditions = cluster.status.iter().flat_map(|status| &status.conditions);
    conditions.any(|one| one.reason == reason && one.message.contains(expected))
}

async fn strategy(stage: &Stage, name: &str) -> Value {
    json!(sets(stage).get(name).await.unwrap())["spec"]["updateStrategy"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_is_taken_over_when_the_existing_operator_has_ended() {
    let stage = Stage::set().await;
    lease(&stage, "redkey-operator-0").await;
    let operator = Operator::start(stage.client());
    let cluster = create(&stage, "old").await;
    left_behind(
        &stage,
        "old",
        json!([cluster.controller_owner_ref(&()).unwrap()]),
        "test",
    )
    .await;
    create(&stage, "new").await;
    let holds = "redkey-operator-0 holds the lease kube-system/db95d8a6.inditex.dev";
    for name in ["old", "new"] {
        until(&stage, name, "left alone", |one| {
            reports(one, "OtherOperatorActive", holds)
        })
        .await;
    }
    let before = sets(&stage).get("old").await.unwrap();
    let robin = robins(&stage).get("old-robin").await.unwrap();
    assert_eq!(strategy(&stage, "old").await["rollingUpdate"]["partition"], 2);
    assert!(before.annotations().is_empty());
    assert!(
        sets(&stage).get_opt("new").await.unwrap().is_none(),
        "nothing is created"
    );
    let configs: Api<ConfigMap> = Api::default_namespaced(stage.client());
    assert!(configs.get_opt("old").await.unwrap().is_none());

    lease(&stage, "").await;
    let begun = Instant::now();
    while robins(&stage)
        .get_opt("old-robin")
        .await
        .unwrap()
        .is_none_or(|now| now.uid() == robin.uid())
    {
        assert!(begun.elapsed() < PATIENCE, "the old Robin is still there");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let after = sets(&stage).get("old").await.unwrap();
    assert_eq!(after.uid(), before.uid());
    assert_eq!(strategy(&stage, "old").await, json!({"type": "OnDelete"}));
    let template = |set: &StatefulSet| set.spec.as_ref().unwrap().template.clone();
    assert_eq!(template(&after), template(&before), "its template is kept");
    until(&stage, "old", "taken over", |one| {
        !reports(one, "OtherOperatorActive", "")
    })
    .await;
    let cluster = clusters(&stage).get("old").await.unwrap();
    assert_eq!(cluster.finalizers(), [""; 0], "the way back is open");
    operator.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recent_write_of_the_existing_operator_counts_as_a_sign_of_it() {
    let stage = Stage::set().await;
    let cluster = create(&stage, "cache").await;
    left_behind(
        &stage,
        "cache",
        json!([cluster.controller_owner_ref(&()).unwrap()]),
        "manager",
    )
    .await;
    let operator = Operator::start(stage.client());
    let expected = "has written to StatefulSet cache";
    until(&stage, "cache", "left alone", |one| {
        reports(one, "OtherOperatorActive", expected)
    })
    .await;
    assert_eq!(strategy(&stage, "cache").await["type"], "RollingUpdate");
    operator.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statefulset_of_another_controller_is_never_taken_over() {
    let stage = Stage::set().await;
    let owners = json!([{"apiVersion": "helm.example/v1", "kind": "Release", "name": "web", "uid": "7",
        "controller": true}]);
    left_behind(&stage, "cache", owners, "test").await;
    let before = sets(&stage).get("cache").await.unwrap();
    let operator = Operator::start(stage.client());
    create(&stage, "cache").await;
    let expected = "StatefulSet cache belongs to Release web";
    until(&stage, "cache", "refused", |one| reports(one, "WriteFailed", expected)).await;
    let after = sets(&stage).get("cache").await.unwrap();
    assert_eq!(after.spec, before.spec);
    assert_eq!(after.metadata.annotations, before.metadata.annotations);
    operator.end().await;
}

//! Deployments, `ReplicaSets` and `StatefulSets` on a running API server, with the pods' states set by hand.

use k8s_openapi::api::apps::v1::{ControllerRevision, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{ConfigMap, Event, PersistentVolumeClaim, Pod, Service};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::ResourceExt;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;

use crate::world::{self, World};

#[tokio::test]
async fn a_deployment_gets_a_replica_set_and_pods_within_milliseconds() {
    let world = World::start().await;
    let started = std::time::Instant::now();
    world.create::<Deployment>(world::deployment("web", 3, "a:1")).await;
    let pods = world.eventually("three pods", async || {
        let pods = world.list::<Pod>("").await;
        (pods.len() == 3).then_some(pods)
    });
    let pods = pods.await;
    assert!(started.elapsed().as_millis() < 2000, "took {:?}", started.elapsed());
    let sets = world.list::<ReplicaSet>("").await;
    assert_eq!(sets.len(), 1);
    let hash = &sets[0].labels()["pod-template-hash"];
    assert_eq!(sets[0].name_any(), format!("web-{hash}"));
    for pod in &pods {
        assert!(pod.name_any().starts_with(&format!("web-{hash}-")));
        assert_eq!(&pod.labels()["pod-template-hash"], hash);
        assert_eq!(pod.owner_references()[0].uid, sets[0].uid().unwrap());
    }
}

#[tokio::test]
async fn a_rollout_becomes_available_and_the_next_one_replaces_it() {
    let world = World::start().await;
    world.create::<Deployment>(world::deployment("web", 2, "a:1")).await;
    world.keep_pods_ready();
    let done = |d: &Deployment, revision: &str| {
        let status = d.status.clone().unwrap_or_default();
        status.available_replicas == Some(2)
            && status.updated_replicas == Some(2)
            && status.replicas == Some(2)
            && d.annotations()
                .get("deployment.kubernetes.io/revision")
                .map(String::as_str)
                == Some(revision)
            && status
                .conditions
                .unwrap_or_default()
                .iter()
                .any(|c| c.reason.as_deref() == Some("NewReplicaSetAvailable"))
    };
    world
        .until::<Deployment>("web", "the first rollout", |d| done(d, "1"))
        .await;
    let patch = json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "a:2"}]}}}});
    let api = world.api::<Deployment>();
    api.patch("web", &PatchParams::default(), &Patch::Merge(patch))
        .await
        .unwrap();
    world
        .until::<Deployment>("web", "the second rollout", |d| done(d, "2"))
        .await;
    let pods = world.list::<Pod>("").await;
    let images: Vec<_> = pods
        .iter()
        .map(|pod| pod.spec.as_ref().unwrap().containers[0].image.clone())
        .collect();
    assert_eq!(images, [Some("a:2".into()), Some("a:2".into())]);
    let events = world.eventually("the events of the rollout", async || {
        let events = world.list::<Event>("involvedObject.kind=Deployment").await;
        (events.len() >= 4).then_some(events)
    });
    let messages: Vec<_> = events.await.into_iter().filter_map(|event| event.message).collect();
    assert!(
        messages
            .iter()
            .any(|word| word.starts_with("Scaled up replica set web-") && word.ends_with("from 0 to 2"))
    );
    assert!(
        messages
            .iter()
            .any(|word| word.starts_with("Scaled down replica set web-") && word.ends_with("from 1 to 0"))
    );
}

#[tokio::test]
async fn a_stateful_set_makes_its_pods_in_order_and_rolls_them_from_the_top() {
    let world = World::start().await;
    world.create::<StatefulSet>(world::stateful_set("db", 3, "a:1")).await;
    let first = world.eventually("the first pod", async || {
        let pods = world.list::<Pod>("").await;
        (!pods.is_empty()).then_some(pods)
    });
    let first = first.await;
    assert_eq!(first.len(), 1, "the second waits for the first");
    assert_eq!(first[0].name_any(), "db-0");
    assert_eq!(first[0].spec.as_ref().unwrap().hostname.as_deref(), Some("db-0"));
    world.keep_pods_ready();
    let ready = |set: &StatefulSet| {
        let status = set.status.clone().unwrap_or_default();
        status.ready_replicas == Some(3)
            && status.updated_replicas == Some(3)
            && status.current_revision == status.update_revision
            && status.observed_generation == set.metadata.generation
    };
    world.until::<StatefulSet>("db", "three ready pods", ready).await;
    let claims = world.list::<PersistentVolumeClaim>("").await;
    let names: Vec<_> = claims.iter().map(ResourceExt::name_any).collect();
    assert_eq!(names, ["data-db-0", "data-db-1", "data-db-2"]);

    let patch = json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "a:2"}]}}}});
    let api = world.api::<StatefulSet>();
    api.patch("db", &PatchParams::default(), &Patch::Merge(patch))
        .await
        .unwrap();
    world.until::<StatefulSet>("db", "the rollout", ready).await;
    assert_eq!(world.list::<ControllerRevision>("").await.len(), 2);
    let pods = world.api::<Pod>().list(&ListParams::default()).await.unwrap();
    assert!(
        pods.iter()
            .all(|pod| pod.spec.as_ref().unwrap().containers[0].image.as_deref() == Some("a:2"))
    );

    let patch = json!({"spec": {"replicas": 1}});
    api.patch("db", &PatchParams::default(), &Patch::Merge(patch))
        .await
        .unwrap();
    world
        .eventually("one pod left", async || {
            let pods = world.list::<Pod>("").await;
            (pods.len() == 1 && pods[0].name_any() == "db-0").then_some(())
        })
        .await;
}

/// Thirty writes of the test in a row without a write of a controller between them. A controller that rewrites what is
/// already true would break every such row.
#[tokio::test]
async fn a_settled_cluster_writes_nothing() {
    let world = World::start().await;
    world.create::<Deployment>(world::deployment("web", 2, "a:1")).await;
    world.create::<StatefulSet>(world::stateful_set("db", 2, "a:1")).await;
    world
        .create::<Service>(
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}}),
        )
        .await;
    world
        .create::<PodDisruptionBudget>(json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "web"}, "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}}}))
        .await;
    world.keep_pods_ready();
    world
        .until::<StatefulSet>("db", "two ready pods", |set| {
            set.status
                .as_ref()
                .is_some_and(|status| status.ready_replicas == Some(2))
        })
        .await;
    let (mut row, mut last, mut number) = (0, 0, 0);
    world
        .eventually("thirty writes that no controller answers", async || {
            number += 1;
            let map: ConfigMap = world
                .create(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("m{number}")}}))
                .await;
            let revision: u64 = map.resource_version().unwrap().parse().unwrap();
            row = if revision == last + 1 { row + 1 } else { 0 };
            last = revision;
            (row == 30).then_some(())
        })
        .await;
}

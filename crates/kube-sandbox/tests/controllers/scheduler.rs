//! The scheduler on a running API server.

use k8s_openapi::api::core::v1::{Event, Node, Pod};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::world::World;

async fn node(world: &World, name: &str, cpu: &str) {
    let node: Node = world
        .create_cluster(json!({"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}}))
        .await;
    let status = json!({"status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "110"},
        "conditions": [{"type": "Ready", "status": "True"}]}});
    let api: Api<Node> = Api::all(world.client.clone());
    api.patch_status(&node.name_any(), &PatchParams::default(), &Patch::Merge(status))
        .await
        .unwrap();
}

fn pod(name: &str, cpu: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "a", "resources": {"requests": {"cpu": cpu}}}]}})
}

fn bound(pod: &Pod) -> bool {
    pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some())
}

#[tokio::test]
async fn a_pod_is_bound_and_one_that_does_not_fit_waits_for_room() {
    let world = World::without_nodes().await;
    node(&world, "n1", "2").await;
    world.create::<Pod>(pod("first", "1500m")).await;
    let first = world.until::<Pod>("first", "the first pod to be bound", bound).await;
    assert_eq!(first.spec.unwrap().node_name.as_deref(), Some("n1"));
    let scheduled = first.status.unwrap().conditions.unwrap_or_default();
    assert!(
        scheduled
            .iter()
            .any(|c| c.type_ == "PodScheduled" && c.status == "True"),
        "{scheduled:?}"
    );

    world.create::<Pod>(pod("second", "1")).await;
    let rejected = world.until::<Pod>("second", "the condition Unschedulable", |pod| {
        let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
        conditions.is_some_and(|all| all.iter().any(|c| c.reason.as_deref() == Some("Unschedulable")))
    });
    let conditions = rejected.await.status.unwrap().conditions.unwrap();
    let message = conditions
        .iter()
        .find(|c| c.type_ == "PodScheduled")
        .unwrap()
        .message
        .clone()
        .unwrap();
    assert_eq!(
        message,
        "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: 0/1 nodes are available: \
         1 No preemption victims found for incoming pod."
    );
    let events = world.eventually("the event", async || {
        let events = world.list::<Event>("involvedObject.name=second").await;
        events
            .into_iter()
            .find(|event| event.reason.as_deref() == Some("FailedScheduling"))
    });
    let event = events.await;
    assert_eq!(event.message.as_deref(), Some(message.as_str()));
    assert_eq!(event.reporting_component.as_deref(), Some("default-scheduler"));

    let now = DeleteParams {
        grace_period_seconds: Some(0),
        ..DeleteParams::default()
    };
    world.api::<Pod>().delete("first", &now).await.unwrap();
    world
        .until::<Pod>("second", "the second pod to take the room", bound)
        .await;
}

#[tokio::test]
async fn a_new_node_gets_the_pods_that_waited_for_one() {
    let world = World::without_nodes().await;
    world.create::<Pod>(pod("early", "1")).await;
    world
        .until::<Pod>("early", "the condition Unschedulable", |pod| {
            let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
            conditions.is_some_and(|all| {
                all.iter()
                    .any(|c| c.message.as_deref() == Some("no nodes available to schedule pods"))
            })
        })
        .await;
    node(&world, "n1", "2").await;
    world.until::<Pod>("early", "the binding", bound).await;
}

#[tokio::test]
async fn a_hundred_pods_are_spread_and_bound_quickly() {
    let world = World::without_nodes().await;
    for name in ["n1", "n2", "n3", "n4"] {
        node(&world, name, "64").await;
    }
    let started = std::time::Instant::now();
    let creates = (0..100).map(|number| world.create::<Pod>(pod(&format!("p{number}"), "10m")));
    futures::future::join_all(creates).await;
    world
        .eventually("a hundred bound pods", async || {
            let pods = world.list::<Pod>("").await;
            pods.iter().all(bound).then_some(())
        })
        .await;
    eprintln!("a hundred pods bound in {:?}", started.elapsed());
    let mut counts = std::collections::BTreeMap::new();
    for pod in world.list::<Pod>("").await {
        *counts.entry(pod.spec.unwrap().node_name.unwrap()).or_insert(0) += 1;
    }
    assert!(counts.values().all(|count| *count == 25), "{counts:?}");
}

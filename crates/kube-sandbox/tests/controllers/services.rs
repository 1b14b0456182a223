//! Endpoints, slices and disruption budgets of a workload.

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{Endpoints, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::ResourceExt;
use kube::api::{DeleteParams, EvictParams};
use serde_json::{Value, json};

use crate::world::{self, World};

fn service(name: &str, more: &Value) -> Value {
    let mut value = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": 8080}]}});
    json_patch::merge(&mut value, more);
    value
}

fn addresses(endpoints: &Endpoints) -> (usize, usize) {
    let subsets = endpoints.subsets.as_deref().unwrap_or_default();
    let ready = subsets
        .iter()
        .map(|subset| subset.addresses.as_ref().map_or(0, Vec::len))
        .sum();
    let unready = subsets
        .iter()
        .map(|subset| subset.not_ready_addresses.as_ref().map_or(0, Vec::len))
        .sum();
    (ready, unready)
}

#[tokio::test]
async fn endpoints_follow_readiness_and_go_with_the_service() {
    let world = World::start().await;
    world
        .create::<Service>(service("db", &json!({"spec": {"clusterIP": "None"}})))
        .await;
    world.create::<StatefulSet>(world::stateful_set("db", 2, "a")).await;
    world
        .until::<Endpoints>("db", "empty endpoints", |endpoints| addresses(endpoints) == (0, 0))
        .await;
    world.keep_pods_ready();
    let both = world
        .until::<Endpoints>("db", "two addresses", |endpoints| addresses(endpoints) == (2, 0))
        .await;
    let first = &both.subsets.unwrap()[0];
    let names: Vec<_> = first
        .addresses
        .iter()
        .flatten()
        .filter_map(|a| a.hostname.clone())
        .collect();
    assert_eq!(
        {
            let mut names = names;
            names.sort();
            names
        },
        ["db-0", "db-1"]
    );
    assert_eq!(first.ports.as_ref().unwrap()[0].port, 8080);

    world::set_ready(&world.api::<Pod>(), "db-1", false).await;
    world
        .until::<Endpoints>("db", "one of them unready", |endpoints| addresses(endpoints) == (1, 1))
        .await;
    let slices = world.eventually("a slice that says the same", async || {
        let slices = world.list::<EndpointSlice>("").await;
        let ours = slices.into_iter().find(|slice| {
            slice
                .labels()
                .get("kubernetes.io/service-name")
                .is_some_and(|n| n == "db")
        })?;
        let ready = |slice: &EndpointSlice| {
            let all = slice
                .endpoints
                .iter()
                .filter(|e| e.conditions.as_ref().is_some_and(|c| c.ready == Some(true)));
            all.count()
        };
        (ours.endpoints.len() == 2 && ready(&ours) == 1).then_some(ours)
    });
    let slice = slices.await;
    assert_eq!(slice.address_type, "IPv4");
    assert!(slice.name_any().starts_with("db-"));

    world
        .api::<Service>()
        .delete("db", &DeleteParams::default())
        .await
        .unwrap();
    world
        .eventually("endpoints and slices to go", async || {
            let slices = world.list::<EndpointSlice>("").await;
            let endpoints = world.api::<Endpoints>().get_opt("db").await.unwrap();
            (endpoints.is_none() && slices.iter().all(|slice| slice.name_any() == "kubernetes")).then_some(())
        })
        .await;
}

#[tokio::test]
async fn a_budget_allows_one_eviction_and_rejects_the_next() {
    let world = World::start().await;
    world
        .create::<PodDisruptionBudget>(json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "web"}, "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}}}))
        .await;
    world.create::<Deployment>(world::deployment("web", 3, "a")).await;
    let pods = world.eventually("three pods", async || {
        let pods = world.list::<Pod>("").await;
        (pods.len() == 3).then_some(pods)
    });
    for pod in pods.await {
        world::make_ready(&world.api::<Pod>(), &pod.name_any()).await;
    }
    let allows = world.until::<PodDisruptionBudget>("web", "one disruption", |budget| {
        budget
            .status
            .as_ref()
            .is_some_and(|status| status.disruptions_allowed == 1)
    });
    let status = allows.await.status.unwrap();
    assert_eq!(
        (status.expected_pods, status.desired_healthy, status.current_healthy),
        (3, 2, 3)
    );
    assert_eq!(status.conditions.unwrap()[0].reason, "SufficientPods");

    let pods = world.list::<Pod>("").await;
    let api = world.api::<Pod>();
    api.evict(&pods[0].name_any(), &EvictParams::default()).await.unwrap();
    let rejected = api
        .evict(&pods[1].name_any(), &EvictParams::default())
        .await
        .unwrap_err();
    let kube::Error::Api(status) = rejected else {
        panic!("{rejected:?}")
    };
    assert_eq!(status.code, 429);
    assert_eq!(
        status.message,
        "Cannot evict pod as it would violate the pod's disruption budget."
    );
    world
        .until::<PodDisruptionBudget>("web", "no disruption", |budget| {
            budget.status.as_ref().is_some_and(|status| {
                status.disruptions_allowed == 0
                    && status
                        .conditions
                        .iter()
                        .flatten()
                        .any(|c| c.reason == "InsufficientPods")
            })
        })
        .await;
}

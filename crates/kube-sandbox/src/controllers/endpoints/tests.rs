//! Services and pods in, endpoints out.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use serde_json::{Value, json};

use super::members::members;
use super::{slices, subsets};

fn service(more: &Value) -> Service {
    let mut value = json!({"metadata": {"name": "web", "namespace": "n", "uid": "s", "labels": {"team": "red"}},
        "spec": {"selector": {"app": "web"}, "clusterIP": "10.96.0.9",
            "ports": [{"name": "http", "port": 80, "targetPort": "web", "protocol": "TCP"}]}});
    json_patch::merge(&mut value, more);
    serde_json::from_value(value).unwrap()
}

fn pod(number: u32, state: &str, port: i32) -> Arc<Pod> {
    let name = format!("web-{number}");
    let ready = if state == "unready" { "False" } else { "True" };
    let phase = if state == "ended" { "Succeeded" } else { "Running" };
    let ip = (state != "starting").then(|| format!("10.0.{}.{}", number / 250, number % 250));
    Arc::new(
        serde_json::from_value(json!({
            "metadata": {"name": name, "namespace": "n", "uid": name, "labels": {"app": "web"},
                "deletionTimestamp": (state == "leaving").then_some("2026-01-01T00:00:00Z")},
            "spec": {"nodeName": "n1", "hostname": name, "subdomain": "web",
                "containers": [{"name": "c", "ports": [{"name": "web", "containerPort": port}]}]},
            "status": {"phase": phase, "podIP": ip, "conditions": [{"type": "Ready", "status": ready}]}}))
        .unwrap(),
    )
}

fn old_form(service: &Service, pods: &[Arc<Pod>]) -> Value {
    serde_json::to_value(subsets::endpoints(service, &members(service, pods)).subsets).unwrap()
}

fn plan(service: &Service, pods: &[Arc<Pod>], existing: &[Arc<EndpointSlice>]) -> slices::Plan {
    slices::plan(service, &members(service, pods), existing, &|_| None)
}

#[test]
fn ready_pods_are_addresses_and_unready_ones_are_named_apart() {
    let pods = [
        pod(1, "ready", 8080),
        pod(2, "unready", 8080),
        pod(3, "leaving", 8080),
        pod(4, "ended", 8080),
        pod(5, "starting", 8080),
    ];
    let subsets = old_form(&service(&json!({})), &pods);
    assert_eq!(subsets.as_array().unwrap().len(), 1);
    assert_eq!(subsets[0]["addresses"].as_array().unwrap().len(), 1);
    assert_eq!(subsets[0]["addresses"][0]["ip"], "10.0.0.1");
    assert_eq!(subsets[0]["addresses"][0]["hostname"], "web-1");
    assert_eq!(subsets[0]["addresses"][0]["targetRef"]["name"], "web-1");
    assert_eq!(subsets[0]["notReadyAddresses"][0]["ip"], "10.0.0.2");
    assert_eq!(
        subsets[0]["ports"],
        json!([{"name": "http", "port": 8080, "protocol": "TCP"}])
    );
}

#[test]
fn publish_not_ready_addresses_counts_everyone() {
    let eager = service(&json!({"spec": {"publishNotReadyAddresses": true}}));
    let pods = [pod(1, "ready", 8080), pod(2, "unready", 8080), pod(3, "leaving", 8080)];
    let subsets = old_form(&eager, &pods);
    assert_eq!(subsets[0]["addresses"].as_array().unwrap().len(), 3);
    assert_eq!(subsets[0]["notReadyAddresses"], Value::Null);
    let slice = &plan(&eager, &pods, &[]).create[0];
    assert!(
        slice
            .endpoints
            .iter()
            .all(|endpoint| endpoint.conditions.as_ref().unwrap().ready == Some(true))
    );
}

#[test]
fn a_named_port_may_have_another_number_on_every_pod() {
    let subsets = old_form(&service(&json!({})), &[pod(1, "ready", 8080), pod(2, "ready", 9090)]);
    assert_eq!(subsets.as_array().unwrap().len(), 2);
    assert_eq!(
        plan(
            &service(&json!({})),
            &[pod(1, "ready", 8080), pod(2, "ready", 9090)],
            &[]
        )
        .create
        .len(),
        2
    );
}

#[test]
fn a_headless_service_without_ports_has_addresses_alone() {
    let headless = service(&json!({"spec": {"clusterIP": "None", "ports": null}}));
    let subsets = old_form(&headless, &[pod(1, "ready", 8080)]);
    assert_eq!(subsets[0]["addresses"][0]["ip"], "10.0.0.1");
    assert_eq!(subsets[0]["ports"], Value::Null);
    let labels = subsets::endpoints(&headless, &[]).metadata.labels.unwrap();
    assert_eq!(labels["service.kubernetes.io/headless"], "");
    assert_eq!(labels["team"], "red");
}

#[test]
fn a_slice_distinguishes_terminating_from_serving() {
    let slice = &plan(
        &service(&json!({})),
        &[pod(1, "ready", 1), pod(2, "unready", 1), pod(3, "leaving", 1)],
        &[],
    )
    .create[0];
    let states: Vec<_> = slice
        .endpoints
        .iter()
        .map(|endpoint| {
            let conditions = endpoint.conditions.clone().unwrap();
            (
                conditions.ready.unwrap(),
                conditions.serving.unwrap(),
                conditions.terminating.unwrap(),
            )
        })
        .collect();
    assert_eq!(
        states,
        [(true, true, false), (false, false, false), (false, true, true)]
    );
    let labels = slice.metadata.labels.as_ref().unwrap();
    assert_eq!(labels["kubernetes.io/service-name"], "web");
    assert_eq!(
        labels["endpointslice.kubernetes.io/managed-by"],
        "endpointslice-controller.k8s.io"
    );
}

/// Carries a plan out on a list of slices.
fn carried_out(plan: slices::Plan, existing: &[Arc<EndpointSlice>]) -> Vec<Arc<EndpointSlice>> {
    let deleted: Vec<_> = plan.delete.iter().map(|slice| slice.metadata.name.clone()).collect();
    let mut all: Vec<Arc<EndpointSlice>> = existing
        .iter()
        .filter(|slice| !deleted.contains(&slice.metadata.name))
        .map(|slice| {
            let changed = plan
                .update
                .iter()
                .find(|changed| changed.metadata.name == slice.metadata.name);
            changed.map_or_else(|| slice.clone(), |changed| Arc::new(changed.clone()))
        })
        .collect();
    for (number, mut slice) in plan.create.into_iter().enumerate() {
        slice.metadata.name = Some(format!("{}x{number}", all.len()));
        all.push(Arc::new(slice));
    }
    all
}

#[test]
fn slices_hold_a_hundred_and_change_no_more_than_they_must() {
    let service = service(&json!({}));
    let pods: Vec<_> = (0..250).map(|number| pod(number, "ready", 80)).collect();
    let first = carried_out(plan(&service, &pods, &[]), &[]);
    assert_eq!(
        first.iter().map(|slice| slice.endpoints.len()).collect::<Vec<_>>(),
        [100, 100, 50]
    );

    let again = plan(&service, &pods, &first);
    assert!(again.create.is_empty() && again.update.is_empty() && again.delete.is_empty());

    let fewer: Vec<_> = pods
        .iter()
        .enumerate()
        .filter(|(at, _)| *at != 3)
        .map(|(_, pod)| pod.clone())
        .collect();
    let step = plan(&service, &fewer, &first);
    assert_eq!((step.create.len(), step.delete.len()), (0, 0));
    let second = carried_out(step, &first);
    assert_eq!(second.iter().map(|slice| slice.endpoints.len()).sum::<usize>(), 249);

    let none = carried_out(plan(&service, &[], &second), &second);
    assert_eq!(none.len(), 1, "one empty slice stays");
    assert!(none[0].endpoints.is_empty());
    let stable = plan(&service, &[], &none);
    assert!(stable.create.is_empty() && stable.update.is_empty() && stable.delete.is_empty());
}

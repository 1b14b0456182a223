//! Clusters in a few lines, and where a pod must go.

use std::collections::HashMap;
use std::sync::Arc;

use super::*;
use serde_json::{Value, json};

fn node(name: &str, more: &Value) -> Value {
    let zone = &name[..1];
    let mut node = json!({
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone}},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}}});
    json_patch::merge(&mut node, more);
    node
}

fn running(name: &str, node: &str, labels: &Value, spec: &Value) -> Value {
    let mut pod = json!({"metadata": {"name": name, "namespace": "n", "uid": name, "labels": labels},
        "spec": {"nodeName": node, "containers": [{"name": "c"}]}, "status": {"phase": "Running"}});
    json_patch::merge(&mut pod["spec"], spec);
    pod
}

fn cluster(nodes: &[Value], pods: &[Value]) -> Cluster {
    let read = |value: &Value| Arc::new(serde_json::from_value(value.clone()).unwrap());
    let mut cluster = Cluster::default();
    let pods = pods
        .iter()
        .map(|pod| Arc::new(serde_json::from_value(pod.clone()).unwrap()));
    cluster.place(nodes.iter().map(read).collect(), pods.collect(), &HashMap::new());
    cluster
}

fn pod(spec: &Value) -> Pod {
    let mut value = json!({"metadata": {"name": "new", "namespace": "n", "uid": "new", "labels": {"app": "x"}},
        "spec": {"containers": [{"name": "c"}]}});
    json_patch::merge(&mut value["spec"], spec);
    serde_json::from_value(value).unwrap()
}

fn outcome(cluster: &Cluster, pod: &Pod) -> String {
    match decide(cluster, pod, None) {
        Decision::Bind { node, .. } => node,
        Decision::Wait => "wait".to_owned(),
        Decision::Unschedulable { message } => message.split(". no").next().unwrap().to_owned(),
    }
}

#[test]
fn a_cluster_without_nodes_has_its_message() {
    assert_eq!(
        outcome(&cluster(&[], &[]), &pod(&json!({}))),
        "no nodes available to schedule pods"
    );
}

#[test]
fn each_filter_has_its_message() {
    let none = json!({});
    let spread = json!({"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "x"}}}]});
    let near = |app: &str| {
        json!({"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": app}}}]}}})
    };
    let anti_affinity = json!({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "x"}}}]}}});
    let port = json!({"containers": [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}]}]});
    let x = json!({"app": "x"});
    let taint = json!({"spec": {"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]}});
    let cases: Vec<(Vec<Value>, Vec<Value>, Value, &str)> = vec![
        (
            vec![node("a1", &json!({"spec": {"unschedulable": true}}))],
            vec![],
            none.clone(),
            "node(s) were unschedulable",
        ),
        (
            vec![node("a1", &taint)],
            vec![],
            none.clone(),
            "node(s) had untolerated taint(s)",
        ),
        (
            vec![node("a1", &none)],
            vec![],
            json!({"nodeSelector": {"no": "such"}}),
            "node(s) didn't match Pod's node affinity/selector",
        ),
        (
            vec![node("a1", &none)],
            vec![running("p", "a1", &none, &port)],
            port.clone(),
            "node(s) didn't have free ports for the requested pod ports",
        ),
        (
            vec![node("a1", &none)],
            vec![],
            json!({"containers": [{"name": "c", "resources": {"requests": {"cpu": "5"}}}]}),
            "Insufficient cpu",
        ),
        (
            vec![node("a1", &none), node("b1", &json!({"spec": {"unschedulable": true}}))],
            vec![running("p", "a1", &x, &none)],
            spread.clone(),
            "node(s) didn't match pod topology spread constraints",
        ),
        (
            vec![node("a1", &json!({"metadata": {"labels": null}}))],
            vec![],
            spread.clone(),
            "node(s) didn't match pod topology spread constraints (missing required label)",
        ),
        (
            vec![node("a1", &none)],
            vec![],
            near("other"),
            "node(s) didn't match pod affinity rules",
        ),
        (
            vec![node("a1", &none)],
            vec![running("p", "a1", &x, &none)],
            anti_affinity.clone(),
            "node(s) didn't match pod anti-affinity rules",
        ),
        (
            vec![node("a1", &none)],
            vec![running("p", "a1", &none, &anti_affinity)],
            none.clone(),
            "node(s) didn't satisfy existing pods anti-affinity rules",
        ),
    ];
    for (nodes, pods, spec, expected) in cases {
        let message = outcome(&cluster(&nodes, &pods), &pod(&spec));
        let one = format!("1 {expected}");
        assert!(
            message.ends_with(&one) || message.contains(&format!("{one},")),
            "{message}\nshould say: {one}"
        );
    }
}

#[test]
fn the_first_of_pods_that_want_company_may_start_alone() {
    let near = json!({"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "x"}}}]}}});
    let nodes = [node("a1", &json!({})), node("b1", &json!({}))];
    assert_eq!(outcome(&cluster(&nodes, &[]), &pod(&near)), "a1");
    let other = running("p", "b1", &json!({"app": "x"}), &json!({}));
    assert_eq!(outcome(&cluster(&nodes, &[other]), &pod(&near)), "b1");
}

#[test]
fn a_spread_fills_the_emptiest_zone() {
    let spread = json!({"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "x"}}}]});
    let nodes = [
        node("a1", &json!({})),
        node("a2", &json!({})),
        node("b1", &json!({})),
        node("c1", &json!({})),
    ];
    let x = json!({"app": "x"});
    let mut pods = Vec::new();
    let mut zones = String::new();
    for number in 0..6 {
        let chosen = outcome(&cluster(&nodes, &pods), &pod(&spread));
        zones.push_str(&chosen[..1]);
        pods.push(running(&format!("p{number}"), &chosen, &x, &json!({})));
    }
    let count = |zone: char| zones.chars().filter(|letter| *letter == zone).count();
    assert_eq!((count('a'), count('b'), count('c')), (2, 2, 2), "{zones}");
}

#[test]
fn min_domains_keep_a_pod_waiting_for_another_zone() {
    let spread = json!({"topologySpreadConstraints": [{"maxSkew": 1, "minDomains": 2,
        "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "x"}}}]});
    let one = [node("a1", &json!({}))];
    let there = [running("p", "a1", &json!({"app": "x"}), &json!({}))];
    assert!(outcome(&cluster(&one, &there), &pod(&spread)).contains("topology spread"));
    let two = [node("a1", &json!({})), node("b1", &json!({}))];
    assert_eq!(outcome(&cluster(&two, &there), &pod(&spread)), "b1");
}

#[test]
fn preferences_decide_between_nodes_that_fit() {
    let none = json!({});
    let nodes = [node("a1", &none), node("b1", &none)];
    let prefer_b = json!({"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 1, "preference": {"matchExpressions": [
            {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["b"]}]}}]}}});
    assert_eq!(outcome(&cluster(&nodes, &[]), &pod(&prefer_b)), "b1");
    let avoid = json!({"affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 10, "podAffinityTerm": {"topologyKey": "kubernetes.io/hostname",
            "labelSelector": {"matchLabels": {"app": "x"}}}}]}}});
    let there = [running("p", "a1", &json!({"app": "x"}), &none)];
    assert_eq!(outcome(&cluster(&nodes, &there), &pod(&avoid)), "b1");
    let discouraged = json!({"spec": {"taints": [{"key": "k", "effect": "PreferNoSchedule"}]}});
    assert_eq!(
        outcome(
            &cluster(&[node("a1", &discouraged), node("b1", &none)], &[]),
            &pod(&none)
        ),
        "b1"
    );
    let busy = json!({"containers": [{"name": "c", "resources": {"requests": {"cpu": "3", "memory": "6Gi"}}}]});
    assert_eq!(
        outcome(&cluster(&nodes, &[running("p", "a1", &none, &busy)]), &pod(&none)),
        "b1"
    );
}

#[test]
fn pods_of_one_controller_are_spread_without_a_constraint() {
    let owned = |mut pod: Value| {
        pod["metadata"]["ownerReferences"] =
            json!([{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "s", "uid": "s", "controller": true}]);
        pod
    };
    let nodes = [node("a1", &json!({})), node("a2", &json!({})), node("b1", &json!({}))];
    let mut pods = Vec::new();
    let mut chosen = Vec::new();
    for number in 0..3 {
        let new: Pod = serde_json::from_value(owned(serde_json::to_value(pod(&json!({}))).unwrap())).unwrap();
        let at = outcome(&cluster(&nodes, &pods), &new);
        pods.push(owned(running(&format!("p{number}"), &at, &json!({}), &json!({}))));
        chosen.push(at);
    }
    chosen.sort();
    assert_eq!(chosen, ["a1", "a2", "b1"]);
}

fn with_claim(cluster: &mut Cluster, claim: &Value, mode: &str) {
    let claim: k8s_openapi::api::core::v1::PersistentVolumeClaim = serde_json::from_value(claim.clone()).unwrap();
    cluster.claims.insert(("n".into(), "data".into()), Arc::new(claim));
    let class = json!({"metadata": {"name": "standard"}, "provisioner": "p", "volumeBindingMode": mode});
    cluster
        .classes
        .insert("standard".into(), Arc::new(serde_json::from_value(class).unwrap()));
    let volume = json!({"metadata": {"name": "pv"}, "spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["b1"]}]}]}}}});
    cluster
        .volumes
        .insert("pv".into(), Arc::new(serde_json::from_value(volume).unwrap()));
}

#[test]
fn claims_tie_a_pod_to_their_volume_or_wait_for_its_node() {
    let uses = pod(&json!({"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]}));
    let nodes = [node("a1", &json!({})), node("b1", &json!({}))];
    let unbound = json!({"metadata": {"name": "data"}, "spec": {"storageClassName": "standard"}});
    let bound = json!({"metadata": {"name": "data"},
        "spec": {"storageClassName": "standard", "volumeName": "pv"}, "status": {"phase": "Bound"}});

    assert!(outcome(&cluster(&nodes, &[]), &uses).ends_with("persistentvolumeclaim \"data\" not found"));

    let mut tied = cluster(&nodes, &[]);
    with_claim(&mut tied, &bound, "Immediate");
    assert_eq!(outcome(&tied, &uses), "b1");
    tied.volumes.clear();
    assert!(
        outcome(&tied, &uses).contains("2 node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)")
    );

    let mut immediate = cluster(&nodes, &[]);
    with_claim(&mut immediate, &unbound, "Immediate");
    assert!(outcome(&immediate, &uses).ends_with("pod has unbound immediate PersistentVolumeClaims"));

    let mut waiting = cluster(&nodes, &[]);
    with_claim(&mut waiting, &unbound, "WaitForFirstConsumer");
    let expected = Decision::Bind {
        node: "a1".into(),
        claims: vec!["data".into()],
    };
    assert_eq!(decide(&waiting, &uses, None), expected);
    assert!(matches!(decide(&waiting, &uses, Some("b1")), Decision::Bind { node, .. } if node == "b1"));

    let mut chosen = unbound.clone();
    chosen["metadata"]["annotations"] = json!({volumes::SELECTED_NODE: "b1"});
    with_claim(&mut waiting, &chosen, "WaitForFirstConsumer");
    assert_eq!(outcome(&waiting, &uses), "b1");
}

#[test]
fn a_reserved_node_is_kept_until_the_volume_is_bound() {
    let uses = pod(&json!({"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]}));
    let nodes = [node("a1", &json!({})), node("b1", &json!({}))];
    let mut all = cluster(&nodes, &[]);
    // The provisioner has named the volume, and the volume controller has not bound it yet.
    let mut claim = json!({"metadata": {"name": "data", "annotations": {volumes::SELECTED_NODE: "b1"}},
        "spec": {"storageClassName": "standard", "volumeName": "pv"}});
    with_claim(&mut all, &claim, "WaitForFirstConsumer");
    assert_eq!(decide(&all, &uses, Some("b1")), Decision::Wait);
    claim["status"] = json!({"phase": "Bound"});
    with_claim(&mut all, &claim, "WaitForFirstConsumer");
    assert!(
        matches!(decide(&all, &uses, Some("b1")), Decision::Bind { node, claims } if node == "b1" && claims.is_empty())
    );
    claim["status"] = json!({});
    claim["metadata"]["annotations"] = json!({volumes::SELECTED_NODE: "a1"});
    with_claim(&mut all, &claim, "WaitForFirstConsumer");
    assert_ne!(
        decide(&all, &uses, Some("b1")),
        Decision::Wait,
        "it was chosen for another node"
    );
}

#[test]
fn a_pod_that_is_being_bound_counts_on_its_node() {
    let big = json!({"containers": [{"name": "c", "resources": {"requests": {"cpu": "3"}}}]});
    let first = pod(&big);
    let nodes = vec![Arc::new(serde_json::from_value(node("a1", &json!({}))).unwrap())];
    let mut cluster = Cluster::default();
    cluster.place(
        nodes,
        vec![Arc::new(first)],
        &HashMap::from([("new".into(), "a1".into())]),
    );
    assert!(outcome(&cluster, &pod(&big)).contains("1 Insufficient cpu"));
}

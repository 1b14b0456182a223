//! The members' `ValkeyNode` objects.

use candor_engine::kinds::valkey::report::Report;
use candor_engine::observation::{Applied, Trouble};

use crate::scene::{Scene, at, line};

fn said(report: &Report, shard: u32, node: u32) -> Vec<String> {
    report.nodes[&at(shard, node)].conditions.iter().map(line).collect()
}

#[test]
fn a_healthy_member_carries_three_conditions() {
    let mut scene = Scene::healthy(1, 1);
    let report = scene.reconcile(&[]);
    assert_eq!(
        said(&report, 0, 0),
        [
            "Ready=True Serving: Primary of shard 0",
            "ConfigurationApplied=True Applied: As the spec asks",
            "UsersApplied=True Applied: As the spec asks",
        ]
    );
    assert_eq!(said(&report, 0, 1)[0], "Ready=True InSync: Replica in shard 0, in sync");
    insta::assert_yaml_snapshot!(report.nodes[&at(0, 1)]);
}

#[test]
fn with_persistence_it_carries_its_storage_too() {
    let mut scene = Scene::healthy(1, 1);
    scene.cluster.spec.persistence = Some(serde_json::from_value(serde_json::json!({"size": "2Gi"})).unwrap());
    let report = scene.reconcile(&[]);
    assert_eq!(said(&report, 0, 0)[2], "StorageReady=True Bound: Its volume is there");
    assert_eq!(said(&report, 0, 0).len(), 4);
}

#[test]
fn the_valkey_node_of_an_unhealthy_member_reports_the_cause() {
    let mut scene = Scene::healthy(2, 1);
    scene.stop_responding(at(0, 1));
    scene.kill(at(1, 1));
    let report = scene.reconcile(&[]);
    assert_eq!(
        said(&report, 0, 1),
        [
            "Ready=False Silent (Error): Does not answer since 2025-12-19T10:00:00Z",
            "ConfigurationApplied=Unknown NoAnswer: Its server does not answer",
            "UsersApplied=Unknown NoAnswer: Its server does not answer",
        ]
    );
    assert_eq!(
        said(&report, 1, 1)[0],
        "Ready=False Gone (Error): Refuses connections since 2025-12-19T10:00:00Z"
    );
    scene.trouble(
        at(1, 1),
        Trouble::NotStarting("ImagePullBackOff: no such image".to_owned()),
    );
    let report = scene.reconcile(&[]);
    assert_eq!(
        said(&report, 1, 1)[0],
        "Ready=False PodNotStarting (Error): ImagePullBackOff: no such image"
    );
    scene.facts(at(0, 0)).loading = true;
    scene.facts(at(1, 0)).users = Applied::Rejected("ERR Error in ACL SETUSER modifier".to_owned());
    let report = scene.reconcile(&[]);
    assert_eq!(said(&report, 0, 0)[0], "Ready=False Loading (Info): Reads its dataset");
    assert_eq!(
        said(&report, 1, 0)[2],
        "UsersApplied=False Refused (Error): ERR Error in ACL SETUSER modifier"
    );
}

//! What must never delete the keys of a `RedkeyCluster` with `purgeKeysOnRebalance`.

use std::collections::BTreeMap;

use candor_api::{RedkeyCluster, RedkeyClusterSpec, RedkeyClusterStatus};
use candor_engine::attempts::Attempts;
use candor_engine::kinds::redkey::operation::{Input, Planned, Set, plan};
use candor_engine::kinds::redkey::rows::Progress;
use candor_engine::observation::{About, Observation, Problem};
use candor_engine::step::Step;

/// A complete cluster of three primaries whose spec asks for another revision than its `StatefulSet` has.
fn planned(live: &str, problem: Option<&str>) -> Planned {
    let spec = RedkeyClusterSpec {
        primaries: 3,
        ..RedkeyClusterSpec::default()
    };
    let mut cluster = RedkeyCluster::new("cache", spec);
    cluster.status = Some(RedkeyClusterStatus {
        status: "Ready".to_owned(),
        formed: true,
        ..RedkeyClusterStatus::default()
    });
    let problems = problem.map(|message| Problem {
        about: About::Configuration,
        message: message.to_owned(),
    });
    let base = Observation {
        objects_ready: true,
        problems: problems.into_iter().collect(),
        ..Observation::default()
    };
    let set = Set {
        replicas: 3,
        revision: live.to_owned(),
        leaving: false,
        adopted: false,
    };
    plan(&Input {
        cluster: &cluster,
        set: Some(&set),
        other_operator: None,
        revision: "new",
        members: &BTreeMap::new(),
        base: &base,
        attempts: &Attempts::default(),
        node_timeout: 15_000,
        now: "2026-01-01T00:00:00Z".parse().unwrap(),
    })
}

fn deletes(planned: &Planned) -> bool {
    planned.plan.steps.contains(&Step::RecreateSet)
}

#[test]
fn only_a_new_revision_of_our_own_recreates_the_cluster() {
    assert!(deletes(&planned("old", None)));
    assert!(!deletes(&planned("new", None)));
}

#[test]
fn a_spec_that_cannot_be_carried_out_recreates_nothing() {
    let planned = planned("old", Some("spec.config, line 1: unbalanced quotes"));
    assert!(!deletes(&planned), "{:?}", planned.plan);
    assert!(matches!(planned.progress, Progress::Steady(status) if status.name() == "Error"));
}

#[test]
fn the_statefulset_of_another_operator_is_taken_over_and_not_recreated() {
    let planned = planned("", None);
    assert_eq!(planned.plan.steps, [Step::WriteObjects]);
    assert!(!planned.set.template, "{:?}", planned.set);
    assert_eq!(planned.progress, Progress::Unchanged);
}

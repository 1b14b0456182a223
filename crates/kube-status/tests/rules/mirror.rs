//! Generation 2: the mirror.

use kube_status::{Change, Condition, Mirror, Status, Untyped, find};
use serde_json::json;

use crate::thing::{at, machine, thing};

#[test]
fn status_reason_message_and_time_are_copied_and_the_generation_is_not() {
    let mut source = thing("AWSCluster", "infra").with_since("Ready", Status::False, "NoVpc", "no network", 42);
    source.conditions[0].observed_generation = Some(99);
    let mut target = thing("Cluster", "c");
    target.generation = 3;
    let mirror = Mirror::new("Ready").target("InfrastructureReady");
    assert_eq!(mirror.set(&source, &mut target, at(100)), Change::Status);
    let stored = &target.conditions[0];
    assert_eq!(
        (&*stored.type_, &*stored.status, &*stored.reason, &*stored.message),
        ("InfrastructureReady", "False", "NoVpc", "no network")
    );
    assert_eq!(stored.last_transition_time.0, at(42));
    assert_eq!(stored.observed_generation, Some(3));
}

#[test]
fn a_missing_source_is_unknown_and_named() {
    let source = machine("m");
    let draft = Mirror::new("Ready").target("MachineReady").of(&source).into_owned();
    assert_eq!((&*draft.type_, draft.status), ("MachineReady", Status::Unknown));
    assert_eq!(
        (&*draft.reason, &*draft.message),
        ("NotYetReported", "Condition Ready not yet reported")
    );
    assert_eq!(draft.since, None);
}

#[test]
fn a_missing_source_gives_the_fallback_where_there_is_one() {
    let mirror = Mirror::new("Ready").fallback(Status::False, "Waiting", "for the provider");
    let source = machine("m");
    let draft = mirror.of(&source);
    assert_eq!(
        (draft.status, &*draft.reason, &*draft.message),
        (Status::False, "Waiting", "for the provider")
    );
    let present = machine("m").with("Ready", Status::True, "Up", "");
    assert_eq!(mirror.of(&present).status, Status::True);
}

#[test]
fn without_a_target_the_mirror_keeps_the_name() {
    let source = machine("m").with("Ready", Status::True, "Up", "");
    assert_eq!(Mirror::new("Ready").of(&source).type_, "Ready");
}

#[test]
fn an_untyped_provider_is_mirrored_even_when_it_gives_no_reason_and_no_time() {
    let object = json!({
        "kind": "AWSCluster", "metadata": {"name": "infra"},
        "status": {"conditions": [{"type": "Ready", "status": "True", "severity": "Info"}]},
    });
    let source = Untyped::<Condition>::read(&object).expect("a readable object");
    let mut target = thing("Cluster", "c");
    let _ = Mirror::new("Ready")
        .target("InfrastructureReady")
        .set(&source, &mut target, at(100));
    let stored = find(&target.conditions, "InfrastructureReady").expect("the mirror");
    assert_eq!(stored.reason, "NoReasonReported");
    assert_eq!(
        stored.last_transition_time.0,
        at(100),
        "a time that nobody knew is not carried on"
    );
}

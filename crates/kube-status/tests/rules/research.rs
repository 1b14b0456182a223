//! The examples of the research on status conditions and lifecycle, on a server with its five conditions.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube_status::{Change, Condition, ConditionType, Conditioned, Draft, Reason, Status, Summary, find, is_true, set};

use crate::thing::at;

/// The conditions of a `DittoServer`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ConditionType)]
enum DittoCondition {
    /// The server is fully operational.
    Ready,
    /// The stateful set has its minimum of ready replicas.
    Available,
    /// Config map and secrets are valid.
    ConfigReady,
    /// The database is ready, where there is one.
    DatabaseReady,
    /// A change is being applied.
    #[condition(negative)]
    Progressing,
}

/// Why a `DittoServer` is as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Reason)]
enum DittoReason {
    /// All replicas are ready.
    StatefulSetReady,
    /// Replicas are missing.
    StatefulSetNotReady,
    /// The configuration is in place.
    ConfigApplied,
    /// The database is being waited for.
    WaitingForDatabase,
    /// Nothing is being changed.
    Settled,
}

#[derive(Clone, Debug, Default)]
struct DittoServerStatus {
    conditions: Option<Vec<Condition>>,
}

#[derive(Clone, Debug, Default, Conditioned)]
struct DittoServer {
    metadata: ObjectMeta,
    status: Option<DittoServerStatus>,
}

fn server(generation: i64) -> DittoServer {
    let metadata = ObjectMeta {
        name: Some("ditto".into()),
        generation: Some(generation),
        ..ObjectMeta::default()
    };
    DittoServer { metadata, status: None }
}

/// The pattern of the status update: `Available` after looking at the stateful set.
fn available(ready: u32, expected: u32) -> Draft<'static> {
    if ready == expected {
        let message = format!("StatefulSet has {ready}/{expected} ready replicas");
        Draft::good(DittoCondition::Available, DittoReason::StatefulSetReady).message(message)
    } else {
        let message = format!("Waiting for replicas: {ready}/{expected} ready");
        Draft::bad(DittoCondition::Available, DittoReason::StatefulSetNotReady).message(message)
    }
}

#[test]
fn available_follows_the_ready_replicas_with_counts() {
    let mut server = server(1);
    assert_eq!(set(&mut server, available(1, 3), at(10)), Change::Status);
    assert_eq!(set(&mut server, available(2, 3), at(20)), Change::Text);
    let stored = find(server.conditions(), DittoCondition::Available).expect("the condition");
    assert_eq!(
        (&*stored.reason, &*stored.message),
        ("StatefulSetNotReady", "Waiting for replicas: 2/3 ready")
    );
    assert_eq!(stored.last_transition_time.0, at(10));
    assert_eq!(set(&mut server, available(3, 3), at(30)), Change::Status);
    assert!(is_true(server.conditions(), DittoCondition::Available));
    let stored = find(server.conditions(), DittoCondition::Available).expect("the condition");
    assert_eq!(
        (&*stored.message, stored.last_transition_time.0),
        ("StatefulSet has 3/3 ready replicas", at(30))
    );
}

/// Pitfall 1, stale conditions: the observed generation cannot be forgotten, because `set` writes it.
#[test]
fn every_condition_carries_the_generation_it_was_computed_from() {
    let mut server = server(4);
    let _ = set(&mut server, available(3, 3), at(0));
    let _ = set(
        &mut server,
        Draft::good(DittoCondition::ConfigReady, DittoReason::ConfigApplied),
        at(0),
    );
    assert!(server.conditions().iter().all(|c| c.observed_generation == Some(4)));
    server.metadata.generation = Some(5);
    assert_eq!(
        set(&mut server, available(3, 3), at(9)),
        Change::Text,
        "a newer generation is written"
    );
    let stored = find(server.conditions(), DittoCondition::Available).expect("the condition");
    assert_eq!(
        (stored.observed_generation, stored.last_transition_time.0),
        (Some(5), at(0))
    );
}

/// Pitfall 3, event spam: what did not turn asks for no event.
#[test]
fn a_reconcile_that_finds_no_change_needs_no_write_and_no_event() {
    let mut server = server(1);
    assert!(set(&mut server, available(3, 3), at(0)).is_transition());
    for second in 1..10 {
        let change = set(&mut server, available(3, 3), at(second));
        assert!(!change.must_write() && !change.is_transition());
    }
}

#[test]
fn waiting_for_the_database_is_progressing_with_that_reason() {
    let mut server = server(1);
    let waiting = Draft::bad(DittoCondition::Progressing, DittoReason::WaitingForDatabase).message("cluster pg");
    let _ = set(&mut server, waiting, at(0));
    let _ = set(&mut server, available(3, 3), at(0));
    let _ = set(
        &mut server,
        Draft::good(DittoCondition::ConfigReady, DittoReason::ConfigApplied),
        at(0),
    );
    let summary = Summary::new(DittoCondition::Ready)
        .declared([
            DittoCondition::Available,
            DittoCondition::ConfigReady,
            DittoCondition::DatabaseReady,
            DittoCondition::Progressing,
        ])
        .ignore_if_missing([DittoCondition::DatabaseReady]);
    let _ = summary.set(&mut server, at(0)).expect("a summary");
    let ready = find(server.conditions(), DittoCondition::Ready).expect("Ready");
    assert_eq!(
        (&*ready.status, &*ready.message),
        ("False", "* Progressing: cluster pg")
    );

    let _ = set(
        &mut server,
        Draft::good(DittoCondition::Progressing, DittoReason::Settled),
        at(1),
    );
    let _ = summary.set(&mut server, at(1)).expect("a summary");
    let ready = find(server.conditions(), DittoCondition::Ready).expect("Ready");
    assert_eq!(Status::of(ready), Status::True);
}

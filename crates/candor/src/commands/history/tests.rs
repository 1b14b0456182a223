//! What can be derived from events, and what cannot.

use k8s_openapi::api::core::v1::Event;
use serde_json::json;

use super::{draw, periods};
use crate::commands::output::Screen;
use crate::commands::snapshot::Snapshot;
use crate::commands::status::{fixtures, redkey_fixtures};

fn shown(snapshot: &Snapshot) -> String {
    let screen = Screen {
        width: Some(120),
        colour: false,
        wide: false,
    };
    draw(&periods(snapshot), snapshot.now, &screen)
}

/// An event as the operator writes it: whole seconds in the old fields, fractions in the new ones.
fn event(first: &str, last: &str, count: i32, reason: &str, message: &str) -> Event {
    let mut event = json!({"metadata": {}, "involvedObject": {}, "reason": reason, "message": message, "count": count,
        "eventTime": first, "firstTimestamp": first, "lastTimestamp": last});
    if count > 1 {
        event["series"] = json!({"count": count, "lastObservedTime": last});
    }
    serde_json::from_value(event).unwrap()
}

fn once(at: &str, reason: &str, message: &str) -> Event {
    event(at, at, 1, reason, message)
}

fn ready(first: &str, last: &str, count: i32) -> Event {
    event(
        first,
        last,
        count,
        "ClusterReady",
        "Cluster ready with 3 shards and 1 replicas",
    )
}

fn rebalancing(first: &str, last: &str, count: i32) -> Event {
    event(
        first,
        last,
        count,
        "SlotsRebalancing",
        "Moving 1366 slots from shard 0 to shard 3",
    )
}

/// Ready since the given time; created at 09:10 on the same day.
fn ready_since(since: &str, mut events: Vec<Event>) -> Snapshot {
    let mut snapshot = fixtures::healthy();
    fixtures::valkey(&mut snapshot).metadata.creation_timestamp =
        serde_json::from_value(json!("2026-02-05T09:10:00Z")).unwrap();
    for condition in &mut fixtures::valkey(&mut snapshot).status.as_mut().unwrap().conditions {
        *condition = serde_json::from_value(fixtures::condition(
            &condition.type_,
            &condition.status,
            &condition.reason,
            &condition.message,
            since,
            "",
        ))
        .unwrap();
    }
    events.sort_by_key(crate::commands::snapshot::happened);
    snapshot.events = events;
    snapshot
}

#[test]
fn events_become_times_in_states_and_the_last_one_is_now() {
    let mut snapshot = fixtures::primary_lost();
    fixtures::valkey(&mut snapshot).metadata.creation_timestamp =
        serde_json::from_value(json!("2026-02-05T09:10:00Z")).unwrap();
    snapshot.events = vec![
        once(
            "2026-02-05T09:10:00.000000Z",
            "ServiceCreated",
            "Created headless Service",
        ),
        once("2026-02-05T09:10:01.000000Z", "WaitingForShards", "0 of 3 shards exist"),
        once(
            "2026-02-05T09:10:02.000000Z",
            "ClusterMeet",
            "Node 10.0.0.1 met node 10.0.0.2",
        ),
        ready("2026-02-05T09:10:08.000000Z", "2026-02-05T09:10:08.000000Z", 1),
        once(
            "2026-02-05T09:59:57.000000Z",
            "PrimaryLost",
            "Primary lost in shard 1: connection refused",
        ),
    ];
    insta::assert_snapshot!(shown(&snapshot));
    snapshot.events.clear();
    assert_eq!(
        periods(&snapshot).last().map(|last| (last.state.as_str(), last.lasts)),
        Some(("Degraded", true)),
        "conditions alone tell of now"
    );
}

/// Ready, not Ready 22 s later, then Ready again: both events were recorded twice, and both times of each are known.
#[test]
fn an_event_that_happened_twice_counts_at_both_times() {
    let snapshot = ready_since(
        "2026-02-05T09:40:00Z",
        vec![
            once(
                "2026-02-05T09:10:00.000000Z",
                "ServiceCreated",
                "Created headless Service",
            ),
            ready("2026-02-05T09:10:08.100000Z", "2026-02-05T09:40:00.500000Z", 2),
            rebalancing("2026-02-05T09:10:30.100000Z", "2026-02-05T09:39:50.000000Z", 2),
            once(
                "2026-02-05T09:11:00.000000Z",
                "WaitingForReplicas",
                "Shard 3 has 0 of 1 replicas",
            ),
        ],
    );
    insta::assert_snapshot!(shown(&snapshot));
    let all = periods(&snapshot);
    assert!(
        all.iter().all(|one| one.state != "Unknown"),
        "everything is known: {all:?}"
    );
}

#[test]
fn where_a_repeated_event_may_have_come_between_there_is_a_gap() {
    let lost = |first: &str, last: &str, count| event(first, last, count, "ReplicaLost", "Replica 1-1 lost");
    let snapshot = ready_since(
        "2026-02-05T09:40:05Z",
        vec![
            once(
                "2026-02-05T09:10:00.000000Z",
                "ServiceCreated",
                "Created headless Service",
            ),
            ready("2026-02-05T09:10:08.000000Z", "2026-02-05T09:40:05.500000Z", 19),
            lost("2026-02-05T09:20:00.000000Z", "2026-02-05T09:40:00.000000Z", 18),
        ],
    );
    insta::assert_snapshot!(shown(&snapshot));
}

#[test]
fn what_no_event_tells_is_a_gap() {
    // Created in the morning and Ready since then, except for a rolling update of which no event remains.
    let mut snapshot = ready_since(
        "2026-02-05T09:55:00Z",
        vec![ready("2026-02-05T09:30:00.000000Z", "2026-02-05T09:30:00.000000Z", 1)],
    );
    fixtures::valkey(&mut snapshot).metadata.creation_timestamp =
        serde_json::from_value(json!("2026-02-05T06:00:00Z")).unwrap();
    insta::assert_snapshot!(shown(&snapshot));
}

#[test]
fn periods_follow_each_other_whatever_the_counts() {
    let at = |minute: i32| format!("2026-02-05T09:{minute:02}:00.000000Z");
    for first in 0..6 {
        for last in first..6 {
            for count in 1..4 {
                let last = if count == 1 { first } else { last };
                let snapshot = ready_since(
                    "2026-02-05T09:08:00Z",
                    vec![ready(&at(2), &at(8), 3), rebalancing(&at(first), &at(last), count)],
                );
                let all = periods(&snapshot);
                for pair in all.windows(2) {
                    assert!(pair[0].from <= pair[1].from, "{all:?}");
                    assert!(pair[0].to.is_none_or(|to| to == pair[1].from), "{all:?}");
                    assert!(
                        !pair[0].lasts && (pair[0].to.is_some() || pair[1].state == "Unknown"),
                        "{all:?}"
                    );
                }
                assert!(
                    all.last().is_some_and(|one| one.lasts && one.state == "Ready"),
                    "{all:?}"
                );
            }
        }
    }
}

#[test]
fn a_fault_during_an_operation_does_not_end_the_operation() {
    let mut snapshot = redkey_fixtures::ready();
    let cluster = redkey_fixtures::redkey(&mut snapshot);
    let since = "2026-02-05T09:55:02Z";
    let ready = fixtures::condition(
        "Ready",
        "True",
        "RedkeyClusterReady",
        "Redkey cluster is ready",
        since,
        "",
    );
    cluster.status.as_mut().unwrap().conditions[0] = serde_json::from_value(ready).unwrap();
    snapshot.events = vec![
        once(
            "2026-02-05T09:50:00Z",
            "RedkeyClusterScalingUp",
            "Scaling up from 3 to 5 primaries",
        ),
        once("2026-02-05T09:50:01Z", "SlotsUncovered", "Some slots have no owner"),
        once("2026-02-05T09:50:31Z", "RedkeyClusterReady", "Redkey cluster is ready"),
        once("2026-02-05T09:55:00Z", "ReplicaLost", "Replica lost in shard 1"),
        once("2026-02-05T09:55:02Z", "RedkeyClusterReady", "Redkey cluster is ready"),
    ];
    let states: Vec<String> = periods(&snapshot).into_iter().map(|period| period.state).collect();
    assert_eq!(
        states,
        ["Unknown", "ScalingUp", "ScalingUp", "Ready", "Configuring", "Ready"]
    );
}

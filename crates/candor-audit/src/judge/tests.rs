//! Examples of what counts as a false Ready.

use super::*;
use crate::facts::{Facts, Role};
use crate::object::Desired;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn at(millis: u64) -> Moment {
    Moment(ms(millis))
}

fn object(generation: i64, ready: bool) -> Happened {
    Happened::Object(Some(Object {
        generation,
        desired: Desired { shards: 1, replicas: 1 },
        ready,
        ready_of: generation,
        state: if ready {
            "Ready/ClusterHealthy"
        } else {
            "Reconciling/Reconciling"
        }
        .to_owned(),
        deleting: false,
    }))
}

fn observed(pod: &str, observed: Observation) -> Happened {
    Happened::Observed {
        pod: pod.to_owned(),
        observed,
    }
}

fn primary() -> Observation {
    Observation::Replied(Facts {
        id: "a".into(),
        ok: true,
        role: Role::Primary,
        slots: vec![0..=16383],
        epoch: 1,
        moving: false,
    })
}

fn replica(linked: bool) -> Observation {
    Observation::Replied(Facts {
        id: "b".into(),
        ok: true,
        role: Role::Replica { of: "a".into(), linked },
        slots: vec![],
        epoch: 1,
        moving: false,
    })
}

/// One shard with a replica, complete and Ready from the first second on, followed by the events of the case.
fn case(more: &[(u64, Happened)], end: u64) -> (Truth, Now) {
    let members = BTreeSet::from(["p".to_owned(), "r".to_owned()]);
    let mut all = vec![
        (at(0), object(1, false)),
        (at(100), Happened::Members(members)),
        (at(200), observed("p", primary())),
        (at(300), observed("r", replica(true))),
        (at(700), object(1, true)),
    ];
    all.extend(more.iter().map(|(millis, what)| (at(*millis), what.clone())));
    all.sort_by_key(|(when, _)| *when);
    judge(&all, at(end))
}

#[test]
fn ready_is_late_from_the_moment_the_cluster_is_whole() {
    let (truth, now) = case(&[], 5000);
    assert_eq!((truth.false_ready(), truth.late_ready()), (ms(0), ms(400)));
    assert!(now.ready && now.whole);
    assert_eq!(now.state, "Ready/ClusterHealthy");
}

#[test]
fn a_hibernated_cluster_without_servers_is_truthfully_ready() {
    let hibernated = |ready: bool| match object(2, ready) {
        Happened::Object(Some(object)) => Happened::Object(Some(Object {
            desired: Desired { shards: 0, replicas: 0 },
            ..object
        })),
        other => other,
    };
    let out = Happened::SlotOut {
        slot: 1,
        timed_out: false,
    };
    let more = [
        (1000, hibernated(false)),
        (1100, out),
        (1200, Happened::Members(BTreeSet::new())),
        (1500, hibernated(true)),
    ];
    let (truth, now) = case(&more, 9000);
    assert_eq!((truth.false_ready(), now.ready, now.whole), (ms(0), true, true));
}

#[test]
fn status_may_report_ready_for_one_second_after_a_connection_is_refused() {
    let more = [
        (1000, observed("p", Observation::Failed("refused".into()))),
        (2500, object(1, false)),
    ];
    let (truth, now) = case(&more, 4000);
    assert_eq!(truth.false_ready(), ms(1500));
    assert_eq!(truth.worst_false_ready(), ms(1500));
    assert_eq!(truth.beyond(), ms(500));
    assert_eq!(
        truth.spells[0].wrong,
        ["p refuses connections or replies with an error"]
    );
    assert!(!now.whole && !now.ready);
}

#[test]
fn status_may_report_ready_for_two_seconds_after_a_member_stops_responding() {
    let more = [(1000, observed("p", Observation::Timeout)), (2900, object(1, false))];
    let (truth, _) = case(&more, 4000);
    assert_eq!((truth.false_ready(), truth.beyond()), (ms(1900), ms(0)));
    let more = [(1000, observed("p", Observation::Timeout)), (3300, object(1, false))];
    assert_eq!(case(&more, 4000).0.beyond(), ms(300));
}

#[test]
fn a_fault_behind_a_known_one_has_its_own_deadline() {
    let more = [
        (1000, observed("p", Observation::Timeout)),
        (1500, observed("r", replica(false))),
        (2700, object(1, false)),
    ];
    let (truth, _) = case(&more, 4000);
    assert_eq!(truth.false_ready(), ms(1700));
    assert_eq!(
        truth.beyond(),
        ms(200),
        "the lost link tells at 1.5 s and is due at 2.5 s"
    );
}

#[test]
fn two_faults_are_two_spells() {
    let more = [
        (1000, observed("r", replica(false))),
        (1100, observed("r", replica(true))),
        (2000, observed("r", replica(false))),
        (2300, observed("r", replica(true))),
    ];
    let (truth, _) = case(&more, 4000);
    assert_eq!(truth.spells.len(), 2);
    assert_eq!((truth.false_ready(), truth.worst_false_ready()), (ms(400), ms(300)));
}

#[test]
fn a_false_ready_that_lasts_until_the_end_counts() {
    let (truth, _) = case(&[(1000, observed("p", Observation::Timeout))], 61_000);
    assert_eq!((truth.false_ready(), truth.beyond()), (ms(60_000), ms(58_000)));
}

#[test]
fn a_slot_without_writes_is_no_ready_cluster() {
    let more = [
        (
            1000,
            Happened::SlotOut {
                slot: 7,
                timed_out: false,
            },
        ),
        (
            1000,
            Happened::SlotOut {
                slot: 8,
                timed_out: false,
            },
        ),
        (1400, Happened::SlotBack { slot: 7 }),
        (2600, Happened::SlotBack { slot: 8 }),
    ];
    let (truth, _) = case(&more, 4000);
    assert_eq!((truth.false_ready(), truth.beyond()), (ms(1600), ms(600)));
    assert_eq!(truth.spells[0].wrong, ["a slot accepts no write"]);
}

#[test]
fn ready_of_an_older_generation_is_judged_by_the_spec_of_that_generation() {
    let newer = |ready_of, ready| {
        Happened::Object(Some(Object {
            generation: 2,
            desired: Desired { shards: 1, replicas: 2 },
            ready,
            ready_of,
            state: String::new(),
            deleting: false,
        }))
    };
    let (truth, _) = case(&[(1000, newer(1, true)), (1200, newer(2, false))], 4000);
    assert_eq!(truth.false_ready(), ms(0), "status has not seen the new spec yet");
    let (truth, _) = case(&[(1000, newer(2, true))], 4000);
    assert_eq!((truth.false_ready(), truth.beyond()), (ms(3000), ms(2000)));
}

#[test]
fn nothing_is_judged_before_every_member_was_observed_once() {
    let members = BTreeSet::from(["p".to_owned(), "r".to_owned()]);
    let mut all = vec![
        (at(0), object(1, true)),
        (at(100), Happened::Members(members)),
        (at(300), observed("p", primary())),
        (at(900), observed("r", replica(true))),
    ];
    assert_eq!(judge(&all, at(2000)).0.false_ready(), ms(0));
    all.push((at(1000), Happened::Members(BTreeSet::new())));
    assert_eq!(
        judge(&all, at(2000)).0.false_ready(),
        ms(1000),
        "members that vanish are missed"
    );
}

#[test]
fn a_cluster_without_any_member_is_not_ready() {
    let all = [(at(0), object(1, true)), (at(100), Happened::Members(BTreeSet::new()))];
    assert_eq!(judge(&all, at(1100)).0.false_ready(), ms(1000));
}

/// One shard with a replica that status reports as Ready, where every observation gives the same result from the
/// start.
fn never_reached(result: &Observation) -> (Truth, Now) {
    let members = BTreeSet::from(["p".to_owned(), "r".to_owned()]);
    let all = [
        (at(0), object(1, true)),
        (at(100), Happened::Members(members)),
        (at(200), observed("p", result.clone())),
        (at(300), observed("r", result.clone())),
    ];
    judge(&all, at(60_300))
}

#[test]
fn a_cluster_that_was_never_reached_is_not_accused() {
    let rejected = Unreached::LoginRejected("NOAUTH Authentication required.".into());
    for (observed, why) in [
        (Observation::Timeout, Unreached::NeverResponded),
        (
            Observation::Failed("connection refused".into()),
            Unreached::NeverAccepted("connection refused".into()),
        ),
        (Observation::Unreached(rejected.clone()), rejected),
    ] {
        let (truth, now) = never_reached(&observed);
        assert_eq!(truth.spells, [], "{observed:?}");
        assert_eq!((truth.judged, truth.late_ready()), (ms(0), ms(0)), "{observed:?}");
        assert!(!now.whole && now.defects.is_empty(), "{now:?}");
        let pods: Vec<&str> = truth.not_judged.iter().map(|one| one.pod.as_str()).collect();
        assert_eq!(pods, ["p", "r"]);
        assert_eq!(
            (truth.not_judged[0].lasted, &truth.not_judged[0].why),
            (ms(60_000), &why)
        );
    }
}

#[test]
fn a_member_that_was_never_reached_is_left_out_and_the_others_are_judged() {
    let members = BTreeSet::from(["p".to_owned(), "r".to_owned()]);
    let all = [
        (at(0), object(1, true)),
        (at(100), Happened::Members(members)),
        (at(200), observed("p", primary())),
        (at(1300), observed("r", Observation::Timeout)),
    ];
    let (truth, now) = judge(&all, at(61_300));
    assert_eq!((truth.false_ready(), truth.judged), (ms(0), ms(60_000)));
    assert!(!now.whole, "nothing is known of the replica");
    assert_eq!(truth.not_judged.len(), 1);
    let mut more = all.to_vec();
    more.push((at(2000), observed("p", Observation::Failed("refused".into()))));
    more.push((at(4000), object(1, false)));
    let (truth, _) = judge(&more, at(5000));
    assert_eq!((truth.false_ready(), truth.beyond()), (ms(2000), ms(1000)));
}

#[test]
fn all_members_timing_out_at_once_is_a_lost_route_and_errors_are_not() {
    let more = [
        (1000, observed("p", Observation::Timeout)),
        (1000, observed("r", Observation::Timeout)),
        (
            1100,
            Happened::SlotOut {
                slot: 7,
                timed_out: true,
            },
        ),
        (9000, observed("p", primary())),
        (9000, observed("r", replica(true))),
        (9100, Happened::SlotBack { slot: 7 }),
    ];
    let (truth, _) = case(&more, 20_000);
    assert_eq!(truth.beyond(), ms(0), "{:?}", truth.spells);
    assert_eq!(truth.not_judged[0].why, Unreached::NoneResponds);
    let more = [
        (1000, observed("p", Observation::Failed("refused".into()))),
        (1000, observed("r", Observation::Failed("refused".into()))),
    ];
    assert_eq!(case(&more, 4000).0.beyond(), ms(2000));
}

#[test]
fn a_pause_between_two_restarts_is_not_late() {
    let more = [
        (1000, object(2, false)),
        (1100, observed("r", Observation::Failed(String::new()))),
        (2000, observed("r", replica(true))),
        (2500, observed("p", Observation::Failed(String::new()))),
        (3000, observed("p", primary())),
        (3200, object(2, true)),
    ];
    let (truth, _) = case(&more, 4000);
    assert_eq!(truth.late, [ms(400), ms(200)], "the creation, and the end of the roll");
}

#[test]
fn nothing_is_judged_once_the_cluster_is_being_deleted() {
    let Happened::Object(Some(mut going)) = object(1, true) else {
        unreachable!()
    };
    going.deleting = true;
    let more = [
        (1000, Happened::Object(Some(going))),
        (1100, Happened::Members(BTreeSet::new())),
        (1500, Happened::Object(None)),
    ];
    let (truth, now) = case(&more, 9000);
    assert_eq!((truth.false_ready(), now.whole, now.ready), (ms(0), false, false));
}

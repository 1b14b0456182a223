//! Runs, allowances and expected durations: what is reported while an operation is in progress.

use kube_status::severity::{self, Rules, Severity};
use kube_status::{Aggregate, Allowance, Change, Draft, Phase, Reason, Run, SignedDuration, Status, is_false, set};

use crate::thing::{OldThing, Thing, at, machine, old_machine};

const STEPS: [&str; 3] = [
    "MachinesUpgradeSucceeded",
    "KubeProxyUpgradeSucceeded",
    "CoreDNSUpgradeSucceeded",
];

#[test]
fn a_new_run_resets_every_step_together_with_the_time_of_its_start() {
    let run = Run::new(STEPS);
    let mut object = machine("kcp")
        .with_since(STEPS[0], Status::True, "Done", "", 10)
        .with_since(STEPS[1], Status::False, "Failed", "", 20)
        .with("Ready", Status::True, "Up", "");
    assert_eq!(run.start(&mut object, "to v1.31", at(100)), Change::Status);
    for step in STEPS {
        let stored = kube_status::find(&object.conditions, step).expect(step);
        assert_eq!(
            (&*stored.status, &*stored.reason, &*stored.message),
            ("False", "Pending", "to v1.31")
        );
        assert_eq!(stored.last_transition_time.0, at(100), "{step}");
    }
    assert!(
        kube_status::is_true(&object.conditions, "Ready"),
        "others are left alone"
    );
}

#[test]
fn a_run_knows_its_current_step_and_when_it_is_over() {
    let run = Run::new(STEPS).reason("Waiting");
    let mut object = machine("kcp");
    let _ = run.start(&mut object, "", at(0));
    assert!(is_false(&object.conditions, STEPS[0]));
    assert_eq!(object.conditions[0].reason, "Waiting");
    for (done, step) in STEPS.iter().enumerate() {
        assert_eq!(
            (run.completed(&object.conditions), run.current(&object.conditions)),
            (done, Some(*step))
        );
        assert!(!run.is_over(&object.conditions));
        let _ = set(&mut object, Draft::new(*step, Status::True, "Done"), at(1));
    }
    assert!(run.is_over(&object.conditions));
    assert_eq!(run.completed(&object.conditions), 3);
}

#[test]
fn a_run_without_steps_changes_nothing_and_is_over() {
    let run = Run::new([""; 0]);
    let mut object = machine("kcp");
    assert_eq!(run.start(&mut object, "", at(0)), Change::Nothing);
    let mut old = old_machine("kcp");
    assert_eq!(run.start_with_severity(&mut old, "", at(0)), Change::Nothing);
    assert!(run.is_over(&object.conditions) && object.conditions.is_empty() && old.conditions.is_empty());
}

fn up(name: &str) -> Thing {
    machine(name).with("Ready", Status::True, "Up", "")
}

fn down(name: &str) -> Thing {
    machine(name).with("Ready", Status::False, "Down", "not up")
}

fn old_up(name: &str) -> OldThing {
    old_machine(name).with_old(severity::Draft::good("Ready"))
}

fn old_down(name: &str) -> OldThing {
    old_machine(name).with_old(severity::Draft::bad("Ready", Severity::Warning, "Down", "not up"))
}

fn reported(machines: &[(Thing, Phase)], allowance: Allowance) -> (Status, String, String) {
    let objects = machines.iter().map(|(machine, phase)| (machine, *phase));
    let draft = Aggregate::new("Ready")
        .target("MachinesReady")
        .of_during(objects, &allowance)
        .expect("an aggregate");
    assert_eq!(draft.type_, "MachinesReady");
    (draft.status, draft.reason.into_owned(), draft.message.into_owned())
}

#[test]
fn more_machines_than_desired_are_acceptable_as_far_as_allowed() {
    let four: Vec<_> = ["a", "b", "c", "d"].map(|name| (up(name), Phase::Steady)).into();
    let (status, _, message) = reported(&four, Allowance::new(3).extra(1));
    assert_eq!(
        (status, message.as_str()),
        (Status::True, "1 Machine above the desired 3 (allowed)")
    );
    let (status, reason, message) = reported(&four, Allowance::new(2).extra(1));
    assert_eq!(
        (status, reason.as_str(), message.as_str()),
        (Status::False, "IssuesReported", "* 2 Machines above the desired 2")
    );
    let (status, _, message) = reported(&four, Allowance::new(4));
    assert_eq!((status, message.as_str()), (Status::True, ""));
    assert_eq!(
        reported(&four[..2], Allowance::new(4)).0,
        Status::True,
        "fewer is for others to tell"
    );
}

#[test]
fn one_machine_may_be_unready_while_it_is_provisioned_and_one_while_it_is_deleted() {
    let machines = [
        (up("a"), Phase::Steady),
        (down("b"), Phase::Deleting),
        (machine("c"), Phase::Provisioning),
    ];
    let (status, reason, message) = reported(&machines, Allowance::new(3).provisioning(1).deleting(1));
    assert_eq!(
        (status, reason.as_str(), message.as_str()),
        (
            Status::True,
            "InfoReported",
            "1 Machine being provisioned (allowed)\n1 Machine being deleted (allowed)"
        )
    );
}

#[test]
fn objects_beyond_the_allowance_count_and_are_chosen_by_name() {
    let machines = [
        (down("z"), Phase::Provisioning),
        (down("a"), Phase::Provisioning),
        (down("m"), Phase::Steady),
    ];
    let (status, _, message) = reported(&machines, Allowance::new(3).provisioning(1));
    assert_eq!(
        (status, message.as_str()),
        (
            Status::False,
            "* Machines m, z: not up\n1 Machine being provisioned (allowed)"
        )
    );
    let (_, _, message) = reported(&machines, Allowance::new(3).deleting(5));
    assert_eq!(message, "* Machines a, m, z: not up");
}

#[test]
fn a_ready_machine_uses_up_no_allowance() {
    let machines = [(up("a"), Phase::Provisioning), (down("b"), Phase::Provisioning)];
    assert_eq!(reported(&machines, Allowance::new(2).provisioning(1)).0, Status::True);
}

#[test]
fn when_every_object_is_allowed_for_all_is_well() {
    let machines = [(machine("a"), Phase::Provisioning)];
    let (status, reason, message) = reported(&machines, Allowance::new(1).provisioning(1));
    assert_eq!(
        (status, reason.as_str(), message.as_str()),
        (Status::True, "InfoReported", "1 Machine being provisioned (allowed)")
    );
}

#[test]
fn in_generation_1_allowed_machines_count_in_the_total_but_are_not_reported() {
    let aggregate = severity::Aggregate::new("MachinesReady");
    let reported = |machines: &[(OldThing, Phase)], allowance: Allowance| {
        let objects = machines.iter().map(|(machine, phase)| (machine, *phase));
        aggregate.of_during(objects, &allowance).expect("a condition")
    };
    let machines = [
        (old_up("a"), Phase::Steady),
        (old_down("b"), Phase::Provisioning),
        (old_down("c"), Phase::Steady),
    ];
    let draft = reported(&machines, Allowance::new(3).provisioning(1));
    assert_eq!((draft.status(), draft.message()), (Status::False, "1 of 3 completed"));
    assert_eq!(
        reported(&machines[..2], Allowance::new(2).provisioning(1)).status(),
        Status::True
    );
    let many = reported(&machines[..1], Allowance::new(0));
    assert_eq!(
        (many.status(), many.severity(), many.reason(), many.message()),
        (
            Status::False,
            Some(Severity::Warning),
            Allowance::TOO_MANY,
            "1 of 0 desired"
        )
    );
    assert_eq!(
        reported(&machines[..1], Allowance::new(0).extra(1)).status(),
        Status::True
    );
}

/// Why a network is not there yet.
#[derive(Clone, Copy, Reason)]
enum VpcReason {
    /// It is being made.
    #[reason(severity = Info, expected = "10m")]
    Creating,
    /// It failed.
    #[reason(severity = Error)]
    Failed,
    /// Has no severity.
    Odd,
}

#[test]
fn an_info_becomes_a_warning_once_it_takes_longer_than_declared() {
    let mut list = Vec::new();
    let creating = || severity::Draft::because("VPCReady", VpcReason::Creating, "");
    let table = [
        (0, Change::Status, Severity::Info),
        (600, Change::Nothing, Severity::Info),
        (601, Change::Text, Severity::Warning),
        (900, Change::Nothing, Severity::Warning),
    ];
    for (second, change, severity) in table {
        assert_eq!(
            severity::set_in(&mut list, creating(), at(second), Rules::PROPOSAL),
            change,
            "at {second}"
        );
        assert_eq!(list[0].severity(), Some(severity), "at {second}");
    }
    let _ = severity::set_in(&mut list, severity::Draft::good("VPCReady"), at(1000), Rules::PROPOSAL);
    let _ = severity::set_in(&mut list, creating(), at(1001), Rules::PROPOSAL);
    assert_eq!(list[0].severity(), Some(Severity::Info), "a new turn has its own time");
}

#[test]
fn only_infos_are_raised_and_a_reason_without_severity_is_an_error() {
    let mut list = vec![severity::Draft::because("A", VpcReason::Failed, "").into_condition(at(0))];
    let _ = severity::set_in(
        &mut list,
        severity::Draft::because("A", VpcReason::Odd, ""),
        at(9999),
        Rules::PROPOSAL,
    );
    assert_eq!(list[0].severity(), Some(Severity::Error));
    assert_eq!(VpcReason::Creating.expected(), Some(SignedDuration::from_mins(10)));
    assert_eq!((VpcReason::Odd.severity(), VpcReason::Failed.expected()), (None, None));
}

#[test]
fn a_mixed_crowd_above_the_desired_number_is_counted_as_objects() {
    let mut other = up("c");
    other.kind = "Pool".to_owned();
    let mixed = [
        (up("a"), Phase::Steady),
        (up("b"), Phase::Steady),
        (other, Phase::Steady),
    ];
    let (_, _, message) = reported(&mixed, Allowance::new(2).extra(1));
    assert_eq!(message, "1 Object above the desired 2 (allowed)");
}

#[test]
fn in_generation_1_a_machine_without_ready_uses_up_no_allowance() {
    let machines = [
        (old_machine("a"), Phase::Provisioning),
        (old_down("b"), Phase::Provisioning),
        (old_up("c"), Phase::Steady),
    ];
    let objects = machines.iter().map(|(machine, phase)| (machine, *phase));
    let draft = severity::Aggregate::new("MachinesReady").of_during(objects, &Allowance::new(3).provisioning(1));
    assert_eq!(draft.expect("a condition").status(), Status::True);
}

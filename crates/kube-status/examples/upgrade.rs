//! Reports an upgrade while it runs: a run of `…Succeeded` conditions that is reset when it starts, and an aggregate that
//! allows for the server that is being replaced.
//!
//! `cargo run --example upgrade`

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube_status::{
    Aggregate, Allowance, Condition, ConditionType, Conditioned, Draft, Phase, Run, Status, Summary, find, set,
};

#[derive(Clone, Copy, PartialEq, ConditionType)]
enum ControlPlane {
    /// The control plane serves.
    Ready,
    /// Every server is ready, or allowed not to be.
    MachinesReady,
    /// The machines run the wanted version.
    MachinesUpgradeSucceeded,
    /// The proxy runs the wanted version.
    KubeProxyUpgradeSucceeded,
    /// The name server runs the wanted version.
    CoreDNSUpgradeSucceeded,
}

const UPGRADE: [ControlPlane; 3] = [
    ControlPlane::MachinesUpgradeSucceeded,
    ControlPlane::KubeProxyUpgradeSucceeded,
    ControlPlane::CoreDNSUpgradeSucceeded,
];

#[derive(Clone, Default)]
struct Conditions {
    conditions: Vec<Condition>,
}

#[derive(Clone, Default, Conditioned)]
struct KubeadmControlPlane {
    metadata: ObjectMeta,
    status: Conditions,
}

#[derive(Clone, Default, Conditioned)]
struct Machine {
    metadata: ObjectMeta,
    status: Conditions,
}

fn machine(name: &str, ready: Option<bool>) -> Machine {
    let metadata = ObjectMeta {
        name: Some(name.into()),
        ..ObjectMeta::default()
    };
    let mut machine = Machine {
        metadata,
        ..Machine::default()
    };
    if let Some(ready) = ready {
        let _ = set(
            &mut machine,
            Draft::new("Ready", ready, "Observed"),
            Timestamp::UNIX_EPOCH,
        );
    }
    machine
}

fn show(at: &str, control_plane: &KubeadmControlPlane) -> Status {
    let ready = find(control_plane.conditions(), ControlPlane::Ready).expect("the summary was set");
    println!("{at}: Ready={}\n{}\n", ready.status, ready.message);
    Status::of(ready)
}

fn main() -> Result<(), kube_status::merge::MergeError> {
    let mut now: Timestamp = "2026-02-05T10:00:00Z".parse().expect("a time");
    let mut control_plane = KubeadmControlPlane::default();
    let run = Run::new(UPGRADE);
    let summary = Summary::new(ControlPlane::Ready)
        .declared(ControlPlane::ALL.iter().copied().filter(|t| *t != ControlPlane::Ready))
        .ignore_if_missing(UPGRADE);
    let machines = Aggregate::new("Ready").target(ControlPlane::MachinesReady);

    let steady = [
        machine("m1", Some(true)),
        machine("m2", Some(true)),
        machine("m3", Some(true)),
    ];
    let _ = machines.set(&steady, &mut control_plane, now)?;
    let _ = summary.set(&mut control_plane, now)?;
    assert_eq!(show("Before", &control_plane), Status::True);

    // A new version is requested: the run starts, and one server more than desired may exist and not be ready yet.
    let _ = run.start(&mut control_plane, "Upgrade to v1.31", now);
    let surge = [
        (&steady[0], Phase::Steady),
        (&steady[1], Phase::Steady),
        (&steady[2], Phase::Steady),
        (&machine("m4", None), Phase::Provisioning),
    ];
    let allowance = Allowance::new(3).extra(1).provisioning(1).deleting(1);
    let told = machines.of_during(surge, &allowance)?;
    assert_eq!(told.status, Status::True, "a machine on its way is no trouble");
    let _ = set(&mut control_plane, told, now);
    let _ = summary.set(&mut control_plane, now)?;
    assert_eq!(show("Started", &control_plane), Status::False);

    for step in UPGRADE {
        now += SignedDuration::from_mins(5);
        let _ = set(&mut control_plane, Draft::good(step, "Upgraded"), now);
        let _ = summary.set(&mut control_plane, now)?;
        let _ = show(
            &format!("{} of 3 steps", run.completed(control_plane.conditions())),
            &control_plane,
        );
    }
    assert!(run.is_over(control_plane.conditions()));
    Ok(())
}

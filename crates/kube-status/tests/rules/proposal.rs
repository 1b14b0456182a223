//! The examples of the conditions proposal: a cluster, its nodes and their infrastructure, level by level.

use kube_status::severity::{Aggregate, Condition, Draft, Mirror, Severity, Summary, find, is_true, set};
use kube_status::{Negative, Run, Status};

use crate::thing::{OldThing, at, old_machine, old_thing};

const NETWORK: [&str; 6] = [
    "VPCReady",
    "SubnetsReady",
    "InternetGatewaysReady",
    "NatGatewaysReady",
    "RouteTablesReady",
    "SecurityGroupsReady",
];

fn ready(object: &OldThing) -> (Status, Option<Severity>, &str, &str) {
    of(object, "Ready")
}

fn of<'t>(object: &'t OldThing, type_: &str) -> (Status, Option<Severity>, &'t str, &'t str) {
    let c: &Condition = find(&object.conditions, type_).expect(type_);
    (c.status(), c.severity(), c.reason(), c.message())
}

/// `ControlPlaneReady=False, Reason=ScalingUp, Severity=Info` and its sisters.
#[test]
fn reason_and_severity_identify_the_kind_of_failure() {
    let reported = [
        ("ControlPlaneReady", "ScalingUp", Severity::Info),
        ("MachineReady", "MachineNotHealthy", Severity::Error),
        ("MachineReady", "MachineUnderProbation", Severity::Warning),
        ("AWSMachineReady", "SSHKeyMissing", Severity::Warning),
    ];
    for (type_, reason, severity) in reported {
        let mut object = old_thing("Cluster", "c");
        let _ = set(&mut object, Draft::bad(type_, severity, reason, ""), at(0));
        assert_eq!(of(&object, type_), (Status::False, Some(severity), reason, ""));
    }
}

/// `AWSCluster.Status.Conditions[Ready]` is the summary of `VPCReady`, `SubnetsReady`, `InternetGatewaysReady`.
#[test]
fn the_infrastructures_ready_is_the_summary_of_its_details() {
    let summary = Summary::new().types(NETWORK).step_counter(true);
    let mut infra = old_thing("AWSCluster", "infra");
    let _ = set(&mut infra, Draft::good("VPCReady"), at(0));
    let _ = set(
        &mut infra,
        Draft::bad("SubnetsReady", Severity::Info, "SubnetsCreating", ""),
        at(0),
    );
    let _ = summary.set(&mut infra, at(0));
    assert_eq!(
        ready(&infra),
        (
            Status::False,
            Some(Severity::Info),
            "SubnetsCreating",
            "1 of 6 completed"
        )
    );

    for type_ in NETWORK {
        let _ = set(&mut infra, Draft::good(type_), at(1));
    }
    let _ = summary.set(&mut infra, at(1));
    assert_eq!(ready(&infra), (Status::True, None, "", ""));
}

/// The five things that can be said while the infrastructure is being made, each with its severity.
#[test]
fn provisioning_is_reported_as_progress_delay_warning_or_failure() {
    let summary = Summary::new();
    let reported = [
        (
            Draft::bad("VPCReady", Severity::Info, "VPCCreating", "proceeding"),
            Severity::Info,
        ),
        (
            Draft::bad("VPCReady", Severity::Warning, "VPCSlow", "longer than expected"),
            Severity::Warning,
        ),
        (
            Draft::bad("VPCReady", Severity::Warning, "VPCQuota", "raise the quota"),
            Severity::Warning,
        ),
        (
            Draft::bad("VPCReady", Severity::Error, "VPCFailed", "catastrophic"),
            Severity::Error,
        ),
        (
            Draft::bad(
                "VPCReady",
                Severity::Error,
                "VPCNotOperational",
                "provisioned, not working",
            ),
            Severity::Error,
        ),
    ];
    for (draft, severity) in reported {
        let mut infra = old_thing("AWSCluster", "infra").with_old(Draft::good("SubnetsReady"));
        let (reason, message) = (draft.reason().to_owned(), draft.message().to_owned());
        let _ = set(&mut infra, draft, at(0));
        let _ = summary.set(&mut infra, at(0));
        assert_eq!(
            ready(&infra),
            (Status::False, Some(severity), reason.as_str(), message.as_str())
        );
    }
}

#[test]
fn errors_surface_immediately_and_without_errors_warnings_do() {
    let mut infra = NETWORK.iter().fold(old_thing("AWSCluster", "infra"), |infra, type_| {
        infra.with_old(Draft::bad(*type_, Severity::Info, "Creating", ""))
    });
    let _ = set(
        &mut infra,
        Draft::bad("SecurityGroupsReady", Severity::Warning, "Quota", ""),
        at(0),
    );
    let _ = Summary::new().set(&mut infra, at(0));
    assert_eq!(ready(&infra).2, "Quota");
    let _ = set(
        &mut infra,
        Draft::bad("RouteTablesReady", Severity::Error, "Denied", ""),
        at(0),
    );
    let _ = Summary::new().set(&mut infra, at(0));
    assert_eq!(ready(&infra).2, "Denied");
}

/// `Cluster.Status.Conditions[ClusterInfrastructureReady]` mirrors `AWSCluster.Status.Conditions[Ready]`.
#[test]
fn the_clusters_infrastructure_mirrors_the_providers_ready() {
    let infra = old_thing("AWSCluster", "infra").with_old(Draft::bad(
        "Ready",
        Severity::Info,
        "VPCCreating",
        "1 of 6 completed",
    ));
    let mut cluster = old_thing("Cluster", "c");
    let _ = Mirror::new("ClusterInfrastructureReady").set(&infra, &mut cluster, at(0));
    assert_eq!(
        of(&cluster, "ClusterInfrastructureReady"),
        (Status::False, Some(Severity::Info), "VPCCreating", "1 of 6 completed")
    );
}

/// From the instance of one control plane node up to `Cluster.Status.Conditions[ControlPlaneReady]`.
#[test]
fn a_fault_of_one_instance_shows_on_the_cluster() {
    let machine_ready = Summary::new()
        .types(["InfrastructureReady", "EtcdReady", "ApiServerPodReady"])
        .step_counter(true)
        .source_reference(true);
    let machines: Vec<OldThing> = (1..=3)
        .map(|i| {
            let mut infra = old_thing("AWSMachine", &format!("m{i}"))
                .with_old(Draft::good("SecurityGroupsReady"))
                .with_old(Draft::good("LBAttachmentReady"));
            let instance = match i {
                2 => Draft::bad("InstanceReady", Severity::Warning, "SSHKeyMissing", ""),
                _ => Draft::good("InstanceReady"),
            };
            let _ = set(&mut infra, instance, at(0));
            let _ = Summary::new()
                .step_counter(true)
                .source_reference(true)
                .set(&mut infra, at(0));

            let mut machine = old_machine(&format!("m{i}"))
                .with_old(Draft::good("EtcdReady"))
                .with_old(Draft::good("ApiServerPodReady"));
            let _ = Mirror::new("InfrastructureReady").set(&infra, &mut machine, at(0));
            let _ = machine_ready.set(&mut machine, at(0));
            machine
        })
        .collect();
    assert_eq!(
        ready(&machines[1]),
        (
            Status::False,
            Some(Severity::Warning),
            "SSHKeyMissing @ AWSMachine/m2",
            "2 of 3 completed"
        )
    );

    let mut control_plane = old_thing("KubeadmControlPlane", "kcp").with_old(Draft::good("ScalingUpSucceeded"));
    let _ = Aggregate::new("MachinesReady")
        .source_reference(true)
        .set(&machines, &mut control_plane, at(0));
    assert_eq!(of(&control_plane, "MachinesReady").3, "2 of 3 completed");
    let _ = Summary::new().set(&mut control_plane, at(0));

    let mut cluster = old_thing("Cluster", "c");
    let _ = Mirror::new("ControlPlaneReady").set(&control_plane, &mut cluster, at(0));
    assert_eq!(
        of(&cluster, "ControlPlaneReady"),
        (
            Status::False,
            Some(Severity::Warning),
            "SSHKeyMissing @ AWSMachine/m2",
            "2 of 3 completed"
        )
    );
}

/// An object should never be Ready=True if one of its conditions, or a dependent's Ready, is False.
#[test]
fn ready_is_never_true_over_a_false_condition_or_dependent() {
    for severity in [Severity::Error, Severity::Warning, Severity::Info] {
        let bad = old_machine("m")
            .with_old(Draft::good("A"))
            .with_old(Draft::bad("B", severity, "R", ""));
        assert_eq!(Summary::new().of(&bad).expect("one").status(), Status::False);
        let dependents = [
            old_machine("a").with_old(Draft::good("Ready")),
            old_machine("b").with_old(Draft::bad("Ready", severity, "R", "")),
        ];
        assert_eq!(
            Aggregate::new("MachinesReady").of(&dependents).expect("one").status(),
            Status::False
        );
    }
}

/// A condition that does not speak of the operational state, such as Paused, is not part of Ready.
#[test]
fn paused_is_left_out_of_ready_by_naming_what_is_in() {
    let object = old_machine("m")
        .with_old(Draft::good("InfrastructureReady"))
        .with_old(Draft::bad(Negative("Paused"), Severity::Info, "AskedFor", ""));
    let ready = Summary::new().types(["InfrastructureReady"]).of(&object).expect("one");
    assert_eq!(ready.status(), Status::True);
}

/// If the dependents expose no Ready, the summary condition is not generated and no error is raised.
#[test]
fn dependents_without_ready_make_no_condition_and_no_error() {
    let mut cluster = old_thing("Cluster", "c");
    let _ = Mirror::new("ClusterInfrastructureReady").set(&old_thing("OldProvider", "p"), &mut cluster, at(0));
    let _ = Aggregate::new("MachinesReady").set(&[old_machine("a"), old_machine("b")], &mut cluster, at(0));
    assert!(cluster.conditions.is_empty());
}

/// The upgrade's run-to-completion conditions are reset every time an upgrade starts, and captured by Ready.
#[test]
fn an_upgrade_resets_its_conditions_and_shows_on_the_cluster() {
    let steps = [
        "MachinesUpgradeSucceeded",
        "KubeProxyUpgradeSucceeded",
        "CoreDNSUpgradeSucceeded",
    ];
    let run = Run::new(steps);
    let summary = Summary::new()
        .types(["MachinesReady", steps[0], steps[1], steps[2]])
        .step_counter(true);
    let mut control_plane = old_thing("KubeadmControlPlane", "kcp").with_old(Draft::good("MachinesReady"));
    for step in steps {
        let _ = set(&mut control_plane, Draft::good(step), at(0));
    }
    let _ = summary.set(&mut control_plane, at(0));
    assert_eq!(ready(&control_plane).0, Status::True);

    let _ = run.start_with_severity(&mut control_plane, "upgrade to v1.31", at(100));
    let _ = set(&mut control_plane, Draft::good(steps[0]), at(110));
    let _ = summary.set(&mut control_plane, at(110));
    assert_eq!(
        ready(&control_plane),
        (Status::False, Some(Severity::Info), "Pending", "2 of 4 completed")
    );

    let mut cluster = old_thing("Cluster", "c");
    let _ = Mirror::new("ControlPlaneReady").set(&control_plane, &mut cluster, at(110));
    assert!(!is_true(&cluster.conditions, "ControlPlaneReady"));
}

/// Nodes mix polarities: `MemoryPressure=False` is as good as `Ready=True`.
#[test]
fn conditions_of_both_polarities_are_merged_together() {
    let pressures = ["MemoryPressure", "DiskPressure", "PIDPressure"];
    let node = pressures.iter().fold(
        old_thing("Node", "n").with_old(Draft::good("KubeletReady")),
        |node, type_| node.with_old(Draft::good(Negative(*type_))),
    );
    let summary = Summary::new().negative(pressures);
    assert_eq!(summary.of(&node).expect("one").status(), Status::True);
    let full = node.with_old(Draft::bad(
        Negative("DiskPressure"),
        Severity::Warning,
        "KubeletHasDiskPressure",
        "",
    ));
    assert_eq!(summary.of(&full).expect("one").reason(), "KubeletHasDiskPressure");
}

//! The provisioning of a cluster as the conditions proposal tells it: steps of the network are summarised with a step
//! counter, mirrored onto the cluster, and a step that takes longer than declared becomes a warning.
//!
//! `cargo run --example infrastructure`

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube_status::severity::{Condition, Draft, Mirror, Severity, Summary, find, set};
use kube_status::{ConditionType, Conditioned, Reason, documentation};

/// The steps of the network, in their order.
#[derive(Clone, Copy, ConditionType)]
#[condition(reasons = Network)]
#[expect(clippy::enum_variant_names, reason = "the variants are the API's own words")]
enum AwsClusterCondition {
    /// The network is there and works.
    #[condition(name = "VPCReady", reasons(Creating, Denied))]
    VpcReady,
    /// The subnets are there and work.
    #[condition(reasons(Creating, Denied))]
    SubnetsReady,
    /// The internet gateways are there and work.
    #[condition(reasons(Creating, Denied))]
    InternetGatewaysReady,
}

/// Why a step is not done.
#[derive(Clone, Copy, Reason)]
enum Network {
    /// It is being made.
    #[reason(severity = Info, expected = "10m")]
    Creating,
    /// The account has no permission; an administrator must act.
    #[reason(severity = Error)]
    Denied,
}

#[derive(Default)]
struct Status {
    conditions: Vec<Condition>,
}

#[derive(Default, Conditioned)]
#[conditioned(severity)]
struct AWSCluster {
    metadata: ObjectMeta,
    status: Option<Status>,
}

#[derive(Default, Conditioned)]
#[conditioned(severity)]
struct Cluster {
    metadata: ObjectMeta,
    status: Option<Status>,
}

/// What the two controllers do: the provider summarises, the cluster mirrors.
fn report(when: &str, infra: &mut AWSCluster, cluster: &mut Cluster, now: Timestamp) -> Option<Severity> {
    let summary = Summary::new()
        .declared(AwsClusterCondition::ALL.iter().copied())
        .step_counter(true);
    let _ = summary.source_reference(true).set(infra, now);
    let _ = Mirror::new("ClusterInfrastructureReady").set(infra, cluster, now);
    let seen = find(cluster.conditions(), "ClusterInfrastructureReady").expect("the mirror was set");
    let severity = seen.severity();
    let (status, reason, message) = (seen.status(), seen.reason(), seen.message());
    println!("{when}: ClusterInfrastructureReady={status} {severity:?} {reason:?} {message:?}");
    severity
}

fn main() {
    let start: Timestamp = "2026-02-05T10:00:00Z".parse().expect("a time");
    let named = |name: &str| ObjectMeta {
        name: Some(name.into()),
        ..ObjectMeta::default()
    };
    let mut infra = AWSCluster {
        metadata: named("prod"),
        status: None,
    };
    let mut cluster = Cluster {
        metadata: named("prod"),
        status: None,
    };

    println!("{}", documentation::<AwsClusterCondition>());
    let _ = set(&mut infra, Draft::good(AwsClusterCondition::VpcReady), start);
    let creating = || Draft::because(AwsClusterCondition::SubnetsReady, Network::Creating, "3 subnets");
    let _ = set(&mut infra, creating(), start);
    assert_eq!(
        report("At first", &mut infra, &mut cluster, start),
        Some(Severity::Info)
    );

    let late = start + SignedDuration::from_mins(11);
    let _ = set(&mut infra, creating(), late);
    assert_eq!(
        report("After 11 minutes", &mut infra, &mut cluster, late),
        Some(Severity::Warning)
    );

    let denied = Draft::because(
        AwsClusterCondition::InternetGatewaysReady,
        Network::Denied,
        "ec2:CreateInternetGateway",
    );
    let _ = set(&mut infra, denied, late);
    assert_eq!(report("Denied", &mut infra, &mut cluster, late), Some(Severity::Error));

    for &step in AwsClusterCondition::ALL {
        let _ = set(&mut infra, Draft::good(step), late);
    }
    assert_eq!(report("At last", &mut infra, &mut cluster, late), None);
}

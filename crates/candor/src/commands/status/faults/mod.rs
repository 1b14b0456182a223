//! The first two lines of `candor status` for every fault: impact, cause, next step. The messages are those that the
//! operator writes: `messages` is the list that the operator's own tests compare it with.

#[path = "../../../../../candor-operator/tests/simulated/published/messages.rs"]
#[allow(dead_code)] // the operator's tests use more of it
mod messages;

mod spec_and_surroundings;

use std::fmt::Write;

use serde_json::json;

use super::fixtures::{self, condition};
use super::screen::Report;
use crate::commands::cluster::Kind;
use crate::commands::output::Screen;
use crate::commands::snapshot::Snapshot;
use spec_and_surroundings::{around, specs};

/// Reasons with a message of the API server, the scheduler or the kubelet.
const OF_OTHERS: [&str; 5] = [
    "DeploymentError",
    "PodListError",
    "PodNotStarting",
    "PodUnschedulable",
    "ServiceError",
];
const RECENT: &str = "2026-02-05T09:59:57Z";
const EARLIER: &str = "2026-02-05T09:55:00Z";

/// A condition of a fault: type, status, reason, message, severity.
type Row<'a> = (&'a str, &'a str, &'a str, &'a str, &'a str);

/// A cluster of three shards with these conditions beside `ClusterFormed` and `SlotsAssigned`.
fn cluster(state: &str, since: &str, rows: &[Row<'_>]) -> Snapshot {
    let mut snapshot = fixtures::healthy();
    let status = fixtures::valkey(&mut snapshot).status.as_mut().unwrap();
    status.state = serde_json::from_value(json!(state)).unwrap();
    status
        .conditions
        .retain(|one| !["Ready", "Progressing"].contains(&one.type_.as_str()));
    for (type_, is, reason, message, severity) in rows {
        let all = condition(type_, is, reason, message, since, severity);
        status.conditions.push(serde_json::from_value(all).unwrap());
    }
    snapshot
}

/// A cluster that must be mended by a user.
fn failed(reason: &str, message: &str) -> Snapshot {
    let waiting = "Waiting for the cause to be removed: see Ready";
    let rows = [
        ("Ready", "False", reason, message, "Error"),
        ("Progressing", "False", "Stalled", waiting, ""),
    ];
    cluster("Failed", EARLIER, &rows)
}

fn degraded(since: &str, reason: &str, message: &str) -> Snapshot {
    let rows = [
        ("Ready", "False", "Reconciling", "Cluster is Reconciling", "Warning"),
        (
            "Progressing",
            "True",
            "Reconciling",
            "Waiting for failover in shard 1",
            "Warning",
        ),
        ("Degraded", "True", reason, message, "Error"),
    ];
    cluster("Degraded", since, &rows)
}

/// No object of the cluster could be made yet.
fn initializing(message: &str) -> Snapshot {
    let rows = [
        (
            "Ready",
            "False",
            "MissingShards",
            "Waiting for all shards to be created",
            "Info",
        ),
        ("Progressing", "True", "Initializing", message, "Info"),
    ];
    let mut snapshot = cluster("Initializing", RECENT, &rows);
    fixtures::valkey(&mut snapshot)
        .status
        .as_mut()
        .unwrap()
        .topology
        .clear();
    snapshot.nodes.clear();
    snapshot.pods.clear();
    snapshot
}

/// Changes what the operator says of a member.
fn member(mut snapshot: Snapshot, (shard, node): (i32, i32), reason: &str, message: &str, since: &str) -> Snapshot {
    let all = snapshot.nodes.iter_mut();
    for one in all.filter(|one| (one.spec.shard, one.spec.node) == (shard, node)) {
        let status = one.status.as_mut().unwrap();
        status.ready = false;
        status.role = None;
        let ready = condition("Ready", "False", reason, message, since, "Error");
        status.conditions[0] = serde_json::from_value(ready).unwrap();
    }
    snapshot
}

fn with(mut snapshot: Snapshot, since: &str, (type_, is, reason, message, severity): Row<'_>) -> Snapshot {
    let status = fixtures::valkey(&mut snapshot).status.as_mut().unwrap();
    let all = condition(type_, is, reason, message, since, severity);
    status.conditions.push(serde_json::from_value(all).unwrap());
    snapshot
}

fn without_replicas(mut snapshot: Snapshot) -> Snapshot {
    fixtures::valkey(&mut snapshot).spec.replicas = Some(0);
    snapshot
}

fn primary_silent(since: &str) -> Snapshot {
    let lost = degraded(
        since,
        "PrimaryLost",
        "Primary lost in shard 1: member 1-0 does not answer",
    );
    member(
        lost,
        (1, 0),
        "Silent",
        "Does not answer since 2026-02-05T09:59:57Z",
        since,
    )
}

fn on_lost_node() -> Snapshot {
    let words = "Primary lost in shard 1: member 1-0 may still be running on node node-1: its pod is gone, and the node \
                 does not confirm that it has terminated";
    member(
        degraded(EARLIER, "PrimaryLost", words),
        (1, 0),
        "PodPending",
        "Has no pod",
        EARLIER,
    )
}

fn quorum() -> Snapshot {
    let words = "1 of 3 primaries answer: without a majority servers cannot elect a primary";
    let mut lost = degraded(EARLIER, "QuorumLost", words);
    for shard in [0, 2] {
        lost = member(lost, (shard, 0), "Silent", "Does not answer", EARLIER);
    }
    member(lost, (1, 0), "ClusterDown", "Sees slots that nobody serves", EARLIER)
}

fn losses() -> Vec<(&'static str, Snapshot)> {
    let unschedulable = "0/3 nodes are available: 3 Insufficient memory";
    let replica = "Replica lost in shard 1: member 1-1 has no address";
    let deleting = "member 1-1: volume claim valkey-shop-1-1-data is being deleted";
    let lost = "member 1-1: volume claim valkey-shop-1-1-data lost its volume";
    let full = "member 1-0: MISCONF Errors writing to the AOF file: No space left on device";
    let reconciling = [
        ("Ready", "False", "Reconciling", "Cluster is Reconciling", "Warning"),
        (
            "Progressing",
            "True",
            "Reconciling",
            "Applying changes to 1 running node",
            "Warning",
        ),
    ];
    let pending = ("StorageReady", "False", "VolumePending", deleting, "Info");
    vec![
        ("primary terminated", fixtures::primary_lost()),
        ("primary frozen for 3 s", primary_silent(RECENT)),
        ("primary frozen for 5 min", primary_silent(EARLIER)),
        ("primary on a node that is cut off", on_lost_node()),
        (
            "replica terminated",
            member(
                degraded(
                    RECENT,
                    "ReplicaLost",
                    "Replica lost in shard 1: member 1-1 refuses connections",
                ),
                (1, 1),
                "Gone",
                "Refuses connections since 2026-02-05T09:59:57Z",
                RECENT,
            ),
        ),
        (
            "replica without a node",
            member(
                degraded(EARLIER, "ReplicaLost", replica),
                (1, 1),
                "PodUnschedulable",
                unschedulable,
                EARLIER,
            ),
        ),
        ("majority of primaries unreachable", quorum()),
        ("a shard came back empty", fixtures::data_lost()),
        (
            "volume claim deleted",
            with(cluster("Reconciling", RECENT, &reconciling), RECENT, pending),
        ),
        (
            "volume claim deleted, no replicas",
            without_replicas(with(cluster("Reconciling", RECENT, &reconciling), RECENT, pending)),
        ),
        (
            "volume deleted",
            with(
                failed("VolumeFailed", lost),
                EARLIER,
                ("StorageReady", "False", "VolumeFailed", lost, "Error"),
            ),
        ),
        (
            "disk full",
            with(
                failed("VolumeFailed", full),
                EARLIER,
                ("StorageReady", "False", "VolumeFailed", full, "Error"),
            ),
        ),
    ]
}

fn pods() -> Vec<(&'static str, Snapshot)> {
    let pod = "pod valkey-shop-0-1-x: container server";
    let pull = format!("{pod}: Back-off pulling image \"valkey/valkey:typo\": docker.io/valkey/valkey:typo: not found");
    let crash = format!(
        "{pod} keeps crashing: last exit Error (exit code 1): *** FATAL CONFIG FILE ERROR (Version 9.1.2) *** Reading \
         the configuration file, at line 5 >>> 'maxmemory-policy nonsense' argument(s) must be one of the following: \
         volatile-lru, noeviction; 2 restarts"
    );
    let killed = format!("{pod} keeps crashing: last exit OOMKilled (exit code 137); 3 restarts");
    let claim = "member 0-0: volume claim valkey-shop-0-0-data is not bound yet (StorageClass gold)";
    let elsewhere = "0/3 nodes are available: 1 node(s) didn't match pod topology spread constraints, 2 node(s) didn't match \
        PersistentVolume's node affinity. no new claims to deallocate, preemption: 0/3 nodes are available: 1 No \
        preemption victims found for incoming pod, 2 Preemption is not helpful for scheduling.";
    let unbound = "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims";
    vec![
        ("wrong image", degraded(EARLIER, "PodNotStarting", &pull)),
        (
            "configuration that the server rejects at its start",
            degraded(EARLIER, "PodNotStarting", &crash),
        ),
        ("memory limit too low", degraded(EARLIER, "PodNotStarting", &killed)),
        (
            "no room",
            degraded(
                EARLIER,
                "PodUnschedulable",
                "0/3 nodes are available: 3 Insufficient memory",
            ),
        ),
        (
            "volume in another zone",
            member(
                degraded(EARLIER, "PodUnschedulable", elsewhere),
                (0, 1),
                "PodUnschedulable",
                elsewhere,
                EARLIER,
            ),
        ),
        (
            "unknown StorageClass",
            with(
                degraded(EARLIER, "PodUnschedulable", unbound),
                EARLIER,
                ("StorageReady", "False", "VolumePending", claim, "Warning"),
            ),
        ),
    ]
}

#[test]
fn every_fault_has_the_messages_that_the_operator_writes() {
    let texts: Vec<String> = messages::conditions().collect();
    let faults = [losses(), pods(), specs(), around()].concat();
    let valkey = |snapshot: &Snapshot| snapshot.object.kind() == Kind::ValkeyCluster;
    let mut strange = Vec::new();
    for (fault, snapshot) in faults.iter().filter(|(_, snapshot)| valkey(snapshot)) {
        for one in snapshot.cluster().conditions {
            let line = format!("{}={} {}: {}", one.type_, one.status, one.reason, one.message);
            // The operator's tests call their cluster cart.
            let line = line.replace("shop", "cart");
            let known = texts
                .iter()
                .any(|text| messages::fits(&line, text.trim_start_matches('?')));
            if !known && !OF_OTHERS.contains(&one.reason.as_str()) {
                strange.push(format!("{fault}: {line}"));
            }
        }
    }
    assert!(strange.is_empty(), "{}", strange.join("\n"));
}

fn head(snapshot: &Snapshot) -> Vec<String> {
    let screen = Screen {
        width: None,
        colour: false,
        wide: false,
    };
    Report::of(snapshot).head(&screen).lines().map(str::to_owned).collect()
}

#[test]
fn two_lines_say_impact_cause_and_next_step_of_every_fault() {
    let mut all = String::new();
    for (fault, snapshot) in [losses(), pods(), specs(), around()].concat() {
        let lines = head(&snapshot);
        let ready = snapshot.cluster().ready() == Some(kube_status::Status::True);
        assert!(
            lines[0].to_lowercase().contains("slots") || snapshot.cluster().conditions.is_empty(),
            "{fault}: {lines:?}"
        );
        let next = ["To do: ", "Nothing to do: ", "You can: "];
        let says_next = lines
            .get(1)
            .is_some_and(|line| next.iter().any(|next| line.starts_with(next)));
        // Data that was lost, or a pause, of a cluster that is Ready: the line carries its own command.
        let in_aside = ready
            && lines
                .get(1)
                .is_some_and(|line| line.contains("kubectl") || line.contains("candor"));
        assert!(says_next || in_aside, "{fault}: {lines:?}");
        let _ = writeln!(all, "# {fault}\n{}\n{}\n", lines[0], lines[1]);
    }
    insta::assert_snapshot!("faults", all);
}

//! Taking over a `RedkeyCluster` of the existing operator: wherever that operator stopped, the plan starts from what the
//! servers say, and no key is purged.

use std::collections::BTreeMap;

use candor_api::redkey::status::OperationMode;
use candor_api::{RedkeyCluster, RedkeyClusterSpec, RedkeyClusterStatus};
use candor_engine::attempts::Attempts;
use candor_engine::kinds::redkey::operation::{Input, Planned, Set, plan};
use candor_engine::kinds::redkey::report::{Report, ReportInput, Robin, report};
use candor_engine::kinds::redkey::rows::Progress;
use candor_engine::observation::{Facts, Member, Observation, Pod, Server, Workload};
use candor_engine::plan::Stage;
use candor_engine::step::Step;
use jiff::Timestamp;
use valkey_admin::ClusterNodes;

const REVISION: &str = "r1";

/// A cluster as the existing operator left it: the slots of its servers, by ordinal.
struct Left {
    cluster: RedkeyCluster,
    set: Set,
    members: BTreeMap<u32, Member>,
    other_operator: Option<&'static str>,
}

fn id(ordinal: u32) -> String {
    format!("{ordinal:0>40}")
}

/// What a server replies to `CLUSTER NODES`.
fn map(of: u32, slots: &[&str]) -> ClusterNodes {
    let lines: Vec<String> = (0..)
        .zip(slots)
        .map(|(ordinal, slots)| {
            let me = if ordinal == of { "myself,master" } else { "master" };
            let ip = format!("10.0.0.{}", ordinal + 1);
            let id = id(ordinal);
            format!("{id} {ip}:6379@16379 {me} - 0 0 {ordinal} connected {slots}")
        })
        .collect();
    ClusterNodes::parse(&lines.join("\n")).unwrap()
}

impl Left {
    fn behind(primaries: i32, purge: bool, slots: &[&str]) -> Self {
        let spec = RedkeyClusterSpec {
            primaries,
            purge_keys_on_rebalance: purge,
            ..RedkeyClusterSpec::default()
        };
        let mut cluster = RedkeyCluster::new("cache", spec);
        cluster.metadata.generation = Some(1);
        cluster.status = Some(RedkeyClusterStatus {
            status: "Ready".to_owned(),
            ..RedkeyClusterStatus::default()
        });
        let server = |ordinal: u32| Member {
            workload: Workload::Current,
            pod: Some(Pod {
                name: format!("cache-{ordinal}"),
                uid: format!("uid-{ordinal}"),
                ip: format!("10.0.0.{}", ordinal + 1).parse().ok(),
                current: true,
                ..Pod::default()
            }),
            server: Server::Up(Box::new(Facts {
                ok: true,
                keys: if slots[ordinal as usize].is_empty() { 0 } else { 100 },
                node_timeout: 15_000,
                ..Facts::new(id(ordinal).parse().unwrap(), map(ordinal, slots))
            })),
            ..Member::default()
        };
        let servers = u32::try_from(slots.len()).unwrap();
        Self {
            cluster,
            set: Set {
                replicas: servers,
                revision: REVISION.to_owned(),
                leaving: false,
                adopted: true,
            },
            members: (0..servers).map(|ordinal| (ordinal, server(ordinal))).collect(),
            other_operator: None,
        }
    }

    fn plan(&self) -> Planned {
        let base = Observation {
            objects_ready: true,
            ..Observation::default()
        };
        plan(&Input {
            cluster: &self.cluster,
            set: Some(&self.set),
            other_operator: self.other_operator,
            revision: REVISION,
            members: &self.members,
            base: &base,
            attempts: &Attempts::default(),
            node_timeout: 15_000,
            now: now(),
        })
    }

    fn report(&self, planned: &Planned) -> Report {
        report(&ReportInput {
            cluster: &self.cluster,
            planned,
            outcomes: &[],
            robin: &Robin::Ready,
            rejected: &[],
            revision: REVISION,
            selector: "",
            adopted: REVISION,
            ignored: &[],
            password: None,
            now: now(),
        })
    }

    /// One reconcile: plans, and stores the status.
    fn reconcile(&mut self) -> Planned {
        let planned = self.plan();
        self.cluster.status = Some(self.report(&planned).status);
        planned
    }

    fn status(&self) -> &RedkeyClusterStatus {
        self.cluster.status.as_ref().unwrap()
    }
}

fn now() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

const EVEN: [&str; 3] = ["0-5460", "5461-10922", "10923-16383"];

/// Whether slots move, or a server copies the keys of another one that is to leave.
fn moves(planned: &Planned) -> bool {
    let mut steps = planned.plan.pending();
    steps.any(|step| matches!(step, Step::MoveSlots { .. } | Step::Replicate { .. }))
}

#[test]
fn a_whole_cluster_is_ready_at_once_and_its_topology_is_remembered() {
    for purge in [true, false] {
        let mut left = Left::behind(3, purge, &EVEN);
        let planned = left.reconcile();
        assert_eq!(planned.plan.stage, Stage::Healthy, "{:?}", planned.plan);
        assert!(planned.plan.steps.is_empty());
        let status = left.status();
        assert!(status.formed);
        assert_eq!((status.status.as_str(), status.adopted.as_str()), ("Ready", REVISION));
        let slots: Vec<&str> = status.topology.iter().map(|shard| shard.slots.as_str()).collect();
        assert_eq!(slots, EVEN);
    }
}

#[test]
fn nothing_is_done_or_remembered_before_every_server_has_responded() {
    let mut left = Left::behind(3, false, &EVEN);
    left.members.get_mut(&1).unwrap().server = Server::default();
    let planned = left.reconcile();
    assert!(planned.plan.steps.is_empty(), "{:?}", planned.plan);
    assert!(left.status().topology.is_empty());
    assert!(!left.status().formed);
}

#[test]
fn an_operation_of_the_existing_operator_ends_without_a_lost_key() {
    // What the spec asks for, and the slots that the servers own: a slow upgrade with its extra server, a scale-up in
    // the middle of moving slots, and a scale-down.
    let table: [(i32, &[&str]); 3] = [
        (3, &["0-5460", "5461-10922", "", "10923-16383"]),
        (4, &["0-5460", "5461-10922", "10923-16000", "16001-16383"]),
        (2, &["0-8000", "8001-16000", "16001-16383"]),
    ];
    for (primaries, slots) in table {
        for purge in [true, false] {
            let mut left = Left::behind(primaries, purge, slots);
            let mut moved = false;
            for _ in 0..5 {
                let planned = left.reconcile();
                assert!(
                    !planned.plan.steps.contains(&Step::RecreateSet),
                    "{primaries} {slots:?} {purge}"
                );
                let deletes = planned.plan.pending().any(|step| matches!(step, Step::DeleteMember(_)));
                assert!(!deletes, "slots move first: {:?}", planned.plan);
                let fast = left
                    .status()
                    .operation
                    .as_ref()
                    .is_some_and(|one| one.mode == OperationMode::Fast);
                assert!(!fast, "{primaries} {slots:?} {purge}");
                moved |= moves(&planned);
            }
            assert!(moved, "{primaries} {slots:?} {purge}: {:?}", left.plan().plan);
            assert!(
                !left.status().formed,
                "it is not taken over before nothing is left to do"
            );
        }
    }
}

#[test]
fn while_the_existing_operator_runs_only_a_condition_is_added_to_its_status() {
    let mut left = Left::behind(3, false, &EVEN);
    left.other_operator = Some("redkey-operator-0 holds the lease");
    left.set.revision = String::new();
    let before = left.status().clone();
    let planned = left.plan();
    assert!(planned.plan.steps.is_empty());
    assert_eq!(planned.progress, Progress::Unchanged);
    let Report { status, events } = left.report(&planned);
    let reasons: Vec<&str> = status.conditions.iter().map(|one| one.reason.as_str()).collect();
    assert_eq!(reasons, ["OtherOperatorActive"]);
    assert_eq!(events.len(), 1);
    let rest = RedkeyClusterStatus {
        conditions: before.conditions.clone(),
        ..status.clone()
    };
    assert_eq!(rest, before);
    left.cluster.status = Some(status);
    let again = left.report(&left.plan());
    assert!(again.events.is_empty(), "it is told once");
    // It has ended: the condition goes with it.
    left.other_operator = None;
    left.set.revision = REVISION.to_owned();
    left.reconcile();
    assert!(left.status().conditions.iter().all(|one| one.type_ != "Paused"));
}

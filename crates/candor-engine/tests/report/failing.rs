//! Errors, and which of them need action by a user.

use candor_api::valkey::status::State;
use candor_engine::observation::{Applied, Credentials, Observation, Workload};
use candor_engine::outcome::{Did, ObjectKind};
use candor_engine::step::Step;
use valkey_admin::{SlotRange, SlotSet};

use crate::scene::{Scene, at, change, done, event_lines, failed, id, lines, unanswered, unwritten};

#[test]
fn an_object_that_could_not_be_written_is_reported_by_its_kind() {
    use ObjectKind as Kind;
    for (kind, reason, existed, event) in [
        (
            Kind::HeadlessService,
            "ServiceError",
            true,
            "ServiceUpdateFailed: Failed to update headless Service",
        ),
        (
            Kind::ClientService,
            "ServiceError",
            false,
            "ServiceCreationFailed: Failed to create client Service",
        ),
        (
            Kind::ConfigMap,
            "ConfigMapError",
            false,
            "ConfigMapCreationFailed: Failed to create ConfigMap",
        ),
        (
            Kind::ConfigMap,
            "ConfigMapError",
            true,
            "ConfigMapUpdateFailed: Failed to update ConfigMap",
        ),
        (
            Kind::AclSecret,
            "SecretError",
            false,
            "InternalSecretsCreationFailed: Failed to create Secret",
        ),
        (
            Kind::PodDisruptionBudget,
            "PodDisruptionBudgetError",
            false,
            "PodDisruptionBudgetCreationFailed: Failed to create PodDisruptionBudget",
        ),
        (
            Kind::Deployment,
            "DeploymentError",
            false,
            "DeploymentCreationFailed: Failed to create deployment",
        ),
        (
            Kind::StatefulSet,
            "DeploymentError",
            false,
            "StatefulSetCreationFailed: Failed to create statefulset",
        ),
        (
            Kind::Claim,
            "PersistentVolumeClaimError",
            false,
            "PersistentVolumeClaimCreationFailed: Failed to create PersistentVolumeClaim",
        ),
    ] {
        let mut scene = Scene::new(1, 0);
        let step = match kind {
            Kind::Deployment | Kind::StatefulSet | Kind::Claim => Step::CreateMember(at(0, 0)),
            _ => Step::WriteObjects,
        };
        let report = scene.reconcile(&[unwritten(step, kind, existed, "quota exceeded")]);
        assert_eq!(
            lines(&report.status)[0],
            format!("Ready=False {reason} (Error): quota exceeded")
        );
        assert!(
            event_lines(&report).contains(&format!("Warning {event}: quota exceeded")),
            "{:?}",
            event_lines(&report)
        );
        let again = scene.reconcile(&[]);
        assert_eq!(again.status, report.status, "it stands until it is tried again");
        let well = scene.reconcile(&[
            done(Step::WriteObjects, vec![]),
            done(Step::CreateMember(at(0, 0)), vec![]),
        ]);
        assert!(
            lines(&well.status)[0].starts_with("Ready=False MissingShards"),
            "{:?}",
            lines(&well.status)
        );
        assert_eq!(well.status.error_since, None);
    }
}

#[test]
fn the_same_error_for_a_minute_is_for_a_person_and_its_end_is_noticed() {
    let mut scene = Scene::new(1, 0);
    let fails = || {
        [unwritten(
            Step::WriteObjects,
            ObjectKind::ConfigMap,
            false,
            "quota exceeded",
        )]
    };
    let first = scene.reconcile(&fails());
    assert_eq!(first.status.state, Some(State::Initializing));
    scene.later(59);
    assert_eq!(scene.reconcile(&fails()).status.state, Some(State::Initializing));
    scene.later(1);
    let report = scene.reconcile(&fails());
    assert_eq!(report.status.state, Some(State::Failed));
    assert_eq!(
        lines(&report.status)[..2],
        [
            "Ready=False ConfigMapError (Error): quota exceeded",
            "Progressing=False Stalled: Waiting for the cause to be removed: see Ready",
        ]
    );
    assert_eq!(report.status.error_since, first.status.error_since);
    let created = change(ObjectKind::ConfigMap, "valkey-sample", Did::Created);
    let report = scene.reconcile(&[done(Step::WriteObjects, vec![created])]);
    assert_eq!(report.status.state, Some(State::Initializing));
}

#[test]
fn a_failed_slot_migration_is_reported_with_the_servers_message_until_slots_move_again() {
    let mut scene = Scene::healthy(3, 0);
    scene.cluster.spec.shards = 4;
    scene.create();
    scene.start();
    scene.join_with(&|shard| SlotRange::of_shard(shard, 3).map(SlotSet::from).unwrap_or_default());
    scene.act();
    let step = scene.plan().steps.remove(0);
    let report = scene.reconcile(&[failed(step.clone(), "target node is out of memory")]);
    assert_eq!(
        lines(&report.status)[2],
        "Degraded=True RebalanceFailed (Error): target node is out of memory"
    );
    assert_eq!(
        event_lines(&report),
        ["Warning SlotRebalanceFailed: Failed to move slots: target node is out of memory"]
    );
    assert_eq!(report.status.operation.clone().unwrap().attempts, 1);
    let begun = scene.reconcile(&[done(step, vec![])]);
    assert_eq!(begun.status, report.status, "that it was begun again is no progress");
    scene.join_with(&|shard| match shard {
        0 => "0-4095".parse().unwrap(),
        3 => "4096-5460".parse().unwrap(),
        other => SlotRange::of_shard(other, 3).unwrap().into(),
    });
    let report = scene.act();
    assert!(!lines(&report.status).iter().any(|line| line.starts_with("Degraded")));
    assert_eq!(report.status.error_since, None);
}

#[test]
fn a_move_that_keeps_failing_gets_smaller_then_goes_the_legacy_way_then_seldom() {
    let mut scene = Scene::healthy(3, 0);
    scene.cluster.spec.shards = 4;
    scene.create();
    scene.start();
    scene.join_with(&|shard| SlotRange::of_shard(shard, 3).map(SlotSet::from).unwrap_or_default());
    scene.act();
    let mut tried = Vec::new();
    for _ in 0..11 {
        let plan = scene.plan();
        let Some(Step::MoveSlots { moves, legacy }) = plan.steps.first().cloned() else {
            panic!("{plan:?}");
        };
        let slots: usize = moves.iter().map(|one| one.slots.len()).sum();
        tried.push((slots, legacy, plan.requeue_after.as_secs() >= 30));
        scene.reconcile(&[failed(plan.steps[0].clone(), "too many writes")]);
    }
    let (whole, small, old, seldom) = (
        (4096, false, false),
        (64, false, false),
        (64, true, false),
        (64, true, true),
    );
    assert_eq!(
        tried,
        [whole, whole, whole, small, small, small, old, old, old, seldom, seldom]
    );
    scene.later(60);
    let report = scene.reconcile(&[]);
    assert_eq!(report.status.state, Some(State::Failed));
    assert_eq!(report.status.reason, "RebalanceFailed");
    assert_eq!(report.status.message, "too many writes");
}

#[test]
fn a_timeout_is_neither_a_failure_nor_a_rejection() {
    let mut scene = Scene::healthy(3, 0);
    scene.cluster.spec.shards = 4;
    scene.create();
    scene.start();
    scene.join_with(&|shard| SlotRange::of_shard(shard, 3).map(SlotSet::from).unwrap_or_default());
    let before = scene.act();
    let step = scene.plan().steps.remove(0);
    let report = scene.reconcile(&[unanswered(step, "no answer to CLUSTER GETSLOTMIGRATIONS in time")]);
    assert_eq!(
        report.status, before.status,
        "it is asked again, and nothing else is so"
    );
    assert!(event_lines(&report).is_empty(), "{:?}", event_lines(&report));

    for step in [
        Step::ApplyUsers(at(0, 0)),
        Step::Configure(at(0, 0)),
        Step::ReloadCertificate(at(0, 0)),
    ] {
        let mut scene = Scene::healthy(1, 0);
        scene.facts(at(0, 0)).users = Applied::No;
        let report = scene.reconcile(&[unanswered(step, "no answer in time")]);
        assert_eq!(
            lines(&report.status)[0],
            "Ready=False Reconciling (Warning): Cluster is Reconciling"
        );
        assert_eq!(report.status.error_since, None);
    }
}

#[test]
fn info_becomes_a_warning_when_a_creation_takes_too_long() {
    let mut scene = Scene::new(1, 0);
    scene.create();
    scene.reconcile(&[]);
    scene.later(60);
    assert!(
        lines(&scene.reconcile(&[]).status)
            .iter()
            .all(|line| line.contains("(Info)"))
    );
    scene.later(1);
    let report = scene.reconcile(&[]);
    assert!(
        lines(&report.status).iter().all(|line| line.contains("(Warning)")),
        "{:?}",
        lines(&report.status)
    );
    assert!(event_lines(&report).is_empty());
}

#[test]
fn a_planned_failover_or_forget_that_keeps_failing_is_an_error_after_a_minute() {
    let rolled = || {
        let mut scene = Scene::healthy(3, 1);
        for shard in 0..3 {
            scene.member(at(shard, 0)).workload = Workload::Outdated;
        }
        scene
    };
    let stale = || {
        let mut scene = Scene::healthy(3, 1);
        let mut gone = scene.facts(at(0, 0)).map.0[0].clone();
        (gone.id, gone.slots, gone.linked) = (id(at(9, 0)), SlotSet::new(), false);
        (gone.flags.myself, gone.flags.failed) = (false, true);
        scene.facts(at(0, 0)).map.0.push(gone);
        scene
    };
    for (reason, mut scene) in [("FailoverFailed", rolled()), ("NodeForgetFailed", stale())] {
        let steps = scene.plan().steps;
        let rejected = [failed(steps[0].clone(), "ERR not now")];
        let report = scene.reconcile(&rejected);
        assert_eq!(
            lines(&report.status)[0],
            format!("Ready=False {reason} (Error): ERR not now"),
            "{steps:?}"
        );
        assert_ne!(
            report.status.state,
            Some(State::Failed),
            "{reason}: it is tried again first"
        );
        scene.later(61);
        let report = scene.reconcile(&rejected);
        assert_eq!(report.status.state, Some(State::Failed), "{reason}");
        assert!(
            lines(&report.status)[1].starts_with("Progressing=False Stalled"),
            "{:?}",
            lines(&report.status)
        );
        let report = scene.reconcile(&[done(steps[0].clone(), vec![])]);
        assert_ne!(
            report.status.state,
            Some(State::Failed),
            "{reason}: it goes on by itself"
        );
    }
}

#[test]
fn an_operator_that_is_locked_out_keeps_what_was_reported_about_members() {
    let mut scene = Scene::healthy(3, 1);
    let before = scene.reconcile(&[]).status;
    scene.observed = Observation {
        credentials: Credentials::Lost {
            message: "Secret internal-sample-system-passwords is gone: restore it".to_owned(),
            recoverable: false,
        },
        ..Observation::default()
    };
    assert!(scene.plan().steps.is_empty(), "nothing is done in the dark");
    let after = scene.reconcile(&[]);
    assert_eq!(
        lines(&after.status),
        [
            "Ready=False SecretError (Error): Secret internal-sample-system-passwords is gone: restore it",
            "Progressing=False Stalled: Waiting for the cause to be removed: see Ready",
            "ClusterFormed=True TopologyComplete: All nodes joined cluster",
            "SlotsAssigned=True AllSlotsAssigned: All slots assigned",
        ]
    );
    assert_eq!(after.status.state, Some(State::Failed));
    assert_eq!(after.status.topology, before.topology);
    assert_eq!(after.status.ready_shards, before.ready_shards);
}

#[test]
fn a_rejected_certificate_is_reported_with_the_servers_message_and_reloaded_again() {
    let mut scene = Scene::healthy(1, 1);
    let message = "ERR CONFIG SET failed - Unable to update TLS configuration. Check server logs.";
    scene.facts(at(0, 1)).certificate = Applied::Rejected(message.to_owned());
    let report = scene.reconcile(&[]);
    assert_eq!(report.status.state, Some(State::Failed));
    let said = lines(&report.status);
    let rejected = format!("ConfigurationApplied=False ConfigurationRefused (Error): member 0-1: {message}");
    assert!(said.contains(&rejected), "{said:#?}");
    // The files of a repaired Secret arrive later than the watch event about it.
    assert_eq!(scene.plan().steps, [Step::ReloadCertificate(at(0, 1))]);
    let same = scene.reconcile(&[failed(Step::ReloadCertificate(at(0, 1)), message)]);
    assert_eq!(lines(&same.status), said, "to be refused again is no news");
    scene.facts(at(0, 1)).certificate = Applied::Yes;
    assert_eq!(scene.reconcile(&[]).status.state, Some(State::Ready));
}

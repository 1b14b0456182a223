//! Events: which ones are recorded, that each is recorded once, and their messages.

use candor_engine::observation::{Server, Workload};
use candor_engine::outcome::{Did, ObjectKind, Outcome};
use candor_engine::step::{FailoverBy, Step};
use valkey_admin::SlotSet;

use crate::scene::{Scene, at, change, done, event_lines, failed, id, lines};

#[test]
fn created_objects_are_recorded_as_events() {
    use ObjectKind as Kind;
    let mut scene = Scene::new(3, 1);
    scene.reconcile(&[]);
    let shared = [
        change(Kind::HeadlessService, "valkey-sample", Did::Created),
        change(Kind::ClientService, "valkey-sample-client", Did::Created),
        change(Kind::ConfigMap, "valkey-sample", Did::Created),
        change(Kind::SystemSecret, "internal-sample-system-passwords", Did::Created),
        change(Kind::AclSecret, "internal-sample-acl", Did::Updated),
        change(Kind::PodDisruptionBudget, "valkey-sample", Did::Created),
    ];
    let mut outcomes: Vec<Outcome> = vec![done(Step::WriteObjects, shared.to_vec())];
    for (at, name) in [(at(0, 0), "valkey-sample-0-0"), (at(0, 1), "valkey-sample-0-1")] {
        let made = change(Kind::Deployment, name, Did::Created);
        outcomes.push(done(Step::CreateMember(at), vec![made]));
    }
    let report = scene.reconcile(&outcomes);
    assert_eq!(
        event_lines(&report),
        [
            "Normal ServiceCreated: Created headless Service",
            "Normal ServiceCreated: Created client Service",
            "Normal ConfigMapCreated: Created ConfigMap with configuration",
            "Normal InternalSecretsCreated: Created Secret internal-sample-system-passwords",
            "Normal InternalSecretsUpdated: Updated Secret internal-sample-acl",
            "Normal PodDisruptionBudgetCreated: Created PodDisruptionBudget",
            "Normal DeploymentCreated: Created deployment 1 of 6",
            "Normal DeploymentCreated: Created deployment 2 of 6",
        ]
    );
    for of in [at(0, 0), at(0, 1)] {
        scene.member(of).workload = Workload::Current;
    }
    let made = change(Kind::StatefulSet, "valkey-sample-1-0", Did::Created);
    let report = scene.reconcile(&[done(Step::CreateMember(at(1, 0)), vec![made])]);
    assert_eq!(
        event_lines(&report),
        ["Normal StatefulSetCreated: Created statefulset 3 of 6"]
    );
}

#[test]
fn created_and_deleted_valkey_nodes_are_recorded_as_events() {
    let mut scene = Scene::new(1, 1);
    let report = scene.reconcile(&[]);
    assert_eq!(
        event_lines(&report),
        [
            "Normal ValkeyNodeCreated: Created ValkeyNode sample-0-0",
            "Normal ValkeyNodeCreated: Created ValkeyNode sample-0-1",
            "Normal WaitingForShards: 0 of 1 shards exist",
        ]
    );
    let mut scene = Scene::healthy(1, 1);
    scene.cluster.spec.replicas = Some(0);
    scene.act();
    let gone = scene.member(at(0, 1));
    *gone = candor_engine::observation::Member::default();
    let report = scene.reconcile(&[]);
    assert_eq!(
        event_lines(&report)[0],
        "Normal ValkeyNodeDeleted: Deleted ValkeyNode sample-0-1"
    );
}

#[test]
fn joining_a_cluster_records_the_documented_events() {
    let mut scene = Scene::new(1, 2);
    scene.create();
    scene.start();
    let mut all = event_lines(&scene.act());
    all.retain(|line| !line.contains("ValkeyNode"));
    scene.join_with(&|_| SlotSet::new());
    for node in 0..3 {
        scene.facts(at(0, node)).ok = false;
        scene.facts(at(0, node)).in_sync = false;
        scene.facts(at(0, node)).keys = 0;
    }
    let slots: SlotSet = "0-16383".parse().unwrap();
    let primary = id(at(0, 0));
    let given = done(
        Step::AddSlots {
            member: at(0, 0),
            slots,
        },
        vec![],
    );
    let follow = |node| {
        done(
            Step::Replicate {
                member: at(0, node),
                primary,
            },
            vec![],
        )
    };
    all.extend(event_lines(&scene.reconcile(&[given, follow(1), follow(2)])));
    scene.join();
    all.extend(event_lines(&scene.reconcile(&[])));
    assert_eq!(
        all,
        [
            "Normal NodeAdding: Adding node 10.244.0.10 to cluster",
            "Normal NodeAdding: Adding node 10.244.0.11 to cluster",
            "Normal ClusterMeet: Node 10.244.0.11 met node 10.244.0.10",
            "Normal NodeAdding: Adding node 10.244.0.12 to cluster",
            "Normal ClusterMeet: Node 10.244.0.12 met node 10.244.0.10",
            "Normal NodeAdded: Node 10.244.0.10 joined cluster",
            "Normal PrimaryCreated: Created primary with slots 0-16383",
            "Normal NodeAdded: Node 10.244.0.11 joined cluster",
            &format!("Normal ReplicaCreated: Created replica for primary {primary}"),
            "Normal NodeAdded: Node 10.244.0.12 joined cluster",
            &format!("Normal ReplicaCreated: Created replica for primary {primary}"),
            "Normal ClusterReady: Cluster ready with 1 shards and 2 replicas",
        ]
    );
}

#[test]
fn failed_steps_are_warnings_with_the_servers_message() {
    let slots: SlotSet = "0-5460".parse().unwrap();
    let primary = id(at(0, 0));
    for (step, event) in [
        (
            Step::Meet {
                at: at(0, 0),
                with: at(0, 1),
            },
            "ClusterMeetFailed: Node 10.244.0.10 failed to meet node 10.244.0.11: no".to_owned(),
        ),
        (
            Step::AddSlots {
                member: at(0, 0),
                slots,
            },
            "SlotAssignmentFailed: Failed to assign slots 0-5460: no".to_owned(),
        ),
        (
            Step::Replicate {
                member: at(0, 1),
                primary,
            },
            format!("ReplicaCreationFailed: Failed to create replica for primary {primary}: no"),
        ),
        (
            Step::Forget {
                at: at(0, 1),
                node: primary,
            },
            format!("NodeForgetFailed: Failed to forget node {primary}: no"),
        ),
        (
            Step::Failover {
                to: at(0, 1),
                by: FailoverBy::Planned,
            },
            "FailoverFailed: Failed to fail over shard 0 to member 0-1 (10.244.0.11): no".to_owned(),
        ),
    ] {
        let mut scene = Scene::healthy(1, 1);
        let report = scene.reconcile(&[failed(step, "no")]);
        assert_eq!(event_lines(&report)[0], format!("Warning {event}"));
    }
}

#[test]
fn a_takeover_and_a_forgotten_node_are_recorded() {
    let mut scene = Scene::healthy(1, 1);
    let taken = Step::Failover {
        to: at(0, 1),
        by: FailoverBy::Takeover,
    };
    let forget = |of| Step::Forget {
        at: of,
        node: id(at(7, 0)),
    };
    let outcomes = [taken, forget(at(0, 0)), forget(at(0, 1))].map(|step| done(step, vec![]));
    assert_eq!(
        event_lines(&scene.reconcile(&outcomes)),
        [
            "Warning ReplicasTakenOver: Shard 0 was taken over by member 0-1 (10.244.0.11) without a vote".to_owned(),
            format!("Normal StaleNodeForgotten: Forgot stale node {}", id(at(7, 0))),
        ]
    );
}

#[test]
fn every_observed_failover_is_recorded_also_one_that_servers_elected() {
    let mut scene = Scene::healthy(3, 1);
    scene.stop_responding(at(1, 0));
    scene.reconcile(&[]);
    let mut promoted = scene.facts(at(1, 1)).clone();
    for entry in &mut promoted.map.0 {
        if entry.id == id(at(1, 1)) {
            (entry.primary, entry.flags.primary, entry.flags.replica) = (None, true, false);
            entry.slots = "5461-10922".parse().unwrap();
        } else if entry.id == id(at(1, 0)) {
            entry.slots = SlotSet::new();
        }
    }
    scene.member(at(1, 1)).server = Server::Up(Box::new(promoted));
    let report = scene.reconcile(&[]);
    assert!(event_lines(&report).contains(&format!(
        "Normal FailoverCompleted: Member 1-1 ({}) is the primary of shard 1",
        id(at(1, 1))
    )));
    assert!(scene.reconcile(&[]).events.is_empty());
}

#[test]
fn data_loss_is_reported_before_the_slots_are_served_again_and_until_acknowledged() {
    let mut scene = Scene::healthy(3, 1);
    scene.later(5);
    // Both members of shard 1 come back with new node ids and no data.
    for (node, fresh) in [(0, at(9, 0)), (1, at(9, 1))] {
        let mut facts = scene.facts(at(1, node)).clone();
        facts.id = id(fresh);
        facts.map.0.retain(|entry| entry.id == id(at(1, node)));
        let me = &mut facts.map.0[0];
        (me.id, me.slots, me.primary) = (id(fresh), SlotSet::new(), None);
        (me.flags.primary, me.flags.replica) = (true, false);
        (facts.keys, facts.in_sync, facts.was_in_sync, facts.ok) = (0, false, false, false);
        scene.member(at(1, node)).server = Server::Up(Box::new(facts));
    }
    let message = "Shard 1 came back empty: slots 5461-10922, 100 keys last seen";
    let gives = |scene: &Scene| {
        let steps = scene.plan().steps;
        steps.iter().any(|step| matches!(step, Step::AddSlots { .. }))
    };
    assert!(!gives(&scene), "not before it was said");
    let report = scene.reconcile(&[]);
    assert!(
        event_lines(&report).contains(&format!("Warning DataLost: {message}")),
        "{:?}",
        event_lines(&report)
    );
    assert!(lines(&report.status).contains(&format!("Degraded=True DataLost (Warning): {message}")));
    assert!(lines(&report.status).contains(&format!("DataLost=True DataLost (Warning): {message}")));
    let again = scene.reconcile(&[]);
    assert!(
        !event_lines(&again).iter().any(|line| line.contains("DataLost")),
        "once"
    );
    scene.join();
    let report = scene.reconcile(&[]);
    assert_eq!(report.status.reason, "ClusterHealthy");
    assert_eq!(lines(&report.status).len(), 5, "DataLost stays");
    let since = report.status.conditions[4].last_transition_time.0.to_string();
    assert_eq!(since, "2025-12-19T10:00:05Z");
    let observed = [("valkey.io/data-loss-acknowledged".to_owned(), since)];
    scene.cluster.metadata.annotations = Some(observed.into());
    assert_eq!(lines(&scene.reconcile(&[]).status).len(), 4);
}

#[test]
fn a_shard_that_is_lost_during_creation_is_reported_too() {
    let mut scene = Scene::new(2, 0);
    scene.create();
    scene.start();
    scene.reconcile(&[]);
    // The first member got its slots and crashed before the next reconcile; another process is in its place.
    let blank = scene.facts(at(0, 0)).clone();
    scene.join();
    let mut fresh = blank;
    (fresh.id, fresh.map.0[0].id) = (id(at(9, 0)), id(at(9, 0)));
    scene.member(at(0, 0)).server = Server::Up(Box::new(fresh));
    let report = scene.reconcile(&[]);
    let message = "Shard 0 came back empty: slots 0-8191, 0 keys last seen";
    assert!(
        event_lines(&report).contains(&format!("Warning DataLost: {message}")),
        "{:?}",
        event_lines(&report)
    );
    assert!(lines(&report.status).contains(&format!("Degraded=True DataLost (Warning): {message}")));
    assert!(lines(&report.status).contains(&format!("DataLost=True DataLost (Warning): {message}")));
}

#[test]
fn a_replaced_primary_is_not_recorded_again_as_a_lost_replica() {
    let mut scene = Scene::healthy(3, 1);
    scene.kill(at(1, 0));
    let report = scene.reconcile(&[]);
    let first = "Warning PrimaryLost: Primary lost in shard 1: member 1-0 refuses connections";
    assert_eq!(event_lines(&report), [first]);
    scene.promote(at(1, 1));
    let report = scene.reconcile(&[]);
    assert!(
        lines(&report.status).contains(
            &"Degraded=True ReplicaLost (Warning): Replica lost in shard 1: member 1-0 refuses connections".to_owned()
        ),
        "{:?}",
        lines(&report.status)
    );
    let events = event_lines(&report);
    assert!(events.iter().all(|event| !event.contains("ReplicaLost")), "{events:?}");
    // Losing another member is another loss.
    scene.kill(at(2, 1));
    let events = event_lines(&scene.reconcile(&[]));
    assert_eq!(
        events,
        ["Warning ReplicaLost: Replica lost in shard 2: member 2-1 refuses connections"]
    );
}

//! The pitfalls and anti-patterns that the operator's design names, one test each.

use dittofs_operator::api::Phase;
use dittofs_operator::conditions::ServerCondition::{self, Available, ConfigReady, DatabaseReady, Progressing, Ready};
use dittofs_operator::objects::stateful_set;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use kube_sandbox::faults::{Fault, Rule, Verb};
use serde_json::json;

use crate::world::{World, condition, condition_text, is_ready, server, set_pod_ready, status};

#[tokio::test]
async fn pitfall_1_a_condition_never_speaks_of_an_older_generation_for_long() {
    let world = World::start().await;
    let desk = world.desk("pit").await;
    let _operator = desk.run();
    desk.serve("files", |_| {}).await;
    desk.until("files", "is ready", is_ready).await;
    // A change that alters no condition's words: the generation must follow all the same.
    let generation = desk
        .change("files", json!({"spec": {"percona": {"deleteWithServer": true}}}))
        .await
        .metadata
        .generation;
    let observed = desk
        .until("files", "observed", |server| {
            status(server).observed_generation == generation
        })
        .await;
    assert!(
        status(&observed)
            .conditions
            .iter()
            .all(|one| one.observed_generation == generation)
    );
}

#[tokio::test]
async fn pitfall_2_a_cleanup_that_never_ends_is_warned_about_and_given_up() {
    let world = World::start().await;
    let desk = world.desk("pit").await;
    desk.serve("files", |_| {}).await;
    desk.reconcile_until("files", "ready", is_ready).await;
    let hold = Patch::Merge(json!({"metadata": {"finalizers": ["example.org/never"]}}));
    desk.api::<Pod>()
        .patch("files-0", &PatchParams::default(), &hold)
        .await
        .unwrap();
    desk.servers().delete("files", &DeleteParams::default()).await.unwrap();
    let mut events = Vec::new();
    for second in [0, 10, 20, 30, 40, 50, 60] {
        desk.reconcile("files").await;
        let stage = desk.servers().get_opt("files").await.unwrap();
        let stage = stage.map_or("gone".to_owned(), |server| {
            condition_text(&server, ServerCondition::Deleting)
        });
        events.push((
            second,
            stage,
            desk.recorded
                .take()
                .into_iter()
                .map(|(_, notice)| notice.reason)
                .collect::<Vec<_>>(),
        ));
        desk.wait(10);
    }
    let expected: Vec<(i32, &str, &[&str])> = vec![
        (0, "True CleaningUp", &["Deleting"]),
        (10, "True CleaningUp", &[]),
        (20, "True CleaningUp", &[]),
        (30, "True CleanupSlow", &["CleanupSlow"]),
        (40, "True CleanupSlow", &[]),
        (50, "True CleanupSlow", &[]),
        (60, "gone", &["CleanupTimeout"]),
    ];
    for ((second, stage, events), expected) in events.iter().zip(expected) {
        let events: Vec<&str> = events
            .iter()
            .map(String::as_str)
            .filter(|reason| *reason != "Created")
            .collect();
        assert_eq!(
            (*second, stage.as_str(), events.as_slice()),
            (expected.0, expected.1, expected.2)
        );
    }
}

#[tokio::test]
async fn pitfall_3_a_hundred_reconciles_of_the_same_state_record_and_write_nothing() {
    let world = World::start().await;
    let desk = world.desk("pit").await;
    let states = [
        ("healthy", json!({})),
        ("broken", json!({"config": "["})),
        ("stopped", json!({"replicas": 0})),
    ];
    for (name, spec) in states {
        desk.serve(name, |_| {}).await;
        desk.reconcile_until(name, "ready", is_ready).await;
        desk.change(name, json!({"spec": spec})).await;
        let mut writes = 0;
        world
            .eventually("nothing more to write", async || {
                desk.reconcile(name).await;
                let before = std::mem::replace(&mut writes, desk.faults.writes().len());
                let pods = desk
                    .api::<StatefulSet>()
                    .get(name)
                    .await
                    .unwrap()
                    .status
                    .unwrap()
                    .replicas;
                (before == writes && pods == i32::from(name != "stopped")).then_some(())
            })
            .await;
        desk.recorded.take();
        for _ in 0..100 {
            desk.reconcile(name).await;
        }
        assert_eq!(desk.recorded.reasons(), Vec::<String>::new(), "{name}");
        assert_eq!(desk.faults.writes().len(), writes, "{name}");
    }
}

#[tokio::test]
async fn pitfall_4_a_pod_with_an_application_that_is_not_ready_is_not_available() {
    let world = World::start().await;
    let desk = world.desk("pit").await;
    let _operator = desk.run();
    desk.serve("files", |_| {}).await;
    desk.until("files", "is ready", is_ready).await;
    set_pod_ready(&desk.api(), "files-0", false).await;
    let observed = desk
        .until("files", "is not available", |server| {
            condition_text(server, Available) == "False StatefulSetNotReady"
        })
        .await;
    assert_eq!(
        condition(&observed, Available).unwrap().message,
        "Waiting for replicas: 0/1 ready"
    );
    assert_eq!(condition_text(&observed, Ready), "False ComponentsNotReady");
    assert_eq!(
        condition_text(&observed, Progressing),
        "False Settled",
        "nothing is being changed"
    );
    assert_eq!(status(&observed).phase, Some(Phase::Pending));
    assert!(
        status(&observed).nfs_endpoint.is_some(),
        "clients keep what they mounted"
    );
    set_pod_ready(&desk.api(), "files-0", true).await;
    let observed = desk.until("files", "is ready again", is_ready).await;
    assert_eq!(
        condition(&observed, Available).unwrap().message,
        "StatefulSet has 1/1 ready replicas"
    );
}

#[tokio::test]
async fn pitfall_5_a_conflict_is_reconciled_again_and_overwrites_no_change() {
    let world = World::start().await;
    let desk = world.desk("pit").await;
    desk.faults.add(
        Rule::new("somebody was faster")
            .resource("dittoservers")
            .subresource("status")
            .writes()
            .range(1, 3)
            .then(Fault::conflict()),
    );
    let _operator = desk.run();
    desk.serve("files", |_| {}).await;
    for round in 0..20 {
        desk.change("files", json!({"metadata": {"labels": {"round": round.to_string()}}}))
            .await;
    }
    let ready = desk.until("files", "is ready", is_ready).await;
    assert_eq!(ready.labels()["round"], "19");
    assert!(desk.faults.log().len() >= 3, "{:?}", desk.faults.log());
}

#[tokio::test]
async fn pitfall_6_whether_the_data_is_deleted_or_kept_is_reported_before_it_happens() {
    let world = World::start().await;
    let desk = world.desk("pit").await;
    for (name, doomed) in [("kept", false), ("doomed", true)] {
        desk.serve(name, |server| {
            server.spec.percona.enabled = true;
            server.spec.percona.delete_with_server = doomed;
        })
        .await;
        desk.reconcile(name).await;
        desk.servers().delete(name, &DeleteParams::default()).await.unwrap();
        desk.recorded.take();
        desk.reconcile(name).await;
        let events = desk.recorded.series();
        let text = if doomed { "PerconaDeleted" } else { "PerconaOrphaned" };
        let (notice, count) = events.iter().find(|(notice, _)| notice.reason == text).expect(text);
        assert_eq!(
            (notice.kind.as_str(), *count),
            (if doomed { "Warning" } else { "Normal" }, 1)
        );
    }
}

#[test]
fn anti_pattern_no_probe_asks_only_whether_a_port_is_open() {
    let container = stateful_set(&server("files"), "h")["spec"]["template"]["spec"]["containers"][0].clone();
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        assert!(container[probe]["httpGet"]["path"].is_string(), "{probe}");
        assert!(container[probe]["tcpSocket"].is_null(), "{probe}");
    }
}

#[tokio::test]
async fn anti_pattern_no_condition_is_written_without_its_generation_not_even_while_deleting() {
    let world = World::start().await;
    let desk = world.desk("pit").await;
    desk.serve("files", |server| server.spec.percona.enabled = true).await;
    desk.reconcile("files").await;
    let hold = Patch::Merge(json!({"metadata": {"finalizers": ["dittofs.dittofs.com/finalizer", "example.org/held"]}}));
    desk.servers()
        .patch("files", &PatchParams::default(), &hold)
        .await
        .unwrap();
    desk.faults.add(
        Rule::new("no")
            .verb(Verb::Get)
            .resource("statefulsets")
            .then(Fault::internal_error()),
    );
    desk.servers().delete("files", &DeleteParams::default()).await.unwrap();
    desk.reconcile("files").await;
    let going = desk.servers().get("files").await.unwrap();
    assert_eq!(status(&going).conditions.len(), 6);
    for one in status(&going).conditions {
        assert_eq!(one.observed_generation, going.metadata.generation, "{}", one.type_);
    }
    assert_eq!(condition_text(&going, Available), "Unknown StatefulSetUnknown");
    assert!(desk.recorded.reasons().contains(&"CleanupFailed".to_owned()));
}

#[tokio::test]
async fn anti_pattern_cleanup_does_not_block_a_slow_answer_is_cut_off() {
    let world = World::start().await;
    let desk = world.desk("pit").await;
    desk.serve("files", |_| {}).await;
    desk.reconcile_until("files", "ready", is_ready).await;
    desk.servers().delete("files", &DeleteParams::default()).await.unwrap();
    // Past the deadline one try has five seconds; an API server that hangs for an hour does not hold it longer.
    desk.wait(120);
    let hour = std::time::Duration::from_secs(3_600);
    desk.faults
        .add(Rule::new("hangs").verb(Verb::Delete).then(Fault::Delay(hour)));
    let began = std::time::Instant::now();
    desk.reconcile("files").await;
    assert!(began.elapsed() < std::time::Duration::from_secs(30));
    assert!(desk.servers().get_opt("files").await.unwrap().is_none(), "released");
}

#[tokio::test]
async fn every_failure_shows_as_a_condition_and_not_as_silence() {
    let world = World::without_percona().await;
    let desk = world.desk("pit").await;
    let _operator = desk.run();

    // The database's kind is not installed, and comes later.
    desk.serve("files", |server| server.spec.percona.enabled = true).await;
    let observed = desk
        .until("files", "misses Percona", |server| {
            condition_text(server, DatabaseReady) == "False PerconaNotInstalled"
        })
        .await;
    assert_eq!(status(&observed).phase, Some(Phase::Pending));
    world.install_percona().await;
    desk.database_is("files-postgres", "ready").await;
    desk.until("files", "is ready", is_ready).await;
    desk.database_is("files-postgres", "paused").await;
    desk.until("files", "waits", |server| {
        condition_text(server, DatabaseReady) == "False PerconaNotReady"
    })
    .await;
    let odd = Patch::Merge(json!({"status": {"state": 7}}));
    desk.databases()
        .patch_status("files-postgres", &PatchParams::default(), &odd)
        .await
        .unwrap();
    desk.until("files", "cannot tell", |server| {
        condition_text(server, DatabaseReady) == "Unknown PerconaUnknown"
    })
    .await;
    desk.database_is("files-postgres", "ready").await;
    desk.until("files", "is ready", is_ready).await;

    // The user's configuration.
    for (config, message) in [
        ("[1]", "and is a list"),
        ("7", "and is a single value"),
        ("a: [", "Configuration is not valid: "),
    ] {
        desk.change("files", json!({"spec": {"config": config}})).await;
        let observed = desk
            .until("files", "has a bad configuration", |server| {
                condition(server, ConfigReady)
                    .is_some_and(|one| one.reason == "InvalidConfig" && one.message.contains(message))
            })
            .await;
        assert_eq!(status(&observed).phase, Some(Phase::Failed), "{config}");
        assert_eq!(
            condition_text(&observed, Available),
            "True StatefulSetReady",
            "the server goes on with the last good one"
        );
        let map = desk.api::<ConfigMap>().get("files-config").await.unwrap();
        assert_eq!(map.data.unwrap()["config.yaml"], "logging: {level: INFO}\n");
    }
    desk.change("files", json!({"spec": {"replicas": 0}})).await;
    desk.until("files", "stops with a bad configuration", |server| {
        status(server).phase == Some(Phase::Stopped) && status(server).ready_replicas == 0
    })
    .await;
    desk.change(
        "files",
        json!({"spec": {"replicas": 1, "config": "a: 1", "secretRefs": [{"name": "keys"}]}}),
    )
    .await;
    let observed = desk
        .until("files", "misses a Secret", |server| {
            condition_text(server, ConfigReady) == "False SecretNotFound"
        })
        .await;
    assert_eq!(
        condition(&observed, ConfigReady).unwrap().message,
        "Secrets not found: keys"
    );
    desk.until_event("ReconcileFailed: Configuration is not valid").await;
    desk.create::<Secret>(json!({"metadata": {"name": "keys"}, "stringData": {"a": "1"}}))
        .await;
    desk.until("files", "is ready", is_ready).await;
}

#[tokio::test]
async fn a_storage_class_that_does_not_exist_is_waited_for() {
    let world = World::start().await;
    let desk = world.desk("pit").await;
    let _operator = desk.run();
    desk.serve("files", |server| {
        server.spec.storage.storage_class_name = Some("fast".to_owned());
    })
    .await;
    let observed = desk
        .until("files", "has no class", |server| {
            condition_text(server, Available) == "False StorageClassNotFound"
        })
        .await;
    assert_eq!(status(&observed).phase, Some(Phase::Failed));
    assert_eq!(
        condition(&observed, Available).unwrap().message,
        "StorageClass does not exist: fast"
    );
    desk.until_event("StorageClassNotFound: StorageClass does not exist: fast")
        .await;
    let class = serde_json::from_value(json!({"metadata": {"name": "fast"}, "provisioner": "example.org/disks"}));
    let classes: Api<StorageClass> = Api::all(world.admin.clone());
    classes.create(&PostParams::default(), &class.unwrap()).await.unwrap();
    desk.until("files", "is ready", is_ready).await;
}

#[tokio::test]
async fn a_step_that_fails_shows_as_a_condition_once_and_goes_when_it_succeeds() {
    let world = World::start().await;
    let desk = world.desk("pit").await;
    desk.faults.add(
        Rule::new("refused")
            .resource("statefulsets")
            .writes()
            .range(1, 3)
            .then(Fault::Reject {
                code: 422,
                reason: "Invalid",
                message: "the set is not valid".to_owned(),
                retry_after: None,
            }),
    );
    desk.serve("files", |_| {}).await;
    for _ in 0..3 {
        desk.reconcile("files").await;
        let observed = desk.servers().get("files").await.unwrap();
        assert_eq!(condition_text(&observed, Progressing), "True ReconcileFailed");
        assert_eq!(condition_text(&observed, Available), "False StatefulSetRefused");
        assert_eq!(status(&observed).phase, Some(Phase::Failed));
    }
    assert_eq!(desk.recorded.reasons(), ["ReconcileFailed"], "once, not three times");
    desk.reconcile_until("files", "ready", is_ready).await;
    assert_eq!(desk.recorded.reasons(), ["ReconcileFailed", "Created"]);
}

#[tokio::test]
async fn ready_is_taken_back_before_a_pod_is_touched() {
    let world = World::start().await;
    let desk = world.desk("pit").await;
    desk.serve("files", |_| {}).await;
    desk.reconcile_until("files", "ready", is_ready).await;
    let before = desk.api::<StatefulSet>().get("files").await.unwrap();
    desk.change("files", json!({"spec": {"image": "dittofs/dittofs:1.0.0"}}))
        .await;
    desk.reconcile("files").await;
    let announced = desk.servers().get("files").await.unwrap();
    assert_eq!(
        (
            condition_text(&announced, Ready),
            condition_text(&announced, Progressing)
        ),
        ("False ComponentsNotReady".into(), "True RollingPods".into())
    );
    assert_eq!(
        desk.api::<StatefulSet>()
            .get("files")
            .await
            .unwrap()
            .metadata
            .generation,
        before.metadata.generation
    );
    desk.reconcile_until("files", "ready", is_ready).await;
    let after = desk.api::<StatefulSet>().get("files").await.unwrap();
    assert_eq!(
        after.spec.unwrap().template.spec.unwrap().containers[0]
            .image
            .as_deref(),
        Some("dittofs/dittofs:1.0.0")
    );
}

#[tokio::test]
async fn a_manual_change_is_reverted() {
    let world = World::start().await;
    let desk = world.desk("pit").await;
    let _operator = desk.run();
    desk.serve("files", |_| {}).await;
    desk.until("files", "is ready", is_ready).await;
    let edit = Patch::Merge(json!({"data": {"config.yaml": "edited: true"}}));
    let maps = desk.api::<ConfigMap>();
    maps.patch("files-config", &PatchParams::default(), &edit)
        .await
        .unwrap();
    desk.api::<StatefulSet>()
        .delete("files", &DeleteParams::default())
        .await
        .unwrap();
    world
        .eventually("put right", async || {
            let map = maps.get("files-config").await.unwrap().data.unwrap();
            (map["config.yaml"] == "logging: {level: INFO}\n").then_some(())
        })
        .await;
    desk.until("files", "is ready", is_ready).await;
}

//! The rows of the alignment table of the operator's design, one test each.

use dittofs_operator::api::DittoServer;
use dittofs_operator::conditions::ServerCondition::{self, Available, DatabaseReady, Progressing};
use dittofs_operator::objects::{CONFIG_HASH, stateful_set};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{CustomResourceExt, ResourceExt};
use kube_status::ConditionType;
use serde_json::{Value, json};

use crate::world::{World, condition, condition_text, is_ready, server, status};

#[tokio::test]
async fn row_progressing_reports_that_it_waits_for_the_database() {
    let world = World::start().await;
    let desk = world.desk("row").await;
    let _operator = desk.run();
    desk.serve("files", |server| server.spec.percona.enabled = true).await;
    let waiting = desk
        .until("files", "waits", |server| {
            condition_text(server, Progressing) == "True WaitingForDatabase"
        })
        .await;
    assert_eq!(
        condition(&waiting, Progressing).unwrap().message,
        "Waiting for PostgreSQL cluster files-postgres to become ready"
    );
    assert_eq!(condition_text(&waiting, DatabaseReady), "False PerconaNotReady");
    assert_eq!(
        condition_text(&waiting, ServerCondition::Ready),
        "False ComponentsNotReady"
    );
    assert_eq!(condition_text(&waiting, Available), "False StatefulSetNotReady");
    assert!(
        desk.api::<StatefulSet>().get_opt("files").await.unwrap().is_none(),
        "the database comes first"
    );
    desk.database_is("files-postgres", "initializing").await;
    desk.database_is("files-postgres", "ready").await;
    let ready = desk.until("files", "is ready", is_ready).await;
    assert_eq!(condition_text(&ready, DatabaseReady), "True PerconaReady");
    assert_eq!(condition_text(&ready, Progressing), "False Settled");
    let all = condition(&ready, ServerCondition::Ready).unwrap();
    assert_eq!(
        (all.reason.as_str(), all.message.as_str()),
        ("AllSystemsGo", "All components are ready")
    );
}

#[tokio::test]
async fn row_the_status_has_the_full_replica_counts() {
    let world = World::start().await;
    let desk = world.desk("row").await;
    let _operator = desk.run();
    let counts = |server: &DittoServer| {
        let status = status(server);
        (status.replicas, status.ready_replicas, status.available_replicas)
    };
    desk.serve("files", |_| {}).await;
    let ready = desk.until("files", "is ready", is_ready).await;
    assert_eq!(counts(&ready), (1, 1, 1));
    desk.change("files", json!({"spec": {"replicas": 0}})).await;
    desk.until("files", "has stopped", |server| counts(server) == (0, 0, 0))
        .await;
}

#[tokio::test]
async fn row_kubectl_shows_the_columns() {
    let world = World::start().await;
    let desk = world.desk("row").await;
    let _operator = desk.run();
    desk.serve("files", |_| {}).await;
    desk.until("files", "is ready", is_ready).await;
    let request = http::Request::get("/apis/dittofs.dittofs.com/v1alpha1/namespaces/row/dittoservers")
        .header("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
        .body(Vec::new())
        .unwrap();
    let table: Value = world.admin.request(request).await.unwrap();
    let columns: Vec<_> = table["columnDefinitions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["name"].clone())
        .collect();
    assert_eq!(columns, ["Name", "READY", "AVAILABLE", "STATUS", "AGE"]);
    let cells = &table["rows"][0]["cells"];
    let shown: Vec<String> = (0..4).map(|i| cells[i].to_string().replace('"', "")).collect();
    assert_eq!(shown, ["files", "1", "1", "Running"]);
    let names = DittoServer::crd().spec.names;
    assert_eq!(names.short_names.unwrap(), ["ditto", "dittofs"]);
}

#[tokio::test]
async fn row_every_condition_and_the_status_carry_the_observed_generation() {
    let world = World::start().await;
    let desk = world.desk("row").await;
    let _operator = desk.run();
    desk.serve("files", |server| server.spec.percona.enabled = true).await;
    desk.database_is("files-postgres", "ready").await;
    desk.until("files", "is ready", is_ready).await;
    for config in ["a: 1", "a: [", "a: 2"] {
        let generation = desk
            .change("files", json!({"spec": {"config": config}}))
            .await
            .metadata
            .generation;
        let observed = desk
            .until("files", "observed", |server| {
                status(server).observed_generation == generation
            })
            .await;
        for one in status(&observed).conditions {
            assert_eq!(one.observed_generation, generation, "{} after {config}", one.type_);
        }
        assert_eq!(status(&observed).conditions.len(), 5, "all five of them");
    }
}

#[tokio::test]
async fn row_the_config_hash_is_in_the_status_and_on_the_pods() {
    let world = World::start().await;
    let desk = world.desk("row").await;
    let _operator = desk.run();
    desk.create::<Secret>(json!({"metadata": {"name": "keys"}, "stringData": {"a": "1"}}))
        .await;
    desk.serve("files", |server| {
        server.spec.secret_refs = serde_json::from_value(json!([{"name": "keys"}])).unwrap();
    })
    .await;
    let hash_of_pod = async || {
        let pod = desk.api::<Pod>().get_opt("files-0").await.unwrap()?;
        pod.annotations().get(CONFIG_HASH).cloned()
    };
    let mut known = status(&desk.until("files", "is ready", is_ready).await).config_hash;
    assert_eq!(hash_of_pod().await, known);
    let pod = desk.api::<Pod>().get("files-0").await.unwrap().uid();

    // What is no configuration rolls nothing: labels of the Secret, comments, another Secret.
    let secrets = desk.api::<Secret>();
    let label = Patch::Merge(json!({"metadata": {"labels": {"b": "c"}}}));
    secrets.patch("keys", &PatchParams::default(), &label).await.unwrap();
    desk.create::<Secret>(json!({"metadata": {"name": "other"}, "stringData": {"a": "1"}}))
        .await;
    let text = "# said anew\nlogging: {level: INFO}\n";
    let generation = desk
        .change("files", json!({"spec": {"config": text}}))
        .await
        .metadata
        .generation;
    let same = desk
        .until("files", "observed", |server| {
            is_ready(server) && status(server).observed_generation == generation
        })
        .await;
    assert_eq!(status(&same).config_hash, known);
    assert_eq!(
        desk.api::<Pod>().get("files-0").await.unwrap().uid(),
        pod,
        "the pod is the same"
    );

    // What is rolls the pods: the content of the Secret, the configuration.
    let content = Patch::Merge(json!({"stringData": {"a": "2"}}));
    secrets.patch("keys", &PatchParams::default(), &content).await.unwrap();
    for change in ["the Secret", "the configuration"] {
        if change == "the configuration" {
            desk.change("files", json!({"spec": {"config": "logging: {level: DEBUG}"}}))
                .await;
        }
        let before = known.clone();
        let after = desk
            .until("files", change, |server| {
                is_ready(server) && status(server).config_hash != before
            })
            .await;
        known = status(&after).config_hash;
        world
            .eventually("the pod rolled", async || (hash_of_pod().await == known).then_some(()))
            .await;
    }
    desk.until_event("ConfigUpdated: Secrets updated, pods will restart")
        .await;
    desk.until_event("ConfigUpdated: ConfigMap files-config updated, pods will restart")
        .await;
}

#[tokio::test]
async fn row_events_record_changes_and_errors_and_nothing_else() {
    let world = World::start().await;
    let desk = world.desk("row").await;
    let operator = desk.run();
    desk.serve("files", |server| server.spec.percona.enabled = true).await;
    desk.until_event("PerconaNotReady: Waiting for PostgreSQL cluster files-postgres to become ready")
        .await;
    desk.database_is("files-postgres", "ready").await;
    desk.until("files", "is ready", is_ready).await;
    desk.until_event("Created: StatefulSet created").await;
    drop(operator);
    let mut events = desk.events().await;
    events.sort();
    assert_eq!(
        events,
        [
            ("Created: StatefulSet created".to_owned(), 1),
            (
                "PerconaNotReady: Waiting for PostgreSQL cluster files-postgres to become ready".to_owned(),
                1
            ),
        ]
    );
}

/// The template of a server's pods.
fn container() -> Value {
    let mut server = server("files");
    server.spec.api_port = 9090;
    stateful_set(&server, "h")["spec"]["template"]["spec"]["containers"][0].clone()
}

#[test]
fn row_probes_ask_the_health_pages_on_the_api_port() {
    let container = container();
    for (probe, path, initial, period) in [
        ("livenessProbe", "/health", 15, 10),
        ("readinessProbe", "/health/ready", 10, 5),
    ] {
        let expected = json!({"httpGet": {"path": path, "port": 9090}, "initialDelaySeconds": initial,
            "periodSeconds": period, "timeoutSeconds": 5, "failureThreshold": 3});
        assert_eq!(container[probe], expected, "{probe}");
    }
    let usual = stateful_set(&server("files"), "h");
    let port = "/spec/template/spec/containers/0/livenessProbe/httpGet/port";
    assert_eq!(usual.pointer(port), Some(&json!(8080)));
}

#[test]
fn row_a_slow_start_has_150_seconds() {
    let probe = &container()["startupProbe"];
    assert_eq!(probe["httpGet"], json!({"path": "/health", "port": 9090}));
    assert_eq!(
        (probe["initialDelaySeconds"].as_i64(), probe["timeoutSeconds"].as_i64()),
        (Some(0), Some(5))
    );
    let product = probe["periodSeconds"].as_i64().unwrap() * probe["failureThreshold"].as_i64().unwrap();
    assert_eq!(product, 150);
}

#[test]
fn row_connections_have_five_seconds_before_sigterm() {
    let hook = container()["lifecycle"]["preStop"]["exec"]["command"].clone();
    assert_eq!(hook, json!(["/bin/sh", "-c", "sleep 5"]));
}

#[tokio::test]
async fn row_the_database_goes_with_the_server_only_when_asked() {
    let world = World::start().await;
    let desk = world.desk("row").await;
    let _operator = desk.run();
    for (name, doomed, event) in [
        (
            "kept",
            false,
            "PerconaOrphaned: PostgreSQL cluster kept-postgres is kept",
        ),
        (
            "doomed",
            true,
            "PerconaDeleted: PostgreSQL cluster doomed-postgres is deleted",
        ),
    ] {
        desk.serve(name, |server| {
            server.spec.percona.enabled = true;
            server.spec.percona.delete_with_server = doomed;
        })
        .await;
        let database = format!("{name}-postgres");
        desk.database_is(&database, "ready").await;
        desk.until(name, "is ready", is_ready).await;
        desk.servers().delete(name, &DeleteParams::default()).await.unwrap();
        desk.until_deleted(name).await;
        let left = desk.databases().get_opt(&database).await.unwrap();
        assert_eq!(left.is_none(), doomed, "{database}");
        desk.until_event(event).await;
    }
}

#[tokio::test]
async fn row_a_finalizer_holds_the_server_until_its_pods_have_ended() {
    let world = World::start().await;
    let desk = world.desk("row").await;
    let operator = desk.run();
    desk.serve("files", |_| {}).await;
    let ready = desk.until("files", "is ready", is_ready).await;
    assert_eq!(ready.finalizers(), ["dittofs.dittofs.com/finalizer"]);
    // A pod that does not end keeps the server.
    let hold = Patch::Merge(json!({"metadata": {"finalizers": ["example.org/slow"]}}));
    desk.api::<Pod>()
        .patch("files-0", &PatchParams::default(), &hold)
        .await
        .unwrap();
    desk.servers().delete("files", &DeleteParams::default()).await.unwrap();
    let going = desk
        .until("files", "is being deleted", |server| {
            condition_text(server, Progressing) == "True Deleting"
        })
        .await;
    let message = "Waiting for the pods of StatefulSet files to end";
    assert_eq!(condition(&going, Progressing).unwrap().message, message);
    assert_eq!(condition_text(&going, ServerCondition::Deleting), "True CleaningUp");
    assert_eq!(status(&going).phase, Some(dittofs_operator::api::Phase::Deleting));
    let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    desk.api::<Pod>()
        .patch("files-0", &PatchParams::default(), &free)
        .await
        .unwrap();
    desk.until_deleted("files").await;
    desk.until_event("Deleting: DittoServer is being deleted, cleaning up resources")
        .await;
    drop(operator);
    assert!(
        ServerCondition::ALL.len() == 6,
        "five conditions, and Deleting while it lasts"
    );
}

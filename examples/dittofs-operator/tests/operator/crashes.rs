//! The operator is killed after every write in turn; each run ends as an undisturbed one does.

use std::collections::BTreeMap;

use dittofs_operator::conditions::ServerCondition;
use dittofs_operator::objects::SERVER;
use futures::StreamExt;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Secret, Service};
use kube::api::{DeleteParams, DynamicObject, ListParams};
use kube::{Api, ResourceExt};
use kube_sandbox::faults::{Fault, Rule};
use serde::Serialize;
use serde_json::{Value, json};

use crate::world::{Desk, World, condition_text, is_ready};

/// A part of a server's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Chapter {
    Create,
    Update,
    SwitchOff,
    DeleteAndKeep,
    DeleteAll,
}

/// What stands before the chapter, undisturbed.
async fn prepare(desk: &Desk<'_>, chapter: Chapter) {
    desk.create::<Secret>(json!({"metadata": {"name": "keys"}, "stringData": {"a": "1"}}))
        .await;
    if chapter > Chapter::Create {
        create(desk, chapter == Chapter::DeleteAll).await;
    }
}

async fn create(desk: &Desk<'_>, doomed: bool) {
    desk.serve("files", |server| {
        server.spec.percona.enabled = true;
        server.spec.percona.delete_with_server = doomed;
        server.spec.secret_refs = serde_json::from_value(json!([{"name": "keys"}])).unwrap();
    })
    .await;
    desk.database_is("files-postgres", "ready").await;
    desk.until("files", "is ready", is_ready).await;
}

/// The chapter itself, until all is quiet.
async fn live(desk: &Desk<'_>, chapter: Chapter) {
    match chapter {
        Chapter::Create => create(desk, false).await,
        Chapter::Update => {
            let image = "dittofs/dittofs:1.0.0";
            desk.change(
                "files",
                json!({"spec": {"config": "logging: {level: DEBUG}", "image": image}}),
            )
            .await;
            desk.until("files", "is updated", is_ready).await;
        }
        Chapter::SwitchOff => {
            desk.change("files", json!({"spec": {"percona": {"enabled": false}}}))
                .await;
            desk.until("files", "is on its own", |server| {
                is_ready(server) && condition_text(server, ServerCondition::DatabaseReady).is_empty()
            })
            .await;
        }
        Chapter::DeleteAndKeep | Chapter::DeleteAll => {
            desk.servers().delete("files", &DeleteParams::default()).await.unwrap();
            desk.until_deleted("files").await;
            desk.world
                .eventually("garbage collected", async || {
                    let maps = desk.api::<ConfigMap>().get_opt("files-config").await.unwrap();
                    let services = desk.api::<Service>().list(&ListParams::default()).await.unwrap();
                    let sets = desk.api::<StatefulSet>().list(&ListParams::default()).await.unwrap();
                    (maps.is_none() && services.items.is_empty() && sets.items.is_empty()).then_some(())
                })
                .await;
        }
    }
}

/// Everything in the namespace, without what differs between any two runs.
async fn ending(desk: &Desk<'_>) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    let mut keep = |kind: &str, objects: Vec<(String, Value)>| {
        found.extend(
            objects
                .into_iter()
                .map(|(name, object)| (format!("{kind} {name}"), object)),
        );
    };
    keep("DittoServer", all(desk.servers()).await);
    keep("ConfigMap", all(desk.api::<ConfigMap>()).await);
    keep("Service", all(desk.api::<Service>()).await);
    keep("StatefulSet", all(desk.api::<StatefulSet>()).await);
    keep("PersistentVolumeClaim", all(desk.api::<PersistentVolumeClaim>()).await);
    // Of a pod only what the operator decides: the rest is the sandbox's, with a random name in it.
    let pods = desk.api::<Pod>().list(&ListParams::default()).await.unwrap().items;
    let pod = |pod: &Pod| {
        let containers = pod.spec.as_ref().map(|spec| spec.containers[0].image.clone());
        (
            pod.name_any(),
            json!([pod.annotations(), pod.labels().get(SERVER), containers]),
        )
    };
    keep("Pod", pods.iter().map(pod).collect());
    keep("Secret", all(desk.api::<Secret>()).await);
    let databases: Vec<DynamicObject> = desk.databases().list(&ListParams::default()).await.unwrap().items;
    keep(
        "PerconaPGCluster",
        databases
            .iter()
            .map(|one| (one.name_any(), without_accidents(json!(one))))
            .collect(),
    );
    let text = serde_json::to_string(&found)
        .unwrap()
        .replace(&desk.namespace, "NAMESPACE");
    serde_json::from_str(&text).unwrap()
}

async fn all<K>(api: Api<K>) -> Vec<(String, Value)>
where
    K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + Serialize + serde::de::DeserializeOwned,
{
    let list = api.list(&ListParams::default()).await.unwrap();
    list.items
        .iter()
        .map(|one| (one.name_any(), without_accidents(json!(one))))
        .collect()
}

/// Ids, versions, times, addresses and revisions.
fn without_accidents(value: Value) -> Value {
    const ACCIDENTS: [&str; 16] = [
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "managedFields",
        "lastTransitionTime",
        "clusterIP",
        "clusterIPs",
        "generation",
        "currentRevision",
        "updateRevision",
        "controller-revision-hash",
        "volumeName",
        "startTime",
        "nodeName",
        "observedGeneration",
        "projected",
    ];
    match value {
        Value::Object(map) => map
            .into_iter()
            .filter(|(key, _)| !ACCIDENTS.contains(&key.as_str()))
            .map(|(key, value)| (key, without_accidents(value)))
            .collect(),
        Value::Array(list) => list.into_iter().map(without_accidents).collect(),
        other => other,
    }
}

/// How a run of a chapter went.
struct Run {
    ending: BTreeMap<String, Value>,
    was_killed: bool,
    writes: usize,
    /// Those of the writes that are events: the publisher sends them in its own time, perhaps after the ending.
    events: usize,
}

/// One run of a chapter, killed after its n-th write; 0 is never.
async fn run(world: &World, chapter: Chapter, n: u64) -> Run {
    let desk = world.desk(&format!("{chapter:?}-{n}").to_lowercase()).await;
    let _operator = desk.run();
    prepare(&desk, chapter).await;
    let before = desk.faults.writes().len();
    if n > 0 {
        desk.faults.add(Rule::new("killed").writes().nth(n).then(Fault::Crash));
    }
    live(&desk, chapter).await;
    let ending = quiet(&desk).await;
    let writes = desk.faults.writes().split_off(before);
    Run {
        ending,
        was_killed: !desk.faults.log().is_empty(),
        writes: writes.len(),
        events: writes.iter().filter(|write| write.resource == "events").count(),
    }
}

/// The ending once nothing changes any more: the sandbox's own controllers may still be at work.
async fn quiet(desk: &Desk<'_>) -> BTreeMap<String, Value> {
    let mut last = BTreeMap::new();
    desk.world
        .eventually("quiet", async || {
            let now = ending(desk).await;
            let settled = now
                .get("StatefulSet files")
                .is_none_or(|set| set["status"]["readyReplicas"] == 1);
            let same = std::mem::replace(&mut last, now.clone()) == now;
            (settled && same).then_some(now)
        })
        .await
}

async fn kill_after_every_write(chapter: Chapter) {
    let world = World::start().await;
    let undisturbed = run(&world, chapter, 0).await;
    let writes = undisturbed.writes;
    let points = 1..=u64::try_from(writes).unwrap() + 2;
    let runs = futures::stream::iter(points).map(|n| {
        let world = &world;
        async move { (n, run(world, chapter, n).await) }
    });
    let mut killed = 0;
    let mut runs = runs.buffer_unordered(4);
    while let Some((n, run)) = runs.next().await {
        killed += usize::from(run.was_killed);
        for (name, object) in &undisturbed.ending {
            let found = run.ending.get(name);
            assert_eq!(found, Some(object), "{chapter:?}: {name} after a kill at write {n}");
        }
        let names = run.ending.keys();
        assert_eq!(
            names.len(),
            undisturbed.ending.len(),
            "{chapter:?}: {names:?} after a kill at write {n}"
        );
    }
    let same = undisturbed.ending.len();
    println!("{chapter:?}: {writes} writes undisturbed; {killed} runs killed, each ends with the same {same} objects");
    assert!(
        killed >= writes - undisturbed.events,
        "{killed} kills for {writes} writes"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_after_every_write_while_a_server_is_created() {
    kill_after_every_write(Chapter::Create).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_after_every_write_while_a_server_is_updated() {
    kill_after_every_write(Chapter::Update).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_after_every_write_while_the_database_is_switched_off() {
    kill_after_every_write(Chapter::SwitchOff).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_after_every_write_while_a_server_is_deleted_and_its_database_kept() {
    kill_after_every_write(Chapter::DeleteAndKeep).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_after_every_write_while_a_server_is_deleted_with_its_database() {
    kill_after_every_write(Chapter::DeleteAll).await;
}

//! Clusters with persistent data.

use std::collections::BTreeMap;
use std::time::Duration;

use candor_tests::{Cluster, World, contract, faults, until};
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::api::{Api, ListParams};
use serde_json::{Value, json};

async fn claims(world: &World) -> Vec<String> {
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(world.client(), world.namespace());
    let list = claims.list(&ListParams::default()).await.expect("claims can be listed");
    list.items.into_iter().filter_map(|claim| claim.metadata.name).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_members_killed_at_once_come_back_with_their_data() {
    let world = World::start("all-persistent").await;
    let cluster = Cluster::new(&world, "c");
    // With the default, `everysec`, a server acknowledges before it writes while the disk is busy with the last
    // second: a real disk under load lost 2 of 2,150 writes. Only `always` can guarantee that nothing is lost.
    let durable = json!({"appendfsync": "always"});
    cluster
        .create(json!({"shards": 3, "replicas": 1, "persistence": {"size": "1Gi"}, "config": durable}))
        .await;
    cluster.ready().await;
    let auditor = cluster.audit().await;
    cluster.whole(&auditor).await;
    cluster.written(&auditor, 800).await;
    for server in cluster.servers().await.into_values() {
        faults::kill(&world, &server.pod).await;
    }
    cluster.sees(&auditor, "broken", |now| !now.whole).await;
    cluster.whole(&auditor).await;
    cluster.written(&auditor, 400).await;
    let audit = contract::assert_met(&cluster, auditor).await;
    assert_eq!(audit.writes.lost, 0, "{}", contract::details(&audit));
    contract::brief(&audit, Duration::from_secs(60));
    assert!(cluster.condition("DataLost").await.is_none());
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_cluster_keeps_its_volumes_and_comes_back_with_its_keys() {
    let world = World::start("retain").await;
    let cluster = Cluster::new(&world, "c");
    let spec =
        |size: &str| json!({"shards": 3, "replicas": 0, "persistence": {"size": size, "reclaimPolicy": "Retain"}});
    cluster.create(spec("1Gi")).await;
    cluster.ready().await;
    let mut kept = 0;
    for server in cluster.servers().await.into_values() {
        for number in 0..30 {
            let key = format!("kept-{number}");
            kept += usize::from(server.ask::<String>(&["SET", &key, "1"]).await.is_some());
        }
    }
    assert_eq!(kept, 30, "every key has one owner");
    cluster.delete().await;
    until("no pod is left", async || cluster.pods().await.is_empty().then_some(())).await;
    assert_eq!(claims(&world).await.len(), 3);
    // A retained volume may be larger than the requested size.
    cluster.create(spec("512Mi")).await;
    cluster.ready().await;
    let mut found = 0;
    for server in cluster.servers().await.into_values() {
        found += server.ask::<usize>(&["DBSIZE"]).await.unwrap_or(0);
    }
    assert_eq!(found, 30, "it came back with its keys");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_cluster_deletes_its_volumes_if_the_reclaim_policy_is_delete() {
    let world = World::start("reclaim").await;
    let cluster = Cluster::new(&world, "c");
    cluster
        .create(json!({"shards": 3, "replicas": 0, "persistence": {"size": "1024Mi", "reclaimPolicy": "Delete"}}))
        .await;
    cluster.ready().await;
    assert_eq!(claims(&world).await.len(), 3);
    cluster.delete().await;
    until("no claim is left", async || {
        claims(&world).await.is_empty().then_some(())
    })
    .await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_is_reported_with_the_servers_message_until_there_is_space() {
    const ROOM: u64 = 8 << 20;
    let world = World::prepare("full-disk").await;
    let Some(kubelet) = world.sandbox().and_then(|sandbox| sandbox.kubelet()) else {
        println!("a volume that can be filled without harm is only in the sandbox");
        return world.end().await;
    };
    let (primary, replica) = ("valkey-c-0-0-0", "valkey-c-1-1-0");
    for pod in [primary, replica] {
        kubelet.shrink_volume(world.namespace(), pod, "data", ROOM);
    }
    world.start_operator();
    let cluster = Cluster::new(&world, "c");
    cluster
        .create(json!({"shards": 3, "replicas": 1, "persistence": {"size": "1Gi"}}))
        .await;
    cluster.ready().await;
    let auditor = cluster.audit().await;
    cluster.whole(&auditor).await;
    assert_eq!(cluster.primary(0).await.pod, primary);
    assert_eq!(cluster.replica(1).await.pod, replica);
    let began = runs(&cluster).await;
    let fill = async |pod: &str| {
        let output = faults::run(&world, pod, "cat /dev/zero > /data/ballast").await;
        assert!(output.contains("No space left on device"), "{output}");
    };
    let empty = async |pod: &str| faults::run(&world, pod, "rm /data/ballast").await;

    fill(replica).await;
    let message = "member 1-1: MISCONF Errors writing to the AOF file: No space left on device";
    cluster.until("told of a replica", full("StorageReady", message)).await;
    empty(replica).await;
    cluster.whole(&auditor).await;

    fill(primary).await;
    let message = "member 0-0: MISCONF Errors writing to the AOF file: No space left on device";
    cluster.until("told of a primary", full("StorageReady", message)).await;
    cluster.until("not Ready for it", full("Ready", message)).await;
    assert_eq!(faults::run(&world, primary, "sh /scripts/alive.sh").await, "");
    // A change that would restart members waits, while a larger volume is requested at once.
    cluster
        .change(json!({"persistence": {"size": "2Gi"}, "terminationGracePeriodSeconds": 20}))
        .await;
    until("the claims are larger", async || {
        let sizes = sizes(&world).await;
        (sizes.len() == 6 && sizes.iter().all(|size| size == "2Gi")).then_some(())
    })
    .await;
    assert_eq!(runs(&cluster).await, began, "nobody was restarted");

    empty(primary).await;
    cluster.whole(&auditor).await;
    assert!(cluster.condition("StorageReady").await.is_none());
    let audit = contract::assert_met(&cluster, auditor).await;
    assert_eq!(audit.writes.lost, 0, "{}", contract::details(&audit));
    world.end().await;
}

/// Whether a condition reports a volume error with this message.
fn full(kind: &str, message: &str) -> impl Fn(&Value) -> bool {
    move |object| {
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let matches =
            |one: &Value| one["status"] == "False" && one["reason"] == "VolumeFailed" && one["message"] == message;
        conditions.iter().any(|one| one["type"] == kind && matches(one))
    }
}

/// The sizes that the members' claims request.
async fn sizes(world: &World) -> Vec<String> {
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(world.client(), world.namespace());
    let list = claims.list(&ListParams::default()).await.expect("claims can be listed");
    let requests = list
        .items
        .into_iter()
        .filter_map(|claim| claim.spec?.resources?.requests);
    requests.filter_map(|mut all| Some(all.remove("storage")?.0)).collect()
}

/// By pod, the run id of its server: it changes with every restart.
async fn runs(cluster: &Cluster<'_>) -> BTreeMap<String, String> {
    let mut runs = BTreeMap::new();
    for (name, server) in cluster.servers().await {
        let info: String = server.ask(&["INFO", "server"]).await.expect("INFO is answered");
        let run = info.lines().find_map(|line| line.strip_prefix("run_id:"));
        runs.insert(name, run.expect("a run id").trim().to_owned());
    }
    runs
}

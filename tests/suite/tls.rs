//! Certificates that are renewed while servers run, by the same CA and by new ones, and Secrets with unusable
//! contents.

pub mod certificates;

use std::time::{Duration, Instant};

use candor_tests::{Cluster, World, until};
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;

use certificates::{Authority, Issued, served_by};

pub const SECRET: &str = "c-tls";

fn secrets(world: &World) -> Api<Secret> {
    Api::namespaced(world.client(), world.namespace())
}

/// Creates the Secret.
pub async fn make(world: &World, authority: &Authority, issued: &Issued) {
    let secret = serde_json::from_value(json!({"metadata": {"name": SECRET}})).expect("a Secret");
    let made = secrets(world).create(&PostParams::default(), &secret).await;
    made.unwrap_or_else(|error| panic!("{SECRET}: {error}"));
    write(world, &authority.pem(), issued).await;
}

/// Updates the Secret, as a user or an issuer does.
pub async fn write(world: &World, authority: &str, issued: &Issued) {
    let files = json!({"ca.crt": authority, "tls.crt": issued.certificate, "tls.key": issued.key});
    let patch = Patch::Merge(json!({"stringData": files}));
    let written = secrets(world).patch(SECRET, &PatchParams::default(), &patch).await;
    written.unwrap_or_else(|error| panic!("{SECRET}: {error}"));
}

/// Waits until every member presents a certificate and the cluster is Ready with it; returns how long it took.
pub async fn served(cluster: &Cluster<'_>, issued: &Issued) -> Duration {
    let begun = Instant::now();
    until("every member serves the certificate", async || {
        for pod in cluster.pods().await {
            if served_by(&pod).await? != issued.der {
                return None;
            }
        }
        Some(())
    })
    .await;
    cluster.ready().await;
    begun.elapsed()
}

/// Waits until status reports with this message that the Secret cannot be used; it must take at most 5 seconds.
async fn reported(cluster: &Cluster<'_>, message: &str) {
    let begun = Instant::now();
    cluster
        .until(message, |object| {
            let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let applied = conditions.iter().find(|one| one["type"] == "ConfigurationApplied");
            applied.is_some_and(|one| {
                one["status"] == "False" && one["message"].as_str().is_some_and(|text| text.contains(message))
            })
        })
        .await;
    let took = begun.elapsed();
    println!("reported in {took:?}: {message}");
    assert!(took < Duration::from_secs(5), "{message}: reported after {took:?}");
}

/// The running pods, and how often their containers were restarted.
async fn processes(cluster: &Cluster<'_>) -> Vec<(Option<String>, i32)> {
    let restarts = |pod: &Pod| {
        let status = pod.status.as_ref();
        let containers = status.and_then(|status| status.container_statuses.as_ref());
        containers.into_iter().flatten().map(|one| one.restart_count).sum()
    };
    let pods = cluster.pods().await;
    let mut all: Vec<_> = pods
        .iter()
        .map(|pod| (pod.metadata.uid.clone(), restarts(pod)))
        .collect();
    all.sort();
    all
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.is_some_and(|all| all.iter().any(|one| one.type_ == "Ready" && one.status == "True"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_of_any_ca_are_reloaded_and_unusable_ones_are_reported_and_not_loaded() {
    let begun = Instant::now();
    let world = World::start("tls").await;
    let cluster = Cluster::new(&world, "c");
    let authorities = ["one", "two", "three", "four"].map(Authority::new);
    let [one, two, three, four] = &authorities;
    let first = one.issue();
    make(&world, one, &first).await;
    let tls = json!({"tls": {"certificates": {"server": {"secretName": SECRET}}}});
    cluster
        .create(json!({"shards": 2, "replicas": 1, "networking": tls}))
        .await;
    println!("created: {:?}", served(&cluster, &first).await);
    let before = processes(&cluster).await;
    assert_eq!(before.len(), 4);

    let second = one.issue();
    write(&world, &one.pem(), &second).await;
    println!("the same CA: {:?}", served(&cluster, &second).await);
    let third = two.issue();
    write(&world, &two.pem(), &third).await;
    println!("another CA at once: {:?}", served(&cluster, &third).await);
    let fourth = three.issue();
    write(&world, &(two.pem() + &three.pem()), &fourth).await;
    println!("another CA beside the old one: {:?}", served(&cluster, &fourth).await);
    // An operator that starts in the middle of a renewal by the same CA has only the recorded state.
    world.kill_operator();
    let fifth = three.issue();
    write(&world, &(two.pem() + &three.pem()), &fifth).await;
    world.start_operator();
    println!("the same CA and another operator: {:?}", served(&cluster, &fifth).await);
    // The next operator has only the recorded state.
    world.kill_operator();
    let good = four.issue();
    write(&world, &four.pem(), &good).await;
    world.start_operator();
    println!("another CA and another operator: {:?}", served(&cluster, &good).await);

    let other = four.issue();
    let wrong_key = Issued {
        key: other.key.clone(),
        ..good.clone()
    };
    write(&world, &four.pem(), &wrong_key).await;
    reported(&cluster, "tls.crt and tls.key cannot be used together").await;
    let garbage = Issued {
        certificate: "hello".to_owned(),
        ..good.clone()
    };
    write(&world, &four.pem(), &garbage).await;
    reported(&cluster, "tls.crt holds no usable certificate").await;
    // Probes that used the Secret's current contents would fail by now, and the kubelet would restart the members.
    let mut observed = Vec::new();
    while observed.len() < 20 {
        observed.push(cluster.pods().await.iter().all(is_ready));
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    assert!(observed.iter().all(|ready| *ready), "members are well: {observed:?}");
    world.kill_operator();
    world.start_operator();
    write(&world, &one.pem(), &good).await;
    reported(&cluster, "it is signed by none of the CAs in ca.crt").await;
    let status = cluster.object().await["status"].clone();
    assert_eq!(status["state"], "Failed", "{status}");
    assert_eq!(status["readyShards"], 2, "the new operator knows them all: {status}");

    let last = four.issue();
    write(&world, &four.pem(), &last).await;
    println!("mended: {:?}", served(&cluster, &last).await);
    // The operator's own Secret, with its passwords and trusted CAs, is deleted while no operator runs that could
    // remember them.
    world.kill_operator();
    let own = "internal-c-system-passwords";
    let deleted = secrets(&world).delete(own, &DeleteParams::default()).await;
    deleted.unwrap_or_else(|error| panic!("{own}: {error}"));
    world.start_operator();
    until("the operator's own Secret is there again", async || {
        secrets(&world).get_opt(own).await.ok()?.map(drop)
    })
    .await;
    let renewed = four.issue();
    write(&world, &four.pem(), &renewed).await;
    println!("with a new Secret of passwords: {:?}", served(&cluster, &renewed).await);
    assert!(cluster.condition("ConfigurationApplied").await.is_none());
    assert_eq!(processes(&cluster).await, before, "nobody was restarted");
    for event in cluster.events().await {
        let lost = ["PrimaryLost", "ReplicaLost", "QuorumLost"].contains(&event.reason.as_str());
        assert!(!lost, "{event:?}");
    }
    println!("all of it: {:?}", begun.elapsed());
    world.end().await;
}

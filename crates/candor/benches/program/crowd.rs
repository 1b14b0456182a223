//! Copies the objects of a running one-shard cluster into a namespace that the operator does not watch, until there is
//! one cluster of sixty members and many small clusters. The members respond, but no operator reconciles them.

use std::fmt::Debug;
use std::time::{Duration, Instant};

use candor_api::{ValkeyCluster, ValkeyNode};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, Secret};
use kube::api::{Api, ListParams, PostParams};
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::desk::support::Stage;

/// The namespace of the copies.
const PLACE: &str = "crowd";
/// Shards of the large cluster.
const SHARDS: usize = 20;
/// Clusters in all.
pub const CLUSTERS: usize = 200;
/// Longer than simulated pods take to start.
const PATIENCE: Duration = Duration::from_secs(60);

/// Creates the copies and waits until every member has an address.
pub async fn gather(stage: &Stage, name: &str) {
    let namespaces: Api<Namespace> = Api::all(stage.client());
    let namespace = serde_json::from_value(json!({"metadata": {"name": PLACE}})).expect("a namespace");
    let made = namespaces.create(&PostParams::default(), &namespace).await;
    made.expect("a namespace can be made");
    for object in listed::<Secret>(stage, name).await {
        make::<Secret>(stage, object).await;
    }
    for object in listed::<ConfigMap>(stage, name).await {
        make::<ConfigMap>(stage, object).await;
    }
    let (nodes, pods) = (
        listed::<ValkeyNode>(stage, name).await,
        listed::<Pod>(stage, name).await,
    );
    for shard in 0..SHARDS {
        for node in &nodes {
            tell::<ValkeyNode>(stage, of_shard(node, name, shard)).await;
        }
        for pod in &pods {
            make::<Pod>(stage, of_shard(pod, name, shard)).await;
        }
    }
    let living = stage.clusters("default").get(name).await.expect("it lives");
    for number in 0..CLUSTERS {
        let name = if number == 0 {
            name.to_owned()
        } else {
            format!("{name}-{number}")
        };
        tell::<ValkeyCluster>(stage, grown(&living, &name)).await;
    }
    let pods: Api<Pod> = Api::namespaced(stage.client(), PLACE);
    let begun = Instant::now();
    loop {
        let all = pods.list(&ListParams::default()).await.expect("pods can be listed");
        let address = |pod: &&Pod| pod.status.as_ref().is_some_and(|status| status.pod_ip.is_some());
        let running = all.iter().filter(address).count();
        if running == SHARDS * 3 {
            return;
        }
        assert!(
            begun.elapsed() < PATIENCE,
            "{running} members have an address after {PATIENCE:?}"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// The objects of the running cluster, without the fields that the API server sets.
async fn listed<K>(stage: &Stage, name: &str) -> Vec<Value>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + Serialize + DeserializeOwned,
{
    let api: Api<K> = Api::namespaced(stage.client(), "default");
    let ours = ListParams::default().labels(&format!("valkey.io/cluster={name}"));
    let found = api.list(&ours).await.expect("objects can be listed");
    found.items.iter().map(copied).collect()
}

fn copied<K: Resource<DynamicType = ()> + Serialize>(object: &K) -> Value {
    let mut value = json!(object);
    value["metadata"] =
        json!({"name": object.name_any(), "labels": object.labels(), "annotations": object.annotations()});
    value
}

/// A member's object, rewritten for another shard.
fn of_shard(object: &Value, cluster: &str, shard: usize) -> Value {
    let mut one = object.clone();
    let name = one["metadata"]["name"].as_str().unwrap_or_default();
    one["metadata"]["name"] = name
        .replace(&format!("{cluster}-0-"), &format!("{cluster}-{shard}-"))
        .into();
    one["metadata"]["labels"]["valkey.io/shard-index"] = shard.to_string().into();
    if one["spec"]["shard"].is_number() {
        one["spec"]["shard"] = shard.into();
    }
    one
}

/// The cluster with all its shards and the status that the operator would write.
fn grown(living: &ValkeyCluster, name: &str) -> Value {
    let mut one = copied(living);
    one["metadata"]["name"] = name.into();
    one["spec"]["shards"] = SHARDS.into();
    let shard = one["status"]["topology"][0].clone();
    let shards = (0..SHARDS).map(|index| {
        let mut shard = shard.clone();
        shard["shard"] = index.into();
        shard
    });
    one["status"]["topology"] = shards.collect();
    for field in ["shards", "readyShards"] {
        one["status"][field] = SHARDS.into();
    }
    one
}

async fn make<K>(stage: &Stage, object: Value) -> K
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + Serialize + DeserializeOwned,
{
    let api: Api<K> = Api::namespaced(stage.client(), PLACE);
    let object = serde_json::from_value(object).expect("a copy is of the same kind");
    let made = api.create(&PostParams::default(), &object).await;
    made.unwrap_or_else(|error| panic!("{}: {error}", object.name_any()))
}

/// Creates an object with its status.
async fn tell<K>(stage: &Stage, object: Value)
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + Serialize + DeserializeOwned,
{
    let made: K = make(stage, object.clone()).await;
    let mut told = json!(made);
    told["status"] = object["status"].clone();
    let told = serde_json::from_value(told).expect("a copy is of the same kind");
    let api: Api<K> = Api::namespaced(stage.client(), PLACE);
    let told = api
        .replace_status(&made.name_any(), &PostParams::default(), &told)
        .await;
    told.unwrap_or_else(|error| panic!("{}: {error}", made.name_any()));
}

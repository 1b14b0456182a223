//! The final state of a run, without values that differ between any two runs: ids, times, versions, addresses,
//! passwords, and which member of a shard is its primary.

use std::collections::BTreeMap;
use std::fmt::Debug;

use candor_api::{RedkeyCluster, ValkeyCluster, ValkeyNode};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Secret, Service};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::ListParams;
use kube::{Api, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use valkey_admin::SlotSet;

use crate::support::Stage;

/// The final state, by kind and name.
pub type Ending = BTreeMap<String, Value>;

/// Collects objects, status, topology and the members' own reports.
pub async fn ending(stage: &Stage) -> Ending {
    let mut found = Ending::new();
    found.extend(all::<ValkeyCluster>(stage).await);
    found.extend(all::<ValkeyNode>(stage).await);
    for (name, mut cluster) in all::<RedkeyCluster>(stage).await {
        // By node id, which is random.
        let nodes = cluster["status"]["nodes"].as_object().map_or(0, serde_json::Map::len);
        cluster["status"]["nodes"] = nodes.into();
        let shards = cluster["status"]["topology"].as_array_mut();
        let shards = shards.map(std::mem::take).unwrap_or_default();
        let of = shards.len();
        let shards = shards.into_iter().map(|mut shard| {
            let slots: SlotSet = shard["slots"]
                .as_str()
                .and_then(|text| text.parse().ok())
                .unwrap_or_default();
            (shard["slots"], shard["keys"]) = (share(&slots, of), Value::Null);
            shard
        });
        cluster["status"]["topology"] = shards.collect();
        found.insert(name, cluster);
    }
    found.extend(all::<Deployment>(stage).await);
    found.extend(all::<StatefulSet>(stage).await);
    found.extend(all::<Service>(stage).await);
    found.extend(all::<ConfigMap>(stage).await);
    found.extend(all::<PodDisruptionBudget>(stage).await);
    found.extend(all::<PersistentVolumeClaim>(stage).await);
    let secrets: Api<Secret> = Api::namespaced(stage.client(), "default");
    for secret in secrets.list(&ListParams::default()).await.unwrap() {
        let keys: Vec<String> = secret.data.clone().unwrap_or_default().into_keys().collect();
        let kept = json!({"keys": keys, "labels": secret.labels(), "annotations": secret.annotations()});
        found.insert(format!("Secret {}", secret.name_any()), without_accidents(kept));
    }
    found.extend(pods_and_members(stage).await);
    found
}

async fn all<K>(stage: &Stage) -> Vec<(String, Value)>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + Serialize + DeserializeOwned,
{
    let api: Api<K> = Api::namespaced(stage.client(), "default");
    let list = api.list(&ListParams::default()).await.unwrap();
    // Two objects of the sandbox itself contain its certificate and its port.
    let ours = list.items.iter().filter(|one| !one.name_any().starts_with("kube"));
    let named = ours.map(|one| {
        let name = format!("{} {}", K::kind(&()), one.name_any());
        (name, without_accidents(json!(one)))
    });
    named.collect()
}

/// The fields of each pod that the operator decides, by member, and the state of the servers, by shard.
async fn pods_and_members(stage: &Stage) -> Vec<(String, Value)> {
    let api: Api<Pod> = Api::namespaced(stage.client(), "default");
    let mut found = Vec::new();
    let mut shards: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let servers = stage.world.members().len();
    for pod in api.list(&ListParams::default()).await.unwrap() {
        let label = |key: &str| pod.labels().get(key).cloned().unwrap_or_default();
        let (shard, mut node) = (label("valkey.io/shard-index"), label("valkey.io/node-index"));
        let component = label("redis.redkeycluster.operator/component");
        match component.as_str() {
            // The name of Robin's pod is random, and what is in it says its Deployment.
            "robin" => continue,
            "redis" => node = pod.name_any(),
            _ => {}
        }
        let server = pod.spec.as_ref().and_then(|spec| {
            let mut containers = spec.containers.iter();
            containers.find(|one| one.name == "server").cloned()
        });
        let kept = json!({"annotations": pod.annotations(), "resources": server.map(|one| one.resources)});
        found.push((format!("Pod {shard}-{node}"), without_accidents(kept)));
        let ip = stage.pods.address("default", &pod.name_any());
        let member = ip.and_then(|ip| {
            stage.world.inspect(ip, |server| {
                let replica = server.map.primary.is_some();
                let ranges: Vec<String> = server.map.slots.ranges().iter().map(ToString::to_string).collect();
                let peers = server.map.peers.values().filter(|peer| !peer.handshake).count();
                let redkey = component == "redis";
                let ranges = match (replica, redkey) {
                    (true, _) => json!([]),
                    (false, false) => json!(ranges),
                    (false, true) => share(&server.map.slots, servers),
                };
                json!({"replica": replica, "slots": ranges, "peers": peers,
                    "follows": replica.then(|| format!("{:?}", server.follow)),
                    "keys": (!redkey).then(|| server.total()), "jobs": server.jobs.iter().any(|job| job.due.elapsed().is_zero()),
                    "marks": server.map.marks.len(), "config": server.config,
                    "users": without_hashes(&format!("{:?}", server.users))})
            })
        });
        shards.entry(shard).or_default().push(without_accidents(member.into()));
    }
    for (shard, mut members) in shards {
        members.sort_by_key(ToString::to_string);
        found.push((format!("shard {shard}"), members.into()));
    }
    found.push(("servers".to_owned(), servers.into()));
    found
}

/// How many slots a server owns. Which of them, and who of them all owns one more, depends on which slots had moved at
/// which moment: slots move one by one there.
fn share(slots: &SlotSet, of: usize) -> Value {
    let even = 16384 / of.max(1);
    if slots.len() == even || slots.len() == even + 1 {
        return "an even share".into();
    }
    slots.len().into()
}

/// Removes password hashes: every run generates new passwords.
fn without_hashes(text: &str) -> String {
    let message = text.split_inclusive(|letter: char| !letter.is_ascii_hexdigit());
    message
        .map(|word| if word.len() >= 40 { "HASH" } else { word })
        .collect()
}

fn without_accidents(value: Value) -> Value {
    const ACCIDENTS: [&str; 25] = [
        "collisionCount",
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "managedFields",
        "lastTransitionTime",
        "lastUpdateTime",
        "clusterIP",
        "clusterIPs",
        "generation",
        "observedGeneration",
        "startTime",
        "startedAt",
        "nodeName",
        "nodeId",
        "podName",
        "podUid",
        "claimUid",
        "podIP",
        "role",
        "deployment.kubernetes.io/revision",
        "currentRevision",
        "updateRevision",
        "cluster-announce-ip",
        "volumeName",
    ];
    match value {
        Value::Object(map) => map
            .into_iter()
            .filter(|(key, _)| !ACCIDENTS.contains(&key.as_str()))
            // Kubernetes' own controllers write the conditions of a Deployment at their own pace.
            .filter(|(key, value)| key != "conditions" || !value.to_string().contains("NewReplicaSet"))
            .map(|(key, value)| (key, without_role(without_accidents(value))))
            .collect(),
        Value::Array(list) => list.into_iter().map(without_accidents).collect(),
        Value::String(text) => without_hashes(&text).into(),
        other => other,
    }
}

/// Replaces the messages of a `ValkeyNode` for a primary and for a replica in sync: each member may have either role.
fn without_role(value: Value) -> Value {
    match value.as_str() {
        Some("Serving" | "InSync") => "Serving|InSync".into(),
        Some(text) if text.starts_with("Primary of shard") || text.ends_with("in sync") => "Primary|Replica".into(),
        _ => value,
    }
}

/// Describes the differences as text.
pub fn difference(desired: &Ending, found: &Ending) -> String {
    let names = desired
        .keys()
        .chain(found.keys().filter(|name| !desired.contains_key(*name)));
    let differing = names.filter(|name| desired.get(*name) != found.get(*name));
    let mut lines = Vec::new();
    for name in differing {
        let nothing = Value::Null;
        parts(
            name,
            desired.get(name).unwrap_or(&nothing),
            found.get(name).unwrap_or(&nothing),
            &mut lines,
        );
    }
    lines.join("\n")
}

/// Collects the smallest parts that differ.
fn parts(at: &str, desired: &Value, found: &Value, lines: &mut Vec<String>) {
    match (desired, found) {
        (Value::Object(desired), Value::Object(found)) => {
            let keys = desired
                .keys()
                .chain(found.keys().filter(|key| !desired.contains_key(*key)));
            for key in keys {
                parts(
                    &format!("{at}.{key}"),
                    desired.get(key).unwrap_or(&Value::Null),
                    found.get(key).unwrap_or(&Value::Null),
                    lines,
                );
            }
        }
        (Value::Array(desired), Value::Array(found)) if desired.len() == found.len() => {
            for (index, (desired, found)) in desired.iter().zip(found).enumerate() {
                parts(&format!("{at}[{index}]"), desired, found, lines);
            }
        }
        _ if desired == found => {}
        _ => lines.push(format!("{at}: wanted {desired}, found {found}")),
    }
}

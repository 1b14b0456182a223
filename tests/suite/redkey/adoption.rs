//! A cluster that the existing operator left running, taken over under writes, also in the middle of an operation: no
//! acknowledged write is lost.

use std::collections::BTreeMap;

use candor_audit::Auditor;
use candor_tests::{Cluster, Kind, Server, World, contract, until};
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::core::NamespaceResourceScope;
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The Lease of the existing operator.
const LEASE: &str = "db95d8a6.inditex.dev";

/// The configuration that the existing operator writes for an ephemeral cluster.
const CONFIG: &str = "appendonly yes\ncluster-config-file /tmp/nodes.conf\ncluster-enabled yes\n\
    cluster-migration-barrier 1\ncluster-node-timeout 15000\ncluster-require-full-coverage no\ndir /tmp\n\
    maxmemory 1600mb\nmaxmemory-policy allkeys-lru\nmaxmemory-samples 5\nprotected-mode no";

/// A cluster `cache` whose objects the existing operator has made.
struct Left<'a> {
    world: &'a World,
    cluster: Cluster<'a>,
    owner: Value,
}

impl<'a> Left<'a> {
    /// `selector` is the key for the component: older versions used another one.
    async fn behind(world: &'a World, spec: Value, servers: i32, selector: &str) -> Self {
        let cluster = Cluster::of(Kind::RedkeyCluster, world, "cache");
        let owner = Value::Null;
        let mut left = Self { world, cluster, owner };
        // It runs while it makes a cluster.
        left.lease("redkey-operator-0").await;
        left.cluster.create(spec).await;
        let uid = left.cluster.object().await["metadata"]["uid"].clone();
        left.owner = json!({"apiVersion": "redkey.inditex.dev/v1", "kind": "RedkeyCluster", "name": "cache",
            "uid": uid, "controller": true, "blockOwnerDeletion": true});
        let labels = json!({"redkey-cluster-name": "cache", (selector): "redis"});
        let robin = json!({"redkey-cluster-name": "cache", (selector): "robin"});
        left.make::<ConfigMap>("cache", &labels, json!({"data": {"redis.conf": CONFIG}}))
            .await;
        let port = json!({"name": "client", "port": 6379, "targetPort": 6379, "protocol": "TCP"});
        let service = json!({"spec": {"clusterIP": "None", "selector": labels, "ports": [port]}});
        left.make::<Service>("cache", &labels, service).await;
        left.make::<StatefulSet>("cache", &labels, set(&labels, servers)).await;
        let idle = json!({"name": "robin", "image": "redis:8-bookworm", "command": ["sleep", "100000"]});
        let deployment = json!({"spec": {"replicas": 1, "selector": {"matchLabels": robin},
            "template": {"metadata": {"labels": robin},
                "spec": {"containers": [idle], "terminationGracePeriodSeconds": 1}}}});
        left.make::<Deployment>("cache-robin", &robin, deployment).await;
        left
    }

    fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.world.client(), self.world.namespace())
    }

    async fn make<K>(&self, name: &str, labels: &Value, mut rest: Value)
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + std::fmt::Debug
            + Serialize
            + DeserializeOwned,
    {
        rest["metadata"] = json!({"name": name, "labels": labels, "ownerReferences": [self.owner]});
        let object = serde_json::from_value(rest).unwrap();
        self.api::<K>().create(&PostParams::default(), &object).await.unwrap();
    }

    async fn set(&self) -> StatefulSet {
        self.api::<StatefulSet>().get("cache").await.unwrap()
    }

    /// Writes status as the existing operator does.
    async fn status(&self, status: Value) {
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("redkey.inditex.dev", "v1", "RedkeyCluster"));
        let api: Api<DynamicObject> = Api::namespaced_with(self.world.client(), self.world.namespace(), &kind);
        let patch = Patch::Merge(json!({ "status": status }));
        api.patch_status("cache", &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    /// Renews or gives up the Lease of the existing operator.
    async fn lease(&self, holder: &str) {
        let now = MicroTime(k8s_openapi::jiff::Timestamp::now());
        let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": LEASE},
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": 600, "renewTime": now}});
        let params = PatchParams::apply("manager").force();
        let patch = Patch::Apply(lease);
        self.api::<Lease>().patch(LEASE, &params, &patch).await.unwrap();
    }

    /// Waits until this many servers respond, and returns them by ordinal.
    async fn servers(&self, number: usize) -> Vec<Server> {
        until(&format!("{number} servers respond"), async || {
            let servers: Vec<Server> = self.cluster.servers().await.into_values().collect();
            (servers.len() == number).then_some(servers)
        })
        .await
    }

    /// Names and uids of the servers' pods.
    async fn pods(&self) -> BTreeMap<String, String> {
        let pods = self.cluster.pods().await;
        pods.into_iter()
            .map(|pod| (pod.name_any(), pod.uid().unwrap()))
            .collect()
    }

    /// Waits until Candor reports the newest generation as Ready, and Robin confirms it.
    async fn ready(&self) {
        self.cluster.ready().await;
        until("Robin is ready", async || {
            self.cluster
                .condition("RobinReady")
                .await
                .filter(|one| one.status == "True")
        })
        .await;
    }

    async fn times(&self, reason: &str) -> usize {
        let events = self.cluster.events().await;
        events.iter().filter(|event| event.reason == reason).count()
    }

    /// Ends the audit: no acknowledged write is lost. Truth is not judged: another operator wrote the first status.
    async fn nothing_is_lost(&self, auditor: Auditor) {
        let audit = auditor.finish().await;
        println!("{audit}");
        assert_eq!(audit.writes.lost, 0, "{}", contract::details(&audit));
        assert_eq!(audit.writes.unread_slots, 0, "{}", contract::details(&audit));
        assert_eq!(self.times("KeysPurged").await + self.times("DataLost").await, 0);
    }
}

/// The `StatefulSet` of the existing operator.
fn set(labels: &Value, servers: i32) -> Value {
    let probe = json!({"tcpSocket": {"port": 6379}, "initialDelaySeconds": 1, "periodSeconds": 5});
    let server = json!({
        "name": "redis", "image": "redis:8-bookworm", "command": ["redis-server", "/conf/redis.conf"],
        "ports": [{"name": "client", "containerPort": 6379}, {"name": "gossip", "containerPort": 16379}],
        "livenessProbe": probe, "readinessProbe": probe,
        "volumeMounts": [{"name": "config", "mountPath": "/conf"}],
    });
    let items = json!([{"key": "redis.conf", "path": "redis.conf"}]);
    json!({"spec": {
        "replicas": servers, "serviceName": "cache", "podManagementPolicy": "Parallel",
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {
            "containers": [server],
            "volumes": [{"name": "config", "configMap": {"name": "cache", "items": items}}],
        }},
    }})
}

/// Forms a cluster of primaries by hand, with these slots.
async fn form(servers: &[Server], slots: &[(u16, u16)]) {
    for server in servers {
        for other in servers.iter().filter(|other| other.pod != server.pod) {
            let ip = other.address.ip().to_string();
            let met: Option<String> = server.ask(&["CLUSTER", "MEET", &ip, "6379"]).await;
            assert!(met.is_some(), "{} meets {}", server.pod, other.pod);
        }
    }
    for (server, (first, last)) in servers.iter().zip(slots) {
        let (first, last) = (first.to_string(), last.to_string());
        let added: Option<String> = server.ask(&["CLUSTER", "ADDSLOTSRANGE", &first, &last]).await;
        assert!(added.is_some(), "{} gets {first}-{last}", server.pod);
    }
    until("every server knows all slots", async || {
        for server in servers {
            let info: String = server.ask(&["CLUSTER", "INFO"]).await?;
            info.contains("cluster_slots_ok:16384").then_some(())?;
        }
        Some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_of_the_existing_operator_is_taken_over_under_writes() {
    let world = World::start("rkcl-adopt").await;
    let spec = json!({"primaries": 3, "purgeKeysOnRebalance": false, "image": "redis:8-bookworm"});
    let left = Left::behind(&world, spec, 3, "app").await;
    form(&left.servers(3).await, &[(0, 5460), (5461, 10922), (10923, 16383)]).await;
    left.status(json!({"status": "Ready", "substatus": {}, "nodes": {}}))
        .await;
    let auditor = left.cluster.audit().await;
    left.cluster.written(&auditor, 200).await;

    // The existing operator runs: nothing is changed, and status says why.
    until("Paused", async || {
        left.cluster
            .condition("Paused")
            .await
            .filter(|one| one.reason == "OtherOperatorActive")
    })
    .await;
    assert_eq!(left.cluster.object().await["status"]["status"], "Ready");
    let set = left.set().await;
    assert_eq!(json!(set)["spec"]["updateStrategy"]["type"], "RollingUpdate");
    assert!(set.annotations().is_empty(), "{:?}", set.annotations());
    let pods = left.pods().await;

    // It has ended: the cluster is taken over.
    left.lease("").await;
    left.ready().await;
    assert_eq!(left.times("ClusterAdopted").await, 1);
    assert_eq!(left.pods().await, pods, "no pod was restarted");
    let after = left.set().await;
    assert_eq!(json!(after)["spec"]["updateStrategy"], json!({"type": "OnDelete"}));
    let template = |set: StatefulSet| set.spec.unwrap().template;
    assert_eq!(template(after), template(set), "its template is kept");
    assert!(left.cluster.object().await["metadata"].get("finalizers").is_none());
    let robin = json!(left.api::<Deployment>().get("cache-robin").await.unwrap());
    assert_eq!(robin["spec"]["template"]["spec"]["containers"][0]["args"][0], "robin");

    left.cluster.change(json!({"primaries": 4})).await;
    left.ready().await;
    let scaled = left.pods().await;
    assert_eq!(scaled.len(), 4);
    assert!(pods.iter().all(|(name, uid)| scaled.get(name) == Some(uid)));

    left.cluster.change(json!({"image": "redis:8.0"})).await;
    left.ready().await;
    let upgraded = left.pods().await;
    assert_eq!(upgraded.len(), 4);
    assert!(upgraded.values().all(|uid| !scaled.values().any(|old| old == uid)));
    let set = json!(left.set().await);
    assert_eq!(set["spec"]["selector"]["matchLabels"]["app"], "redis");
    assert_eq!(set["spec"]["template"]["spec"]["containers"][0]["image"], "redis:8.0");
    left.nothing_is_lost(auditor).await;
    world.end().await;
}

/// The existing operator stopped in a slow upgrade: the extra pod has the new image and some slots of the last server,
/// one slot is half moved, and a partition is set.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgrade_of_the_existing_operator_is_ended_under_writes() {
    let world = World::start("rkcl-adopt-mid").await;
    let spec = json!({"primaries": 3, "purgeKeysOnRebalance": false, "image": "redis:8.0"});
    let key = "redis.redkeycluster.operator/component";
    let left = Left::behind(&world, spec, 4, key).await;
    let old = left.servers(4).await;
    let rolled = json!({"spec": {
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 3}},
        "template": {"spec": {"containers": [{"name": "redis", "image": "redis:8.0"}]}},
    }});
    let uid = left.pods().await["cache-3"].clone();
    let sets = left.api::<StatefulSet>();
    let patch = Patch::Strategic(rolled);
    sets.patch("cache", &PatchParams::default(), &patch).await.unwrap();
    until("the extra pod has the new image", async || {
        (left.pods().await.get("cache-3")? != &uid).then_some(())
    })
    .await;
    drop(old);
    let servers = left.servers(4).await;
    form(&servers, &[(0, 5460), (5461, 10922), (16001, 16383), (10923, 16000)]).await;
    let mut ids: Vec<String> = Vec::new();
    for server in &servers {
        ids.push(server.ask(&["CLUSTER", "MYID"]).await.unwrap());
    }
    for (at, state, other) in [(3, "IMPORTING", 2), (2, "MIGRATING", 3)] {
        let done: Option<String> = servers[at]
            .ask(&["CLUSTER", "SETSLOT", "16001", state, &ids[other]])
            .await;
        assert!(done.is_some());
    }
    let substatus = json!({"status": "Resharding", "upgradingPartition": "2"});
    let gone = json!({"name": "cache-9", "ip": "10.0.0.9", "isPrimary": true, "replicaOf": ""});
    left.status(json!({"status": "Upgrading", "substatus": substatus, "nodes": {"gone": gone}}))
        .await;
    let auditor = left.cluster.audit().await;
    left.cluster.written(&auditor, 200).await;
    left.lease("").await;
    left.ready().await;
    assert_eq!(left.times("ClusterAdopted").await, 1);
    assert_eq!(left.pods().await.len(), 3, "the extra pod is gone");
    let status = left.cluster.object().await["status"].clone();
    assert_eq!(status["substatus"], json!({"status": "", "upgradingPartition": ""}));
    assert_eq!(status["nodes"].as_object().unwrap().len(), 3, "{}", status["nodes"]);
    for pod in left.cluster.pods().await {
        let image = pod.spec.unwrap().containers[0].image.clone();
        assert_eq!(image.as_deref(), Some("redis:8.0"), "{:?}", pod.metadata.name);
    }
    left.cluster.written(&auditor, 200).await;
    left.nothing_is_lost(auditor).await;
    world.end().await;
}

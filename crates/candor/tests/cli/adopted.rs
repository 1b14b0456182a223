//! A cluster that the existing operator left running, taken over under writes: no pod is restarted, no acknowledged
//! write is lost, and afterwards it scales and upgrades.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use candor_api::RedkeyCluster;
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Event, Pod, Service};
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::real::Real;
use crate::writer::{Writer, ask};

/// Longer than any operation on a small cluster takes on a busy host.
const PATIENCE: Duration = Duration::from_secs(180);
/// The Lease of the existing operator.
const LEASE: &str = "db95d8a6.inditex.dev";

/// A namespace with a cluster that the existing operator has made.
struct Left<'a> {
    real: &'a Real,
    owner: Value,
}

impl<'a> Left<'a> {
    /// The objects of a cluster `cache`, as the existing operator leaves them behind. `selector` is its key for the
    /// component: older versions used another one.
    async fn behind(real: &'a Real, spec: Value, servers: i32, selector: &str) -> Self {
        let cluster = json!({"apiVersion": "redkey.inditex.dev/v1", "kind": "RedkeyCluster",
            "metadata": {"name": "cache"}, "spec": spec});
        let api: Api<RedkeyCluster> = Api::default_namespaced(real.client());
        let cluster = api
            .create(&PostParams::default(), &serde_json::from_value(cluster).unwrap())
            .await
            .unwrap();
        let owner = json!(cluster.controller_owner_ref(&()).unwrap());
        let left = Self { real, owner };
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
            "template": {"metadata": {"labels": robin}, "spec": {"containers": [idle]}}}});
        left.make::<Deployment>("cache-robin", &robin, deployment).await;
        left
    }

    async fn make<K>(&self, name: &str, labels: &Value, mut rest: Value)
    where
        K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
            + Clone
            + std::fmt::Debug
            + Serialize
            + DeserializeOwned,
    {
        rest["metadata"] = json!({"name": name, "labels": labels, "ownerReferences": [self.owner]});
        let api: Api<K> = Api::default_namespaced(self.real.client());
        let object = serde_json::from_value(rest).unwrap();
        api.create(&PostParams::default(), &object).await.unwrap();
    }

    fn api(&self) -> Api<RedkeyCluster> {
        Api::default_namespaced(self.real.client())
    }

    async fn set(&self) -> StatefulSet {
        let api: Api<StatefulSet> = Api::default_namespaced(self.real.client());
        api.get("cache").await.unwrap()
    }

    /// The pods of the servers: their names, uids and addresses.
    async fn pods(&self) -> BTreeMap<String, (String, String)> {
        let api: Api<Pod> = Api::default_namespaced(self.real.client());
        let labelled = ListParams::default().labels("redkey-cluster-name=cache");
        let pods = api.list(&labelled).await.unwrap().items.into_iter();
        let servers = pods.filter(|pod| !pod.name_any().contains("robin") && !pod.name_any().contains("preflight"));
        let server = |pod: Pod| {
            let ip = pod.status.as_ref().and_then(|status| status.pod_ip.clone());
            (pod.name_any(), (pod.uid().unwrap(), ip.unwrap_or_default()))
        };
        servers.map(server).collect()
    }

    /// Waits until this many servers respond, and returns their addresses by ordinal.
    async fn servers(&self, number: usize) -> Vec<String> {
        let begun = Instant::now();
        loop {
            let addresses: Vec<String> = self.pods().await.into_values().map(|(_, ip)| ip).collect();
            if addresses.len() == number && addresses.iter().all(|ip| ask(ip, "PING") == "+PONG") {
                return addresses;
            }
            assert!(begun.elapsed() < PATIENCE, "{number} servers do not respond");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Writes status as the existing operator does.
    async fn status(&self, status: Value) {
        let patch = Patch::Merge(json!({"status": status}));
        self.api()
            .patch_status("cache", &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    async fn change(&self, spec: Value) {
        let patch = Patch::Merge(json!({"spec": spec}));
        let params = PatchParams::default();
        self.api().patch("cache", &params, &patch).await.unwrap();
    }

    async fn until(&self, what: &str, so: impl Fn(&RedkeyCluster) -> bool) {
        let begun = Instant::now();
        loop {
            let cluster = self.api().get("cache").await.unwrap();
            if so(&cluster) {
                return;
            }
            let status = serde_json::to_string_pretty(&cluster.status).unwrap();
            assert!(begun.elapsed() < PATIENCE, "not {what} in {PATIENCE:?}: {status}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until Candor reports the newest generation as Ready.
    async fn ready(&self) {
        self.until("Ready", |cluster| {
            let status = cluster.status.clone().unwrap_or_default();
            let current = status.observed_generation == cluster.metadata.generation;
            let robin = is(&status, "RobinReady", "True");
            status.status == "Ready" && status.formed && current && robin && is(&status, "Ready", "True")
        })
        .await;
    }

    async fn events(&self, reason: &str) -> usize {
        let api: Api<Event> = Api::default_namespaced(self.real.client());
        let all = api.list(&ListParams::default()).await.unwrap().items;
        all.iter().filter(|one| one.reason.as_deref() == Some(reason)).count()
    }

    /// Renews or gives up the Lease of the existing operator.
    async fn lease(&self, holder: &str) {
        let api: Api<Lease> = Api::default_namespaced(self.real.client());
        let now = k8s_openapi::jiff::Timestamp::now();
        let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": LEASE},
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": 600,
                "renewTime": k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime(now)}});
        let params = PatchParams::apply("manager").force();
        api.patch(LEASE, &params, &Patch::Apply(lease)).await.unwrap();
    }
}

fn is(status: &candor_api::RedkeyClusterStatus, condition: &str, value: &str) -> bool {
    let mut conditions = status.conditions.iter();
    conditions.any(|one| one.type_ == condition && one.status == value)
}

/// The configuration that the existing operator writes for an ephemeral cluster.
const CONFIG: &str = "appendonly yes\ncluster-config-file /tmp/nodes.conf\ncluster-enabled yes\n\
    cluster-migration-barrier 1\ncluster-node-timeout 15000\ncluster-require-full-coverage no\ndir /tmp\n\
    maxmemory 1600mb\nmaxmemory-policy allkeys-lru\nmaxmemory-samples 5\nprotected-mode no";

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
fn form(servers: &[String], slots: &[(u16, u16)]) {
    for server in servers {
        for other in servers.iter().filter(|other| *other != server) {
            assert_eq!(ask(server, &format!("CLUSTER MEET {other} 6379")), "+OK");
        }
    }
    for (server, (first, last)) in servers.iter().zip(slots) {
        assert_eq!(ask(server, &format!("CLUSTER ADDSLOTSRANGE {first} {last}")), "+OK");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_of_the_existing_operator_is_taken_over_under_writes() {
    let real = Real::start().await;
    let spec = json!({"primaries": 3, "purgeKeysOnRebalance": false, "image": "redis:8-bookworm"});
    let before_lease = Left {
        real: &real,
        owner: Value::Null,
    };
    before_lease.lease("redkey-operator-0").await;
    let left = Left::behind(&real, spec, 3, "app").await;
    let servers = left.servers(3).await;
    form(&servers, &[(0, 5460), (5461, 10922), (10923, 16383)]);
    left.status(json!({"status": "Ready", "substatus": {}, "nodes": {}}))
        .await;
    let writer = Writer::start(&servers);
    writer.until(200, PATIENCE);

    // The existing operator runs: nothing is changed, and status says why.
    left.until("said to be managed by another operator", |cluster| {
        let status = cluster.status.clone().unwrap_or_default();
        status.status == "Ready" && is(&status, "Paused", "True")
    })
    .await;
    assert!(left.events("OtherOperatorActive").await >= 1);
    let set = left.set().await;
    assert_eq!(json!(set)["spec"]["updateStrategy"]["type"], "RollingUpdate");
    assert!(set.annotations().is_empty(), "{:?}", set.annotations());
    let pods = left.pods().await;
    let template = set.spec.as_ref().unwrap().template.clone();

    // It has ended: the cluster is taken over.
    left.lease("").await;
    left.ready().await;
    assert_eq!(left.events("ClusterAdopted").await, 1);
    assert_eq!(left.pods().await, pods, "no pod was restarted");
    let set = left.set().await;
    assert_eq!(json!(set)["spec"]["updateStrategy"], json!({"type": "OnDelete"}));
    assert_eq!(set.spec.as_ref().unwrap().template, template, "its template is kept");
    assert_eq!(left.api().get("cache").await.unwrap().finalizers(), [""; 0]);
    let robins: Api<Deployment> = Api::default_namespaced(real.client());
    let robin = json!(robins.get("cache-robin").await.unwrap());
    assert_eq!(robin["spec"]["template"]["spec"]["containers"][0]["args"][0], "robin");
    assert_eq!(left.events("KeysPurged").await, 0);

    left.change(json!({"primaries": 4})).await;
    left.ready().await;
    let scaled = left.pods().await;
    assert_eq!(scaled.len(), 4);
    assert!(
        pods.iter().all(|(name, pod)| scaled.get(name) == Some(pod)),
        "{pods:?} {scaled:?}"
    );

    left.change(json!({"image": "redis:8.0.6"})).await;
    left.until("Upgrading", |one| {
        one.status.as_ref().is_some_and(|status| status.status == "Upgrading")
    })
    .await;
    left.ready().await;
    let upgraded = left.pods().await;
    let uids = |pods: &BTreeMap<String, (String, String)>| -> BTreeSet<String> {
        pods.values().map(|(uid, _)| uid.clone()).collect()
    };
    assert_eq!(upgraded.len(), 4);
    assert!(uids(&upgraded).is_disjoint(&uids(&scaled)), "every pod is new");
    let set = json!(left.set().await);
    assert_eq!(set["spec"]["selector"]["matchLabels"]["app"], "redis");
    assert_eq!(set["spec"]["template"]["spec"]["containers"][0]["image"], "redis:8.0.6");
    let addresses: Vec<String> = upgraded.into_values().map(|(_, ip)| ip).collect();
    let written = writer.end(&addresses);
    println!("{written} acknowledged writes, none lost");
    assert_eq!(left.events("DataLost").await, 0);
    real.end().await;
}

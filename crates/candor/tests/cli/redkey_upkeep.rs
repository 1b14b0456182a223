//! A `RedkeyCluster` of real servers: passwords that rotate, failovers that a user requests, edits by hand, and the
//! volumes of servers that left.

use std::time::{Duration, Instant};

use candor_api::RedkeyCluster;
use k8s_openapi::api::core::v1::{Event, PersistentVolumeClaim, Pod, Secret, Service};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::real::Real;
use crate::writer::{Writer, ask, ask_with};

/// Longer than any operation on a small cluster takes on a busy host.
const PATIENCE: Duration = Duration::from_secs(120);

/// A cluster `cache`.
struct Upkeep<'a>(&'a Real);

impl<'a> Upkeep<'a> {
    async fn create(real: &'a Real, spec: Value) -> Self {
        let cluster = json!({"apiVersion": "redkey.inditex.dev/v1", "kind": "RedkeyCluster",
            "metadata": {"name": "cache"}, "spec": spec});
        let cluster = serde_json::from_value(cluster).unwrap();
        let this = Self(real);
        this.api().create(&PostParams::default(), &cluster).await.unwrap();
        this.ready().await;
        this
    }

    fn api(&self) -> Api<RedkeyCluster> {
        Api::default_namespaced(self.0.client())
    }

    fn secrets(&self) -> Api<Secret> {
        Api::default_namespaced(self.0.client())
    }

    async fn patch(&self, change: Value) {
        let params = PatchParams::default();
        self.api().patch("cache", &params, &Patch::Merge(change)).await.unwrap();
    }

    async fn until(&self, what: &str, so: impl AsyncFn(&RedkeyCluster) -> bool) {
        let begun = Instant::now();
        loop {
            let cluster = self.api().get("cache").await.unwrap();
            if so(&cluster).await {
                return;
            }
            let status = serde_json::to_string_pretty(&cluster.status).unwrap();
            assert!(begun.elapsed() < PATIENCE, "not {what} in {PATIENCE:?}: {status}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn ready(&self) {
        self.until("Ready", async |cluster| {
            let status = cluster.status.clone().unwrap_or_default();
            status.status == "Ready" && status.observed_generation == cluster.metadata.generation
        })
        .await;
    }

    /// Uids and addresses of the servers, by ordinal.
    async fn servers(&self) -> Vec<(String, String)> {
        let api: Api<Pod> = Api::default_namespaced(self.0.client());
        let labels = "redkey-cluster-name=cache,redis.redkeycluster.operator/component=redis";
        let pods = api.list(&ListParams::default().labels(labels)).await.unwrap().items;
        let staying = pods.into_iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
        let server = |pod: Pod| {
            let ip = pod.status.as_ref().and_then(|status| status.pod_ip.clone());
            (pod.uid().unwrap(), ip.unwrap_or_default())
        };
        staying.map(server).collect()
    }

    async fn addresses(&self) -> Vec<String> {
        self.servers().await.into_iter().map(|(_, ip)| ip).collect()
    }

    /// The messages of the events with a reason.
    async fn events(&self, reason: &str) -> Vec<String> {
        let api: Api<Event> = Api::default_namespaced(self.0.client());
        let all = api.list(&ListParams::default()).await.unwrap().items;
        let some = all.into_iter().filter(|one| one.reason.as_deref() == Some(reason));
        some.filter_map(|one| one.message).collect()
    }

    async fn write_password(&self, password: &str) {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"},
            "stringData": {"requirepass": password}});
        let params = PatchParams::apply("test").force();
        self.secrets()
            .patch("login", &params, &Patch::Apply(secret))
            .await
            .unwrap();
    }

    /// Waits until every server accepts exactly this password.
    async fn has_password(&self, password: &str, before: Option<&str>) {
        self.until("on the new password", async |_| {
            let addresses = self.addresses().await;
            addresses.iter().all(|ip| {
                let old = before.is_none_or(|before| ask_with(ip, before, "PING") != "+PONG");
                old && ask_with(ip, password, "PING") == "+PONG" && ask(ip, "PING").starts_with("-NOAUTH")
            })
        })
        .await;
    }

    /// Waits for an event.
    async fn reported(&self, reason: &str, words: &str) {
        self.until(reason, async |_| {
            self.events(reason).await.iter().any(|one| one.contains(words))
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_password_is_applied_to_running_servers() {
    let real = Real::start().await;
    Upkeep(&real).write_password("first").await;
    let spec = json!({"primaries": 2, "replicasPerPrimary": 1, "purgeKeysOnRebalance": false,
        "auth": {"secret": "login"}});
    let cluster = Upkeep::create(&real, spec).await;
    let before = cluster.servers().await;
    cluster.has_password("first", None).await;

    cluster.write_password("second").await;
    cluster.has_password("second", Some("first")).await;
    cluster
        .reported("PasswordApplied", "All servers have the new password")
        .await;
    cluster.ready().await;

    // In the middle of a slow scale-up.
    cluster.patch(json!({"spec": {"primaries": 3}})).await;
    cluster
        .until("scaling", async |one| {
            one.status.as_ref().is_some_and(|status| status.status == "ScalingUp")
        })
        .await;
    cluster.write_password("third").await;
    cluster.ready().await;
    cluster.has_password("third", Some("second")).await;

    // A deleted Secret changes nothing but the report.
    cluster
        .secrets()
        .delete("login", &DeleteParams::default())
        .await
        .unwrap();
    cluster.reported("SecretInvalid", "Secret login is missing").await;
    cluster.has_password("third", None).await;
    cluster.write_password("fourth").await;
    cluster.has_password("fourth", Some("third")).await;
    cluster.ready().await;

    cluster.patch(json!({"spec": {"auth": null}})).await;
    cluster
        .until("without a password", async |_| {
            cluster.addresses().await.iter().all(|ip| ask(ip, "PING") == "+PONG")
        })
        .await;
    cluster.reported("PasswordApplied", "No server needs a password").await;
    cluster.ready().await;
    let after = cluster.servers().await;
    assert!(
        before.iter().all(|server| after.contains(server)),
        "no server was restarted"
    );
    real.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_requested_failover_is_done_or_rejected_and_manual_edits_are_reverted() {
    let real = Real::start().await;
    let robin = json!({"spec": {"containers": [{"name": "robin", "image": "inditex/robin:0.1"}]}});
    let spec = json!({"primaries": 3, "replicasPerPrimary": 1, "purgeKeysOnRebalance": false,
        "robin": {"template": robin}, "override": {"statefulSet": {"spec": {"serviceName": "other"}}}});
    let cluster = Upkeep::create(&real, spec).await;
    for (reason, words) in [
        (
            "OverrideIgnored",
            "spec.override.statefulSet.spec.serviceName is ignored",
        ),
        (
            "RobinTemplateReplaced",
            "spec.robin.template.spec.containers[0].image is replaced",
        ),
    ] {
        cluster.reported(reason, words).await;
        assert_eq!(cluster.events(reason).await.len(), 1, "{reason}");
    }

    let writer = Writer::start(&cluster.addresses().await);
    let primary = |cluster: &RedkeyCluster| {
        let status = cluster.status.clone().unwrap_or_default();
        let shard = status.topology.into_iter().find(|shard| shard.shard == 1)?;
        shard
            .members
            .into_iter()
            .find(|one| one.is_primary)
            .map(|one| one.node_id)
    };
    let old = primary(&cluster.api().get("cache").await.unwrap()).unwrap();
    let output = real.run("failover rkcl/cache --shard 1").await;
    assert!(output.fine, "{output:?}");
    cluster
        .until("failed over", async |one| primary(one).is_some_and(|now| now != old))
        .await;
    cluster.ready().await;
    assert!(cluster.api().get("cache").await.unwrap().annotations().is_empty());
    assert_eq!(cluster.events("ReplicaLost").await, [""; 0]);
    cluster
        .patch(json!({"metadata": {"annotations": {"redkey.inditex.dev/failover": "0/nobody"}}}))
        .await;
    cluster
        .reported("FailoverFailed", "The failover that was asked for is not done")
        .await;
    cluster
        .until("answered", async |one| {
            !one.annotations().contains_key("redkey.inditex.dev/failover")
        })
        .await;

    let services: Api<Service> = Api::default_namespaced(real.client());
    let port = json!({"spec": {"ports": [{"name": "client", "port": 6380, "targetPort": 6379}]}});
    let params = PatchParams::default();
    services.patch("cache", &params, &Patch::Merge(port)).await.unwrap();
    cluster.reported("DriftReverted", "Service cache was edited").await;
    let written = writer.end(&cluster.addresses().await);
    println!("{written} acknowledged writes, none lost");
    real.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claims_of_removed_servers_are_deleted_if_the_spec_requests_it() {
    let real = Real::start().await;
    let spec = json!({"primaries": 3, "ephemeral": false, "purgeKeysOnRebalance": false, "storage": "64Mi"});
    let cluster = Upkeep::create(&real, spec).await;
    let claims: Api<PersistentVolumeClaim> = Api::default_namespaced(real.client());
    let names = async || {
        let all = claims.list(&ListParams::default()).await.unwrap().items;
        let mut names: Vec<String> = all.iter().map(ResourceExt::name_any).collect();
        names.sort();
        names
    };
    cluster.patch(json!({"spec": {"primaries": 2}})).await;
    cluster.ready().await;
    assert_eq!(
        names().await,
        ["data-cache-0", "data-cache-1", "data-cache-2"],
        "they stay without deletePVC"
    );

    // The claim of an earlier life is empty and is used again.
    cluster.patch(json!({"spec": {"primaries": 3}})).await;
    cluster.ready().await;
    cluster
        .patch(json!({"spec": {"primaries": 1, "deletePVC": true}}))
        .await;
    cluster.ready().await;
    cluster
        .until("without the claims", async |_| names().await == ["data-cache-0"])
        .await;

    cluster.patch(json!({"spec": {"primaries": 0}})).await;
    cluster
        .until("without any claim", async |_| names().await.is_empty())
        .await;
    cluster.patch(json!({"spec": {"primaries": 2}})).await;
    cluster
        .until("awake", async |one| {
            let status = one.status.clone().unwrap_or_default();
            status.status == "Ready" && status.primaries == 2
        })
        .await;
    assert_eq!(cluster.events("DataLost").await, [""; 0]);
    cluster.api().delete("cache", &DeleteParams::default()).await.unwrap();
    let begun = Instant::now();
    while cluster.api().get_opt("cache").await.unwrap().is_some() || !names().await.is_empty() {
        assert!(begun.elapsed() < PATIENCE, "the cluster and its claims are still there");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    real.end().await;
}

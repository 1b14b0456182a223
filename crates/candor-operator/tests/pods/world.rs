//! A sandbox with real servers, and the objects of a cluster that tests create without an operator.

// Each test file uses only some of these items.
#![allow(dead_code, clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use candor_api::{ValkeyCluster, ValkeyClusterSpec};
use candor_engine::model::{MemberRef, ShardIndex};
use candor_operator::objects::{self, Inputs, Remembered, SharedObject, SystemPasswords, WorkloadObject};
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::api::{Api, PostParams};
use kube::core::NamespaceResourceScope;
use kube::{Resource, ResourceExt};
use kube_sandbox::Sandbox;
use kube_sandbox::kubelet::cached;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use valkey_admin::client::{Credentials, Deadlines, Endpoint, Node, Tls};

pub const NAMESPACE: &str = "default";

pub async fn sandbox() -> Sandbox {
    Sandbox::builder()
        .nodes(3)
        .zones(["a", "b", "c"])
        .images(cached("images.yaml").expect("run `make setup` once"))
        .start()
        .await
        .unwrap()
}

/// A cluster named `c` with these fields in its spec.
pub fn cluster(spec: Value) -> ValkeyCluster {
    let spec: ValkeyClusterSpec = serde_json::from_value(spec).unwrap();
    let mut cluster = ValkeyCluster::new("c", spec);
    cluster.metadata.namespace = Some(NAMESPACE.to_owned());
    cluster.metadata.uid = Some("00000000-0000-0000-0000-000000000001".to_owned());
    cluster
}

pub fn at(shard: u32, node: u32) -> MemberRef {
    MemberRef {
        shard: ShardIndex(shard),
        node,
    }
}

/// Known passwords for tests.
pub fn passwords() -> SystemPasswords {
    SystemPasswords {
        operator: "operator-secret".to_owned(),
        exporter: "exporter-secret".to_owned(),
        replication: "replication-secret".to_owned(),
        migrator: "migrator-secret".to_owned(),
    }
}

/// All inputs that objects are built from.
pub struct Made {
    pub cluster: ValkeyCluster,
    pub passwords: SystemPasswords,
    pub secrets: BTreeMap<String, Secret>,
    pub remembered: Remembered,
    pub version: Option<valkey_admin::Version>,
    pub tls: Option<Tls>,
}

impl Made {
    pub fn of(spec: Value) -> Self {
        Self {
            cluster: cluster(spec),
            passwords: passwords(),
            secrets: BTreeMap::new(),
            remembered: Remembered::default(),
            version: None,
            tls: None,
        }
    }

    pub fn secret(mut self, name: &str, data: &Value) -> Self {
        let secret = json!({"metadata": {"name": name}, "stringData": data});
        let mut secret: Secret = serde_json::from_value(secret).unwrap();
        let text = secret.string_data.take().unwrap_or_default();
        let bytes = text
            .into_iter()
            .map(|(key, value)| (key, k8s_openapi::ByteString(value.into_bytes())));
        secret.data = Some(bytes.collect());
        self.secrets.insert(name.to_owned(), secret);
        self
    }

    pub fn inputs(&self) -> Inputs<'_> {
        Inputs {
            cluster: &self.cluster,
            image: candor_engine::kinds::valkey::image(&self.cluster),
            exporter_image: "candor:test",
            passwords: &self.passwords,
            secrets: &self.secrets,
            version: self.version,
            remembered: &self.remembered,
        }
    }

    /// Connects to a member as the operator's user.
    pub fn operator(&self, ip: IpAddr) -> Node {
        let endpoint = Endpoint {
            tls: self.tls.clone(),
            ..operator(ip).endpoint().clone()
        };
        Node::new(endpoint, Deadlines::default())
    }

    pub fn members(&self) -> Vec<MemberRef> {
        let spec = &self.cluster.spec;
        let shards = u32::try_from(spec.shards).unwrap();
        let replicas = u32::try_from(spec.replicas.unwrap_or(0)).unwrap();
        (0..shards)
            .flat_map(|shard| (0..=replicas).map(move |node| at(shard, node)))
            .collect()
    }

    /// Creates every object without owner references, because the owner does not exist here.
    pub async fn create(&self, sandbox: &Sandbox) {
        for secret in self.secrets.values() {
            make(sandbox, secret.clone()).await;
        }
        for object in objects::shared(&self.inputs()).unwrap() {
            match object {
                SharedObject::HeadlessService(one) | SharedObject::ClientService(one) => make(sandbox, one).await,
                SharedObject::ConfigMap(one) => make(sandbox, one).await,
                SharedObject::AclSecret(one) | SharedObject::SystemSecret(one) => make(sandbox, one).await,
                SharedObject::PodDisruptionBudget(one) => make(sandbox, one).await,
                SharedObject::NoPodDisruptionBudget(_) => {}
            }
        }
        for member in self.members() {
            let made = objects::member(&self.inputs(), member).unwrap();
            if let Some(claim) = made.claim {
                make(sandbox, claim).await;
            }
            match made.workload {
                WorkloadObject::Deployment(one) => make(sandbox, one).await,
                WorkloadObject::StatefulSet(one) => make(sandbox, one).await,
            }
        }
    }
}

pub async fn make<K>(sandbox: &Sandbox, mut object: K)
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + std::fmt::Debug
        + Serialize
        + DeserializeOwned,
{
    object.meta_mut().owner_references = None;
    let api: Api<K> = Api::namespaced(sandbox.client(), NAMESPACE);
    let name = object.name_any();
    api.create(&PostParams::default(), &object)
        .await
        .unwrap_or_else(|error| panic!("{name}: {error}"));
}

pub fn pods(sandbox: &Sandbox) -> Api<Pod> {
    Api::namespaced(sandbox.client(), NAMESPACE)
}

/// The pod of a member that has an address: the newest one if there are two.
pub async fn pod(sandbox: &Sandbox, member: MemberRef) -> Option<(String, IpAddr)> {
    let found = pods(sandbox).list(&kube::api::ListParams::default()).await.unwrap();
    let mut ours: Vec<Pod> = found
        .items
        .into_iter()
        .filter(|pod| objects::labels::member_of(pod.labels()) == Some(member))
        .collect();
    ours.retain(|pod| pod.metadata.deletion_timestamp.is_none());
    ours.sort_by_key(|pod| pod.metadata.creation_timestamp.clone());
    let pod = ours.pop()?;
    let ip = pod.status.as_ref()?.pod_ip.as_ref()?.parse().ok()?;
    Some((pod.name_any(), ip))
}

/// Connects to a server as a user.
pub fn user(ip: IpAddr, user: &str, password: &str) -> Node {
    let credentials = Credentials {
        user: user.to_owned(),
        password: password.to_owned(),
    };
    let endpoint = Endpoint {
        credentials: Some(credentials),
        ..Endpoint::plain(ip, objects::PORT)
    };
    Node::new(endpoint, Deadlines::default())
}

/// Connects as the default user, as clients do if the spec defines no users.
pub fn client(ip: IpAddr) -> Node {
    Node::new(Endpoint::plain(ip, objects::PORT), Deadlines::default())
}

pub fn operator(ip: IpAddr) -> Node {
    user(ip, objects::OPERATOR, &passwords().operator)
}

/// Waits until the condition holds.
pub async fn eventually<F: AsyncFnMut() -> bool>(what: &str, seconds: u64, mut so: F) {
    let deadline = Instant::now() + Duration::from_secs(seconds);
    while !so().await {
        assert!(Instant::now() < deadline, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Every member's address, once its server replies.
pub async fn answering(sandbox: &Sandbox, made: &Made) -> BTreeMap<MemberRef, IpAddr> {
    let mut all = BTreeMap::new();
    for member in &made.members() {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            if let Some((_, ip)) = pod(sandbox, *member).await {
                let said = made.operator(ip).ping().await;
                if said.is_ok() {
                    all.insert(*member, ip);
                    break;
                }
                assert!(
                    Instant::now() < deadline,
                    "{member} does not answer: {said:?}\n{}",
                    message(sandbox).await
                );
            }
            assert!(
                Instant::now() < deadline,
                "{member} has no pod\n{}",
                message(sandbox).await
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    all
}

/// The pods' own messages, for a test that failed.
pub async fn message(sandbox: &Sandbox) -> String {
    let found = pods(sandbox).list(&kube::api::ListParams::default()).await.unwrap();
    let mut text = String::new();
    for pod in found.items {
        let logs = kube::api::LogParams {
            container: Some(objects::SERVER.to_owned()),
            ..kube::api::LogParams::default()
        };
        let log = pods(sandbox).logs(&pod.name_any(), &logs).await.unwrap_or_default();
        let states = pod.status.and_then(|status| status.container_statuses);
        text.push_str("== ");
        text.push_str(&pod.metadata.name.unwrap_or_default());
        text.push_str(&[format!("\n{states:?}\n"), log].concat());
    }
    text
}

/// Forms the cluster as an operator would: member 0 of shard i owns its slots, and the other members replicate it.
pub async fn form(made: &Made, ips: &BTreeMap<MemberRef, IpAddr>) {
    let shards = made.cluster.spec.shards;
    for (member, ip) in ips.iter().filter(|(member, _)| member.node == 0) {
        let bound = |shard: i64| (shard * 16384 + i64::from(shards) / 2) / i64::from(shards);
        let shard = i64::from(member.shard.0);
        let share = format!("{}-{}", bound(shard), bound(shard + 1) - 1);
        made.operator(*ip).add_slots(&share.parse().unwrap()).await.unwrap();
    }
    let first = made.operator(ips[&at(0, 0)]);
    for ip in ips.values().skip(1) {
        first.meet(*ip, objects::PORT).await.unwrap();
    }
    for ip in ips.values() {
        eventually("every member knows all others", 30, async || {
            made.operator(*ip)
                .cluster_info()
                .await
                .is_ok_and(|info| info.known_nodes as usize == ips.len())
        })
        .await;
    }
    for (member, ip) in ips.iter().filter(|(member, _)| member.node > 0) {
        let primary = made.operator(ips[&at(member.shard.0, 0)]).my_id().await.unwrap();
        eventually("the replica follows", 30, async || {
            made.operator(*ip).replicate(primary).await.is_ok()
        })
        .await;
    }
    for (member, ip) in ips {
        eventually("the cluster is ok and replicas are linked", 30, async || {
            whole(made, *ip, *member).await
        })
        .await;
    }
}

async fn whole(made: &Made, ip: IpAddr, member: MemberRef) -> bool {
    let node = made.operator(ip);
    let ok = node.cluster_info().await.is_ok_and(|info| info.ok);
    ok && (member.node == 0 || node.info(&["replication"]).await.is_ok_and(|info| info.in_sync()))
}

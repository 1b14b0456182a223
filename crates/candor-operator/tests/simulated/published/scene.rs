//! One stage with an operator, and a collector of its events and conditions.

use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use kube_sandbox::faults::{Fault, Faults, Rule};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tower::Layer;
use valkey_sim::InjectedReply;

use super::collector::Collector;
use crate::support::{Operator, Stage};

const PATIENCE: Duration = Duration::from_secs(120);
const NAME: &str = "cart";

pub struct Scene {
    pub stage: Stage,
    pub faults: Faults,
    operator: Operator,
    collected: Collector,
    ears: JoinHandle<()>,
}

impl Scene {
    pub async fn set() -> Self {
        Self::set_with(&[]).await
    }

    pub async fn set_with(rules: &[Rule]) -> Self {
        let stage = Stage::set().await;
        let collected = Collector::default();
        let ears = collected.follow(&stage);
        let faults = Faults::seeded(1);
        for rule in rules {
            faults.add(rule.clone());
        }
        let operator = Operator::start(through(&faults, stage.client()));
        Self {
            stage,
            faults,
            operator,
            collected,
            ears,
        }
    }

    /// Creates a cluster and waits until it is ready.
    pub async fn with(spec: Value) -> Self {
        let scene = Self::set().await;
        scene.stage.create(NAME, spec).await;
        scene.ready().await;
        scene
    }

    pub async fn create(&self, spec: Value) {
        self.stage.create(NAME, spec).await;
    }

    pub async fn change(&self, spec: Value) {
        self.stage.change(NAME, spec).await;
    }

    pub async fn ready(&self) {
        self.stage
            .until(NAME, "Ready", PATIENCE, crate::support::is_ready)
            .await;
    }

    /// Waits until an event was recorded: `Warning PrimaryLost`.
    pub async fn recorded(&self, event: &str) {
        let begun = Instant::now();
        loop {
            self.collected.read_events(&self.stage).await;
            let events = self.collected.events();
            if events.iter().any(|recorded| recorded.starts_with(event)) {
                return;
            }
            assert!(
                begun.elapsed() < PATIENCE,
                "{event} was not recorded, but {events:#?}: {}",
                self.status().await
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until a condition was published: `Ready=False FailoverFailed`.
    pub async fn condition(&self, condition: &str) {
        let begun = Instant::now();
        while !self
            .collected
            .conditions()
            .iter()
            .any(|published| published.starts_with(condition))
        {
            assert!(
                begun.elapsed() < PATIENCE,
                "{condition} was not published: {}",
                self.status().await
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Repeats an action until a condition is published: another controller may undo the action before it is observed.
    pub async fn condition_after(&self, condition: &str, again: impl Fn() -> BoxFuture<'static, ()>) {
        let mut published = std::pin::pin!(self.condition(condition));
        while tokio::time::timeout(Duration::from_millis(100), &mut published)
            .await
            .is_err()
        {
            again().await;
        }
    }

    async fn status(&self) -> String {
        let cluster = self.stage.clusters("default").get_opt(NAME).await.unwrap();
        serde_json::to_string_pretty(&cluster.map(|cluster| cluster.status)).unwrap()
    }

    /// Overwrites a status.
    pub fn patch_status<K>(api: Api<K>, name: &'static str, status: Value) -> impl Fn() -> BoxFuture<'static, ()>
    where
        K: serde::de::DeserializeOwned + Clone + std::fmt::Debug + Send + Sync + 'static,
    {
        move || {
            let (api, patch) = (api.clone(), Patch::Merge(status.clone()));
            Box::pin(async move {
                let patched = api.patch_status(name, &PatchParams::default(), &patch).await;
                drop(patched.unwrap());
            })
        }
    }

    /// Makes the current error look years old.
    pub fn age(&self) -> impl Fn() -> BoxFuture<'static, ()> {
        let old = json!({"status": {"errorSince": "2020-01-01T00:00:00Z"}});
        Self::patch_status(self.stage.clusters("default"), NAME, old)
    }

    /// From now on the API server rejects writes of this kind, and no others.
    pub fn reject_writes(&self, resource: &str) {
        self.faults.calm();
        self.faults.add(rejection(resource).writes());
    }

    /// From now on members reject a command.
    pub fn reject(&self, command: &str) {
        self.stage
            .world
            .inject(command, InjectedReply::Reject("ERR not today".to_owned()));
    }

    /// The name of a shard's member with this role: `0-1`.
    pub async fn member(&self, shard: i32, role: &str) -> String {
        let cluster = self.stage.clusters("default").get(NAME).await.unwrap();
        let status = serde_json::to_value(cluster.status).unwrap();
        let shards = status["topology"].as_array().unwrap();
        let members = shards.iter().find(|one| one["shard"] == shard).unwrap()["members"]
            .as_array()
            .unwrap();
        let one = members.iter().find(|one| one["role"] == role).unwrap();
        format!("{shard}-{}", one["node"])
    }

    /// The address of a member, by name.
    pub async fn address(&self, member: &str) -> std::net::IpAddr {
        let pods = self.stage.pods_of(NAME).await;
        self.stage.pods.address("default", &pods[member]).unwrap()
    }

    /// Kills a member's process. Its container restarts after a delay.
    pub async fn kill(&self, member: &str, back_after: Duration) {
        let pods = self.stage.pods_of(NAME).await;
        assert!(self.stage.pods.kill("default", &pods[member], back_after));
    }

    /// Edits an object of the cluster as a user would.
    pub async fn edit<K>(&self, name: &str, patch: Value)
    where
        K: kube::Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>
            + Clone
            + std::fmt::Debug
            + serde::de::DeserializeOwned,
    {
        let api: Api<K> = Api::default_namespaced(self.stage.client());
        api.patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await
            .unwrap();
    }

    /// Ends the scene and adds its texts to the collection of all scenes.
    pub async fn end(self, all: &Collector) {
        self.operator.end().await;
        self.collected.read_events(&self.stage).await;
        self.ears.abort();
        all.join(&self.collected);
    }
}

/// A client with requests that pass through the faults.
pub fn through(faults: &Faults, client: Client) -> Client {
    let server = tower::service_fn(move |request| {
        let client = client.clone();
        async move { client.send(request).await }
    });
    Client::new(faults.layer().layer(server), "default")
}

/// Responds with 403 to requests for this resource.
pub fn rejection(resource: &str) -> Rule {
    Rule::new(resource).resource(resource).then(Fault::Reject {
        code: 403,
        reason: "Forbidden",
        message: "exceeded quota".to_owned(),
        retry_after: None,
    })
}

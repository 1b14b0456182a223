//! One cluster managed by the operator: its object, its status over time, and its pods.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use candor_audit::{Auditor, ClusterRef, Kind, Options};
use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams,
};
use kube::runtime::watcher::{self, watcher};
use serde_json::{Value, json};
use tokio::task::AbortHandle;
use valkey_admin::info::RoleKind;

use crate::Result;
use crate::keys::{PORT, node};
use crate::stage::Stage;
use crate::wait::until;

const NAMESPACE: &str = "default";

/// Status as observed from a given moment on.
#[derive(Clone, Copy, Debug)]
pub struct Saw {
    at: Instant,
    /// The spec's generation.
    generation: i64,
    /// Ready is True.
    ready: bool,
    /// The `observedGeneration` of the Ready condition.
    ready_of: i64,
}

/// A pod of the cluster and the role of its server.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its pod.
    pub pod: String,
    /// The address it listens on.
    pub address: SocketAddr,
    /// Whether it reports the role primary.
    pub primary: bool,
}

/// A pod that is not terminating.
struct Running {
    name: String,
    uid: String,
    address: Option<SocketAddr>,
}

/// One cluster.
pub struct Cluster<'a> {
    stage: &'a Stage,
    kind: Kind,
    name: String,
    seen: Arc<Mutex<Vec<Saw>>>,
    watching: AbortHandle,
}

fn resource(kind: Kind) -> ApiResource {
    let (group, version) = match kind {
        Kind::ValkeyCluster => ("valkey.io", "v1alpha1"),
        Kind::RedkeyCluster => ("redkey.inditex.dev", "v1"),
    };
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &kind.to_string()))
}

impl<'a> Cluster<'a> {
    /// Has a name and a watch; the object is not created yet.
    pub fn new(stage: &'a Stage, name: &str) -> Self {
        Self::of(Kind::ValkeyCluster, stage, name)
    }

    /// The same for a kind.
    pub fn of(kind: Kind, stage: &'a Stage, name: &str) -> Self {
        let seen: Arc<Mutex<Vec<Saw>>> = Arc::default();
        let api: Api<DynamicObject> = Api::namespaced_with(stage.client(), NAMESPACE, &resource(kind));
        let of_it = watcher::Config::default().fields(&format!("metadata.name={name}"));
        let watching = tokio::spawn(follow(api, of_it, seen.clone())).abort_handle();
        Self {
            stage,
            kind,
            name: name.to_owned(),
            seen,
            watching,
        }
    }

    fn api(&self) -> Api<DynamicObject> {
        Api::namespaced_with(self.stage.client(), NAMESPACE, &resource(self.kind))
    }

    /// Creates it with kubectl, as a user does. Returns the moment before kubectl was started.
    pub async fn apply(&self, spec: &Value) -> Result<Instant> {
        let of = resource(self.kind);
        let object = json!({
            "apiVersion": of.api_version, "kind": of.kind,
            "metadata": {"name": self.name, "namespace": NAMESPACE}, "spec": spec,
        });
        let begun = Instant::now();
        self.stage
            .kubectl(&["apply", "--filename", "-"], Some(&object.to_string()))
            .await?;
        Ok(begun)
    }

    /// Creates it through the API, without kubectl.
    pub async fn create(&self, spec: &Value) -> Result<Instant> {
        let begun = Instant::now();
        let object = DynamicObject::new(&self.name, &resource(self.kind)).data(json!({ "spec": spec }));
        self.api().create(&PostParams::default(), &object).await?;
        Ok(begun)
    }

    /// Changes its spec; returns the moment before the change and the new generation.
    pub async fn change(&self, spec: &Value) -> Result<(Instant, i64)> {
        let begun = Instant::now();
        let patch = Patch::Merge(json!({ "spec": spec }));
        let object = self.api().patch(&self.name, &PatchParams::default(), &patch).await?;
        Ok((begun, object.metadata.generation.unwrap_or_default()))
    }

    /// Deletes it and waits until the object and its pods are gone.
    pub async fn delete(&self) -> Result<()> {
        self.api().delete(&self.name, &DeleteParams::default()).await?;
        until(&format!("{} is gone", self.name), Duration::from_secs(60), async || {
            let gone = self.api().get_opt(&self.name).await.ok()?.is_none();
            (gone && self.all_pods().await.ok()?.is_empty()).then_some(())
        })
        .await
    }

    /// The first moment, not before `since`, at which status met the predicate.
    pub async fn status(
        &self,
        what: &str,
        since: Instant,
        within: Duration,
        so: impl Fn(&Saw) -> bool,
    ) -> Result<Instant> {
        until(&format!("{} {what}", self.name), within, async || {
            let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.iter().find(|saw| saw.at >= since && so(saw)).map(|saw| saw.at)
        })
        .await
    }

    /// When Ready became True for this generation or a newer one.
    pub async fn ready(&self, generation: i64, since: Instant, within: Duration) -> Result<Instant> {
        self.status("is Ready", since, within, |saw| {
            saw.ready && saw.ready_of >= generation && saw.ready_of == saw.generation
        })
        .await
    }

    /// When Ready was no longer True.
    pub async fn not_ready(&self, since: Instant, within: Duration) -> Result<Instant> {
        self.status("is not Ready", since, within, |saw| !saw.ready).await
    }

    /// When status first reported this generation.
    pub async fn noticed(&self, generation: i64, since: Instant, within: Duration) -> Result<Instant> {
        self.status("has noticed its new spec", since, within, |saw| {
            saw.ready_of >= generation
        })
        .await
    }

    /// Waits until it is Ready and idle, before the next measurement starts.
    pub async fn settled(&self) -> Result<()> {
        until(
            &format!("{} is Ready", self.name),
            Duration::from_secs(60),
            async || {
                let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
                let last = seen.last()?;
                (last.ready && last.ready_of == last.generation).then_some(())
            },
        )
        .await
    }

    /// Its pods that are not terminating, with their addresses.
    async fn pods(&self) -> Result<Vec<Running>> {
        let pods = self.all_pods().await?;
        let staying = pods.into_iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
        let read = |pod: Pod| {
            let ip = pod.status.and_then(|status| status.pod_ip?.parse().ok());
            Running {
                name: pod.metadata.name.unwrap_or_default(),
                uid: pod.metadata.uid.unwrap_or_default(),
                address: ip.map(|ip| SocketAddr::new(ip, PORT)),
            }
        };
        Ok(staying.map(read).collect())
    }

    async fn all_pods(&self) -> Result<Vec<Pod>> {
        let pods: Api<Pod> = Api::namespaced(self.stage.client(), NAMESPACE);
        let labels = match self.kind {
            Kind::ValkeyCluster => format!("valkey.io/cluster={},valkey.io/node-index", self.name),
            Kind::RedkeyCluster => {
                let component = "redis.redkeycluster.operator/component=redis";
                format!("redkey-cluster-name={},{component}", self.name)
            }
        };
        let of_it = ListParams::default().labels(&labels);
        Ok(pods.list(&of_it).await?.items)
    }

    /// When this many servers first responded.
    pub async fn answering(&self, count: usize, within: Duration) -> Result<Instant> {
        self.answering_beside(&BTreeSet::new(), count, within).await
    }

    /// The uids of its pods.
    pub async fn uids(&self) -> Result<BTreeSet<String>> {
        Ok(self.all_pods().await?.iter().filter_map(ResourceExt::uid).collect())
    }

    /// When this many servers in pods other than these first responded.
    pub async fn answering_beside(&self, known: &BTreeSet<String>, count: usize, within: Duration) -> Result<Instant> {
        let mut answered = BTreeSet::new();
        until(&format!("{count} servers answer"), within, async || {
            let pods = self.pods().await.ok()?;
            let new = pods.into_iter().filter(|pod| !known.contains(&pod.uid));
            let new = new.filter_map(|pod| pod.address);
            let new: Vec<SocketAddr> = new.filter(|address| !answered.contains(address)).collect();
            let asked = new
                .into_iter()
                .map(async |address| (address, node(address).ping().await.is_ok()));
            let replies = futures::future::join_all(asked).await;
            answered.extend(replies.into_iter().filter_map(|(address, ok)| ok.then_some(address)));
            (answered.len() >= count).then(Instant::now)
        })
        .await
    }

    /// Its members that respond.
    pub async fn members(&self) -> Result<Vec<Member>> {
        let mut members = Vec::new();
        for Running { name: pod, address, .. } in self.pods().await? {
            let Some(address) = address else { continue };
            let Ok(info) = node(address).info(&["replication"]).await else {
                continue;
            };
            let primary = info.role == Some(RoleKind::Primary);
            members.push(Member { pod, address, primary });
        }
        Ok(members)
    }

    /// A member with this role that responds.
    pub async fn member(&self, primary: bool) -> Result<Member> {
        let members = self.members().await?;
        let found = members.into_iter().find(|member| member.primary == primary);
        found.ok_or_else(|| format!("{} has no {}", self.name, if primary { "primary" } else { "replica" }).into())
    }

    /// Starts an audit with 2,000 canaries per second and waits until it finds no defect.
    pub async fn audit(&self) -> Result<Auditor> {
        let cluster = ClusterRef {
            kind: self.kind,
            namespace: NAMESPACE.to_owned(),
            name: self.name.clone(),
        };
        let auditor = Auditor::start(self.stage.client(), cluster, Options::default()).await?;
        self.whole(&auditor).await?;
        let enough = auditor.acknowledged() + 2000;
        until("canaries are acknowledged", Duration::from_secs(30), async || {
            (auditor.acknowledged() >= enough).then_some(())
        })
        .await?;
        Ok(auditor)
    }

    /// Waits until status says Ready and the auditor agrees.
    pub async fn whole(&self, auditor: &Auditor) -> Result<()> {
        self.settled().await?;
        let what = format!("the auditor sees {} whole", self.name);
        until(&what, Duration::from_secs(60), async || {
            let now = auditor.now();
            (now.ready && now.whole).then_some(())
        })
        .await
    }
}

impl Drop for Cluster<'_> {
    fn drop(&mut self) {
        self.watching.abort();
    }
}

async fn follow(api: Api<DynamicObject>, of_it: watcher::Config, seen: Arc<Mutex<Vec<Saw>>>) {
    let mut events = watcher(api, of_it).boxed();
    while let Some(event) = events.next().await {
        let at = Instant::now();
        let object = match event {
            Ok(watcher::Event::Apply(object) | watcher::Event::InitApply(object)) => object,
            Ok(_) => continue,
            Err(_) => {
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let conditions = object.data["status"]["conditions"].as_array();
        let ready = conditions.and_then(|all| all.iter().find(|condition| condition["type"] == "Ready"));
        let saw = Saw {
            at,
            generation: object.metadata.generation.unwrap_or_default(),
            ready: ready.is_some_and(|ready| ready["status"] == "True"),
            ready_of: ready
                .and_then(|ready| ready["observedGeneration"].as_i64())
                .unwrap_or(-1),
        };
        seen.lock().unwrap_or_else(PoisonError::into_inner).push(saw);
    }
}

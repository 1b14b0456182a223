//! Pods that run as simulated members, without a kubelet: for a sandbox that was built without one. The container
//! `server` (`redis` in pods of a `RedkeyCluster`) becomes a member of the world with the options and users that its
//! volumes hold, and the pod's status says so; all other containers are reported as running and do nothing. A pod
//! without such a container runs what the caller gives for it. A pod with the restart policy `Never` is no member: its
//! containers are reported as completed.

mod life;
mod nodes;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::TryStreamExt;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, ResourceExt};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use self::life::Life;
use crate::node::Disk;
use crate::world::World;

/// Runs what is in a pod without a server, at an address; dropping what it returns ends it.
pub type Program = Arc<dyn Fn(Arc<Pod>, IpAddr) -> Box<dyn Send> + Send + Sync>;

/// What happens to a pod's server from outside.
#[derive(Clone, Copy, Debug)]
enum Blow {
    /// The process ends; its container is started again after a while.
    Kill { back_after: Duration },
}

/// A pod that runs.
struct Running {
    ip: IpAddr,
    blows: mpsc::UnboundedSender<Blow>,
}

#[derive(Default)]
struct Shared {
    /// By namespace and name.
    running: HashMap<(String, String), Running>,
    /// What is on volumes, by the claims' uids, and by nodes if volumes are folders of nodes.
    disks: HashMap<String, Disk>,
    /// Volumes are folders of nodes: a claim has another volume on every node.
    local_disks: bool,
    /// Nodes that are cut off from the API server.
    cut: watch::Sender<BTreeSet<String>>,
}

/// Runs pods as members until dropped.
pub struct Pods {
    shared: Arc<Mutex<Shared>>,
    tasks: JoinSet<()>,
}

impl Pods {
    /// Creates nodes for the scheduler and runs whatever it binds to them. `version` is the version that members report
    /// if their image does not state one.
    pub async fn run(client: Client, world: World, nodes: usize, version: &str) -> Result<Self, kube::Error> {
        let nothing: Program = Arc::new(|_, _| Box::new(()));
        Self::run_with(client, world, nodes, version, nothing).await
    }

    /// The same, with a program for pods without a server.
    pub async fn run_with(
        client: Client,
        world: World,
        nodes: usize,
        version: &str,
        program: Program,
    ) -> Result<Self, kube::Error> {
        for index in 0..nodes {
            nodes::register(&client, index).await?;
        }
        let shared: Arc<Mutex<Shared>> = Arc::default();
        let mut tasks = JoinSet::new();
        tasks.spawn(nodes::renew_leases(client.clone(), shared.clone(), nodes));
        let with = With {
            client,
            world,
            shared: shared.clone(),
            version: version.to_owned(),
            program,
        };
        tasks.spawn(follow(with));
        Ok(Self { shared, tasks })
    }

    /// Where a pod's server is.
    pub fn address(&self, namespace: &str, pod: &str) -> Option<IpAddr> {
        let key = (namespace.to_owned(), pod.to_owned());
        self.shared().running.get(&key).map(|running| running.ip)
    }

    /// Names and addresses of a namespace's pods.
    pub fn in_namespace(&self, namespace: &str) -> BTreeMap<String, IpAddr> {
        let shared = self.shared();
        let here = shared.running.iter().filter(|((at, _), _)| at == namespace);
        here.map(|((_, pod), running)| (pod.clone(), running.ip)).collect()
    }

    /// Kills the server of a pod; its container restarts after a while with the data of its volume.
    pub fn kill(&self, namespace: &str, pod: &str, back_after: Duration) -> bool {
        let key = (namespace.to_owned(), pod.to_owned());
        let shared = self.shared();
        let running = shared.running.get(&key);
        running.is_some_and(|running| running.blows.send(Blow::Kill { back_after }).is_ok())
    }

    /// Makes volumes folders of nodes, as hostPath volumes are: on another node a claim's volume is empty.
    pub fn keep_disks_on_nodes(&self) {
        self.shared().local_disks = true;
    }

    /// Cuts a node off from the API server: its lease is not renewed, and its pods run on when they are deleted.
    pub fn cut_off(&self, node: &str) {
        self.shared().cut.send_modify(|cut| {
            cut.insert(node.to_owned());
        });
    }

    /// Ends that: what was deleted meanwhile ends.
    pub fn reconnect(&self, node: &str) {
        self.shared().cut.send_modify(|cut| {
            cut.remove(node);
        });
    }

    /// Ends everything: no pod is followed any more.
    pub fn end(mut self) {
        self.tasks.abort_all();
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What every pod needs to run.
#[derive(Clone)]
struct With {
    client: Client,
    world: World,
    shared: Arc<Mutex<Shared>>,
    version: String,
    program: Program,
}

/// One life for every pod that is seen.
async fn follow(with: With) {
    let api: Api<Pod> = Api::all(with.client.clone());
    let mut lives: HashMap<String, watch::Sender<Option<Arc<Pod>>>> = HashMap::new();
    let mut tasks = JoinSet::new();
    let mut events = std::pin::pin!(watcher::watcher(api, watcher::Config::default()));
    loop {
        // The watcher begins again by itself after an error.
        let Ok(event) = events.try_next().await else { continue };
        match event {
            Some(Event::Apply(pod) | Event::InitApply(pod)) => {
                let uid = pod.uid().unwrap_or_default();
                let pod = Arc::new(pod);
                if let Some(life) = lives.get(&uid) {
                    life.send_replace(Some(pod));
                } else {
                    let (sender, receiver) = watch::channel(Some(pod));
                    lives.insert(uid, sender);
                    tasks.spawn(Life::new(with.clone(), receiver).live());
                }
            }
            Some(Event::Delete(pod)) => {
                if let Some(life) = lives.remove(&pod.uid().unwrap_or_default()) {
                    life.send_replace(None);
                }
            }
            Some(Event::Init | Event::InitDone) => {}
            None => return,
        }
        while tasks.try_join_next().is_some() {}
    }
}

fn leaving(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

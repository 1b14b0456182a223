//! Pods that run as simulated members, without a kubelet: for a sandbox that was built without one. The container
//! `server` becomes a member of the world with the options and users that its volumes hold, and the pod's status says
//! so; all other containers are reported as running and do nothing. A pod with the restart policy `Never` is no member:
//! its containers are reported as completed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::TryStreamExt;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Container, Node as Machine, PersistentVolumeClaim, Pod, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::node::{Disk, Start};
use crate::world::World;

/// How soon something that is missing (a Secret, a volume) is looked for again.
const AGAIN: Duration = Duration::from_millis(20);

/// How often the lease of a node is renewed.
const RENEW: Duration = Duration::from_secs(1);

/// The container that is a member.
const SERVER: &str = "server";

/// An image with this in its name does not exist.
const MISSING_IMAGE: &str = "no-such";

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
    /// Machines that are cut off from the API server.
    cut: watch::Sender<BTreeSet<String>>,
}

/// Runs pods as members until dropped.
pub struct Pods {
    shared: Arc<Mutex<Shared>>,
    tasks: JoinSet<()>,
}

impl Pods {
    /// Makes machines for the scheduler and runs whatever it binds to them. `version` is what members say they are
    /// when their image does not tell.
    pub async fn run(client: Client, world: World, machines: usize, version: &str) -> Result<Self, kube::Error> {
        for index in 0..machines {
            register(&client, index).await?;
        }
        let shared: Arc<Mutex<Shared>> = Arc::default();
        let mut tasks = JoinSet::new();
        tasks.spawn(renew_leases(client.clone(), shared.clone(), machines));
        tasks.spawn(follow(client, world, shared.clone(), version.to_owned()));
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

    /// Ends a pod's server without a word; its container starts again after a while, with what its volume kept.
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
    pub fn cut_off(&self, machine: &str) {
        self.shared().cut.send_modify(|cut| {
            cut.insert(machine.to_owned());
        });
    }

    /// Ends that: what was deleted meanwhile ends.
    pub fn reconnect(&self, machine: &str) {
        self.shared().cut.send_modify(|cut| {
            cut.remove(machine);
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

/// Renews the machines' leases, more often than a kubelet does: life is faster here.
async fn renew_leases(client: Client, shared: Arc<Mutex<Shared>>, machines: usize) {
    let api: Api<Lease> = Api::namespaced(client, "kube-node-lease");
    loop {
        let cut = shared
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .cut
            .borrow()
            .clone();
        for name in (0..machines).map(machine).filter(|name| !cut.contains(name)) {
            let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name},
                "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": MicroTime(Timestamp::now())}});
            // What fails is done by the next renewal.
            let _ = api
                .patch(&name, &PatchParams::apply("kubelet").force(), &Patch::Apply(lease))
                .await;
        }
        sleep(RENEW).await;
    }
}

/// The name of a node.
fn machine(index: usize) -> String {
    format!("sim-{index}")
}

async fn register(client: &Client, index: usize) -> Result<(), kube::Error> {
    let api: Api<Machine> = Api::all(client.clone());
    let name = machine(index);
    let object = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {
        "kubernetes.io/hostname": name, "kubernetes.io/os": "linux",
        "topology.kubernetes.io/zone": format!("zone-{}", index % 3),
    }}});
    let object: Machine = serde_json::from_value(object).map_err(kube::Error::SerdeError)?;
    match api.create(&PostParams::default(), &object).await {
        Err(kube::Error::Api(answer)) if answer.is_already_exists() => {}
        other => drop(other?),
    }
    let room = json!({"cpu": "1000", "memory": "1000Gi", "pods": "100000", "ephemeral-storage": "1000Gi"});
    let ready = json!([{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "simulated",
        "lastHeartbeatTime": now(), "lastTransitionTime": now()}]);
    let status = json!({"status": {"capacity": room, "allocatable": room, "conditions": ready}});
    api.patch_status(&name, &PatchParams::default(), &Patch::Merge(status))
        .await?;
    Ok(())
}

fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// One life for every pod that is seen.
async fn follow(client: Client, world: World, shared: Arc<Mutex<Shared>>, version: String) {
    let api: Api<Pod> = Api::all(client.clone());
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
                    let life = Life {
                        client: client.clone(),
                        world: world.clone(),
                        shared: shared.clone(),
                        version: version.clone(),
                        pod: receiver,
                    };
                    tasks.spawn(life.live());
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

/// One pod, from its binding to its end.
struct Life {
    client: Client,
    world: World,
    shared: Arc<Mutex<Shared>>,
    version: String,
    pod: watch::Receiver<Option<Arc<Pod>>>,
}

/// What a pod's server is made of.
struct Made {
    start: Start,
    claim: Option<String>,
}

impl Life {
    async fn live(mut self) {
        let bound = |pod: &Option<Arc<Pod>>| {
            pod.as_ref()
                .is_none_or(|pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some()) || leaving(pod))
        };
        let first = match self.pod.wait_for(bound).await {
            Ok(pod) => pod.clone(),
            Err(_) => return,
        };
        let Some(pod) = first else { return };
        if leaving(&pod) {
            self.delete(&pod).await;
            return;
        }
        if pod
            .spec
            .as_ref()
            .is_some_and(|spec| spec.restart_policy.as_deref() == Some("Never"))
        {
            self.run_once(&pod).await;
            return;
        }
        let Some(made) = self.make(&pod).await else { return };
        let ip = World::address();
        if self.world.start(ip, &made.start).await.is_err() {
            return;
        }
        let (blows, mut blown) = mpsc::unbounded_channel();
        let key = (pod.namespace().unwrap_or_default(), pod.name_any());
        self.shared().running.insert(key.clone(), Running { ip, blows });
        let mut restarts = 0;
        self.report(&pod, ip, restarts, true).await;
        let mut newest = self.pod.clone();
        loop {
            let gone = |pod: &Option<Arc<Pod>>| pod.as_ref().is_none_or(|pod| leaving(pod));
            tokio::select! {
                graceful = async { newest.wait_for(gone).await.is_ok_and(|pod| pod.is_some()) } => {
                    self.until_connected(&pod).await;
                    let disk = if graceful { self.world.stop(ip) } else { self.world.kill(ip) };
                    self.keep(made.claim.as_ref(), disk);
                    break;
                }
                Some(Blow::Kill { back_after }) = blown.recv() => {
                    let disk = self.world.kill(ip);
                    self.keep(made.claim.as_ref(), disk);
                    self.report(&pod, ip, restarts, false).await;
                    sleep(back_after).await;
                    restarts += 1;
                    let again = Start {
                        disk: self.kept(made.claim.as_ref()),
                        ..made.start.clone()
                    };
                    if self.world.start(ip, &again).await.is_err() {
                        break;
                    }
                    self.report(&pod, ip, restarts, true).await;
                }
            }
        }
        self.shared().running.remove(&key);
        self.delete(&pod).await;
    }

    /// A node that is cut off receives no deletion.
    async fn until_connected(&self, pod: &Pod) {
        let machine = pod
            .spec
            .as_ref()
            .and_then(|spec| spec.node_name.clone())
            .unwrap_or_default();
        let mut cut = self.shared().cut.subscribe();
        // The sender lives as long as the pods do.
        let _ = cut.wait_for(|cut| !cut.contains(&machine)).await;
    }

    /// Reports all containers as completed, or the image that does not exist, until the pod is deleted.
    async fn run_once(&mut self, pod: &Pod) {
        let containers = || pod.spec.iter().flat_map(|spec| &spec.containers);
        let image = |one: &Container| one.image.clone().unwrap_or_default();
        if let Some(missing) = containers().map(image).find(|image| image.contains(MISSING_IMAGE)) {
            self.no_image(pod, &missing).await;
        } else {
            let ended = containers().map(|one| {
                json!({"name": one.name, "image": image(one), "imageID": image(one), "ready": false, "restartCount": 0,
                    "state": {"terminated": {"exitCode": 0, "reason": "Completed", "finishedAt": now()}}})
            });
            let ended: Vec<Value> = ended.collect();
            self.patch(pod, &json!({"phase": "Succeeded", "containerStatuses": ended}))
                .await;
        }
        let gone = |pod: &Option<Arc<Pod>>| pod.as_ref().is_none_or(|pod| leaving(pod));
        let told = self.pod.wait_for(gone).await.is_ok_and(|pod| pod.is_some());
        if told {
            self.delete(pod).await;
        }
    }

    async fn no_image(&self, pod: &Pod, image: &str) {
        self.waiting(pod, "ImagePullBackOff", &format!("Back-off pulling image \"{image}\""))
            .await;
    }

    /// Options, users and disk from the pod's volumes; waits for what is not there yet, as a kubelet does.
    async fn make(&mut self, pod: &Pod) -> Option<Made> {
        loop {
            if let Some(made) = self.try_make(pod).await {
                return Some(made);
            }
            sleep(AGAIN).await;
            let gone = self.pod.borrow().as_ref().is_none_or(|pod| leaving(pod));
            if gone {
                self.delete(pod).await;
                return None;
            }
        }
    }

    async fn try_make(&self, pod: &Pod) -> Option<Made> {
        let namespace = pod.namespace().unwrap_or_default();
        let spec = pod.spec.as_ref()?;
        let image = spec
            .containers
            .iter()
            .find(|one| one.name == SERVER)?
            .image
            .clone()
            .unwrap_or_default();
        if image.contains(MISSING_IMAGE) {
            self.no_image(pod, &image).await;
            return None;
        }
        let mut start = Start {
            version: version_of(&image).unwrap_or_else(|| self.version.clone()),
            ..Start::default()
        };
        let mut claim = None;
        for volume in spec.volumes.iter().flatten() {
            if let Some(name) = volume.config_map.as_ref().map(|source| source.name.clone()) {
                let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), &namespace);
                let data = api.get_opt(&name).await.ok()??.data.unwrap_or_default();
                start
                    .config
                    .extend(data.get("valkey.conf").into_iter().flat_map(|file| options(file)));
            } else if let Some(name) = volume.secret.as_ref().and_then(|source| source.secret_name.clone()) {
                let api: Api<Secret> = Api::namespaced(self.client.clone(), &namespace);
                let data = api.get_opt(&name).await.ok()??.data.unwrap_or_default();
                let file = data
                    .get("users.acl")
                    .map(|bytes| String::from_utf8_lossy(&bytes.0).into_owned());
                start
                    .users
                    .extend(file.iter().flat_map(|file| file.lines().map(str::to_owned)));
            } else if let Some(source) = &volume.persistent_volume_claim {
                let api: Api<PersistentVolumeClaim> = Api::namespaced(self.client.clone(), &namespace);
                let found = api.get_opt(&source.claim_name).await.ok()??;
                let local = self.shared().local_disks;
                let node = spec.node_name.as_deref().filter(|_| local).unwrap_or_default();
                claim = found.uid().map(|uid| format!("{uid}@{node}"));
            }
        }
        if start.version.starts_with('9') {
            start
                .config
                .entry("shutdown-on-sigterm".to_owned())
                .or_insert_with(|| "failover".to_owned());
        }
        start.disk = self.kept(claim.as_ref());
        Some(Made { start, claim })
    }

    fn keep(&self, claim: Option<&String>, disk: Option<Disk>) {
        if let (Some(claim), Some(disk)) = (claim, disk) {
            self.shared().disks.insert(claim.clone(), disk);
        }
    }

    fn kept(&self, claim: Option<&String>) -> Option<Disk> {
        self.shared().disks.get(claim?).cloned()
    }

    async fn report(&self, pod: &Pod, ip: IpAddr, restarts: u32, up: bool) {
        let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
        let statuses: Vec<Value> = containers
            .map(|one| {
                let ended = json!({"terminated": {"exitCode": 137, "reason": "Error", "finishedAt": now()}});
                let runs = json!({"running": {"startedAt": now()}});
                let (server, image) = (one.name == SERVER, one.image.clone().unwrap_or_default());
                json!({
                    "name": one.name, "image": image, "imageID": image, "ready": up || !server,
                    "restartCount": if server { restarts } else { 0 }, "started": up || !server,
                    "state": if up || !server { runs } else { ended.clone() },
                    "lastState": if server && restarts > 0 && up { ended } else { json!({}) },
                })
            })
            .collect();
        let ready = if up { "True" } else { "False" };
        let condition = |kind: &str, status: &str| json!({"type": kind, "status": status, "lastTransitionTime": now()});
        let conditions = [
            condition("PodScheduled", "True"),
            condition("Initialized", "True"),
            condition("ContainersReady", ready),
            condition("Ready", ready),
        ];
        let status = json!({"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}], "hostIP": "127.0.0.1",
            "startTime": now(), "containerStatuses": statuses, "conditions": conditions});
        self.patch(pod, &status).await;
    }

    async fn waiting(&self, pod: &Pod, reason: &str, message: &str) {
        let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
        let statuses: Vec<Value> = containers
            .map(|one| {
                json!({"name": one.name, "image": one.image, "imageID": "", "ready": false, "restartCount": 0,
                    "state": {"waiting": {"reason": reason, "message": message}}})
            })
            .collect();
        self.patch(pod, &json!({"phase": "Pending", "containerStatuses": statuses}))
            .await;
    }

    async fn patch(&self, pod: &Pod, status: &Value) {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), &pod.namespace().unwrap_or_default());
        let patch = json!({"metadata": {"uid": pod.uid()}, "status": status});
        // A pod that is gone or another of its name by now has no use for it.
        let _ = api
            .patch_status(&pod.name_any(), &PatchParams::default(), &Patch::Merge(patch))
            .await;
    }

    /// Removes a deleted pod.
    async fn delete(&self, pod: &Pod) {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), &pod.namespace().unwrap_or_default());
        let params = DeleteParams {
            grace_period_seconds: Some(0),
            preconditions: Some(Preconditions {
                uid: pod.uid(),
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        let _ = api.delete(&pod.name_any(), &params).await;
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn leaving(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

/// `valkey/valkey:9.1` is 9.1.0.
fn version_of(image: &str) -> Option<String> {
    let tag = image.rsplit_once(':')?.1;
    let numbers: Vec<&str> = tag
        .split(['-', '.'])
        .take_while(|part| part.parse::<u16>().is_ok())
        .collect();
    match numbers.as_slice() {
        [] => None,
        [major] => Some(format!("{major}.0.0")),
        [major, minor] => Some(format!("{major}.{minor}.0")),
        [major, minor, patch, ..] => Some(format!("{major}.{minor}.{patch}")),
    }
}

/// The lines of a configuration file; the last one of a key counts.
fn options(file: &str) -> Vec<(String, String)> {
    let lines = file
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| line.split_once(char::is_whitespace).unwrap_or((line, "")))
        .map(|(key, value)| (key.to_owned(), value.trim().trim_matches('"').to_owned()))
        .collect()
}

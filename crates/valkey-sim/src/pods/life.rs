//! One pod, from its binding to its end.

use std::net::IpAddr;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Container, PersistentVolumeClaim, Pod, Secret};
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

use super::{Blow, Running, Shared, With, leaving, now};
use crate::node::{Disk, Start};
use crate::world::World;

/// How soon something that is missing (a Secret, a volume) is looked for again.
const AGAIN: Duration = Duration::from_millis(20);

/// An image with this in its name does not exist.
const MISSING_IMAGE: &str = "no-such";

/// A pod that is followed.
pub(super) struct Life {
    with: With,
    pod: watch::Receiver<Option<Arc<Pod>>>,
}

/// What a pod is made of.
struct Made {
    /// None: the pod has no server, and runs the caller's program.
    start: Option<Start>,
    claim: Option<String>,
}

impl Life {
    pub(super) fn new(with: With, pod: watch::Receiver<Option<Arc<Pod>>>) -> Self {
        Self { with, pod }
    }

    pub(super) async fn live(mut self) {
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
        let Some(mut process) = self.launch(&pod, ip, &made).await else {
            return;
        };
        let (blows, mut blown) = mpsc::unbounded_channel();
        let key = (pod.namespace().unwrap_or_default(), pod.name_any());
        self.shared().running.insert(key.clone(), Running { ip, blows });
        let mut restarts = 0;
        self.report(&pod, ip, restarts, true).await;
        let mut newest = self.pod.clone();
        loop {
            let is_leaving = |pod: &Option<Arc<Pod>>| pod.as_ref().is_none_or(|pod| leaving(pod));
            tokio::select! {
                graceful = async { newest.wait_for(is_leaving).await.is_ok_and(|pod| pod.is_some()) } => {
                    self.until_connected(&pod).await;
                    let disk = if graceful { self.with.world.stop(ip) } else { self.with.world.kill(ip) };
                    self.keep(made.claim.as_ref(), disk);
                    drop(process);
                    break;
                }
                Some(Blow::Kill { back_after }) = blown.recv() => {
                    let disk = self.with.world.kill(ip);
                    self.keep(made.claim.as_ref(), disk);
                    drop(process);
                    self.report(&pod, ip, restarts, false).await;
                    sleep(back_after).await;
                    restarts += 1;
                    process = match self.launch(&pod, ip, &made).await {
                        Some(process) => process,
                        None => break,
                    };
                    self.report(&pod, ip, restarts, true).await;
                }
            }
        }
        self.shared().running.remove(&key);
        self.delete(&pod).await;
    }

    /// Starts what is in the pod.
    async fn launch(&self, pod: &Arc<Pod>, ip: IpAddr, made: &Made) -> Option<Box<dyn Send>> {
        let Some(start) = &made.start else {
            return Some((self.with.program)(pod.clone(), ip));
        };
        let start = Start {
            disk: self.stored_disk(made.claim.as_ref()),
            ..start.clone()
        };
        self.with.world.start(ip, &start).await.ok()?;
        Some(Box::new(()))
    }

    /// A node that is cut off receives no deletion.
    async fn until_connected(&self, pod: &Pod) {
        let node = pod
            .spec
            .as_ref()
            .and_then(|spec| spec.node_name.clone())
            .unwrap_or_default();
        let mut cut = self.shared().cut.subscribe();
        // The sender lives as long as the pods do.
        let _ = cut.wait_for(|cut| !cut.contains(&node)).await;
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
        let is_leaving = |pod: &Option<Arc<Pod>>| pod.as_ref().is_none_or(|pod| leaving(pod));
        let being_deleted = self.pod.wait_for(is_leaving).await.is_ok_and(|pod| pod.is_some());
        if being_deleted {
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
            let is_leaving = self.pod.borrow().as_ref().is_none_or(|pod| leaving(pod));
            if is_leaving {
                self.delete(pod).await;
                return None;
            }
        }
    }

    async fn try_make(&self, pod: &Pod) -> Option<Made> {
        let namespace = pod.namespace().unwrap_or_default();
        let spec = pod.spec.as_ref()?;
        let server = spec.containers.iter().find(|one| is_server(&one.name));
        let image = |one: &Container| one.image.clone().unwrap_or_default();
        if let Some(missing) = server.map(image).filter(|image| image.contains(MISSING_IMAGE)) {
            self.no_image(pod, &missing).await;
            return None;
        }
        let version = server.and_then(|one| version_of(&image(one)));
        let mut start = Start {
            version: version.unwrap_or_else(|| self.with.version.clone()),
            ..Start::default()
        };
        let mut claim = None;
        for volume in spec.volumes.iter().flatten() {
            if let Some(name) = volume.config_map.as_ref().map(|source| source.name.clone()) {
                let api: Api<ConfigMap> = Api::namespaced(self.with.client.clone(), &namespace);
                let data = api.get_opt(&name).await.ok()??.data.unwrap_or_default();
                let file = data.get("valkey.conf").or_else(|| data.get("redis.conf"));
                start.config.extend(file.into_iter().flat_map(|file| options(file)));
            } else if let Some(name) = volume.secret.as_ref().and_then(|source| source.secret_name.clone()) {
                let api: Api<Secret> = Api::namespaced(self.with.client.clone(), &namespace);
                let data = api.get_opt(&name).await.ok()??.data.unwrap_or_default();
                let file = data
                    .get("users.acl")
                    .map(|bytes| String::from_utf8_lossy(&bytes.0).into_owned());
                start
                    .users
                    .extend(file.iter().flat_map(|file| file.lines().map(str::to_owned)));
            } else if let Some(source) = &volume.persistent_volume_claim {
                let api: Api<PersistentVolumeClaim> = Api::namespaced(self.with.client.clone(), &namespace);
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
        Some(Made {
            start: server.map(|_| start),
            claim,
        })
    }

    fn keep(&self, claim: Option<&String>, disk: Option<Disk>) {
        if let (Some(claim), Some(disk)) = (claim, disk) {
            self.shared().disks.insert(claim.clone(), disk);
        }
    }

    fn stored_disk(&self, claim: Option<&String>) -> Option<Disk> {
        self.shared().disks.get(claim?).cloned()
    }

    async fn report(&self, pod: &Pod, ip: IpAddr, restarts: u32, up: bool) {
        let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
        let statuses: Vec<Value> = containers
            .map(|one| {
                let ended = json!({"terminated": {"exitCode": 137, "reason": "Error", "finishedAt": now()}});
                let runs = json!({"running": {"startedAt": now()}});
                let (server, image) = (is_main(&one.name), one.image.clone().unwrap_or_default());
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
        let api: Api<Pod> = Api::namespaced(self.with.client.clone(), &pod.namespace().unwrap_or_default());
        let patch = json!({"metadata": {"uid": pod.uid()}, "status": status});
        // A pod that is gone or another of its name by now has no use for it.
        let _ = api
            .patch_status(&pod.name_any(), &PatchParams::default(), &Patch::Merge(patch))
            .await;
    }

    /// Removes a deleted pod.
    async fn delete(&self, pod: &Pod) {
        let api: Api<Pod> = Api::namespaced(self.with.client.clone(), &pod.namespace().unwrap_or_default());
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
        self.with.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a container is a member.
fn is_server(name: &str) -> bool {
    name == "server" || name == "redis"
}

/// Whether a container is what its pod is for.
fn is_main(name: &str) -> bool {
    is_server(name) || name == "robin"
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

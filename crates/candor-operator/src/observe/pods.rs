//! Converts a member's pod into the engine's types.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use candor_engine::model::MemberRef;
use candor_engine::observation::{Pod as Seen, Trouble};
use k8s_openapi::api::core::v1::{ContainerStatus, Node, Pod};
use kube::ResourceExt;
use kube_status::readers::{Health, read};

use crate::objects::labels::{self, TEMPLATE_HASH};
use crate::objects::{SERVER, names};
use crate::runtime::cache::Cache;
use crate::runtime::watching::{is_cordoned, zone};

/// The current pod of a member, which may have two for a short time: one that is not being deleted is preferred, then
/// the newer one.
pub fn reachability<'a>(pods: impl Iterator<Item = &'a Pod>) -> Option<&'a Pod> {
    pods.filter(|pod| !is_over(pod)).max_by_key(|pod| {
        let lives = pod.metadata.deletion_timestamp.is_none();
        let made = pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
        (lives, made)
    })
}

/// The member that a pod belongs to. Labels alone do not make a pod a member: its controller must be the member's
/// StatefulSet, or a ReplicaSet of the member's Deployment.
pub fn member_of(pod: &Pod, cluster: &str) -> Option<MemberRef> {
    let at = labels::member_of(pod.labels())?;
    let workload = names::workload(cluster, at);
    let mut owners = pod.owner_references().iter();
    let controller = owners.find(|owner| owner.controller == Some(true))?;
    let ours = match controller.kind.as_str() {
        "StatefulSet" => controller.name == workload,
        // A Deployment names its ReplicaSets with its own name and a hash.
        "ReplicaSet" => {
            let rest = controller.name.strip_prefix(&workload);
            let hash = rest.and_then(|rest| rest.strip_prefix('-'));
            hash.is_some_and(|hash| !hash.is_empty() && !hash.contains('-'))
        }
        _ => false,
    };
    ours.then_some(at)
}

/// Evicted, failed or completed: nothing runs in the pod, and it is not restarted.
pub fn is_over(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Failed" | "Succeeded"))
}

/// Addresses of a member's pods except the current one.
pub fn other_addresses<'a>(pods: impl Iterator<Item = &'a Pod>, reachability: Option<&Pod>) -> Vec<IpAddr> {
    let others = pods.filter(|pod| !is_over(pod) && pod.uid() != reachability.and_then(ResourceExt::uid));
    others
        .filter_map(|pod| pod.status.as_ref()?.pod_ip.as_ref()?.parse().ok())
        .collect()
}

/// Whether a server may still be running in a pod of a member other than the current one.
pub fn may_run_elsewhere<'a>(mut pods: impl Iterator<Item = &'a Pod>, reachability: Option<&Pod>) -> bool {
    pods.any(|pod| {
        let placed = pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
        let other = pod.uid() != reachability.and_then(ResourceExt::uid);
        other && placed && !is_over(pod) && !server(pod).is_some_and(ended)
    })
}

/// Uids of pods with a server that was reported terminated and is not restarted. A pod that is being deleted or has
/// failed is not restarted, so its kubelet's report is final.
pub fn terminated<'a>(pods: impl Iterator<Item = &'a Pod>) -> Vec<String> {
    pods.filter(|pod| is_terminated(pod))
        .filter_map(ResourceExt::uid)
        .collect()
}

fn is_terminated(pod: &Pod) -> bool {
    let leaves = pod.metadata.deletion_timestamp.is_some() || is_over(pod);
    let terminated = |server: &ContainerStatus| server.state.as_ref().is_some_and(|state| state.terminated.is_some());
    leaves && server(pod).is_some_and(terminated)
}

/// Uids of pods that were deleted after their server had been reported terminated. There may be no reconcile between
/// that report and the deletion.
#[derive(Clone, Default)]
pub struct TerminatedPods {
    uids: Arc<Mutex<VecDeque<String>>>,
}

/// How many uids are retained: more than any single failure terminates.
const TERMINATED: usize = 1024;

impl TerminatedPods {
    /// Records that a pod was deleted.
    pub fn deleted(&self, pod: &Pod) {
        if let Some(uid) = pod.uid().filter(|_| is_terminated(pod)) {
            let mut uids = self.uids.lock().unwrap_or_else(PoisonError::into_inner);
            uids.push_back(uid);
            let old = uids.len().saturating_sub(TERMINATED);
            uids.drain(..old);
        }
    }

    /// Whether the pod with this uid is among them.
    pub fn contains(&self, uid: &str) -> bool {
        let uids = self.uids.lock().unwrap_or_else(PoisonError::into_inner);
        uids.iter().any(|known| known == uid)
    }
}

/// The observed state of a pod. `template` is the hash of the template that it should run.
pub fn see(pod: &Pod, template: Option<&str>, nodes: &Cache<Node>) -> Seen {
    let status = pod.status.as_ref();
    let ip: Option<IpAddr> = status
        .and_then(|status| status.pod_ip.as_deref())
        .and_then(|ip| ip.parse().ok());
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
    let known = node.as_deref().and_then(|name| nodes.get_in("", name));
    Seen {
        name: pod.name_any(),
        uid: pod.uid().unwrap_or_default(),
        node,
        ip,
        current: template
            .is_none_or(|desired| pod.annotations().get(TEMPLATE_HASH).is_some_and(|hash| hash == desired)),
        leaving: pod.metadata.deletion_timestamp.is_some(),
        ended: server(pod).is_some_and(ended),
        restarted: server(pod).is_some_and(restarted),
        // Determined later, only if there is no other evidence.
        node_believed: false,
        cordoned: known.as_deref().is_some_and(is_cordoned),
        zone: known.as_deref().map(zone),
        trouble: trouble(pod),
    }
}

fn server(pod: &Pod) -> Option<&ContainerStatus> {
    let containers = pod.status.as_ref()?.container_statuses.as_ref()?;
    let ours = [SERVER, candor_api::redkey::REDIS];
    containers
        .iter()
        .find(|container| ours.contains(&container.name.as_str()))
}

/// Whether the kubelet reported that the server's process terminated, and no new one runs.
fn ended(container: &ContainerStatus) -> bool {
    let now = container.state.as_ref();
    let before = container.last_state.as_ref();
    let terminated = now.is_some_and(|state| state.terminated.is_some());
    let waiting = now.is_some_and(|state| state.waiting.is_some());
    terminated || (waiting && before.is_some_and(|state| state.terminated.is_some()))
}

/// Whether the kubelet reported that the server's process terminated, and started another one that has not passed its
/// startup probe yet. This status stays for as long as the new process does not respond, so no reconcile has to run at
/// the moment of termination.
fn restarted(container: &ContainerStatus) -> bool {
    let before = container.last_state.as_ref();
    let running = container.state.as_ref().is_some_and(|state| state.running.is_some());
    running && before.is_some_and(|state| state.terminated.is_some()) && container.started != Some(true)
}

/// Why the pod does not run, with the message of the scheduler or the kubelet. A process that has just terminated is
/// restarted at once: that counts as a problem only when the kubelet backs off.
fn trouble(pod: &Pod) -> Option<Trouble> {
    if server(pod).is_some_and(|server| server.state.as_ref().is_some_and(|state| state.terminated.is_some())) {
        return None;
    }
    obstacle(pod)
}

/// The same for any pod, without regard to the purpose of its containers.
pub fn obstacle(pod: &Pod) -> Option<Trouble> {
    let reading = read(pod).ok()?;
    if !matches!(reading.health, Health::Stuck | Health::Failed) {
        return None;
    }
    let message = format!("pod {}: {}", pod.name_any(), reading.message);
    Some(if reading.reason == "Unschedulable" {
        Trouble::Unschedulable(reading.message)
    } else {
        Trouble::NotStarting(message)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(leaving: bool, phase: &str, state: &Value) -> Pod {
        let deleted = leaving.then_some("2026-01-01T00:00:00Z");
        let pod = json!({"metadata": {"name": "p", "uid": "1", "deletionTimestamp": deleted},
            "status": {"phase": phase, "containerStatuses": [{"name": SERVER, "image": "", "imageID": "", "ready": false,
                "restartCount": 0, "state": state}]}});
        serde_json::from_value(pod).unwrap()
    }

    #[test]
    fn a_pod_is_a_member_only_by_the_workload_that_controls_it() {
        let pod = |kind: &str, name: &str, controller: bool| -> Pod {
            let owners =
                json!([{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": "1", "controller": controller}]);
            let labels = json!({"valkey.io/cluster": "c", "valkey.io/shard-index": "1", "valkey.io/node-index": "0"});
            let pod = json!({"metadata": {"name": "p", "labels": labels, "ownerReferences": owners}});
            serde_json::from_value(pod).unwrap()
        };
        let table = [
            ("ReplicaSet", "valkey-c-1-0-6d5f", true, true),
            ("StatefulSet", "valkey-c-1-0", true, true),
            ("StatefulSet", "valkey-c-1-0", false, false),
            ("StatefulSet", "valkey-c-1-1", true, false),
            ("ReplicaSet", "valkey-c-1-0", true, false),
            ("ReplicaSet", "valkey-c-1-0-0-6d5f", true, false),
            ("ReplicaSet", "web-6d5f", true, false),
            ("Job", "valkey-c-1-0", true, false),
        ];
        for (kind, name, controller, expected) in table {
            let found = member_of(&pod(kind, name, controller), "c").is_some();
            assert_eq!(found, expected, "{kind} {name} {controller}");
        }
        let mut alone = pod("ReplicaSet", "valkey-c-1-0-6d5f", true);
        alone.metadata.owner_references = None;
        assert_eq!(member_of(&alone, "c"), None);
    }

    #[test]
    fn a_report_of_termination_is_final_only_where_no_kubelet_starts_the_server_again() {
        let ended = || json!({"terminated": {"exitCode": 0}});
        let table = [
            (pod(true, "Running", &ended()), true),
            (pod(false, "Failed", &ended()), true),
            (pod(false, "Running", &ended()), false),
            (pod(true, "Running", &json!({"running": {}})), false),
            (pod(true, "Running", &json!({"waiting": {}})), false),
        ];
        for (pod, is_final) in table {
            assert_eq!(terminated([&pod].into_iter()).len(), usize::from(is_final), "{pod:?}");
            let pods = TerminatedPods::default();
            pods.deleted(&pod);
            assert_eq!(pods.contains("1"), is_final, "{pod:?}");
        }
    }
}

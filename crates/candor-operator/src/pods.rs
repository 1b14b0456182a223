//! A member's pod in the engine's words.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use candor_engine::model::MemberRef;
use candor_engine::observation::{Pod as Seen, Trouble};
use k8s_openapi::api::core::v1::{ContainerStatus, Node, Pod};
use kube::ResourceExt;
use kube_status::readers::{Verdict, read};

use crate::cache::{Cache, ClusterKey};
use crate::objects::SERVER;
use crate::objects::labels::TEMPLATE_HASH;
use crate::watching::is_closed;

/// The pod that stands for a member, where there may be two for a moment: a living one before one that leaves, the
/// newer of two.
pub fn standing<'a>(pods: impl Iterator<Item = &'a Pod>) -> Option<&'a Pod> {
    pods.filter(|pod| !is_over(pod)).max_by_key(|pod| {
        let lives = pod.metadata.deletion_timestamp.is_none();
        let made = pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
        (lives, made)
    })
}

/// Evicted, failed or completed: nothing runs in it and nothing will.
fn is_over(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Failed" | "Succeeded"))
}

/// Addresses of a member's pods but for the standing one.
pub fn other_addresses<'a>(pods: impl Iterator<Item = &'a Pod>, standing: Option<&Pod>) -> Vec<IpAddr> {
    let others = pods.filter(|pod| !is_over(pod) && pod.uid() != standing.and_then(ResourceExt::uid));
    others
        .filter_map(|pod| pod.status.as_ref()?.pod_ip.as_ref()?.parse().ok())
        .collect()
}

/// Whether a server may still run in a pod of a member that is not the standing one.
pub fn lingers<'a>(mut pods: impl Iterator<Item = &'a Pod>, standing: Option<&Pod>) -> bool {
    pods.any(|pod| {
        let placed = pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
        let other = pod.uid() != standing.and_then(ResourceExt::uid);
        other && placed && !is_over(pod) && !server(pod).is_some_and(ended)
    })
}

/// The pod that each member last ran in, and where: a pod that is gone from a machine that can be believed is proof
/// that what ran there is dead. An operator that has just started remembers none and has no proof.
#[derive(Default)]
pub struct LastPods {
    known: Mutex<HashMap<(ClusterKey, MemberRef), Last>>,
}

struct Last {
    uid: Option<String>,
    machine: String,
}

/// What became of the pod that a member last ran in, once there is another one or none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fate {
    /// It is gone from a machine that can be believed: what ran there is dead.
    pub dead: bool,
    /// It vanished from one that cannot: that proves nothing, and what ran there may still serve whoever is cut off
    /// with it.
    pub unknown: bool,
}

impl LastPods {
    /// What became of what a member last ran in. `up`: a server answers in the standing pod. Where nobody sees machines
    /// nothing is said of them.
    pub fn fate(
        &self,
        place: (&ClusterKey, MemberRef),
        standing: Option<&Pod>,
        up: bool,
        machines: &Cache<Node>,
    ) -> Fate {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let place = (place.0.clone(), place.1);
        let uid = standing.and_then(ResourceExt::uid);
        let last = known.get(&place).filter(|last| last.uid != uid);
        let dead = last.is_some_and(|last| is_believed(&last.machine, machines));
        let fate = Fate {
            dead,
            unknown: last.is_some() && !dead && machines.is_ready(),
        };
        let follows = last.is_none() || (up && !fate.unknown);
        let machine = standing.and_then(|pod| pod.spec.as_ref()?.node_name.clone());
        if let Some(machine) = machine.filter(|_| follows) {
            known.insert(place, Last { uid, machine });
        }
        fate
    }

    /// A cluster is gone.
    pub fn forget(&self, cluster: &ClusterKey) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(key, _), _| key != cluster);
    }
}

/// What is known of a pod. `template` is the hash of what it should run.
pub fn see(pod: &Pod, template: Option<&str>, machines: &Cache<Node>) -> Seen {
    let status = pod.status.as_ref();
    let ip: Option<IpAddr> = status
        .and_then(|status| status.pod_ip.as_deref())
        .and_then(|ip| ip.parse().ok());
    Seen {
        name: pod.name_any(),
        ip,
        current: template.is_none_or(|wanted| pod.annotations().get(TEMPLATE_HASH).is_some_and(|hash| hash == wanted)),
        leaving: pod.metadata.deletion_timestamp.is_some(),
        ended: server(pod).is_some_and(ended),
        restarted: server(pod).is_some_and(restarted),
        node_believed: believed(pod, machines),
        node_closed: closed(pod, machines),
        trouble: trouble(pod),
    }
}

fn server(pod: &Pod) -> Option<&ContainerStatus> {
    let containers = pod.status.as_ref()?.container_statuses.as_ref()?;
    containers.iter().find(|container| container.name == SERVER)
}

/// The kubelet reported the end of the server's process, and no new one runs.
fn ended(container: &ContainerStatus) -> bool {
    let now = container.state.as_ref();
    let before = container.last_state.as_ref();
    let terminated = now.is_some_and(|state| state.terminated.is_some());
    let waiting = now.is_some_and(|state| state.waiting.is_some());
    terminated || (waiting && before.is_some_and(|state| state.terminated.is_some()))
}

/// The kubelet reported the end of the server's process and started another one, which has not answered its startup probe
/// yet. That word stays for as long as the new process keeps silent: nobody has to be there at the instant of the end.
fn restarted(container: &ContainerStatus) -> bool {
    let before = container.last_state.as_ref();
    let running = container.state.as_ref().is_some_and(|state| state.running.is_some());
    running && before.is_some_and(|state| state.terminated.is_some()) && container.started != Some(true)
}

fn believed(pod: &Pod, machines: &Cache<Node>) -> bool {
    let machine = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
    machine.is_none_or(|name| is_believed(name, machines))
}

/// Its machine is cordoned: nobody else comes, and whoever is there is about to go.
fn closed(pod: &Pod, machines: &Cache<Node>) -> bool {
    let name = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
    let machine = name.and_then(|name| machines.get_in("", name));
    machine.is_some_and(|machine| is_closed(&machine))
}

/// What a machine says of its pods can be believed while it is Ready, or when it is gone or fenced for good.
fn is_believed(name: &str, machines: &Cache<Node>) -> bool {
    if !machines.is_ready() {
        return false;
    }
    let Some(machine) = machines.get_in("", name) else {
        return true;
    };
    let conditions = machine.status.as_ref().and_then(|status| status.conditions.as_ref());
    let ready = conditions.is_some_and(|all| all.iter().any(|one| one.type_ == "Ready" && one.status == "True"));
    let taints = machine.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    ready || taints.is_some_and(|all| all.iter().any(|taint| taint.key == "node.kubernetes.io/out-of-service"))
}

/// Why it does not run, in the scheduler's or the kubelet's words. A process that has just ended is started again at
/// once: that is no trouble before the kubelet waits with it.
fn trouble(pod: &Pod) -> Option<Trouble> {
    if server(pod).is_some_and(|server| server.state.as_ref().is_some_and(|state| state.terminated.is_some())) {
        return None;
    }
    obstacle(pod)
}

/// The same of any pod, whatever its containers are for.
pub fn obstacle(pod: &Pod) -> Option<Trouble> {
    let reading = read(pod).ok()?;
    if !matches!(reading.verdict, Verdict::Stuck | Verdict::Failed) {
        return None;
    }
    let words = format!("pod {}: {}", pod.name_any(), reading.message);
    Some(if reading.reason == "Unschedulable" {
        Trouble::Unschedulable(reading.message)
    } else {
        Trouble::NotStarting(words)
    })
}

#[cfg(test)]
mod tests {
    use candor_engine::model::ShardIndex;
    use kube::runtime::watcher;
    use serde_json::json;

    use super::*;

    fn pod(uid: &str, machine: &str) -> Pod {
        let pod = json!({"metadata": {"name": "p", "uid": uid}, "spec": {"nodeName": machine, "containers": []}});
        serde_json::from_value(pod).unwrap()
    }

    fn machine(name: &str, ready: &str) -> Node {
        let conditions = json!([{"type": "Ready", "status": ready}]);
        let version = if ready == "True" { "9" } else { "1" };
        let metadata = json!({"name": name, "resourceVersion": version});
        let node = json!({"metadata": metadata, "status": {"conditions": conditions}});
        serde_json::from_value(node).unwrap()
    }

    #[test]
    fn a_pod_that_vanished_from_an_unreachable_machine_proves_nothing_until_the_machine_is_heard_again() {
        let machines: Cache<Node> = Cache::of_namespaces();
        let key = ClusterKey {
            namespace: "default".to_owned(),
            name: "c".to_owned(),
        };
        let at = MemberRef {
            shard: ShardIndex(0),
            node: 0,
        };
        let (first, second) = (pod("1", "far"), pod("2", "near"));
        let (dead, unknown, nothing) = (
            Fate {
                dead: true,
                unknown: false,
            },
            Fate {
                dead: false,
                unknown: true,
            },
            Fate::default(),
        );
        let pods = LastPods::default();
        let fate = |standing: Option<&Pod>| pods.fate((&key, at), standing, standing.is_some(), &machines);
        assert_eq!(fate(Some(&first)), nothing, "nobody sees machines");
        machines.expect(&None);
        let said = [
            watcher::Event::Init,
            watcher::Event::InitApply(machine("far", "Unknown")),
            watcher::Event::InitApply(machine("near", "True")),
            watcher::Event::InitDone,
        ];
        let _ = said.map(|event| machines.take(&None, event));
        assert_eq!(fate(Some(&first)), nothing);
        assert_eq!(fate(None), unknown);
        assert_eq!(fate(Some(&second)), unknown, "whoever answers now is another one");
        assert_eq!(fate(Some(&second)), unknown, "and that is not forgotten");
        machines.put(machine("far", "True"));
        assert_eq!(fate(Some(&second)), dead, "the machine is back, and the pod is not");
        assert_eq!(fate(Some(&second)), nothing);
    }
}

//! The simulated nodes as objects: Node and Lease.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Namespace, Node};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::config::NodeConfig;
use super::events::Reason;
use super::faults::FaultError;
use super::pod::Context;
use super::{Kubelet, KubeletError};

/// How often leases are renewed, as by a real kubelet. They are valid for four times as long.
const RENEW: Duration = Duration::from_secs(10);

const LEASES: &str = "kube-node-lease";

/// Makes the Node objects, or takes over those that exist.
pub(super) async fn register(context: &Context) -> Result<(), KubeletError> {
    let api: Api<Node> = Api::all(context.client.clone());
    for (index, config) in context.config.nodes.iter().enumerate() {
        let wrong = |source| KubeletError::Node {
            name: config.name.clone(),
            source,
        };
        let node: Node = serde_json::from_value(object(config)).unwrap_or_default();
        match api.create(&PostParams::default(), &node).await {
            Ok(_) => {}
            Err(kube::Error::Api(answer)) if answer.is_already_exists() => {}
            Err(error) => return Err(wrong(error)),
        }
        let status = json!({"status": status(context, index, config)});
        api.patch_status(&config.name, &PatchParams::default(), &Patch::Merge(status))
            .await
            .map_err(wrong)?;
        context
            .recorder
            .node(&config.name, Reason::Starting, "Starting kubelet.");
        context.recorder.node(
            &config.name,
            Reason::NodeReady,
            format!("Node {} status is now: NodeReady", config.name),
        );
    }
    Ok(())
}

fn object(config: &NodeConfig) -> Value {
    let mut labels: BTreeMap<String, String> = config.labels.clone();
    let mut set = |name: &str, value: &str| labels.insert(name.to_owned(), value.to_owned());
    for prefix in ["kubernetes.io", "beta.kubernetes.io"] {
        set(&format!("{prefix}/os"), "linux");
        set(&format!("{prefix}/arch"), architecture());
    }
    set("kubernetes.io/hostname", &config.name);
    if let Some(zone) = &config.zone {
        set("topology.kubernetes.io/zone", zone);
        set("topology.kubernetes.io/region", "sandbox");
    }
    json!({
        "metadata": {"name": config.name, "labels": labels},
        "spec": {"providerID": format!("sandbox://{}", config.name)},
    })
}

/// The host's architecture as Go names it.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn status(context: &Context, index: usize, config: &NodeConfig) -> Value {
    let resources = json!({
        "cpu": config.cpu, "memory": config.memory, "pods": config.pods.to_string(), "ephemeral-storage": "100Gi",
        "hugepages-1Gi": "0", "hugepages-2Mi": "0",
    });
    json!({
        "capacity": resources, "allocatable": resources,
        "addresses": [
            {"type": "InternalIP", "address": context.host_address(index)},
            {"type": "Hostname", "address": config.name},
        ],
        "conditions": conditions(true),
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "nodeInfo": {
            "machineID": config.name, "systemUUID": config.name, "bootID": config.name,
            "kernelVersion": rustix::system::uname().release().to_string_lossy(),
            "osImage": "kube-sandbox (local processes)", "containerRuntimeVersion": "sandbox://0.1.0",
            "kubeletVersion": "v1.34.0", "kubeProxyVersion": "", "operatingSystem": "linux", "architecture": architecture(),
        },
    })
}

fn conditions(ready: bool) -> Value {
    let now = Time(jiff::Timestamp::now());
    let one = |kind: &str, status: &str, reason: &str, message: &str| {
        json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastHeartbeatTime": now, "lastTransitionTime": now,
        })
    };
    if !ready {
        let lost = |kind| {
            one(
                kind,
                "Unknown",
                "NodeStatusUnknown",
                "Kubelet stopped posting node status.",
            )
        };
        return json!(["MemoryPressure", "DiskPressure", "PIDPressure", "Ready"].map(lost));
    }
    json!([
        one(
            "MemoryPressure",
            "False",
            "KubeletHasSufficientMemory",
            "kubelet has sufficient memory available"
        ),
        one(
            "DiskPressure",
            "False",
            "KubeletHasNoDiskPressure",
            "kubelet has no disk pressure"
        ),
        one(
            "PIDPressure",
            "False",
            "KubeletHasSufficientPID",
            "kubelet has sufficient PID available"
        ),
        one("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
    ])
}

/// Renews the nodes' leases until the kubelet stops.
pub(super) async fn renew_leases(context: Arc<Context>) {
    let spaces: Api<Namespace> = Api::all(context.client.clone());
    let space = Namespace {
        metadata: kube::core::ObjectMeta {
            name: Some(LEASES.to_owned()),
            ..kube::core::ObjectMeta::default()
        },
        ..Namespace::default()
    };
    // It exists already wherever the namespace controller is older than the nodes.
    let _ = spaces.create(&PostParams::default(), &space).await;
    let api: Api<Lease> = Api::namespaced(context.client.clone(), LEASES);
    let mut ticks = tokio::time::interval(RENEW);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = context.stopped.cancelled() => return,
        }
        let nodes = context.config.nodes.iter();
        for node in nodes.filter(|node| !context.faults.is_lost(&node.name)) {
            if let Err(error) = renew(&api, &node.name).await {
                tracing::debug!(node = node.name, %error, "a node's lease could not be renewed");
            }
        }
    }
}

async fn renew(api: &Api<Lease>, name: &str) -> Result<(), kube::Error> {
    let now = MicroTime(jiff::Timestamp::now());
    let spec = json!({"holderIdentity": name, "leaseDurationSeconds": RENEW.as_secs() * 4, "renewTime": now});
    let patched = api
        .patch(name, &PatchParams::default(), &Patch::Merge(json!({"spec": spec})))
        .await;
    match patched {
        Err(kube::Error::Api(answer)) if answer.is_not_found() => {
            let lease: Lease =
                serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap_or_default();
            api.create(&PostParams::default(), &lease).await.map(drop)
        }
        other => other.map(drop),
    }
}

impl Kubelet {
    /// Makes a node look lost, as the node controller shows one that no longer reports: conditions `Unknown`, taints
    /// `node.kubernetes.io/unreachable`. Its lease is not renewed, its pods go on running. `true` brings it back.
    pub async fn set_node_ready(&self, name: &str, ready: bool) -> Result<(), FaultError> {
        self.context.faults.lose(name, !ready);
        let api: Api<Node> = Api::all(self.context.client.clone());
        let status = json!({"status": {"conditions": conditions(ready)}});
        api.patch_status(name, &PatchParams::default(), &Patch::Merge(status))
            .await?;
        let node = api.get(name).await?;
        let mut taints = node.spec.and_then(|spec| spec.taints).unwrap_or_default();
        taints.retain(|taint| taint.key != UNREACHABLE);
        let mut taints = json!(taints);
        if let Some(list) = taints.as_array_mut().filter(|_| !ready) {
            list.push(json!({"key": UNREACHABLE, "effect": "NoSchedule"}));
            list.push(json!({"key": UNREACHABLE, "effect": "NoExecute", "timeAdded": Time(jiff::Timestamp::now())}));
        }
        let patch = Patch::Merge(json!({"spec": {"taints": taints}}));
        api.patch(name, &PatchParams::default(), &patch).await?;
        let (reason, message) = if ready {
            (Reason::NodeReady, "NodeReady")
        } else {
            (Reason::NodeNotReady, "NodeNotReady")
        };
        self.context
            .recorder
            .node(name, reason, format!("Node {name} status is now: {message}"));
        Ok(())
    }
}

const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

//! Pods that lost their labels. The watch selects pods by label, so such a pod looks deleted. Its workload releases it
//! and creates another one, but its server keeps running and is still a node of the cluster.
//!
//! The uid of a member's last pod is in status: this proves that a pod without labels is the operator's own, and only
//! such a pod is ever deleted. Pods are listed only if a remembered pod is missing from the cache, and only once if it
//! is really deleted: a uid never comes back.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use candor_api::redkey::CLUSTER_LABEL;
use candor_engine::memory::{LastPod, Memory};
use candor_engine::model::MemberRef;
use candor_engine::observation::{Observation, Orphan, OrphanedPod};
use candor_engine::outcome::{Change, Failure};
use candor_engine::plan::unknown_nodes;
use futures::future::join_all;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, Preconditions};
use kube::{Api, ResourceExt};
use tokio::time::timeout;

use crate::act::apply::message;
use crate::kinds::redkey::objects::names;
use crate::objects::labels;
use crate::observe::pods;
use crate::runtime::cache::{ClusterKey, ClusterKind};
use crate::runtime::context::Context;

/// Annotation of Kubernetes: of several pods, a `ReplicaSet` deletes those with the lowest cost first.
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
/// The longest time that a reconcile waits for a list of pods.
const PATIENCE: Duration = Duration::from_millis(500);

/// The pods of members, as this observation read them.
type Pods = BTreeMap<MemberRef, Vec<Arc<Pod>>>;

/// Looks for the pods that members last ran in and that are not among their pods, and for the pods of unknown nodes
/// in the cluster map.
pub async fn observe(
    context: &Context,
    key: &ClusterKey,
    (memory, pods): (&Memory, &Pods),
    observation: &mut Observation,
) {
    if observation.pods_unknown.is_some() {
        return;
    }
    let missing = missing(context, key, (memory, pods), observation);
    let nodes: BTreeSet<&String> = missing.iter().map(|(_, last)| &last.node).collect();
    let lists = nodes.into_iter().map(async |node| {
        let found = list(context, key, &format!("spec.nodeName={node}")).await;
        (node.clone(), found)
    });
    let lists: BTreeMap<String, Option<Vec<Pod>>> = join_all(lists).await.into_iter().collect();
    for (at, last) in &missing {
        let orphan = match lists.get(&last.node).and_then(Option::as_deref) {
            None => Orphan::Unread,
            Some(pods) => orphan(key, *at, pods.iter().find(|pod| pod.uid().as_ref() == Some(&last.uid))),
        };
        if orphan == Orphan::None {
            context
                .states
                .with(key, |state| state.deleted_pods.insert(last.uid.clone()));
        }
        if let Some(member) = observation.members.get_mut(at) {
            member.other_addresses.extend(orphan.found().and_then(|pod| pod.ip));
            member.orphan = orphan;
        }
    }
    name_unknown_nodes(context, key, memory, observation).await;
}

/// Members with a remembered pod that is neither among their pods nor known to be deleted. The cache may have changed
/// since the members' pods were read from it: a pod that it lacked then is missing here too.
fn missing(
    context: &Context,
    key: &ClusterKey,
    (memory, pods): (&Memory, &Pods),
    observation: &Observation,
) -> Vec<(MemberRef, LastPod)> {
    let remembered = memory.topology.iter().flat_map(|(shard, before)| {
        let pods = before.pods.iter();
        pods.map(|(node, last)| {
            (
                MemberRef {
                    shard: *shard,
                    node: *node,
                },
                last,
            )
        })
    });
    let remembered: Vec<_> = remembered.collect();
    let deleted = context.states.with(key, |state| {
        state
            .deleted_pods
            .retain(|uid| remembered.iter().any(|(_, last)| last.uid == *uid));
        state.deleted_pods.clone()
    });
    let present = |at: &MemberRef, uid: &String| {
        let mut pods = pods.get(at).into_iter().flatten();
        pods.any(|pod| pod.uid().as_ref() == Some(uid))
    };
    let missing = remembered.into_iter().filter(|(at, last)| {
        let ended = observation
            .members
            .get(at)
            .is_some_and(|member| member.terminated_pods.contains(&last.uid));
        !present(at, &last.uid) && !ended && !last.terminated && !deleted.contains(&last.uid)
    });
    missing.map(|(at, last)| (at, last.clone())).collect()
}

/// What a remembered pod is now.
fn orphan(key: &ClusterKey, at: MemberRef, pod: Option<&Pod>) -> Orphan {
    let Some(pod) = pod.filter(|pod| !pods::is_over(pod)) else {
        return Orphan::None;
    };
    if is_labelled(key, at, pod) {
        // It is the member's pod again, and the watch has not reported it yet.
        return Orphan::Unread;
    }
    let ip = pod.status.as_ref().and_then(|status| status.pod_ip.as_ref());
    let name = pod.name_any();
    Orphan::Found(OrphanedPod {
        remedy: remedy(key, at, &name),
        name,
        uid: pod.uid().unwrap_or_default(),
        ip: ip.and_then(|ip| ip.parse().ok()),
        leaving: pod.metadata.deletion_timestamp.is_some(),
    })
}

/// Whether the labels of a pod make it this member's.
fn is_labelled(key: &ClusterKey, at: MemberRef, pod: &Pod) -> bool {
    match key.kind {
        ClusterKind::Valkey => {
            let labelled = pod.labels().get(labels::CLUSTER) == Some(&key.name);
            labelled && pods::member_of(pod, &key.name) == Some(at)
        }
        ClusterKind::Redkey => {
            let labelled = pod.labels().get(CLUSTER_LABEL) == Some(&key.name);
            labelled && names::ordinal(&key.name, &pod.name_any()) == Some(at.node)
        }
    }
}

/// The commands that make a pod a member's again. A `ReplicaSet` then has one pod too many and may delete either of them:
/// it compares their ages only by order of magnitude. The deletion cost makes it keep this one.
fn remedy(key: &ClusterKey, at: MemberRef, pod: &str) -> String {
    let labels: Vec<(String, String)> = match key.kind {
        ClusterKind::Valkey => labels::of_pod(&key.name, at).into(),
        ClusterKind::Redkey => names::server_selector(&key.name).into_iter().collect(),
    };
    let labels: Vec<String> = labels.iter().map(|(label, value)| format!("{label}={value}")).collect();
    let pod = format!("pod --namespace {} {pod} --overwrite", key.namespace);
    let labels = labels.join(" ");
    if key.kind == ClusterKind::Redkey {
        return format!("kubectl label {pod} {labels}");
    }
    format!("kubectl annotate {pod} {DELETION_COST}=1000 && kubectl label {pod} {labels}")
}

/// Names the pods of unknown nodes, for the message that reports them.
async fn name_unknown_nodes(context: &Context, key: &ClusterKey, memory: &Memory, observation: &mut Observation) {
    if !memory.formed {
        return;
    }
    let unknown = unknown_nodes(observation, memory);
    // Only the first one is reported with its address.
    let first = unknown
        .values()
        .next()
        .and_then(|address| address.host.parse::<IpAddr>().ok());
    let Some(ip) = first else { return };
    let found = list(context, key, &format!("status.podIP={ip}"))
        .await
        .unwrap_or_default();
    // Pods in the network of their node share its address.
    if let [pod] = found.as_slice() {
        observation.pods_at.insert(ip, pod.name_any());
    }
}

async fn list(context: &Context, key: &ClusterKey, fields: &str) -> Option<Vec<Pod>> {
    let api: Api<Pod> = Api::namespaced(context.client.clone(), &key.namespace);
    let params = ListParams::default().fields(fields);
    match timeout(PATIENCE, api.list(&params)).await {
        Ok(Ok(list)) => Some(list.items),
        Ok(Err(error)) => {
            tracing::warn!(cluster = %key, fields, %error, "failed to list pods");
            None
        }
        Err(_) => None,
    }
}

/// Deletes the orphaned pod of a member. The uid is a precondition, so no other pod of that name is deleted.
pub async fn delete(
    context: &Context,
    key: &ClusterKey,
    observation: &Observation,
    at: MemberRef,
) -> Result<Vec<Change>, Failure> {
    let Some(orphan) = observation.members.get(&at).and_then(|member| member.orphan.found()) else {
        return Ok(Vec::new());
    };
    let api: Api<Pod> = Api::namespaced(context.client.clone(), &key.namespace);
    let params = DeleteParams {
        preconditions: Some(Preconditions {
            uid: Some(orphan.uid.clone()),
            resource_version: None,
        }),
        ..DeleteParams::default()
    };
    match api.delete(&orphan.name, &params).await {
        Ok(_) => {
            tracing::warn!(cluster = %key, member = %at, pod = orphan.name, "deleted a pod that had lost its labels");
            Ok(Vec::new())
        }
        // It is deleted already, or another pod has its name.
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(Vec::new()),
        Err(error) => Err(Failure::rejected(format!(
            "failed to delete pod {}, which lost its labels: {}",
            orphan.name,
            message(&error)
        ))),
    }
}

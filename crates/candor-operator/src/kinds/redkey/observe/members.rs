//! The servers by ordinal: their pods, volumes and replies, and evidence about vanished pods.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use candor_api::redkey::{COMPONENT_LABEL, REDIS};
use candor_api::{RedkeyCluster, RedkeyClusterStatus};
use candor_engine::kinds::redkey::memory;
use candor_engine::model::{MemberRef, ShardIndex};
use candor_engine::observation::{Claim, Member, Observation, Server, Volume, Workload};
use candor_engine::seats::Ordinal;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::ResourceExt;

use super::super::objects::{self, names};
use super::{DRAINED, Observed};
use crate::observe::{evidence, orphans, pods};
use crate::runtime::cache::ClusterKey;
use crate::runtime::context::Context;

/// The pods of the servers. A pod without a controller was orphaned, and its `StatefulSet` adopts it.
///
/// While the cluster is created, or created anew by a fast operation, pods of an earlier `StatefulSet` are not servers of
/// it: they are of an earlier cluster of that name, and terminate.
pub(super) fn pods_by_ordinal(
    context: &Context,
    key: &ClusterKey,
    live: Option<&StatefulSet>,
    anew: bool,
) -> BTreeMap<Ordinal, Vec<Arc<Pod>>> {
    let uid = live.and_then(ResourceExt::uid);
    let mut pods: BTreeMap<Ordinal, Vec<Arc<Pod>>> = BTreeMap::new();
    for pod in context.caches.pods.list(key) {
        let server = pod
            .labels()
            .get(COMPONENT_LABEL)
            .is_some_and(|component| component == REDIS);
        let mut owners = pod.owner_references().iter();
        let controller = owners.find(|owner| owner.controller == Some(true));
        // Older pods of the existing operator have another component label.
        let ours = match controller {
            Some(owner) => {
                let set = owner.kind == "StatefulSet" && owner.name == key.name;
                set && (!anew || Some(&owner.uid) == uid.as_ref())
            }
            None => server,
        };
        if let Some(ordinal) = names::ordinal(&key.name, &pod.name_any()).filter(|_| ours) {
            pods.entry(ordinal).or_default().push(pod);
        }
    }
    pods
}

impl Observed {
    pub(super) fn observe_members(
        &mut self,
        context: &Context,
        key: &ClusterKey,
        cluster: &RedkeyCluster,
        pods: &BTreeMap<Ordinal, Vec<Arc<Pod>>>,
        mut servers: BTreeMap<Ordinal, Server>,
    ) {
        let nothing = RedkeyClusterStatus::default();
        let status = cluster.status.as_ref().unwrap_or(&nothing);
        let adopted = self.kept.as_ref().map(|kept| kept.adopted.clone());
        // Claims of an earlier cluster of that name have nothing to do with an ephemeral one.
        let claims = if cluster.spec.ephemeral {
            BTreeMap::new()
        } else {
            claims(context, key)
        };
        let memory = memory::memory(status);
        let seats = memory::seats(status);
        let replicas = self.set.as_ref().map_or(0, |set| set.replicas);
        let everybody: BTreeSet<Ordinal> = (0..replicas)
            .chain(pods.keys().copied())
            .chain(claims.keys().copied())
            .chain(seats.keys().copied())
            .collect();
        for ordinal in everybody {
            let all = pods.get(&ordinal).map(Vec::as_slice).unwrap_or_default();
            let reachability = pods::reachability(all.iter().map(|pod| &**pod));
            let mut pod = reachability.map(|pod| pods::see(pod, None, &context.caches.nodes));
            if let (Some(observation), Some(live)) = (&mut pod, reachability) {
                observation.current = objects::is_current(live, adopted.as_deref(), &cluster.spec, &self.revision);
            }
            let last = seats
                .get(&ordinal)
                .and_then(|shard| memory.topology.get(shard)?.pods.get(&ordinal));
            let deleted = last.filter(|last| context.caches.terminated.contains(&last.uid));
            let mut terminated_pods = pods::terminated(all.iter().map(|pod| &**pod));
            terminated_pods.extend(deleted.map(|last| last.uid.clone()));
            let (volume, claim) = claims
                .get(&ordinal)
                .map_or((Volume::None, Claim::Absent), |claim| volume(claim));
            let server = servers.remove(&ordinal).unwrap_or_default();
            let member = MemberRef {
                shard: ShardIndex(0),
                node: ordinal,
            };
            let up = matches!(server, Server::Up(_));
            let workload = self.workload(ordinal, pod.as_ref());
            self.members.insert(
                ordinal,
                Member {
                    workload,
                    pod,
                    volume,
                    claim,
                    claim_uid: claims.get(&ordinal).and_then(|claim| claim.uid()).unwrap_or_default(),
                    terminated_pods,
                    other_addresses: pods::other_addresses(all.iter().map(|pod| &**pod), reachability),
                    may_run_elsewhere: pods::may_run_elsewhere(all.iter().map(|pod| &**pod), reachability),
                    server,
                    undecodable: context.monitor.trouble(key, member).filter(|_| !up),
                    ..Member::default()
                },
            );
        }
    }

    fn workload(&self, ordinal: Ordinal, pod: Option<&candor_engine::observation::Pod>) -> Workload {
        match &self.set {
            None => Workload::Absent,
            Some(set) if set.leaving => Workload::Leaving,
            Some(set) if ordinal >= set.replicas => Workload::Absent,
            Some(_) if pod.is_some_and(|pod| !pod.current) => Workload::Outdated,
            Some(_) => Workload::Current,
        }
    }

    /// Observes pods that lost their labels, and whether the nodes of vanished pods confirm that they have terminated.
    pub(super) async fn observe_evidence(
        &mut self,
        context: &Context,
        key: &ClusterKey,
        status: &RedkeyClusterStatus,
        pods: &BTreeMap<Ordinal, Vec<Arc<Pod>>>,
    ) {
        let seats = memory::seats(status);
        let at = |ordinal: Ordinal| {
            let shard = seats.get(&ordinal).copied().unwrap_or(ShardIndex(u32::MAX));
            MemberRef { shard, node: ordinal }
        };
        let members = std::mem::take(&mut self.members);
        let mut observation = Observation {
            members: members
                .into_iter()
                .map(|(ordinal, member)| (at(ordinal), member))
                .collect(),
            ..self.base.clone()
        };
        let memory = memory::memory(status);
        let pods = pods
            .iter()
            .map(|(ordinal, pods)| (at(*ordinal), pods.clone()))
            .collect();
        orphans::observe(context, key, (&memory, &pods), &mut observation).await;
        self.base.pods_at.clone_from(&observation.pods_at);
        evidence::observe(context, key, &memory, &mut observation).await;
        self.members = observation
            .members
            .into_iter()
            .map(|(at, member)| (at.node, member))
            .collect();
    }
}

/// The volume claims of the servers.
pub(in super::super) fn claims(context: &Context, key: &ClusterKey) -> BTreeMap<Ordinal, Arc<PersistentVolumeClaim>> {
    let all = context.caches.claims.list(key).into_iter();
    let named = all.filter_map(|claim| {
        let name = claim.name_any();
        let ordinal = names::ordinal(&key.name, name.strip_prefix("data-")?)?;
        Some((ordinal, claim))
    });
    named.collect()
}

fn volume(claim: &PersistentVolumeClaim) -> (Volume, Claim) {
    let volume = if claim.metadata.deletion_timestamp.is_some() {
        Volume::None
    } else if claim.annotations().contains_key(DRAINED) {
        Volume::Drained
    } else {
        Volume::Kept
    };
    (volume, crate::observe::volumes::claim(claim, None))
}

//! The members: their workloads, pods, volumes and replies, and whether they accept the operator's user.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use candor_engine::memory::Memory;
use candor_engine::model::MemberRef;
use candor_engine::observation::{
    About, Claim, Login, Member, Orphan, Problem as SpecProblem, Server, Volume, Workload,
};
use futures::future::join_all;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

use super::workloads::Live;
use super::{Observed, pods, volumes};
use crate::act::ownership::Owner;
use crate::objects::labels;
use crate::runtime::cache::ClusterKey;
use crate::runtime::context::Context;

/// Members that have a workload or a pod, or that are in status. Labels alone do not make an object a member's.
pub(super) fn existing(context: &Context, key: &ClusterKey, memory: &Memory) -> impl Iterator<Item = MemberRef> {
    fn of<K: ResourceExt>(objects: Vec<Arc<K>>) -> impl Iterator<Item = MemberRef> {
        objects
            .into_iter()
            .filter_map(|object| labels::member_of(object.labels()))
    }
    let (caches, owner) = (&context.caches, Owner::of(context, key));
    let pods = pods_by_member(context, key).into_keys();
    of(owner.list(&caches.deployments))
        .chain(of(owner.list(&caches.stateful_sets)))
        .chain(pods)
        .chain(memory.topology.iter().flat_map(|(shard, before)| {
            let shard = *shard;
            before.members.keys().map(move |node| MemberRef { shard, node: *node })
        }))
}

pub(super) fn pods_by_member(context: &Context, key: &ClusterKey) -> BTreeMap<MemberRef, Vec<Arc<Pod>>> {
    let mut pods: BTreeMap<MemberRef, Vec<Arc<Pod>>> = BTreeMap::new();
    for pod in context.caches.pods.list(key) {
        if let Some(at) = pods::member_of(&pod, &key.name) {
            pods.entry(at).or_default().push(pod);
        }
    }
    pods
}

impl Observed {
    pub(super) fn observe_members(
        &mut self,
        context: &Context,
        key: &ClusterKey,
        (live, pods): (&Live, &BTreeMap<MemberRef, Vec<Arc<Pod>>>),
        mut servers: BTreeMap<MemberRef, Server>,
    ) {
        let workloads = live.by_member();
        let claims = volumes::claims(context, key);
        let remembered = self.memory.topology.iter().flat_map(|(shard, before)| {
            let shard = *shard;
            before.members.keys().map(move |node| MemberRef { shard, node: *node })
        });
        let all_members: BTreeSet<MemberRef> = self
            .desired
            .members()
            .chain(workloads.keys().copied())
            .chain(pods.keys().copied())
            .chain(claims.keys().copied())
            .chain(remembered)
            .collect();
        for at in all_members {
            let template = self.members.get(&at).map(|member| member.workload.template_hash());
            let workload = match workloads.get(&at) {
                None => Workload::Absent,
                Some(live) if live.leaving => Workload::Leaving,
                Some(live) if template.is_some_and(|desired| live.template != desired) => Workload::Outdated,
                Some(_) => Workload::Current,
            };
            let reachability = pods
                .get(&at)
                .and_then(|pods| pods::reachability(pods.iter().map(|pod| &**pod)));
            let pod = reachability.map(|pod| pods::see(pod, template, &context.caches.nodes));
            let desired = self.members.get(&at).and_then(|member| member.claim.as_ref());
            let (volume, claim) = claims.get(&at).map_or((Volume::None, Claim::Absent), |live| {
                (volumes::volume(live), volumes::claim(live, desired))
            });
            let server = servers.remove(&at).unwrap_or_default();
            let up = matches!(server, Server::Up(_));
            let undecodable = context.monitor.trouble(key, at).filter(|_| !up);
            let all = pods.get(&at).map(Vec::as_slice).unwrap_or_default();
            let last = self
                .memory
                .topology
                .get(&at.shard)
                .and_then(|before| before.pods.get(&at.node));
            let deleted = last.filter(|last| context.caches.terminated.contains(&last.uid));
            let mut terminated_pods = pods::terminated(all.iter().map(|pod| &**pod));
            terminated_pods.extend(deleted.map(|last| last.uid.clone()));
            self.observation.members.insert(
                at,
                Member {
                    workload,
                    pod,
                    volume,
                    claim,
                    claim_uid: claims.get(&at).and_then(|live| live.uid()).unwrap_or_default(),
                    last_node_believed: false,
                    terminated_pods,
                    other_addresses: pods::other_addresses(all.iter().map(|pod| &**pod), reachability),
                    may_run_elsewhere: pods::may_run_elsewhere(all.iter().map(|pod| &**pod), reachability),
                    orphan: Orphan::default(),
                    server,
                    login: Login::default(),
                    undecodable,
                },
            );
        }
        self.observe_undecodable();
    }

    /// Which members reject the operator's user, and which of those are proven to be members. Only pods that exist now
    /// count: the address of an earlier pod may belong to any server.
    pub(super) async fn observe_logins(&mut self, context: &Context, key: &ClusterKey) {
        if self.observation.pods_unknown.is_some() {
            return;
        }
        let rejecting = context.monitor.rejecting(key).into_iter();
        let here = rejecting.filter(|(at, endpoint)| {
            let member = self.observation.members.get(at);
            member.and_then(Member::ip) == Some(endpoint.address.ip())
        });
        let repair = &self.repair;
        let logins = here.map(async |(at, endpoint)| {
            let possible = repair.is_possible(&endpoint).await;
            (at, if possible { Login::Repairable } else { Login::Rejected })
        });
        for (at, login) in join_all(logins).await {
            if let Some(member) = self.observation.members.get_mut(&at) {
                member.login = login;
            }
        }
    }

    /// An undecodable reply of one member is a problem of that member; the others are still reconciled. If no member's
    /// reply can be decoded, or the cluster has never formed, the spec is reported as the problem.
    fn observe_undecodable(&mut self) {
        if self.memory.formed && self.observation.answering().next().is_some() {
            return;
        }
        for (at, member) in &mut self.observation.members {
            if let Some(message) = member.undecodable.take() {
                self.observation.problems.push(SpecProblem {
                    about: About::Configuration,
                    message: format!("member {at}: {message}"),
                });
            }
        }
    }
}

//! Whether running servers have the desired settings, users and certificates.

use std::collections::BTreeMap;

use candor_engine::model::MemberRef;
use candor_engine::observation::{Applied, Server};
use futures::future::join_all;
use kube::ResourceExt;

use super::Observed;
use super::applied::Process;
use crate::objects::{self, SharedObject};
use crate::runtime::cache::ClusterKey;
use crate::runtime::context::Context;

impl Observed {
    /// Whether each responding server runs with the desired settings. A server is queried only if the answer is not
    /// cached.
    pub(super) async fn observe_settings(&mut self, context: &Context, key: &ClusterKey) {
        let Some(settings) = &self.settings else { return };
        let answering = self.observation.answering().filter(|(_, facts)| !facts.loading);
        let replies = answering.filter_map(|(at, facts)| {
            let node = context.monitor.node(key, at)?;
            let process = Process {
                cluster: key,
                member: at,
                run_id: &facts.run_id,
            };
            Some(async move { (at, context.applied.observe(&node, process, settings).await) })
        });
        let replies: Vec<_> = join_all(replies).await;
        for (at, reply) in replies {
            let member = self.observation.members.get_mut(&at);
            let Some(Server::Up(facts)) = member.map(|member| &mut member.server) else {
                continue;
            };
            // No response in time: the next reconcile queries again. Until then the settings count as not applied.
            let (config, users) = reply.unwrap_or((Applied::No, Applied::No));
            facts.config = config;
            facts.users = users;
        }
    }

    /// Keeps the current ACL file, which starting servers read, until a running server has accepted the new users and
    /// none has rejected them.
    pub(super) fn keep_accepted_users(&mut self, context: &Context, key: &ClusterKey) {
        let desired = self
            .observation
            .answering()
            .filter(|(at, _)| self.desired.includes(*at));
        let answers: Vec<&Applied> = desired.map(|(_, facts)| &facts.users).collect();
        let rejected = answers.iter().any(|users| matches!(users, Applied::Rejected(_)));
        if answers.contains(&&Applied::Yes) && !rejected {
            return;
        }
        for object in &mut self.shared {
            if let SharedObject::AclSecret(secret) = object {
                let live = context.caches.secrets.get(key, &secret.name_any());
                objects::keep_users(secret, live.as_deref());
            }
        }
    }

    /// Whether each responding server presents the desired certificate. The previous CA is discarded once every member
    /// is observed to present it.
    pub(super) async fn observe_certificates(&mut self, context: &Context, key: &ClusterKey) {
        let Some(certificates) = &self.certificates else { return };
        let replies = self.observation.answering().filter_map(|(at, facts)| {
            let node = context.monitor.node(key, at)?;
            Some(async move {
                let process = Process {
                    cluster: key,
                    member: at,
                    run_id: &facts.run_id,
                };
                (at, context.served.observe(&node, process, certificates).await)
            })
        });
        let replies: BTreeMap<MemberRef, Applied> = join_all(replies).await.into_iter().collect();
        let mut members = self.observation.members.iter().filter(|(_, member)| member.exists());
        let all_serve = members.all(|(at, _)| replies.get(at) == Some(&Applied::Yes));
        for object in &mut self.shared {
            if let SharedObject::SystemSecret(secret) = object {
                certificates.note(secret, all_serve);
            }
        }
        for (at, certificate) in replies {
            if let Some(Server::Up(facts)) = self.observation.members.get_mut(&at).map(|member| &mut member.server) {
                facts.certificate = certificate;
            }
        }
    }
}

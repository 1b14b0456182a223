//! What the servers reply, to Robin or to the operator, and with which password they are asked.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;

use candor_api::RedkeyCluster;
use candor_engine::model::{MemberRef, ShardIndex};
use candor_engine::observation::{About, Applied, Observation, Problem, Server};
use candor_engine::seats::Ordinal;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use valkey_admin::client::Endpoint;

use super::super::config::Password;
use super::super::objects::credentials::{PASSWORD, password_of};
use super::super::objects::{PORT, names};
use super::super::robin::link::Frame;
use super::{Observed, credentials, place};
use crate::act::apply::message;
use crate::observe::pods;
use crate::runtime::cache::ClusterKey;
use crate::runtime::context::Context;

/// The password that is stored for servers to start with.
pub(super) fn stored_password(context: &Context, key: &ClusterKey) -> Option<Password> {
    let secret = context.caches.secrets.get(key, &names::robin(&key.name))?;
    let bytes = secret.data.as_ref()?.get(PASSWORD)?;
    Password::new(String::from_utf8(bytes.0.clone()).ok()?)
}

/// The password of the user's Secret. While it cannot be read, servers keep the one they have.
pub(super) async fn desired_password(
    context: &Context,
    key: &ClusterKey,
    cluster: &RedkeyCluster,
    stored: Option<&Password>,
    base: &mut Observation,
) -> Option<Password> {
    let name = cluster.spec.auth.as_ref().and_then(|auth| auth.secret.clone());
    let name = name.filter(|name| !name.is_empty())?;
    let names = BTreeSet::from([name.clone()]);
    let read = context.secrets.of(&context.client, &context.caches, key, names).await;
    let found = match read {
        Ok(found) => password_of(found.get(&name), &name),
        Err(error) => {
            base.secrets_unread = Some(format!("Secret {name} could not be read: {}", message(&error)));
            return stored.cloned();
        }
    };
    match found {
        Ok(password) => Some(password),
        Err(error) => {
            base.problems.push(Problem {
                about: About::Users,
                message: error.to_string(),
            });
            stored.cloned()
        }
    }
}

/// What Robin observed of the pods that exist now.
pub(super) fn servers_from_robin(frame: &Frame, pods: &BTreeMap<Ordinal, Vec<Arc<Pod>>>) -> BTreeMap<Ordinal, Server> {
    let server = |ordinal: &Ordinal, pods: &Vec<Arc<Pod>>| {
        let uid = pods::reachability(pods.iter().map(|pod| &**pod))?.uid()?;
        let observed = frame.servers.get(ordinal).filter(|one| one.pod_uid == uid)?;
        Some(observed.server.clone())
    };
    let servers = pods
        .iter()
        .filter_map(|(ordinal, pods)| Some((*ordinal, server(ordinal, pods)?)));
    servers.collect()
}

/// Queries all servers, each with the password that it is known to have.
pub(super) async fn query_servers(
    context: &Context,
    key: &ClusterKey,
    pods: &BTreeMap<Ordinal, Vec<Arc<Pod>>>,
    stored: Option<&Password>,
    desired: Option<&Password>,
) -> BTreeMap<Ordinal, Server> {
    let rejecting: BTreeSet<Ordinal> = context.monitor.rejecting(key).into_keys().map(|at| at.node).collect();
    let has_desired = context.states.with(key, |state| {
        for ordinal in rejecting.iter().filter(|_| stored != desired) {
            if !state.has_desired_password.remove(ordinal) {
                state.has_desired_password.insert(*ordinal);
            }
        }
        state.has_desired_password.clone()
    });
    let endpoint = |ordinal: Ordinal, pods: &Vec<Arc<Pod>>| {
        let pod = pods::reachability(pods.iter().map(|pod| &**pod))?;
        let ip = pod.status.as_ref()?.pod_ip.as_ref()?.parse().ok()?;
        let password = if has_desired.contains(&ordinal) {
            desired
        } else {
            stored.or(desired)
        };
        Some(Endpoint {
            address: SocketAddr::new(ip, PORT),
            credentials: credentials(password),
            tls: None,
        })
    };
    let place = |ordinal: Ordinal| {
        place(MemberRef {
            shard: ShardIndex(0),
            node: ordinal,
        })
    };
    let endpoints = pods
        .iter()
        .filter_map(|(ordinal, pods)| Some((place(*ordinal), endpoint(*ordinal, pods)?)));
    context.monitor.watch(key, endpoints.collect());
    let servers = context.monitor.scrape(key).await;
    servers.into_iter().map(|(at, server)| (at.node, server)).collect()
}

impl Observed {
    /// Which servers do not have the desired password yet.
    pub(super) fn observe_passwords(&mut self, context: &Context, key: &ClusterKey, stored: Option<&Password>) {
        if stored == self.password.as_ref() || (stored.is_none() && self.answering().next().is_none()) {
            context.states.with(key, |state| state.has_desired_password.clear());
            return;
        }
        let has_desired = context.states.with(key, |state| state.has_desired_password.clone());
        for (ordinal, member) in &mut self.members {
            if let Server::Up(facts) = &mut member.server
                && !has_desired.contains(ordinal)
            {
                facts.config = Applied::No;
            }
        }
    }
}

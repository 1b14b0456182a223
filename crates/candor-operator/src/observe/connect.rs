//! How the operator connects to servers, and what it asks all of them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use candor_api::ValkeyCluster;
use candor_engine::model::MemberRef;
use candor_engine::observation::Server;
use futures::future::join_all;
use k8s_openapi::api::core::v1::{Pod, Secret};
use valkey_admin::client::{Credentials, Endpoint, Tls};

use super::pods;
use crate::credentials::certificates::Certificates;
use crate::objects::{OPERATOR, PORT, SystemPasswords};
use crate::runtime::cache::ClusterKey;
use crate::runtime::context::Context;

/// How to connect to servers: as the operator's own user, and always with TLS if the spec enables it. `own` is the
/// operator's own Secret of this cluster.
pub fn endpoint_parts(
    cluster: &ValkeyCluster,
    passwords: &SystemPasswords,
    secrets: &BTreeMap<String, Secret>,
    own: Option<&Secret>,
) -> Option<(Credentials, Option<Tls>)> {
    parts(passwords, Certificates::of(cluster, secrets, own).as_ref())
}

pub(super) fn parts(
    passwords: &SystemPasswords,
    certificates: Option<&Certificates>,
) -> Option<(Credentials, Option<Tls>)> {
    let credentials = Credentials {
        user: OPERATOR.to_owned(),
        password: passwords.operator.clone(),
    };
    match certificates {
        None => Some((credentials, None)),
        Some(certificates) => Some((credentials, Some(certificates.tls().ok()?))),
    }
}

/// Passes the members to the member monitor and queries all of them. If the Secret with their certificates is missing,
/// unreadable or invalid, servers keep what they have loaded, and the operator keeps connecting as before.
pub(super) async fn query_servers(
    context: &Context,
    key: &ClusterKey,
    pods: &BTreeMap<MemberRef, Vec<Arc<Pod>>>,
    parts: Option<(Credentials, Option<Tls>)>,
) -> BTreeMap<MemberRef, Server> {
    let Some((credentials, tls)) = parts else {
        return context.monitor.scrape(key).await;
    };
    let endpoint = |pods: &Vec<Arc<Pod>>| {
        let pod = pods::reachability(pods.iter().map(|pod| &**pod))?;
        let ip = pod.status.as_ref()?.pod_ip.as_ref()?.parse().ok()?;
        Some(Endpoint {
            address: SocketAddr::new(ip, PORT),
            credentials: Some(credentials.clone()),
            tls: tls.clone(),
        })
    };
    let endpoints = pods.iter().filter_map(|(at, pods)| Some((*at, endpoint(pods)?)));
    context.monitor.watch(key, endpoints.collect());
    context.monitor.scrape(key).await
}

/// The keys that no responding server knows. A rejected key is remembered as if it had been set. Removing such a key
/// from the spec must not restart a member.
pub(super) async fn unknown_keys(
    context: &Context,
    key: &ClusterKey,
    keys: Vec<&str>,
    servers: &BTreeMap<MemberRef, Server>,
) -> Vec<String> {
    let mut unknown = Vec::new();
    for name in keys {
        let up = servers.iter().filter(|(_, server)| matches!(server, Server::Up(_)));
        let asked = up.filter_map(|(at, _)| context.monitor.node(key, *at));
        let answers = join_all(asked.map(async |node| node.config_get(name).await)).await;
        let nowhere = answers.iter().all(|answer| matches!(answer, Ok(None)));
        if nowhere && !answers.is_empty() {
            unknown.push(name.to_owned());
        }
    }
    unknown
}

//! Queries the servers directly, where they can be reached. They usually can from a pod's network and often cannot
//! from a workstation. In that case the CLI relies on the status that the operator wrote.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use candor_api::ValkeyCluster;
use candor_engine::model::MemberRef;
use candor_operator::endpoint_parts;
use candor_operator::objects::{EXPORTER, PORT, SystemPasswords, labels, names};
use futures::future::join_all;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::{Api, ResourceExt};
use valkey_admin::client::{Credentials, Deadlines, Endpoint, Node};
use valkey_admin::info::Info;

use super::connect::Connected;

/// A user is waiting, and a healthy server replies within a millisecond.
const PATIENCE: Deadlines = Deadlines {
    connect: Duration::from_millis(200),
    answer: Duration::from_millis(200),
};

/// A client for each server that has an address. It logs in as the user that can only read metrics.
pub async fn reach(at: &Connected, cluster: &ValkeyCluster, pods: &[Pod]) -> Result<BTreeMap<MemberRef, Node>, String> {
    let api: Api<Secret> = Api::namespaced(at.client.clone(), &at.namespace);
    let name = names::system_secret(&cluster.name_any());
    let not_asked = |words: String| format!("servers were not asked for keys, memory and lag: {words}");
    let system = match api.get_opt(&name).await {
        Ok(Some(secret)) => secret,
        Ok(None) => return Ok(BTreeMap::new()),
        Err(kube::Error::Api(status)) => return Err(not_asked(status.message.clone())),
        Err(error) => return Err(not_asked(error.to_string())),
    };
    let passwords = SystemPasswords::from_secret(&system).map_err(|problem| not_asked(problem.to_string()))?;
    let mut certificates = BTreeMap::new();
    if let Some(tls) = cluster
        .spec
        .networking
        .as_ref()
        .and_then(|network| network.tls.as_ref())
    {
        let name = &tls.certificates.server.secret_name;
        if let Ok(Some(secret)) = api.get_opt(name).await {
            certificates.insert(name.clone(), secret);
        }
    }
    let Some((_, tls)) = endpoint_parts(cluster, &passwords, &certificates, Some(&system)) else {
        return Err(not_asked("their certificate's Secret cannot be read".to_owned()));
    };
    let endpoint = |pod: &Pod| {
        let member = labels::member_of(pod.labels())?;
        let ip = pod.status.as_ref()?.pod_ip.as_ref()?.parse().ok()?;
        let endpoint = Endpoint {
            address: SocketAddr::new(ip, PORT),
            credentials: Some(Credentials {
                user: EXPORTER.to_owned(),
                password: passwords.exporter.clone(),
            }),
            tls: tls.clone(),
        };
        Some((member, Node::new(endpoint, PATIENCE)))
    };
    let living = pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
    Ok(living.filter_map(endpoint).collect())
}

/// What each server reports; a server that does not respond is omitted.
pub async fn figures(nodes: &BTreeMap<MemberRef, Node>) -> BTreeMap<MemberRef, Info> {
    let answers = nodes.iter().map(|(member, node)| async move {
        let info = node.info(&["server", "replication", "memory", "keyspace", "stats", "persistence"]);
        Some((*member, info.await.ok()?))
    });
    join_all(answers).await.into_iter().flatten().collect()
}

/// What each server of a cluster reports; a server that does not respond is omitted.
pub async fn ask(at: &Connected, cluster: &ValkeyCluster, pods: &[Pod]) -> Result<BTreeMap<MemberRef, Info>, String> {
    let nodes = reach(at, cluster, pods).await?;
    let answers = figures(&nodes).await;
    if answers.is_empty() && !nodes.is_empty() {
        return Err(
            "no server can be reached from here: keys are as of the last change, lag and memory are not shown"
                .to_owned(),
        );
    }
    Ok(answers)
}

//! Queries the servers directly, where they can be reached. They usually can from a pod's network and often cannot
//! from a workstation. In that case the CLI relies on the status that the operator wrote.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use candor_api::{RedkeyCluster, ValkeyCluster};
use candor_operator::endpoint_parts;
use candor_operator::kinds::redkey::objects::{credentials, names as redkey_names};
use candor_operator::objects::{EXPORTER, PORT, SystemPasswords, names};
use futures::future::join_all;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::{Api, ResourceExt};
use valkey_admin::client::{Credentials, Deadlines, Endpoint, Node, Tls};
use valkey_admin::info::Info;

use super::cluster::{MemberId, Object};
use super::connect::Connected;
use super::exec::Call;

/// A user is waiting, and a healthy server replies within a millisecond.
const PATIENCE: Deadlines = Deadlines {
    connect: Duration::from_millis(200),
    answer: Duration::from_millis(200),
};

/// How long a query by exec may take.
const EXEC: Duration = Duration::from_secs(5);

/// How to log in to the servers of a cluster.
#[derive(Clone)]
struct Access {
    credentials: Option<Credentials>,
    tls: Option<Tls>,
}

/// A client for each server that has an address.
pub async fn reach(at: &Connected, cluster: &Object, pods: &[Pod]) -> Result<BTreeMap<MemberId, Node>, String> {
    let access = match cluster {
        Object::Valkey(cluster) => of_valkey(at, cluster).await,
        Object::Redkey(cluster) => of_redkey(at, cluster).await.map(Some),
    };
    let access = access.map_err(|message| format!("servers were not queried for keys, memory and lag: {message}"))?;
    let Some(access) = access else {
        return Ok(BTreeMap::new());
    };
    let kind = cluster.kind();
    let endpoint = |pod: &Pod| {
        let member = kind.member_of(pod)?;
        let ip = pod.status.as_ref()?.pod_ip.as_ref()?.parse().ok()?;
        let endpoint = Endpoint {
            address: SocketAddr::new(ip, PORT),
            credentials: access.credentials.clone(),
            tls: access.tls.clone(),
        };
        Some((member, Node::new(endpoint, PATIENCE)))
    };
    let living = pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
    Ok(living.filter_map(endpoint).collect())
}

/// As the user that can only read metrics; `None` while the operator has not created it.
async fn of_valkey(at: &Connected, cluster: &ValkeyCluster) -> Result<Option<Access>, String> {
    let Some(system) = secret(at, &names::system_secret(&cluster.name_any())).await? else {
        return Ok(None);
    };
    let passwords = SystemPasswords::from_secret(&system).map_err(|problem| problem.to_string())?;
    let mut certificates = BTreeMap::new();
    if let Some(tls) = cluster
        .spec
        .networking
        .as_ref()
        .and_then(|network| network.tls.as_ref())
    {
        let name = &tls.certificates.server.secret_name;
        if let Ok(Some(secret)) = secret(at, name).await {
            certificates.insert(name.clone(), secret);
        }
    }
    let Some((_, tls)) = endpoint_parts(cluster, &passwords, &certificates, Some(&system)) else {
        return Err("their certificate's Secret cannot be read".to_owned());
    };
    Ok(Some(Access {
        credentials: Some(Credentials {
            user: EXPORTER.to_owned(),
            password: passwords.exporter,
        }),
        tls,
    }))
}

/// The password of `spec.auth`. A password of `spec.config` is in Robin's Secret.
pub async fn redkey_password(at: &Connected, cluster: &RedkeyCluster) -> Result<Option<String>, String> {
    let named = cluster.spec.auth.as_ref().and_then(|auth| auth.secret.clone());
    let name = named.unwrap_or_else(|| redkey_names::robin(&cluster.name_any()));
    let found = secret(at, &name).await?;
    Ok(found.and_then(|secret| password(&secret, credentials::PASSWORD)))
}

async fn of_redkey(at: &Connected, cluster: &RedkeyCluster) -> Result<Access, String> {
    let password = redkey_password(at, cluster).await?;
    Ok(Access {
        credentials: password.map(|password| Credentials {
            user: "default".to_owned(),
            password,
        }),
        tls: None,
    })
}

async fn secret(at: &Connected, name: &str) -> Result<Option<Secret>, String> {
    let api: Api<Secret> = Api::namespaced(at.client.clone(), &at.namespace);
    api.get_opt(name).await.map_err(|error| match error {
        kube::Error::Api(status) => status.message.clone(),
        error => error.to_string(),
    })
}

/// The text under a key of a Secret; `None` if it is empty.
pub fn password(secret: &Secret, key: &str) -> Option<String> {
    let value = secret.data.as_ref()?.get(key)?;
    let text = String::from_utf8(value.0.clone()).ok()?;
    Some(without_line_end(&text).to_owned()).filter(|text| !text.is_empty())
}

/// Editors and `echo` append a line end.
pub fn without_line_end(text: &str) -> &str {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.strip_suffix('\r').unwrap_or(text)
}

/// What each server reports; a server that does not respond is omitted.
pub async fn figures(nodes: &BTreeMap<MemberId, Node>) -> BTreeMap<MemberId, Info> {
    let answers = nodes.iter().map(|(member, node)| async move {
        let info = node.info(&[
            "server",
            "clients",
            "replication",
            "memory",
            "keyspace",
            "stats",
            "persistence",
        ]);
        Some((*member, info.await.ok()?))
    });
    join_all(answers).await.into_iter().flatten().collect()
}

/// What each server of a cluster reports, and how it was asked if not directly; a server that does not respond is
/// omitted. Where none can be reached from here, the API server runs their own client in their pods.
pub async fn ask(
    at: &Connected,
    cluster: &Object,
    pods: &[Pod],
) -> Result<(BTreeMap<MemberId, Info>, Option<String>), String> {
    let nodes = reach(at, cluster, pods).await?;
    let answers = figures(&nodes).await;
    if !answers.is_empty() || nodes.is_empty() {
        return Ok((answers, None));
    }
    let answers = through_api_server(at, cluster, pods).await.map_err(|message| {
        format!(
            "no server can be reached from here, and not through the API server either ({message}): keys are as of the \
             last change, lag and memory are not shown. Grant yourself `create pods/exec`, or run candor in a pod"
        )
    })?;
    let note = "no server can be reached from here: the figures come through the API server, by exec in the pods";
    Ok((answers, Some(note.to_owned())))
}

/// The same by exec in the pods.
pub async fn through_api_server(
    at: &Connected,
    cluster: &Object,
    pods: &[Pod],
) -> Result<BTreeMap<MemberId, Info>, String> {
    let access = match cluster {
        Object::Valkey(cluster) => of_valkey(at, cluster).await?,
        Object::Redkey(cluster) => Some(of_redkey(at, cluster).await?),
    };
    let Some(access) = access else {
        return Ok(BTreeMap::new());
    };
    let kind = cluster.kind();
    let call = Call {
        // The user `default` of a RedkeyCluster is meant without its name, which older servers do not take.
        user: access
            .credentials
            .as_ref()
            .map(|one| one.user.clone())
            .filter(|user| user != "default"),
        password: access.credentials.map(|one| one.password),
        tls: access.tls.is_some(),
        arguments: vec!["info".to_owned()],
    };
    let living = pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
    let asked = living
        .filter_map(|pod| Some((kind.member_of(pod)?, pod)))
        .map(|(member, pod)| {
            let call = &call;
            async move {
                let name = pod.name_any();
                let output = tokio::time::timeout(EXEC, call.output(at, kind, &name)).await;
                let text = output.map_err(|_| format!("exec in pod {name} did not end in time"))??;
                let info = Info::parse(&text).map_err(|error| format!("pod {name}: {error}"))?;
                Ok((member, info))
            }
        });
    let replies: Vec<Result<(MemberId, Info), String>> = join_all(asked).await;
    let (good, bad): (Vec<_>, Vec<_>) = replies.into_iter().partition(Result::is_ok);
    match bad.into_iter().find_map(Result::err) {
        Some(message) if good.is_empty() => Err(message),
        _ => Ok(good.into_iter().flatten().collect()),
    }
}

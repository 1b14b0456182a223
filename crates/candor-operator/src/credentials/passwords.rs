//! The operator's own passwords: observed without a write, and created by a step of the plan. They are generated again
//! only if a server accepts the operator without a password.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use candor_api::ValkeyCluster;
use candor_engine::kinds::valkey;
use candor_engine::observation::Credentials;
use candor_engine::outcome::{Change, Failure, ObjectKind};
use futures::future::join_all;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::{Api, ResourceExt};
use ring::rand::SystemRandom;
use valkey_admin::client::{Endpoint, Node};

use crate::act::apply::{self, message};
use crate::act::ownership::Owner;
use crate::credentials::certificates::Certificates;
use crate::credentials::repair::Repair;
use crate::objects::{EXPORTER, PORT, REPLICATION, SystemPasswords, names, passwords_of_pods, system_secret};
use crate::observe::pods::member_of;
use crate::observe::workloads::Live;
use crate::runtime::cache::ClusterKey;
use crate::runtime::context::Context;

/// The passwords of the clusters reconciled so far. If a user deletes the Secret, the operator writes it again with the
/// same content: running servers accept no other passwords.
#[derive(Default)]
pub struct KnownPasswords(Mutex<HashMap<ClusterKey, Known>>);

/// Passwords, and the uid of their cluster.
type Known = (Option<String>, SystemPasswords);

impl KnownPasswords {
    fn note(&self, key: &ClusterKey, cluster: &ValkeyCluster, passwords: &SystemPasswords) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(key.clone(), (cluster.uid(), passwords.clone()));
    }

    fn of(&self, key: &ClusterKey, cluster: &ValkeyCluster) -> Option<SystemPasswords> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (uid, passwords) = known.get(key)?;
        (*uid == cluster.uid()).then(|| passwords.clone())
    }

    /// Removes the passwords of a deleted cluster.
    pub fn forget(&self, key: &ClusterKey) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

/// Why a paused cluster cannot be observed.
const PAUSED_WITHOUT: &str =
    "the Secret with the operator's passwords is gone, and while spec.paused is set none is made";

/// The passwords to connect with, and whether they are stored. There are none if servers have others that are lost.
/// Before the first server exists, any passwords do.
pub async fn observe(
    context: &Context,
    key: &ClusterKey,
    cluster: &ValkeyCluster,
) -> (Option<SystemPasswords>, Credentials) {
    let name = names::system_secret(&key.name);
    let there = Owner::of(context, key).get(&context.caches.secrets, &name);
    let damage = match there.map(|secret| SystemPasswords::from_secret(&secret)) {
        Some(Ok(found)) => return stored(context, key, cluster, found),
        Some(Err(problem)) => problem.to_string(),
        None => format!("Secret {name} is gone"),
    };
    let known = context.passwords.of(key, cluster);
    if known.is_some() || !has_servers(context, key, cluster) {
        let passwords = known.or_else(|| SystemPasswords::generate(&SystemRandom::new()).ok());
        return (passwords, Credentials::Missing);
    }
    let lost = |message: String, recoverable| (None, Credentials::Lost { message, recoverable });
    if valkey::desired(cluster).paused {
        return lost(PAUSED_WITHOUT.to_owned(), false);
    }
    // The cache may be older than the Secret.
    let api: Api<Secret> = Api::namespaced(context.client.clone(), &key.namespace);
    match api.get_opt(&name).await {
        Err(error) => return lost(message(&error), false),
        Ok(Some(newest)) => {
            if let Err(foreign) = Owner::of(context, key).check("Secret", &newest) {
                return lost(foreign.to_string(), false);
            }
            let newest = context.caches.secrets.put(newest);
            if let Ok(found) = SystemPasswords::from_secret(&newest) {
                return stored(context, key, cluster, found);
            }
        }
        Ok(None) => {}
    }
    let Recovery { repair, .. } = Recovery::new(context, key, cluster, "");
    let doors = doors(context, key, cluster).await;
    let open = join_all(doors.iter().map(|door| repair.is_possible(door))).await;
    lost(
        format!(
            "{damage}: the running servers know the operator by no other password. Restore it from a backup; or open the \
             user default at every member for a moment (ACL SETUSER default on nopass ~* &* +@all): the operator makes a \
             new Secret then, and sets all users as the spec has them"
        ),
        open.contains(&true),
    )
}

fn stored(
    context: &Context,
    key: &ClusterKey,
    cluster: &ValkeyCluster,
    found: SystemPasswords,
) -> (Option<SystemPasswords>, Credentials) {
    context.passwords.note(key, cluster, &found);
    (Some(found), Credentials::Stored)
}

/// Creates the Secret with the observed passwords, which the other objects contain; else with those that servers accept.
pub async fn create(
    context: &Context,
    key: &ClusterKey,
    cluster: &ValkeyCluster,
    observed: Option<&SystemPasswords>,
) -> Result<Vec<Change>, Failure> {
    let passwords = match observed {
        Some(passwords) => passwords.clone(),
        None => recover(context, key, cluster).await?,
    };
    let secret = system_secret(cluster, &passwords);
    let change = apply::create(context, &context.caches.secrets, key, ObjectKind::SystemSecret, &secret).await?;
    Ok(change.into_iter().collect())
}

/// The pods of members.
fn members(context: &Context, key: &ClusterKey) -> Vec<Arc<Pod>> {
    let mut pods = context.caches.pods.list(key);
    pods.retain(|pod| member_of(pod, &key.name).is_some());
    pods
}

/// Whether there may be servers that have the previous passwords.
fn has_servers(context: &Context, key: &ClusterKey, cluster: &ValkeyCluster) -> bool {
    cluster.status.as_ref().is_some_and(|status| status.formed)
        || !members(context, key).is_empty()
        || !Live::read(context, key).by_member().is_empty()
}

/// What is left when the Secret is lost: the passwords that pods use are in another Secret.
struct Recovery {
    exporter: Option<String>,
    replication: Option<String>,
    repair: Repair,
}

impl Recovery {
    fn new(context: &Context, key: &ClusterKey, cluster: &ValkeyCluster, operator: &str) -> Self {
        let of_pods = context.caches.secrets.get(key, &names::acl_secret(&key.name));
        let (exporter, replication) = of_pods.map(|secret| passwords_of_pods(&secret)).unwrap_or_default();
        let memory = cluster.status.as_ref().map(valkey::memory).unwrap_or_default();
        let known = [(EXPORTER, exporter.clone()), (REPLICATION, replication.clone())];
        let known = known.into_iter().filter_map(|(user, password)| Some((user, password?)));
        let repair = Repair::with(&memory, known, operator);
        Self {
            exporter,
            replication,
            repair,
        }
    }
}

/// Sets the operator's user with a new password on every server that is proven to be a member and has a user `default`
/// that may do so. Returns the passwords that the servers accept then.
async fn recover(context: &Context, key: &ClusterKey, cluster: &ValkeyCluster) -> Result<SystemPasswords, Failure> {
    let none = |_| Failure::rejected("no random numbers could be had from the system");
    let fresh = SystemPasswords::generate(&SystemRandom::new()).map_err(none)?;
    let Recovery {
        exporter,
        replication,
        repair,
    } = Recovery::new(context, key, cluster, &fresh.operator);
    let doors = doors(context, key, cluster).await;
    let admitted = join_all(doors.iter().map(|door| repair.perform(door))).await;
    let open: Vec<Node> = admitted.into_iter().filter_map(Result::ok).collect();
    let Some(first) = open.first() else {
        return Err(Failure::rejected(
            "no member lets the operator in as the user default any more",
        ));
    };
    let running = first.config_get("masterauth").await.ok().flatten();
    tracing::warn!(cluster = %key, members = open.len(), "the Secret with the operator's passwords was lost: let in as the user default, with a new one");
    Ok(SystemPasswords {
        exporter: exporter.unwrap_or(fresh.exporter),
        replication: replication.or(running).unwrap_or(fresh.replication),
        ..fresh
    })
}

/// The endpoints of a cluster's servers.
async fn doors(context: &Context, key: &ClusterKey, cluster: &ValkeyCluster) -> Vec<Endpoint> {
    let secrets = context
        .secrets
        .of(
            &context.client,
            &context.caches,
            key,
            crate::objects::referenced_secrets(cluster),
        )
        .await;
    let certificates = Certificates::of(cluster, &secrets.unwrap_or_default(), None);
    let tls = match certificates.map(|certificates| certificates.tls()) {
        None => None,
        Some(Ok(tls)) => Some(tls),
        Some(Err(_)) => return Vec::new(),
    };
    let address = |pod: &Pod| pod.status.as_ref()?.pod_ip.as_ref()?.parse().ok();
    let pods = members(context, key);
    let endpoints = pods.iter().filter_map(|pod| address(pod)).map(|ip| Endpoint {
        address: SocketAddr::new(ip, PORT),
        credentials: None,
        tls: tls.clone(),
    });
    endpoints.collect()
}

//! The operator's own passwords: generated once, before anything else. They are generated again only if a server
//! accepts the operator without a password.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use candor_api::ValkeyCluster;
use candor_engine::kinds::valkey;
use candor_engine::outcome::{Change, Did, Failure, ObjectKind};
use futures::future::join_all;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::api::PostParams;
use kube::{Api, ResourceExt};
use ring::rand::SystemRandom;
use valkey_admin::client::{Endpoint, Node};

use crate::act::apply::message;
use crate::act::ownership::{Foreign, Owner};
use crate::credentials::certificates::Certificates;
use crate::credentials::repair::Repair;
use crate::objects::{EXPORTER, PORT, REPLICATION, SystemPasswords, names, passwords_of_pods, system_secret};
use crate::observe::pods::member_of;
use crate::observe::pods_unknown;
use crate::observe::workloads::Live;
use crate::runtime::cache::ClusterKey;
use crate::runtime::context::{Context, MANAGER};

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

/// Why there are no passwords.
#[derive(Debug)]
pub enum NoPasswords {
    /// The Secret could not be written.
    Failed(Failure),
    /// Running servers have passwords that are lost; the message says what to do.
    LockedOut(String),
    /// Pods could not be listed: the operator cannot find servers that could accept it.
    Blind(String),
}

impl From<Failure> for NoPasswords {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// The passwords of a cluster, and the change if they had to be created.
pub async fn passwords(
    context: &Context,
    key: &ClusterKey,
    cluster: &ValkeyCluster,
) -> Result<(SystemPasswords, Option<Change>), NoPasswords> {
    let found = find_or_make(context, key, cluster).await?;
    context.passwords.note(key, cluster, &found.0);
    Ok(found)
}

/// The passwords of a cluster without a write: the existing ones, else new ones that are never stored. `None` if
/// running servers have others.
pub fn rehearsed(context: &Context, key: &ClusterKey, cluster: &ValkeyCluster) -> Option<SystemPasswords> {
    let there = Owner::of(context, key).get(&context.caches.secrets, &names::system_secret(&key.name));
    let found = there.and_then(|secret| SystemPasswords::from_secret(&secret).ok());
    let fresh = || SystemPasswords::generate(&SystemRandom::new()).ok();
    found.or_else(|| context.passwords.of(key, cluster)).or_else(|| {
        if has_servers(context, key, cluster) {
            None
        } else {
            fresh()
        }
    })
}

async fn find_or_make(
    context: &Context,
    key: &ClusterKey,
    cluster: &ValkeyCluster,
) -> Result<(SystemPasswords, Option<Change>), NoPasswords> {
    let name = names::system_secret(&key.name);
    let owner = Owner::of(context, key);
    let there = context.caches.secrets.get(key, &name);
    if let Some(there) = &there {
        checked(&owner, there)?;
    }
    let damage = match there.as_deref().map(SystemPasswords::from_secret) {
        Some(Ok(found)) => return Ok((found, None)),
        Some(Err(problem)) => Some(problem.to_string()),
        None => None,
    };
    let passwords = match context.passwords.of(key, cluster) {
        Some(known) => known,
        None if has_servers(context, key, cluster) => recover(context, key, cluster, damage).await?,
        None => fresh()?,
    };
    // A damaged Secret is written with the other objects.
    if there.is_some() {
        return Ok((passwords, None));
    }
    let api: Api<Secret> = Api::namespaced(context.client.clone(), &key.namespace);
    let params = PostParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PostParams::default()
    };
    match api.create(&params, &system_secret(cluster, &passwords)).await {
        Ok(made) => {
            context.caches.secrets.put(made);
            let change = Change {
                kind: ObjectKind::SystemSecret,
                name,
                did: Did::Created,
            };
            Ok((passwords, Some(change)))
        }
        // Created by an earlier reconcile that lost the response: use those passwords, because servers may already have
        // them.
        Err(kube::Error::Api(status)) if status.code == 409 => {
            let there = api.get(&name).await.map_err(|error| failed(message(&error)))?;
            checked(&owner, &there)?;
            let there = context.caches.secrets.put(there);
            Ok((read(&there)?, None))
        }
        Err(error) => Err(failed(message(&error)).into()),
    }
}

/// Rejects a Secret of that name that belongs to another owner: it does not hold the operator's passwords.
fn checked(owner: &Owner, secret: &Secret) -> Result<(), Failure> {
    let foreign = |foreign: Foreign| Failure::of_object(ObjectKind::SystemSecret, true, foreign.to_string());
    owner.check("Secret", secret).map_err(foreign)
}

fn failed(message: String) -> Failure {
    Failure::of_object(ObjectKind::SystemSecret, false, message)
}

fn fresh() -> Result<SystemPasswords, Failure> {
    let none = |_| failed("no random numbers could be had from the system".to_owned());
    SystemPasswords::generate(&SystemRandom::new()).map_err(none)
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

/// The Secret is missing or unreadable, and its content is not cached. The passwords that pods use are in another
/// Secret. The operator's own password is lost. A new one is useful only if a server that is proven to be a member lets
/// the operator set it, because its user `default` needs no password. Otherwise no password is generated: users may
/// still restore the old Secret from a backup.
async fn recover(
    context: &Context,
    key: &ClusterKey,
    cluster: &ValkeyCluster,
    damage: Option<String>,
) -> Result<SystemPasswords, NoPasswords> {
    let name = names::system_secret(&key.name);
    let api: Api<Secret> = Api::namespaced(context.client.clone(), &key.namespace);
    let newest = api.get_opt(&name).await.map_err(|error| failed(message(&error)))?;
    if let Some(newest) = newest {
        checked(&Owner::of(context, key), &newest)?;
        let newest = context.caches.secrets.put(newest);
        if let Ok(found) = SystemPasswords::from_secret(&newest) {
            return Ok(found);
        }
    }
    if let Some(message) = pods_unknown(context, key).await {
        return Err(NoPasswords::Blind(message));
    }
    let passwords = fresh()?;
    let of_pods = context.caches.secrets.get(key, &names::acl_secret(&key.name));
    let (exporter, replication) = of_pods.map(|secret| passwords_of_pods(&secret)).unwrap_or_default();
    let memory = cluster.status.as_ref().map(valkey::memory).unwrap_or_default();
    let known = [(EXPORTER, exporter.clone()), (REPLICATION, replication.clone())];
    let known = known.into_iter().filter_map(|(user, password)| Some((user, password?)));
    let repair = Repair::with(&memory, known, &passwords.operator);
    let may = context.leadership.is_ours() && !valkey::desired(cluster).paused;
    let doors = if may {
        doors(context, key, cluster).await
    } else {
        Vec::new()
    };
    let open = admit(doors, &repair).await;
    let Some(first) = open.first() else {
        let why = damage.unwrap_or_else(|| format!("Secret {name} is gone"));
        return Err(NoPasswords::LockedOut(format!(
            "{why}: the running servers know the operator by no other password. Restore it from a backup; or open the user \
             default at every member for a moment (ACL SETUSER default on nopass ~* &* +@all): the operator makes a new \
             Secret then, and sets all users as the spec has them"
        )));
    };
    let running = first.config_get("masterauth").await.ok().flatten();
    tracing::warn!(cluster = %key, members = open.len(), "the Secret with the operator's passwords was lost: let in as the user default, with a new one");
    Ok(SystemPasswords {
        exporter: exporter.unwrap_or(passwords.exporter),
        replication: replication.or(running).unwrap_or(passwords.replication),
        ..passwords
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

/// Sets the operator's user on every server that is proven to be a member and has a user `default` that may do so;
/// returns those servers.
async fn admit(doors: Vec<Endpoint>, repair: &Repair) -> Vec<Node> {
    let knocks = doors.iter().map(|door| repair.perform(door));
    join_all(knocks).await.into_iter().filter_map(Result::ok).collect()
}

fn read(secret: &Secret) -> Result<SystemPasswords, Failure> {
    SystemPasswords::from_secret(secret)
        .map_err(|problem| Failure::of_object(ObjectKind::SystemSecret, true, problem.to_string()))
}

//! The operator's own passwords: made once, before anything else, and never made anew.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use candor_api::ValkeyCluster;
use candor_engine::outcome::{Change, Did, Failure, ObjectKind};
use k8s_openapi::api::core::v1::Secret;
use kube::api::PostParams;
use kube::{Api, ResourceExt};
use ring::rand::SystemRandom;

use crate::apply::words;
use crate::cache::ClusterKey;
use crate::context::{Context, MANAGER};
use crate::objects::{SystemPasswords, names, system_secret};

/// The passwords of the clusters seen so far. When somebody deletes the Secret it is written again as it was: running
/// servers know no other passwords.
#[derive(Default)]
pub struct KnownPasswords(Mutex<HashMap<ClusterKey, Known>>);

/// Passwords, and the uid of the cluster they are of.
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

    /// A cluster is gone.
    pub fn forget(&self, key: &ClusterKey) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

/// The passwords of a cluster, and the change where they had to be made.
pub async fn passwords(
    context: &Context,
    key: &ClusterKey,
    cluster: &ValkeyCluster,
) -> Result<(SystemPasswords, Option<Change>), Failure> {
    let found = find_or_make(context, key, cluster).await?;
    context.passwords.note(key, cluster, &found.0);
    Ok(found)
}

async fn find_or_make(
    context: &Context,
    key: &ClusterKey,
    cluster: &ValkeyCluster,
) -> Result<(SystemPasswords, Option<Change>), Failure> {
    let name = names::system_secret(&key.name);
    if let Some(secret) = context.caches.secrets.get(key, &name) {
        return Ok((read(&secret)?, None));
    }
    let failed = |words: String| Failure::of_object(ObjectKind::SystemSecret, false, words);
    let fresh = match context.passwords.of(key, cluster) {
        Some(known) => known,
        None => SystemPasswords::generate(&SystemRandom::new())
            .map_err(|_| failed("no random numbers could be had from the system".to_owned()))?,
    };
    let api: Api<Secret> = Api::namespaced(context.client.clone(), &key.namespace);
    let params = PostParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PostParams::default()
    };
    match api.create(&params, &system_secret(cluster, &fresh)).await {
        Ok(made) => {
            context.caches.secrets.put(made);
            let change = Change {
                kind: ObjectKind::SystemSecret,
                name,
                did: Did::Created,
            };
            Ok((fresh, Some(change)))
        }
        // Made by an earlier look whose answer was lost: those passwords count, servers may know them.
        Err(kube::Error::Api(status)) if status.code == 409 => {
            let there = api.get(&name).await.map_err(|error| failed(words(&error)))?;
            let there = context.caches.secrets.put(there);
            Ok((read(&there)?, None))
        }
        Err(error) => Err(failed(words(&error))),
    }
}

fn read(secret: &Secret) -> Result<SystemPasswords, Failure> {
    SystemPasswords::from_secret(secret)
        .map_err(|problem| Failure::of_object(ObjectKind::SystemSecret, true, problem.to_string()))
}

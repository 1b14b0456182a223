//! Whether the existing operator of `RedkeyCluster` still runs. Two operators of one cluster would undo the work of each
//! other, so Candor changes nothing while there is a sign of it:
//!
//! - Its leader election Lease is renewed, in any namespace that may be read.
//! - Its field manager has written lately to a `StatefulSet` that it made, or to the `RedkeyCluster`. Without leader
//!   election this is the only sign.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use candor_api::RedkeyCluster;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use tokio::time::timeout;

use super::objects::is_theirs;
use crate::act::ownership::Owner;
use crate::manifests::permissions::OTHER_OPERATOR;
use crate::runtime::cache::ClusterKey;
use crate::runtime::context::Context;

/// How long a reading is valid.
const FRESH: Duration = Duration::from_secs(5);
/// The longest time that a reconcile waits for a reading.
const PATIENCE: Duration = Duration::from_millis(500);
/// A Lease that was not renewed for this long beyond its duration has expired, even if clocks differ a little.
const GRACE: SignedDuration = SignedDuration::from_secs(15);
/// A write of the field manager is a sign of the operator for this long: it waits up to 30 s between two steps.
const RECENT: SignedDuration = SignedDuration::from_secs(120);
/// The names of its program, which are its field managers.
const MANAGERS: [&str; 2] = ["manager", "redkey-operator"];

/// What was read lately. Everything here may be lost in a crash.
#[derive(Default)]
pub struct OtherOperator {
    lease: Mutex<Option<(Instant, Option<String>)>>,
    writes: Mutex<HashMap<ClusterKey, (Instant, Option<String>)>>,
}

impl OtherOperator {
    /// Removes what is known about a deleted cluster.
    pub fn forget(&self, key: &ClusterKey) {
        self.writes.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }

    /// Why this cluster must not be changed.
    pub async fn find(&self, context: &Context, key: &ClusterKey) -> Option<String> {
        match self.lease(context).await {
            Some(message) => Some(message),
            None => self.writes(context, key).await,
        }
    }

    async fn lease(&self, context: &Context) -> Option<String> {
        let known = self.lease.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let last = match known {
            Some((at, message)) if at.elapsed() < FRESH => return message,
            known => known.and_then(|(_, message)| message),
        };
        // What could not be read is as it was.
        let found = held_lease(&context.client, &context.settings.namespaces)
            .await
            .unwrap_or(last);
        *self.lease.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), found.clone()));
        found
    }

    /// Writes to a cluster that still has the pod template of the existing operator.
    async fn writes(&self, context: &Context, key: &ClusterKey) -> Option<String> {
        let live = Owner::of(context, key).get(&context.caches.stateful_sets, &key.name)?;
        if !is_theirs(&live) {
            return None;
        }
        let lock = || self.writes.lock().unwrap_or_else(PoisonError::into_inner);
        let known = lock().get(key).cloned();
        if let Some((_, message)) = known.filter(|(at, _)| at.elapsed() < FRESH) {
            return message;
        }
        let found = recent_write(&context.client, key).await;
        lock().insert(key.clone(), (Instant::now(), found.clone()));
        found
    }
}

/// The Lease of the existing operator, if it is held. A Lease that may not be read is no sign; none if the API server did
/// not respond.
async fn held_lease(client: &Client, namespaces: &[String]) -> Option<Option<String>> {
    let apis: Vec<Api<Lease>> = if namespaces.is_empty() {
        vec![Api::all(client.clone())]
    } else {
        let api = |namespace: &String| Api::namespaced(client.clone(), namespace);
        namespaces.iter().map(api).collect()
    };
    let named = ListParams::default().fields(&format!("metadata.name={OTHER_OPERATOR}"));
    for api in apis {
        let leases = match timeout(PATIENCE, api.list(&named)).await {
            Ok(Ok(list)) => list.items,
            Ok(Err(kube::Error::Api(status))) if status.code == 403 => {
                tracing::debug!(status.message, "the Lease of the existing operator may not be read");
                continue;
            }
            Ok(Err(_)) | Err(_) => return None,
        };
        let held = leases.iter().find(|lease| is_held(lease, Timestamp::now()));
        if let Some(lease) = held {
            let holder = lease.spec.as_ref().and_then(|spec| spec.holder_identity.clone());
            let (holder, namespace) = (holder.unwrap_or_default(), lease.namespace().unwrap_or_default());
            return Some(Some(format!(
                "{holder} holds the lease {namespace}/{OTHER_OPERATOR}: the existing operator runs. Stop it to hand over \
                 its clusters"
            )));
        }
    }
    Some(None)
}

fn is_held(lease: &Lease, now: Timestamp) -> bool {
    let Some(spec) = &lease.spec else { return false };
    let held = spec.holder_identity.as_ref().is_some_and(|holder| !holder.is_empty());
    let lasts = SignedDuration::from_secs(i64::from(spec.lease_duration_seconds.unwrap_or(15)));
    let renewed = spec.renew_time.as_ref().map(|time| time.0);
    held && renewed.is_some_and(|renewed| now.duration_since(renewed) < lasts + GRACE)
}

/// A write of the existing operator to a cluster or its `StatefulSet`. The caches do not keep the managed fields.
async fn recent_write(client: &Client, key: &ClusterKey) -> Option<String> {
    let named = ListParams::default().fields(&format!("metadata.name={}", key.name));
    let sets: Api<StatefulSet> = Api::namespaced(client.clone(), &key.namespace);
    let clusters: Api<RedkeyCluster> = Api::namespaced(client.clone(), &key.namespace);
    let set = timeout(PATIENCE, sets.list_metadata(&named)).await;
    let cluster = timeout(PATIENCE, clusters.list_metadata(&named)).await;
    let set = set.ok()?.ok()?.items.into_iter().next().map(|one| one.metadata);
    let cluster = cluster.ok()?.ok()?.items.into_iter().next().map(|one| one.metadata);
    let written = [("StatefulSet", set), ("RedkeyCluster", cluster)]
        .into_iter()
        .find_map(|(kind, metadata)| {
            let fields = metadata?.managed_fields?;
            fields
                .iter()
                .any(|entry| is_recent(entry, Timestamp::now()))
                .then_some(kind)
        });
    written.map(|kind| {
        format!(
            "the existing operator has written to {kind} {} in the last 2 minutes. Stop it to hand over its clusters",
            key.name
        )
    })
}

fn is_recent(entry: &ManagedFieldsEntry, now: Timestamp) -> bool {
    let theirs = entry
        .manager
        .as_ref()
        .is_some_and(|name| MANAGERS.contains(&name.as_str()));
    let written = entry.time.as_ref().map(|time| time.0);
    theirs && written.is_some_and(|written| now.duration_since(written) < RECENT)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).unwrap()
    }

    #[test]
    fn a_lease_is_held_until_it_expires_or_is_released() {
        let lease = |holder: &str| -> Lease {
            serde_json::from_value(json!({"metadata": {"name": OTHER_OPERATOR}, "spec": {
                "holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": at(0).to_string()}}))
            .unwrap()
        };
        assert!(is_held(&lease("redkey-operator-0"), at(2)));
        assert!(is_held(&lease("redkey-operator-0"), at(29)));
        assert!(!is_held(&lease("redkey-operator-0"), at(30)));
        assert!(!is_held(&lease(""), at(2)), "it was released");
        assert!(!is_held(&Lease::default(), at(2)));
    }

    #[test]
    fn only_recent_writes_of_the_existing_operator_count() {
        let entry = |manager: &str| -> ManagedFieldsEntry {
            serde_json::from_value(json!({"manager": manager, "operation": "Update", "time": at(0).to_string()}))
                .unwrap()
        };
        assert!(is_recent(&entry("manager"), at(119)));
        assert!(!is_recent(&entry("manager"), at(120)));
        assert!(!is_recent(&entry("kubectl-edit"), at(1)));
        assert!(!is_recent(&entry("candor"), at(1)));
    }
}

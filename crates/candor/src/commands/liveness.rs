//! Checks by its lease whether an operator is running: without one, a status may be outdated.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::ListParams;
use kube::{Api, Client};
use kube_status::tree::since;
use serde::Serialize;

/// The lease's name, unless the operator is configured with another.
pub const LEASE: &str = "candor-operator";
/// The assumed duration of a lease that has none, in seconds.
const USUAL: i32 = 15;

/// What the lease says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "state")]
pub enum Liveness {
    /// An operator holds it.
    Alive {
        /// The holder.
        holder: String,
        /// The name of the lease.
        lease: String,
    },
    /// No operator renews it.
    Gone {
        /// The last holder; `None` after a clean shutdown.
        holder: Option<String>,
        /// The name of the lease.
        lease: String,
        /// Since when no operator has been active.
        since: Option<Timestamp>,
    },
    /// There is no lease: an operator without leader election needs none, and one that never ran has none.
    NoLease,
    /// Leases could not be read.
    Unknown {
        /// The error message.
        message: String,
    },
}

impl Liveness {
    /// What a lease says at a given time.
    pub fn of(lease: &Lease, now: Timestamp) -> Self {
        let metadata = &lease.metadata;
        let place = format!(
            "{}/{}",
            metadata.namespace.as_deref().unwrap_or_default(),
            metadata.name.as_deref().unwrap_or_default()
        );
        let spec = lease.spec.clone().unwrap_or_default();
        let holder = spec.holder_identity.filter(|holder| !holder.is_empty());
        let renewed = spec.renew_time.map(|time| time.0);
        let lasts = i64::from(spec.lease_duration_seconds.unwrap_or(USUAL));
        let fresh = renewed.is_some_and(|renewed| now.duration_since(renewed) <= SignedDuration::from_secs(lasts));
        match holder {
            Some(holder) if fresh => Self::Alive { holder, lease: place },
            holder => Self::Gone {
                // An operator that releases the lease clears its fields; the time of that write remains in the
                // metadata.
                since: renewed.or_else(|| written(lease)),
                holder,
                lease: place,
            },
        }
    }

    /// As text, if it must be shown.
    pub fn message(&self, now: Timestamp) -> Option<String> {
        match self {
            Self::Alive { .. } => None,
            Self::Gone {
                holder,
                lease,
                since: at,
            } => {
                let long = at.map_or(String::new(), |at| format!(" for {}", since(at, now)));
                let last = holder.as_ref().map_or_else(
                    || "the last one released it".to_owned(),
                    |holder| format!("last renewed by {holder}"),
                );
                Some(format!(
                    "No operator has been alive{long} (lease {lease}, {last}): nothing is healed or changed, and what follows is that old."
                ))
            }
            Self::NoLease => Some(format!(
                "No operator is known here: there is no lease {LEASE}. Install one with candor install, or see: candor doctor"
            )),
            Self::Unknown { message } => Some(format!("Whether an operator is alive is not known: {message}")),
        }
    }
}

/// When a lease was last written.
fn written(lease: &Lease) -> Option<Timestamp> {
    let fields = lease.metadata.managed_fields.as_ref()?;
    fields.iter().filter_map(|entry| Some(entry.time.as_ref()?.0)).max()
}

/// Looks for the lease in the given namespace, or in all namespaces, or in the cluster's namespace if listing all is
/// not allowed.
pub async fn fetch(client: &Client, operator_namespace: Option<&str>, near: &str, now: Timestamp) -> Liveness {
    let chosen = |leases: Vec<Lease>| {
        let ours = leases
            .into_iter()
            .filter(|lease| lease.metadata.name.as_deref() == Some(LEASE));
        let newest = ours.max_by_key(|lease| lease.spec.as_ref().and_then(|spec| Some(spec.renew_time.as_ref()?.0)));
        newest.map_or(Liveness::NoLease, |lease| Liveness::of(&lease, now))
    };
    let only = ListParams::default().fields(&format!("metadata.name={LEASE}"));
    let list = |api: Api<Lease>| {
        let only = only.clone();
        async move { api.list(&only).await }
    };
    let first = match operator_namespace {
        Some(namespace) => list(Api::namespaced(client.clone(), namespace)).await,
        None => list(Api::all(client.clone())).await,
    };
    match first {
        Ok(found) => chosen(found.items),
        Err(_) if operator_namespace.is_none() => match list(Api::namespaced(client.clone(), near)).await {
            Ok(found) if !found.items.is_empty() => chosen(found.items),
            Ok(_) => Liveness::Unknown {
                message: "leases of other namespaces may not be read; name the operator's with --operator-namespace"
                    .to_owned(),
            },
            Err(error) => unknown(&error),
        },
        Err(error) => unknown(&error),
    }
}

fn unknown(error: &kube::Error) -> Liveness {
    let message = match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    };
    Liveness::Unknown { message }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn lease(spec: &serde_json::Value) -> Lease {
        serde_json::from_value(json!({
            "metadata": {"name": LEASE, "namespace": "candor", "managedFields": [{"time": "2026-02-05T09:59:00Z"}]},
            "spec": spec,
        }))
        .unwrap()
    }

    #[test]
    fn a_lease_tells_whether_somebody_acts_and_since_when_not() {
        let held = lease(
            &json!({"holderIdentity": "op-1", "renewTime": "2026-02-05T10:00:00.000000Z", "leaseDurationSeconds": 15}),
        );
        assert!(matches!(
            Liveness::of(&held, at("2026-02-05T10:00:15Z")),
            Liveness::Alive { .. }
        ));
        let late = at("2026-02-05T10:05:10Z");
        let gone = Liveness::of(&held, late);
        let gone_at = |found: &Liveness| match found {
            Liveness::Gone { since, .. } => *since,
            other => panic!("{other:?}"),
        };
        assert_eq!(gone_at(&gone), Some(at("2026-02-05T10:00:00Z")));
        let message = gone.message(late).unwrap();
        assert!(
            message.starts_with(
                "No operator has been alive for 5m10s (lease candor/candor-operator, last renewed by op-1)"
            )
        );
        let given_back = Liveness::of(&lease(&json!({})), late);
        assert_eq!(gone_at(&given_back), Some(at("2026-02-05T09:59:00Z")));
        assert!(given_back.message(late).unwrap().contains("the last one released it"));
    }
}

//! Checks whether the existing operator of `RedkeyCluster` still runs: while it does, Candor makes no changes.

use candor_operator::manifests::permissions::OTHER_OPERATOR as LEASE;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::ListParams;

use super::{Finding, Level};
use crate::commands::connect::Connected;
use crate::commands::liveness::Liveness;

/// A warning if the existing operator holds its lease. Leases that cannot be read are reported elsewhere.
pub(super) async fn other_operator(at: &Connected) -> Option<Finding> {
    let leases: Api<Lease> = Api::all(at.client.clone());
    let only = ListParams::default().fields(&format!("metadata.name={LEASE}"));
    let found = leases.list(&only).await.ok()?;
    finding(&found.items, Timestamp::now())
}

fn finding(leases: &[Lease], now: Timestamp) -> Option<Finding> {
    let alive = leases.iter().find_map(|lease| match Liveness::of(lease, now) {
        Liveness::Alive { holder, lease } => Some((holder, lease)),
        _ => None,
    })?;
    let (holder, lease) = alive;
    Some(Finding::new(
        Level::Warning,
        "other operator of RedkeyClusters",
        format!("{holder} holds the lease {lease}: Candor makes no changes to RedkeyClusters while it runs"),
        "stop it: scale its Deployment to 0 (docs/moving-from-redkey.md)",
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_other_operator_is_reported_only_while_it_renews_its_lease() {
        let lease = json!({"metadata": {"name": LEASE, "namespace": "redkey-operator"}, "spec": {"holderIdentity": "old-0",
            "renewTime": "2026-02-05T10:00:00.000000Z", "leaseDurationSeconds": 15}});
        let leases: [Lease; 1] = [serde_json::from_value(lease).unwrap()];
        let at = |time: &str| finding(&leases, time.parse().unwrap());
        let found = at("2026-02-05T10:00:10Z").unwrap();
        assert!(
            found
                .found
                .starts_with("old-0 holds the lease redkey-operator/db95d8a6.inditex.dev"),
            "{found:?}"
        );
        assert_eq!(at("2026-02-05T10:01:00Z"), None);
        assert_eq!(finding(&[], Timestamp::UNIX_EPOCH), None);
    }
}

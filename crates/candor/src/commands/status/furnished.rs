//! Snapshots for tests: what surrounds the members of a cluster.

use serde_json::json;

use super::fixtures::{healthy, valkey};
use crate::commands::snapshot::Snapshot;
use crate::commands::surroundings::Surroundings;

/// A Service, and a budget that lets one pod be evicted.
pub fn around() -> Surroundings {
    let service = json!({"metadata": {"name": "valkey-shop-client", "namespace": "prod"},
        "spec": {"ports": [{"name": "valkey", "port": 6379}]}});
    let budget = json!({"metadata": {"name": "valkey-shop", "namespace": "prod"},
        "status": {"disruptionsAllowed": 1, "currentHealthy": 6, "desiredHealthy": 5, "expectedPods": 6}});
    Surroundings {
        service: serde_json::from_value(service).unwrap(),
        budget: serde_json::from_value(budget).unwrap(),
        ..Surroundings::default()
    }
}

/// With TLS, users and volumes.
pub fn furnished() -> Snapshot {
    let mut snapshot = healthy();
    let spec = &mut valkey(&mut snapshot).spec;
    spec.users = serde_json::from_value(json!([{"name": "app"}, {"name": "reader"}])).unwrap();
    let tls = json!({"tls": {"certificates": {"server": {"secretName": "shop-tls"}}}});
    spec.networking = serde_json::from_value(tls).unwrap();
    snapshot.around.expires = Some("2026-02-14T10:00:00Z".parse().unwrap());
    let claim = |phase: &str| json!({"metadata": {"name": "valkey-shop-0-0-data"}, "status": {"phase": phase, "capacity": {"storage": "1Gi"}}});
    snapshot.around.claims = [claim("Bound"), claim("Bound"), claim("Pending")]
        .map(|one| serde_json::from_value(one).unwrap())
        .into();
    snapshot
}

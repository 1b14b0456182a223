//! The risks of a plan.

use candor_api::ValkeyCluster;

use super::story::Sum;
use crate::commands::output::some;

/// What a user should know before applying it; empty if nothing is done.
pub fn risks(wished: &ValkeyCluster, sum: &Sum) -> Vec<String> {
    let spec = &wished.spec;
    let (shards, replicas) = (spec.shards, spec.replicas.unwrap_or(0));
    let mut all = Vec::new();
    if replicas > 0 && shards <= 2 {
        all.push(format!(
            "With {} there is no majority of primaries once one is lost: the servers cannot elect a replica by themselves \
             and wait for the operator",
            some(shards.into(), "shard")
        ));
    }
    if replicas == 0 {
        let lost = if spec.persistence.is_some() {
            "until it is back"
        } else {
            "until it is back, and its keys are lost: there is neither a replica nor a volume"
        };
        all.push(format!("Without replicas a lost member takes its slots down {lost}"));
        if sum.restarts > 0 {
            all.push(format!(
                "{} of the only copy of a shard: its slots are down meanwhile",
                some(i64::try_from(sum.restarts).unwrap_or(i64::MAX), "restart")
            ));
        }
    }
    if let Some(volume) = spec.persistence.as_ref().filter(|_| sum.created > 0) {
        all.push(format!(
            "{} of {} each would be claimed",
            some(i64::try_from(sum.created).unwrap_or(i64::MAX), "new volume"),
            volume.size.0
        ));
    }
    all
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn two_shards_no_replicas_and_new_volumes_are_named() {
        let told = |spec: serde_json::Value, restarts: usize, created: usize| {
            let cluster = json!({"apiVersion": "valkey.io/v1alpha1", "kind": "ValkeyCluster", "metadata": {"name": "a"}, "spec": spec});
            let sum = Sum {
                created,
                restarts,
                ..Sum::default()
            };
            risks(&serde_json::from_value(cluster).unwrap(), &sum).join("\n")
        };
        assert_eq!(told(json!({"shards": 3, "replicas": 1}), 6, 0), "");
        assert!(told(json!({"shards": 2, "replicas": 1}), 0, 4).starts_with("With 2 shards there is no majority"));
        let bare = told(json!({"shards": 3}), 3, 0);
        assert!(
            bare.contains("its keys are lost") && bare.contains("3 restarts of the only copy"),
            "{bare}"
        );
        let kept = told(
            json!({"shards": 3, "replicas": 1, "persistence": {"size": "10Gi"}}),
            0,
            2,
        );
        assert_eq!(kept, "2 new volumes of 10Gi each would be claimed");
    }
}

//! The risks of a plan.

use super::preview::Totals;
use crate::commands::output::some;

/// The desired shape of a cluster.
pub struct Shape {
    /// What a shard is called, in the singular.
    pub unit: &'static str,
    /// How many shards.
    pub shards: i32,
    /// How many replicas each has.
    pub replicas: i32,
    /// The size of each volume; `None` without volumes.
    pub volume: Option<String>,
}

/// What a user should know before applying it; empty if nothing.
pub fn risks(shape: &Shape, sum: &Totals) -> Vec<String> {
    let (shards, replicas) = (shape.shards, shape.replicas);
    let mut all = Vec::new();
    if replicas > 0 && shards <= 2 {
        all.push(format!(
            "With {} there is no majority of primaries once one is lost: the servers cannot elect a replica by themselves \
             and wait for the operator",
            some(shards.into(), shape.unit)
        ));
    }
    if replicas == 0 {
        let lost = if shape.volume.is_some() {
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
    if let Some(volume) = shape.volume.as_ref().filter(|_| sum.created > 0) {
        all.push(format!(
            "{} of {} each would be claimed",
            some(i64::try_from(sum.created).unwrap_or(i64::MAX), "new volume"),
            volume
        ));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_shards_no_replicas_and_new_volumes_are_named() {
        let found = |shards: i32, replicas: i32, volume: Option<&str>, restarts: usize, created: usize| {
            let shape = Shape {
                unit: "shard",
                shards,
                replicas,
                volume: volume.map(str::to_owned),
            };
            let sum = Totals {
                created,
                restarts,
                ..Totals::default()
            };
            risks(&shape, &sum).join("\n")
        };
        assert_eq!(found(3, 1, None, 6, 0), "");
        assert!(found(2, 1, None, 0, 4).starts_with("With 2 shards there is no majority"));
        let bare = found(3, 0, None, 3, 0);
        assert!(
            bare.contains("its keys are lost") && bare.contains("3 restarts of the only copy"),
            "{bare}"
        );
        let kept = found(3, 1, Some("10Gi"), 0, 2);
        assert_eq!(kept, "2 new volumes of 10Gi each would be claimed");
    }
}

//! What a user does to a cluster in one round.

use candor_tests::Kind;
use serde_json::{Value, json};

use crate::mishaps::Lot;

/// The spec of a new cluster: three shards with a replica each. Every operation keeps its keys.
pub fn whole(kind: Kind) -> Value {
    match kind {
        Kind::ValkeyCluster => json!({"shards": 3, "replicas": 1}),
        Kind::RedkeyCluster => json!({"primaries": 3, "replicasPerPrimary": 1, "purgeKeysOnRebalance": false,
            "image": "redis:8.0"}),
    }
}

/// Every change, in a random order that respects dependencies.
pub fn changes(kind: Kind, lot: &mut Lot) -> Vec<(&'static str, Value)> {
    let mut all = match kind {
        Kind::ValkeyCluster => of_valkey(lot),
        Kind::RedkeyCluster => of_redkey(lot),
    };
    let mut order = Vec::new();
    while !all.is_empty() {
        let next = usize::try_from(lot.below(all.len() as u64)).unwrap_or(0);
        let (text, spec, then) = all.swap_remove(next);
        all.extend(then.map(|(text, spec)| (text, spec, None)));
        order.push((text, spec));
    }
    order
}

/// A change, and the one that may follow it.
type Change = (&'static str, Value, Option<(&'static str, Value)>);

fn of_valkey(lot: &mut Lot) -> Vec<Change> {
    let more = 4 + lot.below(2);
    let memory = format!("{}Mi", 256 + lot.below(200));
    let user = |text: &[&str]| json!({"users": [{"name": "app", "nopass": true, "commands": {"allow": text}}]});
    vec![
        (
            "scale out",
            json!({"shards": more}),
            Some(("scale in", json!({"shards": 3}))),
        ),
        ("roll", json!({"resources": {"limits": {"memory": memory}}}), None),
        (
            "users",
            user(&["@read"]),
            Some(("users again", user(&["@read", "@write"]))),
        ),
        (
            "replicas up",
            json!({"replicas": 2}),
            Some(("replicas down", json!({"replicas": 1}))),
        ),
    ]
}

fn of_redkey(lot: &mut Lot) -> Vec<Change> {
    let more = 4 + lot.below(2);
    vec![
        (
            "scale up",
            json!({"primaries": more}),
            Some(("scale down", json!({"primaries": 3}))),
        ),
        ("upgrade", json!({"image": "redis:8-bookworm"}), None),
        (
            "replicas down",
            json!({"replicasPerPrimary": 0}),
            Some(("replicas up", json!({"replicasPerPrimary": 1}))),
        ),
    ]
}

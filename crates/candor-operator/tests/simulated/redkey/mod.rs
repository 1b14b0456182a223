//! Ways to break a `RedkeyCluster`: none loses a key that was to be kept, and none ends in another state than the spec's.

mod deleted;
mod drift;
mod edits;
mod invalid;
mod manual_edits;
mod recreated;
mod rejected;
mod relabelled;
mod robins;
mod scaled;
mod scaling;

use std::net::IpAddr;

use serde_json::{Value, json};

fn spec(primaries: u32, purge: bool) -> Value {
    json!({"primaries": primaries, "ephemeral": true, "purgeKeysOnRebalance": purge, "image": "redis:8.0"})
}

/// Three primaries with a replica each, whose keys are kept.
fn replicated() -> Value {
    let mut spec = spec(3, false);
    spec["replicasPerPrimary"] = json!(1);
    spec
}

/// Sends a command to a server, as a person with redis-cli does.
async fn send(ip: IpAddr, message: &[&str]) {
    let client = redis::Client::open(format!("redis://{ip}:6379")).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let mut command = redis::cmd(message[0]);
    let _: redis::Value = command.arg(&message[1..]).query_async(&mut connection).await.unwrap();
}

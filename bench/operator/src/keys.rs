//! Keys of 100 bytes: written to the servers that own their slots, and counted again later.

use std::net::SocketAddr;
use std::time::Duration;

use futures::future::try_join_all;
use redis::aio::MultiplexedConnection;
use valkey_admin::client::{Deadlines, Endpoint, Node};
use valkey_admin::{Slot, SlotSet};

use crate::Result;

/// The port of every server.
pub const PORT: u16 = 6379;

/// Commands per pipeline.
const BATCH: usize = 1000;

/// A client for a server, as the default user without a password.
pub fn node(address: SocketAddr) -> Node {
    Node::new(Endpoint::plain(address.ip(), address.port()), Deadlines::default())
}

/// The slot owners, as one server reports them.
pub async fn owners(queried: SocketAddr) -> Result<Vec<(SocketAddr, SlotSet)>> {
    let map = node(queried).cluster_nodes().await?;
    let owning = map.0.iter().filter(|entry| !entry.slots.is_empty());
    owning
        .map(|entry| {
            let ip = entry.address.host.parse()?;
            Ok((SocketAddr::new(ip, entry.address.port), entry.slots.clone()))
        })
        .collect()
}

async fn connect(address: SocketAddr) -> Result<MultiplexedConnection> {
    let patient = redis::AsyncConnectionConfig::new().set_response_timeout(Some(Duration::from_secs(30)));
    let client = redis::Client::open(format!("redis://{address}"))?;
    Ok(client.get_multiplexed_async_connection_with_config(&patient).await?)
}

fn key(number: u32) -> String {
    format!("key:{number}")
}

/// Sends one command per key to the key's owner and returns the sum of the replies.
async fn with_each(
    queried: SocketAddr,
    numbers: std::ops::Range<u32>,
    command: impl Fn(&mut redis::Pipeline, &str),
) -> Result<u64> {
    let owners = owners(queried).await?;
    let mut shares: Vec<Vec<String>> = vec![Vec::new(); owners.len()];
    for key in numbers.map(key) {
        let slot = Slot::of_key(key.as_bytes());
        let owner = owners.iter().position(|(_, slots)| slots.contains(slot));
        shares[owner.ok_or_else(|| format!("no primary owns slot {}", slot.get()))?].push(key);
    }
    let command = &command;
    let work = owners.iter().zip(&shares).map(|((address, _), share)| async move {
        let mut connection = connect(*address).await?;
        let mut sum = 0;
        for batch in share.chunks(BATCH) {
            let mut pipe = redis::pipe();
            for key in batch {
                command(&mut pipe, key);
            }
            let answers: Vec<redis::Value> = pipe.query_async(&mut connection).await?;
            sum += answers
                .iter()
                .filter(|answer| matches!(answer, redis::Value::Okay | redis::Value::Int(1)))
                .count();
        }
        Ok::<_, Box<dyn std::error::Error + Send + Sync>>(u64::try_from(sum)?)
    });
    Ok(try_join_all(work).await?.into_iter().sum())
}

/// Writes the keys; every write must be acknowledged.
pub async fn fill(queried: SocketAddr, numbers: std::ops::Range<u32>) -> Result<()> {
    let value = "x".repeat(100);
    let wanted = u64::from(numbers.end - numbers.start);
    let set = |pipe: &mut redis::Pipeline, key: &str| _ = pipe.cmd("SET").arg(key).arg(&value);
    let written = with_each(queried, numbers, set).await?;
    if written == wanted {
        return Ok(());
    }
    Err(format!("of {wanted} keys only {written} were taken").into())
}

/// How many of the keys are missing.
pub async fn missing(queried: SocketAddr, numbers: std::ops::Range<u32>) -> Result<u64> {
    let wanted = u64::from(numbers.end - numbers.start);
    let exists = |pipe: &mut redis::Pipeline, key: &str| _ = pipe.cmd("EXISTS").arg(key);
    Ok(wanted.saturating_sub(with_each(queried, numbers, exists).await?))
}

/// Whether every one of these servers knows all others and reports `cluster_state:ok`, and every replica is linked.
pub async fn formed(members: &[SocketAddr]) -> bool {
    let asked = members.iter().map(|address| async move {
        let node = node(*address);
        let (Ok(info), Ok(role)) = (node.cluster_info().await, node.role().await) else {
            return false;
        };
        let linked = match role {
            valkey_admin::role::Role::Primary { .. } => true,
            valkey_admin::role::Role::Replica { link, .. } => link == valkey_admin::role::Link::Connected,
        };
        info.ok && linked && usize::try_from(info.known_nodes).is_ok_and(|known| known == members.len())
    });
    futures::future::join_all(asked).await.into_iter().all(|formed| formed)
}

//! Limits that protect clusters from each other: concurrent requests, concurrent steps, members.

use std::sync::Arc;

use candor_engine::model::{Desired, MemberRef, ShardIndex};
use futures::stream::{self, StreamExt};
use kube::Client;
use tokio::sync::Semaphore;

/// The default for how many members one cluster may have. The Valkey cluster specification names 1,000 nodes as its
/// design limit.
pub const MAX_MEMBERS: u32 = 1000;
/// The highest limit that can be set: the topology of that many members still fits into one object of the API server.
pub const HIGHEST_MAX_MEMBERS: u32 = 1500;
/// Concurrent requests to the API server, of all clusters together. A watch counts only until it is established.
pub const REQUESTS_AT_ONCE: usize = 64;
/// Concurrent steps, or writes of members' status, for one cluster. It is below [`REQUESTS_AT_ONCE`], so that a large
/// cluster leaves room for others.
pub const PER_CLUSTER: usize = 32;

/// Runs futures, up to [`PER_CLUSTER`] concurrently; returns their outputs in the original order.
pub async fn at_once<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    stream::iter(futures).buffered(PER_CLUSTER).collect().await
}

/// A client that allows [`REQUESTS_AT_ONCE`] concurrent requests; further ones wait, first come, first served.
pub fn bounded(client: Client) -> Client {
    let namespace = client.default_namespace().to_owned();
    let places = Arc::new(Semaphore::new(REQUESTS_AT_ONCE));
    let service = tower::service_fn(move |request| {
        let (client, places) = (client.clone(), places.clone());
        async move {
            // The semaphore is never closed.
            let _place = places.acquire().await;
            client.send(request).await
        }
    });
    Client::new(service, namespace)
}

/// The desired members, if the limit allows them. Otherwise the existing members stay desired, and the second value is
/// the message to report.
pub fn within<I>(desired: Desired, existing: impl FnOnce() -> I, most: u32) -> (Desired, Option<String>)
where
    I: Iterator<Item = MemberRef>,
{
    let (shards, replicas) = (desired.shards, desired.replicas);
    let asked = u64::from(shards) * (u64::from(replicas) + 1);
    if asked <= u64::from(most) {
        return (desired, None);
    }
    let (shards_here, replicas_here) = existing().fold((1, 0), |(shards, replicas), at| {
        let ShardIndex(shard) = at.shard;
        (shards.max(shard.saturating_add(1)), replicas.max(at.node))
    });
    let kept = Desired {
        shards: shards_here.min(shards),
        replicas: replicas_here.min(replicas),
        ..desired
    };
    (kept, Some(instead(shards, replicas, asked, most)))
}

fn instead(shards: u32, replicas: u32, asked: u64, most: u32) -> String {
    let fewer_shards = most / (replicas + 1);
    let fewer_replicas = (most / shards).checked_sub(1);
    let mut ways = Vec::new();
    if fewer_shards > 0 {
        ways.push(format!("set shards to {fewer_shards} or less"));
    }
    if let Some(fewer) = fewer_replicas {
        ways.push(format!("set replicas to {fewer} or less"));
    }
    if ways.is_empty() {
        ways.push(format!(
            "lower both until shards times (1 + replicas) is {most} or less"
        ));
    }
    ways.push("start the operator with a larger --max-members".to_owned());
    let members = if asked == 1 { "member" } else { "members" };
    format!(
        "{shards} shards with {replicas} replicas each are {asked} {members}, and this operator allows {most}: {}",
        ways.join(", or ")
    )
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use candor_api::{ValkeyCluster, ValkeyClusterSpec};

    use super::*;

    fn desired(shards: i32, replicas: i32) -> Desired {
        let spec = ValkeyClusterSpec {
            shards,
            replicas: Some(replicas),
            ..ValkeyClusterSpec::default()
        };
        candor_engine::kinds::valkey::desired(&ValkeyCluster::new("c", spec))
    }

    fn members(shards: u32, replicas: u32) -> impl Iterator<Item = MemberRef> {
        (0..shards).flat_map(move |shard| {
            (0..=replicas).map(move |node| MemberRef {
                shard: ShardIndex(shard),
                node,
            })
        })
    }

    #[test]
    fn a_spec_within_the_limit_is_taken_as_it_is() {
        assert_eq!(within(desired(500, 1), || members(3, 1), 1000), (desired(500, 1), None));
    }

    #[test]
    fn a_spec_above_the_limit_keeps_the_existing_members_and_says_what_to_write_instead() {
        let (kept, message) = within(desired(1000, 16), || members(3, 1), 1000);
        assert_eq!(kept, desired(3, 1));
        assert_eq!(
            message.unwrap(),
            "1000 shards with 16 replicas each are 17000 members, and this operator allows 1000: set shards to 58 or \
             less, or set replicas to 0 or less, or start the operator with a larger --max-members"
        );
        let (kept, message) = within(desired(8, 0), || members(0, 0).take(0), 5);
        assert_eq!(kept, desired(1, 0), "nothing exists yet");
        assert_eq!(
            message.unwrap(),
            "8 shards with 0 replicas each are 8 members, and this operator allows 5: set shards to 5 or less, or start \
             the operator with a larger --max-members"
        );
    }

    #[test]
    fn a_spec_that_neither_fewer_shards_nor_fewer_replicas_alone_can_mend_names_the_rule() {
        let (_, message) = within(desired(1000, 16), || members(1, 0), 5);
        assert_eq!(
            message.unwrap(),
            "1000 shards with 16 replicas each are 17000 members, and this operator allows 5: lower both until shards times \
             (1 + replicas) is 5 or less, or start the operator with a larger --max-members"
        );
    }

    #[tokio::test]
    async fn no_more_futures_than_the_limit_run_at_once_and_outputs_keep_their_order() {
        let (running, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let futures = (0..200).map(|number| {
            let (running, most) = (&running, &most);
            async move {
                most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::task::yield_now().await;
                running.fetch_sub(1, Ordering::SeqCst);
                number
            }
        });
        assert_eq!(at_once(futures.collect()).await, (0..200).collect::<Vec<_>>());
        assert_eq!(most.load(Ordering::SeqCst), PER_CLUSTER);
    }
}

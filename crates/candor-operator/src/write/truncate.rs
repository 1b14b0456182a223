//! Truncates messages and statuses to the API server's limits. A message that is too long fails the whole status write,
//! and so loses everything else in that status.

use std::io::{self, Write};

use candor_api::{Condition, ValkeyClusterStatus};
use kube_status::limits::{MESSAGE_LIMIT, cut};

/// Largest status in bytes of JSON. etcd accepts 1.5 MiB for the whole object; spec and metadata need the rest.
pub const STATUS_LIMIT: usize = 1024 * 1024;
/// Lengths that messages are truncated to, in this order, until the status fits.
const LENGTHS: [usize; 4] = [MESSAGE_LIMIT, 4096, 1024, 256];
/// Separator between the parts of a message.
const SEPARATOR: &str = "; ";

/// Truncates a cluster's status: every message to the limit of its schema, and all of them further if the whole status
/// is too large.
pub fn fit(status: &mut ValkeyClusterStatus) {
    for length in LENGTHS {
        if let Some(short) = shortened(&status.message, length) {
            status.message = short;
        }
        fit_conditions(&mut status.conditions, length);
        if size(status) <= STATUS_LIMIT {
            return;
        }
    }
    tracing::error!(
        size = size(status),
        limit = STATUS_LIMIT,
        "status is too large for the API server"
    );
}

/// Truncates conditions to the limit of their schema.
pub fn fit_messages(conditions: &mut [Condition]) {
    fit_conditions(conditions, MESSAGE_LIMIT);
}

fn fit_conditions(conditions: &mut [Condition], length: usize) {
    for condition in conditions {
        if let Some(short) = shortened(&condition.message, length) {
            condition.set_message(short);
        }
    }
}

/// Truncates a message that exceeds the limit in bytes. If the first part fits, the message is cut after whole parts,
/// with the number of omitted parts; otherwise within the first part.
fn shortened(message: &str, limit: usize) -> Option<String> {
    let long = message.len() > limit;
    long.then(|| whole_parts(message, limit).unwrap_or_else(|| cut(message, limit).into_owned()))
}

fn whole_parts(message: &str, limit: usize) -> Option<String> {
    let total = message.split(SEPARATOR).count();
    // The number of omitted parts has no more digits than the number of all parts.
    let room = limit.checked_sub(format!("{SEPARATOR}and {total} more").len())?;
    let end = message
        .match_indices(SEPARATOR)
        .map(|(at, _)| at)
        .take_while(|at| *at <= room)
        .last()?;
    let kept = &message[..end];
    let left_out = total - kept.split(SEPARATOR).count();
    Some(format!("{kept}{SEPARATOR}and {left_out} more"))
}

/// The size of a status as JSON, in bytes.
fn size(status: &ValkeyClusterStatus) -> usize {
    struct Counter(usize);
    impl Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    // Counting cannot fail, and all keys of a status are strings.
    let _ = serde_json::to_writer(&mut counter, status);
    counter.0
}

#[cfg(test)]
mod tests {
    use candor_api::valkey::status::{MemberRole, MemberTopology, ShardTopology};
    use proptest::prelude::*;

    use super::*;
    use crate::runtime::limits::HIGHEST_MAX_MEMBERS;

    fn condition(type_: &str, message: &str) -> Condition {
        serde_json::from_value(serde_json::json!({
            "type": type_, "status": "False", "reason": "Lost", "message": message,
            "lastTransitionTime": "2026-11-17T00:00:00Z"}))
        .unwrap()
    }

    #[test]
    fn a_list_of_lost_shards_is_cut_after_whole_parts_with_a_count_of_the_rest() {
        let parts: Vec<String> = (0..900)
            .map(|shard| format!("primary lost in shard {shard}: member {shard}-0 does not respond"))
            .collect();
        let message = shortened(&parts.join("; "), MESSAGE_LIMIT).unwrap();
        assert!(message.len() <= MESSAGE_LIMIT);
        let (kept, rest) = message.rsplit_once("; and ").unwrap();
        let kept: Vec<&str> = kept.split("; ").collect();
        assert_eq!(kept, parts[..kept.len()]);
        assert_eq!(rest, format!("{} more", parts.len() - kept.len()));
    }

    #[test]
    fn one_long_error_of_a_server_is_cut_within() {
        let message = format!("member 0-0: {}; member 0-1: no", "é".repeat(40_000));
        let message = shortened(&message, 100).unwrap();
        assert!(message.len() <= 100 && message.ends_with("é..."), "{message}");
    }

    #[test]
    fn the_largest_status_fits_into_what_etcd_takes() {
        let member = |node: usize| MemberTopology {
            node: i32::try_from(node).unwrap(),
            node_id: "f".repeat(40),
            role: Some(MemberRole::Primary),
            pod_uid: "u".repeat(36),
            node_name: "n".repeat(253),
            claim_uid: "c".repeat(36),
            pod_terminated: true,
        };
        let shards = 500;
        let members = usize::try_from(HIGHEST_MAX_MEMBERS).unwrap() / shards;
        let shard = |shard| ShardTopology {
            shard,
            // All slots in ranges of one, distributed over all shards.
            slots: vec!["16383"; 16384 / shards + 1].join(","),
            keys: i64::MAX,
            members: (0..members).map(member).collect(),
            data_lost: true,
        };
        let conditions = (0..12).map(|number| condition(&format!("Condition{number}"), &"x".repeat(60_000)));
        let mut status = ValkeyClusterStatus {
            message: "x".repeat(60_000),
            topology: (0..i32::try_from(shards).unwrap()).map(shard).collect(),
            conditions: conditions.collect(),
            ..ValkeyClusterStatus::default()
        };
        fit(&mut status);
        assert!(size(&status) <= STATUS_LIMIT, "{}", size(&status));
        assert_eq!(status.message, status.conditions[0].message);
    }

    proptest! {
        #[test]
        fn a_message_never_exceeds_its_limit_and_a_short_one_is_left_alone(
            parts in prop::collection::vec("\\PC{0,12}", 1..8), limit in 0_usize..60,
        ) {
            let message = parts.join("; ");
            match shortened(&message, limit) {
                Some(short) => prop_assert!(message.len() > limit && short.len() <= limit),
                None => prop_assert!(message.len() <= limit),
            }
        }
    }
}

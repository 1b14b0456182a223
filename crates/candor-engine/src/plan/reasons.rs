//! Why the operator does something or waits, in one line: shown in the log beside the steps.

use std::fmt;

use super::{Lost, Stage};

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Blind(message) => write!(f, "pods cannot be listed: {message}"),
            Self::LockedOut(message) | Self::Foreign(message) => f.write_str(message),
            Self::Deleting => f.write_str("the cluster is being deleted"),
            Self::Rejected { message, .. } => write!(f, "what the spec asks for cannot be: {message}"),
            Self::Creating { shards } => write!(f, "members are missing or do not answer yet, {shards} shards do"),
            Self::Stuck { member, trouble } => {
                let message = trouble.message();
                match member {
                    Some(member) => write!(f, "the pod of member {member} cannot run: {message}"),
                    None => write!(f, "what members would be rolled into cannot run: {message}"),
                }
            }
            Self::Joining => f.write_str("members do not know each other yet"),
            Self::Assigning => f.write_str("slots were never given out"),
            Self::Replicating { shard } => write!(f, "replicas of shard {shard} do not follow yet, or still copy"),
            Self::Uncovered { slots: 0 } => f.write_str("not every member reports cluster_state:ok"),
            Self::Uncovered { slots } => write!(f, "{slots} slots have no owner that everybody knows of"),
            Self::PrimaryLost(lost) => write_lost(f, "primary", lost),
            Self::ReplicaLost(lost) => write_lost(f, "replica", lost),
            Self::QuorumLost { answering, of } => write!(f, "only {answering} of {of} primaries answer"),
            Self::DataLost(shards) => {
                let shards: Vec<String> = shards.iter().map(ToString::to_string).collect();
                write!(f, "came back without its data: shard {}", shards.join(", "))
            }
            Self::Moving {
                left, draining: true, ..
            } => {
                write!(f, "{left} slots are at shards that are no longer wanted")
            }
            Self::Moving { left, .. } => write!(f, "{left} slots are not where an even share has them"),
            Self::Removing => f.write_str("members are there that are no longer wanted, and own nothing"),
            Self::Rolling { done, of, member } => {
                write!(
                    f,
                    "members do not run what the spec says, {done} of {of} do: the turn is at {member}"
                )
            }
            Self::FailingOver {
                shard,
                to: Some(to),
                drained: true,
            } => write!(
                f,
                "the node of shard {shard}'s primary takes no new pods: {to} takes over"
            ),
            Self::FailingOver {
                shard, to: Some(to), ..
            } => {
                write!(f, "a person asked for a failover of shard {shard}: {to} takes over")
            }
            Self::FailingOver { shard, to: None, .. } => {
                write!(f, "the old primary of shard {shard} does not follow the new one yet")
            }
            Self::Configuring { left } => write!(f, "{left} members run with other settings than the spec's"),
            Self::Writing => f.write_str("objects are not as the spec has them"),
            Self::Forgetting => f.write_str("nodes that are gone for good are still in somebody's map"),
            Self::Healthy => f.write_str("all is as wanted"),
        }
    }
}

fn write_lost(f: &mut fmt::Formatter<'_>, who: &str, lost: &[Lost]) -> fmt::Result {
    let lines: Vec<String> = lost
        .iter()
        .map(|one| format!("{who} lost in shard {}: {}", one.shard, one.observed))
        .collect();
    f.write_str(&lines.join("; "))
}

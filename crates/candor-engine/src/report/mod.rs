//! What is told of a look: a pure function of what was wanted, seen, planned and done, and of what was told before.
//!
//! A report from an unchanged world equals the one before, byte for byte, and has no events.

use std::collections::BTreeMap;

use candor_api::{ValkeyCluster, ValkeyClusterStatus, ValkeyNode, ValkeyNodeStatus};
use jiff::Timestamp;
use kube_status::events::Notice;

use crate::memory::Memory;
use crate::model::{MemberRef, Wanted};
use crate::observation::Observation;
use crate::outcome::Outcome;
use crate::plan::Plan;

/// All that a report is made from. What was told before is `cluster.status`.
#[derive(Clone, Copy, Debug)]
pub struct Looked<'a> {
    /// The cluster with its last status.
    pub cluster: &'a ValkeyCluster,
    /// The members' windows as they are stored; one that is not there yet has no entry.
    pub nodes: &'a BTreeMap<MemberRef, ValkeyNode>,
    /// What is wanted.
    pub wanted: &'a Wanted,
    /// What was seen.
    pub seen: &'a Observation,
    /// What status remembered before this look.
    pub memory: &'a Memory,
    /// What was planned.
    pub plan: &'a Plan,
    /// What came of it.
    pub outcomes: &'a [Outcome],
    /// When.
    pub now: Timestamp,
}

/// What is told.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Of the cluster.
    pub status: ValkeyClusterStatus,
    /// Of every member.
    pub nodes: BTreeMap<MemberRef, ValkeyNodeStatus>,
    /// What turned.
    pub events: Vec<Notice>,
}

/// What is told of a look.
pub fn report(looked: &Looked<'_>) -> Report {
    let mut status = looked.cluster.status.clone().unwrap_or_default();
    let after = looked.memory.after(looked.wanted, looked.seen, looked.plan);
    status.formed = after.formed;
    status.topology = crate::valkey::topology(&after, looked.seen);
    status.observed_generation = looked.cluster.metadata.generation;
    Report {
        status,
        nodes: BTreeMap::new(),
        events: Vec::new(),
    }
}

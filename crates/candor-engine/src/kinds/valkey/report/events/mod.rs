//! Events: outcomes and transitions. Outcomes come from executed steps. Transitions come from comparing the previous
//! status with the new one. A reconcile that changed nothing and observed nothing new has no events.

mod outcomes;
mod transitions;

use std::collections::BTreeMap;

use candor_api::{ValkeyClusterStatus, ValkeyNodeStatus};
use kube_status::events::Notice;

use super::ReportInput;
use crate::memory::Memory;
use crate::model::MemberRef;

/// The events of a reconcile that recovered lost credentials and observed nothing else.
pub(super) fn recovered(input: &ReportInput<'_>) -> Vec<Notice> {
    outcomes::objects(input)
}

pub(super) fn all(
    input: &ReportInput<'_>,
    before: &ValkeyClusterStatus,
    after: &ValkeyClusterStatus,
    memory: &Memory,
    nodes: &BTreeMap<MemberRef, ValkeyNodeStatus>,
) -> Vec<Notice> {
    let mut events = outcomes::objects(input);
    events.extend(outcomes::valkey_nodes(input, nodes));
    events.extend(outcomes::joins(input));
    events.extend(outcomes::others(input));
    events.extend(transitions::moves(input, before));
    events.extend(transitions::losses(input, before, memory));
    events.extend(transitions::troubles(before, after));
    events.extend(transitions::promotions(before, after));
    events.extend(transitions::status(input, before, after));
    events
}

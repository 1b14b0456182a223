//! Events: outcomes and transitions. Outcomes come from executed steps. Transitions come from comparing the previous
//! status with the new one. A reconcile that changed nothing and observed nothing new has no events.

mod done;
mod turned;

use std::collections::BTreeMap;

use candor_api::{ValkeyClusterStatus, ValkeyNodeStatus};
use kube_status::events::Notice;

use super::ReportInput;
use crate::memory::Memory;
use crate::model::MemberRef;

/// The events of a reconcile that recovered lost credentials and observed nothing else.
pub(super) fn recovered(input: &ReportInput<'_>) -> Vec<Notice> {
    done::objects(input)
}

pub(super) fn all(
    input: &ReportInput<'_>,
    before: &ValkeyClusterStatus,
    after: &ValkeyClusterStatus,
    memory: &Memory,
    nodes: &BTreeMap<MemberRef, ValkeyNodeStatus>,
) -> Vec<Notice> {
    let mut events = done::objects(input);
    events.extend(done::windows(input, nodes));
    events.extend(done::joins(input));
    events.extend(done::others(input));
    events.extend(turned::moves(input, before));
    events.extend(turned::losses(input, before, memory));
    events.extend(turned::troubles(before, after));
    events.extend(turned::promotions(before, after));
    events.extend(turned::status(input, before, after));
    events
}

//! Events: outcomes and transitions. Outcomes come from executed steps. Transitions come from comparing the previous
//! status with the new one. A reconcile that changed nothing and observed nothing new has no events.

mod done;
mod turned;

use std::collections::BTreeMap;

use candor_api::{ValkeyClusterStatus, ValkeyNodeStatus};
use kube_status::events::Notice;

use super::Looked;
use crate::memory::Memory;
use crate::model::MemberRef;

pub(super) fn all(
    looked: &Looked<'_>,
    before: &ValkeyClusterStatus,
    after: &ValkeyClusterStatus,
    memory: &Memory,
    nodes: &BTreeMap<MemberRef, ValkeyNodeStatus>,
) -> Vec<Notice> {
    let mut events = done::objects(looked);
    events.extend(done::windows(looked, nodes));
    events.extend(done::joins(looked));
    events.extend(done::others(looked));
    events.extend(turned::moves(looked, before));
    events.extend(turned::losses(looked, before, memory));
    events.extend(turned::troubles(before, after));
    events.extend(turned::promotions(before, after));
    events.extend(turned::status(looked, before, after));
    events
}

//! Whether a server that comes back empty proves that the data of its volume is lost.

use super::View;
use crate::memory::ShardMemory;
use crate::model::MemberRef;
use crate::observation::{Facts, Member, Volume};

impl View<'_> {
    /// Whether a member's volume may still have the member's data. A volume that has it also has the member's node id.
    /// A server that answers from it under another id, with neither slots nor keys, proves that the data is not there.
    pub(super) fn may_have_data(&self, at: MemberRef, member: &Member, before: &ShardMemory) -> bool {
        let known = before.members.get(&at.node);
        let fresh = |facts: &Facts| facts.slots().is_empty() && known.is_some_and(|known| *known != facts.id);
        let emptied = member.facts().is_some_and(fresh) && self.data_elsewhere(at, member).is_none();
        member.volume == Volume::Kept && !emptied
    }

    /// The node on which a member's volume may still have its data, and the node on which the member runs now. A volume
    /// without node affinity, such as a hostPath, is another folder on every node: the same claim proves nothing about
    /// the folder on the previous node. Another claim has another volume.
    pub(super) fn data_elsewhere(&self, at: MemberRef, member: &Member) -> Option<(&str, String)> {
        let last = self.memory.topology.get(&at.shard)?.pods.get(&at.node)?;
        let node = member.pod.as_ref()?.node.clone()?;
        // A status of an older version has no claim. A kind that records no claims has none here either.
        let same = !member.claim_uid.is_empty() && (last.claim.is_empty() || last.claim == member.claim_uid);
        let moved = member.volume == Volume::Kept && same && last.node != node;
        moved.then_some((last.node.as_str(), node))
    }

    /// What to report about a member that came back empty on another node.
    pub(super) fn came_back_empty(&self, at: MemberRef) -> Option<String> {
        let member = self.observed.members.get(&at)?;
        member
            .facts()
            .filter(|facts| facts.slots().is_empty() && facts.keys == 0)?;
        let (from, to) = self.data_elsewhere(at, member)?;
        Some(format!(
            "member {at} came back empty on node {to}, but its volume may still have its data on node {from}. Run the member \
             there again, or delete its volume claim if that data is lost"
        ))
    }
}

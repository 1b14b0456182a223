//! When the data of a shard is declared lost, and how its slots are served again. A server that comes back empty proves a
//! loss only if its volume cannot have the data.

use valkey_admin::NodeEntry;

use super::heal::is_no_replica;
use super::{Stage, View};
use crate::memory::ShardMemory;
use crate::model::{MemberRef, ShardIndex};
use crate::observation::{Facts, Member, Volume};
use crate::step::Step;

impl View<'_> {
    /// Shards with lost data.
    pub(super) fn data_lost(&self, lost: &[(ShardIndex, ShardMemory)]) -> Option<Stage> {
        let gone = lost.iter().filter(|(shard, before)| self.is_gone(*shard, before));
        let gone: Vec<ShardIndex> = gone.map(|(shard, _)| *shard).collect();
        (!gone.is_empty()).then_some(Stage::DataLost(gone))
    }

    /// No member of a shard has any data: the data is lost. A terminated member without a volume has none. A restarted
    /// replica has none either, and may be waiting for a full sync that cannot happen.
    fn is_gone(&self, shard: ShardIndex, before: &ShardMemory) -> bool {
        let members: Vec<(MemberRef, &Member)> = self
            .observed
            .shard(shard)
            .filter(|(at, _)| self.desired.includes(*at) || before.members.contains_key(&at.node))
            .collect();
        let empty = |at: MemberRef, member: &Member| {
            // A replica of another shard's primary has the keys of that shard alone.
            let nothing = |facts: &Facts| {
                let blank = facts.keys == 0 && !facts.loading && (is_no_replica(facts) || !facts.was_in_sync);
                blank || self.follows_elsewhere(shard, facts)
            };
            // The data in another pod of the member is unknown. As long as that pod may be running, no data is lost.
            let alone = !self.may_still_run(at, member);
            let kept = self.may_have_data(at, member, before);
            let has_nothing = !kept && alone && member.facts().is_some_and(nothing);
            has_nothing || self.lost_its_memory(at, member)
        };
        let speaks = members.iter().any(|(_, member)| member.facts().is_some());
        // A server that has not restarted has lost nothing.
        speaks
            && self.slotless_primary(shard, before).is_none()
            && members.iter().all(|(at, member)| empty(*at, member))
    }

    /// Serves the slots of a shard with lost data again: the loss is reported first, then all members forget the old
    /// owner, then the slots are assigned.
    pub(super) fn give_back(&self, shard: ShardIndex, before: &ShardMemory) -> Vec<Step> {
        if !self.is_gone(shard, before) {
            return Vec::new();
        }
        let lost = Step::DeclareLost {
            shard,
            slots: before.slots.clone(),
            keys: before.keys,
        };
        // The loss is reported first. Only a later reconcile, which finds it in status, serves the slots again.
        if !before.lost {
            return vec![lost];
        }
        let free = before.slots.difference(&self.observed.claimed());
        let first = self
            .observed
            .shard(shard)
            .find(|(_, member)| member.facts().is_some_and(Facts::is_primary));
        let given = first
            .filter(|_| !free.is_empty())
            .map(|(member, _)| Step::AddSlots { member, slots: free });
        // A member that still has the old owner in its map would reject the new one.
        let believers = self.observed.answering().flat_map(|(at, facts)| {
            let claims =
                |entry: &&NodeEntry| !entry.flags.handshake && !entry.slots.intersection(&before.slots).is_empty();
            let dead = facts
                .map
                .0
                .iter()
                .filter(claims)
                .filter(|entry| self.observed.with_id(entry.id).is_none());
            dead.map(move |entry| Step::Forget { at, node: entry.id })
        });
        // A replica cannot forget its primary: a replica that never copied any data is reset instead.
        let orphans = self
            .observed
            .shard(shard)
            .filter(|(_, member)| member.facts().is_some_and(|facts| !is_no_replica(facts)));
        let orphans: Vec<MemberRef> = orphans.map(|(at, _)| at).collect();
        let believers = believers.filter(|step| !matches!(step, Step::Forget { at, .. } if orphans.contains(at)));
        let reset = orphans.iter().map(|at| Step::Reset(*at));
        believers.chain(reset).chain(given).collect()
    }

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

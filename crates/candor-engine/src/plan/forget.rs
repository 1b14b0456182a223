//! Nodes in the map that are gone for good.

use std::collections::BTreeSet;

use valkey_admin::NodeId;

use super::View;
use crate::model::MemberRef;
use crate::observation::{Volume, Workload};
use crate::step::Step;

impl View<'_> {
    /// Who shall forget whom. A node is forgotten only when nobody can still need it: it is not one of those who
    /// answer, owns no slot in anybody's eyes, nobody follows it, no handshake is under way, and the member that it
    /// was is back as somebody else or gone together with its volume.
    pub(super) fn forgettable(&self) -> Vec<Step> {
        let here: BTreeSet<NodeId> = self.seen.answering().map(|(_, facts)| facts.id).collect();
        let entries = || self.seen.answering().flat_map(|(_, facts)| facts.map.0.iter());
        let strangers: BTreeSet<NodeId> = entries()
            .map(|entry| entry.id)
            .filter(|id| !here.contains(id))
            .collect();
        let complete = self.wanted.members().all(|at| self.answers_alone(at));
        let gone = strangers.into_iter().filter(|id| {
            let mut said = entries().filter(|entry| entry.id == *id);
            // Who left by our hand, or whose place another process has taken, need not be declared failed by the
            // others first: that lasts a node timeout, and by then nobody looks any more.
            let left = self
                .was(*id)
                .is_some_and(|at| !self.wanted.wants(at) || self.answers_alone(at));
            said.all(|entry| {
                // With every member here it is nobody's. Where only some still know it, there is no majority that
                // could declare it failed: they would suspect it for ever.
                let nobodys = complete && entry.flags.suspected;
                let gone = entry.flags.failed || entry.flags.no_address || left || nobodys;
                !entry.flags.handshake && entry.slots.is_empty() && gone
            }) && !self
                .seen
                .answering()
                .any(|(_, facts)| facts.me().is_some_and(|me| me.primary == Some(*id)))
                && self.cannot_return(*id)
        });
        let mut steps = Vec::new();
        for node in gone {
            let knowing = self.seen.answering().filter(|(_, facts)| facts.map.get(node).is_some());
            steps.extend(knowing.map(|(at, _)| Step::Forget { at, node }));
        }
        steps
    }

    /// The member that had this id, as far as status remembers.
    fn was(&self, id: NodeId) -> Option<MemberRef> {
        self.memory.topology.iter().find_map(|(shard, before)| {
            let node = before.members.iter().find(|(_, known)| **known == id)?.0;
            Some(MemberRef {
                shard: *shard,
                node: *node,
            })
        })
    }

    /// A process answers in a member's place, and it has no second pod in which another could still run.
    fn answers_alone(&self, at: MemberRef) -> bool {
        let member = self.seen.members.get(&at);
        member.is_some_and(|member| member.facts().is_some() && member.other_addresses.is_empty())
    }

    /// Somebody who answers still has a node in its map that is nobody's: it will be forgotten as soon as the servers
    /// agree that it has failed.
    pub(super) fn has_strangers(&self) -> bool {
        let mut entries = self.seen.answering().flat_map(|(_, facts)| facts.map.0.iter());
        entries.any(|entry| self.seen.with_id(entry.id).is_none())
    }

    /// The member that had this id is back under another, or is gone and left no volume that could bring it back.
    fn cannot_return(&self, id: NodeId) -> bool {
        let Some(member) = self.was(id).and_then(|at| self.seen.members.get(&at)) else {
            // Nobody remembers it: a leftover of an earlier life, or a foreign node. Failed and without slots, it is
            // of no use to anybody.
            return true;
        };
        member.facts().is_some()
            || (member.workload == Workload::Absent && member.pod.is_none() && member.volume != Volume::Kept)
    }
}

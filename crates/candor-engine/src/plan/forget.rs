//! Nodes in the cluster map that will not return.

use std::collections::BTreeSet;

use valkey_admin::NodeId;

use super::View;
use crate::model::MemberRef;
use crate::observation::{Volume, Workload};
use crate::step::Step;

impl View<'_> {
    /// Which member has to forget which node. A node is forgotten only if it is certainly no longer needed:
    ///
    /// - It is not the node of a responding member.
    /// - It owns no slot in any responding member's map.
    /// - No responding member replicates it.
    /// - No handshake with it is in progress.
    /// - Its member is back under another node id, or is gone together with its volume.
    pub(super) fn forgettable(&self) -> Vec<Step> {
        let here: BTreeSet<NodeId> = self.observed.answering().map(|(_, facts)| facts.id).collect();
        let entries = || self.observed.answering().flat_map(|(_, facts)| facts.map.0.iter());
        let unknown: BTreeSet<NodeId> = entries()
            .map(|entry| entry.id)
            .filter(|id| !here.contains(id))
            .collect();
        let complete = self.desired.members().all(|at| self.answers_alone(at));
        let gone = unknown.into_iter().filter(|id| {
            let mut said = entries().filter(|entry| entry.id == *id);
            // If the operator removed the member, or another process took its place, the other members need not mark
            // the node as failed first. That takes a node timeout, and the cluster may not be reconciled any more by
            // then.
            let left = self
                .was(*id)
                .is_some_and(|at| !self.desired.includes(at) || self.answers_alone(at));
            said.all(|entry| {
                // With every desired member present, the node belongs to none of them. If only some members still know
                // it, no majority can mark it as failed: they would suspect it indefinitely.
                let nobodys = complete && entry.flags.suspected;
                let gone = entry.flags.failed || entry.flags.no_address || left || nobodys;
                !entry.flags.handshake && entry.slots.is_empty() && gone
            }) && !self
                .observed
                .answering()
                .any(|(_, facts)| facts.me().is_some_and(|me| me.primary == Some(*id)))
                && self.cannot_return(*id)
        });
        let mut steps = Vec::new();
        for node in gone {
            let knowing = self
                .observed
                .answering()
                .filter(|(_, facts)| facts.map.get(node).is_some());
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

    /// A server responds in the member's place, and the member has no second pod in which another server could still
    /// run.
    fn answers_alone(&self, at: MemberRef) -> bool {
        let member = self.observed.members.get(&at);
        member.is_some_and(|member| member.facts().is_some() && member.other_addresses.is_empty())
    }

    /// A responding member has a node in its map that belongs to no member. It will be forgotten as soon as the
    /// servers agree that it has failed.
    pub(super) fn has_unknown_nodes(&self) -> bool {
        let mut entries = self.observed.answering().flat_map(|(_, facts)| facts.map.0.iter());
        entries.any(|entry| self.observed.with_id(entry.id).is_none())
    }

    /// The member that had this id is back under another id, or is gone and left no volume that could bring it back.
    fn cannot_return(&self, id: NodeId) -> bool {
        let Some(member) = self.was(id).and_then(|at| self.observed.members.get(&at)) else {
            // Status does not remember it: a leftover of an earlier member, or a foreign node. Failed and without
            // slots, it is not needed.
            return true;
        };
        member.facts().is_some()
            || (member.workload == Workload::Absent && member.pod.is_none() && member.volume != Volume::Kept)
    }
}

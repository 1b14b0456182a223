//! A shard without a primary: whether a replica is promoted by force, by vote or by takeover.

use std::net::IpAddr;

use valkey_admin::NodeId;

use super::Evidence;
use crate::memory::ShardMemory;
use crate::model::{MemberRef, ShardIndex};
use crate::plan::{Lost, View};
use crate::step::{FailoverBy, Step};

impl View<'_> {
    /// What was observed of a shard without a primary, and the steps to recover it.
    pub(in crate::plan) fn forced_failover(&self, shard: ShardIndex, before: &ShardMemory) -> (Lost, Vec<Step>) {
        if let Some(found) = self.dropped_slots(shard, before) {
            return found;
        }
        let known = self.old_primary(shard, before);
        if let Some(found) = self.orphaned_primary(shard, before, known) {
            return found;
        }
        let Some((primary, old)) = known else {
            let lost = Lost {
                shard,
                member: None,
                observed: "its primary is not known".to_owned(),
            };
            return (lost, self.give_back(shard, before));
        };
        // Every member of the shard responds under a new node id: whichever member was the primary, its process is
        // gone.
        let mut members = self.observed.shard(shard);
        let replaced = members.all(|(at, member)| member.facts().is_some() && !self.may_still_run(at, member));
        let evidence = if replaced {
            Evidence::Ended
        } else {
            old.map_or(Evidence::None, |at| self.evidence(at))
        };
        let unconfirmed = old.and_then(|at| self.unconfirmed_node(at));
        let planned = old.and_then(|at| self.restarting(at));
        let observed = planned.unwrap_or_else(|| match (old, unconfirmed, evidence) {
            (Some(at), Some(node), _) => format!(
                "member {at} may still be running on node {node}: its pod is gone, and the node does not confirm that it \
                 has terminated"
            ),
            (Some(at), None, Evidence::Ended) => {
                self.came_back_empty(at).unwrap_or_else(|| format!("member {at} ended"))
            }
            (Some(at), None, Evidence::Gone) => format!("member {at} refuses connections"),
            (Some(at), None, Evidence::None) => format!("member {at} does not answer"),
            (None, ..) => format!("node {primary} is gone"),
        });
        let candidate = self
            .candidate(shard, primary)
            .or_else(|| self.last_resort(shard, primary, evidence));
        let step = match (candidate, evidence) {
            (Some(to), Evidence::Gone | Evidence::Ended) if self.can_vote() => {
                vec![Step::Failover {
                    to,
                    by: FailoverBy::Forced,
                }]
            }
            (Some(to), Evidence::Ended) => vec![Step::Failover {
                to,
                by: FailoverBy::Takeover,
            }],
            (Some(_), _) => Vec::new(),
            (None, _) => self.give_back(shard, before),
        };
        let member = old;
        (
            Lost {
                shard,
                member,
                observed,
            },
            step,
        )
    }

    /// The node that owned the shard's slots, and its member: from the maps of the responding members, else from
    /// memory.
    fn old_primary(&self, shard: ShardIndex, before: &ShardMemory) -> Option<(NodeId, Option<MemberRef>)> {
        let claimed = self.observed.answering().find_map(|(_, facts)| {
            let owner = facts
                .map
                .0
                .iter()
                .find(|entry| !entry.slots.intersection(&before.slots).is_empty())?;
            Some(owner.id)
        });
        let followed = self
            .observed
            .shard(shard)
            .find_map(|(_, member)| member.facts()?.me()?.primary);
        let id = claimed.or(followed)?;
        let remembered = before.members.iter().find(|(_, known)| **known == id);
        let place = remembered.map(|(node, _)| MemberRef { shard, node: *node });
        Some((id, place.or_else(|| self.at_address_of(shard, id))))
    }

    /// The member of a shard with a pod at the address of a node that died before status remembered it: a container
    /// that restarts keeps the address of its pod.
    fn at_address_of(&self, shard: ShardIndex, id: NodeId) -> Option<MemberRef> {
        let entries = self.observed.answering().filter_map(|(_, facts)| facts.map.get(id));
        let hosts: Vec<IpAddr> = entries.filter_map(|entry| entry.address.host.parse().ok()).collect();
        let mut members = self.observed.shard(shard);
        let found = members.find(|(_, member)| member.ip().is_some_and(|ip| hosts.contains(&ip)));
        found.map(|(at, _)| at)
    }
}

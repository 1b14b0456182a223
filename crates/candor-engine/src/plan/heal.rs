//! A cluster that was complete and no longer is: which replica is promoted, which member comes back, and what is lost.

use std::net::IpAddr;

use valkey_admin::{NodeEntry, NodeId, SlotSet};

use super::failover::Evidence;
use super::orphans::replaced;
use super::{Lost, Plan, Stage, View};
use crate::memory::ShardMemory;
use crate::model::{MemberRef, ShardIndex};
use crate::observation::{Facts, Member, Server};
use crate::step::{FailoverBy, Step};

impl View<'_> {
    pub(super) fn heal(&self) -> Option<Plan> {
        let here: Vec<(MemberRef, &Facts)> = self.observed.answering().collect();
        let mut steps = self.volumes();
        steps.extend(self.introductions(&here));
        let mut losses = Vec::new();
        let lost = self.lost_shards();
        for (shard, before) in &lost {
            let (lost, step) = self.rescue(*shard, before);
            steps.extend(step);
            losses.push(lost);
        }
        losses.extend(self.loading_primaries());
        steps.extend(self.followers());
        steps.extend(self.left_behind());
        steps.extend(self.detached());
        let joining = !steps.is_empty();
        steps.extend(self.unstick());
        steps.extend(self.orphans());
        steps.extend(self.forgettable());
        let stage = self
            .data_lost(&lost)
            .or_else(|| self.quorum_lost(lost.len()))
            .or_else(|| (!losses.is_empty()).then(|| self.without_primaries(losses)))
            .or_else(|| self.behind())
            .or_else(|| joining.then(|| self.joining()))
            .or_else(|| (!steps.is_empty()).then_some(Stage::Forgetting))?;
        Some(Plan::new(stage, steps))
    }

    fn data_lost(&self, lost: &[(ShardIndex, ShardMemory)]) -> Option<Stage> {
        let gone = lost.iter().filter(|(shard, before)| self.is_gone(*shard, before));
        let gone: Vec<ShardIndex> = gone.map(|(shard, _)| *shard).collect();
        (!gone.is_empty()).then_some(Stage::DataLost(gone))
    }

    fn quorum_lost(&self, lost: usize) -> Option<Stage> {
        let of = self.slot_owners();
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        (lost * 2 >= of && lost > 1).then(|| Stage::QuorumLost {
            answering: count(of - lost),
            of: count(of),
        })
    }

    /// Shards that are remembered with slots.
    pub(super) fn slot_owners(&self) -> usize {
        let owning = self.memory.topology.values().filter(|before| !before.slots.is_empty());
        owning.count()
    }

    /// A primary that loads its dataset responds, and does not serve clients.
    fn loading_primaries(&self) -> Vec<Lost> {
        let shards = self.memory.topology.keys();
        let heads = shards.filter_map(|shard| Some((*shard, self.observed.primary(*shard)?)));
        heads
            .filter(|(_, (_, facts))| facts.loading)
            .map(|(shard, (at, _))| Lost {
                shard,
                member: Some(at),
                observed: self
                    .restarting(at)
                    .unwrap_or_else(|| format!("member {at} reads its dataset")),
            })
            .collect()
    }

    /// Shards that owned slots and have no responding primary, with those of their slots that have no new owner. A
    /// shard is not lost if it was drained and only the last status write is missing.
    pub(super) fn lost_shards(&self) -> Vec<(ShardIndex, ShardMemory)> {
        let held = self
            .observed
            .owners()
            .into_values()
            .fold(SlotSet::new(), |all, slots| all.union(&slots));
        let silent = self
            .memory
            .topology
            .iter()
            .filter(|(shard, _)| self.observed.primary(**shard).is_none());
        let missing = silent.map(|(shard, before)| {
            (
                *shard,
                ShardMemory {
                    slots: before.slots.difference(&held),
                    ..before.clone()
                },
            )
        });
        missing.filter(|(_, before)| !before.slots.is_empty()).collect()
    }

    /// What was observed of a shard without a primary, and the steps to recover it.
    fn rescue(&self, shard: ShardIndex, before: &ShardMemory) -> (Lost, Vec<Step>) {
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
                    by: FailoverBy::Vote,
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

    /// The owner of the shard's slots responds under its id and owns none any more: they were removed by hand. It gets
    /// them back; its keys are still there.
    fn dropped_slots(&self, shard: ShardIndex, before: &ShardMemory) -> Option<(Lost, Vec<Step>)> {
        let member = self.slotless_primary(shard, before)?;
        let slots = before.slots.difference(&self.claimed());
        let lost = Lost {
            shard,
            member: Some(member),
            observed: format!("member {member} owns none of its slots any more"),
        };
        let step = (!slots.is_empty()).then_some(Step::AddSlots { member, slots });
        Some((lost, step.into_iter().collect()))
    }

    /// The only primary of a shard whose remembered members all respond under their ids, the others as its replicas.
    fn slotless_primary(&self, shard: ShardIndex, before: &ShardMemory) -> Option<MemberRef> {
        let facts = |node: &u32, id: &NodeId| {
            let at = MemberRef { shard, node: *node };
            let facts = self.observed.members.get(&at)?.facts()?;
            (facts.id == *id && !facts.loading).then_some((at, facts))
        };
        let known: Option<Vec<_>> = before.members.iter().map(|(node, id)| facts(node, id)).collect();
        let known = known?;
        let primary = |facts: &Facts| facts.is_primary() && follows_nobody(facts);
        let (at, head) = *known.iter().find(|(_, facts)| primary(facts))?;
        let follows = |facts: &Facts| facts.me().is_some_and(|me| me.primary == Some(head.id));
        let all = known.iter().all(|(other, facts)| *other == at || follows(facts));
        all.then_some(at)
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
        let said = self.observed.answering().filter_map(|(_, facts)| facts.map.get(id));
        let hosts: Vec<IpAddr> = said.filter_map(|entry| entry.address.host.parse().ok()).collect();
        let mut members = self.observed.shard(shard);
        let found = members.find(|(_, member)| member.ip().is_some_and(|ip| hosts.contains(&ip)));
        found.map(|(at, _)| at)
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
                let blank = facts.keys == 0 && !facts.loading && (follows_nobody(facts) || !facts.was_in_sync);
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
    fn give_back(&self, shard: ShardIndex, before: &ShardMemory) -> Vec<Step> {
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
        let free = before.slots.difference(&self.claimed());
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
            .filter(|(_, member)| member.facts().is_some_and(|facts| !follows_nobody(facts)));
        let orphans: Vec<MemberRef> = orphans.map(|(at, _)| at).collect();
        let believers = believers.filter(|step| !matches!(step, Step::Forget { at, .. } if orphans.contains(at)));
        let reset = orphans.iter().map(|at| Step::Reset(*at));
        believers.chain(reset).chain(given).collect()
    }

    /// Desired members that do not respond or do not replicate, by priority: pods that cannot run, then lost members,
    /// then members that the operator itself has restarted or failed over, then new members.
    fn behind(&self) -> Option<Stage> {
        let mut lost = Vec::new();
        let mut rolling = None;
        let mut creating = None;
        let mut replicating = None;
        for at in self.desired.members() {
            let head = self.head(at.shard).map(|(head, _)| head);
            let Some((member, observed)) = self
                .observed
                .members
                .get(&at)
                .and_then(|member| Some((member, away(at, member)?)))
            else {
                continue;
            };
            if head == Some(at) {
                continue;
            }
            let trouble = member.pod.as_ref().and_then(|pod| pod.trouble.clone());
            if let Some(trouble) = trouble.filter(|_| member.facts().is_none()) {
                return Some(Stage::Stuck {
                    member: Some(at),
                    trouble,
                });
            }
            let observed = replaced(at, member).unwrap_or(observed);
            let before = self.memory.topology.get(&at.shard);
            // After a planned failover the other members of the shard replicate the new primary: that takes them a
            // moment too.
            let moved = |turn: &MemberRef| *turn == at || (turn.shard == at.shard && member.facts().is_some());
            if let Some(turn) = self.memory.rolling.filter(moved) {
                rolling = Some(self.rolling(turn));
            } else if self.memory.shrinking && self.follows_promoted_replica(at, member) {
                rolling = Some(Stage::Removing);
            } else if self.follows_planned_failover(at, member) {
                rolling = Some(Stage::FailingOver {
                    shard: at.shard,
                    to: None,
                    drained: false,
                });
            } else if before.is_some_and(|before| before.members.contains_key(&at.node))
                && !(self.memory.growing && member.facts().is_some())
            {
                let (shard, member) = (at.shard, Some(at));
                lost.push(Lost {
                    shard,
                    member,
                    observed,
                });
            } else if before.is_some_and(|before| !before.slots.is_empty()) || member.facts().is_some() {
                replicating.get_or_insert(Stage::Replicating { shard: at.shard });
            } else {
                let shards = self.answering_shards();
                creating.get_or_insert(Stage::Creating { shards });
            }
        }
        let lost = (!lost.is_empty()).then_some(Stage::ReplicaLost(lost));
        lost.or(rolling).or(creating).or(replicating)
    }

    /// Slots that have an owner in the map of a responding member.
    fn claimed(&self) -> SlotSet {
        let maps = self.observed.answering().map(|(_, facts)| facts.map.covered());
        maps.fold(SlotSet::new(), |all, covered| all.union(&covered))
    }

    /// Slots without an owner in a cluster in which every member is present: they were removed manually. They go back
    /// to the shard that is remembered as their owner, which still has their keys.
    pub(super) fn uncovered(&self) -> Option<Plan> {
        let free = SlotSet::full().difference(&self.claimed());
        let blind = self
            .observed
            .answering()
            .any(|(at, facts)| self.desired.includes(at) && !facts.serves_all());
        if free.is_empty() && !blind {
            return None;
        }
        let back = self.memory.topology.iter().filter_map(|(shard, before)| {
            let (member, _) = self.observed.primary(*shard)?;
            let slots = before.slots.intersection(&free);
            (!slots.is_empty()).then_some(Step::AddSlots { member, slots })
        });
        let stage = Stage::Uncovered { slots: free.len() };
        let announced = self.announcements();
        Some(Plan::new(
            stage,
            back.chain(announced).chain(self.unbound_imports()).collect(),
        ))
    }

    /// For every member whose map has no owner for slots of a primary that it knows: that primary announces them.
    fn announcements(&self) -> Vec<Step> {
        let members = || {
            let answering = self.observed.answering();
            answering.filter(|(at, _)| self.desired.includes(*at))
        };
        let mut steps = Vec::new();
        for (to, facts) in members().filter(|(_, facts)| self.is_ours(facts)) {
            let unknown = SlotSet::full().difference(&facts.map.covered());
            for (at, primary) in members().filter(|(_, primary)| primary.id != facts.id) {
                let heard_of = facts.knows(primary.id) && primary.knows(facts.id);
                if heard_of && !primary.slots().intersection(&unknown).is_empty() {
                    steps.push(Step::AnnounceSlots { at, to });
                }
            }
        }
        steps
    }
}

/// What to report about a member that does not respond or is not in sync.
fn away(at: MemberRef, member: &Member) -> Option<String> {
    match &member.server {
        Server::Up(facts) if facts.loading => Some(format!("member {at} reads its dataset")),
        Server::Up(facts) if facts.in_sync => None,
        Server::Up(_) => Some(format!("member {at} is not in sync")),
        Server::Dead { .. } => Some(format!("member {at} refuses connections")),
        Server::Silent { .. } => Some(match &member.undecodable {
            Some(message) => format!("what member {at} says cannot be understood: {message}"),
            None => format!("member {at} does not answer"),
        }),
        Server::Nowhere if member.ip().is_some() => Some(format!("member {at} does not accept connections yet")),
        Server::Nowhere => Some(format!("member {at} has no address")),
    }
}

fn follows_nobody(facts: &Facts) -> bool {
    facts.me().is_some_and(|me| me.primary.is_none())
}

//! A cluster that was complete and no longer is: lost members, majorities and slots.

use valkey_admin::{NodeId, SlotSet};

use super::orphans::replaced;
use super::{Lost, Plan, Stage, View};
use crate::memory::ShardMemory;
use crate::model::{MemberRef, ShardIndex};
use crate::observation::{Facts, Member, Server};
use crate::step::Step;

impl View<'_> {
    pub(super) fn heal(&self) -> Option<Plan> {
        let here: Vec<(MemberRef, &Facts)> = self.observed.answering().collect();
        let mut steps = self.volumes();
        steps.extend(self.introductions(&here));
        let mut losses = Vec::new();
        let lost = self.lost_shards();
        for (shard, before) in &lost {
            let (lost, step) = self.forced_failover(*shard, before);
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
        let primaries = shards.filter_map(|shard| Some((*shard, self.observed.primary(*shard)?)));
        primaries
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

    /// The owner of the shard's slots responds under its id and owns none any more: they were removed by hand. It gets
    /// them back; its keys are still there.
    pub(super) fn dropped_slots(&self, shard: ShardIndex, before: &ShardMemory) -> Option<(Lost, Vec<Step>)> {
        let member = self.slotless_primary(shard, before)?;
        let slots = before.slots.difference(&self.observed.claimed());
        let lost = Lost {
            shard,
            member: Some(member),
            observed: format!("member {member} owns none of its slots any more"),
        };
        let step = (!slots.is_empty()).then_some(Step::AddSlots { member, slots });
        Some((lost, step.into_iter().collect()))
    }

    /// The only primary of a shard whose remembered members all respond under their ids, the others as its replicas.
    pub(super) fn slotless_primary(&self, shard: ShardIndex, before: &ShardMemory) -> Option<MemberRef> {
        let facts = |node: &u32, id: &NodeId| {
            let at = MemberRef { shard, node: *node };
            let facts = self.observed.members.get(&at)?.facts()?;
            (facts.id == *id && !facts.loading).then_some((at, facts))
        };
        let known: Option<Vec<_>> = before.members.iter().map(|(node, id)| facts(node, id)).collect();
        let known = known?;
        let primary = |facts: &Facts| facts.is_primary() && is_no_replica(facts);
        let (at, owner) = *known.iter().find(|(_, facts)| primary(facts))?;
        let follows = |facts: &Facts| facts.me().is_some_and(|me| me.primary == Some(owner.id));
        let all = known.iter().all(|(other, facts)| *other == at || follows(facts));
        all.then_some(at)
    }

    /// Desired members that do not respond or do not replicate, by priority: pods that cannot run, then lost members,
    /// then members that the operator itself has restarted or failed over, then new members.
    fn behind(&self) -> Option<Stage> {
        let mut lost = Vec::new();
        let mut rolling = None;
        let mut creating = None;
        let mut replicating = None;
        for at in self.desired.members() {
            let primary_at = self.primary_of(at.shard).map(|(primary_at, _)| primary_at);
            let Some((member, observed)) = self
                .observed
                .members
                .get(&at)
                .and_then(|member| Some((member, away(at, member)?)))
            else {
                continue;
            };
            if primary_at == Some(at) {
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

    /// Slots without an owner in a cluster in which every member is present: they were removed manually. They go back
    /// to the shard that is remembered as their owner, which still has their keys.
    pub(super) fn uncovered(&self) -> Option<Plan> {
        let free = SlotSet::full().difference(&self.observed.claimed());
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
        let announced = self.announce_slots();
        Some(Plan::new(
            stage,
            back.chain(announced).chain(self.unbound_imports()).collect(),
        ))
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

pub(super) fn is_no_replica(facts: &Facts) -> bool {
    facts.me().is_some_and(|me| me.primary.is_none())
}

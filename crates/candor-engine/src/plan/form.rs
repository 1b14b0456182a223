//! From servers that know nobody to a cluster: meet, give out slots, follow.

use valkey_admin::{NodeEntry, NodeId, SlotRange, SlotSet};

use super::{Plan, Stage, View};
use crate::model::{MemberRef, ShardIndex};
use crate::observation::{Facts, Member, Volume, Workload};
use crate::step::Step;

/// With it a fresh cluster agrees in half a second. A primary that was without slots, or among a minority, says ok only
/// one node timeout later (measured: 5.1 s with 5 s), and gossip is paced by it too. It is set only while nobody owns a
/// slot, and taken back as soon as everybody says ok or somebody is missing: it must not outlive the first agreement.
const BOOTSTRAP_TIMEOUT: u64 = 500;

impl View<'_> {
    pub(super) fn form(&self) -> Plan {
        if !self.seen.missing.is_empty() {
            let shards = self.answering_shards();
            return Plan::new(Stage::Creating { shards }, Vec::new());
        }
        if let Some((refusal, words)) = self.invalid() {
            return Plan::new(Stage::Refused { refusal, words }, Vec::new());
        }
        if let Some(plan) = self.stuck().or_else(|| self.start_anew()) {
            return plan;
        }
        // A member that had slots already is gone: what it had may be with its replica.
        if let Some(plan) = self.heal().filter(|_| !self.lost_shards().is_empty()) {
            return plan;
        }
        let here: Vec<(MemberRef, &Facts)> = self
            .seen
            .answering()
            .filter(|(at, facts)| self.wanted.wants(*at) && !facts.loading)
            .collect();
        let mut steps = self.volumes();
        steps.extend(self.introductions(&here));
        let unowned = here.iter().all(|(_, facts)| facts.slots().is_empty());
        let missing = self.wanted.members().count() - here.len();
        if missing > 0 {
            if !unowned {
                steps.extend(self.settle());
            }
            return Plan::new(
                Stage::Creating {
                    shards: self.answering_shards(),
                },
                steps,
            );
        }
        if !steps.is_empty() || !all_acquainted(&here) {
            steps.extend(if unowned { self.hurry(&here) } else { self.settle() });
            return Plan::new(Stage::Joining, steps);
        }
        let late = if unowned { self.hurry(&here) } else { Vec::new() };
        if !late.is_empty() {
            return Plan::new(Stage::Joining, late);
        }
        let followers = self.followers();
        let shares = self.first_shares(&here);
        if !shares.is_empty() {
            return Plan::new(Stage::Assigning, shares.into_iter().chain(followers).collect());
        }
        self.until_whole(followers)
    }

    /// Lets members that own nothing agree quickly.
    fn hurry(&self, here: &[(MemberRef, &Facts)]) -> Vec<Step> {
        let millis = BOOTSTRAP_TIMEOUT.min(self.wanted.node_timeout);
        let slow = here.iter().filter(|(_, facts)| facts.node_timeout != millis);
        slow.map(|(member, _)| Step::SetNodeTimeout {
            member: *member,
            millis,
        })
        .collect()
    }

    /// Slots and roles are given: what remains is that everybody sees it.
    fn until_whole(&self, followers: Vec<Step>) -> Plan {
        let mut wanted = self.seen.answering().filter(|(at, _)| self.wanted.wants(*at));
        let agreed = wanted.all(|(_, facts)| facts.ok);
        let late = if agreed { self.settle() } else { Vec::new() };
        let behind = |shard: &u32| {
            let mut members = self
                .seen
                .shard(ShardIndex(*shard))
                .filter(|(at, _)| self.wanted.wants(*at));
            let head = self.head(ShardIndex(*shard)).map(|(at, _)| at);
            members.any(|(at, member)| Some(at) != head && !member.facts().is_some_and(|facts| facts.in_sync))
        };
        if let Some(shard) = (0..self.wanted.shards).find(behind) {
            return Plan::new(
                Stage::Replicating {
                    shard: ShardIndex(shard),
                },
                late.into_iter().chain(followers).collect(),
            );
        }
        if !agreed {
            return Plan::new(Stage::Assigning, followers);
        }
        if !late.is_empty() || !followers.is_empty() {
            return Plan::new(Stage::Joining, late.into_iter().chain(followers).collect());
        }
        // The spec may have changed since the first slots were assigned: what is no longer desired leaves, and every
        // desired shard gets its share, before the cluster counts as formed.
        self.scale()
            .or_else(|| self.remove())
            .or_else(|| self.forget_removed())
            .or_else(|| self.refused())
            .or_else(|| self.configure())
            .unwrap_or_else(|| Plan::new(Stage::Healthy, Vec::new()))
    }

    fn forget_removed(&self) -> Option<Plan> {
        let steps = self.forgettable();
        (!steps.is_empty()).then(|| Plan::new(Stage::Forgetting, steps))
    }

    /// While nobody owns a slot, members of an older spec are replaced all at once: they hold nothing.
    fn start_anew(&self) -> Option<Plan> {
        let owned = self.seen.answering().any(|(_, facts)| !facts.map.covered().is_empty());
        if owned || self.is_a_volume_unheard() {
            return None;
        }
        let outdated = self.wanted.members().filter(|at| {
            let member = self.seen.members.get(at);
            member.is_some_and(|member| member.workload == Workload::Outdated)
        });
        let steps: Vec<Step> = outdated.map(Step::RollMember).collect();
        let shards = self.answering_shards();
        (!steps.is_empty()).then(|| Plan::new(Stage::Creating { shards }, steps))
    }

    /// Every pair that has not met, or of which one would not find the other where it is now: when all members come
    /// back at new addresses, nobody does. MEET goes only to a member that answered just now and is blank or ours:
    /// pod addresses are reused, and two clusters that met cannot be parted.
    pub(super) fn introductions(&self, here: &[(MemberRef, &Facts)]) -> Vec<Step> {
        let safe: Vec<&(MemberRef, &Facts)> = here.iter().filter(|(_, facts)| self.is_ours(facts)).collect();
        let mut steps = Vec::new();
        for (place, (at, facts)) in safe.iter().enumerate() {
            for (with, other) in &safe[place + 1..] {
                // One that was reset is still known to others and knows nobody: it must be the one to call.
                let (caller, called) = if self.finds(facts, *with, other) {
                    (*with, *at)
                } else {
                    (*at, *with)
                };
                let met = self.finds(facts, *with, other) && self.finds(other, *at, facts);
                if !met && !self.is_meeting(facts, *with) && !self.is_meeting(other, *at) {
                    steps.push(Step::Meet {
                        at: caller,
                        with: called,
                    });
                }
            }
        }
        steps
    }

    /// Whether a member knows another, and where it is: after all were restarted at once everybody has everybody's old
    /// address, and nobody would ever find anybody.
    fn finds(&self, facts: &Facts, at: MemberRef, other: &Facts) -> bool {
        let ip = self.seen.members.get(&at).and_then(Member::ip);
        let host = facts.map.get(other.id).map(|entry| entry.address.host.as_str());
        let there = host.and_then(|host| host.parse().ok());
        // A name, or an address not yet learned, says nothing.
        let elsewhere = ip.is_some() && there.is_some() && there != ip;
        facts.knows(other.id) && !elsewhere
    }

    /// Blank, remembered, known to one who is remembered, or in the company of our own members only. A dead node
    /// that was never remembered is no company: it may be one of ours that died too early; but then whoever knew it
    /// must hold nothing.
    pub(super) fn is_ours(&self, facts: &Facts) -> bool {
        let company = facts
            .map
            .0
            .iter()
            .filter(|entry| !entry.flags.handshake && entry.id != facts.id);
        let dead = |entry: &NodeEntry| entry.flags.failed || entry.flags.suspected;
        // Whoever is alone and still reads its dataset says nothing of where it belongs.
        if facts.loading && facts.map.0.len() <= 1 && !self.memory.knows(facts.id) {
            return false;
        }
        let mut strangers = company.filter(|entry| !self.is_member(entry.id)).peekable();
        let introduced = || {
            let mut ours = self.seen.answering().filter(|(_, other)| self.memory.knows(other.id));
            ours.any(|(_, other)| other.knows(facts.id))
        };
        facts.is_blank()
            || self.memory.knows(facts.id)
            || (strangers.peek().is_none() && !self.came_from_nowhere(facts))
            || introduced()
            || (facts.keys == 0 && facts.slots().is_empty() && strangers.all(dead))
    }

    /// It holds something, is alone, and has no volume that it could have it from.
    fn came_from_nowhere(&self, facts: &Facts) -> bool {
        let mut members = self.seen.members.values();
        let kept =
            members.any(|member| member.volume != Volume::None && member.facts().is_some_and(|one| one.id == facts.id));
        facts.map.0.len() <= 1 && !facts.is_blank() && !kept
    }

    fn is_member(&self, id: NodeId) -> bool {
        self.memory.knows(id) || self.seen.with_id(id).is_some()
    }

    /// A handshake with that member is under way.
    fn is_meeting(&self, facts: &Facts, with: MemberRef) -> bool {
        let Some(ip) = self.seen.members.get(&with).and_then(Member::ip) else {
            return false;
        };
        let ip = ip.to_string();
        facts
            .map
            .0
            .iter()
            .any(|entry| entry.flags.handshake && entry.address.host == ip)
    }

    /// Somebody who keeps a volume does not answer: what is on it is not known.
    fn is_a_volume_unheard(&self) -> bool {
        let unheard = |member: &Member| member.volume == Volume::Kept && member.facts().is_none();
        self.seen.members.values().any(unheard)
    }

    /// The first shares of every shard. No slot is handed out while data for it may exist: every member must have
    /// answered (the caller saw to it), and so must whoever keeps a volume.
    fn first_shares(&self, here: &[(MemberRef, &Facts)]) -> Vec<Step> {
        if self.is_a_volume_unheard() {
            return Vec::new();
        }
        let covered = here
            .iter()
            .fold(SlotSet::new(), |all, (_, facts)| all.union(&facts.map.covered()));
        let share = |shard| {
            let (member, _) = self.head(ShardIndex(shard))?;
            let slots = SlotSet::from(SlotRange::of_shard(shard, self.wanted.shards)?).difference(&covered);
            (!slots.is_empty()).then_some(Step::AddSlots { member, slots })
        };
        (0..self.wanted.shards).filter_map(share).collect()
    }

    /// Members that shall follow the primary of their shard and do not.
    pub(super) fn followers(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        for (at, facts) in self.seen.answering().filter(|(at, _)| self.wanted.wants(*at)) {
            let Some((head, primary)) = self.head(at.shard) else {
                continue;
            };
            let follows = facts.me().and_then(|me| me.primary) == Some(primary.id);
            // A primary with slots or keys is never told to follow: what it holds would be gone.
            let free = !facts.is_primary() || (facts.slots().is_empty() && facts.keys == 0);
            if at != head && !follows && free && facts.knows(primary.id) && !facts.loading {
                steps.push(Step::Replicate {
                    member: at,
                    primary: primary.id,
                });
            }
        }
        steps
    }
}

/// Everybody knows everybody.
fn all_acquainted(here: &[(MemberRef, &Facts)]) -> bool {
    here.iter().all(|(_, facts)| {
        here.iter()
            .all(|(_, other)| facts.id == other.id || facts.knows(other.id))
    })
}

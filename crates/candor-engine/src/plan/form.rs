//! From blank servers to a cluster: meet, assign slots, replicate.

use valkey_admin::{NodeEntry, NodeId, SlotRange, SlotSet};

use super::{Plan, Stage, View};
use crate::model::{MemberRef, ShardIndex};
use crate::observation::{Facts, Member, Volume, Workload};
use crate::step::Step;

/// With this node timeout, in milliseconds, a fresh cluster converges in half a second. A primary that was without
/// slots, or in a minority, reports ok only one node timeout later (measured: 5.1 s with 5 s), and the node timeout
/// also paces gossip. It is set only while no slot has an owner. It is reverted as soon as every member reports ok or
/// a member is missing: it must not outlive the first convergence.
const BOOTSTRAP_TIMEOUT: u64 = 500;

impl View<'_> {
    pub(super) fn form(&self) -> Plan {
        if !self.observed.missing.is_empty() {
            let shards = self.answering_shards();
            return Plan::new(Stage::Creating { shards }, Vec::new());
        }
        if let Some((rejection, message)) = self.invalid() {
            return Plan::new(Stage::Rejected { rejection, message }, Vec::new());
        }
        if let Some(plan) = self.stuck().or_else(|| self.start_anew()) {
            return plan;
        }
        // A member that already had slots is gone: its replica may have the data.
        if let Some(plan) = self.heal().filter(|_| !self.lost_shards().is_empty()) {
            return plan;
        }
        let here: Vec<(MemberRef, &Facts)> = self
            .observed
            .answering()
            .filter(|(at, facts)| self.desired.includes(*at) && !facts.loading)
            .collect();
        let mut steps = self.volumes();
        // A server that owns slots and is not desired gives them up first: it must be known for that.
        let joining = |at: MemberRef, facts: &Facts| self.desired.includes(at) || !facts.slots().is_empty();
        let known: Vec<(MemberRef, &Facts)> = self
            .observed
            .answering()
            .filter(|(at, facts)| joining(*at, facts) && !facts.loading)
            .collect();
        steps.extend(self.introductions(&known));
        let unowned = known.iter().all(|(_, facts)| facts.slots().is_empty());
        let missing = self.desired.members().count() - here.len();
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
        if !steps.is_empty() || !all_acquainted(&known) {
            steps.extend(if unowned { self.hurry(&here) } else { self.settle() });
            return Plan::new(Stage::Joining, steps);
        }
        let late = if unowned { self.hurry(&here) } else { Vec::new() };
        if !late.is_empty() {
            return Plan::new(Stage::Joining, late);
        }
        let mut followers = self.followers();
        followers.extend(self.detached());
        let shares = self.first_shares();
        if !shares.is_empty() {
            return Plan::new(Stage::Assigning, shares.into_iter().chain(followers).collect());
        }
        self.until_whole(followers)
    }

    /// Lets members that own no slots converge quickly.
    fn hurry(&self, here: &[(MemberRef, &Facts)]) -> Vec<Step> {
        let millis = BOOTSTRAP_TIMEOUT.min(self.desired.node_timeout);
        let slow = here.iter().filter(|(_, facts)| facts.node_timeout != millis);
        slow.map(|(member, _)| Step::SetNodeTimeout {
            member: *member,
            millis,
        })
        .collect()
    }

    /// Slots and roles are assigned: what remains is that every member observes it.
    fn until_whole(&self, followers: Vec<Step>) -> Plan {
        let mut desired = self.observed.answering().filter(|(at, _)| self.desired.includes(*at));
        let agreed = desired.all(|(_, facts)| facts.serves_all());
        let late = if agreed { self.settle() } else { Vec::new() };
        let behind = |shard: &u32| {
            let mut members = self
                .observed
                .shard(ShardIndex(*shard))
                .filter(|(at, _)| self.desired.includes(*at));
            let primary_at = self.primary_of(ShardIndex(*shard)).map(|(at, _)| at);
            members.any(|(at, member)| Some(at) != primary_at && !member.facts().is_some_and(|facts| facts.in_sync))
        };
        if let Some(shard) = (0..self.desired.shards).find(behind) {
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
            .or_else(|| self.unfinished_handshakes())
            .or_else(|| self.reject_spec())
            .or_else(|| self.configure())
            .unwrap_or_else(|| Plan::new(Stage::Healthy, Vec::new()))
    }

    fn forget_removed(&self) -> Option<Plan> {
        let steps = self.forgettable();
        (!steps.is_empty()).then(|| Plan::new(Stage::Forgetting, steps))
    }

    /// A member that was met and then removed may still be in a handshake. Once it is over, the node is in the map and can
    /// be forgotten. A handshake without a reply times out.
    fn unfinished_handshakes(&self) -> Option<Plan> {
        let mut entries = self.observed.answering().flat_map(|(_, facts)| &facts.map.0);
        let unfinished = entries.any(|entry| entry.flags.handshake);
        unfinished.then(|| Plan::new(Stage::Joining, Vec::new()))
    }

    /// While no slot has an owner, members of an older spec are replaced all at once: they hold no data.
    fn start_anew(&self) -> Option<Plan> {
        let owned = self
            .observed
            .answering()
            .any(|(_, facts)| !facts.map.covered().is_empty());
        if owned || self.is_a_volume_unanswered() {
            return None;
        }
        let outdated = self.desired.members().filter(|at| {
            let member = self.observed.members.get(at);
            member.is_some_and(|member| member.workload == Workload::Outdated)
        });
        let steps: Vec<Step> = outdated.map(Step::RollMember).collect();
        let shards = self.answering_shards();
        (!steps.is_empty()).then(|| Plan::new(Stage::Creating { shards }, steps))
    }

    /// Every pair of members that has not met, or in which one has an outdated address of the other: if all members
    /// come back at new addresses, none of them finds another. `CLUSTER MEET` goes only to a member that responded
    /// just now and is blank or belongs to this cluster. Pod addresses are reused, and two clusters that met cannot be
    /// separated.
    pub(super) fn introductions(&self, here: &[(MemberRef, &Facts)]) -> Vec<Step> {
        let safe: Vec<&(MemberRef, &Facts)> = here.iter().filter(|(_, facts)| self.is_ours(facts)).collect();
        let mut steps = Vec::new();
        for (place, (at, facts)) in safe.iter().enumerate() {
            for (with, other) in &safe[place + 1..] {
                // A member that was reset is still known to others and knows no node itself: it must send the MEET.
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

    /// Whether a member knows another member and its current address. After all members restarted at once, each has
    /// only the old addresses of the others, and none would ever find another.
    fn finds(&self, facts: &Facts, at: MemberRef, other: &Facts) -> bool {
        let ip = self.observed.members.get(&at).and_then(Member::ip);
        let host = facts.map.get(other.id).map(|entry| entry.address.host.as_str());
        let there = host.and_then(|host| host.parse().ok());
        // A host name, or an address not yet learned, proves nothing.
        let elsewhere = ip.is_some() && there.is_some() && there != ip;
        facts.knows(other.id) && !elsewhere
    }

    /// Whether a server belongs to this cluster: it is blank, remembered, known to a remembered member, or knows only
    /// members. A dead node in its map that was never remembered does not count against it: it may be a member that
    /// died too early. But then the server that knew it must hold no data.
    pub(super) fn is_ours(&self, facts: &Facts) -> bool {
        let company = facts
            .map
            .0
            .iter()
            .filter(|entry| !entry.flags.handshake && entry.id != facts.id);
        let dead = |entry: &NodeEntry| entry.flags.failed || entry.flags.suspected;
        // A server that knows no other node and still loads its dataset does not show which cluster it belongs to.
        if facts.loading && facts.map.0.len() <= 1 && !self.memory.knows(facts.id) {
            return false;
        }
        let mut unknown = company.filter(|entry| !self.is_member(entry.id)).peekable();
        let introduced = || {
            let mut ours = self
                .observed
                .answering()
                .filter(|(_, other)| self.memory.knows(other.id));
            ours.any(|(_, other)| other.knows(facts.id))
        };
        facts.is_blank()
            || self.memory.knows(facts.id)
            || (unknown.peek().is_none() && !self.came_from_nowhere(facts))
            || introduced()
            || (facts.keys == 0 && facts.slots().is_empty() && unknown.all(dead))
    }

    /// It holds data, knows no other node, and has no volume that the data could come from.
    fn came_from_nowhere(&self, facts: &Facts) -> bool {
        let mut members = self.observed.members.values();
        let kept =
            members.any(|member| member.volume != Volume::None && member.facts().is_some_and(|one| one.id == facts.id));
        facts.map.0.len() <= 1 && !facts.is_blank() && !kept
    }

    fn is_member(&self, id: NodeId) -> bool {
        self.memory.knows(id) || self.observed.with_id(id).is_some()
    }

    /// A handshake with that member is in progress.
    fn is_meeting(&self, facts: &Facts, with: MemberRef) -> bool {
        let Some(ip) = self.observed.members.get(&with).and_then(Member::ip) else {
            return false;
        };
        let ip = ip.to_string();
        facts
            .map
            .0
            .iter()
            .any(|entry| entry.flags.handshake && entry.address.host == ip)
    }

    /// A member with a retained volume does not respond: what is on the volume is unknown.
    fn is_a_volume_unanswered(&self) -> bool {
        let unanswered = |member: &Member| member.volume == Volume::Kept && member.facts().is_none();
        self.observed.members.values().any(unanswered)
    }

    /// The first slots of every shard. No slot is assigned while data for it may exist: every desired member must have
    /// responded (the caller ensures this), and so must every member with a retained volume.
    fn first_shares(&self) -> Vec<Step> {
        if self.is_a_volume_unanswered() {
            return Vec::new();
        }
        let claimed = self.observed.claimed();
        let share = |shard| {
            let (member, _) = self.primary_of(ShardIndex(shard))?;
            let slots = SlotSet::from(SlotRange::of_shard(shard, self.desired.shards)?).difference(&claimed);
            (!slots.is_empty()).then_some(Step::AddSlots { member, slots })
        };
        (0..self.desired.shards).filter_map(share).collect()
    }

    /// Members that should replicate the primary of their shard and do not.
    pub(super) fn followers(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        for (at, facts) in self.observed.answering().filter(|(at, _)| self.desired.includes(*at)) {
            let Some((primary_at, primary)) = self.primary_of(at.shard) else {
                continue;
            };
            let follows = facts.me().and_then(|me| me.primary) == Some(primary.id);
            // A primary with slots or keys is never made a replica: its data would be lost.
            let free = !facts.is_primary() || (facts.slots().is_empty() && facts.keys == 0);
            if at != primary_at && !follows && free && facts.knows(primary.id) && !facts.loading {
                steps.push(Step::Replicate {
                    member: at,
                    primary: primary.id,
                });
            }
        }
        steps
    }

    /// Former primaries that own no slots and replicate nothing after a failover of the operator's own. A server that
    /// does not know yet that the new primary belongs to its shard does not follow it, and rejects `CLUSTER REPLICATE`
    /// while it has keys. It is reset: the new primary has the data, because it took over with the old one's help.
    pub(super) fn left_behind(&self) -> Vec<Step> {
        let left = self.observed.answering().filter(|(at, facts)| {
            let emptied = facts.is_primary() && facts.slots().is_empty() && facts.keys > 0 && !facts.loading;
            let primary_at = self.observed.primary(at.shard).map(|(primary_at, _)| primary_at);
            let ours = self.memory.rolling == Some(*at)
                || (primary_at.is_some() && self.memory.candidate == primary_at)
                || self.requested_from() == Some(facts.id);
            emptied && ours && self.desired.includes(*at) && primary_at.is_some_and(|primary_at| primary_at != *at)
        });
        left.map(|(at, _)| Step::Reset(at)).collect()
    }

    /// Replicas of another shard's primary in a shard that has no primary and owns nothing: one of them is reset, and
    /// becomes the primary of its shard. Its copy is not needed: the primary that it replicates has the data.
    pub(super) fn detached(&self) -> Vec<Step> {
        let shards = (0..self.desired.shards).map(ShardIndex);
        let alone = shards.filter(|shard| self.primary_of(*shard).is_none() && !self.owes_slots(*shard));
        let first = alone.filter_map(|shard| {
            let mut members = self.observed.shard(shard).filter(|(at, _)| self.desired.includes(*at));
            let found =
                members.find(|(_, member)| member.facts().is_some_and(|facts| self.follows_elsewhere(shard, facts)));
            found.map(|(at, _)| Step::Reset(at))
        });
        first.collect()
    }

    /// Whether a member replicates a primary with slots of another shard that responds.
    pub(super) fn follows_elsewhere(&self, shard: ShardIndex, facts: &Facts) -> bool {
        let primary = facts.me().and_then(|me| me.primary);
        let followed = primary.and_then(|id| self.observed.answering().find(|(_, one)| one.id == id));
        followed.is_some_and(|(at, primary)| {
            at.shard != shard && primary.is_primary() && !primary.slots().is_empty() && !primary.loading
        })
    }
}

/// Every member knows every other member.
fn all_acquainted(here: &[(MemberRef, &Facts)]) -> bool {
    here.iter().all(|(_, facts)| {
        here.iter()
            .all(|(_, other)| facts.id == other.id || facts.knows(other.id))
    })
}

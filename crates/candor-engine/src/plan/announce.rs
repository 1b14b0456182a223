//! Members that have met another one and have not learned its slots or its primary yet. Gossip carries them with the next
//! ping, up to ten seconds later; an announcement carries them at once.

use valkey_admin::SlotSet;

use super::View;
use crate::model::MemberRef;
use crate::observation::Facts;
use crate::step::Step;

impl View<'_> {
    /// For every member whose map has no owner for slots of a primary that it knows: that primary announces them.
    pub(super) fn announce_slots(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        for (to, facts) in self.listeners() {
            let unknown = SlotSet::full().difference(&facts.map.covered());
            let owners = self.speakers(facts);
            let owners = owners.filter(|(_, owner)| !owner.slots().intersection(&unknown).is_empty());
            steps.extend(owners.map(|(at, _)| Step::Announce { at, to }));
        }
        steps
    }

    /// For every member that assigns the two to different shards: both announce themselves.
    pub(super) fn announce_shard(&self, one: MemberRef, other: MemberRef) -> Vec<Step> {
        let mut steps = Vec::new();
        for (to, facts) in self
            .listeners()
            .filter(|(_, facts)| !self.takes_as_one(facts, one, other))
        {
            let both = self.speakers(facts).filter(|(at, _)| *at == one || *at == other);
            steps.extend(both.map(|(at, _)| Step::Announce { at, to }));
        }
        steps
    }

    /// Members of this cluster that respond. Addresses are reused: a `CLUSTER MEET` goes to no other server.
    fn listeners(&self) -> impl Iterator<Item = (MemberRef, &Facts)> {
        let members = self.observed.answering();
        members.filter(|(at, facts)| self.desired.includes(*at) && self.is_ours(facts))
    }

    /// Members that have met this one.
    fn speakers<'a>(&'a self, facts: &'a Facts) -> impl Iterator<Item = (MemberRef, &'a Facts)> {
        let others = self.listeners().filter(|(_, other)| other.id != facts.id);
        others.filter(|(_, other)| facts.knows(other.id) && other.knows(facts.id))
    }
}

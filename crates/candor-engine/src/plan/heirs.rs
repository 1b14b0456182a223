//! Who may take over from a lost primary, and on which proof.

use valkey_admin::NodeId;

use super::View;
use crate::memory::Fate;
use crate::model::{MemberRef, ShardIndex};
use crate::observation::{Facts, Member, Server, Volume};

/// What is known of a shard's old primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Evidence {
    /// It may live.
    None,
    /// Nobody listens where it was: enough for a vote.
    Gone,
    /// Kubernetes says that it ended: enough for a takeover.
    Ended,
}

impl View<'_> {
    /// What is known of the process that a member was.
    pub(super) fn evidence(&self, at: MemberRef) -> Evidence {
        let Some(member) = self.seen.members.get(&at) else {
            return Evidence::None;
        };
        let refused = matches!(member.server, Server::Dead { .. } | Server::Nowhere);
        let ended = member.pod.as_ref().is_some_and(|pod| {
            // Of a machine that is cut off the last word is old: a process that it has started again since is silent to
            // us. Where somebody refuses, nothing is cut off.
            let refuses = refused && pod.ip.is_some();
            (pod.ended && (pod.node_believed || refuses)) || (pod.restarted && refuses)
        });
        let terminated = self.fate(at, member) == Fate::Terminated;
        let proved = match &member.server {
            // It came back as somebody else: the process that was the primary is gone, unless it ran in another pod.
            Server::Up(_) => true,
            Server::Dead { .. } | Server::Nowhere => ended || terminated,
            // In a pod that has taken the place of the last one it may be itself again, with its volume.
            Server::Silent { .. } => ended || (terminated && self.is_last_pod(at, member)),
        };
        match &member.server {
            // In another pod it may live; what is known of this one is no more than a reason to vote.
            _ if proved && self.may_still_run(at, member) => Evidence::Gone,
            _ if proved => Evidence::Ended,
            Server::Dead { .. } => Evidence::Gone,
            _ => Evidence::None,
        }
    }

    /// What became of the pod that a member last ran in. One that status does not remember is taken for the one that is
    /// there.
    fn fate(&self, at: MemberRef, member: &Member) -> Fate {
        let before = self.memory.topology.get(&at.shard);
        let last = before.and_then(|before| before.pods.get(&at.node));
        last.map_or(Fate::Standing, |last| last.fate(member))
    }

    /// No other pod has taken the place of the one that a member last ran in.
    fn is_last_pod(&self, at: MemberRef, member: &Member) -> bool {
        let before = self.memory.topology.get(&at.shard);
        let last = before.and_then(|before| before.pods.get(&at.node));
        let uid = member.pod.as_ref().map(|pod| &pod.uid);
        uid.is_none_or(|uid| last.is_some_and(|last| last.uid == *uid))
    }

    /// The node on which the pod that a member last ran in may still be running.
    pub(super) fn unconfirmed_node(&self, at: MemberRef) -> Option<&str> {
        let member = self.seen.members.get(&at)?;
        let last = self.memory.topology.get(&at.shard)?.pods.get(&at.node)?;
        (last.fate(member) == Fate::Unknown).then_some(last.node.as_str())
    }

    /// A server may still be running in another pod of a member than the one that is there: on a node that is cut off it
    /// serves those who are cut off with it.
    pub(super) fn may_still_run(&self, at: MemberRef, member: &Member) -> bool {
        member.lingers || self.fate(at, member) == Fate::Unknown
    }

    /// The best replica of the lost primary: in sync until the link went down, with the most of the stream. While it
    /// still has its link to the primary, nothing is proved and nothing is done.
    pub(super) fn heir(&self, shard: ShardIndex, primary: NodeId) -> Option<MemberRef> {
        let heirs = self
            .seen
            .shard(shard)
            .filter_map(|(at, member)| Some((at, member.facts()?)));
        let able = heirs.filter(|(_, facts)| {
            let follows = facts
                .me()
                .is_some_and(|me| me.primary == Some(primary) && !me.flags.no_failover);
            follows && facts.was_in_sync && facts.link_down && !facts.loading
        });
        able.max_by_key(|(at, facts)| (facts.offset, std::cmp::Reverse(*at)))
            .map(|(at, _)| at)
    }

    /// Where nobody can vote and the primary took its data with it, a copy that was being renewed is the best there is: it
    /// is what the servers would elect. Only when everybody else of the shard is known to have nothing.
    pub(super) fn last_resort(&self, shard: ShardIndex, primary: NodeId, evidence: Evidence) -> Option<MemberRef> {
        if evidence != Evidence::Ended || self.can_vote() {
            return None;
        }
        let follows = |facts: &Facts| {
            let me = facts.me();
            me.is_some_and(|me| me.primary == Some(primary) && !me.flags.no_failover)
        };
        let mut copies = Vec::new();
        for (at, member) in self.seen.shard(shard) {
            match member.facts() {
                Some(facts) if facts.keys > 0 && follows(facts) && facts.link_down && !facts.loading => {
                    copies.push((facts.keys, std::cmp::Reverse(at)));
                }
                Some(facts) if facts.keys == 0 && !facts.loading => {}
                None if self.lost_its_memory(at, member) => {}
                _ => return None,
            }
        }
        copies.into_iter().max().map(|(_, std::cmp::Reverse(at))| at)
    }

    /// What it had was in memory, and that process is dead.
    pub(super) fn lost_its_memory(&self, at: MemberRef, member: &Member) -> bool {
        member.facts().is_none() && member.volume != Volume::Kept && self.evidence(at) == Evidence::Ended
    }

    /// Whether most primaries with slots are there to vote.
    pub(super) fn can_vote(&self) -> bool {
        let of = self.slot_owners();
        let answering = self
            .memory
            .topology
            .keys()
            .filter(|shard| self.seen.primary(**shard).is_some())
            .count();
        answering * 2 > of
    }
}

//! Which replica may replace a lost primary, and which evidence that requires.

use valkey_admin::NodeId;

use super::View;
use crate::memory::Fate;
use crate::model::{MemberRef, ShardIndex};
use crate::observation::{Facts, Member, Server, Volume};

/// The evidence about a shard's old primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Evidence {
    /// It may still be running.
    None,
    /// Its address refuses connections: sufficient for a forced failover, which needs a vote.
    Gone,
    /// Kubernetes confirms that it has terminated: sufficient for a takeover.
    Ended,
}

impl View<'_> {
    /// The evidence that the member's former process has terminated.
    pub(super) fn evidence(&self, at: MemberRef) -> Evidence {
        let Some(member) = self.seen.members.get(&at) else {
            return Evidence::None;
        };
        let refused = matches!(member.server, Server::Dead { .. } | Server::Nowhere);
        let ended = member.pod.as_ref().is_some_and(|pod| {
            // A partitioned node's container status is stale: the kubelet may have restarted the container since, and
            // the new process is unreachable for the operator. A refused connection proves that the node is reachable.
            let refuses = refused && pod.ip.is_some();
            (pod.ended && (pod.node_believed || refuses)) || (pod.restarted && refuses)
        });
        let terminated = self.fate(at, member) == Fate::Terminated;
        let proved = match &member.server {
            // It came back under another node id: the process that was the primary is gone, unless it ran in another
            // pod.
            Server::Up(_) => true,
            Server::Dead { .. } | Server::Nowhere => ended || terminated,
            // In a pod that replaced the last one, it may be the same node again, with its volume.
            Server::Silent { .. } => ended || (terminated && self.is_last_pod(at, member)),
        };
        match &member.server {
            // It may still run in another pod. The evidence about this pod only justifies a forced failover, which
            // needs a vote.
            _ if proved && self.may_still_run(at, member) => Evidence::Gone,
            _ if proved => Evidence::Ended,
            Server::Dead { .. } => Evidence::Gone,
            _ => Evidence::None,
        }
    }

    /// The state of the pod that a member last ran in. If status does not remember one, the present pod counts as that
    /// pod.
    fn fate(&self, at: MemberRef, member: &Member) -> Fate {
        let before = self.memory.topology.get(&at.shard);
        let last = before.and_then(|before| before.pods.get(&at.node));
        last.map_or(Fate::Standing, |last| last.fate(member))
    }

    /// No other pod has replaced the one that a member last ran in.
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
        (last.fate(member) == Fate::Unknown && !member.lingers).then_some(last.node.as_str())
    }

    /// A server may still be running in another pod than the member's present one. On a partitioned node it still
    /// serves clients in the same partition.
    pub(super) fn may_still_run(&self, at: MemberRef, member: &Member) -> bool {
        member.lingers || self.fate(at, member) == Fate::Unknown
    }

    /// The best replica of the lost primary: in sync until the link went down, with the highest replication offset.
    /// While a replica still has its link to the primary, there is no evidence that the primary is gone, and it is no
    /// candidate.
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

    /// If no majority can vote and the primary's data is gone with it, a replica in the middle of a full sync has the
    /// best remaining copy: the servers would elect it. Used only if every other member of the shard is known to have
    /// no data.
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

    /// Its data was in memory only, and that process has terminated.
    pub(super) fn lost_its_memory(&self, at: MemberRef, member: &Member) -> bool {
        member.facts().is_none() && member.volume != Volume::Kept && self.evidence(at) == Evidence::Ended
    }

    /// Whether a majority of the primaries with slots responds and can vote.
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

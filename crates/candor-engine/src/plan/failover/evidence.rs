//! The evidence that a primary has terminated.

use super::super::View;
use crate::memory::Fate;
use crate::model::MemberRef;
use crate::observation::{Member, Server, Volume};

/// The evidence about a shard's old primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::plan) enum Evidence {
    /// It may still be running.
    None,
    /// Its address refuses connections: sufficient for a forced failover, which needs a vote.
    Gone,
    /// Kubernetes confirms that it has terminated: sufficient for a takeover.
    Ended,
}

impl View<'_> {
    /// The evidence that the member's former process has terminated.
    pub(in crate::plan) fn evidence(&self, at: MemberRef) -> Evidence {
        let Some(member) = self.observed.members.get(&at) else {
            return Evidence::None;
        };
        let rejected = matches!(member.server, Server::Dead { .. } | Server::Nowhere);
        let ended = member.pod.as_ref().is_some_and(|pod| {
            // A partitioned node's container status is stale: the kubelet may have restarted the container since, and
            // the new process is unreachable for the operator. A refused connection proves that the node is reachable.
            let refuses = rejected && pod.ip.is_some();
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
    pub(in crate::plan) fn unconfirmed_node(&self, at: MemberRef) -> Option<&str> {
        let member = self.observed.members.get(&at)?;
        let last = self.memory.topology.get(&at.shard)?.pods.get(&at.node)?;
        (last.fate(member) == Fate::Unknown && !member.may_run_elsewhere).then_some(last.node.as_str())
    }

    /// A server may still be running in another pod than the member's present one. On a partitioned node it still
    /// serves clients in the same partition.
    pub(in crate::plan) fn may_still_run(&self, at: MemberRef, member: &Member) -> bool {
        member.may_run_elsewhere || self.fate(at, member) == Fate::Unknown
    }

    /// Its data was in memory only, and that process has terminated.
    pub(in crate::plan) fn lost_its_memory(&self, at: MemberRef, member: &Member) -> bool {
        member.facts().is_none() && member.volume != Volume::Kept && self.evidence(at) == Evidence::Ended
    }
}

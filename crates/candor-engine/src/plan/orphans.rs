//! Pods of members that lost their labels: Kubernetes has replaced them, but their servers are still nodes of the
//! cluster. Such a pod is deleted once its data is not needed any more.

use valkey_admin::NodeId;

use super::{Lost, View};
use crate::memory::ShardMemory;
use crate::model::{MemberRef, ShardIndex};
use crate::observation::{Facts, Member, OrphanedPod, Volume};
use crate::step::{FailoverBy, Step};

impl View<'_> {
    /// Deletes orphaned pods of shards that have a responding primary, if their servers own no slots.
    pub(super) fn orphans(&self) -> Vec<Step> {
        let orphans = self.observed.members.iter().filter_map(|(at, member)| {
            let orphan = member.orphan.found().filter(|orphan| !orphan.leaving)?;
            Some((*at, orphan))
        });
        let spare =
            orphans.filter(|(at, orphan)| self.observed.primary(at.shard).is_some() && !self.owns_slots(*at, orphan));
        spare.map(|(at, _)| Step::DeleteOrphanedPod(at)).collect()
    }

    /// Whether a responding member attributes slots to the server of an orphaned pod.
    fn owns_slots(&self, at: MemberRef, orphan: &OrphanedPod) -> bool {
        let host = orphan.ip.map(|ip| ip.to_string());
        let before = self.memory.topology.get(&at.shard);
        let id = before.and_then(|before| before.members.get(&at.node));
        let mut entries = self.observed.answering().flat_map(|(_, facts)| facts.map.0.iter());
        entries.any(|entry| {
            let same = Some(&entry.id) == id && self.observed.with_id(entry.id).is_none();
            !entry.slots.is_empty() && (same || Some(&entry.address.host) == host.as_ref())
        })
    }

    /// The primary of a shard runs in an orphaned pod: a replica in sync replaces it by a planned failover. Without
    /// one, the pod is restarted if the member's volume retains the data, as in a rolling update. Otherwise the pod has
    /// the only copy, and a user must restore its labels.
    pub(super) fn orphaned_primary(
        &self,
        shard: ShardIndex,
        before: &ShardMemory,
        known: Option<(NodeId, Option<MemberRef>)>,
    ) -> Option<(Lost, Vec<Step>)> {
        let mut orphans = self
            .observed
            .shard(shard)
            .filter(|(_, member)| member.orphan.found().is_some());
        let (at, member) = match known {
            Some((_, Some(at))) => orphans.find(|(orphan, _)| *orphan == at)?,
            // No responding member has the primary in its map.
            _ => orphans.next()?,
        };
        let orphan = member.orphan.found()?;
        let primary = known
            .map(|(id, _)| id)
            .or_else(|| before.members.get(&at.node).copied())?;
        let name = &orphan.name;
        let (then, step) = if orphan.leaving {
            ("is being deleted".to_owned(), None)
        } else if let Some(to) = self.in_sync_with(at.shard, primary) {
            let by = FailoverBy::Planned;
            (format!("is replaced by member {to}"), Some(Step::Failover { to, by }))
        } else if self.desired.replicas == 0 && member.volume == Volume::Kept {
            (
                "is restarted from its volume".to_owned(),
                Some(Step::DeleteOrphanedPod(at)),
            )
        } else {
            let remedy = &orphan.remedy;
            (
                format!("has data that no replica has in sync. Restore them with: {remedy}"),
                None,
            )
        };
        let lost = Lost {
            shard: at.shard,
            member: Some(at),
            observed: format!("pod {name} of member {at} lost its labels and {then}"),
        };
        Some((lost, step.into_iter().collect()))
    }

    /// The replica in sync with this primary that has the highest replication offset.
    fn in_sync_with(&self, shard: ShardIndex, primary: NodeId) -> Option<MemberRef> {
        let replicas = self
            .observed
            .shard(shard)
            .filter_map(|(at, member)| Some((at, member.facts()?)));
        let able = replicas.filter(|(_, facts)| {
            let me = facts.me();
            let follows = me.is_some_and(|me| me.primary == Some(primary) && !me.flags.no_failover);
            follows && facts.in_sync && !facts.loading
        });
        let best = able.max_by_key(|(at, facts): &(MemberRef, &Facts)| (facts.offset, std::cmp::Reverse(*at)));
        best.map(|(at, _)| at)
    }
}

/// What to report about a replica that ran in an orphaned pod.
pub(super) fn replaced(at: MemberRef, member: &Member) -> Option<String> {
    let orphan = member.orphan.found()?;
    Some(format!(
        "pod {} of member {at} lost its labels and is replaced",
        orphan.name
    ))
}

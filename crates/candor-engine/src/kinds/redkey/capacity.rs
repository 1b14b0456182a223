//! Whether the servers that stay have room for the keys of those that leave. A server at its `maxmemory` evicts keys
//! or rejects writes, depending on its policy: either would lose what a slow scale-down promises to keep.

use super::operation::{Planned, View};
use crate::model::MemberRef;
use crate::observation::Facts;

/// Bytes in a mebibyte.
const MIB: u64 = 1024 * 1024;

impl View<'_> {
    /// Why slots must not begin to leave. It is checked before the first one moves: later, stopping half-way would not
    /// help.
    pub(super) fn too_little_memory(&self, planned: &Planned) -> Option<String> {
        let begun = self
            .running()
            .is_some_and(|running| running.slots_moved.is_some_and(|moved| moved > 0));
        let leaves = planned.plan.stage.is_draining();
        if begun || !leaves {
            return None;
        }
        let owners = || {
            let all = planned.observed.answering();
            all.filter(|(_, facts)| facts.is_primary() && !facts.slots().is_empty())
        };
        let stays = |at: &MemberRef| at.shard.0 < planned.desired.shards;
        let used = |facts: &Facts| facts.memory.used;
        let needed: u64 = owners()
            .filter(|(at, _)| !stays(at))
            .map(|(_, facts)| used(facts))
            .sum();
        // Without a limit on one server there is no limit that could be calculated.
        let free: Option<Vec<u64>> = owners()
            .filter(|(at, _)| stays(at))
            .map(|(_, facts)| facts.memory.free())
            .collect();
        let free: u64 = free?.iter().sum();
        (needed > free).then(|| {
            format!(
                "the servers that leave use {} MiB, those that stay have {} MiB left of their maxmemory",
                needed.div_ceil(MIB),
                free / MIB
            )
        })
    }
}

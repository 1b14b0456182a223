//! Nodes in the cluster map that are not members: reported, never met and never forgotten while they are alive.

use std::collections::{BTreeMap, BTreeSet};

use valkey_admin::NodeId;
use valkey_admin::nodes::Address;

use super::{Plan, Stage, View};
use crate::memory::Memory;
use crate::observation::Observation;

/// Live nodes in the cluster map that are not members, with their addresses. A former member, or a node at a member's
/// address, is a member that restarted.
pub fn unknown_nodes(observed: &Observation, memory: &Memory) -> BTreeMap<NodeId, Address> {
    let addresses: BTreeSet<String> = observed
        .members
        .values()
        .flat_map(|member| member.ip().into_iter().chain(member.other_addresses.iter().copied()))
        .map(|ip| ip.to_string())
        .collect();
    let entries = observed.answering().flat_map(|(_, facts)| facts.map.0.iter());
    let unknown = entries.filter(|entry| {
        let alive = entry.linked && !entry.flags.failed && !entry.flags.suspected && !entry.flags.handshake;
        let ours = observed.with_id(entry.id).is_some() || memory.knows(entry.id);
        alive && !ours && !addresses.contains(&entry.address.host)
    });
    unknown.map(|entry| (entry.id, entry.address.clone())).collect()
}

impl View<'_> {
    /// Reports unknown nodes. They are never met: two clusters that met cannot be separated.
    pub(super) fn foreign(&self) -> Option<Plan> {
        let unknown = unknown_nodes(self.observed, self.memory);
        let (id, address) = unknown.iter().next()?;
        let pod = address.host.parse().ok().and_then(|ip| self.observed.pods_at.get(&ip));
        let pod = pod.map_or_else(String::new, |name| format!(": it runs in pod {name}"));
        let more = match unknown.len() - 1 {
            0 => String::new(),
            more => format!(" (and {more} more)"),
        };
        let message = format!("node {id} at {address} is in the cluster map and is none of its members{more}{pod}");
        Some(Plan::new(Stage::Foreign(message), Vec::new()))
    }
}

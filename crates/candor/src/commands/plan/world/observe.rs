//! What an operator would observe of the cluster.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

use candor_engine::model::MemberRef;
use candor_engine::observation::{
    Applied, Claim, Credentials, Facts, Member, Observation, Pod, Server, Volume, Workload,
};
use valkey_admin::nodes::{Address, Flags};
use valkey_admin::{ClusterNodes, Epoch, NodeEntry, SlotSet};

use super::{Process, World};

impl World {
    fn map_of(&self, me: &Process) -> ClusterNodes {
        let known = self.processes.iter().filter(|(_, process)| process.group == me.group);
        let entry = |at: MemberRef, process: &Process| NodeEntry {
            id: process.id,
            address: Address {
                host: ip(at).to_string(),
                port: 6379,
                ..Address::default()
            },
            flags: Flags {
                myself: process.id == me.id,
                primary: process.follows.is_none(),
                replica: process.follows.is_some(),
                ..Flags::default()
            },
            primary: process.follows,
            ping_sent: 0,
            pong_received: 0,
            epoch: Epoch(process.epoch),
            linked: true,
            slots: process.slots.clone(),
            marks: Vec::new(),
        };
        let living = known.map(|(at, process)| entry(*at, process));
        let gone = self
            .ghosts
            .iter()
            .filter(|(_, knowing)| knowing.contains(&me.id))
            .map(|(id, _)| NodeEntry {
                id: *id,
                address: Address::default(),
                flags: Flags {
                    primary: true,
                    failed: true,
                    ..Flags::default()
                },
                primary: None,
                ping_sent: 0,
                pong_received: 0,
                epoch: Epoch(0),
                linked: false,
                slots: SlotSet::new(),
                marks: Vec::new(),
            });
        ClusterNodes(living.chain(gone).collect())
    }

    pub(super) fn observe(&self) -> Observation {
        let members: BTreeSet<MemberRef> = self.desired.members().chain(self.workloads.iter().copied()).collect();
        let covered = |map: &ClusterNodes| map.covered().is_full();
        let member = |at: MemberRef| {
            let workload = match (self.workloads.contains(&at), self.change.outdated.contains(&at)) {
                (false, _) => Workload::Absent,
                (true, true) => Workload::Outdated,
                (true, false) => Workload::Current,
            };
            let Some(process) = self.processes.get(&at) else {
                return Member {
                    workload,
                    ..Member::default()
                };
            };
            let map = self.map_of(process);
            let applied = if process.applied { Applied::Yes } else { Applied::No };
            let facts = Facts {
                ok: covered(&map),
                in_sync: process.follows.is_some(),
                was_in_sync: process.follows.is_some(),
                keys: process.keys,
                offset: 1,
                node_timeout: process.timeout,
                version: process.version,
                run_id: process.id.to_string(),
                config: applied,
                ..Facts::new(process.id, map)
            };
            let (volume, claim) = match (self.desired.persistence, self.small_volumes.contains(&at)) {
                (false, _) => (Volume::None, Claim::Absent),
                (true, true) => (Volume::Kept, Claim::TooSmall),
                (true, false) => (Volume::Kept, Claim::Bound),
            };
            Member {
                workload,
                pod: Some(Pod {
                    name: at.to_string(),
                    ip: Some(ip(at)),
                    current: workload == Workload::Current,
                    node_believed: true,
                    ..Pod::default()
                }),
                volume,
                claim,
                server: Server::Up(Box::new(facts)),
                ..Member::default()
            }
        };
        Observation {
            members: members.into_iter().map(|at| (at, member(at))).collect(),
            objects_ready: !self.change.objects,
            credentials: if self.change.credentials {
                Credentials::Missing
            } else {
                Credentials::Stored
            },
            problems: self.change.problems.clone(),
            ..Observation::default()
        }
    }
}

/// A distinct address for every member.
fn ip(at: MemberRef) -> IpAddr {
    let [_, _, high, low] = at.shard.0.to_be_bytes();
    Ipv4Addr::new(10, high, low, u8::try_from(at.node).unwrap_or(u8::MAX)).into()
}

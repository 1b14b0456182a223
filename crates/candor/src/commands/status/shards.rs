//! Shards and their members: from status, `ValkeyNode` objects, pods, and the servers themselves.

use std::collections::{BTreeMap, BTreeSet};

use candor_api::ValkeyNode;
use candor_api::valkey::status::MemberRole;
use candor_engine::model::{MemberRef, ShardIndex};
use candor_operator::objects::labels;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube_status::severity::Severity;
use kube_status::tree::Tone;
use kube_status::{Metav1, Polarity, Status};
use serde::Serialize;
use valkey_admin::SlotSet;
use valkey_admin::info::{Info, RoleKind};

use crate::commands::output::{Screen, bytes, count};
use crate::commands::picture::Picture;
use crate::commands::table::{Cell, Column, table};

/// A shard.
#[allow(clippy::struct_field_names)] // as programs read them
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Shard {
    /// Its index.
    pub shard: u32,
    /// The slots that it owns.
    pub slots: String,
    /// How many slots it owns.
    pub slot_count: usize,
    /// Its members.
    pub members: Vec<Member>,
}

/// A member.
#[allow(clippy::struct_field_names)] // as programs read them
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Member {
    /// Shard and index within the shard.
    pub member: String,
    /// Its role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<MemberRole>,
    /// Whether it is Ready.
    pub ready: Option<bool>,
    /// The reason.
    pub reason: String,
    #[serde(skip)]
    severity: Option<Severity>,
    /// Its pod.
    pub pod: String,
    /// Its address.
    pub ip: String,
    /// The Kubernetes node that it runs on.
    pub machine: String,
    /// The zone of that node.
    pub zone: String,
    /// For a replica: how many bytes it is behind its primary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lag_bytes: Option<u64>,
    /// For a replica: whether its link to its primary is up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link_up: Option<bool>,
    /// Keys; for a primary that could not be reached, as of the last status change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keys: Option<u64>,
    /// Whether the server itself reported these figures just now.
    pub asked: bool,
    /// Used memory in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// Memory limit in bytes; absent without a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_limit: Option<u64>,
    /// Commands per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operations: Option<u64>,
    /// The server version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
}

/// The shards of a snapshot.
pub fn shards(picture: &Picture) -> Vec<Shard> {
    let status = picture.cluster.status.clone().unwrap_or_default();
    let nodes: BTreeMap<MemberRef, &ValkeyNode> = picture
        .nodes
        .iter()
        .filter_map(|node| Some((place(node)?, node)))
        .collect();
    let pods = living(&picture.pods);
    let remembered = status.topology.iter().flat_map(|shard| {
        let members = shard.members.iter();
        members.filter_map(|member| at(shard.shard, member.node))
    });
    let everybody: BTreeSet<MemberRef> = nodes.keys().chain(pods.keys()).copied().chain(remembered).collect();
    let numbers: BTreeSet<u32> = everybody.iter().map(|member| member.shard.0).collect();
    let shard = |number: u32| {
        let known = status
            .topology
            .iter()
            .find(|one| u32::try_from(one.shard) == Ok(number));
        let slots: SlotSet = known.and_then(|one| one.slots.parse().ok()).unwrap_or_default();
        let of_shard = everybody.iter().filter(|member| member.shard.0 == number);
        let mut members: Vec<Member> = of_shard
            .map(|member| {
                let told = known.and_then(|one| {
                    one.members
                        .iter()
                        .find(|one| u32::try_from(one.node) == Ok(member.node))
                });
                let mut shown = self::member(*member, nodes.get(member).copied(), pods.get(member).copied(), picture);
                shown.role = shown.role.or_else(|| told.and_then(|one| one.role));
                let first_word = known.filter(|_| shown.role == Some(MemberRole::Primary));
                shown.keys = shown
                    .keys
                    .or_else(|| first_word.and_then(|one| u64::try_from(one.keys).ok()));
                shown
            })
            .collect();
        lag(&mut members, picture, number);
        members.sort_by_key(|member| (member.role != Some(MemberRole::Primary), member.member.clone()));
        Shard {
            shard: number,
            slot_count: slots.len(),
            slots: slots.to_string(),
            members,
        }
    };
    numbers.into_iter().map(shard).collect()
}

fn at(shard: i32, node: i32) -> Option<MemberRef> {
    Some(MemberRef {
        shard: ShardIndex(u32::try_from(shard).ok()?),
        node: u32::try_from(node).ok()?,
    })
}

fn place(node: &ValkeyNode) -> Option<MemberRef> {
    at(node.spec.shard, node.spec.node)
}

/// One pod per member: the one that is not terminating.
fn living(pods: &[Pod]) -> BTreeMap<MemberRef, &Pod> {
    let mut all: BTreeMap<MemberRef, &Pod> = BTreeMap::new();
    for pod in pods {
        let Some(member) = labels::member_of(pod.labels()) else {
            continue;
        };
        let leaving = pod.metadata.deletion_timestamp.is_some();
        if !leaving || !all.contains_key(&member) {
            all.insert(member, pod);
        }
    }
    all
}

fn member(at: MemberRef, node: Option<&ValkeyNode>, pod: Option<&Pod>, picture: &Picture) -> Member {
    let status = node.and_then(|node| node.status.clone()).unwrap_or_default();
    let ready = status.conditions.iter().find(|one| one.plain().type_ == "Ready");
    let machine = pod
        .and_then(|pod| pod.spec.as_ref()?.node_name.clone())
        .unwrap_or_default();
    let info = picture.servers.get(&at);
    let role = |info: &Info| match info.role? {
        RoleKind::Primary => Some(MemberRole::Primary),
        RoleKind::Replica => Some(MemberRole::Replica),
    };
    Member {
        member: at.to_string(),
        role: info.and_then(role).or(status.role),
        ready: node.map(|_| status.ready),
        reason: ready.map(|one| one.reason.clone()).unwrap_or_default(),
        severity: ready.and_then(Metav1::severity),
        pod: pod.map(ResourceExt::name_any).unwrap_or(status.pod_name),
        ip: pod
            .and_then(|pod| pod.status.as_ref()?.pod_ip.clone())
            .unwrap_or(status.pod_ip),
        zone: picture.zones.get(&machine).cloned().unwrap_or_default(),
        machine,
        lag_bytes: None,
        link_up: info.and_then(|info| Some(info.upstream.as_ref()?.link_up)),
        keys: info.map(|info| info.keys),
        asked: info.is_some(),
        memory: info.and_then(|info| info.used_memory),
        memory_limit: info.and_then(|info| info.max_memory).filter(|most| *most > 0),
        operations: info.and_then(|info| info.ops_per_second),
        version: info
            .and_then(|info| info.version)
            .map(|version| version.to_string())
            .unwrap_or_default(),
    }
}

/// Computes how far replicas are behind the most advanced primary of their shard.
fn lag(members: &mut [Member], picture: &Picture, shard: u32) {
    let of_shard = || picture.servers.iter().filter(|(at, _)| at.shard.0 == shard);
    let primary = of_shard()
        .filter(|(_, info)| info.role == Some(RoleKind::Primary))
        .filter_map(|(_, info)| info.offset)
        .max();
    let Some(primary) = primary else { return };
    for (at, info) in of_shard().filter(|(_, info)| info.role == Some(RoleKind::Replica)) {
        let name = at.to_string();
        if let Some(member) = members.iter_mut().find(|member| member.member == name) {
            member.lag_bytes = info.offset.map(|offset| primary.saturating_sub(offset));
        }
    }
}

/// The columns, each with the priority that decides which columns are dropped first on a narrow terminal.
const COLUMNS: [Column; 13] = [
    Column::text("SHARD", 9),
    Column::text("SLOTS", 7),
    Column::text("MEMBER", 10),
    Column::text("ROLE", 8),
    Column::text("STATE", 9),
    Column::number("LAG", 6),
    Column::number("KEYS", 5),
    Column::number("MEMORY", 4),
    Column::number("OPS/S", 2),
    Column::text("ZONE", 3),
    Column::text("MACHINE", 1),
    Column::text("POD", 1),
    Column::text("IP", 0),
];

/// The shards as a table: one row per member, the primary first.
pub fn draw(shards: &[Shard], screen: &Screen) -> String {
    let mut rows = Vec::new();
    for shard in shards {
        for (place, member) in shard.members.iter().enumerate() {
            let first = place == 0;
            let mut row = vec![
                if first { shard.shard.to_string() } else { String::new() }.into(),
                if first { slots(shard) } else { String::new() }.into(),
                (&member.member).into(),
                member
                    .role
                    .map_or("", |role| {
                        if role == MemberRole::Primary {
                            "primary"
                        } else {
                            "replica"
                        }
                    })
                    .into(),
                state(member),
                behind(member),
                keys(member).into(),
                memory(member).into(),
                member.operations.map(count).unwrap_or_default().into(),
                (&member.zone).into(),
            ];
            if screen.wide {
                row.extend([(&member.machine).into(), (&member.pod).into(), (&member.ip).into()]);
            }
            rows.push(row);
        }
        if shard.members.is_empty() {
            rows.push(vec![shard.shard.to_string().into(), slots(shard).into()]);
        }
    }
    table(&COLUMNS, &rows, screen)
}

/// Slot ranges if there are few, a count if there are many.
fn slots(shard: &Shard) -> String {
    let ranges = shard.slots.split(',').filter(|range| !range.is_empty()).count();
    match ranges {
        0 => "none".to_owned(),
        1 => shard.slots.clone(),
        _ => format!("{} in {ranges} ranges", shard.slot_count),
    }
}

/// The state of a member in one word.
pub fn state(member: &Member) -> Cell {
    let status = match member.ready {
        Some(true) => Status::True,
        Some(false) => Status::False,
        None => Status::Unknown,
    };
    let words = match (member.reason.as_str(), member.ready) {
        ("", Some(true)) => "Ready",
        ("", Some(false)) => "NotReady",
        ("", None) => "Unknown",
        (reason, _) => reason,
    };
    Cell::toned(words, Tone::of(status, Polarity::Positive, member.severity))
}

/// How far a replica is behind.
pub fn behind(member: &Member) -> Cell {
    match (member.role, member.link_up, member.lag_bytes) {
        (Some(MemberRole::Replica), Some(false), _) => Cell::toned("no link", Tone::Error),
        (Some(MemberRole::Replica), _, Some(lag)) => bytes(lag).into(),
        _ => Cell::default(),
    }
}

/// The number of keys.
pub fn keys(member: &Member) -> String {
    match member.keys {
        Some(keys) if member.asked => count(keys),
        // As of the last status change, not as of now.
        Some(keys) => format!("~{}", count(keys)),
        None => String::new(),
    }
}

/// The used memory.
pub fn memory(member: &Member) -> String {
    match (member.memory, member.memory_limit) {
        (Some(used), Some(most)) => format!("{} of {}", bytes(used), bytes(most)),
        (Some(used), None) => bytes(used),
        _ => String::new(),
    }
}

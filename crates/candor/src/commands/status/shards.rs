//! Shards and their members: from status, the members' objects, and the servers themselves.

use std::collections::{BTreeMap, BTreeSet};

use candor_api::valkey::status::MemberRole;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube_status::severity::Severity;
use kube_status::tree::Tone;
use kube_status::{Polarity, Status};
use serde::Serialize;
use valkey_admin::SlotSet;
use valkey_admin::info::{Info, RoleKind};

use super::facts::{image, restarts};
use crate::commands::cluster::{self, Kind, MemberId};
use crate::commands::output::{Screen, bytes, count};
use crate::commands::snapshot::Snapshot;
use crate::commands::table::{Cell, Column, table};

/// A shard.
#[allow(clippy::struct_field_names)] // as programs read them
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Shard {
    /// Its index; `None` for members that have no shard yet.
    pub shard: Option<u32>,
    /// The slots that it owns.
    pub slots: String,
    /// How many slots it owns.
    pub slot_count: usize,
    /// Its members.
    pub members: Vec<Member>,
}

/// A member.
#[allow(clippy::struct_field_names)] // as programs read them
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Member {
    /// Shard and place in it, or the ordinal of its pod.
    pub member: MemberId,
    /// Its role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<MemberRole>,
    /// The member that it replicates, where status names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replica_of: Option<MemberId>,
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
    pub node: String,
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
    /// Connections of clients, with those of the operator and the exporter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clients: Option<u64>,
    /// Reads that found their key, in percent, since the server started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hit_percent: Option<u64>,
    /// Commands per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operations: Option<u64>,
    /// The image of its server.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub image: String,
    /// How often its server was restarted in its pod.
    pub restarts: i32,
    /// The server version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
}

/// The shards of a snapshot. Members without a shard come last.
pub fn shards(snapshot: &Snapshot) -> Vec<Shard> {
    let cluster = snapshot.cluster();
    let pods = living(cluster.kind, &snapshot.pods);
    let mut members: BTreeMap<MemberId, cluster::Member> =
        cluster.members.into_iter().map(|member| (member.id, member)).collect();
    for id in pods.keys() {
        let shard = match id {
            MemberId::Place(place) => Some(place.shard.0),
            MemberId::Ordinal(_) => None,
        };
        members.entry(*id).or_insert_with(|| cluster::Member::new(*id, shard));
    }
    let with_members: BTreeSet<Option<u32>> = members.values().map(|member| member.shard).collect();
    let (numbered, unknown): (Vec<_>, Vec<_>) = with_members.into_iter().partition(Option::is_some);
    let shard = |number: Option<u32>| {
        let known = cluster.slots.iter().find(|one| Some(one.shard) == number);
        let slots: SlotSet = known.and_then(|one| one.slots.parse().ok()).unwrap_or_default();
        let mut members: Vec<Member> = members
            .values()
            .filter(|member| member.shard == number)
            .map(|member| {
                let mut shown = self::member(member, pods.get(&member.id).copied(), snapshot);
                let primary = known.filter(|_| shown.role == Some(MemberRole::Primary));
                shown.keys = shown.keys.or_else(|| primary.and_then(|one| one.keys));
                shown
            })
            .collect();
        lag(&mut members, snapshot);
        members.sort_by_key(|member| (member.role != Some(MemberRole::Primary), member.member));
        Shard {
            shard: number,
            slot_count: slots.len(),
            slots: slots.to_string(),
            members,
        }
    };
    numbered.into_iter().chain(unknown).map(shard).collect()
}

/// One pod per member: the one that is not terminating.
fn living(kind: Kind, pods: &[Pod]) -> BTreeMap<MemberId, &Pod> {
    let mut all: BTreeMap<MemberId, &Pod> = BTreeMap::new();
    for pod in pods {
        let Some(member) = kind.member_of(pod) else {
            continue;
        };
        let leaving = pod.metadata.deletion_timestamp.is_some();
        if !leaving || !all.contains_key(&member) {
            all.insert(member, pod);
        }
    }
    all
}

fn member(known: &cluster::Member, pod: Option<&Pod>, snapshot: &Snapshot) -> Member {
    let node = pod
        .and_then(|pod| pod.spec.as_ref()?.node_name.clone())
        .unwrap_or_default();
    let info = snapshot.servers.get(&known.id);
    let role = |info: &Info| match info.role? {
        RoleKind::Primary => Some(MemberRole::Primary),
        RoleKind::Replica => Some(MemberRole::Replica),
    };
    let role = info.and_then(role).or(known.role);
    Member {
        member: known.id,
        role,
        replica_of: known.replica_of.filter(|_| role == Some(MemberRole::Replica)),
        ready: known.ready,
        reason: known.reason.clone(),
        severity: known.severity,
        pod: pod.map_or_else(|| known.pod.clone(), ResourceExt::name_any),
        ip: pod
            .and_then(|pod| pod.status.as_ref()?.pod_ip.clone())
            .unwrap_or_else(|| known.ip.clone()),
        zone: snapshot.zones.get(&node).cloned().unwrap_or_default(),
        node,
        lag_bytes: None,
        link_up: info.and_then(|info| Some(info.upstream.as_ref()?.link_up)),
        keys: info.map(|info| info.keys),
        asked: info.is_some(),
        memory: info.and_then(|info| info.used_memory),
        memory_limit: info.and_then(|info| info.max_memory).filter(|most| *most > 0),
        clients: info.and_then(|info| info.clients),
        hit_percent: info.and_then(hit_percent),
        operations: info.and_then(|info| info.ops_per_second),
        image: pod.and_then(image).unwrap_or_default(),
        restarts: pod.map_or(0, restarts),
        version: info
            .and_then(|info| info.version)
            .map(|version| version.to_string())
            .unwrap_or_default(),
    }
}

/// Reads that found their key, in percent; none without reads.
fn hit_percent(info: &Info) -> Option<u64> {
    let (hits, misses) = (info.hits?, info.misses?);
    (hits * 100).checked_div(hits + misses)
}

/// Computes how far replicas are behind the most advanced primary of their shard.
fn lag(members: &mut [Member], snapshot: &Snapshot) {
    let offset = |member: &Member| snapshot.servers.get(&member.member)?.offset;
    let of_role = |member: &Member, role: RoleKind| {
        let info = snapshot.servers.get(&member.member);
        info.is_some_and(|info| info.role == Some(role))
    };
    let primary = members.iter().filter(|one| of_role(one, RoleKind::Primary));
    let Some(primary) = primary.filter_map(offset).max() else {
        return;
    };
    for member in members.iter_mut().filter(|one| of_role(one, RoleKind::Replica)) {
        member.lag_bytes = offset(member).map(|offset| primary.saturating_sub(offset));
    }
}

/// The columns, each with the priority that decides which columns are dropped first on a narrow terminal.
const COLUMNS: [Column; 17] = [
    Column::text("SHARD", 9),
    Column::text("SLOTS", 7),
    Column::text("MEMBER", 10),
    Column::text("ROLE", 8),
    Column::text("STATE", 9),
    Column::number("REPLICA OF", 3),
    Column::number("LAG", 6),
    Column::number("KEYS", 5),
    Column::number("MEMORY", 4),
    Column::number("OPS/S", 2),
    Column::number("RESTARTS", 3),
    Column::text("VERSION", 2),
    Column::text("ZONE", 3),
    Column::text("IMAGE", 0),
    Column::text("NODE", 1),
    Column::text("POD", 1),
    Column::text("IP", 0),
];

/// The shards as a table: one row per member, the primary first.
pub fn draw(shards: &[Shard], screen: &Screen) -> String {
    let mut rows = Vec::new();
    let mut versions: Vec<&str> = shards
        .iter()
        .flat_map(|shard| &shard.members)
        .map(|one| one.version.as_str())
        .collect();
    versions.retain(|version| !version.is_empty());
    versions.dedup();
    let mixed = versions.len() > 1;
    for shard in shards {
        let number = shard.shard.map_or(String::new(), |number| number.to_string());
        for (place, member) in shard.members.iter().enumerate() {
            let first = place == 0;
            let by_ordinal = matches!(member.member, MemberId::Ordinal(_));
            let of = member.replica_of.map_or(String::new(), |of| of.to_string());
            let mut row: Vec<Cell> = vec![
                if first { number.clone() } else { String::new() }.into(),
                if first {
                    slots(shard, screen.wide)
                } else {
                    String::new()
                }
                .into(),
                member.member.to_string().into(),
                role(member).into(),
                state(member),
                of.into(),
                behind(member),
                keys(member).into(),
                memory(member).into(),
                member.operations.map(count).unwrap_or_default().into(),
                match member.restarts {
                    0 => Cell::default(),
                    restarts => restarts.to_string().into(),
                },
                short(&member.version, screen.wide || mixed).into(),
                (&member.zone).into(),
                short(&member.image, screen.wide || mixed).into(),
            ];
            row.push(if screen.wide {
                (&member.node).into()
            } else {
                Cell::default()
            });
            // An ordinal alone does not name an object.
            row.push(if screen.wide || by_ordinal {
                (&member.pod).into()
            } else {
                Cell::default()
            });
            row.push(if screen.wide {
                (&member.ip).into()
            } else {
                Cell::default()
            });
            rows.push(row);
        }
        if shard.members.is_empty() {
            rows.push(vec![number.into(), slots(shard, screen.wide).into()]);
        }
    }
    table(&COLUMNS, &rows, screen)
}

/// The role of a member, as text.
pub fn role(member: &Member) -> &'static str {
    match member.role {
        Some(MemberRole::Primary) => "primary",
        Some(MemberRole::Replica) => "replica",
        None => "",
    }
}

/// The text if it is to be shown.
fn short(text: &str, show: bool) -> String {
    if show { text.to_owned() } else { String::new() }
}

/// Slot ranges if there are few or room is plenty, else a count.
fn slots(shard: &Shard, wide: bool) -> String {
    let ranges = shard.slots.split(',').filter(|range| !range.is_empty()).count();
    match ranges {
        0 if shard.shard.is_none() => String::new(),
        0 => "none".to_owned(),
        1 => shard.slots.clone(),
        _ if wide => shard.slots.clone(),
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
    let text = match (member.reason.as_str(), member.ready) {
        ("", Some(true)) => "Ready",
        ("", Some(false)) => "NotReady",
        ("", None) => "Unknown",
        (reason, _) => reason,
    };
    Cell::toned(text, Tone::of(status, Polarity::Positive, member.severity))
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

//! The request for a failover, and why it would be of no use.

use std::fmt;

use candor_api::valkey::status::MemberRole;
use candor_engine::model::{MemberRef, ShardIndex};
use kube_status::Status;

use crate::commands::cluster::{Cluster, Kind, MemberId, redkey};
use crate::commands::liveness::Liveness;
use crate::commands::snapshot::Snapshot;
use crate::commands::status::shards::{self, Member};

/// A failover request as the operator reads it: `SHARD/NODE[/MEMBER]`. It names the current primary by its node id, so
/// it is done as soon as the shard has another primary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The shard.
    pub shard: u32,
    /// The node id of its primary.
    pub from: String,
    /// The replica to promote; `None` for the best one.
    pub to: Option<MemberId>,
}

impl fmt::Display for Request {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.shard, self.from)?;
        self.to.map_or(Ok(()), |to| write!(out, "/{to}"))
    }
}

/// The request to write, or why it would be of no use.
pub fn request(snapshot: &Snapshot, shard: u32, to: Option<&str>) -> Result<Request, String> {
    let cluster = snapshot.cluster();
    let name = &cluster.name;
    if cluster.deleting.is_some() {
        return Err(format!("{name} is being deleted"));
    }
    if cluster.paused {
        return Err(format!(
            "{name} is paused: the operator makes no changes\nResume it first: candor resume {name}"
        ));
    }
    if let Liveness::Gone { .. } = snapshot.operator {
        let message = snapshot.operator.message(snapshot.now).unwrap_or_default();
        return Err(format!(
            "{message}\nStart the operator, or see why it does not run: candor doctor"
        ));
    }
    let annotations = snapshot.object.metadata().annotations.as_ref();
    if let Some(open) = annotations.and_then(|all| all.get(cluster.kind.failover_annotation())) {
        return Err(format!(
            "a failover is requested already and not done yet ({open})\nSee what it waits for: candor status {name}"
        ));
    }
    if !cluster.slots.iter().any(|one| one.shard == shard) {
        let last = cluster.slots.iter().map(|one| one.shard).max();
        let known = last.map_or("none yet".to_owned(), |last| format!("0 to {last}"));
        return Err(format!("{name} has no shard {shard}; its shards: {known}"));
    }
    // Status names the primary that the operator compares the request with.
    let Some((primary, from)) = primary(&snapshot.object.view(), shard) else {
        return Err(format!(
            "shard {shard} of {name} has no primary now\nSee why: candor status {name}"
        ));
    };
    let members = shards::shards(snapshot)
        .into_iter()
        .find(|one| one.shard == Some(shard));
    // Ready says that every replica is in sync, also where the servers cannot be asked from here.
    let ready = (cluster.ready() == Some(Status::True)).then_some(true);
    let mut replicas: Vec<Member> = members
        .into_iter()
        .flat_map(|one| one.members)
        .filter(|member| member.role == Some(MemberRole::Replica))
        .collect();
    for replica in &mut replicas {
        replica.link_up = replica.link_up.or(ready);
    }
    let to = to
        .map(|text| {
            let to = parse(&cluster, shard, text).map_err(|message| format!("--to {text}: {message}"))?;
            candidate(to, shard, primary, &replicas)
        })
        .transpose()?;
    match (to, replicas.iter().any(is_in_sync)) {
        (Some(_), _) | (None, true) => Ok(Request { shard, from, to }),
        (None, false) => Err(none_in_sync(&cluster, shard, &replicas)),
    }
}

/// The member that a text names.
fn parse(cluster: &Cluster, shard: u32, text: &str) -> Result<MemberId, String> {
    match cluster.kind {
        Kind::ValkeyCluster => {
            let in_shard = text.parse().ok().map(|node| MemberRef {
                shard: ShardIndex(shard),
                node,
            });
            let place = in_shard.map_or_else(|| text.parse(), Ok);
            place.map(MemberId::Place).map_err(|error| error.to_string())
        }
        Kind::RedkeyCluster => {
            let ordinal = text.parse().ok().or_else(|| redkey::ordinal(&cluster.name, text));
            let expected = || {
                format!(
                    "expected the ordinal or the name of a pod, such as 2 or {}-2",
                    cluster.name
                )
            };
            ordinal.map(MemberId::Ordinal).ok_or_else(expected)
        }
    }
}

/// The named member, if it can become the primary.
fn candidate(to: MemberId, shard: u32, primary: MemberId, replicas: &[Member]) -> Result<MemberId, String> {
    let known: Vec<String> = replicas.iter().map(|one| one.member.to_string()).collect();
    let known = if known.is_empty() {
        "none".to_owned()
    } else {
        known.join(", ")
    };
    if to == primary {
        return Err(format!(
            "member {to} is the primary of shard {shard} already; its replicas: {known}"
        ));
    }
    match replicas.iter().find(|one| one.member == to) {
        None => Err(format!("shard {shard} has no replica {to}; its replicas: {known}")),
        Some(one) if is_in_sync(one) => Ok(to),
        Some(one) => Err(format!(
            "member {to} is not in sync ({}): it would lose writes",
            one.reason
        )),
    }
}

fn is_in_sync(member: &Member) -> bool {
    let ready = member.ready == Some(true);
    match member.member {
        MemberId::Place(_) => ready && member.link_up != Some(false),
        // Ready is the pod's here, and may come seconds after the replica is in sync.
        MemberId::Ordinal(_) => member.link_up.unwrap_or(ready),
    }
}

fn none_in_sync(cluster: &Cluster, shard: u32, replicas: &[Member]) -> String {
    let name = &cluster.name;
    if replicas.is_empty() {
        let (_, field) = cluster.kind.shape_fields();
        return format!(
            "shard {shard} of {name} has no replica to promote\nGive it one: kubectl patch {} {name} --type merge \
             -p '{{\"spec\":{{\"{field}\":1}}}}'",
            cluster.kind.short()
        );
    }
    let states: Vec<String> = replicas
        .iter()
        .map(|one| {
            let state = if one.reason.is_empty() {
                "not ready"
            } else {
                &one.reason
            };
            format!("{} is {state}", one.member)
        })
        .collect();
    format!(
        "shard {shard} of {name} has no replica in sync: {}\nSee what the operator does about it: candor status {name}",
        states.join(", ")
    )
}

/// The primary of a shard and its node id, according to status.
pub(super) fn primary(cluster: &Cluster, shard: u32) -> Option<(MemberId, String)> {
    let of_shard = cluster.members.iter().filter(|member| member.shard == Some(shard));
    let mut primaries = of_shard.filter(|member| member.role == Some(MemberRole::Primary));
    let primary = primaries.find(|member| !member.node_id.is_empty())?;
    Some((primary.id, primary.node_id.clone()))
}

#[cfg(test)]
mod tests {
    use kube::ResourceExt;

    use super::*;
    use crate::commands::status::fixtures;

    #[test]
    fn a_request_names_the_present_primary_and_the_candidate() {
        let snapshot = fixtures::healthy();
        let id = format!("{:0<40}", "b0");
        assert_eq!(request(&snapshot, 1, None).unwrap().to_string(), format!("1/{id}"));
        for named in ["1", "1-1"] {
            assert_eq!(
                request(&snapshot, 1, Some(named)).unwrap().to_string(),
                format!("1/{id}/1-1")
            );
        }
    }

    #[test]
    fn a_failover_that_cannot_be_done_is_rejected_before_anything_is_written() {
        let mut paused = fixtures::healthy();
        fixtures::valkey(&mut paused).spec.paused = Some(true);
        let mut asked = fixtures::healthy();
        fixtures::valkey(&mut asked)
            .annotations_mut()
            .insert(candor_api::valkey::FAILOVER.to_owned(), "0/x".to_owned());
        let mut alone = fixtures::healthy();
        alone.nodes.retain(|node| node.spec.node == 0);
        alone.pods.clear();
        alone.servers.clear();
        for shard in &mut fixtures::valkey(&mut alone).status.as_mut().unwrap().topology {
            shard.members.truncate(1);
        }
        let table = [
            (fixtures::healthy(), 7, None, "shop has no shard 7; its shards: 0 to 2"),
            (
                fixtures::healthy(),
                1,
                Some("1-0"),
                "member 1-0 is the primary of shard 1 already; its replicas: 1-1",
            ),
            (
                fixtures::healthy(),
                1,
                Some("2-1"),
                "shard 1 has no replica 2-1; its replicas: 1-1",
            ),
            (
                fixtures::healthy(),
                1,
                Some("x"),
                "--to x: \"x\" names no member: expected shard and place, such as 0-1",
            ),
            (paused, 1, None, "shop is paused: the operator makes no changes"),
            (asked, 1, None, "a failover is requested already and not done yet (0/x)"),
            (alone, 1, None, "shard 1 of shop has no replica to promote"),
            (fixtures::no_operator(), 1, None, "No operator has been alive for 5m10s"),
            (fixtures::unseen(), 1, None, "shop has no shard 1; its shards: none yet"),
        ];
        for (snapshot, shard, to, message) in table {
            let rejected = request(&snapshot, shard, to).unwrap_err();
            assert!(rejected.starts_with(message), "{rejected:?} instead of {message:?}");
        }
    }

    #[test]
    fn a_replica_that_is_not_in_sync_is_not_promoted() {
        let mut snapshot = fixtures::healthy();
        let node = snapshot
            .nodes
            .iter_mut()
            .find(|node| (node.spec.shard, node.spec.node) == (1, 1))
            .unwrap();
        let status = node.status.as_mut().unwrap();
        status.ready = false;
        let behind = fixtures::condition("Ready", "False", "NotInSync", "", fixtures::NOW, "Warning");
        status.conditions[0] = serde_json::from_value(behind).unwrap();
        let message = "shard 1 of shop has no replica in sync: 1-1 is NotInSync\nSee what the operator does about it: candor status shop";
        assert_eq!(request(&snapshot, 1, None).unwrap_err(), message);
        let named = "member 1-1 is not in sync (NotInSync): it would lose writes";
        assert_eq!(request(&snapshot, 1, Some("1-1")).unwrap_err(), named);
    }
}

//! `ValkeyCluster`: its spec as the desired state, its status as memory and back; `report` has its messages.

pub mod report;

use candor_api::valkey::status::{MemberRole, MemberTopology, OperationKind, ShardTopology};
use candor_api::valkey::{ALLOW_DOWNGRADE, FAILOVER};
use candor_api::{ValkeyCluster, ValkeyClusterStatus};
use valkey_admin::ids::Family;
use valkey_admin::{NodeId, Version};

use super::{count, number};
use crate::memory::{LastPod, Memory, ShardMemory};
use crate::model::{Desired, MemberRef, Roll, ShardIndex, SlotGoal};
use crate::observation::Observation;

/// The node timeout that servers run with unless `config` sets one, in milliseconds. A crash does not wait for it, and
/// a stall must not cause a failover.
pub const NODE_TIMEOUT: u64 = 5000;

/// The image that is used when neither the spec nor status names one.
pub const IMAGE: &str = "valkey/valkey:9.1";

/// The image of a cluster's servers: from the spec, else the image chosen before, else the present default.
pub fn image(cluster: &ValkeyCluster) -> &str {
    let chosen = cluster.status.as_ref().map(|status| status.image.as_str());
    let chosen = chosen.filter(|image| !image.is_empty());
    cluster.spec.image.as_deref().or(chosen).unwrap_or(IMAGE)
}

/// The desired node timeout of the servers, in milliseconds. Keys are case-insensitive, as in the server's
/// configuration.
pub fn node_timeout(cluster: &ValkeyCluster) -> u64 {
    let written = cluster.spec.config.iter().rev();
    let set = written
        .filter(|(key, _)| key.eq_ignore_ascii_case("cluster-node-timeout"))
        .find_map(|(_, value)| value.trim().parse().ok());
    set.unwrap_or(NODE_TIMEOUT)
}

/// The desired state.
pub fn desired(cluster: &ValkeyCluster) -> Desired {
    let spec = &cluster.spec;
    let annotation = |name: &str| cluster.metadata.annotations.as_ref().and_then(|all| all.get(name));
    Desired {
        shards: count(spec.shards),
        replicas: count(spec.replicas.unwrap_or(0)),
        seats: None,
        slots: SlotGoal::Even,
        roll: Roll::All,
        paused: spec.paused.unwrap_or(false),
        node_timeout: node_timeout(cluster),
        persistence: spec.persistence.is_some(),
        version: version_of(image(cluster)),
        downgrade: annotation(ALLOW_DOWNGRADE).is_some_and(|value| value == "true"),
        downgrade_annotation: ALLOW_DOWNGRADE,
        failover: annotation(FAILOVER).map(|text| text.parse()),
    }
}

/// The version that an image tag names: `valkey/valkey:9.1` is Valkey 9.1. A digest, `latest` or a custom name gives
/// none.
fn version_of(image: &str) -> Option<Version> {
    let name = image.split('@').next()?;
    let (repository, tag) = name.rsplit_once(':').filter(|(_, tag)| !tag.contains('/'))?;
    let base = repository.rsplit('/').next()?;
    let family = if base.contains("valkey") {
        Family::Valkey
    } else if base.contains("redis") {
        Family::Redis
    } else {
        return None;
    };
    tag.contains('.').then(|| Version::parse(family, tag).ok())?
}

/// What status remembers.
pub fn memory(status: &ValkeyClusterStatus) -> Memory {
    let shard = |entry: &ShardTopology| {
        let members = entry.members.iter();
        let members = members.filter_map(|one| Some((count(one.node), one.node_id.parse().ok()?)));
        let pods = entry.members.iter().filter(|one| !one.pod_uid.is_empty());
        let pods = pods.map(|one| (count(one.node), last_pod(one)));
        let before = ShardMemory {
            slots: entry.slots.parse().unwrap_or_default(),
            members: members.collect(),
            pods: pods.collect(),
            keys: u64::try_from(entry.keys).unwrap_or(0),
            lost: entry.data_lost,
        };
        (ShardIndex(count(entry.shard)), before)
    };
    let running = status.operation.as_ref();
    Memory {
        formed: status.formed,
        topology: status.topology.iter().map(shard).collect(),
        attempts: running.map_or(0, |running| count(running.attempts)),
        failovers_rejected: running
            .filter(|running| running.kind == OperationKind::Failover)
            .map_or(0, |running| count(running.attempts)),
        candidate: running
            .filter(|running| running.kind == OperationKind::Failover)
            .and_then(|running| running.member.parse().ok()),
        rolling: running
            .filter(|running| running.kind == OperationKind::Roll)
            .and_then(|running| running.member.parse().ok()),
        growing: running.is_some_and(|running| running.kind == OperationKind::ScaleOut),
        shrinking: running.is_some_and(|running| running.kind == OperationKind::ScaleIn),
    }
}

fn last_pod(member: &MemberTopology) -> LastPod {
    LastPod {
        uid: member.pod_uid.clone(),
        node: member.node_name.clone(),
        claim: member.claim_uid.clone(),
        terminated: member.pod_terminated,
    }
}

/// Memory in the form of status. Roles are those observed in this reconcile; while a shard has no primary, the
/// previous ones.
pub(crate) fn topology(memory: &Memory, observed: &Observation, before: &[ShardTopology]) -> Vec<ShardTopology> {
    let shard = |(shard, now): (&ShardIndex, &ShardMemory)| {
        let number_of_shard = number(shard.0);
        let previous = before.iter().find(|previous| previous.shard == number_of_shard);
        let previous = previous.map(|previous| previous.members.as_slice()).unwrap_or_default();
        let primary = observed.primary(*shard).map(|(_, facts)| facts.id);
        let member = |(node, id): (&u32, &NodeId)| {
            let node_id = id.to_string();
            let role = match primary {
                Some(primary) if primary == *id => Some(MemberRole::Primary),
                Some(_) => Some(MemberRole::Replica),
                None => previous
                    .iter()
                    .find(|one| one.node_id == node_id)
                    .and_then(|one| one.role),
            };
            let pod = now.pods.get(node).cloned().unwrap_or_default();
            MemberTopology {
                node: number(*node),
                node_id,
                role,
                pod_uid: pod.uid,
                node_name: pod.node,
                claim_uid: pod.claim,
                pod_terminated: pod.terminated,
            }
        };
        ShardTopology {
            shard: number_of_shard,
            slots: now.slots.to_string(),
            keys: i64::try_from(now.keys).unwrap_or(i64::MAX),
            members: now.members.iter().map(member).collect(),
            data_lost: now.lost,
        }
    };
    memory.topology.iter().map(shard).collect()
}

/// Members that are the primary of their shard instead of another member, with their node ids. A shard that came back
/// empty is a loss and not a failover.
pub fn promotions<'a>(
    before: &'a [ShardTopology],
    after: &'a [ShardTopology],
) -> impl Iterator<Item = (MemberRef, &'a str)> {
    fn primary(shard: &ShardTopology) -> Option<&MemberTopology> {
        shard.members.iter().find(|one| one.role == Some(MemberRole::Primary))
    }
    after.iter().filter_map(move |now| {
        let was = before.iter().find(|was| was.shard == now.shard && !was.data_lost)?;
        let (old, new) = (primary(was)?, primary(now)?);
        let member = MemberRef {
            shard: ShardIndex(count(now.shard)),
            node: count(new.node),
        };
        (old.node_id != new.node_id).then_some((member, new.node_id.as_str()))
    })
}

#[cfg(test)]
mod tests {
    use candor_api::ValkeyClusterSpec;

    use super::*;

    #[test]
    fn the_node_timeout_is_read_as_a_server_reads_it() {
        let table: [(&[(&str, &str)], u64); 5] = [
            (&[], NODE_TIMEOUT),
            (&[("cluster-node-timeout", "9000")], 9000),
            (&[("Cluster-Node-Timeout", " 9000 ")], 9000),
            (
                &[("CLUSTER-NODE-TIMEOUT", "7000"), ("cluster-node-timeout", "9000")],
                9000,
            ),
            (&[("cluster-node-timeout", "soon")], NODE_TIMEOUT),
        ];
        for (config, millis) in table {
            let config = config
                .iter()
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
            let spec = ValkeyClusterSpec {
                config: config.collect(),
                ..ValkeyClusterSpec::default()
            };
            assert_eq!(node_timeout(&ValkeyCluster::new("c", spec)), millis);
        }
    }
}

//! The preview for a `ValkeyCluster`: the operator's own planner, run in memory until it has nothing left to do.

use std::collections::BTreeMap;

use candor_api::ValkeyCluster;
use candor_api::valkey::status::MemberRole;
use candor_engine::kinds::valkey;
use candor_engine::model::ShardIndex;
use candor_engine::observation::{About, Problem};
use candor_operator::objects::{self, Inputs, Remembered, SystemPasswords};
use kube::ResourceExt;

use super::preview::{Preview, Weights};
use super::risks::{self, Shape};
use super::world::{Change, World};

/// What would happen to a cluster, as status describes it, with a new spec.
pub fn preview(now: Option<&ValkeyCluster>, desired: &ValkeyCluster, weights: &Weights) -> Preview {
    let mut desired = desired.clone();
    let status = now.and_then(|now| now.status.clone()).unwrap_or_default();
    // An image that the spec does not name stays the one chosen before.
    desired.status = now.and_then(|now| now.status.clone());
    let target = valkey::desired(&desired);
    let before = now.map_or_else(|| target.clone(), valkey::desired);
    let change = now.map_or_else(
        || Change {
            credentials: true,
            objects: true,
            ..Change::default()
        },
        |now| change(now, &desired),
    );
    let mut world = World::new(&before, target, valkey::memory(&status), change);
    let primaries: BTreeMap<ShardIndex, _> = status
        .topology
        .iter()
        .filter_map(|shard| {
            let primary = shard
                .members
                .iter()
                .find(|member| member.role == Some(MemberRole::Primary))?;
            Some((
                ShardIndex(u32::try_from(shard.shard).ok()?),
                primary.node_id.parse().ok()?,
            ))
        })
        .collect();
    world.promote(&primaries);
    let (reconciles, end) = world.run();
    let mut preview = Preview::of(&reconciles, &end, weights);
    if !preview.steps.is_empty() {
        let shape = Shape {
            unit: "shard",
            shards: desired.spec.shards,
            replicas: desired.spec.replicas.unwrap_or(0),
            volume: desired.spec.persistence.as_ref().map(|volume| volume.size.0.clone()),
        };
        preview.risks = risks::risks(&shape, &preview.sum);
    }
    if desired.spec.paused == Some(true) {
        let name = desired.name_any();
        preview.blocked = Some(format!("{name} is paused; resume it with: candor resume {name}"));
    }
    if now.is_some_and(|now| now.metadata.deletion_timestamp.is_some()) {
        preview = Preview::default();
        preview.blocked = Some("it is being deleted".to_owned());
    }
    preview
}

/// What a new spec changes besides shards and replicas: builds the objects of both specs and compares them.
fn change(now: &ValkeyCluster, desired: &ValkeyCluster) -> Change {
    let mut change = Change::default();
    // Any passwords do: they are the same on both sides.
    let same = || "same".to_owned();
    let passwords = SystemPasswords {
        operator: same(),
        exporter: same(),
        replication: same(),
        migrator: same(),
    };
    let (secrets, remembered) = (BTreeMap::new(), Remembered::default());
    let inputs = |cluster| Inputs {
        cluster,
        image: valkey::image(cluster),
        exporter_image: "candor",
        passwords: &passwords,
        secrets: &secrets,
        version: None,
        remembered: &remembered,
    };
    let (old, new) = (inputs(now), inputs(desired));
    let target = valkey::desired(desired);
    let before = valkey::desired(now);
    for at in target.members().filter(|at| before.includes(*at)) {
        match (objects::member(&old, at), objects::member(&new, at)) {
            (Ok(one), Ok(other)) if one.workload.template_hash() != other.workload.template_hash() => {
                change.outdated.insert(at);
            }
            (_, Err(problem)) => {
                change.problems = vec![Problem {
                    about: About::Configuration,
                    message: problem.to_string(),
                }];
                break;
            }
            _ => {}
        }
    }
    // Users need Secrets that are not read here: the spec shows whether they change.
    change.settings = now.spec.config != desired.spec.config || now.spec.users != desired.spec.users;
    change.objects = change.settings || !change.outdated.is_empty();
    let size = |cluster: &ValkeyCluster| cluster.spec.persistence.as_ref().map(|volume| volume.size.clone());
    change.volumes = size(now).is_some() && size(now) != size(desired);
    change
}

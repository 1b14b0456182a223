//! The preview for a `RedkeyCluster`: its operations in their documented order, and the slots that the operator's
//! balance moves. Slots and keys are those of `status.topology`.

use std::collections::BTreeMap;

use candor_api::{RedkeyCluster, RedkeyClusterSpec};
use candor_engine::model::ShardIndex;
use candor_engine::slots::{by_count, rebalance};
use candor_operator::kinds::redkey::config::{Storage, merge};
use candor_operator::kinds::redkey::objects::revision;
use kube::ResourceExt;
use valkey_admin::SlotSet;

use super::preview::{Held, Preview, Totals, Weights};
use super::risks::{Shape, risks};
use crate::commands::cluster::redkey::is_paused;
use crate::commands::output::{count, some};

/// What would happen to a cluster, as status describes it, with a new spec.
pub fn preview(now: Option<&RedkeyCluster>, desired: &RedkeyCluster, weights: &Weights) -> Preview {
    let mut preview = Preview::default();
    if now.is_some_and(|now| now.metadata.deletion_timestamp.is_some()) {
        preview.blocked = Some("it is being deleted".to_owned());
        return preview;
    }
    if is_paused(desired) {
        let name = desired.name_any();
        preview.blocked = Some(format!("{name} is paused; resume it with: candor resume {name}"));
        return preview;
    }
    let upgrades = match upgrades(now, desired) {
        Ok(upgrades) => upgrades,
        Err(message) => {
            preview.blocked = Some(message);
            return preview;
        }
    };
    let change = Change {
        before: now,
        after: &desired.spec,
        data: Data::of(now, weights),
    };
    change.scale(&mut preview);
    if upgrades {
        change.upgrade(&mut preview);
    }
    if !preview.steps.is_empty() && desired.spec.primaries > 0 {
        // A server is recreated only when it owns no slots, or when its keys are purged anyway.
        let sum = Totals {
            restarts: 0,
            ..preview.sum.clone()
        };
        preview.risks.extend(risks(&shape(&desired.spec), &sum));
    }
    preview
}

fn shape(spec: &RedkeyClusterSpec) -> Shape {
    Shape {
        unit: "primary",
        shards: spec.primaries,
        replicas: spec.replicas_per_primary,
        volume: spec.storage.clone().filter(|_| !spec.ephemeral),
    }
}

/// Whether the new spec needs other server pods; an error if its configuration cannot be read.
fn upgrades(now: Option<&RedkeyCluster>, desired: &RedkeyCluster) -> Result<bool, String> {
    let hash = |spec: &RedkeyClusterSpec| {
        let storage = if spec.ephemeral {
            Storage::Ephemeral
        } else {
            Storage::Volume
        };
        let config = merge(spec.config.as_deref().unwrap_or_default(), storage, None);
        config.map(|config| revision(spec, &config))
    };
    let after = hash(&desired.spec).map_err(|error| format!("spec.config: {error}"))?;
    // A configuration that cannot be read now is corrected.
    Ok(now.is_some_and(|now| hash(&now.spec).ok().as_ref() != Some(&after)))
}

/// Slots and keys as last observed.
struct Data {
    owners: BTreeMap<ShardIndex, SlotSet>,
    held: Held,
    keys: u64,
    bytes: u64,
}

impl Data {
    fn of(now: Option<&RedkeyCluster>, weights: &Weights) -> Self {
        let topology = now.and_then(|now| Some(now.status.as_ref()?.topology.as_slice()));
        let mut owners = BTreeMap::new();
        let mut held = Held::new();
        for shard in topology.unwrap_or_default() {
            let Ok(number) = u32::try_from(shard.shard) else {
                continue;
            };
            let slots: SlotSet = shard.slots.parse().unwrap_or_default();
            let keys = u64::try_from(shard.keys).unwrap_or(0);
            held.insert(ShardIndex(number), (slots.len(), keys));
            owners.insert(ShardIndex(number), slots);
        }
        Self {
            keys: held.values().map(|(_, keys)| keys).sum(),
            bytes: weights.values().sum(),
            owners,
            held,
        }
    }
}

/// A new spec, compared with the present one.
struct Change<'a> {
    before: Option<&'a RedkeyCluster>,
    after: &'a RedkeyClusterSpec,
    data: Data,
}

impl Change<'_> {
    /// Servers before and after.
    fn nodes(&self) -> (i32, i32) {
        (self.before.map_or(0, |now| now.spec.nodes()), self.after.nodes())
    }

    fn primaries(&self) -> (i32, i32) {
        (self.before.map_or(0, |now| now.spec.primaries), self.after.primaries)
    }

    /// Every change of the number of servers, and the first of all: their creation.
    fn scale(&self, preview: &mut Preview) {
        let (before, after) = self.nodes();
        let same_shape = self.before.is_some_and(|now| {
            (now.spec.primaries, now.spec.replicas_per_primary)
                == (self.after.primaries, self.after.replicas_per_primary)
        });
        match (before, after) {
            (0, 0) => {}
            (0, _) => self.start(preview),
            (_, 0) => self.hibernate(preview),
            _ if same_shape => {}
            _ if self.after.purge_keys_on_rebalance => self.recreate(preview),
            // When the number of servers stays and the shape changes, the number of primaries decides.
            (before, after) if after > before || (after == before && self.primaries().1 > self.primaries().0) => {
                self.grow(preview);
            }
            _ => self.shrink(preview),
        }
    }

    /// From nothing, or from hibernation.
    fn start(&self, preview: &mut Preview) {
        let (_, after) = self.nodes();
        let remembered = self.data.owners.len();
        let objects = match self.before {
            None => "StatefulSet, Service, configuration and Robin",
            Some(_) => "the pods and Robin",
        };
        preview.step(format!("Create {objects}: {}", some(after.into(), "pod")));
        preview.sum.created += size(after);
        if !self.after.ephemeral && remembered > 0 && remembered != size(self.after.primaries) {
            preview.step(format!(
                "Bring back the {} that the volumes belong to, then scale to {}",
                some(number(remembered), "primary"),
                some(self.after.primaries.into(), "primary")
            ));
        } else {
            let primaries = some(self.after.primaries.into(), "primary");
            preview.step(match self.after.replicas_per_primary {
                0 => format!("Robin joins the servers and assigns slots to {primaries}"),
                replicas => format!(
                    "Robin joins the servers, assigns slots to {primaries} and attaches {} to each",
                    some(replicas.into(), "replica")
                ),
            });
        }
    }

    /// `primaries: 0`.
    fn hibernate(&self, preview: &mut Preview) {
        let (before, _) = self.nodes();
        preview.step(format!(
            "Stop Robin and {}: primaries is 0",
            some(before.into(), "server")
        ));
        preview.sum.deleted += size(before);
        if self.after.ephemeral {
            self.purge(preview, "an ephemeral cluster keeps no key while it is hibernated");
        } else if self.after.delete_pvc == Some(true) {
            preview.step("Delete the volume claims: deletePVC is true");
            self.purge(preview, "set deletePVC to false to keep the volumes");
        }
    }

    /// A fast change of the number of servers.
    fn recreate(&self, preview: &mut Preview) {
        let (before, after) = self.nodes();
        self.recreate_with(
            preview,
            &format!("with {} instead of {before}", some(after.into(), "pod")),
            (before, after),
        );
    }

    /// Fast operations recreate the cluster: everything in it is purged.
    fn recreate_with(&self, preview: &mut Preview, how: &str, (before, after): (i32, i32)) {
        preview.step("Start a preflight pod: if it does not become ready, nothing else happens");
        preview.step(format!(
            "Delete the StatefulSet and recreate it {how}: every key is purged, because purgeKeysOnRebalance is true"
        ));
        preview.step(format!(
            "Robin forms the cluster of {} anew",
            some(self.after.primaries.into(), "primary")
        ));
        preview.sum.deleted += size(before);
        preview.sum.created += size(after);
        self.purge(preview, "set purgeKeysOnRebalance to false to keep every key");
    }

    fn purge(&self, preview: &mut Preview, advice: &str) {
        if preview.sum.purged_keys.is_none() {
            preview.sum.purged_keys = Some(self.data.keys);
            preview.risks.push(format!(
                "All keys are purged, about {} at the last count; {advice}",
                count(self.data.keys)
            ));
        }
    }

    /// A slow scale-up: pods, then slots, then a balance check.
    fn grow(&self, preview: &mut Preview) {
        let (before, after) = self.nodes();
        if after > before {
            preview.step(format!("Create {}", ordinals(before, after)));
            preview.sum.created += size(after - before);
        }
        preview.step("Robin joins the new servers");
        self.rebalance(preview);
        if self.after.replicas_per_primary > 0 {
            preview.step("Robin attaches replicas, so that every primary has its number");
        }
        preview.step("Robin checks that slots are balanced");
    }

    /// A slow scale-down: slots, then pods.
    fn shrink(&self, preview: &mut Preview) {
        let (before, after) = self.nodes();
        if self.before.is_some_and(|now| now.spec.replicas_per_primary > 0) && after < before {
            preview.step("Fail over primaries that leave to replicas that stay");
        }
        self.rebalance(preview);
        if preview.sum.slots > 0 {
            preview.risks.push(
                "The servers that stay need memory for the keys that move: if their maxmemory is too small, the operator \
                 moves nothing and reports NotEnoughMemory"
                    .to_owned(),
            );
        }
        if after < before {
            preview.step(format!("Remove {}: they own no slots", ordinals(after, before)));
            preview.sum.deleted += size(before - after);
            preview.step("Robin forgets the nodes that left");
        }
    }

    /// The slots that move, every key with them.
    fn rebalance(&self, preview: &mut Preview) {
        let (before, after) = self.primaries();
        if before == after {
            return;
        }
        if self.data.owners.is_empty() {
            preview.step("Robin moves slots until every primary has its share; status does not know which yet");
            return;
        }
        let primaries = u32::try_from(after).unwrap_or(0);
        let moves = rebalance(&self.data.owners, primaries, &by_count);
        let step = preview.moves(&moves, &self.data.held, (self.data.keys, self.data.bytes));
        preview.steps.push(step);
    }

    /// Another image, configuration, label or resource.
    fn upgrade(&self, preview: &mut Preview) {
        let (_, nodes) = self.nodes();
        if nodes == 0 || self.nodes().0 == 0 {
            return;
        }
        if self.after.purge_keys_on_rebalance {
            return self.recreate_with(preview, "from the new template", (nodes, nodes));
        }
        preview.step(format!(
            "Create an extra primary, pod {nodes}, from the old template, and recreate it from the new"
        ));
        preview.sum.created += 1;
        if self.after.replicas_per_primary > 0 {
            preview.step(format!(
                "Recreate pods {} to 0, one by one: a primary fails over to a replica in sync first",
                nodes - 1
            ));
            preview.sum.failovers += size(self.after.primaries);
        } else {
            preview.step(format!(
                "For pods {} to 0, one by one: move its slots to another primary, recreate it, and let it rejoin",
                nodes - 1
            ));
            preview.sum.slots += self.data.owners.values().map(SlotSet::len).sum::<usize>();
        }
        preview.sum.restarts += size(nodes) + 1;
        preview.step("Move the slots of the extra primary back, and remove it");
        preview.sum.deleted += 1;
    }
}

/// `2 pods (3, 4)`, or the first and the last of many.
fn ordinals(from: i32, to: i32) -> String {
    let pods = some((to - from).into(), "pod");
    match to - from {
        1 => format!("pod {from}"),
        2..=3 => {
            let each: Vec<String> = (from..to).map(|ordinal| ordinal.to_string()).collect();
            format!("{pods} ({})", each.join(", "))
        }
        _ => format!("{pods} ({from} to {})", to - 1),
    }
}

fn size(count: i32) -> usize {
    usize::try_from(count).unwrap_or(0)
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

//! A plan as text: what happens, in order, and the totals.

use std::collections::BTreeMap;

use candor_engine::model::ShardIndex;
use candor_engine::slots::SlotMove;
use serde::Serialize;

use super::world::share;
use crate::commands::output::{Screen, bytes, count, some, wrap};

/// What would happen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Preview {
    /// The steps, in order.
    pub steps: Vec<PlannedStep>,
    /// The totals.
    pub sum: Totals,
    /// What a user should know before applying it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub risks: Vec<String>,
    /// Why the plan does not complete, if it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked: Option<String>,
}

/// One step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedStep {
    /// Its text.
    pub what: String,
    /// The slot migrations that it consists of.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub moves: Vec<Moved>,
}

/// Slots that move from one shard to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Moved {
    /// The source shard.
    pub from: u32,
    /// The destination shard.
    pub to: u32,
    /// The slots.
    pub slots: String,
    /// How many slots.
    pub count: usize,
    /// The approximate number of keys.
    pub keys: u64,
    /// The approximate number of bytes; absent if no server could be queried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// The totals.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Totals {
    /// Members that are created.
    pub created: usize,
    /// Members that are deleted.
    pub deleted: usize,
    /// Pods that restart.
    pub restarts: usize,
    /// Failovers.
    pub failovers: usize,
    /// Keys that are purged, approximately; absent if none are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub purged_keys: Option<u64>,
    /// Slots that move.
    pub slots: usize,
    /// The approximate number of bytes that move.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// The size of each shard now, where its servers could be queried.
pub type Weights = BTreeMap<ShardIndex, u64>;

/// What the shards hold before a move: slots and keys of each.
pub type Held = BTreeMap<ShardIndex, (usize, u64)>;

impl Preview {
    /// Adds a step.
    pub fn step(&mut self, what: impl Into<String>) {
        self.steps.push(PlannedStep {
            what: what.into(),
            moves: Vec::new(),
        });
    }

    /// The step that moves slots, counted in the totals. `keys` and `weight` are those of the whole cluster: keys that
    /// moved before have the same size at their new owner.
    pub fn moves(&mut self, moves: &[SlotMove], held: &Held, (keys, weight): (u64, u64)) -> PlannedStep {
        let mut moved = Vec::new();
        for SlotMove { from, to, slots } in moves {
            let (owned, of_shard) = held.get(from).copied().unwrap_or((slots.len(), 0));
            let of_move = share(of_shard, slots.len(), owned);
            let bytes = (weight > 0 && keys > 0).then(|| {
                u64::try_from(u128::from(weight) * u128::from(of_move) / u128::from(keys)).unwrap_or(u64::MAX)
            });
            self.sum.slots += slots.len();
            if let Some(bytes) = bytes {
                self.sum.bytes = Some(self.sum.bytes.unwrap_or(0) + bytes);
            }
            moved.push(Moved {
                from: from.0,
                to: to.0,
                slots: slots.to_string(),
                count: slots.len(),
                keys: of_move,
                bytes,
            });
        }
        let total: usize = moved.iter().map(|one| one.count).sum();
        PlannedStep {
            what: format!(
                "Move {}; clients are redirected and lose nothing",
                some(i64::try_from(total).unwrap_or(0), "slot")
            ),
            moves: moved,
        }
    }

    /// As text.
    pub fn draw(&self, screen: &Screen) -> String {
        let mut out = String::new();
        for (place, step) in self.steps.iter().enumerate() {
            for line in wrap(&format!("{}. {}", place + 1, step.what), screen.width, 4) {
                out += &line;
                out.push('\n');
            }
            for one in &step.moves {
                let size = one
                    .bytes
                    .map_or(String::new(), |size| format!(", about {}", bytes(size)));
                let line = format!(
                    "shard {} to shard {}: {} ({}), about {} keys{size}",
                    one.from,
                    one.to,
                    some(i64::try_from(one.count).unwrap_or(0), "slot"),
                    short(&one.slots),
                    count(one.keys)
                );
                let room = screen.width.map(|room| room.saturating_sub(3).max(1));
                for part in wrap(&line, room, 3) {
                    out.extend(["   ", &part, "\n"]);
                }
            }
        }
        if self.steps.is_empty() {
            if self.blocked.is_none() {
                out += "Nothing needs to be done.\n";
            }
        } else {
            out.push('\n');
            for line in wrap(&self.sum.text(), screen.width, 2) {
                out += &line;
                out.push('\n');
            }
        }
        for risk in &self.risks {
            for line in wrap(&format!("Risk: {risk}."), screen.width, 2) {
                out += &screen.paint(&line, kube_status::tree::Tone::Warning);
                out.push('\n');
            }
        }
        if let Some(why) = &self.blocked {
            let when = if self.steps.is_empty() {
                "It would not start"
            } else {
                "Then it would not continue"
            };
            for line in wrap(&format!("{when}: {why}"), screen.width, 2) {
                out += &screen.paint(&line, kube_status::tree::Tone::Error);
                out.push('\n');
            }
        }
        out
    }
}

impl Totals {
    pub fn text(&self) -> String {
        let n = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let mut parts = Vec::new();
        let mut part = |count: usize, what: &str, done: &str| {
            if count > 0 {
                parts.push(format!("{} {done}", some(n(count), what)));
            }
        };
        part(self.created, "member", "created");
        part(self.deleted, "member", "deleted");
        if let Some(keys) = self.purged_keys {
            parts.push(format!("about {} keys purged", count(keys)));
        }
        let mut part = |count: usize, what: &str, done: &str| {
            if count > 0 {
                parts.push(format!("{} {done}", some(n(count), what)));
            }
        };
        part(self.slots, "slot", "moved");
        if let Some(size) = self.bytes {
            parts.push(format!("about {} moved", bytes(size)));
        }
        parts.push(some(n(self.restarts), "restart"));
        parts.push(some(n(self.failovers), "failover"));
        format!("In all: {}.", parts.join(", "))
    }
}

/// The first slot ranges.
fn short(slots: &str) -> String {
    const SHOWN: usize = 3;
    let ranges: Vec<&str> = slots.split(',').collect();
    match ranges.len().saturating_sub(SHOWN) {
        0 => ranges.join(", "),
        more => format!("{}, ... ({more} more)", ranges[..SHOWN].join(", ")),
    }
}

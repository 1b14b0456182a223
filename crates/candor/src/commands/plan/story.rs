//! A plan as text: what happens, in order, and the totals.

use std::collections::BTreeMap;

use candor_engine::model::{MemberRef, ShardIndex};
use candor_engine::plan::Stage;
use candor_engine::slots::SlotMove;
use candor_engine::step::Step;
use serde::Serialize;

use super::world::{End, Look, share};
use crate::commands::output::{Screen, bytes, count, some, wrap};

/// What would happen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Story {
    /// The steps, in order.
    pub steps: Vec<Told>,
    /// The totals.
    pub sum: Sum,
    /// What a user should know before applying it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub risks: Vec<String>,
    /// Why the plan does not complete, if it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stands: Option<String>,
}

/// One step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Told {
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
pub struct Sum {
    /// Members that are created.
    pub created: usize,
    /// Members that are deleted.
    pub deleted: usize,
    /// Pods that restart.
    pub restarts: usize,
    /// Failovers.
    pub failovers: usize,
    /// Slots that move.
    pub slots: usize,
    /// The approximate number of bytes that move.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// The size of each shard now, where its servers could be queried.
pub type Weights = BTreeMap<ShardIndex, u64>;

impl Story {
    /// Builds the story from the planner's result of every reconcile.
    pub fn of(looks: &[Look], end: &End, weights: &Weights) -> Self {
        let mut story = Self::default();
        // Bytes per key, over the whole cluster: keys that moved before have the same size at their new owner.
        let keys: u64 = looks
            .first()
            .map_or(0, |look| look.held.values().map(|(_, keys)| keys).sum());
        let heavy: u64 = weights.values().sum();
        for look in looks {
            story.tell(look, (keys, heavy));
        }
        match end {
            End::Done => {}
            End::Stands(stage) => story.stands = Some(why(stage)),
            End::TooLarge(members) => {
                story.stands = Some(format!("the rest is not computed: {members} members are too many"));
            }
        }
        story
    }

    fn tell(&mut self, look: &Look, weight: (u64, u64)) {
        let mut groups: Vec<(Kind, Vec<&Step>)> = Vec::new();
        for step in &look.steps {
            let kind = Kind::of(step);
            match groups.iter_mut().find(|(known, _)| *known == kind) {
                Some((_, steps)) => steps.push(step),
                None => groups.push((kind, vec![step])),
            }
        }
        for (kind, steps) in groups {
            let told = self.group(kind, &steps, look, weight);
            // Introductions take several reconciles and are one step.
            if self.steps.last().is_none_or(|last| *last != told) && !told.what.is_empty() {
                self.steps.push(told);
            }
        }
    }

    fn group(&mut self, kind: Kind, steps: &[&Step], look: &Look, weight: (u64, u64)) -> Told {
        let members: Vec<MemberRef> = steps.iter().filter_map(|step| about(step)).collect();
        let who = named(&members);
        let plural = if members.len() == 1 { "member" } else { "members" };
        let what = match kind {
            Kind::Objects => "Write Services, configuration and Secrets anew".to_owned(),
            Kind::Create => {
                self.sum.created += members.len();
                format!(
                    "Create {}: {who}",
                    some(i64::try_from(members.len()).unwrap_or(0), "member")
                )
            }
            Kind::Delete => {
                self.sum.deleted += members.len();
                format!("Delete {plural} {who}: a majority of primaries says that they own no slots")
            }
            Kind::Roll => {
                self.sum.restarts += members.len();
                format!("Restart {plural} {who}")
            }
            Kind::Join => "Join new members to the cluster".to_owned(),
            Kind::Assign => format!("Give slots to {who}"),
            Kind::Follow => format!(
                "Let {who} copy from {}",
                if members.len() == 1 {
                    "its primary"
                } else {
                    "their primaries"
                }
            ),
            Kind::Failover => {
                self.sum.failovers += members.len();
                format!("Fail over to {who}, with the old primary's help: nothing is lost")
            }
            Kind::Move => return self.moves(steps, look, weight),
            Kind::Configure => format!(
                "Set configuration and users on {}, without a restart",
                if members.len() > 3 {
                    "all members".to_owned()
                } else {
                    who
                }
            ),
            Kind::Volumes => format!(
                "Let the {} of {who} grow",
                if members.len() == 1 { "volume" } else { "volumes" }
            ),
            Kind::Forget => "Let everybody forget the nodes that left".to_owned(),
            Kind::Quiet => String::new(),
        };
        Told {
            what,
            moves: Vec::new(),
        }
    }

    fn moves(&mut self, steps: &[&Step], look: &Look, (all_keys, heavy): (u64, u64)) -> Told {
        let mut told = Vec::new();
        let each = steps.iter().flat_map(|step| match step {
            Step::MoveSlots { moves, .. } => moves.as_slice(),
            _ => &[],
        });
        for SlotMove { from, to, slots } in each {
            let (owned, keys) = look.held.get(from).copied().unwrap_or((slots.len(), 0));
            let keys = share(keys, slots.len(), owned);
            let bytes = (heavy > 0 && all_keys > 0).then(|| {
                u64::try_from(u128::from(heavy) * u128::from(keys) / u128::from(all_keys)).unwrap_or(u64::MAX)
            });
            self.sum.slots += slots.len();
            if let Some(bytes) = bytes {
                self.sum.bytes = Some(self.sum.bytes.unwrap_or(0) + bytes);
            }
            told.push(Moved {
                from: from.0,
                to: to.0,
                slots: slots.to_string(),
                count: slots.len(),
                keys,
                bytes,
            });
        }
        let total: usize = told.iter().map(|one| one.count).sum();
        Told {
            what: format!(
                "Move {}; clients are redirected and lose nothing",
                some(i64::try_from(total).unwrap_or(0), "slot")
            ),
            moves: told,
        }
    }

    /// As text.
    pub fn draw(&self, screen: &Screen) -> String {
        let mut out = String::new();
        for (place, told) in self.steps.iter().enumerate() {
            for line in wrap(&format!("{}. {}", place + 1, told.what), screen.width, 4) {
                out += &line;
                out.push('\n');
            }
            for one in &told.moves {
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
            if self.stands.is_none() {
                out += "Nothing is to be done.\n";
            }
        } else {
            out.push('\n');
            for line in wrap(&self.sum.words(), screen.width, 2) {
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
        if let Some(stands) = &self.stands {
            let when = if self.steps.is_empty() {
                "It would not begin"
            } else {
                "Then it would not go on"
            };
            for line in wrap(&format!("{when}: {stands}"), screen.width, 2) {
                out += &screen.paint(&line, kube_status::tree::Tone::Error);
                out.push('\n');
            }
        }
        out
    }
}

impl Sum {
    fn words(&self) -> String {
        let n = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let mut parts = Vec::new();
        let mut part = |count: usize, what: &str, done: &str| {
            if count > 0 {
                parts.push(format!("{} {done}", some(n(count), what)));
            }
        };
        part(self.created, "member", "created");
        part(self.deleted, "member", "deleted");
        part(self.slots, "slot", "moved");
        if let Some(size) = self.bytes {
            parts.push(format!("about {} moved", bytes(size)));
        }
        parts.push(some(n(self.restarts), "restart"));
        parts.push(some(n(self.failovers), "failover"));
        format!("In all: {}.", parts.join(", "))
    }
}

/// Steps that are described together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Objects,
    Create,
    Delete,
    Roll,
    Join,
    Assign,
    Follow,
    Failover,
    Move,
    Configure,
    Volumes,
    Forget,
    /// Internal steps that are not shown.
    Quiet,
}

impl Kind {
    fn of(step: &Step) -> Self {
        match step {
            Step::WriteObjects => Self::Objects,
            Step::CreateMember(_) => Self::Create,
            Step::DeleteMember(_) => Self::Delete,
            Step::RollMember(_) => Self::Roll,
            Step::Meet { .. } => Self::Join,
            Step::AddSlots { .. } => Self::Assign,
            Step::Replicate { .. } => Self::Follow,
            Step::Failover { .. } => Self::Failover,
            Step::MoveSlots { .. } => Self::Move,
            Step::Configure(_) | Step::ApplyUsers(_) | Step::ReloadCertificate(_) | Step::RepairCredentials(_) => {
                Self::Configure
            }
            Step::ExpandVolume(_) => Self::Volumes,
            Step::Forget { .. } => Self::Forget,
            Step::SetNodeTimeout { .. }
            | Step::Stabilize { .. }
            | Step::Reset(_)
            | Step::RecreateSet
            | Step::StopServers
            | Step::DeleteOrphanedPod(_)
            | Step::TryPod
            | Step::EndTrial
            | Step::KeepVolume(_)
            | Step::AnswerFailover { .. }
            | Step::DeclareLost { .. } => Self::Quiet,
        }
    }
}

/// Why the operator would not continue, as text.
fn why(stage: &Stage) -> String {
    match stage {
        Stage::Refused { words, .. } | Stage::Foreign(words) | Stage::Blind(words) | Stage::LockedOut(words) => {
            words.clone()
        }
        Stage::Moving { left, .. } => format!(
            "{} would wait to be moved",
            some(i64::try_from(*left).unwrap_or(i64::MAX), "slot")
        ),
        Stage::Rolling { member, .. } => {
            format!("member {member} would wait for a replica in sync to take over from it")
        }
        Stage::Deleting => "it is being deleted".to_owned(),
        other => format!("it would wait in the stage {other:?}"),
    }
}

/// The member that a step is about.
fn about(step: &Step) -> Option<MemberRef> {
    match step {
        Step::CreateMember(at)
        | Step::DeleteMember(at)
        | Step::RollMember(at)
        | Step::Configure(at)
        | Step::ApplyUsers(at)
        | Step::ReloadCertificate(at)
        | Step::RepairCredentials(at)
        | Step::ExpandVolume(at)
        | Step::AddSlots { member: at, .. }
        | Step::Replicate { member: at, .. }
        | Step::Failover { to: at, .. } => Some(*at),
        _ => None,
    }
}

/// The first few members by name.
fn named(members: &[MemberRef]) -> String {
    const SHOWN: usize = 6;
    let mut known: Vec<MemberRef> = Vec::new();
    for member in members {
        if !known.contains(member) {
            known.push(*member);
        }
    }
    let names: Vec<String> = known.iter().take(SHOWN).map(ToString::to_string).collect();
    match known.len().saturating_sub(SHOWN) {
        0 => names.join(", "),
        more => format!("{}, ... ({more} more)", names.join(", ")),
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

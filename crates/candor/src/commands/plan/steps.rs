//! The steps of the operator's planner as a preview.

use candor_engine::model::MemberRef;
use candor_engine::plan::Stage;
use candor_engine::slots::SlotMove;
use candor_engine::step::Step;

use super::preview::{PlannedStep, Preview, Weights};
use super::world::{End, Reconcile};
use crate::commands::output::some;

impl Preview {
    /// Builds a preview from the planner's result of every reconcile.
    pub fn of(reconciles: &[Reconcile], end: &End, weights: &Weights) -> Self {
        let mut preview = Self::default();
        // Bytes per key, over the whole cluster: keys that moved before have the same size at their new owner.
        let keys: u64 = reconciles
            .first()
            .map_or(0, |reconcile| reconcile.held.values().map(|(_, keys)| keys).sum());
        let heavy: u64 = weights.values().sum();
        for reconcile in reconciles {
            preview.add(reconcile, (keys, heavy));
        }
        match end {
            End::Done => {}
            End::Stands(stage) => preview.blocked = Some(why(stage)),
            End::TooLarge(members) => {
                preview.blocked = Some(format!("the rest is not computed: {members} members are too many"));
            }
        }
        preview
    }

    fn add(&mut self, reconcile: &Reconcile, weight: (u64, u64)) {
        let mut groups: Vec<(Kind, Vec<&Step>)> = Vec::new();
        for step in &reconcile.steps {
            let kind = Kind::of(step);
            match groups.iter_mut().find(|(known, _)| *known == kind) {
                Some((_, steps)) => steps.push(step),
                None => groups.push((kind, vec![step])),
            }
        }
        for (kind, steps) in groups {
            let step = self.group(kind, &steps, reconcile, weight);
            // Introductions take several reconciles and are one step.
            if self.steps.last().is_none_or(|last| *last != step) && !step.what.is_empty() {
                self.steps.push(step);
            }
        }
    }

    fn group(&mut self, kind: Kind, steps: &[&Step], reconcile: &Reconcile, weight: (u64, u64)) -> PlannedStep {
        let members: Vec<MemberRef> = steps.iter().filter_map(|step| about(step)).collect();
        let who = named(&members);
        let plural = if members.len() == 1 { "member" } else { "members" };
        let what = match kind {
            Kind::Credentials => "Create the Secret with the operator's passwords".to_owned(),
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
            Kind::Move => {
                let moves = steps.iter().flat_map(|step| match step {
                    Step::MoveSlots { moves, .. } => moves.as_slice(),
                    _ => &[],
                });
                let moves: Vec<SlotMove> = moves.cloned().collect();
                return self.moves(&moves, &reconcile.held, weight);
            }
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
        PlannedStep {
            what,
            moves: Vec::new(),
        }
    }
}

/// Steps that are described together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Credentials,
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
            Step::CreateCredentials => Self::Credentials,
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
            | Step::Announce { .. }
            | Step::Stabilize { .. }
            | Step::Reset(_)
            | Step::RecreateSet
            | Step::StopServers
            | Step::DeleteOrphanedPod(_)
            | Step::CreatePreflight
            | Step::EndPreflight
            | Step::ReuseVolume(_)
            | Step::ClearFailoverRequest { .. }
            | Step::DeclareLost { .. } => Self::Quiet,
        }
    }
}

/// Why the operator would not continue, as text.
fn why(stage: &Stage) -> String {
    match stage {
        Stage::Rejected { message, .. }
        | Stage::Foreign(message)
        | Stage::Blind(message)
        | Stage::LockedOut(message) => message.clone(),
        Stage::Moving { left, .. } => format!(
            "{} would wait to be moved",
            some(i64::try_from(*left).unwrap_or(i64::MAX), "slot")
        ),
        Stage::Rolling { member, .. } => {
            format!("member {member} would wait for a replica in sync to become the primary first")
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

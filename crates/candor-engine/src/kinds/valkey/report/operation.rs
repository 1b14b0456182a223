//! The current operation, its start time and its progress.

use candor_api::ValkeyClusterStatus;
use candor_api::valkey::status::{Operation, OperationKind};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube_status::whole_seconds;

use super::ReportInput;
use crate::assess::Progress;
use crate::kinds::number;
use crate::memory::Memory;
use crate::plan::Stage;

/// The current operation after a reconcile.
pub(super) fn of(input: &ReportInput<'_>, before: &ValkeyClusterStatus, after: &Memory) -> Option<Operation> {
    let was = before.operation.as_ref();
    if input.plan.stage.is_unseen() {
        return was.cloned();
    }
    let (kind, step, steps) = kind_of(input, was)?;
    let same = was.filter(|was| was.kind == kind);
    let progress = same.map_or_else(Progress::default, |same| Progress {
        attempts: same.attempts,
        slots: same.slots_moved.zip(same.slots_total),
    });
    let progress = progress.after(&input.plan.stage, input.outcomes);
    let member = match input.plan.stage {
        Stage::FailingOver { shard, to, .. } => {
            to.or_else(|| input.observed.primary(shard).map(|(candidate, _)| candidate))
        }
        _ => after.rolling,
    };
    Some(Operation {
        kind,
        started_at: same.map_or_else(|| Time(whole_seconds(input.now)), |same| same.started_at.clone()),
        attempts: progress.attempts,
        member: member.map(|member| member.to_string()).unwrap_or_default(),
        step,
        steps,
        slots_moved: progress.slots.map(|(moved, _)| moved),
        slots_total: progress.slots.map(|(_, total)| total),
    })
}

/// The operation that a stage is part of, its current step and the number of steps.
fn kind_of(input: &ReportInput<'_>, before: Option<&Operation>) -> Option<(OperationKind, i32, i32)> {
    use OperationKind::{Configure, Create, Delete, Failover, Heal, Rebalance, Roll, ScaleIn, ScaleOut};
    let formed = input.memory.formed;
    let was = before.map(|before| before.kind);
    let going_on = |kinds: &[OperationKind]| was.filter(|was| kinds.contains(was));
    Some(match &input.plan.stage {
        Stage::Healthy | Stage::Rejected { .. } | Stage::Blind(_) | Stage::LockedOut(_) | Stage::Foreign(_) => {
            return None;
        }
        Stage::Deleting => (Delete, 1, 1),
        Stage::Creating { .. } | Stage::Stuck { .. } if !formed => (Create, 1, 4),
        Stage::Joining if !formed => (Create, 2, 4),
        Stage::Assigning | Stage::Uncovered { .. } if !formed => (Create, 3, 4),
        Stage::Replicating { .. } | Stage::Configuring { .. } if !formed => (Create, 4, 4),
        Stage::Creating { .. } => (ScaleOut, 1, 4),
        Stage::Stuck { .. } => (going_on(&[ScaleOut, Roll]).unwrap_or(Heal), 1, 4),
        Stage::Joining => (going_on(&[ScaleOut]).unwrap_or(Heal), 2, 4),
        Stage::Replicating { .. } => (ScaleOut, 3, 4),
        // A member that the operator has restarted does not report ok at once.
        Stage::Uncovered { slots: 0 } => match before.filter(|before| before.kind == Roll) {
            Some(before) => (Roll, before.step, before.steps),
            None => (Heal, 3, 4),
        },
        Stage::Assigning | Stage::Uncovered { .. } => (Heal, 3, 4),
        Stage::PrimaryLost(_) | Stage::ReplicaLost(_) | Stage::QuorumLost { .. } | Stage::DataLost(_) => (Heal, 1, 4),
        Stage::Forgetting => (going_on(&[ScaleIn, Roll]).unwrap_or(Heal), 4, 4),
        Stage::Moving { draining: true, .. } => (ScaleIn, 1, 2),
        Stage::Moving { .. } => (going_on(&[ScaleOut]).unwrap_or(Rebalance), 4, 4),
        Stage::Removing => (ScaleIn, 2, 2),
        Stage::Rolling { done, of, .. } => (Roll, number(*done + 1).min(number(*of)), number(*of)),
        Stage::FailingOver { to, .. } => (Failover, if to.is_some() { 1 } else { 2 }, 2),
        Stage::Configuring { .. } | Stage::Writing => (Configure, 1, 1),
    })
}

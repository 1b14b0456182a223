//! The driver that carries out the server half of the shared plan. Robin makes the same plan as the operator from the
//! same inputs, and executes the steps that talk to servers; the operator executes those that talk to Kubernetes.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use candor_api::RedkeyCluster;
use candor_api::redkey::conditions::RedkeyReason;
use candor_api::redkey::status::ClusterStatus;
use candor_engine::attempts::Attempts;
use candor_engine::kinds::redkey::operation::{Input, Planned, Set, plan, stored};
use candor_engine::kinds::redkey::rows::{Progress, admits};
use candor_engine::observation::{Member, Observation, Volume, Workload};
use candor_engine::outcome::{Failure, Outcome};
use candor_engine::plan::Stage;
use candor_engine::step::{FailoverBy, Step};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt;

use super::super::api::{Operation, RobinStatus};
use super::by_hand::{ByHand, Hand};
use super::driver::{Driven, Driver, Round};
use super::requests::Request;
use crate::act::servers::{KeyAccess, Servers};
use crate::credentials::presented::Served;
use crate::kinds::redkey::config::{Storage, merge};
use crate::kinds::redkey::objects::{REVISION, is_current, names, revision};
use crate::kinds::redkey::observe::{credentials, place};
use crate::observe::applied::AppliedSettings;
use crate::observe::pods;
use crate::runtime::cache::Cache;
use crate::runtime::limits::at_once;

/// How long one turn of the slot mover may take.
const MOVE_BUDGET: Duration = Duration::from_millis(300);
/// When the next round begins while the operator executes steps.
const OPERATOR: Duration = Duration::from_secs(1);
/// When the next round begins while steps are being executed.
const SOON: Duration = Duration::from_millis(20);

/// Plans and acts.
#[derive(Default)]
pub struct Planning {
    pub(super) attempts: Mutex<Attempts>,
    applied: AppliedSettings,
    served: Served,
    pub(super) by_hand: ByHand,
}

impl Driver for Planning {
    async fn drive(&self, round: Round<'_>) -> Driven {
        let generation = round.cluster.metadata.generation;
        let mut attempts = self.attempts.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(planned) = planned(&round, &attempts) else {
            return Driven {
                generation,
                operation: Operation::Error,
                ..Driven::default()
            };
        };
        if let Some(hand) = Hand::of(&round) {
            return self.drive_by_hand(&round, &planned, attempts, hand).await;
        }
        self.by_hand.forget();
        let steps = steps(&round, &planned);
        let mut outcomes = self.execute(&round, &planned.observed, &steps).await;
        attempts.record(&planned.observed, &planned.plan, &mut outcomes, round.now);
        let failed = outcomes.iter().any(|one| one.result.is_err());
        let rejected = attempts.rejected().cloned().collect();
        let again = if failed {
            Some(attempts.back_off(round.now))
        } else if !outcomes.is_empty() {
            Some(SOON)
        } else if planned.plan.stage.is_settled() {
            None
        } else if !planned.plan.steps.is_empty() {
            // All of them are the operator's, or wait for a row that it writes. It wakes Robin then.
            Some(OPERATOR)
        } else {
            Some(
                attempts
                    .wait_in(&planned.plan.stage, round.now)
                    .min(planned.plan.requeue_after),
            )
        };
        *self.attempts.lock().unwrap_or_else(PoisonError::into_inner) = attempts;
        Driven {
            generation,
            plan_empty: planned.plan.stage.is_settled(),
            operation: operation(&round, &planned, &steps, failed),
            rejected,
            finished: round.request.and_then(|request| finished(&planned, request)),
            again,
        }
    }
}

/// What Robin is doing, in the words of its API.
pub(super) fn operation(round: &Round<'_>, planned: &Planned, steps: &[Step], failed: bool) -> Operation {
    if is_stopped(round) && steps.is_empty() && !planned.plan.stage.is_settled() {
        return Operation::Error;
    }
    let moving = steps.iter().any(|step| matches!(step, Step::MoveSlots { .. }));
    match (&planned.plan.stage, moving, failed) {
        (Stage::Healthy, ..) => Operation::Ready,
        (_, true, false) => Operation::Rebalancing,
        (_, true, true) => Operation::RebalancingError,
        (_, false, true) => Operation::FixingError,
        (_, false, false) => Operation::Fixing,
    }
}

/// Repairing is what Robin does anyway, so that request ends with the plan. Everything else is done in Maintenance only.
fn finished(planned: &Planned, request: &Request) -> Option<Result<(), String>> {
    match request {
        Request::Fix => planned.plan.stage.is_settled().then_some(Ok(())),
        other => Some(Err(format!("Maintenance has ended, and so has {other}"))),
    }
}

/// The plan from what Robin observes; none if the configuration of the spec cannot be parsed.
fn planned(round: &Round<'_>, attempts: &Attempts) -> Option<Planned> {
    planned_for(round, round.cluster, attempts, false)
}

/// The plan for a cluster. By hand, every pod counts as up to date.
pub(super) fn planned_for(
    round: &Round<'_>,
    cluster: &RedkeyCluster,
    attempts: &Attempts,
    by_hand: bool,
) -> Option<Planned> {
    let spec = &cluster.spec;
    let storage = if spec.ephemeral {
        Storage::Ephemeral
    } else {
        Storage::Volume
    };
    let config = merge(spec.config.as_deref().unwrap_or_default(), storage, None).ok()?;
    let revision = revision(spec, &config);
    let mut members: BTreeMap<u32, Member> = round
        .pods
        .iter()
        .map(|(ordinal, pod)| (*ordinal, member(round, *ordinal, pod, &revision)))
        .collect();
    let mut set = set(round);
    if by_hand {
        for member in members.values_mut() {
            member.workload = Workload::Current;
            member.pod.iter_mut().for_each(|pod| pod.current = true);
        }
        if let Some(set) = &mut set {
            set.revision.clone_from(&revision);
        }
    }
    let base = Observation {
        objects_ready: true,
        deleting: round.cluster.metadata.deletion_timestamp.is_some(),
        ..Observation::default()
    };
    Some(plan(&Input {
        cluster,
        set: set.as_ref(),
        other_operator: other_operator(round),
        revision: &revision,
        members: &members,
        base: &base,
        attempts,
        node_timeout: config.node_timeout,
        now: round.now,
    }))
}

fn member(round: &Round<'_>, ordinal: u32, pod: &Pod, revision: &str) -> Member {
    let no_nodes: Cache<Node> = Cache::of_namespaces();
    let mut observation = pods::see(pod, None, &no_nodes);
    observation.current = is_current(pod, adopted(round), &round.cluster.spec, revision);
    let observed = round.servers.get(&ordinal).filter(|one| one.pod_uid == observation.uid);
    Member {
        workload: if observation.current {
            Workload::Current
        } else {
            Workload::Outdated
        },
        terminated_pods: pods::terminated(std::iter::once(pod)),
        volume: volume(round, ordinal, pod),
        server: observed.map(|one| one.server.clone()).unwrap_or_default(),
        undecodable: observed.and_then(|one| one.trouble.clone()),
        pod: Some(observation),
        ..Member::default()
    }
}

/// The volume of a server, as far as its pod shows it: Robin may not read claims.
fn volume(round: &Round<'_>, ordinal: u32, pod: &Pod) -> Volume {
    let name = names::claim(&round.key.name, ordinal);
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    let mut claims = volumes.filter_map(|volume| volume.persistent_volume_claim.as_ref());
    if claims.any(|claim| claim.claim_name == name) {
        Volume::Kept
    } else {
        Volume::None
    }
}

/// The `StatefulSet` as its pods show it. Pods of two of them show that one is being replaced.
fn set(round: &Round<'_>) -> Option<Set> {
    let staying = || {
        let pods = round.pods.iter();
        pods.filter(|(_, pod)| pod.metadata.deletion_timestamp.is_none())
    };
    let owner = |pod: &Pod| {
        let mut owners = pod.owner_references().iter();
        owners
            .find(|owner| owner.controller == Some(true))
            .map(|owner| owner.uid.clone())
    };
    let owners: std::collections::BTreeSet<String> = staying().filter_map(|(_, pod)| owner(pod)).collect();
    let (last, pod) = staying().next_back()?;
    Some(Set {
        replicas: last + 1,
        revision: match pod.annotations().get(REVISION) {
            Some(revision) => revision.clone(),
            None => adopted(round).unwrap_or_default().to_owned(),
        },
        leaving: owners.len() > 1,
        adopted: adopted(round).is_some(),
    })
}

/// What pods of the existing operator stand for.
fn adopted<'a>(round: &Round<'a>) -> Option<&'a str> {
    let status = round.cluster.status.as_ref()?;
    Some(status.adopted.as_str()).filter(|adopted| !adopted.is_empty())
}

/// Whether the operator reports that the existing operator runs.
fn other_operator<'a>(round: &Round<'a>) -> Option<&'a str> {
    let mut conditions = round.cluster.status.as_ref()?.conditions.iter();
    let said = conditions.find(|one| one.reason == RedkeyReason::OtherOperatorActive.as_ref())?;
    Some(&said.message)
}

/// The steps that Robin executes now. The row of an operation's stage is written before its work. Outside of an
/// operation Robin heals at once; what would make a stored Ready untrue waits for the operator.
fn steps(round: &Round<'_>, planned: &Planned) -> Vec<Step> {
    if is_stopped(round) || round.cluster.status.is_none() {
        return Vec::new();
    }
    let row = stored(round.cluster);
    let admitted = match planned.progress {
        Progress::Running { work, restarted } => admits(row, work) && !restarted,
        Progress::Unchanged => false,
        Progress::Steady(_) => true,
    };
    let ready = row.status == Some(ClusterStatus::Ready);
    let planned_only = |step: &Step| {
        let agreed = FailoverBy::Planned;
        matches!(step, Step::MoveSlots { .. } | Step::Reset(_))
            || matches!(step, Step::Failover { by, .. } if *by == agreed)
    };
    let now =
        |step: &&Step| step.restores_service() || (admitted && is_for_servers(step) && !(ready && planned_only(step)));
    planned.plan.steps.iter().filter(now).cloned().collect()
}

/// Whether Robin does nothing by itself.
fn is_stopped(round: &Round<'_>) -> bool {
    matches!(round.status, RobinStatus::NoReconciling | RobinStatus::Maintenance)
}

/// Whether a step is a command to a server. Passwords are applied by the operator, which stores them.
pub(in crate::kinds::redkey) fn is_for_servers(step: &Step) -> bool {
    match step {
        Step::SetNodeTimeout { .. }
        | Step::Meet { .. }
        | Step::Announce { .. }
        | Step::AddSlots { .. }
        | Step::Replicate { .. }
        | Step::Failover { .. }
        | Step::MoveSlots { .. }
        | Step::Stabilize { .. }
        | Step::Forget { .. }
        | Step::Reset(_) => true,
        Step::CreateCredentials
        | Step::WriteObjects
        | Step::CreateMember(_)
        | Step::DeleteMember(_)
        | Step::RollMember(_)
        | Step::RecreateSet
        | Step::StopServers
        | Step::CreatePreflight
        | Step::EndPreflight
        | Step::RepairCredentials(_)
        | Step::Configure(_)
        | Step::ApplyUsers(_)
        | Step::ReloadCertificate(_)
        | Step::ExpandVolume(_)
        | Step::ReuseVolume(_)
        | Step::ClearFailoverRequest { .. }
        | Step::DeleteOrphanedPod(_)
        | Step::DeclareLost { .. } => false,
    }
}

impl Planning {
    /// Steps of one kind run concurrently, kinds one after the other. After a failure no later kind runs.
    pub(super) async fn execute(&self, round: &Round<'_>, observation: &Observation, steps: &[Step]) -> Vec<Outcome> {
        let servers = Servers {
            key: round.key,
            monitor: round.monitor,
            observation,
            applied: &self.applied,
            served: &self.served,
            settings: None,
            keys: KeyAccess::SameUser(credentials(round.passwords.desired())),
            place,
            budget: MOVE_BUDGET,
            moved: std::sync::Arc::new(|_| {}),
        };
        let mut outcomes = Vec::new();
        for group in steps.chunk_by(|one, other| std::mem::discriminant(one) == std::mem::discriminant(other)) {
            let done = at_once(group.iter().map(|step| one(&servers, step)).collect()).await;
            let failed = done.iter().any(|outcome| outcome.result.is_err());
            outcomes.extend(done);
            if failed {
                break;
            }
        }
        outcomes
    }
}

async fn one(servers: &Servers<'_>, step: &Step) -> Outcome {
    let result = servers.act(step).await.map(|()| Vec::new()).map_err(Failure::from);
    match &result {
        Ok(_) => tracing::info!(?step, "step done"),
        Err(failure) => tracing::warn!(?step, why = failure.message, "step failed"),
    }
    Outcome {
        step: step.clone(),
        result,
    }
}

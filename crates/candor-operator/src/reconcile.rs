//! One reconcile of one cluster, as a linear sequence: observe, plan, act, report, write.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use candor_api::valkey::status::{MemberRole, MemberTopology, ShardTopology};
use candor_api::{ValkeyCluster, ValkeyNode};
use candor_engine::attempts::Attempts;
use candor_engine::kinds::valkey;
use candor_engine::kinds::valkey::report::{Report, ReportInput, report};
use candor_engine::memory::Memory;
use candor_engine::model::MemberRef;
use candor_engine::observation::Observation;
use candor_engine::outcome::{Change, Outcome};
use candor_engine::plan::{Plan, Stage, plan};
use candor_engine::step::Step;
use jiff::{SignedDuration, Timestamp};
use kube::{Api, ResourceExt};
use kube_status::finalizer::{Finalization, FinalizerError};
use kube_status::writer::WriteError;

use crate::act::act;
use crate::act::deletion::Leaving;
use crate::act::ownership::Owner;
use crate::credentials::passwords::{NoPasswords, passwords, rehearsed};
use crate::credentials::repair::Repair;
use crate::decisions;
use crate::dry_run::rehearse;
use crate::objects::labels;
use crate::observe::{Observed, observe};
use crate::runtime::cache::{ClusterKey, ClusterKind};
use crate::runtime::context::Context;
use crate::runtime::metrics::Trouble;
use crate::write::{Told, write, write_nodes};

/// Requeue delay after the cluster was found to be deleted, until the watch reports it.
const RETRY: Duration = Duration::from_secs(1);
/// Requeue at once: after a conflict with another writer, or to continue.
const AT_ONCE: Duration = Duration::ZERO;
/// How long a deletion waits for a status write that sets Ready to False.
const OVERDUE: SignedDuration = SignedDuration::from_secs(30);
/// Why a paused cluster cannot be observed.
const PAUSED_WITHOUT: &str =
    "the Secret with the operator's passwords is gone, and while spec.paused is set none is made";
/// Requeue delay while steps are in progress.
const SOON: Duration = Duration::from_millis(50);

/// Why a reconcile could not be completed.
#[derive(Debug, thiserror::Error)]
enum ObserveError {
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(transparent)]
    Finalizer(#[from] FinalizerError),
}

/// The result of a reconcile.
struct Done {
    told: Told,
    next: Duration,
}

/// Reconciles a cluster; returns when to reconcile again, `None` if it is deleted.
pub async fn look(context: Arc<Context>, key: ClusterKey) -> Option<Duration> {
    if key.kind == ClusterKind::Redkey {
        return Box::pin(crate::kinds::redkey::reconcile::reconcile(&context, &key)).await;
    }
    let Some(cluster) = context.caches.clusters.get_in(&key.namespace, &key.name) else {
        context.forget(&key);
        return None;
    };
    let begun = Instant::now();
    let (outcome, next) = match reconcile(&context, &key, cluster).await {
        Ok(Some(done)) => {
            let outcome = match done.told {
                Told::Written => "written",
                Told::Unchanged | Told::Held(_) => "unchanged",
            };
            let next = match done.told {
                Told::Held(wait) => done.next.min(wait),
                _ => done.next,
            };
            (outcome, Some(next))
        }
        Ok(None) => ("gone", None),
        Err(ObserveError::Write(error)) if error.is_gone() => ("gone", Some(RETRY)),
        Err(ObserveError::Write(error)) if error.is_race() => {
            tracing::debug!(cluster = %key, %error, "another writer was faster");
            ("raced", Some(SOON))
        }
        Err(error) => {
            tracing::warn!(cluster = %key, error = %chain(&error), "the look could not be finished");
            let next = back_off(&context, &key);
            ("failed", Some(next.max(asked_to_wait(&error))))
        }
    };
    context.metrics.reconciled(outcome, begun.elapsed());
    next
}

async fn reconcile(
    context: &Context,
    key: &ClusterKey,
    cluster: Arc<ValkeyCluster>,
) -> Result<Option<Done>, ObserveError> {
    if context.settings.dry_run {
        let next = rehearse(context, key, &cluster).await;
        let told = Told::Unchanged;
        return Ok(Some(Done { told, next }));
    }
    let Some(cluster) = held(context, key, cluster).await? else {
        return Ok(None);
    };
    if cluster.metadata.deletion_timestamp.is_some() {
        return leave(context, key, &cluster).await;
    }
    let paused = valkey::desired(&cluster).paused;
    let found = if paused {
        rehearsed(context, key, &cluster)
            .map(|there| (there, None))
            .ok_or_else(|| NoPasswords::LockedOut(PAUSED_WITHOUT.to_owned()))
    } else {
        passwords(context, key, &cluster).await
    };
    let (passwords, made) = match found {
        Ok(found) => found,
        Err(why) => return unable(context, key, &cluster, why).await.map(Some),
    };
    let observed = observe(context, key, &cluster, &passwords).await;
    let mut attempts = context.states.attempts(key);
    let plan = plan(
        &observed.desired,
        &observed.observation,
        &observed.memory,
        &attempts,
        Timestamp::now(),
    );
    decisions::log(context, key, &plan);
    let (rescues, steps): (Vec<Step>, Vec<Step>) = plan.steps.iter().cloned().partition(Step::is_rescue);
    // Status is written first. A step that would make the published status untrue runs only after status has announced
    // it, and a new cluster publishes a status before anything else. A failover that restores service does not wait.
    let admitted = cluster.status.is_some()
        && (!is_ready(&cluster) || !plan.pending().any(Step::disturbs))
        && plan.is_announced(&observed.memory);
    let now = if admitted { steps } else { Vec::new() };
    let mut outcomes = act(context, key, &cluster, &observed, &rescues).await;
    outcomes.extend(act(context, key, &cluster, &observed, &now).await);
    attempts.record(&observed.observation, &plan, &mut outcomes, Timestamp::now());
    note_passwords(&mut outcomes, made);
    let cluster = answered(context, key, cluster, &outcomes);
    let told = tell(context, key, &cluster, &observed, &plan, &outcomes).await?;
    let failed = outcomes.iter().any(|one| one.result.is_err());
    let next = if !admitted {
        AT_ONCE
    } else if failed && !outcomes.iter().any(|one| one.step.is_rescue()) {
        attempts.back_off(Timestamp::now())
    } else if !outcomes.is_empty() {
        SOON
    } else if plan.stage == Stage::Healthy {
        plan.requeue_after
    } else {
        attempts.wait_in(&plan.stage, Timestamp::now()).min(plan.requeue_after)
    };
    context.states.with(key, |state| state.attempts = attempts);
    Ok(Some(Done { told, next }))
}

/// The requeue delay after a failure.
fn back_off(context: &Context, key: &ClusterKey) -> Duration {
    context
        .states
        .with(key, |state| state.attempts.back_off(Timestamp::now()))
}

/// The plan for a cluster that had no members observed: no step is executed, so previous attempts do not matter.
fn plan_of(observed: &Observed) -> Plan {
    let now = Timestamp::now();
    plan(
        &observed.desired,
        &observed.observation,
        &observed.memory,
        &Attempts::default(),
        now,
    )
}

/// Removing a request changes the cluster's resource version: status is written over the new version.
fn answered(
    context: &Context,
    key: &ClusterKey,
    cluster: Arc<ValkeyCluster>,
    outcomes: &[Outcome],
) -> Arc<ValkeyCluster> {
    let answered = |outcome: &Outcome| matches!(outcome.step, Step::AnswerFailover { .. }) && outcome.result.is_ok();
    if !outcomes.iter().any(answered) {
        return cluster;
    }
    let newer = context.caches.clusters.get_in(&key.namespace, &key.name);
    let same = |newer: &Arc<ValkeyCluster>| {
        newer.uid() == cluster.uid() && newer.metadata.generation == cluster.metadata.generation
    };
    newer.filter(same).unwrap_or(cluster)
}

/// The cluster with the operator's finalizer; `None` if it is deleted.
async fn held(
    context: &Context,
    key: &ClusterKey,
    cluster: Arc<ValkeyCluster>,
) -> Result<Option<Arc<ValkeyCluster>>, ObserveError> {
    if cluster.metadata.deletion_timestamp.is_some() || valkey::desired(&cluster).paused {
        return Ok(Some(cluster));
    }
    let api: Api<ValkeyCluster> = Api::namespaced(context.client.clone(), &key.namespace);
    let leaving = Leaving { context, key };
    match context.finalizer.reconcile(&api, &cluster, &(), None, &leaving).await? {
        Finalization::Live | Finalization::Deleting { .. } => Ok(Some(cluster)),
        Finalization::Held(held) => Ok(Some(context.caches.clusters.put(*held))),
        Finalization::Released | Finalization::Gone => Ok(None),
    }
}

/// Cleans up a cluster that is being deleted, and reports it.
async fn leave(context: &Context, key: &ClusterKey, cluster: &ValkeyCluster) -> Result<Option<Done>, ObserveError> {
    // Status is written first here too: no member is deleted while Ready is still True, unless the status write fails
    // for too long.
    if is_ready(cluster) {
        match tell_of_leaving(context, key, cluster).await {
            Ok(told) => return Ok(Some(Done { told, next: AT_ONCE })),
            Err(error) if is_overdue(cluster) => {
                tracing::warn!(cluster = %key, error = %chain(&error), "deleted without a word in status");
            }
            Err(error) => return Err(error),
        }
    }
    let api: Api<ValkeyCluster> = Api::namespaced(context.client.clone(), &key.namespace);
    let leaving = Leaving { context, key };
    match context.finalizer.reconcile(&api, cluster, &(), None, &leaving).await? {
        Finalization::Deleting { retry_after, .. } => {
            let told = tell_of_leaving(context, key, cluster).await?;
            Ok(Some(Done {
                told,
                next: retry_after,
            }))
        }
        Finalization::Live | Finalization::Held(_) | Finalization::Released | Finalization::Gone => Ok(None),
    }
}

fn is_overdue(cluster: &ValkeyCluster) -> bool {
    let asked = cluster.metadata.deletion_timestamp.as_ref();
    asked.is_some_and(|asked| Timestamp::now().duration_since(asked.0) > OVERDUE)
}

async fn tell_of_leaving(context: &Context, key: &ClusterKey, cluster: &ValkeyCluster) -> Result<Told, ObserveError> {
    context.monitor.forget(key);
    let observation = Observation {
        deleting: true,
        objects_ready: true,
        ..Observation::default()
    };
    let observed = unseen(cluster, observation);
    let plan = plan_of(&observed);
    tell(context, key, cluster, &observed, &plan, &[]).await
}

/// Reports that nothing can be done: the first object could not be written, or running servers have passwords that are
/// lost. Nothing is reported about members that were not observed.
async fn unable(
    context: &Context,
    key: &ClusterKey,
    cluster: &ValkeyCluster,
    why: NoPasswords,
) -> Result<Done, ObserveError> {
    let formed = cluster.status.as_ref().is_some_and(|status| status.formed);
    let mut pods_unknown = None;
    let (locked_out, outcomes) = match why {
        NoPasswords::LockedOut(message) => (Some(message), Vec::new()),
        NoPasswords::Blind(message) => {
            pods_unknown = Some(message);
            (None, Vec::new())
        }
        NoPasswords::Failed(failure) => {
            let message = formed.then(|| failure.message.clone());
            let step = Step::WriteObjects;
            let result = Err(failure);
            (message, vec![Outcome { step, result }])
        }
    };
    let observation = Observation {
        locked_out,
        pods_unknown,
        ..Observation::default()
    };
    let observed = unseen(cluster, observation);
    let plan = plan_of(&observed);
    decisions::log(context, key, &plan);
    let told = tell(context, key, cluster, &observed, &plan, &outcomes).await?;
    let next = back_off(context, key);
    Ok(Done { told, next })
}

fn unseen(cluster: &ValkeyCluster, observation: Observation) -> Observed {
    Observed {
        desired: valkey::desired(cluster),
        memory: cluster.status.as_ref().map_or_else(Memory::default, valkey::memory),
        observation,
        shared: Vec::new(),
        members: BTreeMap::new(),
        settings: None,
        certificates: None,
        preflight: None,
        repair: Repair::default(),
        migrator: valkey_admin::client::Credentials {
            user: String::new(),
            password: String::new(),
        },
    }
}

/// Passwords are created before everything else. The change is recorded as part of writing the objects.
fn note_passwords(outcomes: &mut Vec<Outcome>, made: Option<Change>) {
    let Some(made) = made else { return };
    let writing = outcomes.iter_mut().find(|outcome| outcome.step == Step::WriteObjects);
    match writing.map(|outcome| &mut outcome.result) {
        Some(Ok(changes)) => changes.insert(0, made),
        Some(Err(failure)) => failure.done.insert(0, made),
        None => outcomes.insert(
            0,
            Outcome {
                step: Step::WriteObjects,
                result: Ok(vec![made]),
            },
        ),
    }
}

/// Builds the report and writes it.
async fn tell(
    context: &Context,
    key: &ClusterKey,
    cluster: &ValkeyCluster,
    observed: &Observed,
    plan: &Plan,
    outcomes: &[Outcome],
) -> Result<Told, ObserveError> {
    let nodes = windows(context, key);
    let Report { status, nodes, events } = report(&ReportInput {
        cluster,
        nodes: &nodes,
        desired: &observed.desired,
        observed: &observed.observation,
        memory: &observed.memory,
        plan,
        outcomes,
        now: Timestamp::now(),
    });
    let report = Report { status, nodes, events };
    if !context.leadership.is_ours() {
        tracing::info!(cluster = %key, "the lease is over: what was seen is the next operator's to tell");
        return Ok(Told::Unchanged);
    }
    let told = write(context, key, cluster, &report).await?;
    if told == Told::Written {
        note_failovers(context, key, cluster, &report);
    }
    note_state(context, key, &report);
    for problem in write_nodes(context, key, cluster, &report.nodes).await {
        tracing::warn!(cluster = %key, problem, "a member's window could not be written");
    }
    Ok(told)
}

/// The current `ValkeyNode` objects.
fn windows(context: &Context, key: &ClusterKey) -> BTreeMap<MemberRef, ValkeyNode> {
    let nodes = Owner::of(context, key).list(&context.caches.valkey_nodes);
    nodes
        .into_iter()
        .filter_map(|node| Some((labels::member_of(node.labels())?, ValkeyNode::clone(&node))))
        .collect()
}

fn note_state(context: &Context, key: &ClusterKey, report: &Report) {
    let ready = report
        .status
        .conditions
        .iter()
        .any(|one| one.type_ == "Ready" && one.status == "True");
    context.metrics.ready.get_or_create(&key.into()).set(i64::from(ready));
    let state = report
        .status
        .state
        .map(|state| format!("{state:?}"))
        .unwrap_or_default();
    let operation = report
        .status
        .operation
        .as_ref()
        .map(|running| format!("{:?}", running.kind));
    context.metrics.is_in(key, &state, operation.as_deref());
    let troubles = report.status.conditions.iter().filter_map(|one| {
        Some(Trouble {
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            condition: one.type_.clone(),
            reason: one.reason.clone(),
            severity: format!("{:?}", one.severity()?),
            resource: key.kind.name(),
        })
    });
    context.metrics.has_troubles(key, troubles.collect());
}

/// Counts shards that have another primary than the previous status had.
fn note_failovers(context: &Context, key: &ClusterKey, cluster: &ValkeyCluster, report: &Report) {
    let before = cluster.status.iter().flat_map(|status| &status.topology);
    let heads: BTreeMap<_, _> = before
        .filter(|shard| !shard.data_lost)
        .filter_map(|shard| Some((shard.shard, head(shard)?.node_id.clone())))
        .collect();
    for shard in &report.status.topology {
        let replaced = head(shard).filter(|now| heads.get(&shard.shard).is_some_and(|was| *was != now.node_id));
        let member = replaced.and_then(|now| format!("{}-{}", shard.shard, now.node).parse().ok());
        if let Some(member) = member {
            context.metrics.took_over(key, member);
        }
    }
}

fn head(shard: &ShardTopology) -> Option<&MemberTopology> {
    let mut members = shard.members.iter();
    members.find(|one| one.role == Some(MemberRole::Primary))
}

fn is_ready(cluster: &ValkeyCluster) -> bool {
    let conditions = cluster.status.as_ref().map(|status| &status.conditions);
    conditions.is_some_and(|all| all.iter().any(|one| one.type_ == "Ready" && one.status == "True"))
}

/// How long the API server asked the operator to wait.
fn asked_to_wait(error: &ObserveError) -> Duration {
    let first: &(dyn std::error::Error + 'static) = error;
    let mut causes = std::iter::successors(Some(first), |cause| cause.source());
    let answer = causes.find_map(|cause| {
        let boxed = cause.downcast_ref::<Box<kube::Error>>().map(|error| &**error);
        boxed.or_else(|| cause.downcast_ref::<kube::Error>())
    });
    let seconds = match answer {
        Some(kube::Error::Api(status)) => status.details.as_ref().map_or(0, |details| details.retry_after_seconds),
        _ => 0,
    };
    Duration::from_secs(seconds.into())
}

/// The message of an error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |message, cause| format!("{message}: {cause}"))
}

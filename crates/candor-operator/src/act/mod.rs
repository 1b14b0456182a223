//! Executes the plan's steps. Steps of one kind run concurrently, up to the limit in [`crate::runtime::limits`]. Kinds run one
//! after the other. No step runs unless this operator holds the lease.

pub(crate) mod apply;
pub(crate) mod deletion;
pub(crate) mod ownership;
mod remove_member;
pub(crate) mod servers;

use std::collections::BTreeMap;
use std::sync::Arc;

use candor_api::ValkeyCluster;
use candor_api::valkey::FAILOVER;
use candor_engine::model::MemberRef;
use candor_engine::outcome::{Change, Did, Failure, ObjectKind, Outcome};
use candor_engine::step::{FailoverBy, Step};
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::act::apply::{apply, delete, message};
use crate::act::servers::{KeyAccess, Servers};
use crate::credentials::kubelet_refresh::refresh;
use crate::credentials::passwords;
use crate::objects::{MemberObjects, SharedObject, WorkloadObject, labels, names};
use crate::observe::Observed;
use crate::observe::orphans;
use crate::observe::preflight;
use crate::observe::volumes::{self, not_smaller};
use crate::runtime::cache::ClusterKey;
use crate::runtime::context::{Context, MANAGER};
use crate::runtime::limits::at_once;

/// Executes steps and returns the outcome of each. After a failure, steps of the same kind still run, but steps of
/// later kinds do not: they may depend on the failed step.
pub async fn act(
    context: &Context,
    key: &ClusterKey,
    cluster: &ValkeyCluster,
    observed: &Observed,
    steps: &[Step],
) -> Vec<Outcome> {
    in_order(context, key, steps, |step| one(context, key, cluster, observed, step)).await
}

/// Executes steps, each with `one`: steps of one kind concurrently, kinds one after the other.
pub async fn in_order<'a, F: Future<Output = Outcome>>(
    context: &Context,
    key: &ClusterKey,
    steps: &'a [Step],
    one: impl Fn(&'a Step) -> F,
) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    let mut rest = steps;
    while let Some(first) = rest.first() {
        let kind = std::mem::discriminant(first);
        let many = rest
            .iter()
            .take_while(|step| std::mem::discriminant(*step) == kind)
            .count();
        let (now, later) = rest.split_at(many);
        rest = later;
        if !context.leadership.is_ours() {
            tracing::warn!(cluster = %key, "the lease is not ours any more: nothing more is done");
            break;
        }
        let done = at_once(now.iter().map(&one).collect()).await;
        let failed = done.iter().any(|outcome| outcome.result.is_err());
        outcomes.extend(done);
        if failed {
            break;
        }
    }
    outcomes
}

async fn one(
    context: &Context,
    key: &ClusterKey,
    cluster: &ValkeyCluster,
    observed: &Observed,
    step: &Step,
) -> Outcome {
    let result = match step {
        Step::CreateCredentials => passwords::create(context, key, cluster, observed.passwords.as_ref()).await,
        Step::WriteObjects => write_objects(context, key, cluster, observed).await,
        Step::CreateMember(at) | Step::RollMember(at) => match observed.members.get(at) {
            Some(objects) => write_member(context, key, objects).await,
            None => Err(Failure::rejected(format!("member {at} cannot be built from this spec"))),
        },
        Step::DeleteMember(at) => remove_member::delete_member(context, key, cluster, *at).await,
        Step::ExpandVolume(at) => match observed.members.get(at).and_then(|objects| objects.claim.as_ref()) {
            Some(claim) => write_claim(context, key, claim)
                .await
                .map(|change| change.into_iter().collect()),
            None => Ok(Vec::new()),
        },
        Step::DeleteOrphanedPod(at) => orphans::delete(context, key, &observed.observation, *at).await,
        Step::CreatePreflight => preflight::make(context, key, observed.preflight.as_ref()).await,
        Step::EndPreflight => preflight::end(context, key, &names::preflight(&key.name)).await,
        Step::RepairCredentials(at) => repair_credentials(context, key, observed, *at).await,
        Step::ReuseVolume(at) => remove_member::reuse_volume(context, key, *at).await,
        Step::ClearFailoverRequest { .. } => clear_failover_request(context, key, cluster).await,
        server => at_server(context, key, observed, server).await,
    };
    outcome(key, step, result)
}

/// The outcome of a step, logged.
pub fn outcome(key: &ClusterKey, step: &Step, result: Result<Vec<Change>, Failure>) -> Outcome {
    match &result {
        Ok(changes) => tracing::info!(cluster = %key, ?step, changes = changes.len(), "step done"),
        Err(failure) => tracing::warn!(cluster = %key, ?step, why = failure.message, "step failed"),
    }
    Outcome {
        step: step.clone(),
        result,
    }
}

async fn repair_credentials(
    context: &Context,
    key: &ClusterKey,
    observed: &Observed,
    at: MemberRef,
) -> Result<Vec<Change>, Failure> {
    let Some(endpoint) = context.monitor.rejecting(key).remove(&at) else {
        return Ok(Vec::new());
    };
    match observed.repair.perform(&endpoint).await {
        Ok(_) => {
            tracing::warn!(cluster = %key, member = %at, "set the operator's user again through the user default");
            Ok(Vec::new())
        }
        Err(error) => Err(Failure::rejected(format!("member {at}: {error}"))),
    }
}

async fn at_server(
    context: &Context,
    key: &ClusterKey,
    observed: &Observed,
    step: &Step,
) -> Result<Vec<Change>, Failure> {
    let metrics = context.metrics.clone();
    let counted = key.clone();
    let servers = Servers {
        key,
        monitor: &context.monitor,
        observation: &observed.observation,
        applied: &context.applied,
        served: &context.served,
        settings: observed.settings.as_ref(),
        keys: KeyAccess::OwnUser(observed.migrator.clone()),
        place: |member| member,
        budget: context.settings.move_budget,
        moved: Arc::new(move |slots| {
            let slots = u64::try_from(slots).unwrap_or(0);
            metrics.slots_moved.get_or_create(&(&counted).into()).inc_by(slots);
        }),
    };
    if let Step::ReloadCertificate(member) = step {
        refresh(context, key, observed, *member).await;
    }
    command(context, servers, step).await
}

/// Sends the commands of a step to servers, and counts failovers.
pub async fn command(context: &Context, servers: Servers<'_>, step: &Step) -> Result<Vec<Change>, Failure> {
    servers.act(step).await?;
    if let Step::Failover { to, by } = step {
        let kind = match by {
            FailoverBy::Planned => "agreement",
            FailoverBy::Forced => "vote",
            FailoverBy::Takeover => "takeover",
        };
        context.metrics.failover_sent(servers.key, *to, kind);
    }
    Ok(Vec::new())
}

/// Writes the objects that all members share, the owner references of the volume claims, and workloads that drifted
/// from the current template.
async fn write_objects(
    context: &Context,
    key: &ClusterKey,
    cluster: &ValkeyCluster,
    observed: &Observed,
) -> Result<Vec<Change>, Failure> {
    let mut changes = Vec::new();
    for claim in volumes::claims(context, key).into_values() {
        changes = and(changes, write_owners(context, key, cluster, &claim).await)?;
    }
    for object in &observed.shared {
        changes = and(changes, write_shared(context, key, object).await)?;
    }
    for objects in observed.members.values() {
        if is_of_this_template(context, key, &objects.workload) {
            changes = and(changes, write_workload(context, key, &objects.workload).await)?;
        }
    }
    Ok(changes)
}

async fn write_owners(
    context: &Context,
    key: &ClusterKey,
    cluster: &ValkeyCluster,
    claim: &PersistentVolumeClaim,
) -> Result<Option<Change>, Failure> {
    let Some(owners) = volumes::other_owners(claim, cluster) else {
        return Ok(None);
    };
    let written = volumes::set_owners(context, key, claim, &owners).await;
    written.map_err(|error| Failure::of_object(ObjectKind::Claim, true, message(&error)))?;
    let (kind, name, did) = (ObjectKind::Claim, claim.name_any(), Did::Updated);
    Ok(Some(Change { kind, name, did }))
}

/// Adds a change to the completed ones. A failure is returned together with the changes that were completed before it.
pub fn and(mut done: Vec<Change>, next: Result<Option<Change>, Failure>) -> Result<Vec<Change>, Failure> {
    match next {
        Ok(change) => {
            done.extend(change);
            Ok(done)
        }
        Err(failure) => Err(failure.after(done)),
    }
}

/// Whether the live workload was built from the current template. An outdated workload is replaced by the rolling
/// update, not here.
fn is_of_this_template(context: &Context, key: &ClusterKey, workload: &WorkloadObject) -> bool {
    let hash = workload.template_hash();
    let same = |annotations: &BTreeMap<String, String>| {
        annotations.get(labels::TEMPLATE_HASH).is_some_and(|live| live == hash)
    };
    let caches = &context.caches;
    match workload {
        WorkloadObject::Deployment(desired) => {
            let live = caches.deployments.get(key, &desired.name_any());
            live.is_some_and(|live| same(live.annotations()))
        }
        WorkloadObject::StatefulSet(desired) => {
            let live = caches.stateful_sets.get(key, &desired.name_any());
            live.is_some_and(|live| same(live.annotations()))
        }
    }
}

async fn write_shared(context: &Context, key: &ClusterKey, object: &SharedObject) -> Result<Option<Change>, Failure> {
    let caches = &context.caches;
    match object {
        SharedObject::HeadlessService(desired) => {
            apply(context, &caches.services, key, ObjectKind::HeadlessService, desired).await
        }
        SharedObject::ClientService(desired) => {
            apply(context, &caches.services, key, ObjectKind::ClientService, desired).await
        }
        SharedObject::ConfigMap(desired) => apply(context, &caches.configs, key, ObjectKind::ConfigMap, desired).await,
        SharedObject::AclSecret(desired) => apply(context, &caches.secrets, key, ObjectKind::AclSecret, desired).await,
        SharedObject::SystemSecret(desired) => {
            apply(context, &caches.secrets, key, ObjectKind::SystemSecret, desired).await
        }
        SharedObject::PodDisruptionBudget(desired) => {
            apply(context, &caches.budgets, key, ObjectKind::PodDisruptionBudget, desired).await
        }
        SharedObject::NoPodDisruptionBudget(name) => {
            delete(context, &caches.budgets, key, ObjectKind::PodDisruptionBudget, name).await
        }
    }
}

/// Writes a member's volume claim before its workload, so that the pod never starts on a claim from another source.
async fn write_member(context: &Context, key: &ClusterKey, objects: &MemberObjects) -> Result<Vec<Change>, Failure> {
    let mut changes = Vec::new();
    if let Some(claim) = &objects.claim {
        changes.extend(write_claim(context, key, claim).await?);
    }
    and(changes, write_workload(context, key, &objects.workload).await)
}

async fn write_claim(
    context: &Context,
    key: &ClusterKey,
    claim: &PersistentVolumeClaim,
) -> Result<Option<Change>, Failure> {
    let claims = &context.caches.claims;
    let live = claims.get(key, &claim.name_any());
    let claim = not_smaller(claim, live.as_deref());
    apply(context, claims, key, ObjectKind::Claim, &claim).await
}

async fn write_workload(
    context: &Context,
    key: &ClusterKey,
    workload: &WorkloadObject,
) -> Result<Option<Change>, Failure> {
    match workload {
        WorkloadObject::Deployment(desired) => {
            apply(
                context,
                &context.caches.deployments,
                key,
                ObjectKind::Deployment,
                desired,
            )
            .await
        }
        WorkloadObject::StatefulSet(desired) => {
            apply(
                context,
                &context.caches.stateful_sets,
                key,
                ObjectKind::StatefulSet,
                desired,
            )
            .await
        }
    }
}

/// Removes the failover request from exactly the observed resource version of the cluster: a user may have set a new
/// request since.
async fn clear_failover_request(
    context: &Context,
    key: &ClusterKey,
    cluster: &ValkeyCluster,
) -> Result<Vec<Change>, Failure> {
    if !cluster.annotations().contains_key(FAILOVER) {
        return Ok(Vec::new());
    }
    let api: Api<ValkeyCluster> = Api::namespaced(context.client.clone(), &key.namespace);
    let patch = json!({"metadata": {
        "uid": cluster.uid(),
        "resourceVersion": cluster.resource_version(),
        "annotations": {(FAILOVER): null},
    }});
    let params = PatchParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PatchParams::default()
    };
    match api.patch(&key.name, &params, &Patch::Merge(patch)).await {
        Ok(newer) => {
            context.caches.clusters.put(newer);
            Ok(Vec::new())
        }
        Err(error) => Err(Failure::rejected(message(&error))),
    }
}

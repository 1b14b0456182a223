//! Executes the steps of a plan for a `RedkeyCluster`.

use std::collections::BTreeSet;
use std::sync::Arc;

use candor_api::RedkeyCluster;
use candor_api::redkey::FAILOVER;
use candor_engine::kinds::redkey::operation::Planned;
use candor_engine::model::MemberRef;
use candor_engine::outcome::{Change, Did, Failure, ObjectKind, Outcome};
use candor_engine::step::Step;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use super::adoption;
use super::drift::{self, apply};
use super::objects::credentials::secret;
use super::objects::{RobinCredentials, names};
use super::observe::{DRAINED, Observed, claims, credentials, place, preflight_name};
use crate::act::apply::{create, delete, message};
use crate::act::ownership::Owner;
use crate::act::servers::{KeyAccess, Servers};
use crate::act::{and, command, in_order, outcome};
use crate::observe::{orphans, preflight};
use crate::runtime::cache::ClusterKey;
use crate::runtime::context::{Context, MANAGER};

/// Executes steps and returns the outcome of each.
pub async fn act(
    context: &Context,
    key: &ClusterKey,
    cluster: &RedkeyCluster,
    observed: &Observed,
    planned: &Planned,
    steps: &[Step],
) -> Vec<Outcome> {
    let steps = together(steps);
    in_order(context, key, &steps, |step| async move {
        let result = match step {
            Step::CreateCredentials => create_credentials(context, key, cluster).await,
            step => one(context, key, observed, planned, step).await,
        };
        outcome(key, step, result)
    })
    .await
}

/// One `StatefulSet` has all servers: adding several of them is one step, and so is removing them.
fn together(steps: &[Step]) -> Vec<Step> {
    let (mut created, mut deleted) = (false, false);
    let first = |step: &&Step| match step {
        Step::CreateMember(_) => !std::mem::replace(&mut created, true),
        Step::DeleteMember(_) => !std::mem::replace(&mut deleted, true),
        _ => true,
    };
    steps.iter().filter(first).cloned().collect()
}

async fn one(
    context: &Context,
    key: &ClusterKey,
    observed: &Observed,
    planned: &Planned,
    step: &Step,
) -> Result<Vec<Change>, Failure> {
    match step {
        Step::WriteObjects => write_objects(context, key, observed, planned).await,
        Step::CreateMember(_) => scale(context, key, planned.set.replicas).await,
        Step::DeleteMember(_) => remove(context, key, planned).await,
        Step::StopServers => scale(context, key, 0).await,
        Step::RecreateSet => recreate(context, key).await,
        Step::RollMember(at) => delete_pod(context, key, planned, *at).await,
        Step::CreatePreflight => preflight::make(context, key, observed.preflight.as_ref()).await,
        Step::EndPreflight => preflight::end(context, key, &preflight_name(&key.name)).await,
        Step::ReuseVolume(at) => mark(context, key, at.node, Value::Null).await,
        Step::Configure(at) => set_password(context, key, observed, *at).await,
        Step::DeleteOrphanedPod(at) => orphans::delete(context, key, &planned.observed, *at).await,
        Step::ClearFailoverRequest { .. } => clear_failover_request(context, key).await,
        server => at_server(context, key, observed, planned, server).await,
    }
}

/// Creates the Secret with Robin's token and certificate. The password of the servers is written with the other objects.
async fn create_credentials(
    context: &Context,
    key: &ClusterKey,
    cluster: &RedkeyCluster,
) -> Result<Vec<Change>, Failure> {
    let made = RobinCredentials::generate(&key.name, &ring::rand::SystemRandom::new());
    let made = made.map_err(|error| Failure::rejected(error.to_string()))?;
    let secret = secret(cluster, &made, None).map_err(|error| Failure::rejected(error.to_string()))?;
    let change = create(context, &context.caches.secrets, key, ObjectKind::SystemSecret, &secret).await?;
    Ok(change.into_iter().collect())
}

/// Writes all objects. The pod template of the `StatefulSet` is written only when the operation has reached that point.
async fn write_objects(
    context: &Context,
    key: &ClusterKey,
    observed: &Observed,
    planned: &Planned,
) -> Result<Vec<Change>, Failure> {
    let Some(objects) = &observed.objects else {
        return Err(Failure::rejected("the objects cannot be built from this spec"));
    };
    let (caches, robin) = (&context.caches, &objects.robin);
    let mut changes: Vec<Change> = adoption::take_over(context, key, observed).await?.into_iter().collect();
    changes = and(
        changes,
        apply(context, &caches.secrets, key, ObjectKind::SystemSecret, &robin.secret).await,
    )?;
    changes = and(
        changes,
        apply(
            context,
            &caches.configs,
            key,
            ObjectKind::ConfigMap,
            &objects.config_map,
        )
        .await,
    )?;
    changes = and(changes, drift::apply_service(context, key, &objects.service).await)?;
    if planned.set.template || observed.set.is_none() {
        let mut set = objects.stateful_set.clone();
        if let Some(spec) = set.spec.as_mut().filter(|_| observed.set.is_none()) {
            spec.replicas = Some(i32::try_from(planned.set.replicas).unwrap_or(i32::MAX));
        }
        changes = and(changes, drift::apply_set(context, key, &set).await)?;
    }
    let account = &robin.service_account;
    changes = and(
        changes,
        apply(
            context,
            &caches.service_accounts,
            key,
            ObjectKind::ServiceAccount,
            account,
        )
        .await,
    )?;
    changes = and(
        changes,
        apply(context, &caches.roles, key, ObjectKind::Role, &robin.role).await,
    )?;
    let binding = &robin.role_binding;
    changes = and(
        changes,
        apply(context, &caches.role_bindings, key, ObjectKind::RoleBinding, binding).await,
    )?;
    changes = and(
        changes,
        apply(context, &caches.configs, key, ObjectKind::ConfigMap, &robin.config_map).await,
    )?;
    if observed.kept.is_some() && adoption::remove_old_robin(context, key).await? {
        return Ok(changes);
    }
    changes = and(
        changes,
        apply(
            context,
            &caches.deployments,
            key,
            ObjectKind::Deployment,
            &robin.deployment,
        )
        .await,
    )?;
    for claim in &observed.removed_claims {
        changes = and(
            changes,
            delete(context, &caches.claims, key, ObjectKind::Claim, claim).await,
        )?;
    }
    let kind = ObjectKind::PodDisruptionBudget;
    let budget = match &objects.budget {
        Some(budget) => apply(context, &caches.budgets, key, kind, budget).await,
        None => delete(context, &caches.budgets, key, kind, &names::budget(&key.name)).await,
    };
    and(changes, budget)
}

/// Scales the `StatefulSet` that was observed, and no other.
async fn scale(context: &Context, key: &ClusterKey, replicas: u32) -> Result<Vec<Change>, Failure> {
    let Some(live) = Owner::of(context, key).get(&context.caches.stateful_sets, &key.name) else {
        return Ok(Vec::new());
    };
    let replicas = i32::try_from(replicas).unwrap_or(i32::MAX);
    if live.spec.as_ref().and_then(|spec| spec.replicas) == Some(replicas) {
        return Ok(Vec::new());
    }
    let api: Api<StatefulSet> = Api::namespaced(context.client.clone(), &key.namespace);
    let patch = json!({
        "metadata": {"uid": live.uid(), "resourceVersion": live.resource_version()},
        "spec": {"replicas": replicas},
    });
    match api.patch(&key.name, &params(), &Patch::Merge(patch)).await {
        Ok(newer) => {
            context.caches.stateful_sets.put(newer);
            tracing::info!(cluster = %key, replicas, "StatefulSet scaled");
            let (kind, name, did) = (ObjectKind::StatefulSet, key.name.clone(), Did::Updated);
            Ok(vec![Change { kind, name, did }])
        }
        Err(error) => Err(Failure::of_object(ObjectKind::StatefulSet, true, message(&error))),
    }
}

/// The parameters of a patch by the operator.
pub(super) fn params() -> PatchParams {
    PatchParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PatchParams::default()
    }
}

/// Removes the last servers: as many as the plan has confirmed to own no slots, without a gap.
async fn remove(context: &Context, key: &ClusterKey, planned: &Planned) -> Result<Vec<Change>, Failure> {
    let free: BTreeSet<u32> = planned
        .plan
        .steps
        .iter()
        .filter_map(|step| match step {
            Step::DeleteMember(at) => Some(at.node),
            _ => None,
        })
        .collect();
    let mut left = planned.set.replicas;
    while left > 0 && free.contains(&(left - 1)) {
        left -= 1;
    }
    let mut changes = Vec::new();
    for ordinal in left..planned.set.replicas {
        changes.extend(mark(context, key, ordinal, json!(Timestamp::now().to_string())).await?);
    }
    changes.extend(scale(context, key, left).await?);
    Ok(changes)
}

/// Sets or removes the drained annotation of a volume claim.
async fn mark(context: &Context, key: &ClusterKey, ordinal: u32, drained: Value) -> Result<Vec<Change>, Failure> {
    let Some(claim) = claims(context, key).remove(&ordinal) else {
        return Ok(Vec::new());
    };
    let api = Api::namespaced(context.client.clone(), &key.namespace);
    let patch = json!({"metadata": {"uid": claim.uid(), "annotations": {(DRAINED): drained}}});
    match api.patch(&claim.name_any(), &params(), &Patch::Merge(patch)).await {
        Ok(newer) => {
            context.caches.claims.put(newer);
            Ok(Vec::new())
        }
        Err(error) => Err(Failure::of_object(ObjectKind::Claim, true, message(&error))),
    }
}

/// Deletes the `StatefulSet` and its pods: a fast operation creates it anew.
async fn recreate(context: &Context, key: &ClusterKey) -> Result<Vec<Change>, Failure> {
    let set = delete(
        context,
        &context.caches.stateful_sets,
        key,
        ObjectKind::StatefulSet,
        &key.name,
    )
    .await?;
    Ok(set.into_iter().collect())
}

/// Removes the user's request for a failover.
async fn clear_failover_request(context: &Context, key: &ClusterKey) -> Result<Vec<Change>, Failure> {
    let Some(cluster) = context.caches.redkeys.get_in(&key.namespace, &key.name) else {
        return Ok(Vec::new());
    };
    if !cluster.annotations().contains_key(FAILOVER) {
        return Ok(Vec::new());
    }
    let api: Api<RedkeyCluster> = Api::namespaced(context.client.clone(), &key.namespace);
    let patch = json!({"metadata": {
        "uid": cluster.uid(),
        "resourceVersion": cluster.resource_version(),
        "annotations": {(FAILOVER): null},
    }});
    match api.patch(&key.name, &params(), &Patch::Merge(patch)).await {
        Ok(newer) => {
            context.caches.redkeys.put(newer);
            Ok(Vec::new())
        }
        Err(error) => Err(Failure::rejected(message(&error))),
    }
}

/// Deletes exactly the pod that was observed: its `StatefulSet` creates it anew from the current template.
async fn delete_pod(
    context: &Context,
    key: &ClusterKey,
    planned: &Planned,
    at: MemberRef,
) -> Result<Vec<Change>, Failure> {
    let Some(pod) = planned.observed.members.get(&at).and_then(|member| member.pod.as_ref()) else {
        return Ok(Vec::new());
    };
    let api: Api<Pod> = Api::namespaced(context.client.clone(), &key.namespace);
    let params = DeleteParams {
        preconditions: Some(Preconditions {
            uid: Some(pod.uid.clone()),
            resource_version: None,
        }),
        ..DeleteParams::default()
    };
    match api.delete(&pod.name, &params).await {
        Ok(answer) => {
            if let Some(leaving) = answer.left() {
                context.caches.pods.put(leaving);
            }
            Ok(Vec::new())
        }
        // Already deleted, or another pod of that name.
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(Vec::new()),
        Err(error) => Err(Failure::rejected(message(&error))),
    }
}

/// Applies the desired password to a running server. Replicas authenticate with it first, so that no link breaks.
async fn set_password(
    context: &Context,
    key: &ClusterKey,
    observed: &Observed,
    at: MemberRef,
) -> Result<Vec<Change>, Failure> {
    let Some(node) = context.monitor.node(key, place(at)) else {
        return Err(Failure::unanswered(format!("server {} has no address", at.node)));
    };
    let password = observed
        .password
        .as_ref()
        .map(super::config::Password::expose)
        .unwrap_or_default();
    let set = node
        .config_set(&[("masterauth", password), ("requirepass", password)])
        .await;
    match set {
        Ok(()) => {
            context
                .states
                .with(key, |state| state.has_desired_password.insert(at.node));
            Ok(Vec::new())
        }
        Err(error) if error.is_unanswered() => Err(Failure::unanswered(error.to_string())),
        Err(error) => Err(Failure::rejected(error.to_string())),
    }
}

async fn at_server(
    context: &Context,
    key: &ClusterKey,
    observed: &Observed,
    planned: &Planned,
    step: &Step,
) -> Result<Vec<Change>, Failure> {
    let metrics = context.metrics.clone();
    let counted = key.clone();
    let servers = Servers {
        key,
        monitor: &context.monitor,
        observation: &planned.observed,
        applied: &context.applied,
        served: &context.served,
        settings: None,
        keys: KeyAccess::SameUser(credentials(observed.password.as_ref())),
        place,
        budget: context.settings.move_budget,
        moved: Arc::new(move |slots| {
            let slots = u64::try_from(slots).unwrap_or(0);
            metrics.slots_moved.get_or_create(&(&counted).into()).inc_by(slots);
        }),
    };
    command(context, servers, step).await
}

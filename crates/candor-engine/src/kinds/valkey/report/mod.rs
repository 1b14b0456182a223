//! The report of a reconcile: a pure function of the desired state, the observed state, the plan, the outcomes, and
//! the previous status.
//!
//! A report from an unchanged state equals the previous one, byte for byte, and has no events.
//!
//! | you look for | it is in |
//! |---|---|
//! | the conditions of each stage: the table of the API contract | `condition_set` |
//! | what failed, and when a user must act | `fault` |
//! | the list of conditions, and Ready as their summary | `conditions` |
//! | optional conditions | `optional_conditions` |
//! | the current operation and its progress | `operation` |
//! | the status of a member's `ValkeyNode` | `nodes` |
//! | events | `events` |

mod condition_set;
mod conditions;
mod events;
mod fault;
mod nodes;
mod operation;
mod optional_conditions;

use std::collections::BTreeMap;

use candor_api::valkey::conditions::ClusterCondition;
use candor_api::valkey::status::State;
use candor_api::{Condition, ValkeyCluster, ValkeyClusterStatus, ValkeyNode, ValkeyNodeStatus};
use jiff::Timestamp;
use kube_status::events::Notice;
use kube_status::{find, is_true};

use crate::assess::retain_keys;
use crate::kinds::valkey;
use crate::memory::Memory;
use crate::model::{Desired, MemberRef};
use crate::observation::{Observation, Workload};
use crate::outcome::Outcome;
use crate::plan::{Plan, Stage};
use crate::step::Step;

/// All inputs of a report. The previous status is `cluster.status`.
#[derive(Clone, Copy, Debug)]
pub struct ReportInput<'a> {
    /// The cluster with its last status.
    pub cluster: &'a ValkeyCluster,
    /// The members' `ValkeyNode` objects as they are stored; a member without one has no entry.
    pub nodes: &'a BTreeMap<MemberRef, ValkeyNode>,
    /// The desired state.
    pub desired: &'a Desired,
    /// The observed state.
    pub observed: &'a Observation,
    /// What status remembered before this reconcile.
    pub memory: &'a Memory,
    /// The plan.
    pub plan: &'a Plan,
    /// The results of its steps.
    pub outcomes: &'a [Outcome],
    /// The time of the reconcile.
    pub now: Timestamp,
}

/// What the operator publishes after a reconcile.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The status of the cluster.
    pub status: ValkeyClusterStatus,
    /// The status of every member: a `ValkeyNode` must exist for exactly these.
    pub nodes: BTreeMap<MemberRef, ValkeyNodeStatus>,
    /// The events to record.
    pub events: Vec<Notice>,
}

/// Builds the report of a reconcile.
pub fn report(input: &ReportInput<'_>) -> Report {
    // A cluster that is being deleted is reported as such, whatever the plan is.
    let leaving = Plan::new(Stage::Deleting, Vec::new());
    let plan = if input.observed.deleting { &leaving } else { input.plan };
    let memory = &input.memory.recall(input.desired, input.observed);
    let input = &ReportInput { memory, plan, ..*input };
    let nothing = ValkeyClusterStatus::default();
    let before = input.cluster.status.as_ref().unwrap_or(&nothing);
    let after = input.memory.after(input.desired, input.observed, input.plan);
    let nodes = nodes::all(input);
    // With the credentials that were created just now the next reconcile observes the members.
    let recovered = |one: &Outcome| one.step == Step::CreateCredentials && one.result.is_ok();
    if input.plan.stage.is_unseen() && input.outcomes.iter().any(recovered) {
        let (status, events) = (before.clone(), events::recovered(input));
        return Report { status, nodes, events };
    }
    let operation = operation::of(input, before, &after);
    let fault = fault::of(input, before);
    let error_since = fault.as_ref().map(|fault| fault.since(input, before));
    let mut set = condition_set::of(input, before, operation.as_ref());
    if let Some(fault) = &fault {
        fault.apply_to(&mut set, input, error_since);
    }
    let conditions = conditions::all(input, before, &after, &set, &nodes);
    let (state, decided_by) = state(input, before, &conditions);
    let decided = find(&conditions, decided_by);
    let blind = input.plan.stage.is_unseen();
    let mut status = ValkeyClusterStatus {
        state: Some(state),
        reason: decided.map(|one| one.reason.clone()).unwrap_or_default(),
        message: decided.map(|one| one.message.clone()).unwrap_or_default(),
        shards: count(after.topology.values().filter(|shard| !shard.slots.is_empty()).count()),
        ready_shards: ready_shards(input, before),
        observed_generation: if blind {
            before.observed_generation
        } else {
            input.cluster.metadata.generation
        },
        selector: format!("valkey.io/cluster={}", name(input.cluster)),
        operation,
        formed: after.formed,
        image: image(input.cluster, before),
        server_image: if blind {
            before.server_image.clone()
        } else {
            valkey::image(input.cluster).to_owned()
        },
        topology: valkey::topology(&after, input.observed, &before.topology),
        error_since: error_since.map(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time),
        conditions,
    };
    retain_keys(&mut status, before, |status| {
        status.topology.iter_mut().map(|shard| &mut shard.keys).collect()
    });
    let events = events::all(input, before, &status, &after, &nodes);
    Report { status, nodes, events }
}

/// The state in one word, and the condition that decided it: the five rules, in their order. If it is unknown whether
/// the cluster is ready, the state is Reconciling or Initializing.
fn state(input: &ReportInput<'_>, before: &ValkeyClusterStatus, conditions: &[Condition]) -> (State, ClusterCondition) {
    let on_its_way = if has_shards(input, before) {
        State::Reconciling
    } else {
        State::Initializing
    };
    let unknown = kube_status::is_unknown(conditions, ClusterCondition::Ready);
    if is_true(conditions, ClusterCondition::Degraded) {
        (State::Degraded, ClusterCondition::Degraded)
    } else if is_true(conditions, ClusterCondition::Ready) {
        (State::Ready, ClusterCondition::Ready)
    } else if unknown && !failed(conditions) {
        (on_its_way, ClusterCondition::Ready)
    } else if is_true(conditions, ClusterCondition::Progressing) {
        (on_its_way, ClusterCondition::Progressing)
    } else {
        (State::Failed, ClusterCondition::Ready)
    }
}

fn failed(conditions: &[Condition]) -> bool {
    let progressing = find(conditions, ClusterCondition::Progressing);
    progressing.is_some_and(|one| one.reason == candor_api::valkey::conditions::ClusterReason::Stalled.as_ref())
}

/// Whether the cluster is past its initialization: every workload of the first spec has existed once.
fn has_shards(input: &ReportInput<'_>, before: &ValkeyClusterStatus) -> bool {
    let made = |at: MemberRef| {
        let member = input.observed.members.get(&at);
        member.is_some_and(|member| member.workload != Workload::Absent)
    };
    let was = matches!(before.state, Some(State::Reconciling | State::Ready));
    input.memory.formed || was || input.desired.members().all(made)
}

/// Shards with a serving primary and all desired replicas in sync; the previous count while nothing is known.
fn ready_shards(input: &ReportInput<'_>, before: &ValkeyClusterStatus) -> i32 {
    if input.plan.stage.is_unseen() {
        return before.ready_shards;
    }
    let ready = |shard: &u32| {
        let Some((primary_at, primary)) = input.observed.primary(crate::model::ShardIndex(*shard)) else {
            return false;
        };
        let mut desired = input
            .desired
            .members()
            .filter(|at| at.shard.0 == *shard && *at != primary_at);
        let in_sync = |at| {
            let facts = input.observed.members.get(&at).and_then(|member| member.facts());
            facts.is_some_and(|facts| facts.in_sync)
        };
        primary.ok && !primary.loading && desired.all(in_sync)
    };
    count((0..input.desired.shards).filter(ready).count())
}

/// Stores the image that was chosen when the spec named none, so that a newer operator does not change it.
fn image(cluster: &ValkeyCluster, before: &ValkeyClusterStatus) -> String {
    if cluster.spec.image.is_none() && before.image.is_empty() {
        valkey::IMAGE.to_owned()
    } else {
        before.image.clone()
    }
}

/// The cluster's name; every stored object has one.
fn name(cluster: &ValkeyCluster) -> &str {
    cluster.metadata.name.as_deref().unwrap_or_default()
}

fn count(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

//! The kinds. A kind is a translation: from its spec to the desired state and its objects, from the plan to its status.
//! The line that every reconcile follows is in `reconcile`; it is generic over `Kind`.

pub mod redkey;
pub(crate) mod valkey;

use std::sync::Arc;
use std::time::Duration;

use candor_engine::attempts::Attempts;
use candor_engine::observation::Observation;
use candor_engine::outcome::Outcome;
use candor_engine::plan::Plan;
use candor_engine::step::Step;

use crate::reconcile::{Done, ReconcileError};
use crate::runtime::cache::ClusterKey;
use crate::runtime::context::Context;
use crate::write::Published;

/// What a kind provides. A value is one observed cluster, in one reconcile.
pub(crate) trait Kind: Sized {
    /// The custom resource.
    type Cluster;
    /// What the plan consists of.
    type Planned;
    /// Whether a written status is followed by another reconcile at once: one row of status per write.
    const CONTINUES_AFTER_WRITE: bool;
    /// The requeue delay while another process executes the remaining steps.
    const DELEGATED: Duration;

    /// The cluster as the cache has it.
    fn cached(context: &Context, key: &ClusterKey) -> Option<Arc<Self::Cluster>>;

    /// Holds the cluster with a finalizer and observes it. Ends the reconcile of a cluster that is being deleted, or that
    /// cannot be observed.
    async fn observe(
        context: &Arc<Context>,
        key: &ClusterKey,
        cluster: Arc<Self::Cluster>,
    ) -> Result<Begun<Self>, ReconcileError>;

    /// Plans. May observe again if the plan has steps that need a better observation.
    async fn plan(&mut self, context: &Context, key: &ClusterKey, attempts: &Attempts) -> Self::Planned;

    /// The plan, and the observation that it was made from.
    fn decision<'a>(&'a self, planned: &'a Self::Planned) -> (&'a Plan, &'a Observation);

    /// Whether status already announces what the plan does.
    fn is_admitted(&self, planned: &Self::Planned) -> bool;

    /// Whether the operator itself executes a step.
    fn executes(&self, step: &Step) -> bool;

    /// Executes steps.
    async fn act(&self, context: &Context, key: &ClusterKey, planned: &Self::Planned, steps: &[Step]) -> Vec<Outcome>;

    /// Builds the report, and writes status and events.
    async fn publish(
        &mut self,
        context: &Context,
        key: &ClusterKey,
        planned: &Self::Planned,
        outcomes: &mut Vec<Outcome>,
    ) -> Result<Published, ReconcileError>;
}

/// How a reconcile begins.
pub(crate) enum Begun<K> {
    /// The cluster is observed.
    Observed(K),
    /// There is nothing more to do; none if the cluster is deleted.
    Ended(Option<Done>),
}

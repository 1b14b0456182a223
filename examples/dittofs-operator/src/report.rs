//! Status and events, from what was observed, planned and done. Pure: no client, no clock.

use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt;
use kube_status::events::Notice;
use kube_status::merge::MergeError;
use kube_status::{Condition, ConditionedMut, Draft, Reason, Summary, is_true, remove, set, transitioned_to};

use crate::act::StepError;
use crate::api::{DittoServer, DittoServerStatus, Phase};
use crate::conditions::ServerCondition::{Available, ConfigReady, DatabaseReady, Progressing, Ready};
use crate::conditions::ServerReason::{
    AllSystemsGo, Applying, Blocked, ComponentsNotReady, ComponentsUnknown, ConfigUnknown, ConfigValid, InvalidConfig,
    PerconaNotInstalled, PerconaNotReady, PerconaReady, PerconaUnknown, ReconcileFailed, RollingPods, SecretNotFound,
    Settled, StatefulSetNotReady, StatefulSetReady, StatefulSetRefused, StatefulSetUnknown, Stopped,
    StorageClassNotFound, WaitingForDatabase,
};
use crate::conditions::{self, ServerReason, waiting_for};
use crate::config::Config;
use crate::observe::{Database, Observation};
use crate::plan::{Plan, Step, replicas};

/// What became of the plan.
#[derive(Debug)]
pub enum Outcome {
    /// It is announced, and done once that is written.
    Announced,
    /// Everything is done.
    Done,
    /// This step failed.
    Failed(StepError),
    /// It did not come to a step.
    Stopped(String),
    /// The server is being deleted: the finalizer's condition, and when to reconcile again.
    Deleting(Draft<'static>, Duration),
}

/// Everything a report is made from.
#[derive(Debug)]
pub struct Story<'a> {
    /// The server as it was read, with the status that stands.
    pub server: &'a DittoServer,
    /// The observed state.
    pub observed: &'a Observation,
    /// What was planned.
    pub plan: &'a Plan,
    /// What became of it.
    pub outcome: &'a Outcome,
}

/// The desired status, and the events for what changed.
pub fn report(story: &Story<'_>, now: Timestamp) -> Result<(DittoServerStatus, Vec<Notice>), MergeError> {
    let mut next = story.server.clone();
    let mut drafts = vec![story.config(), story.available(), story.progressing()];
    if story.server.spec.percona.enabled {
        drafts.push(story.database());
    } else {
        let _ = remove(next.conditions_mut(), DatabaseReady);
    }
    if let Outcome::Deleting(draft, _) = story.outcome {
        drafts.push(draft.clone());
    }
    for draft in drafts {
        let _ = set(&mut next, draft, now);
    }
    let _ = summary().set(&mut next, now)?;
    let status = story.status(next.status.unwrap_or_default().conditions);
    let notices = story.notices(&status);
    Ok((status, notices))
}

/// Ready is what the other conditions come to.
fn summary() -> Summary<'static> {
    Summary::new(Ready)
        .declared([ConfigReady, DatabaseReady, Available, Progressing])
        .ignore_if_missing([DatabaseReady])
        .reasons(ComponentsNotReady.name(), ComponentsUnknown.name(), AllSystemsGo.name())
        .all_well("All components are ready")
}

impl Story<'_> {
    fn config(&self) -> Draft<'static> {
        let bad = |reason: ServerReason, message: String| Draft::bad(ConfigReady, reason).message(message);
        match &self.plan.config {
            Config::Valid(_) => Draft::good(ConfigReady, ConfigValid).message("Configuration and Secrets are valid"),
            Config::Invalid(why) => bad(InvalidConfig, format!("Configuration is not valid: {why}")),
            Config::SecretsMissing(names) => bad(SecretNotFound, format!("Secrets not found: {}", names.join(", "))),
            Config::Unknown(why) => Draft::unknown(ConfigReady, ConfigUnknown).message(why.clone()),
        }
    }

    fn database(&self) -> Draft<'static> {
        let name = self.server.database_name();
        let database = self.observed.database.as_ref().map_err(Clone::clone);
        match (&self.observed.database, database.and_then(Database::is_ready)) {
            (Ok(Database::NotInstalled), _) => Draft::bad(DatabaseReady, PerconaNotInstalled)
                .message("PerconaPGCluster is not installed here: install Percona's operator for PostgreSQL"),
            (_, Ok(true)) => {
                Draft::good(DatabaseReady, PerconaReady).message(format!("PostgreSQL cluster {name} is ready"))
            }
            (_, Ok(false)) => Draft::bad(DatabaseReady, PerconaNotReady).message(waiting_for(&name)),
            (_, Err(why)) => Draft::unknown(DatabaseReady, PerconaUnknown).message(why),
        }
    }

    fn available(&self) -> Draft<'static> {
        let bad = |reason: ServerReason, message: String| Draft::bad(Available, reason).message(message);
        let (wanted, (ready, _)) = (self.server.spec.replicas, self.counts());
        match (
            &self.observed.stateful_set,
            self.outcome,
            self.observed.lacks_class(self.server),
        ) {
            (Err(why), ..) => Draft::unknown(Available, StatefulSetUnknown).message(why.clone()),
            (_, Outcome::Failed(error), _) if error.rejects_server() => bad(StatefulSetRefused, error.to_string()),
            (Ok(None), _, Some(class)) => bad(StorageClassNotFound, format!("StorageClass does not exist: {class}")),
            _ if wanted == 0 => bad(Stopped, "Stopped: spec.replicas is 0".to_owned()),
            _ if ready < wanted => bad(
                StatefulSetNotReady,
                format!("Waiting for replicas: {ready}/{wanted} ready"),
            ),
            _ => Draft::good(Available, StatefulSetReady)
                .message(format!("StatefulSet has {ready}/{wanted} ready replicas")),
        }
    }

    fn progressing(&self) -> Draft<'static> {
        let busy = |reason: ServerReason, message: String| Draft::bad(Progressing, reason).message(message);
        match (self.outcome, self.observed.unread()) {
            (Outcome::Deleting(draft, _), _) => busy(ServerReason::Deleting, draft.message.to_string()),
            (Outcome::Failed(error), _) => busy(ReconcileFailed, error.to_string()),
            (Outcome::Stopped(why), _) | (_, Some(why)) => busy(ReconcileFailed, why.clone()),
            _ if self.plan.has_server() || self.is_rolling() => {
                let name = self.server.name_any();
                busy(RollingPods, format!("Pods of StatefulSet {name} are being rolled"))
            }
            _ if !matches!(self.plan.config, Config::Valid(_)) => {
                Draft::good(Progressing, Blocked).message("Nothing is applied until the configuration is mended")
            }
            _ if !self.observed.has_database(self.server) => {
                busy(WaitingForDatabase, waiting_for(&self.server.database_name()))
            }
            _ => match self.plan.steps.first() {
                Some(step) => busy(Applying, format!("{} is being written", step.target())),
                None => Draft::good(Progressing, Settled).message("Everything is applied"),
            },
        }
    }

    /// Whether pods are on their way to what the `StatefulSet` says. One that merely fails its probes is not: that is
    /// for Available to tell. Before the server was available for the first time, it is.
    fn is_rolling(&self) -> bool {
        let Ok(Some(set)) = &self.observed.stateful_set else {
            return false;
        };
        let status = set.status.clone().unwrap_or_default();
        let never_available = !self.was_available() && status.ready_replicas.unwrap_or(0) < replicas(set);
        status.observed_generation < set.metadata.generation
            || status.replicas != replicas(set)
            || status.current_revision != status.update_revision
            || never_available
    }

    fn was_available(&self) -> bool {
        let status = self.server.status.as_ref();
        status.is_some_and(|status| status.nfs_endpoint.is_some())
    }

    /// Ready and available replicas.
    fn counts(&self) -> (i32, i32) {
        let set = self.observed.stateful_set.as_ref().ok().and_then(Option::as_ref);
        let status = set.and_then(|set| set.status.as_ref());
        status.map_or((0, 0), |status| {
            (
                status.ready_replicas.unwrap_or(0),
                status.available_replicas.unwrap_or(0),
            )
        })
    }

    /// The status around the conditions.
    fn status(&self, conditions: Vec<Condition>) -> DittoServerStatus {
        let (server, spec) = (self.server, &self.server.spec);
        let (ready_replicas, available_replicas) = self.counts();
        let has_endpoint = spec.replicas > 0 && (self.was_available() || is_true(&conditions, Available));
        let (name, namespace) = (server.name_any(), server.namespace().unwrap_or_default());
        DittoServerStatus {
            observed_generation: server.metadata.generation,
            replicas: spec.replicas,
            ready_replicas,
            available_replicas,
            nfs_endpoint: has_endpoint.then(|| format!("{name}.{namespace}.svc:{}", spec.nfs_port)),
            phase: Some(phase(server, &conditions)),
            config_hash: match &self.plan.config {
                Config::Valid(hash) => Some(hash.clone()),
                _ => server.status.as_ref().and_then(|before| before.config_hash.clone()),
            },
            percona_cluster_name: spec.percona.enabled.then(|| server.database_name()),
            conditions,
        }
    }

    /// What differs from the status that stands in a way that people should hear of, each thing once.
    fn notices(&self, next: &DittoServerStatus) -> Vec<Notice> {
        let before = self.server.status.clone().unwrap_or_default();
        let mut notices = Vec::new();
        if matches!((self.outcome, &self.observed.stateful_set), (Outcome::Done, Ok(None))) && self.plan.has_server() {
            notices.push(conditions::created());
        }
        if before.config_hash.is_some() && before.config_hash != next.config_hash {
            let map = self.plan.steps.iter().find(|step| step.resource.kind == "ConfigMap");
            let what = map.map_or_else(|| "Secrets".to_owned(), Step::target);
            notices.push(conditions::config_updated(&what));
        }
        let switched_off = before.percona_cluster_name.is_some() && next.percona_cluster_name.is_none();
        let database = self.observed.database.as_ref();
        if switched_off && database.is_ok_and(|database| database.ours(self.server).is_some()) {
            notices.push(conditions::percona_orphaned(&self.server.database_name()));
        }
        for (type_, reason, event) in [
            (DatabaseReady, PerconaNotReady, "PerconaNotReady"),
            (Available, StorageClassNotFound, "StorageClassNotFound"),
            (ConfigReady, InvalidConfig, "ReconcileFailed"),
            (ConfigReady, SecretNotFound, "ReconcileFailed"),
            (Progressing, ReconcileFailed, "ReconcileFailed"),
        ] {
            let transitioned = transitioned_to(&before.conditions, &next.conditions, type_, reason);
            notices.extend(transitioned.map(|now| Notice::warning(event, now.message.clone())));
        }
        notices
    }
}

/// One word for the whole, from the spec and the conditions alone.
pub fn phase(server: &DittoServer, conditions: &[Condition]) -> Phase {
    let hopeless = [InvalidConfig, SecretNotFound, StatefulSetRefused, StorageClassNotFound].map(Reason::name);
    if server.metadata.deletion_timestamp.is_some() {
        Phase::Deleting
    } else if server.spec.replicas == 0 {
        Phase::Stopped
    } else if conditions.iter().any(|one| hopeless.contains(&&*one.reason)) {
        Phase::Failed
    } else if is_true(conditions, Ready) {
        Phase::Running
    } else {
        Phase::Pending
    }
}

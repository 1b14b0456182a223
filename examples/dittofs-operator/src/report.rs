//! What to say: status and events, from what was seen, planned and done. Pure: no client, no clock.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::StatefulSet;
use kube_status::{
    Condition, ConditionedMut, Draft, Reason, Status, Summary, find, is_false, is_true, merge::MergeError, remove, set,
};

use crate::act::StepError;
use crate::api::{DittoServer, DittoServerStatus, Phase};
use crate::config::Config;
use crate::observe::{Database, Observation};
use crate::plan::{Plan, is_database_ready, lacks_class, replicas};
use crate::words::{ServerCondition, ServerReason, Told, waiting_for};

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
    /// The server is being deleted; the finalizer's condition.
    Deleting(Draft<'static>),
}

/// Everything a report is made from.
#[derive(Debug)]
pub struct Story<'a> {
    /// The server as it was read, with the status that stands.
    pub server: &'a DittoServer,
    /// What was seen.
    pub seen: &'a Observation,
    /// What was planned.
    pub plan: &'a Plan,
    /// What became of it.
    pub outcome: &'a Outcome,
}

/// The status that should stand, and what of it is news.
pub fn report(story: &Story<'_>, now: Timestamp) -> Result<(DittoServerStatus, Vec<Told>), MergeError> {
    let mut next = story.server.clone();
    for draft in [story.config(), story.available(), story.progressing()] {
        let _ = set(&mut next, draft, now);
    }
    match story.database() {
        Some(draft) => drop(set(&mut next, draft, now)),
        None => drop(remove(next.conditions_mut(), ServerCondition::DatabaseReady)),
    }
    if let Outcome::Deleting(draft) = story.outcome {
        let _ = set(&mut next, draft.clone(), now);
    }
    let _ = summary().set(&mut next, now)?;
    let mut status = next.status.take().unwrap_or_default();
    story.fill(&mut status);
    let told = story.news(&status);
    Ok((status, told))
}

/// Ready is what the other conditions come to.
fn summary() -> Summary<'static> {
    use ServerCondition::{Available, ConfigReady, DatabaseReady, Progressing, Ready};
    Summary::new(Ready)
        .declared([ConfigReady, DatabaseReady, Available, Progressing])
        .ignore_if_missing([DatabaseReady])
        .reasons(
            ServerReason::ComponentsNotReady.name(),
            ServerReason::ComponentsUnknown.name(),
            ServerReason::AllSystemsGo.name(),
        )
        .all_well("All components are ready")
}

impl Story<'_> {
    fn config(&self) -> Draft<'static> {
        let type_ = ServerCondition::ConfigReady;
        match &self.plan.config {
            Config::Valid(_) => {
                Draft::good(type_, ServerReason::ConfigValid).message("Configuration and Secrets are valid")
            }
            Config::Invalid(why) => {
                Draft::bad(type_, ServerReason::InvalidConfig).message(format!("Configuration is not valid: {why}"))
            }
            Config::SecretsMissing(names) => Draft::bad(type_, ServerReason::SecretNotFound)
                .message(format!("Secrets not found: {}", names.join(", "))),
            Config::Unknown(why) => Draft::unknown(type_, ServerReason::ConfigUnknown).message(why.clone()),
        }
    }

    fn database(&self) -> Option<Draft<'static>> {
        let (type_, name) = (ServerCondition::DatabaseReady, self.server.database_name());
        let not_ready = || Draft::bad(type_, ServerReason::PerconaNotReady).message(waiting_for(&name));
        let unknown = |why: &str| Draft::unknown(type_, ServerReason::PerconaUnknown).message(why.to_owned());
        self.server.spec.percona.enabled.then(|| match &self.seen.database {
            Database::NotInstalled => Draft::bad(type_, ServerReason::PerconaNotInstalled)
                .message("PerconaPGCluster is not installed here: install Percona's operator for PostgreSQL"),
            Database::Absent => not_ready(),
            Database::Present(object) => match Database::is_ready(object) {
                Ok(true) => Draft::good(type_, ServerReason::PerconaReady)
                    .message(format!("PostgreSQL cluster {name} is ready")),
                Ok(false) => not_ready(),
                Err(why) => unknown(&why),
            },
            Database::Unknown(why) => unknown(why),
        })
    }

    fn available(&self) -> Draft<'static> {
        let (type_, wanted) = (ServerCondition::Available, self.server.spec.replicas);
        let set = match &self.seen.stateful_set {
            Ok(set) => set.as_ref(),
            Err(why) => return Draft::unknown(type_, ServerReason::StatefulSetUnknown).message(why.clone()),
        };
        match (self.outcome, &self.server.spec.storage.storage_class_name) {
            (Outcome::Failed(error), _) if error.is_server && error.is_refusal() => {
                return Draft::bad(type_, ServerReason::StatefulSetRefused).message(error.to_string());
            }
            (_, Some(class)) if set.is_none() && lacks_class(self.server, self.seen) => {
                return Draft::bad(type_, ServerReason::StorageClassNotFound)
                    .message(format!("StorageClass {class} does not exist"));
            }
            _ if wanted == 0 => {
                return Draft::bad(type_, ServerReason::Stopped).message("Stopped: spec.replicas is 0");
            }
            _ => {}
        }
        let ready = counts(set).0;
        if ready >= wanted {
            Draft::good(type_, ServerReason::StatefulSetReady)
                .message(format!("StatefulSet has {ready}/{wanted} ready replicas"))
        } else {
            Draft::bad(type_, ServerReason::StatefulSetNotReady)
                .message(format!("Waiting for replicas: {ready}/{wanted} ready"))
        }
    }

    fn progressing(&self) -> Draft<'static> {
        let type_ = ServerCondition::Progressing;
        let busy = |reason: ServerReason, message: String| Draft::bad(type_, reason).message(message);
        match self.outcome {
            Outcome::Deleting(draft) => return busy(ServerReason::Deleting, draft.message.clone().into_owned()),
            Outcome::Failed(error) => return busy(ServerReason::ReconcileFailed, error.to_string()),
            Outcome::Stopped(why) => return busy(ServerReason::ReconcileFailed, why.clone()),
            Outcome::Announced | Outcome::Done => {}
        }
        if let Some(why) = self.unread() {
            return busy(ServerReason::ReconcileFailed, why);
        }
        if self.plan.steps.iter().any(crate::plan::Step::is_server) || self.is_rolling() {
            let name = self.server.metadata.name.as_deref().unwrap_or_default();
            return busy(
                ServerReason::RollingPods,
                format!("Pods of StatefulSet {name} are being rolled"),
            );
        }
        if !matches!(self.plan.config, Config::Valid(_)) {
            return Draft::good(type_, ServerReason::Blocked)
                .message("Nothing is applied until the configuration is mended");
        }
        if !is_database_ready(self.server, &self.seen.database) {
            return busy(
                ServerReason::WaitingForDatabase,
                waiting_for(&self.server.database_name()),
            );
        }
        match self.plan.steps.first() {
            Some(step) => busy(
                ServerReason::Applying,
                format!("{} is being written", step.target(self.server)),
            ),
            None => Draft::good(type_, ServerReason::Settled).message("Everything is applied"),
        }
    }

    /// The first thing that could not be read.
    fn unread(&self) -> Option<String> {
        let seen = self.seen;
        let database = match &seen.database {
            Database::Unknown(why) => Some(why),
            _ => None,
        };
        let each = [
            seen.config_map.as_ref().err(),
            seen.stateful_set.as_ref().err(),
            seen.storage_class.as_ref().err(),
            database,
        ];
        let services = seen.services.iter().filter_map(|service| service.as_ref().err());
        let secrets = seen.secrets.iter().filter_map(|(_, secret)| secret.as_ref().err());
        each.into_iter()
            .flatten()
            .chain(services)
            .chain(secrets)
            .next()
            .cloned()
    }

    /// Whether pods are on their way to what the `StatefulSet` says. One that merely fails its probes is not: that is
    /// for Available to tell. Before the server was available for the first time, it is.
    fn is_rolling(&self) -> bool {
        let Ok(Some(set)) = &self.seen.stateful_set else {
            return false;
        };
        let status = set.status.clone().unwrap_or_default();
        let never_available = self.endpoint_before().is_none() && status.ready_replicas.unwrap_or(0) < replicas(set);
        status.observed_generation < set.metadata.generation
            || status.replicas != replicas(set)
            || status.current_revision != status.update_revision
            || never_available
    }

    fn endpoint_before(&self) -> Option<&String> {
        self.server.status.as_ref()?.nfs_endpoint.as_ref()
    }

    /// Everything of the status that is not a condition.
    fn fill(&self, status: &mut DittoServerStatus) {
        let (server, spec) = (self.server, &self.server.spec);
        let (ready, available) = counts(self.seen.stateful_set.as_ref().ok().and_then(Option::as_ref));
        status.observed_generation = server.metadata.generation;
        status.replicas = spec.replicas;
        status.ready_replicas = ready;
        status.available_replicas = available;
        let was_there = self.endpoint_before().is_some() || is_true(&status.conditions, ServerCondition::Available);
        status.nfs_endpoint = (was_there && spec.replicas > 0).then(|| {
            let (name, namespace) = (&server.metadata.name, &server.metadata.namespace);
            let part = |text: &Option<String>| text.clone().unwrap_or_default();
            format!("{}.{}.svc:{}", part(name), part(namespace), spec.nfs_port)
        });
        if let Config::Valid(hash) = &self.plan.config {
            status.config_hash = Some(hash.clone());
        }
        status.percona_cluster_name = spec.percona.enabled.then(|| server.database_name());
        status.phase = Some(phase(server, &status.conditions));
    }

    /// Whether the configuration differs from the one in the `ConfigMap`.
    fn has_new_text(&self) -> bool {
        let stands = self.seen.config_map.as_ref().ok().and_then(Option::as_ref);
        let text = stands.and_then(|map| map.data.as_ref()?.get("config.yaml"));
        text != Some(&self.server.spec.config)
    }

    /// What differs from the status that stands in a way that people should hear of, each thing once.
    fn news(&self, next: &DittoServerStatus) -> Vec<Told> {
        let before = self.server.status.clone().unwrap_or_default();
        let name = self.server.database_name();
        let turned_to = |type_: ServerCondition, reason: ServerReason| {
            let is = |conditions: &[Condition]| find(conditions, type_).is_some_and(|one| one.reason == reason.name());
            is(&next.conditions) && !is(&before.conditions)
        };
        let message =
            |type_: ServerCondition| find(&next.conditions, type_).map_or_else(String::new, |one| one.message.clone());
        let mut told = Vec::new();
        if matches!(self.outcome, Outcome::Done) && self.plan.creates_server(self.seen) {
            told.push(Told::Created);
        }
        if before.config_hash.is_some() && before.config_hash != next.config_hash {
            told.push(if self.has_new_text() {
                Told::ConfigUpdated(self.server.config_name())
            } else {
                Told::SecretUpdated
            });
        }
        if turned_to(ServerCondition::DatabaseReady, ServerReason::PerconaNotReady) {
            told.push(Told::PerconaNotReady(name.clone()));
        }
        let switched_off = before.percona_cluster_name.is_some() && next.percona_cluster_name.is_none();
        if switched_off && self.seen.database.ours(self.server).is_some() {
            told.push(Told::PerconaOrphaned(name));
        }
        if turned_to(ServerCondition::Available, ServerReason::StorageClassNotFound) {
            let class = self.server.spec.storage.storage_class_name.clone();
            told.push(Told::StorageClassNotFound(class.unwrap_or_default()));
        }
        let was_bad = is_false(&before.conditions, ServerCondition::ConfigReady);
        if is_false(&next.conditions, ServerCondition::ConfigReady) && !was_bad {
            told.push(Told::ReconcileFailed(message(ServerCondition::ConfigReady)));
        }
        if turned_to(ServerCondition::Progressing, ServerReason::ReconcileFailed) {
            told.push(Told::ReconcileFailed(message(ServerCondition::Progressing)));
        }
        told
    }
}

/// One word for the whole, from the spec and the conditions alone.
pub fn phase(server: &DittoServer, conditions: &[Condition]) -> Phase {
    use ServerReason::{InvalidConfig, SecretNotFound, StatefulSetRefused, StorageClassNotFound};
    let has = |type_: ServerCondition, reasons: &[ServerReason]| {
        find(conditions, type_).is_some_and(|one| {
            Status::of(one) == Status::False && reasons.iter().any(|reason| reason.name() == one.reason)
        })
    };
    if server.metadata.deletion_timestamp.is_some() {
        Phase::Deleting
    } else if server.spec.replicas == 0 {
        Phase::Stopped
    } else if has(ServerCondition::ConfigReady, &[InvalidConfig, SecretNotFound])
        || has(ServerCondition::Available, &[StatefulSetRefused, StorageClassNotFound])
    {
        Phase::Failed
    } else if is_true(conditions, ServerCondition::Ready) {
        Phase::Running
    } else {
        Phase::Pending
    }
}

/// Ready and available replicas.
fn counts(set: Option<&StatefulSet>) -> (i32, i32) {
    let status = set.and_then(|set| set.status.clone()).unwrap_or_default();
    (
        status.ready_replicas.unwrap_or(0),
        status.available_replicas.unwrap_or(0),
    )
}

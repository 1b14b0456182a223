//! The answer: the state of the cluster, since when, what the operator does about it, and what a user should do. Pure,
//! and the same for every screen.

use candor_api::Condition;
use jiff::Timestamp;
use kube_status::tree::{Tone, since};
use kube_status::{Polarity, Status};
use serde::{Serialize, Serializer};

use super::Cluster;
use super::cause::{Cause, is_true, polarity, running, without_full_stop};
use super::impact::Impact;
use super::next_step::{acknowledge, fill, next_step};
use crate::commands::liveness::Liveness;
use crate::commands::output::some;

/// The one word for a cluster that is as desired.
const READY: &str = "Ready";
/// The impact while no operator runs.
const NOT_KNOWN: &str = "Not known whether all slots are served";

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// The severity.
    #[serde(serialize_with = "tone_name")]
    pub tone: Tone,
    /// The state in one word.
    pub state: String,
    /// The reason that decides the state.
    pub reason: String,
    /// Since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// What clients notice, as the beginning of a sentence; empty where the state as a sentence says it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub impact: String,
    /// The state as a sentence, with its cause.
    pub sentence: String,
    /// The cause alone; empty for a cluster that is as desired.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cause: String,
    /// What the operator is doing about it; empty if nothing needs to be done.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub operator: String,
    /// What a user should do; empty if nothing.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub person: String,
    /// What must be mentioned in any state.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub asides: Vec<String>,
}

// serde requires this signature.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn tone_name<S: Serializer>(tone: &Tone, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(match tone {
        Tone::Good => "Good",
        Tone::Info => "Info",
        Tone::Warning => "Warning",
        Tone::Error => "Error",
        Tone::Unknown => "Unknown",
    })
}

impl Answer {
    /// The answer about a cluster, given whether an operator is running.
    pub fn of(cluster: &Cluster, operator: &Liveness, now: Timestamp) -> Self {
        let cause = Cause::of(cluster);
        let mut answer = match &cause {
            Some(cause) => Self::by_status(cluster, cause, now),
            None => Self::without_conditions(cluster, now),
        };
        answer.asides = asides(cluster, cause.as_ref(), now);
        if let Liveness::Gone { since: at, .. } = operator {
            answer.without_operator(*at, now);
        }
        answer
    }

    /// Impact and cause, for a list that shows state, reason and age in columns of their own.
    pub fn brief(&self) -> String {
        match (self.impact.as_str(), self.cause.as_str()) {
            (_, "") => self.text(),
            ("", cause) => cause.to_owned(),
            (impact, cause) => format!("{impact}. {cause}"),
        }
    }

    /// Impact and state in one text.
    pub fn text(&self) -> String {
        match self.impact.as_str() {
            "" => self.sentence.clone(),
            impact => format!("{impact}. {}", self.sentence),
        }
    }

    /// The severity as a rank: a list shows the worst first.
    pub fn rank(&self) -> u8 {
        match self.tone {
            Tone::Error => 0,
            Tone::Unknown => 1,
            Tone::Warning => 2,
            Tone::Info => 3,
            Tone::Good if !self.asides.is_empty() => 4,
            Tone::Good => 5,
        }
    }

    /// The answer according to status alone.
    fn by_status(cluster: &Cluster, cause: &Cause, now: Timestamp) -> Self {
        let state = state(cluster);
        let begun = cluster.deleting.unwrap_or(cause.since);
        let long = since(begun, now);
        let is_ready = state == READY && cluster.ready() == Some(Status::True);
        let says_it = is_ready || cluster.deleting.is_some() || cluster.shards == 0;
        let message = without_full_stop(&cause.message, &cause.reason);
        let sentence = if is_ready {
            format!("{state} for {long}: {}.", complete(cluster))
        } else {
            let step = cluster.stage.as_ref().filter(|_| cluster.deleting.is_none());
            let step = step.map_or(String::new(), |stage| format!(", {}", stage.step));
            format!("{state} for {long}{step}: {message} ({}).", cause.reason)
        };
        Self {
            tone: cause.tone,
            state,
            reason: cause.reason.clone(),
            since: Some(begun),
            impact: if says_it {
                String::new()
            } else {
                Impact::of(cluster).text(now)
            },
            sentence,
            cause: if is_ready { String::new() } else { message.to_owned() },
            operator: fill(action(cluster, cause), cluster),
            person: next_step(cluster, cause, now),
            asides: Vec::new(),
        }
    }

    fn without_conditions(cluster: &Cluster, now: Timestamp) -> Self {
        let long = cluster
            .created
            .map_or(String::new(), |at| format!(", created {} ago", since(at, now)));
        let sentence = match cluster.state.as_str() {
            "" => format!("No operator has reconciled this cluster yet{long}."),
            state => format!("Its status says {state} and has no conditions{long}."),
        };
        Self {
            tone: Tone::Unknown,
            state: "Unknown".to_owned(),
            reason: String::new(),
            since: cluster.created,
            impact: String::new(),
            sentence,
            cause: String::new(),
            operator: String::new(),
            person: "check that an operator runs and watches this namespace: candor doctor".to_owned(),
            asides: Vec::new(),
        }
    }

    /// No operator is running or has reconciled since: the status is outdated.
    fn without_operator(&mut self, gone: Option<Timestamp>, now: Timestamp) {
        let age = gone.map_or_else(String::new, |at| format!(", {} ago", since(at, now)));
        if self.tone != Tone::Unknown || !self.reason.is_empty() {
            let before = match self.impact.as_str() {
                "" => self.sentence.clone(),
                impact => format!("{impact}. {}", self.sentence),
            };
            self.sentence = format!("When last seen{age}: {before}");
            NOT_KNOWN.clone_into(&mut self.impact);
        }
        self.tone = Tone::Unknown;
        self.operator = String::new();
        "start the operator, or see why it does not run: candor doctor".clone_into(&mut self.person);
    }
}

/// What the operator is doing: nothing while it is paused, else what the fault or the operation in progress needs.
fn action(cluster: &Cluster, cause: &Cause) -> &'static str {
    let action = |reason: &str| {
        let advice = cluster.kind.advice(reason).map(|advice| advice.operator);
        advice.filter(|text| !text.is_empty())
    };
    if let Some(paused) = is_true(cluster, "Paused") {
        return action(&paused.reason).unwrap_or_default();
    }
    if cause.reason == "PrimaryLost" && cluster.replicas == 0 {
        return "waits for the primary to come back: without replicas it can promote none";
    }
    let running = running(cluster);
    // The meaning of the stage says it more precisely.
    let is_staged = cluster.stage.as_ref().is_some_and(|stage| !stage.meaning.is_empty());
    if is_staged && running.is_some_and(|one| one.reason == cause.reason) {
        return "";
    }
    let of_operation = || running.and_then(|one| action(&one.reason));
    action(&cause.reason).or_else(of_operation).unwrap_or_default()
}

/// The state in one word. Status may say Ready while it is not known whether it still is.
fn state(cluster: &Cluster) -> String {
    match cluster.state.as_str() {
        _ if cluster.deleting.is_some() => "Deleting".to_owned(),
        "" => "Unknown".to_owned(),
        READY if cluster.ready() == Some(Status::Unknown) => "Unknown".to_owned(),
        state => state.to_owned(),
    }
}

/// What else a user must know, in any state.
fn asides(cluster: &Cluster, cause: Option<&Cause>, now: Timestamp) -> Vec<String> {
    let mut all = Vec::new();
    for type_ in cluster.kind.aside_types() {
        // What the answer says already is not repeated.
        let is_said = |one: &&Condition| cause.is_some_and(|cause| cause.type_ == *type_ || cause.reason == one.reason);
        let found = cluster.condition(type_).filter(|one| !is_said(one));
        let Some(condition) = found else { continue };
        let (status, polarity) = (Status::of(condition), polarity(cluster, type_));
        let tone = Tone::of(status, polarity, condition.severity());
        // A condition that must be true is expected to be false for a while, for example while Robin starts.
        if tone == Tone::Good || (tone == Tone::Info && polarity == Polarity::Positive) {
            continue;
        }
        let is = match polarity {
            Polarity::Positive => format!(" is {status}"),
            Polarity::Negative => String::new(),
        };
        let long = since(condition.last_transition_time.0, now);
        let message = without_full_stop(&condition.message, &condition.reason);
        let advice = cluster
            .kind
            .advice(&condition.reason)
            .map_or("", |advice| advice.person);
        let advice = if condition.reason == "DataLost" {
            acknowledge(cluster)
        } else {
            Some(fill(advice, cluster))
        };
        let advice = advice.filter(|text| !text.is_empty());
        // No full stop after a command, so that it can be pasted.
        let advice = advice.map_or(".".to_owned(), |advice| format!("; {advice}"));
        all.push(format!("{type_}{is} for {long}: {message}{advice}"));
    }
    if cluster.observed_generation < cluster.generation && !cluster.conditions.is_empty() {
        all.push("The spec has changed since, and the operator has not reconciled it yet.".to_owned());
    }
    all
}

/// A complete cluster, as text.
fn complete(cluster: &Cluster) -> String {
    let shards = some(cluster.shards.into(), cluster.kind.unit());
    match (cluster.shards, cluster.replicas) {
        (0, _) => "hibernated, no server runs".to_owned(),
        (_, 0) => format!("{shards} without replicas, all slots served"),
        (1, replicas) => format!(
            "{shards} with {}, all slots served, all replicas in sync",
            some(replicas.into(), "replica")
        ),
        (_, replicas) => format!(
            "{shards} with {} each, all slots served, all replicas in sync",
            some(replicas.into(), "replica")
        ),
    }
}

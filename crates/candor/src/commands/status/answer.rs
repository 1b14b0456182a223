//! The answer: the state of the cluster, since when, what the operator does about it, and what a user should do.

use candor_api::valkey::conditions::{ClusterCondition, ClusterReason};
use candor_api::valkey::status::State;
use candor_api::{Condition, ValkeyCluster};
use jiff::Timestamp;
use kube::ResourceExt;
use kube_status::tree::{Tone, since};
use kube_status::{ConditionType, Metav1, Polarity, Reason, Status};
use serde::{Serialize, Serializer};

use crate::commands::liveness::Liveness;
use crate::commands::output::some;

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// The severity.
    #[serde(serialize_with = "tone_word")]
    pub tone: Tone,
    /// The state in one word.
    pub state: String,
    /// The reason that decides the state.
    pub reason: String,
    /// Since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The state as a sentence.
    pub sentence: String,
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
fn tone_word<S: Serializer>(tone: &Tone, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(match tone {
        Tone::Good => "Good",
        Tone::Info => "Info",
        Tone::Warning => "Warning",
        Tone::Error => "Error",
        Tone::Unknown => "Unknown",
    })
}

/// What decides the state.
struct Cause {
    tone: Tone,
    reason: String,
    message: String,
    since: Timestamp,
}

impl Answer {
    /// The answer about a cluster.
    pub fn of(cluster: &ValkeyCluster, operator: &Liveness, now: Timestamp) -> Self {
        let mut answer = Self::as_told(cluster, now);
        answer.asides = asides(cluster, now);
        if let Liveness::Gone { since: at, .. } = operator {
            answer.without_operator(*at, now);
        }
        answer
    }

    /// The answer according to status alone.
    fn as_told(cluster: &ValkeyCluster, now: Timestamp) -> Self {
        let status = cluster.status.clone().unwrap_or_default();
        let Some(cause) = cause(cluster) else {
            return Self::not_looked_at(cluster, now);
        };
        let leaving = cluster.metadata.deletion_timestamp.as_ref();
        let state = match (leaving, status.state) {
            (Some(_), _) => "Deleting".to_owned(),
            (None, Some(state)) => format!("{state:?}"),
            (None, None) => "Unknown".to_owned(),
        };
        let known = reason(&cause.reason);
        let advice = known.map(ClusterReason::advice);
        let doing = progressing(cluster)
            .and_then(|one| reason(&one.reason))
            .map(|one| one.advice().operator);
        // If the fault has no advice about the operator's action, the operation in progress is used.
        let operator = advice
            .map(|advice| advice.operator)
            .filter(|words| !words.is_empty())
            .or(doing);
        let begun = leaving.map_or(cause.since, |time| time.0);
        let long = since(begun, now);
        let sentence = if status.state == Some(State::Ready) && leaving.is_none() {
            format!("Ready for {long}: {}.", whole(cluster))
        } else {
            format!(
                "{state} for {long}: {} ({}).",
                full_stop(&cause.message, &cause.reason),
                cause.reason
            )
        };
        Self {
            tone: cause.tone,
            state,
            since: Some(begun),
            sentence,
            operator: fill(operator.unwrap_or_default(), cluster),
            person: fill(advice.map_or("", |advice| advice.person), cluster),
            reason: cause.reason,
            asides: Vec::new(),
        }
    }

    fn not_looked_at(cluster: &ValkeyCluster, now: Timestamp) -> Self {
        let made = cluster.metadata.creation_timestamp.as_ref().map(|time| time.0);
        let long = made.map_or(String::new(), |made| format!(", made {} ago", since(made, now)));
        Self {
            tone: Tone::Unknown,
            state: "Unknown".to_owned(),
            reason: String::new(),
            since: made,
            sentence: format!("No operator has looked at this cluster yet{long}."),
            operator: String::new(),
            person: "see that an operator runs and watches this namespace: candor doctor".to_owned(),
            asides: Vec::new(),
        }
    }

    /// No operator is running or has reconciled since: the status is outdated.
    fn without_operator(&mut self, gone: Option<Timestamp>, now: Timestamp) {
        let age = gone.map_or_else(String::new, |at| format!(", {} ago", since(at, now)));
        if self.tone != Tone::Unknown || !self.reason.is_empty() {
            self.sentence = format!("When last seen{age}: {}", self.sentence);
        }
        self.tone = Tone::Unknown;
        self.operator = String::new();
        "start the operator, or see why it does not run: candor doctor".clone_into(&mut self.person);
    }
}

/// What else a user must know, in any state.
fn asides(cluster: &ValkeyCluster, now: Timestamp) -> Vec<String> {
    let status = cluster.status.clone().unwrap_or_default();
    let mut all = Vec::new();
    for type_ in [ClusterCondition::Paused, ClusterCondition::DataLost] {
        let found = find(&status.conditions, type_).filter(|one| Status::of(one) == Status::True);
        if let Some(condition) = found {
            let advice = reason(&condition.reason).map_or("", |one| one.advice().person);
            let long = since(condition.last_transition_time.0, now);
            let words = full_stop(&condition.message, &condition.reason);
            all.push(format!(
                "{} for {long}: {words}; {}.",
                type_.name(),
                fill(advice, cluster)
            ));
        }
    }
    let behind = status.observed_generation < cluster.metadata.generation;
    if behind && !status.conditions.is_empty() {
        all.push("The spec was changed since: the operator has not looked at it yet.".to_owned());
    }
    all
}

/// The condition that decides: a fault first, then not Ready, then an operation in progress.
fn cause(cluster: &ValkeyCluster) -> Option<Cause> {
    let conditions = &cluster.status.as_ref()?.conditions;
    let ready = find(conditions, ClusterCondition::Ready);
    let degraded = find(conditions, ClusterCondition::Degraded).filter(|one| Status::of(one) == Status::True);
    if let Some(degraded) = degraded {
        return Some(read(degraded, Polarity::Negative));
    }
    let underway = progressing(cluster);
    match ready {
        // "Cluster is Reconciling" says less than the operation in progress.
        Some(ready) if ready.reason == ClusterReason::Reconciling.name() => {
            let tone = read(ready, Polarity::Positive).tone;
            let told = underway.unwrap_or(ready);
            Some(Cause {
                tone,
                since: ready.last_transition_time.0,
                ..read(told, Polarity::Negative)
            })
        }
        Some(ready) => Some(read(ready, Polarity::Positive)),
        None => underway.map(|one| read(one, Polarity::Negative)),
    }
}

fn progressing(cluster: &ValkeyCluster) -> Option<&Condition> {
    let conditions = &cluster.status.as_ref()?.conditions;
    find(conditions, ClusterCondition::Progressing).filter(|one| Status::of(one) == Status::True)
}

fn read(condition: &Condition, polarity: Polarity) -> Cause {
    Cause {
        tone: Tone::of(Status::of(condition), polarity, condition.severity()),
        reason: condition.reason.clone(),
        message: condition.message.clone(),
        since: condition.last_transition_time.0,
    }
}

fn find(conditions: &[Condition], type_: ClusterCondition) -> Option<&Condition> {
    conditions.iter().find(|one| one.plain().type_ == type_.name())
}

fn reason(name: &str) -> Option<ClusterReason> {
    ClusterReason::ALL.iter().copied().find(|reason| reason.name() == name)
}

/// A complete cluster, as text.
fn whole(cluster: &ValkeyCluster) -> String {
    let shards = i64::from(cluster.spec.shards);
    let shape = match cluster.spec.replicas.unwrap_or(0) {
        0 => format!("{} without replicas", some(shards, "shard")),
        replicas if shards == 1 => format!("1 shard with {}", some(replicas.into(), "replica")),
        replicas => format!(
            "{} with {} each",
            some(shards, "shard"),
            some(replicas.into(), "replica")
        ),
    };
    format!("{shape}, all slots served, all replicas in sync").replace(
        " without replicas, all slots served, all replicas in sync",
        " without replicas, all slots served",
    )
}

/// The message without its full stop, so that text can follow; the reason if the message is empty.
fn full_stop<'a>(message: &'a str, reason: &'a str) -> &'a str {
    let message = message.trim().trim_end_matches('.');
    if message.is_empty() { reason } else { message }
}

fn fill(advice: &str, cluster: &ValkeyCluster) -> String {
    advice
        .replace("{cluster}", &cluster.name_any())
        .replace("{namespace}", &cluster.namespace().unwrap_or_default())
}

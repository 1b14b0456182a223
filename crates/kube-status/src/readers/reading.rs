//! What a reader answers: a health with the reason a person needs.

use std::borrow::Cow;

use jiff::Timestamp;

use crate::limits::{REASON_LIMIT, cut_reason};
use crate::severity::Severity;
use crate::{Draft, Status};

/// How an object is doing, from the outside.
///
/// The variants are ordered from best to worst, so that the maximum over several objects is what to report.
///
/// ```
/// use kube_status::readers::Health;
///
/// assert!(Health::Failed > Health::Stuck && Health::Stuck > Health::Progressing);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Health {
    /// As asked, and observed to be so for the newest generation.
    Ready,
    /// On the way; nothing is known to be in the way.
    Progressing,
    /// Being deleted.
    Deleting,
    /// The object does not say how it is.
    Unknown,
    /// On the way, and something is in the way that may yet go: no node fits, an image cannot be pulled.
    Stuck,
    /// Will not get there by itself, or has given up.
    Failed,
}

/// A health on one object with its cause.
///
/// ```
/// use kube_status::readers::{read_value, Health};
/// use serde_json::json;
///
/// let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
///     "metadata": {"name": "data"}, "status": {"phase": "Lost"}});
/// let reading = read_value(&claim).unwrap();
/// assert_eq!((reading.health, reading.reason.as_str()), (Health::Failed, "VolumeLost"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// How it is.
    pub health: Health,
    /// CamelCase, Kubernetes' own word where it has one (`ImagePullBackOff`, `Unschedulable`).
    pub reason: String,
    /// One or two sentences for a person, with the component's own message.
    pub message: String,
    /// Since when, if the object has a time.
    pub since: Option<Timestamp>,
    /// The object's generation, where it has one.
    pub generation: Option<i64>,
}

impl Reading {
    pub(super) fn new(health: Health, reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            health,
            reason: reason.into(),
            message: message.into(),
            since: None,
            generation: None,
        }
    }

    pub(super) fn ready(reason: &str, message: impl Into<String>) -> Self {
        Self::new(Health::Ready, reason, message)
    }

    pub(super) fn progressing(reason: &str, message: impl Into<String>) -> Self {
        Self::new(Health::Progressing, reason, message)
    }

    pub(super) fn stuck(reason: &str, message: impl Into<String>) -> Self {
        Self::new(Health::Stuck, reason, message)
    }

    pub(super) fn failed(reason: &str, message: impl Into<String>) -> Self {
        Self::new(Health::Failed, reason, message)
    }

    pub(super) fn unknown(reason: &str, message: impl Into<String>) -> Self {
        Self::new(Health::Unknown, reason, message)
    }

    /// The Ready-like condition: True when ready, Unknown when the object does not say, else False.
    ///
    /// The transition time is the object's own where it tells one; [`set`](crate::set) decides otherwise.
    ///
    /// ```
    /// use kube_status::{readers::read_value, Status};
    /// use serde_json::json;
    ///
    /// let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"type": "ClusterIP"}});
    /// let reading = read_value(&service).unwrap();
    /// let draft = reading.draft("ServiceReady");
    /// assert_eq!((draft.type_.as_ref(), draft.status, draft.reason.as_ref()), ("ServiceReady", Status::True, "ServiceExists"));
    /// ```
    pub fn draft<'a>(&'a self, type_: impl Into<Cow<'a, str>>) -> Draft<'a> {
        let draft = Draft::new(type_, self.status(), self.valid_reason()).message(self.message.as_str());
        let draft = draft.graded(self.severity());
        match self.since {
            Some(since) => draft.since(since),
            None => draft,
        }
    }

    /// The status of the Ready-like condition.
    ///
    /// ```
    /// use kube_status::{readers::read_value, Status};
    /// use serde_json::json;
    ///
    /// let silent = json!({"apiVersion": "shop.io/v1", "kind": "Cart", "metadata": {"name": "c"}, "spec": {}});
    /// assert_eq!(read_value(&silent).unwrap().status(), Status::Unknown);
    /// ```
    pub fn status(&self) -> Status {
        match self.health {
            Health::Ready => Status::True,
            Health::Unknown => Status::Unknown,
            Health::Progressing | Health::Deleting | Health::Stuck | Health::Failed => Status::False,
        }
    }

    /// How bad it is: what is on its way is information, what is in the way a warning, what failed an error.
    ///
    /// ```
    /// use kube_status::readers::read_value;
    /// use kube_status::severity::Severity;
    /// use serde_json::json;
    ///
    /// let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}});
    /// assert_eq!(read_value(&claim).unwrap().severity(), Some(Severity::Info));
    /// ```
    pub fn severity(&self) -> Option<Severity> {
        match self.health {
            Health::Ready | Health::Unknown => None,
            Health::Progressing | Health::Deleting => Some(Severity::Info),
            Health::Stuck => Some(Severity::Warning),
            Health::Failed => Some(Severity::Error),
        }
    }

    /// A reason of another component need not match the pattern that the API server requires of a condition.
    fn valid_reason(&self) -> Cow<'_, str> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ',' | ':');
        let starts_well = self.reason.starts_with(|c: char| c.is_ascii_alphabetic());
        if starts_well && self.reason.chars().all(allowed) && !self.reason.ends_with([',', ':']) {
            return Cow::Borrowed(cut_reason(&self.reason, REASON_LIMIT));
        }
        let allowed_part: String = self.reason.chars().filter(|&c| allowed(c)).collect();
        let allowed_part = allowed_part
            .trim_start_matches(|c: char| !c.is_ascii_alphabetic())
            .trim_end_matches([',', ':']);
        Cow::Owned(cut_reason(or(allowed_part, "NoReason"), REASON_LIMIT).to_owned())
    }

    pub(super) fn since(self, since: Option<Timestamp>) -> Self {
        Self { since, ..self }
    }
}

/// Another component's words, or ours where it has none.
pub(super) fn or<'a>(text: &'a str, fallback: &'a str) -> &'a str {
    if text.is_empty() { fallback } else { text }
}

//! What there is to tell.

use k8s_openapi::api::core::v1::ObjectReference;

use crate::severity::Severity;
use crate::{Change, Condition, Polarity, Status};

/// Whether an event is news or a warning.
///
/// ```
/// assert_eq!(kube_status::events::EventKind::Warning.as_str(), "Warning");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// Things go their way.
    Normal,
    /// Needs attention.
    Warning,
}

impl EventKind {
    /// The word in the event's `type`.
    ///
    /// ```
    /// assert_eq!(kube_status::events::EventKind::Warning.as_str(), "Warning");
    /// ```
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// One thing to tell about an object.
///
/// ```
/// use kube_status::events::{EventKind, Notice};
///
/// let notice = Notice::warning("PerconaNotReady", "Waiting for PostgreSQL cluster shop to become ready");
/// assert_eq!((notice.kind, notice.action.as_str()), (EventKind::Warning, "Reconcile"));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Notice {
    /// News or warning.
    pub kind: EventKind,
    /// CamelCase, what happened.
    pub reason: String,
    /// What happened, for a person. Shortened to 1,024 bytes when it is published.
    pub note: String,
    /// CamelCase, what the controller did or tried.
    pub action: String,
    /// A second object that the event is about.
    pub related: Option<ObjectReference>,
}

impl Notice {
    /// News.
    ///
    /// ```
    /// use kube_status::events::Notice;
    /// assert_eq!(Notice::normal("Created", "StatefulSet created").note, "StatefulSet created");
    /// ```
    pub fn normal(reason: impl Into<String>, note: impl Into<String>) -> Self {
        Self::new(EventKind::Normal, reason, note)
    }

    /// A warning.
    ///
    /// ```
    /// use kube_status::events::{EventKind, Notice};
    /// assert_eq!(Notice::warning("CleanupFailed", "no route").kind, EventKind::Warning);
    /// ```
    pub fn warning(reason: impl Into<String>, note: impl Into<String>) -> Self {
        Self::new(EventKind::Warning, reason, note)
    }

    fn new(kind: EventKind, reason: impl Into<String>, note: impl Into<String>) -> Self {
        Self {
            kind,
            reason: reason.into(),
            note: note.into(),
            action: "Reconcile".to_owned(),
            related: None,
        }
    }

    /// The same notice with what was done or tried.
    ///
    /// ```
    /// use kube_status::events::Notice;
    /// assert_eq!(Notice::normal("SlotsRebalanced", "done").action("MoveSlots").action, "MoveSlots");
    /// ```
    #[must_use]
    pub fn action(self, action: impl Into<String>) -> Self {
        Self {
            action: action.into(),
            ..self
        }
    }

    /// The same notice with a second object.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::ObjectReference;
    /// use kube_status::events::Notice;
    ///
    /// let pod = ObjectReference { kind: Some("Pod".into()), name: Some("db-0".into()), ..Default::default() };
    /// assert!(Notice::normal("MemberAdded", "db-0 joined").related(pod).related.is_some());
    /// ```
    #[must_use]
    pub fn related(self, object: ObjectReference) -> Self {
        Self {
            related: Some(object),
            ..self
        }
    }

    /// The event that a transition deserves: one when the condition appeared or turned, none otherwise.
    ///
    /// Bad news is a warning unless its severity is Info; what is not known any more is a warning too. `change` is
    /// what [`set`](crate::set) answered.
    ///
    /// ```
    /// use kube_status::events::{EventKind, Notice};
    /// use kube_status::{Change, Draft, Polarity, Status};
    ///
    /// let lost = Draft::new("Degraded", Status::True, "ReplicaLost").message("Replica lost in shard 1");
    /// let lost = lost.into_condition(1, jiff::Timestamp::UNIX_EPOCH);
    /// let notice = Notice::of_transition(&lost, Polarity::Negative, None, Change::Status).unwrap();
    /// assert_eq!((notice.kind, notice.reason.as_str()), (EventKind::Warning, "ReplicaLost"));
    /// assert!(Notice::of_transition(&lost, Polarity::Negative, None, Change::Text).is_none());
    /// ```
    pub fn of_transition(
        condition: &Condition,
        polarity: Polarity,
        severity: Option<Severity>,
        change: Change,
    ) -> Option<Self> {
        if !change.is_transition() {
            return None;
        }
        let status = Status::of(condition);
        let calm = status == polarity.good() || (status == polarity.bad() && severity == Some(Severity::Info));
        let note = if condition.message.is_empty() {
            format!("{} is {}", condition.type_, condition.status)
        } else {
            condition.message.clone()
        };
        let kind = if calm { EventKind::Normal } else { EventKind::Warning };
        Some(Self::new(kind, condition.reason.as_str(), note))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Draft;

    #[test]
    fn polarity_and_severity_decide_between_news_and_warning() {
        use {
            EventKind::{Normal, Warning},
            Polarity::{Negative, Positive},
            Status::{False, True, Unknown},
        };
        for (status, polarity, severity, kind) in [
            (True, Positive, None, Normal),
            (False, Positive, None, Warning),
            (False, Positive, Some(Severity::Info), Normal),
            (False, Positive, Some(Severity::Warning), Warning),
            (True, Negative, None, Warning),
            (True, Negative, Some(Severity::Info), Normal),
            (False, Negative, None, Normal),
            (Unknown, Positive, None, Warning),
            (Unknown, Negative, Some(Severity::Info), Warning),
        ] {
            let condition = Draft::new("T", status, "R").into_condition(1, jiff::Timestamp::UNIX_EPOCH);
            let notice = Notice::of_transition(&condition, polarity, severity, Change::Status).unwrap();
            assert_eq!(notice.kind, kind, "{status} {polarity:?} {severity:?}");
            assert_eq!(
                notice.note,
                format!("T is {status}"),
                "a condition without words still says something"
            );
        }
    }
}

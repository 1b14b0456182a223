//! Merges many conditions into one: the input, the result, and the strategy, which a caller can replace.

mod crowd;
mod lines;
mod standard;

use std::borrow::Cow;

use jiff::Timestamp;

use crate::severity::Severity;
use crate::{Conditioned, Draft, Metav1, Polarity, Status};

pub use standard::{Groups, Standard};

/// The reason of a condition that was expected and is not there.
///
/// ```
/// assert_eq!(kube_status::merge::NOT_YET_REPORTED, "NotYetReported");
/// ```
pub const NOT_YET_REPORTED: &str = "NotYetReported";
/// The default reason of a merge with at least one issue.
///
/// ```
/// assert_eq!(kube_status::merge::ISSUES_REPORTED, "IssuesReported");
/// ```
pub const ISSUES_REPORTED: &str = "IssuesReported";
/// The default reason of a merge with no issue and at least one unknown.
///
/// ```
/// assert_eq!(kube_status::merge::UNKNOWN_REPORTED, "UnknownReported");
/// ```
pub const UNKNOWN_REPORTED: &str = "UnknownReported";
/// The default reason of a merge in which all is well.
///
/// ```
/// assert_eq!(kube_status::merge::INFO_REPORTED, "InfoReported");
/// ```
pub const INFO_REPORTED: &str = "InfoReported";

/// The object a condition came from.
///
/// ```
/// use kube_status::merge::Owner;
/// let object = serde_json::json!({"kind": "Server", "metadata": {"name": "m1"}});
/// let server = kube_status::Untyped::<kube_status::Condition>::read(&object)?;
/// assert_eq!(Owner::of(&server), Owner { kind: "Server", name: "m1", prominent: false });
/// # Ok::<_, kube_status::Malformed>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner<'a> {
    /// Its kind.
    pub kind: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Whether its trouble is listed first.
    pub prominent: bool,
}

impl<'a> Owner<'a> {
    /// The owner as an object describes itself.
    ///
    /// ```
    /// # let mut cache = kube_status::Untyped::<kube_status::Condition>::read(&serde_json::json!({"kind": "Cache", "metadata": {"name": "c"}})).unwrap();
    /// # let now = jiff::Timestamp::UNIX_EPOCH;
    /// use kube_status::merge::Owner;
    /// assert_eq!(Owner::of(&cache).kind, "Cache");
    /// ```
    pub fn of<C, T: Conditioned<C> + ?Sized>(object: &'a T) -> Self {
        Self {
            kind: object.kind(),
            name: object.name(),
            prominent: object.is_prominent(),
        }
    }
}

/// One condition on its way into a merge. It borrows from the objects.
///
/// ```
/// use kube_status::merge::{Input, Owner};
/// use kube_status::{Draft, Status};
/// let owner = Owner { kind: "Server", name: "m1", prominent: false };
/// let input = Input::missing(owner, "Ready", "Condition not yet reported");
/// assert_eq!(input.status, Status::Unknown);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Input<'a> {
    /// Where it came from.
    pub owner: Owner<'a>,
    /// Its type.
    pub type_: &'a str,
    /// Its status; a word that is none of the three counts as unknown.
    pub status: Status,
    /// How bad it is, where it says so.
    pub severity: Option<Severity>,
    /// Its reason.
    pub reason: &'a str,
    /// Its message.
    pub message: &'a str,
    /// When it turned; a missing condition, and one that was stored without a time, sorts before all others.
    pub since: Option<Timestamp>,
}

impl<'a> Input<'a> {
    /// A stored condition.
    ///
    /// ```
    /// use kube_status::merge::{Input, Owner};
    /// use kube_status::{Draft, Status};
    /// let owner = Owner { kind: "Server", name: "m1", prominent: false };
    /// let down = Draft::bad("Ready", "Down").into_condition(1, jiff::Timestamp::UNIX_EPOCH);
    /// assert_eq!(Input::stored(owner, &down).status, Status::False);
    /// ```
    pub fn stored<C: Metav1>(owner: Owner<'a>, condition: &'a C) -> Self {
        let severity = condition.severity();
        let condition = condition.plain();
        Self {
            owner,
            type_: &condition.type_,
            status: Status::of(condition),
            severity,
            reason: &condition.reason,
            message: &condition.message,
            // A stored condition without a time is read with the epoch.
            since: Some(condition.last_transition_time.0).filter(|time| *time != Timestamp::UNIX_EPOCH),
        }
    }

    /// A condition stated for this merge alone.
    ///
    /// ```
    /// use kube_status::merge::{Input, Owner};
    /// use kube_status::Draft;
    /// let owner = Owner { kind: "Server", name: "m1", prominent: false };
    /// let draft = Draft::good("EtcdHealthy", "Maintenance");
    /// assert_eq!(Input::stated(owner, &draft).reason, "Maintenance");
    /// ```
    pub fn stated(owner: Owner<'a>, draft: &'a Draft<'_>) -> Self {
        Self {
            owner,
            type_: &draft.type_,
            status: draft.status,
            severity: draft.severity(),
            reason: &draft.reason,
            message: &draft.message,
            since: draft.since,
        }
    }

    /// A condition that was expected and is not there: unknown, not yet reported.
    ///
    /// ```
    /// use kube_status::merge::{Input, NOT_YET_REPORTED, Owner};
    /// let owner = Owner { kind: "Server", name: "m1", prominent: false };
    /// assert_eq!(Input::missing(owner, "Ready", "Condition not yet reported").reason, NOT_YET_REPORTED);
    /// ```
    pub fn missing(owner: Owner<'a>, type_: &'a str, message: &'a str) -> Self {
        Self {
            owner,
            type_,
            status: Status::Unknown,
            severity: None,
            reason: NOT_YET_REPORTED,
            message,
            since: None,
        }
    }
}

/// How much a condition matters in a merge; the smaller, the more.
///
/// ```
/// use kube_status::merge::Priority;
/// let seen = [Priority::Info, Priority::Issue, Priority::Unknown];
/// assert_eq!(seen.into_iter().min(), Some(Priority::Issue));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// Something is wrong: positive `False`, negative `True`.
    Issue,
    /// Not known. Takes precedence over good news.
    Unknown,
    /// All is well.
    Info,
}

impl Priority {
    /// The priority of a status under a polarity.
    ///
    /// ```
    /// use kube_status::{Polarity, Status, merge::Priority};
    /// assert_eq!(Priority::of(Status::True, Polarity::Negative), Priority::Issue);
    /// ```
    pub fn of(status: Status, polarity: Polarity) -> Self {
        match status {
            Status::Unknown => Self::Unknown,
            known if known == polarity.good() => Self::Info,
            _ => Self::Issue,
        }
    }
}

/// Which merge is being done: it decides how the message is written.
///
/// ```
/// use kube_status::merge::Operation;
/// fn separator(operation: Operation) -> &'static str {
///     match operation {
///         Operation::Summary => "; ",
///         Operation::Aggregate => "\n",
///     }
/// }
/// assert_eq!(separator(Operation::Summary), "; ");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Several conditions of one object: every message that matters is kept.
    Summary,
    /// One condition of many objects: messages are grouped and counted.
    Aggregate,
}

/// The result of a merge.
///
/// ```
/// use kube_status::merge::{Input, Operation, Owner, Standard, Strategy};
/// let owner = Owner { kind: "Server", name: "m1", prominent: false };
/// let missing = Input::missing(owner, "Ready", "Condition not yet reported");
/// let merged = Standard::new().merge(Operation::Summary, vec![missing], &["Ready"])?;
/// assert_eq!((merged.status, merged.reason.as_str()), (kube_status::Status::Unknown, "UnknownReported"));
/// # Ok::<_, kube_status::merge::MergeError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    /// The merged status.
    pub status: Status,
    /// The merged reason.
    pub reason: String,
    /// The merged message.
    pub message: String,
    /// How bad the status is that a strategy answered with.
    severity: Option<(Status, Severity)>,
}

impl Merged {
    /// A result without a severity.
    ///
    /// ```
    /// use kube_status::{Status, merge::Merged};
    /// assert_eq!(Merged::new(Status::True, "AnyTrue", "").severity(), None);
    /// ```
    pub fn new(status: Status, reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            status,
            reason: reason.into(),
            message: message.into(),
            severity: None,
        }
    }

    /// An issue of a target of this polarity, with its severity.
    ///
    /// ```
    /// use kube_status::severity::Severity;
    /// use kube_status::{Polarity, Status, merge::Merged};
    /// let merged = Merged::bad(Polarity::Negative, Severity::Warning, "DiskFull", "node 3");
    /// assert_eq!((merged.status, merged.severity()), (Status::True, Some(Severity::Warning)));
    /// ```
    pub fn bad(polarity: Polarity, severity: Severity, reason: impl Into<String>, message: impl Into<String>) -> Self {
        let status = polarity.bad();
        Self {
            severity: Some((status, severity)),
            ..Self::new(status, reason, message)
        }
    }

    /// How bad it is: only where something is wrong, and gone when the status is changed to another.
    ///
    /// ```
    /// use kube_status::severity::Severity;
    /// use kube_status::{Polarity, Status, merge::Merged};
    /// let mut merged = Merged::bad(Polarity::Positive, Severity::Error, "Down", "");
    /// merged.status = Status::True;
    /// assert_eq!(merged.severity(), None);
    /// ```
    pub fn severity(&self) -> Option<Severity> {
        self.severity
            .filter(|(status, _)| *status == self.status)
            .map(|(_, severity)| severity)
    }

    pub(crate) fn into_draft<'a>(self, target: impl Into<Cow<'a, str>>) -> Draft<'a> {
        let severity = self.severity();
        Draft::new(target, self.status, self.reason)
            .message(self.message)
            .graded(severity)
    }
}

/// Why a merge failed. The messages are those of Cluster API's helpers, so that a search for one finds both.
///
/// ```
/// use kube_status::merge::MergeError;
/// let error = MergeError::TargetAmongTypes("Ready".into());
/// assert_eq!(error.to_string(), "option ForConditionTypes cannot include Ready (target condition type)");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// A summary without types.
    #[error("option ForConditionTypes not provided or empty")]
    NoTypes,
    /// The summary would read its own result.
    #[error("option ForConditionTypes cannot include {0} (target condition type)")]
    TargetAmongTypes(String),
    /// One type was overridden twice.
    #[error("override condition {0} specified multiple times")]
    OverrideTwice(String),
    /// An override for a condition the object does not have.
    #[error("override condition {0} must exist in source object")]
    OverrideNotOnObject(String),
    /// Every type was missing and all of them may be.
    #[error("summary can't be performed when the list of conditions to be summarized is empty")]
    NothingToSummarise,
    /// An aggregate over no objects.
    #[error("sourceObjs can't be empty")]
    NoObjects,
    /// A strategy was called without conditions.
    #[error("can't merge an empty list of conditions")]
    Empty,
    /// The caller's strategy failed.
    #[error("{0}")]
    Strategy(String),
}

/// How conditions become one. [`Standard`] is the default; a caller may bring another.
///
/// ```
/// use kube_status::merge::{Input, MergeError, Merged, Operation, Strategy};
/// use kube_status::{Status, Summary};
///
/// /// Ready as soon as anything is.
/// struct AnyTrue;
///
/// impl Strategy for AnyTrue {
///     fn merge(&self, _: Operation, inputs: Vec<Input<'_>>, _: &[&str]) -> Result<Merged, MergeError> {
///         let up = inputs.iter().any(|c| c.status == Status::True);
///         Ok(Merged::new(up.into(), "AnyTrue", ""))
///     }
/// }
///
/// let summary = Summary::new("Ready").types(["A", "B"]).strategy(&AnyTrue);
/// ```
pub trait Strategy: Send + Sync {
    /// Merges conditions; `types` carries the caller's order. `inputs` holds what was expected and missing, too.
    fn merge(&self, operation: Operation, inputs: Vec<Input<'_>>, types: &[&str]) -> Result<Merged, MergeError>;
}

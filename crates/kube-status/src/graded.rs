//! Generation 2 with a severity: metav1's condition, and how bad it is while it is bad.

use std::borrow::Cow;
use std::ops::Deref;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::{Deserialize, Serialize};

use crate::severity::{Severity, severity_name};
use crate::{Draft, Readable, Reason, Status};

/// A condition of generation 2: metav1's own [`Condition`], or a [`GradedCondition`]. Every rule at the top of this
/// crate takes either, and the type of an object's list decides which.
///
/// ```
/// use kube_status::{Condition, GradedCondition, Metav1, find};
/// fn why<C: Metav1>(conditions: &[C]) -> &str {
///     find(conditions, "Ready").map_or("", |ready| &ready.plain().reason)
/// }
/// assert_eq!(why::<Condition>(&[]), why::<GradedCondition>(&[]));
/// ```
pub trait Metav1: Readable + Stored {
    /// The condition as metav1 has it.
    fn plain(&self) -> &Condition;

    /// How bad it is, where it says so; a plain condition never does.
    fn severity(&self) -> Option<Severity>;
}

/// Changes to a stored condition that only the rules may make. The module is not public, so code outside of this crate
/// cannot set a severity where none belongs.
pub trait Stored: Clone + PartialEq {
    fn of_draft(draft: Draft<'_>, generation: i64, now: Timestamp) -> Self;
    fn plain_mut(&mut self) -> &mut Condition;
    /// Whether that changed anything.
    fn regrade(&mut self, severity: Option<Severity>) -> bool;
}

/// `metav1.Condition` with an optional severity, which is there only while the condition is in its bad polarity.
///
/// It is read from an API or made by [`set`](crate::set); what a controller states is a [`Draft`], which cannot carry a
/// severity where none belongs. It reads like the plain condition it holds.
///
/// ```
/// use kube_status::severity::Severity;
/// use kube_status::{Change, Draft, GradedCondition, Order, set_in};
/// let (start, later) = (jiff::Timestamp::UNIX_EPOCH, jiff::Timestamp::from_second(60)?);
/// let mut list: Vec<GradedCondition> = Vec::new();
/// let slow = Draft::bad("DiskReady", (Severity::Warning, "SlowDisk"));
/// assert_eq!(set_in(&mut list, slow, 1, start, &Order::STANDARD), Change::Status);
/// assert_eq!((list[0].severity(), list[0].status.as_str()), (Some(Severity::Warning), "False"));
/// let _ = set_in(&mut list, Draft::good("DiskReady", "Fast"), 1, later, &Order::STANDARD);
/// assert_eq!(list[0].severity(), None);
/// # Ok::<_, jiff::Error>(())
/// ```
///
/// Good news with a severity cannot be written:
///
/// ```compile_fail
/// use kube_status::severity::Severity;
/// use kube_status::{Draft, GradedCondition};
/// let plain = Draft::good("Ready", "Up").into_condition(1, jiff::Timestamp::UNIX_EPOCH);
/// let odd = GradedCondition { plain, severity: Some(Severity::Error) };
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GradedCondition {
    #[serde(flatten)]
    plain: Condition,
    #[serde(default, deserialize_with = "severity_name", skip_serializing_if = "Option::is_none")]
    severity: Option<Severity>,
}

impl GradedCondition {
    pub(crate) fn read(plain: Condition, severity: Option<Severity>) -> Self {
        Self { plain, severity }
    }

    /// How bad it is, if it says so.
    ///
    /// ```
    /// let text = r#"{"type":"Ready","status":"False","severity":"Info","reason":"Starting","message":"",
    ///                "lastTransitionTime":"2026-02-05T10:00:00Z"}"#;
    /// let stored: kube_status::GradedCondition = serde_json::from_str(text)?;
    /// assert_eq!(stored.severity(), Some(kube_status::severity::Severity::Info));
    /// # Ok::<_, serde_json::Error>(())
    /// ```
    pub fn severity(&self) -> Option<Severity> {
        self.severity
    }

    /// The condition without its severity.
    ///
    /// ```
    /// use kube_status::Draft;
    /// let graded = Draft::bad("Ready", "Down").into_graded(1, jiff::Timestamp::UNIX_EPOCH);
    /// assert_eq!(graded.into_plain().reason, "Down");
    /// ```
    pub fn into_plain(self) -> Condition {
        self.plain
    }

    /// Replaces the message, for one that has to be shortened: a message is no transition.
    ///
    /// ```
    /// use kube_status::Draft;
    /// let mut graded = Draft::bad("Ready", "Down").into_graded(1, jiff::Timestamp::UNIX_EPOCH);
    /// graded.set_message("2 of 3 are down");
    /// assert_eq!(graded.message, "2 of 3 are down");
    /// ```
    pub fn set_message(&mut self, message: impl Into<String>) {
        self.plain.message = message.into();
    }
}

impl Deref for GradedCondition {
    type Target = Condition;

    fn deref(&self) -> &Condition {
        &self.plain
    }
}

/// A plain condition does not say how bad it is.
impl From<Condition> for GradedCondition {
    fn from(plain: Condition) -> Self {
        Self { plain, severity: None }
    }
}

impl Metav1 for GradedCondition {
    fn plain(&self) -> &Condition {
        &self.plain
    }
    fn severity(&self) -> Option<Severity> {
        self.severity
    }
}

impl Stored for GradedCondition {
    fn of_draft(draft: Draft<'_>, generation: i64, now: Timestamp) -> Self {
        draft.into_graded(generation, now)
    }
    fn plain_mut(&mut self) -> &mut Condition {
        &mut self.plain
    }
    fn regrade(&mut self, severity: Option<Severity>) -> bool {
        let changes = self.severity != severity;
        self.severity = severity;
        changes
    }
}

impl Metav1 for Condition {
    fn plain(&self) -> &Condition {
        self
    }
    fn severity(&self) -> Option<Severity> {
        None
    }
}

impl Stored for Condition {
    fn of_draft(draft: Draft<'_>, generation: i64, now: Timestamp) -> Self {
        draft.into_condition(generation, now)
    }
    fn plain_mut(&mut self) -> &mut Condition {
        self
    }
    fn regrade(&mut self, _: Option<Severity>) -> bool {
        false
    }
}

/// The severity of a status, and how long it may stay at that. It belongs to one status: a change of the draft's status
/// removes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grade {
    pub(crate) status: Status,
    pub(crate) severity: Severity,
    pub(crate) expected: Option<SignedDuration>,
}

/// A reason and how bad it is: what [`Draft::bad`] takes. A declared enum (`#[derive(Reason)]`) knows it, and also
/// how long an info may last; a pair names it; a plain string does not, and counts as an error.
///
/// ```
/// use kube_status::severity::Severity;
/// use kube_status::{Draft, Reason};
/// #[derive(Clone, Copy, Reason)]
/// enum Why {
///     /// Members are being started.
///     #[reason(severity = Info, expected = "5m")]
///     Starting,
/// }
/// assert_eq!(Draft::bad("Ready", Why::Starting).severity(), Some(Severity::Info));
/// assert_eq!(Draft::bad("Ready", (Severity::Warning, "Slow")).severity(), Some(Severity::Warning));
/// assert_eq!(Draft::bad("Ready", "Down").severity(), Some(Severity::Error));
/// ```
pub trait Cause<'a> {
    /// The reason, its severity if declared, and how long it may last.
    fn into_parts(self) -> (Cow<'a, str>, Option<Severity>, Option<SignedDuration>);
}

impl<'a> Cause<'a> for &'a str {
    fn into_parts(self) -> (Cow<'a, str>, Option<Severity>, Option<SignedDuration>) {
        (Cow::Borrowed(self), None, None)
    }
}

impl<'a> Cause<'a> for String {
    fn into_parts(self) -> (Cow<'a, str>, Option<Severity>, Option<SignedDuration>) {
        (Cow::Owned(self), None, None)
    }
}

impl<'a> Cause<'a> for Cow<'a, str> {
    fn into_parts(self) -> (Cow<'a, str>, Option<Severity>, Option<SignedDuration>) {
        (self, None, None)
    }
}

impl<'a, T: Into<Cow<'a, str>>> Cause<'a> for (Severity, T) {
    fn into_parts(self) -> (Cow<'a, str>, Option<Severity>, Option<SignedDuration>) {
        (self.1.into(), Some(self.0), None)
    }
}

impl<'a, R: Reason> Cause<'a> for R {
    fn into_parts(self) -> (Cow<'a, str>, Option<Severity>, Option<SignedDuration>) {
        (Cow::Borrowed(self.name()), self.severity(), self.expected())
    }
}

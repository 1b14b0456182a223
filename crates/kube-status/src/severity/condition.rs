//! The condition of generation 1, stored and stated.

use std::borrow::Cow;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Deserializer, Serialize};

use super::Severity;
use crate::draft::whole_seconds;
use crate::{Reason, Status, Typed};

/// A stored condition with a severity. It is read from an API or made by [`set`](super::set); what a controller states
/// is a [`Draft`], which cannot carry a severity where none belongs.
///
/// ```
/// use kube_status::severity::{Condition, Severity};
/// let text = r#"{"type":"VPCReady","status":"False","severity":"Info","lastTransitionTime":"2020-05-06T10:00:00Z",
///                "reason":"Provisioning"}"#;
/// let stored: Condition = serde_json::from_str(text)?;
/// assert_eq!(stored.severity(), Some(Severity::Info));
/// assert_eq!(stored.message(), "");
/// # Ok::<_, serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    #[serde(rename = "type")]
    pub(crate) type_: String,
    pub(crate) status: Status,
    #[serde(default, deserialize_with = "severity_name", skip_serializing_if = "Option::is_none")]
    pub(crate) severity: Option<Severity>,
    #[serde(default)]
    #[cfg_attr(
        feature = "schemars",
        schemars(with = "Option<k8s_openapi::apimachinery::pkg::apis::meta::v1::Time>")
    )]
    pub(crate) last_transition_time: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) reason: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) message: String,
}

/// An empty word is no severity: that is how Go writes "none" where it does not omit it.
pub(crate) fn severity_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Severity>, D::Error> {
    let word = Option::<Cow<'de, str>>::deserialize(deserializer)?;
    match word.as_deref() {
        None | Some("") => Ok(None),
        Some("Error") => Ok(Some(Severity::Error)),
        Some("Warning") => Ok(Some(Severity::Warning)),
        Some("Info") => Ok(Some(Severity::Info)),
        Some(other) => Err(serde::de::Error::unknown_variant(other, &["Error", "Warning", "Info"])),
    }
}

impl Condition {
    /// The condition's type.
    ///
    /// ```
    /// use kube_status::severity::{Draft, Severity};
    /// let stored = Draft::bad("VPCReady", Severity::Info, "Provisioning", "subnets are next").into_condition(jiff::Timestamp::UNIX_EPOCH);
    /// assert_eq!(stored.type_(), "VPCReady");
    /// ```
    pub fn type_(&self) -> &str {
        &self.type_
    }

    /// Its status.
    ///
    /// ```
    /// use kube_status::severity::{Draft, Severity};
    /// let stored = Draft::bad("VPCReady", Severity::Info, "Provisioning", "subnets are next").into_condition(jiff::Timestamp::UNIX_EPOCH);
    /// assert_eq!(stored.status(), kube_status::Status::False);
    /// ```
    pub fn status(&self) -> Status {
        self.status
    }

    /// How bad it is, if it says so.
    ///
    /// ```
    /// use kube_status::severity::{Draft, Severity};
    /// let stored = Draft::bad("VPCReady", Severity::Info, "Provisioning", "subnets are next").into_condition(jiff::Timestamp::UNIX_EPOCH);
    /// assert_eq!(stored.severity(), Some(Severity::Info));
    /// ```
    pub fn severity(&self) -> Option<Severity> {
        self.severity
    }

    /// When it turned; absent in what was written by hand.
    ///
    /// ```
    /// use kube_status::severity::{Draft, Severity};
    /// let stored = Draft::bad("VPCReady", Severity::Info, "Provisioning", "subnets are next").into_condition(jiff::Timestamp::UNIX_EPOCH);
    /// assert_eq!(stored.last_transition_time(), Some(jiff::Timestamp::UNIX_EPOCH));
    /// ```
    pub fn last_transition_time(&self) -> Option<Timestamp> {
        self.last_transition_time
    }

    /// The reason, one word for programs; may be empty.
    ///
    /// ```
    /// use kube_status::severity::{Draft, Severity};
    /// let stored = Draft::bad("VPCReady", Severity::Info, "Provisioning", "subnets are next").into_condition(jiff::Timestamp::UNIX_EPOCH);
    /// assert_eq!(stored.reason(), "Provisioning");
    /// ```
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The message for people; may be empty.
    ///
    /// ```
    /// use kube_status::severity::{Draft, Severity};
    /// let stored = Draft::bad("VPCReady", Severity::Info, "Provisioning", "subnets are next").into_condition(jiff::Timestamp::UNIX_EPOCH);
    /// assert_eq!(stored.message(), "subnets are next");
    /// ```
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// What a controller reports about a condition type, with a severity exactly where something is wrong.
///
/// ```
/// use kube_status::severity::{Draft, Severity};
/// use kube_status::{Negative, Status};
/// let up = Draft::good("VPCReady");
/// assert_eq!((up.status(), up.severity()), (Status::True, None));
/// let bad = Draft::bad(Negative("Degraded"), Severity::Warning, "SlowDisk", "fsync takes 2 s");
/// assert_eq!((bad.status(), bad.severity()), (Status::True, Some(Severity::Warning)));
/// ```
///
/// Good news with a severity cannot be written:
///
/// ```compile_fail
/// use kube_status::severity::{Draft, Severity};
/// let odd = Draft { severity: Some(Severity::Error), ..Draft::good("VPCReady") };
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft<'a> {
    pub(super) type_: Cow<'a, str>,
    pub(crate) status: Status,
    pub(crate) severity: Option<Severity>,
    pub(super) reason: Cow<'a, str>,
    pub(super) message: Cow<'a, str>,
    pub(super) since: Option<Timestamp>,
    pub(super) expected: Option<SignedDuration>,
}

impl<'a> Draft<'a> {
    /// All is well.
    ///
    /// ```
    /// use kube_status::severity::Draft;
    /// use kube_status::{Negative, Status};
    /// assert_eq!(Draft::good(Negative("Degraded")).status(), Status::False);
    /// ```
    pub fn good(type_: impl Typed<'a>) -> Self {
        let (type_, polarity) = type_.into_parts();
        Self::bare(type_, polarity.good())
    }

    /// Something is wrong: severity, reason and message.
    ///
    /// ```
    /// use kube_status::severity::{Draft, Severity};
    /// let lost = Draft::bad("VPCReady", Severity::Error, "Lost", "vpc-7 is gone");
    /// assert_eq!(lost.severity(), Some(Severity::Error));
    /// ```
    pub fn bad(
        type_: impl Typed<'a>,
        severity: Severity,
        reason: impl Into<Cow<'a, str>>,
        message: impl Into<Cow<'a, str>>,
    ) -> Self {
        let (type_, polarity) = type_.into_parts();
        Self {
            severity: Some(severity),
            reason: reason.into(),
            message: message.into(),
            ..Self::bare(type_, polarity.bad())
        }
    }

    /// Not known.
    ///
    /// ```
    /// use kube_status::severity::Draft;
    /// assert_eq!(Draft::unknown("VPCReady", "NoAnswer", "the provider is silent").severity(), None);
    /// ```
    pub fn unknown(type_: impl Typed<'a>, reason: impl Into<Cow<'a, str>>, message: impl Into<Cow<'a, str>>) -> Self {
        let bare = Self::bare(type_.into_parts().0, Status::Unknown);
        Self {
            reason: reason.into(),
            message: message.into(),
            ..bare
        }
    }

    /// Something is wrong for a declared reason, which has the severity; a reason without one is an error.
    ///
    /// Where the reason declares how long it may take, an info becomes a warning once the condition has been bad for
    /// longer: [`set`](super::set) compares with the stored transition time.
    ///
    /// ```
    /// use kube_status::severity::{Draft, Rules, Severity, set_in};
    /// use kube_status::{Reason, SignedDuration};
    /// #[derive(Clone, Copy, Reason)]
    /// enum VpcReason {
    ///     /// The network is being made.
    ///     #[reason(severity = Info, expected = "10m")]
    ///     Provisioning,
    /// }
    /// let start = jiff::Timestamp::UNIX_EPOCH;
    /// let mut list = vec![];
    /// let wait = || Draft::because("VPCReady", VpcReason::Provisioning, "waiting for the provider");
    /// let _ = set_in(&mut list, wait(), start, Rules::PROPOSAL);
    /// assert_eq!(list[0].severity(), Some(Severity::Info));
    /// let _ = set_in(&mut list, wait(), start + SignedDuration::from_mins(11), Rules::PROPOSAL);
    /// assert_eq!(list[0].severity(), Some(Severity::Warning));
    /// ```
    pub fn because(type_: impl Typed<'a>, reason: impl Reason, message: impl Into<Cow<'a, str>>) -> Self {
        let severity = reason.severity().unwrap_or(Severity::Error);
        Self {
            expected: reason.expected(),
            ..Self::bad(type_, severity, reason.name(), message)
        }
    }

    /// An info that takes longer than was expected is a warning.
    pub(super) fn raised(mut self, stored: &Condition, now: Timestamp) -> Self {
        let since = stored.last_transition_time.filter(|_| stored.status == self.status);
        let late = |(since, expected): (Timestamp, SignedDuration)| now.duration_since(since) > expected;
        if self.severity == Some(Severity::Info) && since.zip(self.expected).is_some_and(late) {
            self.severity = Some(Severity::Warning);
        }
        self
    }

    /// The time the status turned, known from elsewhere.
    ///
    /// ```
    /// use kube_status::severity::Draft;
    /// let at = jiff::Timestamp::from_second(60)?;
    /// let stored = Draft::good("Ready").since(at).into_condition(jiff::Timestamp::now());
    /// assert_eq!(stored.last_transition_time(), Some(at));
    /// # Ok::<_, jiff::Error>(())
    /// ```
    #[must_use]
    pub fn since(mut self, since: Timestamp) -> Self {
        self.since = Some(since);
        self
    }

    pub(super) fn bare(type_: Cow<'a, str>, status: Status) -> Self {
        Self {
            type_,
            status,
            severity: None,
            reason: Cow::Borrowed(""),
            message: Cow::Borrowed(""),
            since: None,
            expected: None,
        }
    }

    /// A stored condition, under another type.
    pub(super) fn copied(type_: Cow<'a, str>, stored: &'a Condition) -> Self {
        Self {
            type_,
            status: stored.status,
            severity: stored.severity,
            reason: Cow::Borrowed(&stored.reason),
            message: Cow::Borrowed(&stored.message),
            since: stored.last_transition_time,
            expected: None,
        }
    }

    /// A stored condition to set on another object or list, as Go's `Set` does. Its severity stays as it is, also where
    /// none belongs, and so does its transition time.
    ///
    /// ```
    /// use kube_status::severity::{Draft, Rules, Severity, set_in};
    /// let first = jiff::Timestamp::from_second(60)?;
    /// let stored = Draft::bad("VPCReady", Severity::Info, "Provisioning", "").into_condition(first);
    /// let mut list = Vec::new();
    /// let _ = set_in(&mut list, Draft::stored(&stored), jiff::Timestamp::from_second(120)?, Rules::GO);
    /// assert_eq!(list, [stored]);
    /// # Ok::<_, jiff::Error>(())
    /// ```
    pub fn stored(condition: &'a Condition) -> Self {
        Self::copied(Cow::Borrowed(&condition.type_), condition)
    }

    pub(super) fn has_same_content_as(&self, stored: &Condition) -> bool {
        stored.type_ == self.type_
            && stored.status == self.status
            && stored.reason == self.reason
            && stored.severity == self.severity
            && stored.message == self.message
    }

    /// The stored form, as [`set`](super::set) would append it to an empty list.
    ///
    /// ```
    /// use kube_status::severity::Draft;
    /// let stored = Draft::good("Ready").into_condition(jiff::Timestamp::UNIX_EPOCH);
    /// let text = serde_json::to_string(&stored)?;
    /// assert_eq!(text, r#"{"type":"Ready","status":"True","lastTransitionTime":"1970-01-01T00:00:00Z"}"#);
    /// # Ok::<_, serde_json::Error>(())
    /// ```
    pub fn into_condition(self, now: Timestamp) -> Condition {
        Condition {
            type_: self.type_.into_owned(),
            status: self.status,
            severity: self.severity,
            last_transition_time: Some(whole_seconds(self.since.unwrap_or(now))),
            reason: self.reason.into_owned(),
            message: self.message.into_owned(),
        }
    }

    /// The condition's type.
    ///
    /// ```
    /// use kube_status::severity::{Draft, Severity};
    /// let draft = Draft::bad("VPCReady", Severity::Info, "Provisioning", "subnets are next");
    /// assert_eq!(draft.type_(), "VPCReady");
    /// ```
    pub fn type_(&self) -> &str {
        &self.type_
    }

    /// Its status.
    ///
    /// ```
    /// use kube_status::severity::{Draft, Severity};
    /// let draft = Draft::bad("VPCReady", Severity::Info, "Provisioning", "subnets are next");
    /// assert_eq!(draft.status(), kube_status::Status::False);
    /// ```
    pub fn status(&self) -> Status {
        self.status
    }

    /// How bad it is; only where something is wrong.
    ///
    /// ```
    /// use kube_status::severity::{Draft, Severity};
    /// let draft = Draft::bad("VPCReady", Severity::Info, "Provisioning", "subnets are next");
    /// assert_eq!(draft.severity(), Some(Severity::Info));
    /// ```
    pub fn severity(&self) -> Option<Severity> {
        self.severity
    }

    /// The reason, one word for programs.
    ///
    /// ```
    /// use kube_status::severity::{Draft, Severity};
    /// let draft = Draft::bad("VPCReady", Severity::Info, "Provisioning", "subnets are next");
    /// assert_eq!(draft.reason(), "Provisioning");
    /// ```
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The message for people.
    ///
    /// ```
    /// use kube_status::severity::{Draft, Severity};
    /// let draft = Draft::bad("VPCReady", Severity::Info, "Provisioning", "subnets are next");
    /// assert_eq!(draft.message(), "subnets are next");
    /// ```
    pub fn message(&self) -> &str {
        &self.message
    }
}

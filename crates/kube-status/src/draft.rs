//! A condition as a controller states it, before the list gives it a transition time and a generation.

use std::borrow::Cow;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use crate::graded::{Grade, GradedCondition};
use crate::severity::Severity;
use crate::{Metav1, Status};

/// What a controller says about one condition type.
///
/// It borrows where it can, so that stating what is already stored costs no allocation. The transition time is given
/// only when it is known from elsewhere, as by a mirror; otherwise [`set`](crate::set) decides.
///
/// ```
/// use kube_status::{Draft, Status};
/// let draft = Draft::new("Ready", Status::False, "Starting").message("1 of 3 members is up");
/// assert_eq!(draft.message, "1 of 3 members is up");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft<'a> {
    /// The condition's type.
    pub type_: Cow<'a, str>,
    /// Its status.
    pub status: Status,
    /// A CamelCase word for programs.
    pub reason: Cow<'a, str>,
    /// A sentence for people; may be empty.
    pub message: Cow<'a, str>,
    /// When the status turned, if the caller knows better than the list.
    pub since: Option<Timestamp>,
    pub(crate) grade: Option<Grade>,
}

impl<'a> Draft<'a> {
    /// A draft without a message.
    ///
    /// ```
    /// use kube_status::{Draft, Status};
    /// let ready = Draft::new("Ready", 3 == 3, "AllUp");
    /// assert_eq!(ready.status, Status::True);
    /// ```
    pub fn new(type_: impl Into<Cow<'a, str>>, status: impl Into<Status>, reason: impl Into<Cow<'a, str>>) -> Self {
        Self {
            type_: type_.into(),
            status: status.into(),
            reason: reason.into(),
            message: Cow::Borrowed(""),
            since: None,
            grade: None,
        }
    }

    /// The sentence for people.
    ///
    /// ```
    /// use kube_status::Draft;
    /// let up = 1;
    /// let waiting = Draft::bad("Ready", "Starting").message(format!("{up} of 3 members is up"));
    /// assert_eq!(waiting.message, "1 of 3 members is up");
    /// ```
    #[must_use]
    pub fn message(mut self, message: impl Into<Cow<'a, str>>) -> Self {
        self.message = message.into();
        self
    }

    /// The time the status turned, known from elsewhere. It counts on creation and when the status changes.
    ///
    /// ```
    /// use kube_status::Draft;
    /// let reported: jiff::Timestamp = "2026-02-05T10:00:00Z".parse()?;
    /// let stored = Draft::good("Ready", "Up").since(reported).into_condition(1, jiff::Timestamp::now());
    /// assert_eq!(stored.last_transition_time.0, reported);
    /// # Ok::<_, jiff::Error>(())
    /// ```
    #[must_use]
    pub fn since(mut self, since: Timestamp) -> Self {
        self.since = Some(since);
        self
    }

    /// The same draft under another type.
    ///
    /// ```
    /// use kube_status::{Draft, Status};
    /// assert_eq!(Draft::new("Ready", Status::True, "Up").renamed("DatabaseReady").type_, "DatabaseReady");
    /// ```
    #[must_use]
    pub fn renamed(mut self, type_: impl Into<Cow<'a, str>>) -> Self {
        self.type_ = type_.into();
        self
    }

    /// The stored form, as [`set`](crate::set) would append it to an empty list.
    ///
    /// ```
    /// use kube_status::{Draft, Status};
    /// let now: jiff::Timestamp = "2026-02-05T10:00:00.9Z".parse()?;
    /// let stored = Draft::new("Ready", Status::True, "Up").into_condition(3, now);
    /// assert_eq!(stored.last_transition_time.0.to_string(), "2026-02-05T10:00:00Z");
    /// assert_eq!(stored.observed_generation, Some(3));
    /// # Ok::<_, jiff::Error>(())
    /// ```
    pub fn into_condition(self, generation: i64, now: Timestamp) -> Condition {
        Condition {
            last_transition_time: Time(whole_seconds(self.since.unwrap_or(now))),
            message: self.message.into_owned(),
            observed_generation: stored_generation(generation),
            reason: self.reason.into_owned(),
            status: self.status.as_str().to_owned(),
            type_: self.type_.into_owned(),
        }
    }

    /// [`Draft::into_condition`] with the severity beside it.
    ///
    /// ```
    /// use kube_status::severity::Severity;
    /// use kube_status::{Draft, Negative};
    /// let full = Draft::bad(Negative("Degraded"), (Severity::Warning, "DiskFull"));
    /// let stored = full.into_graded(3, jiff::Timestamp::UNIX_EPOCH);
    /// assert_eq!((stored.status.as_str(), stored.severity()), ("True", Some(Severity::Warning)));
    /// ```
    pub fn into_graded(self, generation: i64, now: Timestamp) -> GradedCondition {
        let severity = self.severity();
        GradedCondition::read(self.into_condition(generation, now), severity)
    }

    /// How bad it is: only where something is wrong, and only on a list that has a place for it
    /// ([`GradedCondition`](crate::GradedCondition)).
    ///
    /// It comes with [`Draft::bad`], and it is gone when the status is changed to another:
    ///
    /// ```
    /// use kube_status::severity::Severity;
    /// use kube_status::{Draft, Status};
    /// let mut draft = Draft::bad("Ready", (Severity::Warning, "SlowDisk"));
    /// assert_eq!(draft.severity(), Some(Severity::Warning));
    /// draft.status = Status::True;
    /// assert_eq!(draft.severity(), None);
    /// ```
    pub fn severity(&self) -> Option<Severity> {
        self.grade.filter(|g| g.status == self.status).map(|g| g.severity)
    }

    /// The severity beside what is stored: an info that has lasted longer than was expected is a warning.
    pub(crate) fn severity_beside(&self, stored: &impl Metav1, now: Timestamp) -> Option<Severity> {
        let stored = stored.plain();
        let expected = self.grade.and_then(|g| g.expected);
        let late = |expected| now.duration_since(stored.last_transition_time.0) > expected;
        match self.severity()? {
            Severity::Info if stored.status == self.status.as_str() && expected.is_some_and(late) => {
                Some(Severity::Warning)
            }
            severity => Some(severity),
        }
    }

    /// The draft, this bad while it has the status it has now.
    pub(crate) fn graded(mut self, severity: Option<Severity>) -> Self {
        let status = self.status;
        self.grade = severity.map(|severity| Grade {
            status,
            severity,
            expected: None,
        });
        self
    }

    /// The same draft without borrows.
    ///
    /// ```
    /// use kube_status::{Draft, Status};
    /// let name = String::from("Ready");
    /// let kept: Draft<'static> = Draft::new(name.as_str(), Status::True, "Up").into_owned();
    /// assert_eq!(kept.type_, "Ready");
    /// ```
    pub fn into_owned(self) -> Draft<'static> {
        Draft {
            type_: Cow::Owned(self.type_.into_owned()),
            status: self.status,
            reason: Cow::Owned(self.reason.into_owned()),
            message: Cow::Owned(self.message.into_owned()),
            since: self.since,
            grade: self.grade,
        }
    }
}

/// The API server stores whole seconds: a finer time would never equal what is read back.
///
/// ```
/// let fine: jiff::Timestamp = "2026-02-05T10:00:00.999Z".parse()?;
/// assert_eq!(kube_status::whole_seconds(fine).to_string(), "2026-02-05T10:00:00Z");
/// # Ok::<_, jiff::Error>(())
/// ```
pub fn whole_seconds(time: Timestamp) -> Timestamp {
    let second = time.as_second() - i64::from(time.subsec_nanosecond() < 0);
    Timestamp::from_second(second).unwrap_or(Timestamp::MIN)
}

/// When a stored condition changed its status. The epoch stands for a missing time: `metav1.Condition` has no other way to
/// say so here, and it is what a condition without a time is deserialized to.
pub(crate) fn known_time(condition: &Condition) -> Option<Timestamp> {
    Some(condition.last_transition_time.0).filter(|time| *time != Timestamp::UNIX_EPOCH)
}

/// Generation zero is the API's way to say "none", and is omitted.
pub(crate) fn stored_generation(generation: i64) -> Option<i64> {
    (generation != 0).then_some(generation)
}

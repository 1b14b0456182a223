//! A run: conditions of work that is done once and then over (`…Succeeded`), reset together when the work starts anew.

use std::borrow::Cow;

use jiff::Timestamp;

use crate::severity::{self, Rules, Severity};
use crate::{Change, ConditionedMut, Draft, Metav1, remove, set};

/// The steps of one kind of work, in their order.
///
/// Start it when a new run begins, and only then: every step is set to not yet done, with the transition time of the
/// start, whatever the last run left. Then set each step as it succeeds or fails.
///
/// ```
/// use kube_status::{Draft, Run};
/// let upgrade = Run::new(["ServersUpgradeSucceeded", "KubeProxyUpgradeSucceeded", "CoreDNSUpgradeSucceeded"]);
/// let done = Draft::good("ServersUpgradeSucceeded", "AllUpgraded").into_condition(1, jiff::Timestamp::UNIX_EPOCH);
/// assert_eq!(upgrade.completed(&[done.clone()]), 1);
/// assert_eq!(upgrade.current(&[done]), Some("KubeProxyUpgradeSucceeded"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run<'a> {
    steps: Vec<Cow<'a, str>>,
    reason: Cow<'a, str>,
}

impl<'a> Run<'a> {
    /// The reason of a step that has not started.
    ///
    /// ```
    /// assert_eq!(kube_status::Run::PENDING, "Pending");
    /// ```
    pub const PENDING: &'static str = "Pending";

    /// A run of these steps.
    ///
    /// ```
    /// let backup = kube_status::Run::new(["SnapshotSucceeded", "UploadSucceeded"]);
    /// # let _ = backup;
    /// ```
    pub fn new<T: Into<Cow<'a, str>>>(steps: impl IntoIterator<Item = T>) -> Self {
        Self {
            steps: steps.into_iter().map(Into::into).collect(),
            reason: Self::PENDING.into(),
        }
    }

    /// The reason to reset with, instead of [`Run::PENDING`].
    ///
    /// ```
    /// # let mut cache = kube_status::Untyped::<kube_status::Condition>::read(&serde_json::json!({"kind": "Cache", "metadata": {"name": "c"}})).unwrap();
    /// # let now = jiff::Timestamp::UNIX_EPOCH;
    /// use kube_status::{Conditioned, Run};
    /// let _ = Run::new(["UploadSucceeded"]).reason("Waiting").start(&mut cache, "", now);
    /// assert_eq!(cache.conditions()[0].reason, "Waiting");
    /// ```
    #[must_use]
    pub fn reason(mut self, reason: impl Into<Cow<'a, str>>) -> Self {
        self.reason = reason.into();
        self
    }

    /// Resets every step on an object; where there is a place for severities, as information.
    ///
    /// ```
    /// use kube_status::{Change, ConditionedMut, Run};
    /// fn begin(object: &mut impl ConditionedMut, upgrade: &Run, now: jiff::Timestamp) -> Change {
    ///     upgrade.start(object, "Upgrade to v1.31 starts", now)
    /// }
    /// ```
    pub fn start<C: Metav1, T: ConditionedMut<C> + ?Sized>(
        &self,
        object: &mut T,
        message: &str,
        now: Timestamp,
    ) -> Change {
        let mut change = Change::Nothing;
        for step in &self.steps {
            // A step that failed in the last run is False already: only a new condition gets the time of this start.
            let _ = remove(object.conditions_mut(), step);
            let draft = Draft::bad(&**step, (Severity::Info, &*self.reason)).message(message);
            change = change.and(set(object, draft, now));
        }
        change
    }

    /// Resets every step on an object of generation 1, as information: the summary counts the steps.
    ///
    /// ```
    /// use kube_status::severity::{Condition, Summary};
    /// use kube_status::{Change, ConditionedMut, Run};
    /// fn begin(object: &mut impl ConditionedMut<Condition>, upgrade: &Run, now: jiff::Timestamp) -> Change {
    ///     let reset = upgrade.start_with_severity(object, "Upgrade to v1.31 starts", now);
    ///     reset.and(Summary::new().step_counter(true).set(object, now))
    /// }
    /// ```
    pub fn start_with_severity<T: ConditionedMut<severity::Condition> + ?Sized>(
        &self,
        object: &mut T,
        message: &str,
        now: Timestamp,
    ) -> Change {
        let mut change = Change::Nothing;
        for step in &self.steps {
            let _ = severity::remove(object.conditions_mut(), step);
            let draft = severity::Draft::bad(&**step, Severity::Info, &*self.reason, message);
            change = change.and(severity::set_in(object.conditions_mut(), draft, now, Rules::default()));
        }
        change
    }

    /// How many steps have succeeded.
    ///
    /// ```
    /// use kube_status::{Draft, Run};
    /// let backup = Run::new(["SnapshotSucceeded", "UploadSucceeded"]);
    /// let list = [Draft::good("SnapshotSucceeded", "Done").into_condition(1, jiff::Timestamp::UNIX_EPOCH)];
    /// assert_eq!(backup.completed(&list), 1);
    /// ```
    pub fn completed<C: Metav1>(&self, conditions: &[C]) -> usize {
        self.steps
            .iter()
            .filter(|step| crate::is_true(conditions, step))
            .count()
    }

    /// The first step that has not succeeded; none when the run is over.
    ///
    /// ```
    /// use kube_status::{Draft, Run};
    /// let backup = Run::new(["SnapshotSucceeded", "UploadSucceeded"]);
    /// let list = [Draft::good("SnapshotSucceeded", "Done").into_condition(1, jiff::Timestamp::UNIX_EPOCH)];
    /// assert_eq!(backup.current(&list), Some("UploadSucceeded"));
    /// ```
    pub fn current<C: Metav1>(&self, conditions: &[C]) -> Option<&str> {
        self.steps
            .iter()
            .map(AsRef::as_ref)
            .find(|step| !crate::is_true(conditions, step))
    }

    /// Whether every step has succeeded.
    ///
    /// ```
    /// use kube_status::{Draft, Run};
    /// let backup = Run::new(["SnapshotSucceeded", "UploadSucceeded"]);
    /// let list = [Draft::good("SnapshotSucceeded", "Done").into_condition(1, jiff::Timestamp::UNIX_EPOCH)];
    /// assert!(!backup.is_over(&list) && Run::new(["SnapshotSucceeded"]).is_over(&list));
    /// ```
    pub fn is_over<C: Metav1>(&self, conditions: &[C]) -> bool {
        self.current(conditions).is_none()
    }
}

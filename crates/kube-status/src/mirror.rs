//! A condition of another object, mirrored.

use std::borrow::Cow;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::draft::known_time;
use crate::merge::NOT_YET_REPORTED;
use crate::{Change, Conditioned, ConditionedMut, Draft, Metav1, Status, find, set};

/// Which condition is mirrored, under which type, and what is reported when it is missing.
///
/// Status, reason, message, transition time and, where there is one, severity are copied; the observed generation is
/// not, because it would speak of another object's generation. A time of the epoch stands for "not known", as in a
/// condition that was read without one, and is not copied.
///
/// ```
/// use kube_status::{Mirror, Status};
/// let mirror = Mirror::new("Ready").target("InfrastructureReady");
/// let draft = mirror.of_condition(None);
/// assert_eq!(draft.status, Status::Unknown);
/// assert_eq!(draft.message, "Condition Ready not yet reported");
/// ```
#[derive(Clone, Debug)]
pub struct Mirror<'a> {
    source: Cow<'a, str>,
    target: Cow<'a, str>,
    fallback: Option<(Status, Cow<'a, str>, Cow<'a, str>)>,
}

impl<'a> Mirror<'a> {
    /// Mirrors a type under its own name.
    ///
    /// ```
    /// use kube_status::Mirror;
    /// assert_eq!(Mirror::new("Ready").of_condition(None).type_, "Ready");
    /// ```
    pub fn new(source: impl Into<Cow<'a, str>>) -> Self {
        let source = source.into();
        Self {
            target: source.clone(),
            source,
            fallback: None,
        }
    }

    /// The type to tell it as.
    ///
    /// ```
    /// use kube_status::Mirror;
    /// assert_eq!(Mirror::new("Ready").target("DatabaseReady").of_condition(None).type_, "DatabaseReady");
    /// ```
    #[must_use]
    pub fn target(mut self, target: impl Into<Cow<'a, str>>) -> Self {
        self.target = target.into();
        self
    }

    /// What to tell when the source has no such condition: status, reason, message.
    ///
    /// ```
    /// use kube_status::{Mirror, Status};
    /// let mirror = Mirror::new("Ready").fallback(Status::False, "WaitingForInfrastructure", "");
    /// assert_eq!(mirror.of_condition(None).status, Status::False);
    /// ```
    #[must_use]
    pub fn fallback(
        mut self,
        status: Status,
        reason: impl Into<Cow<'a, str>>,
        message: impl Into<Cow<'a, str>>,
    ) -> Self {
        self.fallback = Some((status, reason.into(), message.into()));
        self
    }

    /// The mirror of an object's condition, not yet set.
    ///
    /// ```
    /// # let mut cache = kube_status::Untyped::<kube_status::Condition>::read(&serde_json::json!({"kind": "Cache", "metadata": {"name": "c"}})).unwrap();
    /// # let now = jiff::Timestamp::UNIX_EPOCH;
    /// use kube_status::{Draft, Mirror, set};
    /// let _ = set(&mut cache, Draft::bad("Ready", "Down"), now);
    /// assert_eq!(Mirror::new("Ready").target("CacheReady").of(&cache).reason, "Down");
    /// ```
    pub fn of<'o, C: Metav1 + 'o, T: Conditioned<C> + ?Sized>(&'o self, source: &'o T) -> Draft<'o> {
        self.mirrored(find(source.conditions(), &self.source))
    }

    /// The mirror of a condition that may not be there.
    ///
    /// ```
    /// use kube_status::{Draft, Mirror, Status};
    /// let ready = Draft::good("Ready", "Up").into_condition(7, jiff::Timestamp::UNIX_EPOCH);
    /// assert_eq!(Mirror::new("Ready").of_condition(Some(&ready)).status, Status::True);
    /// ```
    pub fn of_condition<'o>(&'o self, condition: Option<&'o Condition>) -> Draft<'o> {
        self.mirrored(condition)
    }

    fn mirrored<'o, C: Metav1>(&'o self, condition: Option<&'o C>) -> Draft<'o> {
        let target = &*self.target;
        if let Some(stored) = condition {
            let c = stored.plain();
            let draft = Draft::new(target, Status::of(c), c.reason.as_str()).message(c.message.as_str());
            let since = known_time(c);
            return Draft { since, ..draft }.graded(stored.severity());
        }
        if let Some((status, reason, message)) = &self.fallback {
            return Draft::new(target, *status, &**reason).message(&**message);
        }
        let message = format!("Condition {} not yet reported", self.source);
        Draft::new(target, Status::Unknown, NOT_YET_REPORTED).message(message)
    }

    /// Mirrors from one object onto another.
    ///
    /// ```
    /// use kube_status::{Change, Conditioned, ConditionedMut, Mirror};
    /// fn follow(infra: &impl Conditioned, cluster: &mut impl ConditionedMut, now: jiff::Timestamp) -> Change {
    ///     Mirror::new("Ready").target("InfrastructureReady").set(infra, cluster, now)
    /// }
    /// ```
    pub fn set<C, S, D, T>(&self, source: &S, target: &mut T, now: Timestamp) -> Change
    where
        C: Metav1,
        S: Conditioned<C> + ?Sized,
        D: Metav1,
        T: ConditionedMut<D> + ?Sized,
    {
        set(target, self.of(source), now)
    }
}

//! The Ready of another object, mirrored. A dependent without Ready causes no condition and no error, so that providers
//! can adopt conditions one by one.

use std::borrow::Cow;

use jiff::Timestamp;

use super::merge::put;
use super::{Condition, Draft, READY, Rules, Severity, find};
use crate::{Change, Conditioned, ConditionedMut, Status};

/// The Ready of another object under another type.
///
/// ```
/// use kube_status::severity::{Condition, Mirror, Severity};
/// use kube_status::{Location, Untyped};
/// let infra = Untyped::<Condition>::read_at(&serde_json::json!({"kind": "AWSCluster"}), Location::STATUS)?;
/// let mirror = Mirror::new("InfrastructureReady");
/// assert!(mirror.of(&infra).is_none(), "a dependent without Ready makes no condition and no error");
/// let waiting = mirror.fallback_bad(Severity::Info, "WaitingForInfrastructure", "");
/// assert_eq!(waiting.of(&infra).expect("the fallback").reason(), "WaitingForInfrastructure");
/// # Ok::<_, kube_status::Malformed>(())
/// ```
#[derive(Clone, Debug)]
pub struct Mirror<'a> {
    target: Cow<'a, str>,
    fallback: Option<Draft<'a>>,
    rules: Option<Rules>,
}

impl<'a> Mirror<'a> {
    /// Mirrors Ready as `target`.
    ///
    /// ```
    /// # use kube_status::severity::Condition;
    /// # let mut cache = kube_status::Untyped::<Condition>::read_at(&serde_json::json!({"kind": "Cache", "metadata": {"name": "c"}}), kube_status::Location::STATUS).unwrap();
    /// # let now = jiff::Timestamp::UNIX_EPOCH;
    /// use kube_status::severity::{Mirror};
    /// assert!(Mirror::new("CacheReady").of(&cache).is_none(), "it exposes no Ready");
    /// ```
    pub fn new(target: impl Into<Cow<'a, str>>) -> Self {
        Self {
            target: target.into(),
            fallback: None,
            rules: None,
        }
    }

    /// What to tell where the source has no Ready: all is well.
    ///
    /// ```
    /// # use kube_status::severity::Condition;
    /// # let mut cache = kube_status::Untyped::<Condition>::read_at(&serde_json::json!({"kind": "Cache", "metadata": {"name": "c"}}), kube_status::Location::STATUS).unwrap();
    /// # let now = jiff::Timestamp::UNIX_EPOCH;
    /// use kube_status::severity::{Mirror};
    /// let mirror = Mirror::new("CacheReady").fallback_good();
    /// let draft = mirror.of(&cache).expect("the fallback");
    /// assert_eq!(draft.status(), kube_status::Status::True);
    /// ```
    #[must_use]
    pub fn fallback_good(mut self) -> Self {
        self.fallback = Some(Draft::bare(self.target.clone(), Status::True));
        self
    }

    /// What to tell where the source has no Ready: something is wrong.
    ///
    /// ```
    /// # use kube_status::severity::Condition;
    /// # let mut cache = kube_status::Untyped::<Condition>::read_at(&serde_json::json!({"kind": "Cache", "metadata": {"name": "c"}}), kube_status::Location::STATUS).unwrap();
    /// # let now = jiff::Timestamp::UNIX_EPOCH;
    /// use kube_status::severity::{Mirror, Severity};
    /// let waiting = Mirror::new("CacheReady").fallback_bad(Severity::Info, "WaitingForCache", "");
    /// assert_eq!(waiting.of(&cache).expect("the fallback").reason(), "WaitingForCache");
    /// ```
    #[must_use]
    pub fn fallback_bad(
        mut self,
        severity: Severity,
        reason: impl Into<Cow<'a, str>>,
        message: impl Into<Cow<'a, str>>,
    ) -> Self {
        self.fallback = Some(Draft {
            severity: Some(severity),
            reason: reason.into(),
            message: message.into(),
            ..Draft::bare(self.target.clone(), Status::False)
        });
        self
    }

    /// The proposal's rules or Go's, instead of those of the object's [conventions](crate::Conventions).
    ///
    /// ```
    /// use kube_status::severity::{Mirror, Rules};
    /// let as_go = Mirror::new("CacheReady").rules(Rules::GO);
    /// # let _ = as_go;
    /// ```
    #[must_use]
    pub fn rules(mut self, rules: Rules) -> Self {
        self.rules = Some(rules);
        self
    }

    /// The mirror, or nothing where the source has no Ready and there is no fallback.
    ///
    /// ```
    /// # use kube_status::severity::Condition;
    /// # let mut cache = kube_status::Untyped::<Condition>::read_at(&serde_json::json!({"kind": "Cache", "metadata": {"name": "c"}}), kube_status::Location::STATUS).unwrap();
    /// # let now = jiff::Timestamp::UNIX_EPOCH;
    /// use kube_status::severity::{Mirror, Draft, set};
    /// let _ = set(&mut cache, Draft::good("Ready"), now);
    /// assert_eq!(Mirror::new("CacheReady").of(&cache).expect("it has Ready").type_(), "CacheReady");
    /// ```
    pub fn of<'o, T: Conditioned<Condition> + ?Sized>(&'o self, source: &'o T) -> Option<Draft<'o>> {
        match find(source.conditions(), READY) {
            Some(ready) => Some(Draft::copied(Cow::Borrowed(&self.target), ready)),
            None => self.fallback.clone(),
        }
    }

    /// Mirrors from one object onto another.
    ///
    /// ```
    /// # use kube_status::severity::Condition;
    /// # let mut cache = kube_status::Untyped::<Condition>::read_at(&serde_json::json!({"kind": "Cache", "metadata": {"name": "c"}}), kube_status::Location::STATUS).unwrap();
    /// # let now = jiff::Timestamp::UNIX_EPOCH;
    /// use kube_status::severity::{Mirror, Draft, set};
    /// let _ = set(&mut cache, Draft::good("Ready"), now);
    /// let mut owner = cache.clone();
    /// assert!(Mirror::new("CacheReady").set(&cache, &mut owner, now).is_transition());
    /// ```
    pub fn set<S: Conditioned<Condition> + ?Sized, T: ConditionedMut<Condition> + ?Sized>(
        &self,
        source: &S,
        target: &mut T,
        now: Timestamp,
    ) -> Change {
        let rules = self.rules.unwrap_or(target.conventions().rules);
        put(target, self.of(source), now, rules)
    }
}

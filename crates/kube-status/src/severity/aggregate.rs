//! The Ready of many objects, aggregated into one. Objects without Ready cause no condition and no error, and still count.

use std::borrow::Cow;

use jiff::Timestamp;

use super::merge::{Local, Wording, merge, put};
use super::{Condition, Draft, READY, Rules, find};
use crate::merge::Owner;
use crate::{Change, Conditioned, ConditionedMut, Polarity};

/// The Ready of many objects under one type, with the steps counted over all of them.
///
/// ```
/// use kube_status::severity::{Aggregate, Condition};
/// use kube_status::{Location, Untyped};
/// let server = |name: &str, status: &str| {
///     let object = serde_json::json!({"kind": "Server", "metadata": {"name": name}, "status": {"conditions": [
///         {"type": "Ready", "status": status, "severity": "Error", "reason": "DiskFull"},
///     ]}});
///     Untyped::<Condition>::read_at(&object, Location::STATUS)
/// };
/// let servers = [server("m1", "False")?, server("m2", "False")?];
/// let ready = Aggregate::new("ServersReady").source_reference(true).of(&servers).expect("they have Ready");
/// assert_eq!((ready.reason(), ready.message()), ("DiskFull @ Server/m1", "0 of 2 completed"));
/// # Ok::<_, kube_status::Malformed>(())
/// ```
#[derive(Clone, Debug)]
pub struct Aggregate<'a> {
    target: Cow<'a, str>,
    source: bool,
    count: bool,
    rules: Option<Rules>,
}

impl<'a> Aggregate<'a> {
    /// Aggregates Ready as `target`.
    ///
    /// ```
    /// let servers = kube_status::severity::Aggregate::new("ServersReady");
    /// # let _ = servers;
    /// ```
    pub fn new(target: impl Into<Cow<'a, str>>) -> Self {
        Self {
            target: target.into(),
            source: false,
            count: true,
            rules: None,
        }
    }

    /// Whether the reason names the object it came from: `Reason @ Kind/name`.
    ///
    /// ```
    /// # use kube_status::severity::Condition;
    /// # let mut cache = kube_status::Untyped::<Condition>::read_at(&serde_json::json!({"kind": "Cache", "metadata": {"name": "c"}}), kube_status::Location::STATUS).unwrap();
    /// # let now = jiff::Timestamp::UNIX_EPOCH;
    /// use kube_status::severity::{Aggregate, Draft, Severity, set};
    /// let _ = set(&mut cache, Draft::bad("Ready", Severity::Error, "Down", "no quorum"), now);
    /// let caches = Aggregate::new("CachesReady").source_reference(true).of([&cache]).expect("it has Ready");
    /// assert_eq!(caches.reason(), "Down @ Cache/c");
    /// ```
    #[must_use]
    pub fn source_reference(mut self, source: bool) -> Self {
        self.source = source;
        self
    }

    /// Whether the message counts the objects that are ready. It does by default.
    ///
    /// ```
    /// # use kube_status::severity::Condition;
    /// # let mut cache = kube_status::Untyped::<Condition>::read_at(&serde_json::json!({"kind": "Cache", "metadata": {"name": "c"}}), kube_status::Location::STATUS).unwrap();
    /// # let now = jiff::Timestamp::UNIX_EPOCH;
    /// use kube_status::severity::{Aggregate, Draft, Severity, set};
    /// let _ = set(&mut cache, Draft::bad("Ready", Severity::Error, "Down", "no quorum"), now);
    /// let caches = Aggregate::new("CachesReady").step_counter(false).of([&cache]).expect("it has Ready");
    /// assert_eq!(caches.message(), "no quorum");
    /// ```
    #[must_use]
    pub fn step_counter(mut self, count: bool) -> Self {
        self.count = count;
        self
    }

    /// The proposal's rules or Go's, instead of those of the object's [conventions](crate::Conventions).
    ///
    /// ```
    /// use kube_status::severity::{Aggregate, Rules};
    /// let as_go = Aggregate::new("CachesReady").rules(Rules::GO);
    /// # let _ = as_go;
    /// ```
    #[must_use]
    pub fn rules(mut self, rules: Rules) -> Self {
        self.rules = Some(rules);
        self
    }

    /// The aggregate, or nothing where no object has a Ready. Objects without one still count in the total. The
    /// conventions are those of the first object.
    ///
    /// ```
    /// # use kube_status::severity::Condition;
    /// # let mut cache = kube_status::Untyped::<Condition>::read_at(&serde_json::json!({"kind": "Cache", "metadata": {"name": "c"}}), kube_status::Location::STATUS).unwrap();
    /// # let now = jiff::Timestamp::UNIX_EPOCH;
    /// use kube_status::severity::{Aggregate, Draft, Severity, set};
    /// let _ = set(&mut cache, Draft::bad("Ready", Severity::Error, "Down", "no quorum"), now);
    /// let caches = Aggregate::new("CachesReady").of([&cache]).expect("it has Ready");
    /// assert_eq!((caches.reason(), caches.message()), ("Down", "0 of 1 completed"));
    /// ```
    pub fn of<'o, T: Conditioned<Condition> + ?Sized + 'o>(
        &self,
        objects: impl IntoIterator<Item = &'o T>,
    ) -> Option<Draft<'static>> {
        self.aggregated(objects.into_iter().map(|object| (object, true)))
    }

    /// The aggregate of those objects that are marked; all of them count in the total.
    pub(crate) fn aggregated<'o, T: Conditioned<Condition> + ?Sized + 'o>(
        &self,
        objects: impl IntoIterator<Item = (&'o T, bool)>,
    ) -> Option<Draft<'static>> {
        let mut total = 0;
        let mut inputs: Vec<Local<'o>> = Vec::new();
        let mut rules = self.rules;
        for (object, counts) in objects {
            total += 1;
            rules.get_or_insert(object.conventions().rules);
            if let Some(condition) = find(object.conditions(), READY).filter(|_| counts) {
                inputs.push(Local {
                    owner: Owner::of(object),
                    condition,
                    polarity: Polarity::Positive,
                });
            }
        }
        let wording = Wording {
            order: &[],
            source: self.source,
            steps: self.count.then_some(total),
        };
        merge(inputs, &self.target, rules.unwrap_or_default(), &wording)
    }

    pub(crate) fn target(&self) -> &str {
        &self.target
    }

    /// Aggregates objects onto another.
    ///
    /// ```
    /// # use kube_status::severity::Condition;
    /// # let mut cache = kube_status::Untyped::<Condition>::read_at(&serde_json::json!({"kind": "Cache", "metadata": {"name": "c"}}), kube_status::Location::STATUS).unwrap();
    /// # let now = jiff::Timestamp::UNIX_EPOCH;
    /// use kube_status::severity::{Aggregate, Draft, Severity, set};
    /// let _ = set(&mut cache, Draft::bad("Ready", Severity::Error, "Down", "no quorum"), now);
    /// let mut owner = cache.clone();
    /// assert!(Aggregate::new("CachesReady").set([&cache], &mut owner, now).is_transition());
    /// ```
    pub fn set<'o, T: Conditioned<Condition> + ?Sized + 'o, U: ConditionedMut<Condition> + ?Sized>(
        &self,
        objects: impl IntoIterator<Item = &'o T>,
        target: &mut U,
        now: Timestamp,
    ) -> Change {
        let rules = self.rules.unwrap_or(target.conventions().rules);
        let draft = self.clone().rules(rules).of(objects);
        put(target, draft, now, rules)
    }
}

//! The conditions of one object, summarised as its Ready.

use std::borrow::Cow;

use jiff::Timestamp;

use super::merge::{Local, Wording, merge, put};
use super::{Condition, Draft, READY, Rules};
use crate::merge::Owner;
use crate::{Change, Conditioned, ConditionedMut, Polarity};

/// Summarises the conditions of an object as Ready.
///
/// ```
/// use kube_status::severity::{Condition, Draft, Severity, Summary, set};
/// use kube_status::{Location, Untyped};
/// let now = jiff::Timestamp::UNIX_EPOCH;
/// let mut infra = Untyped::<Condition>::read_at(&serde_json::json!({"kind": "AWSCluster"}), Location::STATUS)?;
/// let _ = set(&mut infra, Draft::good("VPCReady"), now);
/// let _ = set(&mut infra, Draft::bad("SubnetsReady", Severity::Info, "Creating", "3 to go"), now);
/// let summary = Summary::new().types(["VPCReady", "SubnetsReady", "GatewaysReady"]).step_counter(true);
/// let ready = summary.of(&infra).expect("it has conditions");
/// assert_eq!((ready.severity(), ready.reason()), (Some(Severity::Info), "Creating"));
/// assert_eq!(ready.message(), "1 of 3 completed");
/// # Ok::<_, kube_status::Malformed>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Summary<'a> {
    types: Option<Vec<Cow<'a, str>>>,
    negative: Vec<Cow<'a, str>>,
    count: bool,
    only_for: Option<Vec<Cow<'a, str>>>,
    source: bool,
    rules: Option<Rules>,
}

impl<'a> Summary<'a> {
    /// All conditions but Ready itself.
    ///
    /// ```
    /// # use kube_status::severity::Condition;
    /// # let mut cache = kube_status::Untyped::<Condition>::read_at(&serde_json::json!({"kind": "Cache", "metadata": {"name": "c"}}), kube_status::Location::STATUS).unwrap();
    /// # let now = jiff::Timestamp::UNIX_EPOCH;
    /// use kube_status::severity::{Summary};
    /// assert!(Summary::new().of(&cache).is_none(), "nothing to summarise");
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// Only these types. Among equals, the first one gives reason and message. Missing ones are ignored.
    ///
    /// ```
    /// let summary = kube_status::severity::Summary::new().types(["VPCReady", "SubnetsReady"]);
    /// # let _ = summary;
    /// ```
    #[must_use]
    pub fn types<T: Into<Cow<'a, str>>>(mut self, types: impl IntoIterator<Item = T>) -> Self {
        self.types = Some(types.into_iter().map(Into::into).collect());
        self
    }

    /// The types of which `True` is bad.
    ///
    /// ```
    /// let summary = kube_status::severity::Summary::new().negative(["Degraded"]);
    /// # let _ = summary;
    /// ```
    #[must_use]
    pub fn negative<T: Into<Cow<'a, str>>>(mut self, types: impl IntoIterator<Item = T>) -> Self {
        self.negative = types.into_iter().map(Into::into).collect();
        self
    }

    /// Whether the message counts steps, "2 of 3 completed", against the conditions in scope or the list of types.
    ///
    /// ```
    /// # use kube_status::severity::Condition;
    /// # let mut cache = kube_status::Untyped::<Condition>::read_at(&serde_json::json!({"kind": "Cache", "metadata": {"name": "c"}}), kube_status::Location::STATUS).unwrap();
    /// # let now = jiff::Timestamp::UNIX_EPOCH;
    /// use kube_status::severity::{Draft, Severity, Summary, set};
    /// let _ = set(&mut cache, Draft::good("VPCReady"), now);
    /// let _ = set(&mut cache, Draft::bad("SubnetsReady", Severity::Info, "Creating", "2 are left"), now);
    /// let ready = Summary::new().step_counter(true).of(&cache).expect("two conditions");
    /// assert_eq!(ready.message(), "1 of 2 completed");
    /// ```
    #[must_use]
    pub fn step_counter(mut self, count: bool) -> Self {
        self.count = count;
        self
    }

    /// With [`Summary::step_counter`], counts steps only while no other condition than these is there, and against their
    /// number: for a server that is provisioned step by step.
    ///
    /// ```
    /// # use kube_status::severity::Condition;
    /// # let mut cache = kube_status::Untyped::<Condition>::read_at(&serde_json::json!({"kind": "Cache", "metadata": {"name": "c"}}), kube_status::Location::STATUS).unwrap();
    /// # let now = jiff::Timestamp::UNIX_EPOCH;
    /// use kube_status::severity::{Draft, Severity, Summary, set};
    /// let _ = set(&mut cache, Draft::good("VPCReady"), now);
    /// let _ = set(&mut cache, Draft::bad("SubnetsReady", Severity::Info, "Creating", "2 are left"), now);
    /// let steps = Summary::new().step_counter(true).step_counter_only_for(["VPCReady", "SubnetsReady", "LBReady"]);
    /// assert_eq!(steps.of(&cache).expect("two conditions").message(), "1 of 3 completed");
    /// ```
    #[must_use]
    pub fn step_counter_only_for<T: Into<Cow<'a, str>>>(mut self, types: impl IntoIterator<Item = T>) -> Self {
        self.only_for = Some(types.into_iter().map(Into::into).collect());
        self
    }

    /// Whether the reason names the object: `Reason @ Kind/name`.
    ///
    /// ```
    /// # use kube_status::severity::Condition;
    /// # let mut cache = kube_status::Untyped::<Condition>::read_at(&serde_json::json!({"kind": "Cache", "metadata": {"name": "c"}}), kube_status::Location::STATUS).unwrap();
    /// # let now = jiff::Timestamp::UNIX_EPOCH;
    /// use kube_status::severity::{Draft, Severity, Summary, set};
    /// let _ = set(&mut cache, Draft::good("VPCReady"), now);
    /// let _ = set(&mut cache, Draft::bad("SubnetsReady", Severity::Info, "Creating", "2 are left"), now);
    /// let ready = Summary::new().source_reference(true).of(&cache).expect("two conditions");
    /// assert_eq!(ready.reason(), "Creating @ Cache/c");
    /// ```
    #[must_use]
    pub fn source_reference(mut self, source: bool) -> Self {
        self.source = source;
        self
    }

    /// The proposal's rules or Go's, instead of those of the object's [conventions](crate::Conventions).
    ///
    /// ```
    /// use kube_status::severity::{Rules, Summary};
    /// let as_go = Summary::new().rules(Rules::GO);
    /// # let _ = as_go;
    /// ```
    #[must_use]
    pub fn rules(mut self, rules: Rules) -> Self {
        self.rules = Some(rules);
        self
    }

    /// The summary, or nothing where the object has no condition in scope.
    ///
    /// ```
    /// # use kube_status::severity::Condition;
    /// # let mut cache = kube_status::Untyped::<Condition>::read_at(&serde_json::json!({"kind": "Cache", "metadata": {"name": "c"}}), kube_status::Location::STATUS).unwrap();
    /// # let now = jiff::Timestamp::UNIX_EPOCH;
    /// use kube_status::severity::{Draft, Severity, Summary, set};
    /// let _ = set(&mut cache, Draft::good("VPCReady"), now);
    /// let _ = set(&mut cache, Draft::bad("SubnetsReady", Severity::Info, "Creating", "2 are left"), now);
    /// let ready = Summary::new().of(&cache).expect("two conditions");
    /// assert_eq!((ready.type_(), ready.reason()), ("Ready", "Creating"));
    /// ```
    pub fn of<T: Conditioned<Condition> + ?Sized>(&self, object: &T) -> Option<Draft<'static>> {
        let rules = self.rules.unwrap_or(object.conventions().rules);
        let owner = Owner::of(object);
        let named = |list: &[Cow<'_, str>], c: &Condition| list.iter().any(|t| *t == c.type_);
        let in_scope = |c: &&Condition| c.type_ != READY && self.types.as_deref().is_none_or(|types| named(types, c));
        let local = |condition| {
            let negative = rules.negative_counts_by_severity && named(&self.negative, condition);
            let polarity = if negative {
                Polarity::Negative
            } else {
                Polarity::Positive
            };
            Local {
                owner,
                condition,
                polarity,
            }
        };
        let inputs: Vec<Local<'_>> = object.conditions().iter().filter(in_scope).map(local).collect();
        let other = |only: &[Cow<'_, str>]| inputs.iter().any(|local| !named(only, local.condition));
        let total = match (&self.only_for, &self.types) {
            (Some(only), _) => (!other(only)).then_some(only.len()),
            (None, Some(types)) => Some(types.len()),
            (None, None) => Some(inputs.len()),
        };
        let wording = Wording {
            order: self.types.as_deref().unwrap_or_default(),
            source: self.source,
            steps: total.filter(|_| self.count),
        };
        merge(inputs, READY, rules, &wording)
    }

    /// Summarises an object on itself.
    ///
    /// ```
    /// # use kube_status::severity::Condition;
    /// # let mut cache = kube_status::Untyped::<Condition>::read_at(&serde_json::json!({"kind": "Cache", "metadata": {"name": "c"}}), kube_status::Location::STATUS).unwrap();
    /// # let now = jiff::Timestamp::UNIX_EPOCH;
    /// use kube_status::severity::{Draft, Severity, Summary, set};
    /// let _ = set(&mut cache, Draft::good("VPCReady"), now);
    /// let _ = set(&mut cache, Draft::bad("SubnetsReady", Severity::Info, "Creating", "2 are left"), now);
    /// assert!(Summary::new().set(&mut cache, now).is_transition());
    /// ```
    pub fn set<T: ConditionedMut<Condition> + ?Sized>(&self, object: &mut T, now: Timestamp) -> Change {
        let rules = self.rules.unwrap_or(object.conventions().rules);
        put(object, self.of(object), now, rules)
    }
}

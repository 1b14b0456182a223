//! Summary, mirror and aggregate of generation 1. A dependent that exposes no Ready makes no condition and no error:
//! that is how providers could adopt conditions one by one.

use std::borrow::Cow;

use jiff::Timestamp;

use super::merge::{Local, Wording, merge};
use super::{Condition, Draft, READY, Rules, Severity, find, set_in};
use crate::merge::Owner;
use crate::{Change, Conditioned, ConditionedMut, Polarity, Status};

/// The conditions of an object, told as Ready.
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
    rules: Rules,
}

impl<'a> Summary<'a> {
    /// All conditions but Ready itself.
    pub fn new() -> Self {
        Self::default()
    }

    /// Only these; their order says whose reason and message are told among equals. Missing ones are ignored.
    #[must_use]
    pub fn types<T: Into<Cow<'a, str>>>(mut self, types: impl IntoIterator<Item = T>) -> Self {
        self.types = Some(types.into_iter().map(Into::into).collect());
        self
    }

    /// The types of which `True` is bad.
    #[must_use]
    pub fn negative<T: Into<Cow<'a, str>>>(mut self, types: impl IntoIterator<Item = T>) -> Self {
        self.negative = types.into_iter().map(Into::into).collect();
        self
    }

    /// Whether the message counts steps, "2 of 3 completed", against the conditions in scope or the list of types.
    #[must_use]
    pub fn step_counter(mut self, count: bool) -> Self {
        self.count = count;
        self
    }

    /// Counts steps only while no other condition than these is there, and against their number: for a machine that
    /// is provisioned step by step, and then lives.
    #[must_use]
    pub fn step_counter_only_for<T: Into<Cow<'a, str>>>(mut self, types: impl IntoIterator<Item = T>) -> Self {
        self.only_for = Some(types.into_iter().map(Into::into).collect());
        self
    }

    /// Whether the reason names the object: `Reason @ Kind/name`.
    #[must_use]
    pub fn source_reference(mut self, source: bool) -> Self {
        self.source = source;
        self
    }

    /// The proposal's rules or Go's.
    #[must_use]
    pub fn rules(mut self, rules: Rules) -> Self {
        self.rules = rules;
        self
    }

    /// The summary, or nothing where the object has no condition in scope.
    pub fn of<T: Conditioned<Condition> + ?Sized>(&self, object: &T) -> Option<Draft<'static>> {
        let owner = Owner::of(object);
        let named = |list: &[Cow<'_, str>], c: &Condition| list.iter().any(|t| *t == c.type_);
        let in_scope = |c: &&Condition| c.type_ != READY && self.types.as_deref().is_none_or(|types| named(types, c));
        let local = |condition| {
            let negative = self.rules.negative_counts_by_severity && named(&self.negative, condition);
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
        let stranger = |only: &[Cow<'_, str>]| inputs.iter().any(|local| !named(only, local.condition));
        let total = match (&self.only_for, &self.types) {
            (Some(only), _) => (!stranger(only)).then_some(only.len()),
            (None, Some(types)) => Some(types.len()),
            (None, None) => Some(inputs.len()),
        };
        let wording = Wording {
            order: self.types.as_deref().unwrap_or_default(),
            source: self.source,
            steps: total.filter(|_| self.count),
        };
        merge(inputs, READY, self.rules, &wording)
    }

    /// Summarises an object on itself.
    pub fn set<T: ConditionedMut<Condition> + ?Sized>(&self, object: &mut T, now: Timestamp) -> Change {
        put(object, self.of(object), now, self.rules)
    }
}

fn put<T: ConditionedMut<Condition> + ?Sized>(
    object: &mut T,
    draft: Option<Draft<'_>>,
    now: Timestamp,
    rules: Rules,
) -> Change {
    draft.map_or(Change::Nothing, |draft| {
        set_in(object.conditions_mut(), draft, now, rules)
    })
}

/// The Ready of another object under a type of one's own.
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
    rules: Rules,
}

impl<'a> Mirror<'a> {
    /// Mirrors Ready as `target`.
    pub fn new(target: impl Into<Cow<'a, str>>) -> Self {
        Self {
            target: target.into(),
            fallback: None,
            rules: Rules::default(),
        }
    }

    /// What to tell where the source has no Ready: all is well.
    #[must_use]
    pub fn fallback_good(mut self) -> Self {
        self.fallback = Some(Draft::bare(self.target.clone(), Status::True));
        self
    }

    /// What to tell where the source has no Ready: something is wrong.
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

    /// The proposal's rules or Go's.
    #[must_use]
    pub fn rules(mut self, rules: Rules) -> Self {
        self.rules = rules;
        self
    }

    /// The mirror, or nothing where the source has no Ready and there is no fallback.
    pub fn of<'o, T: Conditioned<Condition> + ?Sized>(&'o self, source: &'o T) -> Option<Draft<'o>> {
        match find(source.conditions(), READY) {
            Some(ready) => Some(Draft::copied(Cow::Borrowed(&self.target), ready)),
            None => self.fallback.clone(),
        }
    }

    /// Mirrors from one object onto another.
    pub fn set<S: Conditioned<Condition> + ?Sized, T: ConditionedMut<Condition> + ?Sized>(
        &self,
        source: &S,
        target: &mut T,
        now: Timestamp,
    ) -> Change {
        put(target, self.of(source), now, self.rules)
    }
}

/// The Ready of many objects under one type, with the steps counted over all of them.
///
/// ```
/// use kube_status::severity::{Aggregate, Condition};
/// use kube_status::{Location, Untyped};
/// let machine = |name: &str, status: &str| {
///     let object = serde_json::json!({"kind": "Machine", "metadata": {"name": name}, "status": {"conditions": [
///         {"type": "Ready", "status": status, "severity": "Error", "reason": "DiskFull"},
///     ]}});
///     Untyped::<Condition>::read_at(&object, Location::STATUS)
/// };
/// let machines = [machine("m1", "False")?, machine("m2", "False")?];
/// let ready = Aggregate::new("MachinesReady").source_reference(true).of(&machines).expect("they have Ready");
/// assert_eq!((ready.reason(), ready.message()), ("DiskFull @ Machine/m1", "0 of 2 completed"));
/// # Ok::<_, kube_status::Malformed>(())
/// ```
#[derive(Clone, Debug)]
pub struct Aggregate<'a> {
    target: Cow<'a, str>,
    source: bool,
    count: bool,
    rules: Rules,
}

impl<'a> Aggregate<'a> {
    /// Aggregates Ready as `target`.
    pub fn new(target: impl Into<Cow<'a, str>>) -> Self {
        Self {
            target: target.into(),
            source: false,
            count: true,
            rules: Rules::default(),
        }
    }

    /// Whether the reason names the object it came from: `Reason @ Kind/name`.
    #[must_use]
    pub fn source_reference(mut self, source: bool) -> Self {
        self.source = source;
        self
    }

    /// Whether the message counts the objects that are ready; it does unless told otherwise.
    #[must_use]
    pub fn step_counter(mut self, count: bool) -> Self {
        self.count = count;
        self
    }

    /// The proposal's rules or Go's.
    #[must_use]
    pub fn rules(mut self, rules: Rules) -> Self {
        self.rules = rules;
        self
    }

    /// The aggregate, or nothing where no object has a Ready. Objects without one still count in the total.
    pub fn of<'o, T: Conditioned<Condition> + ?Sized + 'o>(
        &self,
        objects: impl IntoIterator<Item = &'o T>,
    ) -> Option<Draft<'static>> {
        self.told(objects.into_iter().map(|object| (object, true)))
    }

    /// The aggregate of those objects that are marked; all of them count in the total.
    pub(crate) fn told<'o, T: Conditioned<Condition> + ?Sized + 'o>(
        &self,
        objects: impl IntoIterator<Item = (&'o T, bool)>,
    ) -> Option<Draft<'static>> {
        let mut total = 0;
        let mut inputs: Vec<Local<'o>> = Vec::new();
        for (object, counts) in objects {
            total += 1;
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
        merge(inputs, &self.target, self.rules, &wording)
    }

    pub(crate) fn target(&self) -> &str {
        &self.target
    }

    /// Aggregates objects onto another.
    pub fn set<'o, T: Conditioned<Condition> + ?Sized + 'o, U: ConditionedMut<Condition> + ?Sized>(
        &self,
        objects: impl IntoIterator<Item = &'o T>,
        target: &mut U,
        now: Timestamp,
    ) -> Change {
        let draft = self.of(objects);
        put(target, draft, now, self.rules)
    }
}

//! The three-way patch: what one controller changed, applied to what another may have changed meanwhile.

use std::borrow::Cow;
use std::fmt;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use crate::draft::{known_time, whole_seconds};
use crate::set::same_state;
use crate::severity::{Rules, Severity};
use crate::{Change, Conventions, GradedCondition, Metav1, Order};

/// A condition that can be patched; implemented for both generations.
///
/// ```
/// use kube_status::{Patch, Patchable};
/// fn touched<C: Patchable>(before: &[C], after: &[C]) -> bool {
///     !Patch::between(before, after).is_empty()
/// }
/// assert!(!touched::<kube_status::severity::Condition>(&[], &[]));
/// ```
pub trait Patchable: Clone + PartialEq + private::Sealed {
    /// The condition's type.
    fn type_name(&self) -> &str;
    #[doc(hidden)]
    fn is_same_state(&self, other: &Self) -> bool;
    #[doc(hidden)]
    fn is_same(&self, other: &Self) -> bool;
    #[doc(hidden)]
    fn put_into(&self, list: &mut Vec<Self>, now: Timestamp, rules: Rules) -> Change;
    #[doc(hidden)]
    fn sort(list: &mut [Self], order: Option<Order<'_>>);
    #[doc(hidden)]
    fn difference(&self, other: &Self) -> String;
}

pub(crate) mod private {
    pub trait Sealed {}
    impl Sealed for super::Condition {}
    impl Sealed for super::GradedCondition {}
    impl Sealed for crate::severity::Condition {}
}

/// One change of one condition.
///
/// ```
/// use kube_status::{Draft, Patch, PatchOperation, Status};
/// let ready = Draft::new("Ready", Status::True, "Up").into_condition(1, jiff::Timestamp::UNIX_EPOCH);
/// let patch = Patch::between(&[], &[ready.clone()]);
/// assert_eq!(patch.operations(), [PatchOperation::Add { after: ready }]);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum PatchOperation<C = Condition> {
    /// It was not there before.
    Add {
        /// What it became.
        after: C,
    },
    /// It was there and differs.
    Change {
        /// What it was.
        before: C,
        /// What it became.
        after: C,
    },
    /// It is no longer there.
    Remove {
        /// What it was.
        before: C,
    },
}

/// The name of an operation, as conflicts spell it.
///
/// ```
/// assert_eq!(kube_status::PatchVerb::Add.to_string(), "AddCondition");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchVerb {
    /// A condition was added.
    Add,
    /// A condition was changed.
    Change,
    /// A condition was removed.
    Remove,
}

impl fmt::Display for PatchVerb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Add => "AddCondition",
            Self::Change => "ChangeCondition",
            Self::Remove => "RemoveCondition",
        })
    }
}

/// Another writer changed a condition that this patch changes, to something else.
///
/// ```
/// use kube_status::{Draft, Ownership, Patch, Status};
/// let at = jiff::Timestamp::UNIX_EPOCH;
/// let ours = Draft::new("Ready", Status::True, "Up").into_condition(1, at);
/// let mut latest = vec![Draft::new("Ready", Status::False, "Down").into_condition(1, at)];
/// let patch = Patch::between(&[], &[ours]);
/// let conflict = patch.apply(&mut latest, &Ownership::none(), at).unwrap_err();
/// assert_eq!(conflict.type_name(), "Ready");
/// assert!(patch.apply(&mut latest, &Ownership::of(["Ready"]), at).is_ok());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Conflict {
    /// It differs from what was expected.
    #[error(
        "error patching conditions: The condition {type_:?} was modified by a different process and this caused a \
         merge/{verb} conflict: {difference}"
    )]
    Modified {
        /// The condition's type.
        type_: String,
        /// What was tried.
        verb: PatchVerb,
        /// The latest against the desired condition, field by field.
        difference: String,
    },
    /// It is gone.
    #[error(
        "error patching conditions: The condition {type_:?} was deleted by a different process and this caused a \
         merge/ChangeCondition conflict"
    )]
    Deleted {
        /// The condition's type.
        type_: String,
    },
}

impl Conflict {
    /// The type both sides changed.
    ///
    /// ```
    /// use kube_status::Conflict;
    /// assert_eq!(Conflict::Deleted { type_: "Ready".into() }.type_name(), "Ready");
    /// ```
    pub fn type_name(&self) -> &str {
        match self {
            Self::Modified { type_, .. } | Self::Deleted { type_ } => type_,
        }
    }
}

/// Which types a controller owns, and the order of the result.
///
/// ```
/// use kube_status::Ownership;
/// let mine = Ownership::of(["Ready", "SlotsCovered"]);
/// assert!(mine.owns("Ready") && !mine.owns("Paused"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Ownership<'a> {
    owned: Vec<Cow<'a, str>>,
    everything: bool,
    order: Option<Order<'a>>,
    rules: Rules,
}

impl<'a> Ownership<'a> {
    /// Nothing is owned: every disagreement is a conflict.
    ///
    /// ```
    /// assert!(!kube_status::Ownership::none().owns("Ready"));
    /// ```
    pub fn none() -> Self {
        Self::default()
    }

    /// The types that only this controller writes: its value wins without a conflict.
    ///
    /// ```
    /// assert!(kube_status::Ownership::of(["Ready"]).owns("Ready"));
    /// ```
    pub fn of<T: Into<Cow<'a, str>>>(types: impl IntoIterator<Item = T>) -> Self {
        Self {
            owned: types.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }

    /// This controller's value wins for every type that the patch changes.
    ///
    /// ```
    /// assert!(kube_status::Ownership::force().owns("Anything"));
    /// ```
    pub fn force() -> Self {
        Self {
            everything: true,
            ..Self::default()
        }
    }

    /// The order of the result, instead of the generation's own.
    ///
    /// ```
    /// use kube_status::{Order, Ownership};
    /// let mine = Ownership::of(["Ready"]).order(Order::AS_GIVEN);
    /// # let _ = mine;
    /// ```
    #[must_use]
    pub fn order(mut self, order: Order<'a>) -> Self {
        self.order = Some(order);
        self
    }

    /// The rules of generation 1 by which a transition time moves; generation 2 has one rule only.
    ///
    /// ```
    /// use kube_status::{Ownership, severity::Rules};
    /// let mine = Ownership::of(["Ready"]).rules(Rules::GO);
    /// # let _ = mine;
    /// ```
    #[must_use]
    pub fn rules(mut self, rules: Rules) -> Self {
        self.rules = rules;
        self
    }

    /// The order and the rules of an API: [`Ownership::order`] and [`Ownership::rules`] in one.
    ///
    /// ```
    /// use kube_status::{Conventions, Ownership};
    /// let mine = Ownership::of(["Ready"]).conventions(Conventions::CLUSTER_API);
    /// # let _ = mine;
    /// ```
    #[must_use]
    pub fn conventions(self, conventions: Conventions) -> Self {
        self.order(conventions.order).rules(conventions.rules)
    }

    /// Whether this controller's value wins for a type.
    ///
    /// ```
    /// let mine = kube_status::Ownership::of(["Ready"]);
    /// assert!(mine.owns("Ready") && !mine.owns("Paused"));
    /// ```
    pub fn owns(&self, type_: &str) -> bool {
        self.everything || self.owned.iter().any(|t| *t == type_)
    }
}

/// What changed between two lists of conditions.
///
/// ```
/// use kube_status::{Draft, Order, Ownership, Patch, Status, set_in};
/// let now = jiff::Timestamp::UNIX_EPOCH;
/// let before = vec![];
/// let mut after = vec![];
/// let _ = set_in(&mut after, Draft::new("Ready", Status::True, "Up"), 1, now, &Order::STANDARD);
///
/// let mut latest = vec![Draft::new("Paused", Status::False, "Running").into_condition(1, now)];
/// let change = Patch::between(&before, &after).apply(&mut latest, &Ownership::none(), now)?;
/// assert!(change.must_write());
/// assert_eq!(latest.len(), 2);
/// # Ok::<_, kube_status::Conflict>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Patch<C = Condition>(Vec<PatchOperation<C>>);

impl<C: Patchable> Patch<C> {
    /// The operations that lead from one list to the other.
    ///
    /// ```
    /// use kube_status::{Draft, Patch};
    /// let ready = [Draft::good("Ready", "Up").into_condition(1, jiff::Timestamp::UNIX_EPOCH)];
    /// assert!(Patch::between(&ready, &ready).is_empty());
    /// ```
    pub fn between(before: &[C], after: &[C]) -> Self {
        let mut operations = Vec::new();
        for now in after {
            match find(before, now.type_name()) {
                None => operations.push(PatchOperation::Add { after: now.clone() }),
                Some(was) if !was.is_same(now) => {
                    operations.push(PatchOperation::Change {
                        before: was.clone(),
                        after: now.clone(),
                    });
                }
                Some(_) => {}
            }
        }
        for was in before {
            if find(after, was.type_name()).is_none() {
                operations.push(PatchOperation::Remove { before: was.clone() });
            }
        }
        Self(operations)
    }

    /// Whether there is nothing to do.
    ///
    /// ```
    /// use kube_status::{Draft, Patch};
    /// let ready = [Draft::good("Ready", "Up").into_condition(1, jiff::Timestamp::UNIX_EPOCH)];
    /// assert!(!Patch::between(&[], &ready).is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The operations, additions and changes in the order of the list, then removals.
    ///
    /// ```
    /// use kube_status::{Draft, Patch};
    /// let ready = [Draft::good("Ready", "Up").into_condition(1, jiff::Timestamp::UNIX_EPOCH)];
    /// assert_eq!(Patch::between(&[], &ready).operations().len(), 1);
    /// ```
    pub fn operations(&self) -> &[PatchOperation<C>] {
        &self.0
    }

    /// Applies the patch to the latest list. On a conflict the latest is left as it is.
    ///
    /// Where both sides agree the latest is kept, with its transition time. Even a forced change keeps the latest
    /// transition time while the status is equal. A condition without a time (the epoch) gets `now`.
    ///
    /// ```
    /// use kube_status::{Change, Draft, Ownership, Patch};
    /// let ready = [Draft::good("Ready", "Up").into_condition(1, jiff::Timestamp::UNIX_EPOCH)];
    /// let now = jiff::Timestamp::UNIX_EPOCH;
    /// let mut latest = Vec::new();
    /// let patch = Patch::between(&[], &ready);
    /// assert_eq!(patch.apply(&mut latest, &Ownership::none(), now), Ok(Change::Status));
    /// assert_eq!(patch.apply(&mut latest, &Ownership::none(), now), Ok(Change::Nothing));
    /// ```
    pub fn apply(&self, latest: &mut Vec<C>, ownership: &Ownership<'_>, now: Timestamp) -> Result<Change, Conflict> {
        if self.is_empty() {
            return Ok(Change::Nothing);
        }
        let mut next = latest.clone();
        let mut change = Change::Nothing;
        for operation in &self.0 {
            change = change.and(apply_one(operation, &mut next, ownership, now)?);
        }
        C::sort(&mut next, ownership.order);
        if change == Change::Nothing && next != *latest {
            change = Change::Text;
        }
        *latest = next;
        Ok(change)
    }
}

fn find<'l, C: Patchable>(list: &'l [C], type_: &str) -> Option<&'l C> {
    list.iter().find(|c| c.type_name() == type_)
}

fn apply_one<C: Patchable>(
    operation: &PatchOperation<C>,
    latest: &mut Vec<C>,
    ownership: &Ownership<'_>,
    now: Timestamp,
) -> Result<Change, Conflict> {
    let modified = |verb, current: &C, desired: &C| {
        let type_ = desired.type_name().to_owned();
        Err(Conflict::Modified {
            type_,
            verb,
            difference: current.difference(desired),
        })
    };
    match operation {
        PatchOperation::Add { after } | PatchOperation::Change { after, .. } if ownership.owns(after.type_name()) => {
            Ok(after.put_into(latest, now, ownership.rules))
        }
        PatchOperation::Add { after } => match find(latest, after.type_name()) {
            Some(current) if !current.is_same_state(after) => modified(PatchVerb::Add, current, after),
            Some(_) => Ok(Change::Nothing),
            None => Ok(after.put_into(latest, now, ownership.rules)),
        },
        PatchOperation::Change { before, after } => match find(latest, after.type_name()) {
            None => Err(Conflict::Deleted {
                type_: after.type_name().to_owned(),
            }),
            Some(current) if current.is_same(before) => Ok(after.put_into(latest, now, ownership.rules)),
            Some(current) if current.is_same_state(after) => Ok(Change::Nothing),
            Some(current) => modified(PatchVerb::Change, current, after),
        },
        PatchOperation::Remove { before } => {
            let type_ = before.type_name();
            match find(latest, type_) {
                Some(current) if !ownership.owns(type_) && !current.is_same_state(before) => {
                    modified(PatchVerb::Remove, current, before)
                }
                Some(_) => {
                    latest.retain(|c| c.type_name() != type_);
                    Ok(Change::Status)
                }
                None => Ok(Change::Nothing),
            }
        }
    }
}

/// The fields that differ, as `field: latest "a", desired "b"`.
pub(crate) fn describe(fields: &[(&str, &str, &str)]) -> String {
    let differing = fields.iter().filter(|(_, latest, desired)| latest != desired);
    let parts = differing.map(|(field, latest, desired)| format!("{field}: latest {latest:?}, desired {desired:?}"));
    parts.collect::<Vec<_>>().join("; ")
}

impl<C: Metav1> Patchable for C {
    fn type_name(&self) -> &str {
        &self.plain().type_
    }

    fn is_same_state(&self, other: &Self) -> bool {
        same_state(self, other)
    }

    fn is_same(&self, other: &Self) -> bool {
        same_state(self, other) && self.plain().last_transition_time == other.plain().last_transition_time
    }

    fn put_into(&self, list: &mut Vec<Self>, now: Timestamp, _: Rules) -> Change {
        let timed = |time: Time| {
            let mut new = self.clone();
            new.plain_mut().last_transition_time = time;
            new
        };
        let time = Time(whole_seconds(known_time(self.plain()).unwrap_or(now)));
        let Some(existing) = list.iter_mut().find(|c| c.plain().type_ == self.plain().type_) else {
            list.push(timed(time));
            return Change::Status;
        };
        if same_state(existing, self) {
            return Change::Nothing;
        }
        let status_changed = existing.plain().status != self.plain().status;
        let transition_time = existing.plain().last_transition_time.clone();
        *existing = timed(if status_changed { time } else { transition_time });
        if status_changed { Change::Status } else { Change::Text }
    }

    fn sort(list: &mut [Self], order: Option<Order<'_>>) {
        order.unwrap_or_default().sort(list);
    }

    fn difference(&self, other: &Self) -> String {
        let severity = |c: &Self| c.severity().map_or("", Severity::as_str);
        let generation = |c: &Self| c.plain().observed_generation.unwrap_or(0).to_string();
        let (ours, theirs) = (self.plain(), other.plain());
        describe(&[
            ("status", &ours.status, &theirs.status),
            ("severity", severity(self), severity(other)),
            ("reason", &ours.reason, &theirs.reason),
            ("message", &ours.message, &theirs.message),
            ("observedGeneration", &generation(self), &generation(other)),
        ])
    }
}

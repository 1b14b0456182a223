//! Set, find, remove and compare in a list of generation 1.

use jiff::Timestamp;

use super::{Condition, Draft, ORDER, Rules};
use crate::draft::whole_seconds;
use crate::patch::{Patchable, describe};
use crate::{Change, ConditionedMut, Order, Status};

/// Sets a condition on an object by the rules of its [conventions](crate::Conventions): the proposal's by default.
///
/// ```
/// use kube_status::severity::{Condition, Draft, Severity, set};
/// use kube_status::{Change, ConditionedMut};
/// fn wait(object: &mut impl ConditionedMut<Condition>, now: jiff::Timestamp) -> Change {
///     set(object, Draft::bad("VPCReady", Severity::Info, "Provisioning", "subnets are next"), now)
/// }
/// ```
pub fn set<T: ConditionedMut<Condition> + ?Sized>(object: &mut T, draft: Draft<'_>, now: Timestamp) -> Change {
    let rules = object.conventions().rules;
    set_in(object.conditions_mut(), draft, now, rules)
}

/// Sets a condition in a list, by rules of the caller's choice.
///
/// The state of a condition is its status, reason, severity and message. A transition time given in the draft counts
/// on creation, and, when only a change of status moves the time, on such a change.
///
/// ```
/// use kube_status::severity::{Draft, Rules, Severity, set_in};
/// use kube_status::Change;
/// let (first, later) = (jiff::Timestamp::from_second(100)?, jiff::Timestamp::from_second(200)?);
/// let mut list = Vec::new();
/// let _ = set_in(&mut list, Draft::bad("A", Severity::Info, "Waiting", "1 of 3"), first, Rules::GO);
/// let change = set_in(&mut list, Draft::bad("A", Severity::Info, "Waiting", "2 of 3"), later, Rules::GO);
/// assert_eq!((change, list[0].last_transition_time()), (Change::Text, Some(later)));
/// # Ok::<_, jiff::Error>(())
/// ```
pub fn set_in(conditions: &mut Vec<Condition>, draft: Draft<'_>, now: Timestamp, rules: Rules) -> Change {
    let change = put(conditions, draft, now, rules);
    change.and(sort(conditions))
}

fn put(conditions: &mut Vec<Condition>, draft: Draft<'_>, now: Timestamp, rules: Rules) -> Change {
    let Some(existing) = conditions.iter_mut().find(|c| c.type_ == draft.type_) else {
        conditions.push(draft.into_condition(now));
        return Change::Status;
    };
    let draft = draft.raised(existing, now);
    if draft.has_same_content_as(existing) {
        return Change::Nothing;
    }
    let reordered = existing.status != draft.status;
    let time = match (rules.any_change_moves_time, reordered) {
        (true, _) => Some(whole_seconds(now)),
        (false, true) => Some(whole_seconds(draft.since.unwrap_or(now))),
        (false, false) => existing.last_transition_time,
    };
    *existing = Condition {
        last_transition_time: time,
        ..draft.into_condition(now)
    };
    if reordered { Change::Status } else { Change::Text }
}

/// A list that was out of order and is put in order has changed.
fn sort(conditions: &mut [Condition]) -> Change {
    if conditions.is_sorted_by(|a, b| ORDER.compare(&a.type_, &b.type_).is_le()) {
        return Change::Nothing;
    }
    ORDER.sort_by_type(conditions, Condition::type_);
    Change::Text
}

/// Removes every condition of a type and says whether there was one.
///
/// ```
/// assert!(!kube_status::severity::remove(&mut vec![], "Paused"));
/// ```
#[must_use = "says whether the status must be written"]
pub fn remove(conditions: &mut Vec<Condition>, type_: impl AsRef<str>) -> bool {
    let before = conditions.len();
    conditions.retain(|c| c.type_ != type_.as_ref());
    conditions.len() != before
}

/// The first condition of a type.
///
/// ```
/// assert!(kube_status::severity::find(&[], "Ready").is_none());
/// ```
pub fn find(conditions: &[Condition], type_: impl AsRef<str>) -> Option<&Condition> {
    let type_ = type_.as_ref();
    conditions.iter().find(|c| c.type_ == type_)
}

/// Whether the condition is there and `True`.
///
/// ```
/// assert!(!kube_status::severity::is_true(&[], "Ready"));
/// ```
pub fn is_true(conditions: &[Condition], type_: impl AsRef<str>) -> bool {
    find(conditions, type_).is_some_and(|c| c.status == Status::True)
}

/// Whether the condition is there and `False`.
///
/// ```
/// assert!(!kube_status::severity::is_false(&[], "Ready"));
/// ```
pub fn is_false(conditions: &[Condition], type_: impl AsRef<str>) -> bool {
    find(conditions, type_).is_some_and(|c| c.status == Status::False)
}

/// Whether the condition is `Unknown` or not there.
///
/// ```
/// assert!(kube_status::severity::is_unknown(&[], "Ready"));
/// ```
pub fn is_unknown(conditions: &[Condition], type_: impl AsRef<str>) -> bool {
    find(conditions, type_).is_none_or(|c| c.status == Status::Unknown)
}

/// Whether two conditions say the same: everything but the transition time.
///
/// ```
/// use kube_status::severity::{Draft, same_state};
/// let early = Draft::good("Ready").into_condition(jiff::Timestamp::from_second(1)?);
/// let late = Draft::good("Ready").into_condition(jiff::Timestamp::from_second(2)?);
/// assert!(same_state(&early, &late));
/// # Ok::<_, jiff::Error>(())
/// ```
pub fn same_state(a: &Condition, b: &Condition) -> bool {
    a.type_ == b.type_
        && a.status == b.status
        && a.reason == b.reason
        && a.severity == b.severity
        && a.message == b.message
}

impl Patchable for Condition {
    fn type_name(&self) -> &str {
        &self.type_
    }

    fn is_same_state(&self, other: &Self) -> bool {
        same_state(self, other)
    }

    fn is_same(&self, other: &Self) -> bool {
        self == other
    }

    fn put_into(&self, list: &mut Vec<Self>, now: Timestamp, rules: Rules) -> Change {
        set_in(list, Draft::stored(self), now, rules)
    }

    fn sort(list: &mut [Self], order: Option<Order<'_>>) {
        // Every addition and change has put the list in this generation's order already; a removal leaves it alone.
        if let Some(order) = order {
            order.sort_by_type(list, Self::type_);
        }
    }

    fn difference(&self, other: &Self) -> String {
        let severity = |c: &Self| c.severity.map_or("", super::Severity::as_str);
        describe(&[
            ("status", self.status.as_str(), other.status.as_str()),
            ("severity", severity(self), severity(other)),
            ("reason", &self.reason, &other.reason),
            ("message", &self.message, &other.message),
        ])
    }
}

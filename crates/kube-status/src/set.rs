//! Set, find, remove and compare in a list of conditions.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use crate::draft::{stored_generation, whole_seconds};
use crate::{Change, ConditionedMut, Draft, Order, Status};

/// Sets a condition on an object, with the object's generation, in the [standard order](Order::STANDARD).
///
/// The transition time moves only when the status changes. When nothing changes nothing is allocated, sorted or
/// touched.
///
/// ```
/// use kube_status::{Change, Draft, Status, set_in};
/// # use kube_status::{Conditioned, ConditionedMut, set};
/// # use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
/// # #[derive(Default)] struct Cache { conditions: Vec<Condition> }
/// # impl Conditioned for Cache {
/// #     fn kind(&self) -> &str { "Cache" }
/// #     fn name(&self) -> &str { "c" }
/// #     fn generation(&self) -> i64 { 4 }
/// #     fn conditions(&self) -> &[Condition] { &self.conditions }
/// # }
/// # impl ConditionedMut for Cache { fn conditions_mut(&mut self) -> &mut Vec<Condition> { &mut self.conditions } }
/// let mut cache = Cache::default();
/// let now = jiff::Timestamp::UNIX_EPOCH;
/// assert_eq!(set(&mut cache, Draft::new("Ready", Status::True, "Up"), now), Change::Status);
/// assert_eq!(set(&mut cache, Draft::new("Ready", Status::True, "Up"), now), Change::Nothing);
/// ```
pub fn set<T: ConditionedMut + ?Sized>(object: &mut T, draft: Draft<'_>, now: Timestamp) -> Change {
    let generation = object.generation();
    set_in(object.conditions_mut(), draft, generation, now, &Order::STANDARD)
}

/// Sets a condition in a list: [`set`] with the generation and the order as arguments.
///
/// ```
/// use kube_status::{Change, Draft, Order, Status, set_in};
/// let mut list = Vec::new();
/// let (first, later) = (jiff::Timestamp::from_second(100)?, jiff::Timestamp::from_second(200)?);
/// let starting = Draft::new("Ready", Status::False, "Starting");
/// assert_eq!(set_in(&mut list, starting.clone(), 1, first, &Order::STANDARD), Change::Status);
/// let text = starting.message("2 of 3");
/// assert_eq!(set_in(&mut list, text, 1, later, &Order::STANDARD), Change::Text);
/// assert_eq!(list[0].last_transition_time.0, first);
/// # Ok::<_, jiff::Error>(())
/// ```
pub fn set_in(
    conditions: &mut Vec<Condition>,
    draft: Draft<'_>,
    generation: i64,
    now: Timestamp,
    order: &Order<'_>,
) -> Change {
    let change = put(conditions, draft, generation, now);
    if change.must_write() {
        order.sort(conditions);
    }
    change
}

/// [`set_in`] without the sort.
pub(crate) fn put(conditions: &mut Vec<Condition>, draft: Draft<'_>, generation: i64, now: Timestamp) -> Change {
    let Some(existing) = conditions.iter_mut().find(|c| c.type_ == draft.type_) else {
        conditions.push(draft.into_condition(generation, now));
        return Change::Status;
    };
    let mut change = Change::Nothing;
    if existing.status != draft.status.as_str() {
        draft.status.as_str().clone_into(&mut existing.status);
        existing.last_transition_time = Time(whole_seconds(draft.since.unwrap_or(now)));
        change = Change::Status;
    }
    if existing.reason != draft.reason {
        existing.reason = draft.reason.into_owned();
        change = change.and(Change::Text);
    }
    if existing.message != draft.message {
        existing.message = draft.message.into_owned();
        change = change.and(Change::Text);
    }
    if existing.observed_generation.unwrap_or(0) != generation {
        existing.observed_generation = stored_generation(generation);
        change = change.and(Change::Text);
    }
    change
}

/// Removes every condition of a type and says whether there was one.
///
/// ```
/// use kube_status::{Draft, Status, remove};
/// let mut list = vec![Draft::new("Paused", Status::True, "R").into_condition(1, jiff::Timestamp::UNIX_EPOCH)];
/// assert!(remove(&mut list, "Paused"));
/// assert!(!remove(&mut list, "Paused"));
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
/// assert!(kube_status::find(&[], "Ready").is_none());
/// ```
pub fn find(conditions: &[Condition], type_: impl AsRef<str>) -> Option<&Condition> {
    let type_ = type_.as_ref();
    conditions.iter().find(|c| c.type_ == type_)
}

fn has_status(conditions: &[Condition], type_: &str, status: Status) -> bool {
    find(conditions, type_).is_some_and(|c| c.status == status.as_str())
}

/// Whether the condition is there and `True`.
///
/// ```
/// assert!(!kube_status::is_true(&[], "Ready"));
/// ```
pub fn is_true(conditions: &[Condition], type_: impl AsRef<str>) -> bool {
    has_status(conditions, type_.as_ref(), Status::True)
}

/// Whether the condition is there and `False`.
///
/// ```
/// assert!(!kube_status::is_false(&[], "Ready"));
/// ```
pub fn is_false(conditions: &[Condition], type_: impl AsRef<str>) -> bool {
    has_status(conditions, type_.as_ref(), Status::False)
}

/// Whether the condition is `Unknown` or not there: what has not been reported is not known.
///
/// ```
/// assert!(kube_status::is_unknown(&[], "Ready"));
/// ```
pub fn is_unknown(conditions: &[Condition], type_: impl AsRef<str>) -> bool {
    find(conditions, type_).is_none_or(|c| c.status == Status::Unknown.as_str())
}

/// Whether two conditions say the same: everything but the transition time.
///
/// ```
/// use kube_status::{Draft, Status, same_state};
/// let early = Draft::new("Ready", Status::True, "Up").into_condition(1, jiff::Timestamp::from_second(1)?);
/// let late = Draft::new("Ready", Status::True, "Up").into_condition(1, jiff::Timestamp::from_second(9)?);
/// assert!(same_state(&early, &late));
/// # Ok::<_, jiff::Error>(())
/// ```
pub fn same_state(a: &Condition, b: &Condition) -> bool {
    same_words(a, b) && a.observed_generation.unwrap_or(0) == b.observed_generation.unwrap_or(0)
}

/// Whether two conditions say the same of possibly different generations of the object.
///
/// ```
/// use kube_status::{Draft, Status, same_state, same_words};
/// let first = Draft::new("Ready", Status::True, "Up").into_condition(1, jiff::Timestamp::UNIX_EPOCH);
/// let second = Draft::new("Ready", Status::True, "Up").into_condition(2, jiff::Timestamp::UNIX_EPOCH);
/// assert!(same_words(&first, &second) && !same_state(&first, &second));
/// ```
pub fn same_words(a: &Condition, b: &Condition) -> bool {
    a.type_ == b.type_ && a.status == b.status && a.reason == b.reason && a.message == b.message
}

//! Set, find, remove and compare in a list of conditions.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::draft::{stored_generation, whole_seconds};
use crate::{Change, ConditionedMut, Draft, Metav1, Order, Status};

/// Sets a condition on an object, with the object's generation, in the order of the object's
/// [conventions](crate::Conventions): the [standard order](Order::STANDARD) by default.
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
pub fn set<C: Metav1, T: ConditionedMut<C> + ?Sized>(object: &mut T, draft: Draft<'_>, now: Timestamp) -> Change {
    let (generation, order) = (object.generation(), object.conventions().order);
    set_in(object.conditions_mut(), draft, generation, now, &order)
}

/// Sets a condition in a list: [`set`] with the generation and the order as arguments.
///
/// ```
/// use kube_status::{Change, Condition, Draft, Order, Status, set_in};
/// let mut list: Vec<Condition> = Vec::new();
/// let (first, later) = (jiff::Timestamp::from_second(100)?, jiff::Timestamp::from_second(200)?);
/// let starting = Draft::new("Ready", Status::False, "Starting");
/// assert_eq!(set_in(&mut list, starting.clone(), 1, first, &Order::STANDARD), Change::Status);
/// let text = starting.message("2 of 3");
/// assert_eq!(set_in(&mut list, text, 1, later, &Order::STANDARD), Change::Text);
/// assert_eq!(list[0].last_transition_time.0, first);
/// # Ok::<_, jiff::Error>(())
/// ```
pub fn set_in<C: Metav1>(
    conditions: &mut Vec<C>,
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
pub(crate) fn put<C: Metav1>(conditions: &mut Vec<C>, draft: Draft<'_>, generation: i64, now: Timestamp) -> Change {
    let Some(stored) = conditions.iter_mut().find(|c| c.plain().type_ == draft.type_) else {
        conditions.push(C::of_draft(draft, generation, now));
        return Change::Status;
    };
    let mut change = Change::Nothing;
    if stored.regrade(draft.severity_beside(stored, now)) {
        change = Change::Text;
    }
    let existing = stored.plain_mut();
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
pub fn remove<C: Metav1>(conditions: &mut Vec<C>, type_: impl AsRef<str>) -> bool {
    let before = conditions.len();
    conditions.retain(|c| c.plain().type_ != type_.as_ref());
    conditions.len() != before
}

/// The first condition of a type.
///
/// ```
/// use kube_status::{Draft, Status, find};
/// let list = [Draft::new("Ready", Status::True, "Up").into_condition(1, jiff::Timestamp::UNIX_EPOCH)];
/// assert!(find(&list, "Ready").is_some() && find(&list, "Paused").is_none());
/// ```
pub fn find<C: Metav1>(conditions: &[C], type_: impl AsRef<str>) -> Option<&C> {
    let type_ = type_.as_ref();
    conditions.iter().find(|c| c.plain().type_ == type_)
}

/// The condition as it is now, if it changed to this reason.
///
/// This is when an event is due. A change of status alone would miss a new cause of a condition that stays bad, and an
/// event at every reconcile would repeat it.
///
/// ```
/// use kube_status::{Draft, transitioned_to};
/// let ready = |reason| [Draft::bad("Ready", reason).message("0 of 1").into_condition(1, jiff::Timestamp::UNIX_EPOCH)];
/// let (starting, crashed) = (ready("Starting"), ready("Crashed"));
/// assert_eq!(transitioned_to(&starting, &crashed, "Ready", "Crashed").map(|now| &*now.message), Some("0 of 1"));
/// assert_eq!(transitioned_to(&crashed, &crashed, "Ready", "Crashed"), None);
/// ```
pub fn transitioned_to<'a, C: Metav1>(
    before: &[C],
    now: &'a [C],
    type_: impl AsRef<str>,
    reason: impl AsRef<str>,
) -> Option<&'a C> {
    let has_it = |one: &&C| one.plain().reason == reason.as_ref();
    if find(before, type_.as_ref()).as_ref().is_some_and(has_it) {
        return None;
    }
    find(now, type_).filter(has_it)
}

fn has_status<C: Metav1>(conditions: &[C], type_: &str, status: Status) -> bool {
    find(conditions, type_).is_some_and(|c| c.plain().status == status.as_str())
}

/// Whether the condition is there and `True`.
///
/// ```
/// use kube_status::{Draft, Status, is_true};
/// let list = [Draft::new("Ready", Status::True, "Up").into_condition(1, jiff::Timestamp::UNIX_EPOCH)];
/// assert!(is_true(&list, "Ready") && !is_true(&list, "Available"));
/// ```
pub fn is_true<C: Metav1>(conditions: &[C], type_: impl AsRef<str>) -> bool {
    has_status(conditions, type_.as_ref(), Status::True)
}

/// Whether the condition is there and `False`.
///
/// ```
/// use kube_status::{Draft, Status, is_false};
/// let list = [Draft::new("Ready", Status::False, "Down").into_condition(1, jiff::Timestamp::UNIX_EPOCH)];
/// assert!(is_false(&list, "Ready") && !is_false(&list, "Available"));
/// ```
pub fn is_false<C: Metav1>(conditions: &[C], type_: impl AsRef<str>) -> bool {
    has_status(conditions, type_.as_ref(), Status::False)
}

/// Whether the condition is `Unknown` or not there: what has not been reported is not known.
///
/// ```
/// use kube_status::{Draft, Status, is_unknown};
/// let list = [Draft::new("Ready", Status::True, "Up").into_condition(1, jiff::Timestamp::UNIX_EPOCH)];
/// assert!(!is_unknown(&list, "Ready") && is_unknown(&list, "Available"));
/// ```
pub fn is_unknown<C: Metav1>(conditions: &[C], type_: impl AsRef<str>) -> bool {
    find(conditions, type_).is_none_or(|c| c.plain().status == Status::Unknown.as_str())
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
pub fn same_state<C: Metav1>(a: &C, b: &C) -> bool {
    let generation = |c: &C| c.plain().observed_generation.unwrap_or(0);
    same_except_generation(a, b) && generation(a) == generation(b)
}

/// Whether two conditions say the same of possibly different generations of the object.
///
/// ```
/// use kube_status::{Draft, Status, same_state, same_except_generation};
/// let first = Draft::new("Ready", Status::True, "Up").into_condition(1, jiff::Timestamp::UNIX_EPOCH);
/// let second = Draft::new("Ready", Status::True, "Up").into_condition(2, jiff::Timestamp::UNIX_EPOCH);
/// assert!(same_except_generation(&first, &second) && !same_state(&first, &second));
/// ```
pub fn same_except_generation<C: Metav1>(a: &C, b: &C) -> bool {
    let severity = a.severity() == b.severity();
    let (a, b) = (a.plain(), b.plain());
    a.type_ == b.type_ && a.status == b.status && severity && a.reason == b.reason && a.message == b.message
}

//! Generation 2 and apimachinery's helpers.

use kube_status::merge::{Groups, Input, Priority, Standard};
use kube_status::{
    Aggregate, Condition, Conditioned, Draft, Mirror, Order, Ownership, Patch, Polarity, Status, Summary, Time,
    Untyped, whole_seconds,
};
use serde_json::{Value, json};

use super::{list, now, outcome, wire};
use crate::case::{Case, Fallback, Object, Sorting, Strategy, Words};

const WAITING: &str = "WaitingForMachine";

/// An object of a case, with its conditions as this crate stores them.
pub struct Stored<'c> {
    object: &'c Object,
    conditions: Vec<Condition>,
}

impl<'c> Stored<'c> {
    pub fn new(object: &'c Object) -> Self {
        Self {
            object,
            conditions: object.conditions.iter().map(condition).collect(),
        }
    }
}

impl Conditioned for Stored<'_> {
    fn kind(&self) -> &str {
        &self.object.kind
    }
    fn name(&self) -> &str {
        &self.object.name
    }
    fn generation(&self) -> i64 {
        self.object.generation
    }
    fn conditions(&self) -> &[Condition] {
        &self.conditions
    }
    fn is_prominent(&self) -> bool {
        self.object.control_plane && self.object.kind == "Machine"
    }
}

fn condition(words: &Words) -> Condition {
    Condition {
        last_transition_time: Time(words.last_transition_time.unwrap_or_default()),
        message: words.message.clone(),
        observed_generation: words.observed_generation.filter(|g| *g != 0),
        reason: words.reason.clone(),
        status: words.status.clone(),
        type_: words.type_.clone(),
    }
}

fn draft(words: &Words) -> Draft<'_> {
    let made = Draft::new(&words.type_, Status::read(&words.status), &words.reason).message(&words.message);
    match words.last_transition_time {
        Some(since) => made.since(since),
        None => made,
    }
}

fn order(sorting: Sorting) -> Order<'static> {
    match sorting {
        Sorting::Default => Order::CLUSTER_API,
        Sorting::None => Order::AS_GIVEN,
        Sorting::ByName => Order::new(&[], &[]),
    }
}

/// The answer, or nothing if the case is of another generation.
pub fn answer(case: &Case) -> Option<Value> {
    Some(match case {
        Case::Set {
            object,
            condition,
            order: sorting,
        } => {
            let mut stored = Stored::new(object);
            let (words, order) = (draft(condition), order(*sorting));
            let _ = kube_status::set_in(&mut stored.conditions, words, object.generation, now(), &order);
            list(&stored.conditions)
        }
        Case::Delete { object, type_ } => {
            let mut stored = Stored::new(object);
            let _ = kube_status::remove(&mut stored.conditions, type_);
            list(&stored.conditions)
        }
        Case::Get { object, type_ } => get(object, type_),
        Case::Summary {
            object,
            target,
            types,
            negative,
            ignore,
            overrides,
            strategy,
        } => {
            let strategy = strategy.as_ref().map(standard);
            let mut summary = Summary::new(target)
                .types(types)
                .negative(negative)
                .ignore_if_missing(ignore)
                .overriding(overrides.iter().map(draft));
            if let Some(strategy) = &strategy {
                summary = summary.strategy(strategy);
            }
            outcome(summary.of(&Stored::new(object)), |draft| stated(&draft))
        }
        Case::Mirror {
            object,
            type_,
            target,
            fallback,
        } => stated(&mirror(type_, target, fallback.as_ref()).of(&Stored::new(object))),
        Case::MirrorUnstructured {
            content,
            type_,
            target,
            fallback,
        } => outcome(Untyped::<Condition>::read(content), |object| {
            stated(&mirror(type_, target, fallback.as_ref()).of(&object))
        }),
        Case::Aggregate {
            objects,
            type_,
            target,
            negative,
            strategy,
        } => {
            let strategy = strategy.as_ref().map(standard);
            let objects: Vec<Stored<'_>> = objects.iter().map(Stored::new).collect();
            let mut aggregate = Aggregate::new(type_);
            if negative.as_ref().is_some_and(|types| !types.is_empty()) {
                aggregate = aggregate.polarity(Polarity::Negative);
            }
            if !target.is_empty() {
                aggregate = aggregate.target(target);
            }
            if let Some(strategy) = &strategy {
                aggregate = aggregate.strategy(strategy);
            }
            outcome(aggregate.of(&objects), |draft| stated(&draft))
        }
        Case::Plural { kind } => json!({"facts": {"plural": kube_status::pluralize(kind)}}),
        Case::MetaSet { object, condition } => {
            let mut stored = Stored::new(object);
            let generation = condition.observed_generation.unwrap_or(0);
            let order = Order::AS_GIVEN;
            let change = kube_status::set_in(&mut stored.conditions, draft(condition), generation, now(), &order);
            changed(change.must_write(), &stored)
        }
        Case::MetaRemove { object, type_ } => {
            let mut stored = Stored::new(object);
            let removed = kube_status::remove(&mut stored.conditions, type_);
            changed(removed, &stored)
        }
        Case::Patch {
            before,
            after,
            latest,
            owned,
            force,
            order: sorting,
        } => {
            let ownership = if *force {
                Ownership::force()
            } else {
                Ownership::of(owned)
            };
            let patch = Patch::between(&Stored::new(before).conditions, &Stored::new(after).conditions);
            let mut latest = Stored::new(latest).conditions;
            let outcome_of = patch.apply(&mut latest, &ownership.order(order(*sorting)), now());
            outcome(outcome_of, |_| list(&latest))
        }
        _ => return None,
    })
}

fn changed(changed: bool, stored: &Stored<'_>) -> Value {
    let mut answer = list(&stored.conditions);
    answer["changed"] = changed.into();
    answer
}

/// A computed condition, before it is set: no generation yet, and a time only where it was copied.
fn stated(draft: &Draft<'_>) -> Value {
    let mut fields = json!({
        "type": draft.type_,
        "status": draft.status,
        "reason": draft.reason,
        "message": draft.message,
    });
    if let Some(since) = draft.since {
        fields["lastTransitionTime"] = json!(whole_seconds(since));
    }
    json!({"condition": fields})
}

fn get(object: &Object, type_: &str) -> Value {
    let stored = Stored::new(object);
    let found = kube_status::find(&stored.conditions, type_);
    let mut answer = json!({"facts": {
        "has": found.is_some(),
        "isTrue": kube_status::is_true(&stored.conditions, type_),
        "isFalse": kube_status::is_false(&stored.conditions, type_),
        "isUnknown": kube_status::is_unknown(&stored.conditions, type_),
        "reason": found.map_or("", |c| &c.reason),
        "message": found.map_or("", |c| &c.message),
    }});
    if let Some(found) = found {
        answer["condition"] = wire(found);
    }
    answer
}

fn mirror<'c>(type_: &'c str, target: &'c str, fallback: Option<&'c Fallback>) -> Mirror<'c> {
    let mut mirror = Mirror::new(type_);
    if !target.is_empty() {
        mirror = mirror.target(target);
    }
    match fallback {
        Some(f) => mirror.fallback(Status::read(&f.status), &f.reason, &f.message),
        None => mirror,
    }
}

fn standard(options: &Strategy) -> Standard<'_> {
    let mut made = Standard::new().negative(&options.negative);
    if options.negative_target {
        made = made.target(Polarity::Negative);
    }
    if let Some([issues, unknown, info]) = &options.reasons {
        made = made.reasons(issues, unknown, info);
    }
    if options.first_reason {
        made = made.reason(first_reason);
    }
    if options.patient {
        made = made.priority(|c| patient(c, &options.negative));
    }
    match options.max_lines {
        Some(most) => made.lines(move |mut lines| {
            lines.truncate(most);
            lines
        }),
        None => made,
    }
}

fn first_reason(groups: &Groups<'_, '_>) -> String {
    let first = [&groups.issues, &groups.unknown, &groups.info]
        .into_iter()
        .flatten()
        .next();
    first.map_or_else(String::new, |c| format!("{} of {}", c.reason, c.owner.name))
}

fn patient(input: &Input<'_>, negative: &[String]) -> Priority {
    let is_negative = negative.iter().any(|t| t == input.type_);
    match input.reason {
        WAITING => Priority::Info,
        _ if is_negative => Priority::of(input.status, Polarity::Negative),
        _ => Priority::of(input.status, Polarity::Positive),
    }
}

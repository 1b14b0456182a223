//! Generation 1, by Go's rules where the proposal and Go part.

use kube_status::severity::{self, Condition, Draft, Rules, Severity};
use kube_status::{Conditioned, ConditionedMut, Negative, Ownership, Patch};
use serde_json::Value;

use super::{list, now, outcome};
use crate::case::{Case, Merge1, Object, Words};

/// An object of a case, with its conditions as this crate stores them.
struct Stored<'c> {
    object: &'c Object,
    conditions: Vec<Condition>,
}

impl<'c> Stored<'c> {
    fn new(object: &'c Object) -> Self {
        let read = |words: &Words| serde_json::from_value(serde_json::to_value(words)?);
        let conditions = object.conditions.iter().map(read).collect::<Result<_, _>>();
        Self {
            object,
            conditions: conditions.unwrap_or_default(),
        }
    }
}

impl Conditioned<Condition> for Stored<'_> {
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
}

impl ConditionedMut<Condition> for Stored<'_> {
    fn conditions_mut(&mut self) -> &mut Vec<Condition> {
        &mut self.conditions
    }
}

/// The answer, or nothing if the case is of another generation.
pub fn answer(case: &Case) -> Option<Value> {
    Some(match case {
        Case::Set1 { object, condition } => set(object, stated(condition), Rules::GO),
        Case::SetWithTime1 { object, condition } => {
            let by_status = Rules {
                any_change_moves_time: false,
                ..Rules::GO
            };
            set(object, stated(condition), by_status)
        }
        Case::Mark1 {
            object,
            condition,
            negative,
        } => set(object, marked(condition, *negative), Rules::GO),
        Case::Delete1 { object, type_ } => {
            let mut stored = Stored::new(object);
            let _ = severity::remove(&mut stored.conditions, type_);
            list(&stored.conditions)
        }
        Case::Summary1 { object, merge } => {
            let mut stored = Stored::new(object);
            let _ = summary(merge).set(&mut stored, now());
            list(&stored.conditions)
        }
        Case::Mirror1 {
            object,
            from,
            target,
            fallback,
        } => {
            let mut mirror = severity::Mirror::new(target).rules(Rules::GO);
            mirror = match fallback {
                Some(f) if f.value => mirror.fallback_good(),
                Some(f) => mirror.fallback_bad(severity_of(&f.severity)?, &f.reason, &f.message),
                None => mirror,
            };
            let mut stored = Stored::new(object);
            let _ = mirror.set(&Stored::new(from), &mut stored, now());
            list(&stored.conditions)
        }
        Case::Aggregate1 {
            object,
            objects,
            target,
            merge,
        } => {
            let aggregate = severity::Aggregate::new(target)
                .rules(Rules::GO)
                .source_reference(merge.source_ref)
                .step_counter(merge.step_counter);
            let objects: Vec<Stored<'_>> = objects.iter().map(Stored::new).collect();
            let mut stored = Stored::new(object);
            let _ = aggregate.set(&objects, &mut stored, now());
            list(&stored.conditions)
        }
        Case::Patch1 {
            before,
            after,
            latest,
            owned,
            force,
        } => {
            let ownership = if *force {
                Ownership::force()
            } else {
                Ownership::of(owned)
            };
            let patch = Patch::between(&Stored::new(before).conditions, &Stored::new(after).conditions);
            let mut latest = Stored::new(latest).conditions;
            let applied = patch.apply(&mut latest, &ownership.rules(Rules::GO), now());
            outcome(applied, |_| list(&latest))
        }
        _ => return None,
    })
}

fn set(object: &Object, draft: Option<Draft<'_>>, rules: Rules) -> Value {
    let mut stored = Stored::new(object);
    if let Some(draft) = draft {
        let _ = severity::set_in(&mut stored.conditions, draft, now(), rules);
    }
    list(&stored.conditions)
}

fn severity_of(word: &str) -> Option<Severity> {
    match word {
        "Error" => Some(Severity::Error),
        "Warning" => Some(Severity::Warning),
        "Info" => Some(Severity::Info),
        _ => None,
    }
}

/// The draft with these fields: a severity means that something is wrong, and the status then gives the polarity.
fn stated(words: &Words) -> Option<Draft<'_>> {
    let negative = match severity_of(&words.severity) {
        Some(_) => words.status == "True",
        None => words.status == "False",
    };
    let made = marked(words, negative)?;
    Some(match words.last_transition_time {
        Some(since) => made.since(since),
        None => made,
    })
}

/// The draft of a type of known polarity.
fn marked(words: &Words, negative: bool) -> Option<Draft<'_>> {
    let type_ = words.type_.as_str();
    let good = if negative { "False" } else { "True" };
    Some(match (words.status.as_str(), negative) {
        ("Unknown", _) => Draft::unknown(type_, &words.reason, &words.message),
        (status, false) if status == good => Draft::good(type_),
        (status, true) if status == good => Draft::good(Negative(type_)),
        (_, false) => Draft::bad(type_, severity_of(&words.severity)?, &words.reason, &words.message),
        (_, true) => Draft::bad(
            Negative(type_),
            severity_of(&words.severity)?,
            &words.reason,
            &words.message,
        ),
    })
}

fn summary(merge: &Merge1) -> severity::Summary<'_> {
    let mut summary = severity::Summary::new()
        .rules(Rules::GO)
        .step_counter(merge.step_counter)
        .source_reference(merge.source_ref);
    if let Some(types) = &merge.types {
        summary = summary.types(types);
    }
    if let Some(types) = &merge.negative {
        summary = summary.negative(types);
    }
    match &merge.step_counter_only {
        Some(types) => summary.step_counter_only_for(types),
        None => summary,
    }
}

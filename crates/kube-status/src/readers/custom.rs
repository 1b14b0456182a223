//! Any other object: the conventions of kstatus (Reconciling, Stalled, Ready), with one exception.
//!
//! For kstatus an object without conditions is current. That is right for built-in kinds (a `ConfigMap` is done when it
//! exists), but a false Ready for a custom resource while its controller is not running. Here a custom resource without
//! conditions is unknown.

use super::fields::{Fields, ObservedCondition, ObservedConditions, ReadError};
use super::reading::{Health, Reading, or};

/// The condition that speaks for the whole object, best first.
const SPEAKERS: [&str; 3] = ["Ready", "Available", "Succeeded"];

pub(super) fn custom(object: &Fields<'_>, built_in: bool) -> Result<Reading, ReadError> {
    let (spec, status) = (object.map("spec")?, object.map("status")?);
    let conditions = ObservedConditions::of(&status)?;
    let generation = object.map("metadata")?.number("generation")?;

    if let Some(stalled) = conditions.find_true("Stalled") {
        let message = or(stalled.message, "the controller has given up");
        return Ok(Reading::failed(or(stalled.reason, "Stalled"), message).since(stalled.since));
    }
    if let Some(busy) = conditions.find_true("Reconciling") {
        let message = or(busy.message, "the controller is at work");
        return Ok(Reading::progressing(or(busy.reason, "Reconciling"), message).since(busy.since));
    }
    if let Some(condition) = SPEAKERS.iter().find_map(|type_| conditions.find(type_)) {
        return Ok(from_condition(condition, generation));
    }
    if built_in {
        return Ok(Reading::ready("Exists", "exists; this kind reports nothing more"));
    }
    if spec.is_present() && !status.is_present() {
        return Ok(Reading::unknown(
            "NotYetReported",
            "no status yet: is its controller running?",
        ));
    }
    if conditions.is_empty() {
        return Ok(if spec.is_present() {
            Reading::unknown("NoConditions", "the status has no conditions")
        } else {
            Reading::ready("Exists", "exists; this kind reports nothing more")
        });
    }
    let types: Vec<_> = conditions.types().collect();
    Ok(Reading::unknown(
        "NoReadyCondition",
        format!("no Ready condition among {}", types.join(", ")),
    ))
}

fn from_condition(condition: &ObservedCondition<'_>, generation: Option<i64>) -> Reading {
    if let (Some(observed), Some(now)) = (condition.observed_generation, generation)
        && observed < now
    {
        return Reading::progressing(
            "GenerationNotObserved",
            format!(
                "{} speaks of generation {observed}, the object is at {now}",
                condition.type_
            ),
        );
    }
    let (health, reason, fallback) = match condition.status {
        "True" => (Health::Ready, condition.type_.to_owned(), "ready"),
        "False" => {
            let health = match condition.severity {
                "Error" => Health::Failed,
                "Warning" => Health::Stuck,
                _ => Health::Progressing,
            };
            (health, format!("Not{}", condition.type_), "not ready, no cause given")
        }
        _ => (
            Health::Unknown,
            format!("{}Unknown", condition.type_),
            "not known, no cause given",
        ),
    };
    Reading::new(health, or(condition.reason, &reason), or(condition.message, fallback)).since(condition.since)
}

//! Any other object: the conventions of kstatus (Reconciling, Stalled, Ready), with one exception.
//!
//! For kstatus an object without conditions is current. That is right for built-in kinds (a `ConfigMap` is done when it
//! exists), but a false Ready for a custom resource while its controller is not running. Here a custom resource without
//! conditions is unknown.

use super::fields::{Fields, ReadError, Seen, SeenConditions};
use super::reading::{Reading, Verdict, or};

/// The condition that speaks for the whole object, best first.
const SPEAKERS: [&str; 3] = ["Ready", "Available", "Succeeded"];

pub(super) fn custom(object: &Fields<'_>, built_in: bool) -> Result<Reading, ReadError> {
    let (spec, status) = (object.map("spec")?, object.map("status")?);
    let conditions = SeenConditions::of(&status)?;
    let generation = object.map("metadata")?.number("generation")?;

    if let Some(stalled) = conditions.find_true("Stalled") {
        let message = or(stalled.message, "the controller has given up");
        return Ok(Reading::failed(or(stalled.reason, "Stalled"), message).since(stalled.since));
    }
    if let Some(busy) = conditions.find_true("Reconciling") {
        let message = or(busy.message, "the controller is at work");
        return Ok(Reading::progressing(or(busy.reason, "Reconciling"), message).since(busy.since));
    }
    if let Some(speaker) = SPEAKERS.iter().find_map(|type_| conditions.find(type_)) {
        return Ok(spoken(speaker, generation));
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

fn spoken(speaker: &Seen<'_>, generation: Option<i64>) -> Reading {
    if let (Some(seen), Some(now)) = (speaker.observed_generation, generation)
        && seen < now
    {
        return Reading::progressing(
            "GenerationNotObserved",
            format!("{} speaks of generation {seen}, the object is at {now}", speaker.type_),
        );
    }
    let (verdict, reason, fallback) = match speaker.status {
        "True" => (Verdict::Ready, speaker.type_.to_owned(), "ready"),
        "False" => {
            let verdict = match speaker.severity {
                "Error" => Verdict::Failed,
                "Warning" => Verdict::Stuck,
                _ => Verdict::Progressing,
            };
            (verdict, format!("Not{}", speaker.type_), "not ready, no cause given")
        }
        _ => (
            Verdict::Unknown,
            format!("{}Unknown", speaker.type_),
            "not known, no cause given",
        ),
    };
    Reading::new(verdict, or(speaker.reason, &reason), or(speaker.message, fallback)).since(speaker.since)
}

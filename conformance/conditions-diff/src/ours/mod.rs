//! The same questions, answered by kube-status, in the same form as the responder's answers.

mod generation_1;
pub mod generation_2;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::case::Case;
use kube_status::whole_seconds;

/// The time of this side. No case has it, so that it can be recognised and written as "now".
pub fn now() -> Timestamp {
    Timestamp::from_second(2_000_000_000).unwrap_or(Timestamp::MAX)
}

/// Answers a case.
pub fn answer(case: &Case) -> Value {
    generation_2::answer(case)
        .or_else(|| generation_1::answer(case))
        .unwrap_or_else(|| json!({"error": "this side has no such operation"}))
}

/// A stored condition as JSON, with "now" for the time of this side.
fn wire<C: serde::Serialize>(condition: &C) -> Value {
    let mut fields = serde_json::to_value(condition).unwrap_or_default();
    let time: Option<Timestamp> = fields["lastTransitionTime"].as_str().and_then(|text| text.parse().ok());
    match time {
        Some(time) if time == now() => fields["lastTransitionTime"] = json!("now"),
        // The epoch stands for a missing time.
        Some(time) if time != Timestamp::UNIX_EPOCH => fields["lastTransitionTime"] = json!(whole_seconds(time)),
        _ => drop(
            fields
                .as_object_mut()
                .and_then(|fields| fields.remove("lastTransitionTime")),
        ),
    }
    fields
}

fn list<C: serde::Serialize>(conditions: &[C]) -> Value {
    json!({"conditions": conditions.iter().map(wire).collect::<Vec<_>>()})
}

fn outcome<T, E: std::fmt::Display>(result: Result<T, E>, answer: impl FnOnce(T) -> Value) -> Value {
    match result {
        Ok(value) => answer(value),
        Err(error) => json!({"error": error.to_string()}),
    }
}

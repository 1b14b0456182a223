//! The same questions, answered by kube-status, in the same form as the responder's answers.

mod generation_1;
pub mod generation_2;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::case::Case;

/// The time this side is told it is. No case carries it, so that it can be told apart and written as "now".
pub fn now() -> Timestamp {
    Timestamp::from_second(2_000_000_000).unwrap_or(Timestamp::MAX)
}

/// Answers a case.
pub fn answer(case: &Case) -> Value {
    generation_2::answer(case)
        .or_else(|| generation_1::answer(case))
        .unwrap_or_else(|| json!({"error": "this side has no such operation"}))
}

/// A stored condition as its JSON says, with "now" for the time this side was told.
fn wire<C: serde::Serialize>(condition: &C) -> Value {
    let mut fields = serde_json::to_value(condition).unwrap_or_default();
    if fields["lastTransitionTime"] == json!(now()) {
        fields["lastTransitionTime"] = json!("now");
    }
    fields
}

fn list<C: serde::Serialize>(conditions: &[C]) -> Value {
    json!({"conditions": conditions.iter().map(wire).collect::<Vec<_>>()})
}

fn outcome<T, E: std::fmt::Display>(result: Result<T, E>, told: impl FnOnce(T) -> Value) -> Value {
    match result {
        Ok(value) => told(value),
        Err(error) => json!({"error": error.to_string()}),
    }
}

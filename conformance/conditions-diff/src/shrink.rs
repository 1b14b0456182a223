//! Makes a failing case small: drops and shortens parts of its JSON for as long as it still fails.

use serde_json::Value;

/// The smallest case found for which `fails` still holds.
pub fn shrink(case: Value, mut fails: impl FnMut(&Value) -> bool) -> Value {
    let mut smallest = case;
    loop {
        let smaller = simpler(&smallest).into_iter().find(|candidate| fails(candidate));
        match smaller {
            Some(candidate) => smallest = candidate,
            None => return smallest,
        }
    }
}

/// Words from a closed set: a shorter one would be no word at all, and a case that cannot be asked. Without a kind Go takes
/// the name of the Go type.
const CLOSED: [&str; 5] = ["kind", "op", "order", "severity", "status"];

/// Every way to make a value a little simpler, the boldest first.
fn simpler(value: &Value) -> Vec<Value> {
    match value {
        Value::Array(items) => simpler_list(items),
        Value::Object(fields) => fields
            .iter()
            .filter(|(name, _)| !CLOSED.contains(&name.as_str()))
            .flat_map(|(name, field)| {
                simpler(field).into_iter().map(move |candidate| {
                    let mut whole = fields.clone();
                    whole.insert(name.clone(), candidate);
                    Value::Object(whole)
                })
            })
            .collect(),
        Value::String(text) => simpler_text(text),
        Value::Bool(true) => vec![Value::Bool(false)],
        Value::Number(number) if number.as_i64() != Some(0) => vec![0.into()],
        _ => Vec::new(),
    }
}

fn simpler_list(items: &[Value]) -> Vec<Value> {
    let halves = [&items[..items.len() / 2], &items[items.len() / 2..]];
    let mut candidates: Vec<Value> = halves
        .into_iter()
        .filter(|half| half.len() < items.len())
        .map(|half| Value::Array(half.to_vec()))
        .collect();
    for i in 0..items.len() {
        let mut fewer = items.to_vec();
        fewer.remove(i);
        candidates.push(Value::Array(fewer));
    }
    for (i, item) in items.iter().enumerate() {
        for candidate in simpler(item) {
            let mut same = items.to_vec();
            same[i] = candidate;
            candidates.push(Value::Array(same));
        }
    }
    candidates
}

fn simpler_text(text: &str) -> Vec<Value> {
    let letters: Vec<char> = text.chars().collect();
    let take = |range: std::ops::Range<usize>| Value::String(letters[range].iter().collect());
    match letters.len() {
        0 => Vec::new(),
        1 => vec![take(0..0)],
        n => vec![take(0..0), take(0..n / 2), take(n / 2..n), take(0..n - 1), take(1..n)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_case_shrinks_to_what_makes_it_fail() {
        let case = json!({"op": "set", "list": ["ab", "needle here", 7], "force": true});
        let small = shrink(case, |candidate| candidate["list"].to_string().contains("needle"));
        assert_eq!(small, json!({"op": "set", "list": ["needle"], "force": false}));
    }
}

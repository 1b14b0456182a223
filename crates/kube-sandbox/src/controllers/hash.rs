//! The short, safe hash in the names of `ReplicaSets` and `ControllerRevisions`.

use serde::Serialize;

/// Letters and digits without vowels and look-alikes, so that no hash spells a word.
const SAFE: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// A name-safe hash of a value. `collisions` makes it another one when two templates collide.
///
/// It is stable across runs, but not the number a real controller computes (that one hashes Go's memory layout).
pub fn template_hash<T: Serialize>(value: &T, collisions: Option<i32>) -> String {
    // Through a Value the keys are sorted, so that the order of fields cannot matter.
    let canonical = serde_json::to_value(value)
        .map(|value| value.to_string())
        .unwrap_or_default();
    let mut hash = fnv1a(0x811c_9dc5, canonical.as_bytes());
    if let Some(count) = collisions {
        hash = fnv1a(hash, &count.to_le_bytes());
    }
    safe(&hash.to_string())
}

fn fnv1a(start: u32, bytes: &[u8]) -> u32 {
    bytes
        .iter()
        .fold(start, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

fn safe(digits: &str) -> String {
    digits
        .bytes()
        .map(|digit| char::from(SAFE[usize::from(digit) % SAFE.len()]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn equal_values_hash_alike_whatever_their_field_order() {
        let one = json!({"a": 1, "b": {"c": 2, "d": 3}});
        let two: serde_json::Value = serde_json::from_str(r#"{"b":{"d":3,"c":2},"a":1}"#).unwrap();
        assert_eq!(template_hash(&one, None), template_hash(&two, None));
        assert_ne!(template_hash(&one, None), template_hash(&json!({"a": 2}), None));
    }

    #[test]
    fn a_collision_count_gives_another_name() {
        let value = json!({"a": 1});
        assert_ne!(template_hash(&value, None), template_hash(&value, Some(1)));
        assert_ne!(template_hash(&value, Some(1)), template_hash(&value, Some(2)));
    }

    #[test]
    fn hashes_are_valid_in_names() {
        for n in 0..1000 {
            let hash = template_hash(&n, None);
            assert!(
                !hash.is_empty() && hash.len() <= 10 && hash.bytes().all(|byte| SAFE.contains(&byte)),
                "{hash}"
            );
        }
    }
}

//! Fields that a JSON document names twice. A parsed value does not show them: of two the last one stays.

use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// The paths of all repeated fields, such as `spec.replicas` or `spec.containers[0].name`; nothing of a document that is
/// not well formed.
pub fn duplicate_fields(document: &[u8]) -> Vec<String> {
    let found = RefCell::new(Vec::new());
    let mut deserializer = serde_json::Deserializer::from_slice(document);
    let place = Place {
        path: String::new(),
        found: &found,
    };
    match place.deserialize(&mut deserializer) {
        Ok(()) => found.into_inner(),
        Err(_) => Vec::new(),
    }
}

struct Place<'a> {
    path: String,
    found: &'a RefCell<Vec<String>>,
}

impl<'de> DeserializeSeed<'de> for Place<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Place<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let (mut seen, mut reported) = (HashSet::new(), HashSet::new());
        while let Some(key) = map.next_key::<String>()? {
            let path = if self.path.is_empty() {
                key.clone()
            } else {
                format!("{}.{key}", self.path)
            };
            if !seen.insert(key.clone()) && reported.insert(key) {
                self.found.borrow_mut().push(path.clone());
            }
            map.next_value_seed(Place {
                path,
                found: self.found,
            })?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let mut index = 0;
        let item = |index: usize| Place {
            path: format!("{}[{index}]", self.path),
            found: self.found,
        };
        while list.next_element_seed(item(index))?.is_some() {
            index += 1;
        }
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_none<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(IgnoredAny).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::duplicate_fields;

    #[test]
    fn repeated_fields_are_reported_once_with_their_path() {
        let document = br#"{"a": 1, "b": {"c": 1, "c": 2, "c": 3}, "l": [{"x": 1}, {"x": 1, "x": 2}], "a": null}"#;
        assert_eq!(duplicate_fields(document), ["b.c", "l[1].x", "a"]);
        assert!(duplicate_fields(br#"{"a": 1, "b": [1, "x", true, null, 1.5]}"#).is_empty());
        assert!(duplicate_fields(b"{").is_empty());
    }

    proptest! {
        #[test]
        fn no_document_panics(document in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = duplicate_fields(&document);
        }
    }
}

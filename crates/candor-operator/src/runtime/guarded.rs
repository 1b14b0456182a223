//! An object from a watch that may not decode, for example a status that a newer version wrote or a manually created
//! object. It must not stop the watch of its whole kind: the object is skipped, and all others are processed.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::runtime::watcher::Event;
use kube_status::limits::cut;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// The longest decode error that is stored: serde quotes the value that it could not decode.
const ERROR_LIMIT: usize = 512;

/// A decoded object, or the known parts of one that does not decode.
#[derive(Clone, Debug)]
pub enum Guarded<K> {
    /// The object decodes. Boxed because the other variant is smaller and objects are passed by value.
    Decoded(Box<K>),
    /// The object does not decode.
    Undecodable(Undecodable),
}

/// The known parts of an object that does not decode.
#[derive(Clone, Debug)]
pub struct Undecodable {
    /// Its metadata. If the metadata does not decode either, the fields that could be read.
    pub meta: Box<ObjectMeta>,
    /// The decode error.
    pub error: String,
}

impl<K: Resource> Resource for Guarded<K> {
    type DynamicType = K::DynamicType;
    type Scope = K::Scope;

    fn kind(dynamic: &Self::DynamicType) -> Cow<'_, str> {
        K::kind(dynamic)
    }

    fn group(dynamic: &Self::DynamicType) -> Cow<'_, str> {
        K::group(dynamic)
    }

    fn version(dynamic: &Self::DynamicType) -> Cow<'_, str> {
        K::version(dynamic)
    }

    fn plural(dynamic: &Self::DynamicType) -> Cow<'_, str> {
        K::plural(dynamic)
    }

    fn meta(&self) -> &ObjectMeta {
        match self {
            Self::Decoded(object) => object.meta(),
            Self::Undecodable(undecodable) => &undecodable.meta,
        }
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        match self {
            Self::Decoded(object) => object.meta_mut(),
            Self::Undecodable(undecodable) => &mut undecodable.meta,
        }
    }
}

impl<'de, K: DeserializeOwned> Deserialize<'de> for Guarded<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Ok(match K::deserialize(&value) {
            Ok(object) => Self::Decoded(Box::new(object)),
            Err(error) => Self::Undecodable(Undecodable {
                meta: Box::new(metadata(&value["metadata"])),
                error: cut(&error.to_string(), ERROR_LIMIT).into_owned(),
            }),
        })
    }
}

/// Splits the events of a watch: the event itself if its object decodes, else the event without its object, and the
/// undecodable object.
pub fn sort<K>(event: Event<Guarded<K>>) -> Result<Event<K>, (Event<()>, Undecodable)> {
    match event {
        Event::Init => Ok(Event::Init),
        Event::InitDone => Ok(Event::InitDone),
        Event::InitApply(Guarded::Decoded(object)) => Ok(Event::InitApply(*object)),
        Event::Apply(Guarded::Decoded(object)) => Ok(Event::Apply(*object)),
        Event::Delete(Guarded::Decoded(object)) => Ok(Event::Delete(*object)),
        Event::InitApply(Guarded::Undecodable(object)) => Err((Event::InitApply(()), object)),
        Event::Apply(Guarded::Undecodable(object)) => Err((Event::Apply(()), object)),
        Event::Delete(Guarded::Undecodable(object)) => Err((Event::Delete(()), object)),
    }
}

/// The metadata as far as it can be read: enough to identify the object.
fn metadata(value: &Value) -> ObjectMeta {
    ObjectMeta::deserialize(value).unwrap_or_else(|_| {
        let text = |name: &str| value[name].as_str().map(str::to_owned);
        ObjectMeta {
            name: text("name"),
            namespace: text("namespace"),
            uid: text("uid"),
            resource_version: text("resourceVersion"),
            ..ObjectMeta::default()
        }
    })
}

#[cfg(test)]
mod tests {
    use candor_api::ValkeyCluster;
    use kube::ResourceExt;
    use serde_json::json;

    use super::*;

    fn cluster(state: &str) -> Value {
        json!({"apiVersion": "valkey.io/v1alpha1", "kind": "ValkeyCluster",
            "metadata": {"name": "cart", "namespace": "shop", "labels": {"team": "a"}},
            "spec": {"shards": 1}, "status": {"state": state}})
    }

    #[test]
    fn a_status_of_a_newer_version_costs_only_its_object() {
        let list = json!([cluster("Ready"), cluster("Hibernating")]);
        let list: Vec<Guarded<ValkeyCluster>> = serde_json::from_value(list).unwrap();
        assert!(matches!(list[0], Guarded::Decoded(_)));
        let Guarded::Undecodable(undecodable) = &list[1] else {
            panic!("an unknown state decodes: {list:?}");
        };
        assert!(undecodable.error.contains("Hibernating"), "{}", undecodable.error);
        assert_eq!(
            (list[1].name_any(), list[1].namespace()),
            ("cart".to_owned(), Some("shop".to_owned()))
        );
        assert_eq!(list[1].labels()["team"], "a");
    }

    #[test]
    fn an_error_that_quotes_a_long_value_is_cut_and_bad_metadata_still_has_a_name() {
        let mut wrong = cluster(&"x".repeat(100_000));
        wrong["metadata"]["labels"] = json!(7);
        let Guarded::Undecodable(undecodable) = serde_json::from_value::<Guarded<ValkeyCluster>>(wrong).unwrap() else {
            panic!("it decodes");
        };
        assert!(undecodable.error.len() <= ERROR_LIMIT);
        assert_eq!(undecodable.meta.name.as_deref(), Some("cart"));
    }
}

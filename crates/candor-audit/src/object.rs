//! The `ValkeyCluster` as the auditor reads it: what is wanted, and what status says. Read from plain JSON, so that no
//! type of the operator's stands between.

use std::collections::BTreeMap;

use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::Value;

/// How many members the spec wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub shards: usize,
    /// Per shard.
    pub replicas: usize,
}

/// What matters of the object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Object {
    pub generation: i64,
    pub wanted: Wanted,
    /// Status says Ready=True.
    pub ready: bool,
    /// The generation that the Ready condition speaks of.
    pub ready_of: i64,
    /// `state/reason`, for the story.
    pub state: String,
    /// It is on its way out: nothing is judged any more.
    pub deleting: bool,
}

/// The kind, by name alone.
pub(crate) fn kind() -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("valkey.io", "v1alpha1", "ValkeyCluster"))
}

impl Object {
    pub fn read(object: &DynamicObject) -> Self {
        let count = |name: &str| {
            let number = object.data["spec"][name].as_u64().unwrap_or(0);
            usize::try_from(number).unwrap_or(0)
        };
        let status = &object.data["status"];
        let generation = object.metadata.generation.unwrap_or(0);
        let no_conditions = Vec::new();
        let conditions = status["conditions"].as_array().unwrap_or(&no_conditions);
        let ready = conditions.iter().find(|condition| condition["type"] == "Ready");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Self {
            generation,
            wanted: Wanted {
                shards: count("shards"),
                replicas: count("replicas"),
            },
            ready: ready.is_some_and(|condition| condition["status"] == "True"),
            ready_of: ready
                .and_then(|condition| condition["observedGeneration"].as_i64())
                .unwrap_or(generation),
            state: format!("{}/{}", text(&status["state"]), text(&status["reason"])),
            deleting: object.metadata.deletion_timestamp.is_some(),
        }
    }
}

/// What was wanted, by generation: a status is judged by the spec it speaks of, not by a newer one it has not seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Specs(BTreeMap<i64, Wanted>);

impl Specs {
    pub fn learn(&mut self, object: &Object) {
        self.0.entry(object.generation).or_insert(object.wanted);
    }

    /// The spec that the object's Ready condition speaks of; an older one was never seen when the audit began later.
    pub fn judged(&self, object: &Object) -> Wanted {
        let spoken = self.0.range(..=object.ready_of).next_back();
        spoken.map_or(object.wanted, |(_, wanted)| *wanted)
    }
}

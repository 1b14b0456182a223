//! The cluster as the auditor reads it: desired state and status. Parsed from plain JSON, so that the audit does not
//! depend on the operator's types.

use std::collections::BTreeMap;

use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::Value;

/// How many members the spec asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Desired {
    pub shards: usize,
    /// Per shard.
    pub replicas: usize,
}

/// The parts of the object that the audit needs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Object {
    pub generation: i64,
    pub desired: Desired,
    /// Status reports Ready=True.
    pub ready: bool,
    /// The `observedGeneration` of the Ready condition.
    pub ready_of: i64,
    /// `state/reason` or `status/substatus`, for the list of changes.
    pub state: String,
    /// It is being deleted: nothing is judged any more.
    pub deleting: bool,
}

/// The kind of the cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// `valkey.io/v1alpha1`.
    #[default]
    ValkeyCluster,
    /// `redkey.inditex.dev/v1`.
    RedkeyCluster,
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::ValkeyCluster => "ValkeyCluster",
            Self::RedkeyCluster => "RedkeyCluster",
        })
    }
}

impl Kind {
    /// The resource, by name only.
    pub(crate) fn resource(self) -> ApiResource {
        let (group, version) = match self {
            Self::ValkeyCluster => ("valkey.io", "v1alpha1"),
            Self::RedkeyCluster => ("redkey.inditex.dev", "v1"),
        };
        ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &self.to_string()))
    }

    /// Selects the pods of a cluster's members.
    pub(crate) fn members(self, cluster: &str) -> String {
        match self {
            Self::ValkeyCluster => format!("valkey.io/cluster={cluster},valkey.io/node-index"),
            Self::RedkeyCluster => {
                // The existing operator labelled components by the key `app` in older versions.
                format!("redkey-cluster-name={cluster},redis.redkeycluster.operator/component!=robin,app!=robin")
            }
        }
    }
}

impl Object {
    pub fn read(kind: Kind, object: &DynamicObject) -> Self {
        let count = |name: &str| {
            let number = object.data["spec"][name].as_u64().unwrap_or(0);
            usize::try_from(number).unwrap_or(0)
        };
        let desired = match kind {
            Kind::ValkeyCluster => Desired {
                shards: count("shards"),
                replicas: count("replicas"),
            },
            Kind::RedkeyCluster => Desired {
                shards: count("primaries"),
                replicas: count("replicasPerPrimary"),
            },
        };
        let status = &object.data["status"];
        let generation = object.metadata.generation.unwrap_or(0);
        let no_conditions = Vec::new();
        let conditions = status["conditions"].as_array().unwrap_or(&no_conditions);
        let ready = conditions.iter().find(|condition| condition["type"] == "Ready");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Self {
            generation,
            desired,
            ready: ready.is_some_and(|condition| condition["status"] == "True"),
            ready_of: ready
                .and_then(|condition| condition["observedGeneration"].as_i64())
                .unwrap_or(generation),
            state: match kind {
                Kind::ValkeyCluster => format!("{}/{}", text(&status["state"]), text(&status["reason"])),
                Kind::RedkeyCluster => format!("{}/{}", text(&status["status"]), text(&status["substatus"]["status"])),
            },
            deleting: object.metadata.deletion_timestamp.is_some(),
        }
    }
}

/// The desired state by generation: a status is judged by the spec that it reports on, not by a newer one that the
/// operator has not observed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Specs(BTreeMap<i64, Desired>);

impl Specs {
    pub fn learn(&mut self, object: &Object) {
        self.0.entry(object.generation).or_insert(object.desired);
    }

    /// The spec that the object's Ready condition reports on. If that generation is older than the audit, the current
    /// spec is used.
    pub fn judged(&self, object: &Object) -> Desired {
        let spoken = self.0.range(..=object.ready_of).next_back();
        spoken.map_or(object.desired, |(_, desired)| *desired)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_redkeycluster_is_read_by_its_own_fields() {
        let object = json!({"metadata": {"name": "c", "generation": 4},
            "spec": {"primaries": 3, "replicasPerPrimary": 1},
            "status": {"status": "ScalingUp", "substatus": {"status": "RobinScaling"}, "conditions": [
                {"type": "Ready", "status": "False", "observedGeneration": 4}]}});
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        let read = Object::read(Kind::RedkeyCluster, &object);
        assert_eq!((read.desired.shards, read.desired.replicas), (3, 1));
        assert_eq!((read.state.as_str(), read.ready), ("ScalingUp/RobinScaling", false));
        assert_eq!(Kind::RedkeyCluster.resource().plural, "redkeyclusters");
    }
}

//! Pieces of schema that no derive knows. Every list, map and string is bounded: the API server estimates the cost
//! of a CEL rule by these bounds, and an unbounded one counts as huge.

use schemars::{Schema, SchemaGenerator, json_schema};

use crate::redkey::conditions::RedkeyCondition;
use crate::valkey::conditions::ClusterCondition;

/// A Kubernetes object of another API, kept as it is: its content is checked by the operator, which reports errors in a condition, so
/// that the CRD stays small.
pub fn preserved(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

/// A list of such objects.
pub fn preserved_list(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array", "maxItems": 64,
        "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}
    })
}

/// A list of partial containers, found by their names.
pub fn containers(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array", "maxItems": 16,
        "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
        "items": {
            "type": "object", "required": ["name"], "x-kubernetes-preserve-unknown-fields": true,
            "properties": {"name": {"type": "string", "maxLength": 63, "x-kubernetes-validations": [{
                "rule": "self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
                "message": "a container's name has lower-case letters, digits and dashes, and begins and ends with a \
                    letter or digit, such as server"
            }]}}
        }
    })
}

/// `500m`, `1Gi`, 2: a number with a unit, and never negative. The error message of a pattern would be hard to read.
pub fn quantity(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "x-kubernetes-int-or-string": true,
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "maxLength": 32,
        "x-kubernetes-validations": [{
            "rule": "isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('0')) >= 0",
            "message": "write a quantity of 0 or more: a number with an optional unit, such as 500m, 2 or 10Gi"
        }]
    })
}

/// Quantities by resource name.
pub fn quantities(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "maxProperties": 16, "additionalProperties": quantity(generator)})
}

/// `valkey.conf` keys and values.
pub fn config(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object", "maxProperties": 256,
        "additionalProperties": {"type": "string", "maxLength": 4096}
    })
}

/// Labels, as the API server takes them on any object.
pub fn labels(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object", "maxProperties": 64,
        "additionalProperties": {"type": "string", "maxLength": 63},
        "x-kubernetes-validations": [{
            "rule": "self.all(key, self[key].matches('^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$'))",
            "message": "a label's value has letters, digits, dashes, underscores and dots, and begins and ends with a \
                letter or digit, such as a-team"
        }, {
            "rule": "self.all(key, key.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",
            "message": "a label's key has letters, digits, dashes, underscores and dots, at most 63, after an optional \
                domain and a slash, such as team or example.org/team"
        }]
    })
}

/// `1` or `50%`, as in a `PodDisruptionBudget`. Empty is absent.
pub fn count_or_percentage(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "x-kubernetes-int-or-string": true,
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "maxLength": 16,
        "x-kubernetes-validations": [{
            "rule": "string(self).matches('^([0-9]{1,6}|(100|[1-9]?[0-9])%)?$')",
            "message": "write a number of servers such as 1, or a percentage such as 50%"
        }]
    })
}

/// `10` or `10s`.
pub fn seconds_or_duration(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "x-kubernetes-int-or-string": true,
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "maxLength": 16,
        "x-kubernetes-validations": [{
            "rule": "string(self).matches('^[0-9]{1,6}(ms|s|m|h)?$')",
            "message": "write seconds such as 10, or a duration such as 500ms, 10s or 1m"
        }]
    })
}

/// Describes the conditions of a `RedkeyCluster` by their declaration.
pub fn describe_redkey_conditions(schema: &mut Schema) {
    schema.insert(
        "description".to_owned(),
        kube_status::crd_description::<RedkeyCondition>().into(),
    );
}

/// Describes the conditions of a `ValkeyCluster` by their declaration.
pub fn describe_cluster_conditions(schema: &mut Schema) {
    schema.insert(
        "description".to_owned(),
        kube_status::crd_description::<ClusterCondition>().into(),
    );
}

/// Conditions, one per type.
pub fn conditions(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array", "maxItems": 32,
        "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
        "items": generator.subschema_for::<crate::Condition>()
    })
}

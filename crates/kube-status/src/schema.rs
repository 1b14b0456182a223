//! The schema of a `conditions` field, for CRDs made with `schemars`: as strict as the API server's own conditions, and
//! described by the declaration.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::json;

use crate::limits::{MESSAGE_LIMIT, REASON_LIMIT};
use crate::{ConditionType, GradedCondition, crd_description};

/// The schema of a list of conditions of declared types, for `#[schemars(schema_with = "...")]`.
///
/// The list is a map by type, so that server-side apply merges it condition by condition; types, statuses and reasons
/// are held to the patterns that `metav1.Condition` has in Go.
///
/// ```
/// use kube_status::{Condition, ConditionType, conditions_schema};
/// use schemars::JsonSchema;
///
/// #[derive(Clone, Copy, ConditionType)]
/// enum CacheCondition {
///     /// It serves.
///     Ready,
/// }
///
/// #[derive(JsonSchema)]
/// struct CacheStatus {
///     #[schemars(schema_with = "conditions_schema::<CacheCondition>")]
///     conditions: Vec<Condition>,
/// }
///
/// let schema = schemars::schema_for!(CacheStatus);
/// let list = &schema.as_value()["properties"]["conditions"];
/// assert_eq!(list["x-kubernetes-list-map-keys"][0], "type");
/// assert_eq!(list["description"], "Conditions of this object. Ready (good when True): It serves.");
/// ```
pub fn conditions_schema<T: ConditionType>(_: &mut SchemaGenerator) -> Schema {
    list(&crd_description::<T>(), &one())
}

/// [`conditions_schema`] of a list of [`GradedCondition`]s.
///
/// ```
/// use kube_status::{ConditionType, GradedCondition, graded_conditions_schema};
/// use schemars::JsonSchema;
///
/// #[derive(Clone, Copy, ConditionType)]
/// enum CacheCondition {
///     /// It serves.
///     Ready,
/// }
///
/// #[derive(JsonSchema)]
/// struct CacheStatus {
///     #[schemars(schema_with = "graded_conditions_schema::<CacheCondition>")]
///     conditions: Vec<GradedCondition>,
/// }
///
/// let schema = schemars::schema_for!(CacheStatus);
/// let severity = &schema.as_value()["properties"]["conditions"]["items"]["properties"]["severity"];
/// assert_eq!(severity["enum"][0], "Error");
/// ```
pub fn graded_conditions_schema<T: ConditionType>(_: &mut SchemaGenerator) -> Schema {
    list(&crd_description::<T>(), &one_graded())
}

impl JsonSchema for GradedCondition {
    fn schema_name() -> Cow<'static, str> {
        "GradedCondition".into()
    }

    fn schema_id() -> Cow<'static, str> {
        "kube_status::GradedCondition".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let mut schema = one_graded();
        schema.insert(
            "description".to_owned(),
            "The state of one aspect of the object, with its severity.".into(),
        );
        schema
    }
}

fn list(description: &str, one: &Schema) -> Schema {
    json_schema!({
        "description": description,
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": one,
    })
}

fn one_graded() -> Schema {
    let mut schema = one();
    if let Some(properties) = schema.get_mut("properties") {
        properties["severity"] = json!({
            "description": "How severe it is, while something is wrong; absent otherwise.",
            "type": "string",
            "enum": ["Error", "Warning", "Info"],
        });
    }
    schema
}

fn one() -> Schema {
    json_schema!({
        "type": "object",
        "required": ["lastTransitionTime", "message", "reason", "status", "type"],
        "properties": {
            "type": {
                "description": "The type of the condition, in CamelCase or as example.org/CamelCase.",
                "type": "string",
                "maxLength": 316,
                "pattern": TYPE_PATTERN,
            },
            "status": {
                "description": "The status of the condition: True, False or Unknown.",
                "type": "string",
                "enum": ["True", "False", "Unknown"],
            },
            "reason": {
                "description": "Why, as one CamelCase word for programs.",
                "type": "string",
                "minLength": 1,
                "maxLength": REASON_LIMIT,
                "pattern": REASON_PATTERN,
            },
            "message": {
                "description": "Why, as a message for people; may be empty.",
                "type": "string",
                "maxLength": MESSAGE_LIMIT,
            },
            "lastTransitionTime": {
                "description": "When the status last changed.",
                "type": "string",
                "format": "date-time",
            },
            "observedGeneration": {
                "description": "The generation of the object that the condition is about; if it is lower than the object's, the condition is outdated.",
                "type": "integer",
                "format": "int64",
                "minimum": 0,
            },
        },
    })
}

/// What the API server takes for a type: an optional DNS prefix, then a qualified name.
const TYPE_PATTERN: &str = "^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?\
                            (([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$";
/// What the API server takes for a reason.
const REASON_PATTERN: &str = "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$";

//! The CRDs, as `deploy/crds` holds them.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use serde_json::Value;

use crate::{RedkeyCluster, ValkeyCluster, ValkeyNode};

/// Every CRD, in the order they are applied.
pub fn all() -> Vec<CustomResourceDefinition> {
    vec![ValkeyCluster::crd(), ValkeyNode::crd(), RedkeyCluster::crd()]
}

/// The file a CRD is kept in: `valkey.io_valkeyclusters.yaml`.
pub fn file_name(crd: &CustomResourceDefinition) -> String {
    format!("{}_{}.yaml", crd.spec.group, crd.spec.names.plural)
}

/// A CRD as YAML.
pub fn yaml(crd: &CustomResourceDefinition) -> Result<String, serde_norway::Error> {
    serde_norway::to_string(&json(crd))
}

/// A CRD as JSON. Bounds are written as the whole numbers they are: `1000.0` becomes `1000` on its way through kubectl, and
/// two appliers of the same definition must not differ.
pub fn json(crd: &CustomResourceDefinition) -> Value {
    // Types of the API are maps with text keys: nothing in them can fail to be JSON.
    let mut value = serde_json::to_value(crd).unwrap_or_default();
    make_whole(&mut value);
    value
}

fn make_whole(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(make_whole),
        Value::Array(items) => items.iter_mut().for_each(make_whole),
        Value::Number(number) => {
            let whole = number.as_f64().filter(|float| number.is_f64() && float.fract() == 0.0);
            // Bounds of a schema are far below 2^53.
            #[allow(clippy::cast_possible_truncation)]
            if let Some(whole) = whole.filter(|float| float.abs() < 1e15) {
                *value = Value::from(whole as i64);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_whole_numbers_in_every_form() {
        for crd in all() {
            assert!(!json(&crd).to_string().contains(".0,"), "{}", json(&crd));
            assert!(!yaml(&crd).unwrap().contains(".0\n"));
        }
    }

    /// `kubectl apply` without `--server-side` keeps the whole object in an annotation of at most 256 KiB.
    #[test]
    fn every_definition_fits_into_the_annotation_of_a_client_side_apply() {
        for crd in all() {
            let size = json(&crd).to_string().len();
            assert!(size < 256 * 1024, "{}: {size} bytes", file_name(&crd));
        }
    }

    #[test]
    fn valkeycluster_has_the_columns_of_the_seed_first() {
        let crd = json(&ValkeyCluster::crd());
        let columns = crd["spec"]["versions"][0]["additionalPrinterColumns"]
            .as_array()
            .unwrap();
        let named = |one: &Value| {
            (
                one["name"].as_str().unwrap().to_owned(),
                one["priority"].as_i64().unwrap_or(0),
            )
        };
        let columns: Vec<(String, i64)> = columns.iter().map(named).collect();
        let expected = [
            ("State", 0),
            ("Reason", 0),
            ("ReadyShards", 1),
            ("Age", 0),
            ("Paused", 1),
            ("DataLost", 1),
            ("Image", 1),
            ("Message", 1),
        ];
        assert_eq!(columns, expected.map(|(name, priority)| (name.to_owned(), priority)));
    }

    #[test]
    fn redkeycluster_has_the_columns_of_its_users_tables() {
        let crd = json(&RedkeyCluster::crd());
        let columns = crd["spec"]["versions"][0]["additionalPrinterColumns"]
            .as_array()
            .unwrap();
        let columns: Vec<(&str, &str, bool)> = columns
            .iter()
            .map(|one| {
                (
                    one["name"].as_str().unwrap(),
                    one["type"].as_str().unwrap(),
                    one["priority"].as_i64().unwrap_or(0) > 0,
                )
            })
            .collect();
        assert_eq!(
            columns,
            [
                ("Primaries", "integer", false),
                ("Replicas", "integer", false),
                ("Ephemeral", "boolean", false),
                ("PurgeKeys", "boolean", false),
                ("Image", "string", false),
                ("Storage", "string", false),
                ("StorageClassName", "string", true),
                ("DeletePVC", "boolean", true),
                ("Status", "string", false),
                ("Substatus", "string", false),
                ("Partition", "string", true),
            ]
        );
    }

    #[test]
    fn redkeycluster_has_the_documented_defaults_and_no_others() {
        fn gather(schema: &Value, path: &str, all: &mut Vec<(String, Value)>) {
            for (name, field) in schema["properties"].as_object().into_iter().flatten() {
                let path = format!("{path}.{name}");
                if let Some(default) = field.get("default") {
                    all.push((path.clone(), default.clone()));
                }
                gather(field, &path, all);
            }
        }
        let crd = json(&RedkeyCluster::crd());
        let mut all = Vec::new();
        gather(
            &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"],
            "",
            &mut all,
        );
        all.sort_by(|one, other| one.0.cmp(&other.0));
        let expected: Vec<(String, Value)> = [
            (".accessModes", serde_json::json!(["ReadWriteOnce"])),
            (".ephemeral", Value::from(true)),
            (".paused", Value::from(false)),
            (".purgeKeysOnRebalance", Value::from(true)),
            (".replicasPerPrimary", Value::from(0)),
            (".robin.config.cluster.backOff", Value::from(10)),
            (".robin.config.cluster.healingTimeSeconds", Value::from(60)),
            (".robin.config.cluster.healthProbePeriodSeconds", Value::from(60)),
            (".robin.config.cluster.maxRetries", Value::from(10)),
            (".robin.config.metrics.intervalSeconds", Value::from(60)),
            (".robin.config.reconciler.intervalSeconds", Value::from(30)),
            (
                ".robin.config.reconciler.operationCleanUpIntervalSeconds",
                Value::from(30),
            ),
            (".storageClassName", Value::from("")),
        ]
        .map(|(path, value)| (path.to_owned(), value))
        .into();
        assert_eq!(all, expected);
    }

    #[test]
    fn a_redkeycluster_without_optional_fields_is_what_the_schema_makes_of_it() {
        let read: crate::RedkeyClusterSpec = serde_json::from_str(r#"{"primaries": 0}"#).unwrap();
        assert_eq!(read, crate::RedkeyClusterSpec::default());
        assert_eq!(read.server_image(), "redis:8-bookworm");
    }
}

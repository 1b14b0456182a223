//! The CRDs, as `deploy/crds` holds them.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use serde_json::Value;

use crate::{ValkeyCluster, ValkeyNode};

/// Every CRD, in the order they are applied.
pub fn all() -> Vec<CustomResourceDefinition> {
    vec![ValkeyCluster::crd(), ValkeyNode::crd()]
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
}

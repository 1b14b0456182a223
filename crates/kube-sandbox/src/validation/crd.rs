//! Rules for CustomResourceDefinitions: names, versions, and structural schemas.

use regex::Regex;
use serde_json::{Value, json};

use super::pod::{list, one_of};
use super::{field, names};
use crate::schema::Schema;
use crate::status::Cause;

/// A whole definition.
pub(super) fn check(object: &Value, errors: &mut Vec<Cause>) {
    let spec = &object["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (group, plural) = (text(&spec["group"]), text(&spec["names"]["plural"]));
    let expected = format!("{plural}.{group}");
    if object["metadata"]["name"].as_str() != Some(expected.as_str()) {
        let word = "must be spec.names.plural+\".\"+spec.group";
        errors.push(field::invalid("metadata.name", &object["metadata"]["name"], word));
    }
    if group.is_empty() {
        errors.push(field::required("spec.group", ""));
    } else if !group.contains('.') {
        errors.push(field::invalid(
            "spec.group",
            &json!(group),
            "should be a domain with at least one dot",
        ));
    }
    one_of("spec.scope", &spec["scope"], &["Cluster", "Namespaced"], errors);
    if spec["scope"].as_str().unwrap_or_default().is_empty() {
        errors.push(field::required("spec.scope", ""));
    }
    for name in ["plural", "singular"] {
        let value = text(&spec["names"][name]);
        if value.is_empty() {
            errors.push(field::required(&format!("spec.names.{name}"), ""));
        } else {
            names::reject(&format!("spec.names.{name}"), &value, &names::old_label(&value), errors);
        }
    }
    for name in ["kind", "listKind"] {
        let value = text(&spec["names"][name]);
        if value.is_empty() {
            errors.push(field::required(&format!("spec.names.{name}"), ""));
        } else {
            let wrong = names::old_label(&value.to_lowercase());
            let wrong: Vec<String> = wrong
                .into_iter()
                .map(|w| format!("may have mixed case, but should otherwise match: {w}"))
                .collect();
            names::reject(&format!("spec.names.{name}"), &value, &wrong, errors);
        }
    }
    versions(spec, errors);
}

fn versions(spec: &Value, errors: &mut Vec<Cause>) {
    let versions = list(&spec["versions"]);
    let shown = || {
        let one = |v: &Value| {
            format!(
                "{{\"Name\":{},\"Served\":{},\"Storage\":{},\"Deprecated\":false,\"DeprecationWarning\":null,\"Schema\":null,\"Subresources\":null,\"AdditionalPrinterColumns\":null,\"SelectableFields\":null}}",
                v["name"], v["served"], v["storage"]
            )
        };
        format!("[{}]", versions.iter().map(one).collect::<Vec<_>>().join(","))
    };
    if versions.iter().filter(|v| v["storage"] == json!(true)).count() != 1 {
        let word = "must have exactly one version marked as storage version";
        errors.push(field::invalid_printed("spec.versions", &shown(), word));
    }
    let repeated = |index: usize| {
        versions[..index]
            .iter()
            .any(|other| other["name"] == versions[index]["name"])
    };
    if (0..versions.len()).any(repeated) {
        errors.push(field::invalid_printed(
            "spec.versions",
            &shown(),
            "must contain unique version names",
        ));
    }
    // Errors that all versions share are reported once, above them.
    let shared = |name: &str| versions.iter().all(|v| v[name] == versions[0][name]);
    for (index, version) in versions.iter().enumerate() {
        let own = |common: &str, field_name: &str| {
            if shared(field_name) {
                format!("spec.{common}")
            } else {
                format!("spec.versions[{index}].{field_name}")
            }
        };
        if index > 0 && shared("schema") && shared("subresources") && shared("additionalPrinterColumns") {
            break;
        }
        let schema = &version["schema"]["openAPIV3Schema"];
        if schema.is_object() {
            root(
                &format!("{}.openAPIV3Schema", own("validation", "schema")),
                schema,
                errors,
            );
        } else {
            errors.push(field::required(
                &format!("spec.versions[{index}].schema.openAPIV3Schema"),
                "",
            ));
        }
        scale(
            &format!("{}.scale", own("subresources", "subresources")),
            &version["subresources"]["scale"],
            errors,
        );
        columns(
            &own("additionalPrinterColumns", "additionalPrinterColumns"),
            &version["additionalPrinterColumns"],
            errors,
        );
    }
}

const SIMPLE_PATH: &str = "must be a simple json path starting with .";

fn scale(path: &str, scale: &Value, errors: &mut Vec<Cause>) {
    if !scale.is_object() {
        return;
    }
    for name in ["specReplicasPath", "statusReplicasPath"] {
        let value = scale[name].as_str().unwrap_or_default();
        if value.is_empty() {
            errors.push(field::required(&format!("{path}.{name}"), ""));
        } else if !value.starts_with('.') {
            errors.push(field::invalid(&format!("{path}.{name}"), &json!(value), SIMPLE_PATH));
        }
    }
}

fn columns(path: &str, columns: &Value, errors: &mut Vec<Cause>) {
    for (index, column) in list(columns).iter().enumerate() {
        let at = format!("{path}[{index}]");
        let text = |name: &str| column[name].as_str().unwrap_or_default();
        if text("name").is_empty() {
            errors.push(field::required(&format!("{at}.name"), ""));
        }
        if text("type").is_empty() {
            errors.push(field::required(
                &format!("{at}.type"),
                "must be one of boolean,date,integer,number,string",
            ));
        } else if !["boolean", "date", "integer", "number", "string"].contains(&text("type")) {
            let word = "must be one of boolean,date,integer,number,string";
            errors.push(field::invalid(&format!("{at}.type"), &column["type"], word));
        }
        if text("jsonPath").is_empty() {
            errors.push(field::required(&format!("{at}.JSONPath"), ""));
        } else if !text("jsonPath").starts_with('.') {
            errors.push(field::invalid(
                &format!("{at}.JSONPath"),
                &column["jsonPath"],
                SIMPLE_PATH,
            ));
        }
    }
}

fn root(path: &str, schema: &Value, errors: &mut Vec<Cause>) {
    match schema["type"].as_str() {
        None | Some("") => errors.push(field::required(
            &format!("{path}.type"),
            "must not be empty at the root",
        )),
        Some("object") => {}
        Some(_) => errors.push(field::invalid(
            &format!("{path}.type"),
            &schema["type"],
            "must be object at the root",
        )),
    }
    let metadata = schema["properties"]["metadata"]["properties"].as_object();
    if metadata.is_some_and(|known| known.keys().any(|name| name != "name" && name != "generateName")) {
        let word = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        errors.push(field::forbidden(&format!("{path}.properties[metadata]"), word));
    }
    node(path, schema, errors);
}

/// One schema and all below it.
fn node(path: &str, schema: &Value, errors: &mut Vec<Cause>) {
    let kinds = ["array", "boolean", "integer", "number", "object", "string"];
    one_of(&format!("{path}.type"), &schema["type"], &kinds, errors);
    if schema["x-kubernetes-preserve-unknown-fields"] == json!(false) {
        let at = format!("{path}.x-kubernetes-preserve-unknown-fields");
        errors.push(field::invalid(&at, &json!(false), "must be true or undefined"));
    }
    if schema["uniqueItems"] == json!(true) {
        let word = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        errors.push(field::forbidden(&format!("{path}.uniqueItems"), word));
    }
    if schema["properties"].is_object() && schema["additionalProperties"].is_object() {
        let word = "additionalProperties and properties are mutual exclusive";
        errors.push(field::forbidden(&format!("{path}.additionalProperties"), word));
    }
    if schema["additionalProperties"] == json!(false) {
        let word = "additionalProperties cannot be set to false";
        errors.push(field::forbidden(&format!("{path}.additionalProperties"), word));
    }
    if let Some(pattern) = schema["pattern"]
        .as_str()
        .filter(|pattern| Regex::new(pattern).is_err())
    {
        let word = "must be a valid regular expression, but isn't: error parsing regexp";
        errors.push(field::invalid(&format!("{path}.pattern"), &json!(pattern), word));
    }
    lists(path, schema, errors);
    rules(path, schema, errors);
    default(path, schema, errors);
    for junctor in ["allOf", "anyOf", "oneOf"] {
        for (index, inner) in list(&schema[junctor]).iter().enumerate() {
            value_only(&format!("{path}.{junctor}[{index}]"), inner, schema, errors);
        }
    }
    if schema["not"].is_object() {
        value_only(&format!("{path}.not"), &schema["not"], schema, errors);
    }
    let int_or_string = |inner: &Value| inner["x-kubernetes-int-or-string"] == json!(true);
    let free = |inner: &Value| inner["x-kubernetes-preserve-unknown-fields"] == json!(true) || int_or_string(inner);
    let typeless = |inner: &Value| inner["type"].as_str().unwrap_or_default().is_empty() && !free(inner);
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        let at = format!("{path}.properties[{name}]");
        if typeless(inner) {
            errors.push(field::required(
                &format!("{at}.type"),
                "must not be empty for specified object fields",
            ));
        }
        node(&at, inner, errors);
    }
    if schema["additionalProperties"].is_object() {
        let at = format!("{path}.additionalProperties");
        if typeless(&schema["additionalProperties"]) {
            errors.push(field::required(
                &format!("{at}.type"),
                "must not be empty for specified object fields",
            ));
        }
        node(&at, &schema["additionalProperties"], errors);
    }
    if schema["items"].is_object() {
        let at = format!("{path}.items");
        if typeless(&schema["items"]) {
            errors.push(field::required(
                &format!("{at}.type"),
                "must not be empty for specified array items",
            ));
        }
        node(&at, &schema["items"], errors);
    }
}

/// Alternatives may restrict values; they may not have types, defaults or descriptions.
fn value_only(path: &str, inner: &Value, outer: &Value, errors: &mut Vec<Cause>) {
    let alternatives = outer["x-kubernetes-int-or-string"] == json!(true);
    for name in [
        "type",
        "default",
        "description",
        "nullable",
        "additionalProperties",
        "x-kubernetes-list-type",
    ] {
        let there = inner
            .get(name)
            .is_some_and(|value| !value.is_null() && *value != json!(false));
        if there && !(name == "type" && alternatives) {
            errors.push(field::forbidden(
                &format!("{path}.{name}"),
                "must be empty to be structural",
            ));
        }
    }
    for (name, below) in inner["properties"].as_object().into_iter().flatten() {
        value_only(
            &format!("{path}.properties[{name}]"),
            below,
            &outer["properties"][name],
            errors,
        );
    }
}

fn lists(path: &str, schema: &Value, errors: &mut Vec<Cause>) {
    if schema["type"] == json!("array") && !schema["items"].is_object() {
        errors.push(field::required(&format!("{path}.items"), "must be specified"));
    }
    let keys = list(&schema["x-kubernetes-list-map-keys"]);
    match schema["x-kubernetes-list-type"].as_str() {
        Some("map") if keys.is_empty() => {
            let word = "must not be empty if x-kubernetes-list-type is map";
            errors.push(field::required(&format!("{path}.x-kubernetes-list-map-keys"), word));
        }
        Some("map") => {
            let items = &schema["items"];
            for key in keys.iter().filter_map(Value::as_str) {
                let required = list(&items["required"]).iter().any(|r| r.as_str() == Some(key));
                if items["properties"].get(key).is_none() {
                    let at = format!("{path}.x-kubernetes-list-map-keys");
                    errors.push(field::invalid(
                        &at,
                        &json!(key),
                        "entries must all be names of item properties",
                    ));
                } else if !required && items["properties"][key].get("default").is_none() {
                    let word = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
                    errors.push(field::required(
                        &format!("{path}.items.properties[{key}].default"),
                        word,
                    ));
                }
            }
        }
        Some("set") => {
            let items = &schema["items"];
            if items["type"] == json!("object") && items["x-kubernetes-map-type"] != json!("atomic") {
                let word = "must be atomic as item of a list with x-kubernetes-list-type=set";
                let at = format!("{path}.items.x-kubernetes-map-type");
                errors.push(field::invalid(&at, &items["x-kubernetes-map-type"], word));
            }
        }
        _ => {}
    }
}

fn rules(path: &str, schema: &Value, errors: &mut Vec<Cause>) {
    for (index, rule) in list(&schema["x-kubernetes-validations"]).iter().enumerate() {
        let at = format!("{path}.x-kubernetes-validations[{index}].rule");
        let source = rule["rule"].as_str().unwrap_or_default();
        if source.trim().is_empty() {
            errors.push(field::required(&at, "rule is not specified"));
        } else if let Some(problem) = crate::schema::cel::Rule::parse(rule).compile_error {
            let or_null = |name: &str| rule.get(name).map_or_else(|| "null".to_owned(), Value::to_string);
            let or_empty = |name: &str| rule.get(name).map_or_else(|| "\"\"".to_owned(), Value::to_string);
            let printed = format!(
                "{{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{},\"FieldPath\":{},\"OptionalOldSelf\":{}}}",
                json!(source),
                or_empty("message"),
                or_empty("messageExpression"),
                or_null("reason"),
                or_empty("fieldPath"),
                or_null("optionalOldSelf")
            );
            let printed = printed
                .replace('<', "\\u003c")
                .replace('>', "\\u003e")
                .replace('&', "\\u0026");
            errors.push(field::invalid_printed(&at, &printed, &problem));
        }
    }
}

/// A default must be valid for its schema.
fn default(path: &str, schema: &Value, errors: &mut Vec<Cause>) {
    let Some(default) = schema.get("default") else { return };
    for cause in Schema::custom(schema.clone(), false).shape_errors(default) {
        let inner = if cause.field == "<nil>" {
            String::new()
        } else {
            format!(".{}", cause.field)
        };
        errors.push(Cause {
            field: format!("{path}.default{inner}"),
            ..cause
        });
    }
}

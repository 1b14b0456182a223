//! CustomResourceDefinitions: from the object to the kinds it adds, and the status it gets.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::columns;
use super::{Column, Kind, ScalePaths};
use crate::schema::Schema;
use crate::status::ApiError;

/// A name that another kind of the same group has already: the condition's reason and message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameConflict {
    /// `PluralConflict`, `KindConflict` …
    pub reason: &'static str,
    /// `"foos" is already in use`
    pub message: String,
}

/// `metadata.name`.
pub fn name(definition: &Value) -> &str {
    definition
        .pointer("/metadata/name")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// One kind per served version.
pub fn kinds(definition: &Value) -> Result<Vec<Arc<Kind>>, ApiError> {
    let spec = &definition["spec"];
    let names = &spec["names"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let kind = text(&names["kind"]);
    let list_kind = names["listKind"]
        .as_str()
        .map_or_else(|| format!("{kind}List"), str::to_owned);
    let singular = names["singular"]
        .as_str()
        .map_or_else(|| kind.to_lowercase(), str::to_owned);
    let mut kinds = Vec::new();
    for version in spec["versions"].as_array().into_iter().flatten() {
        if version["served"] != json!(true) {
            continue;
        }
        let subresources = &version["subresources"];
        let scale = subresources.get("scale").map(|scale| ScalePaths {
            spec: text(&scale["specReplicasPath"]),
            status: text(&scale["statusReplicasPath"]),
            selector: scale["labelSelectorPath"].as_str().map(str::to_owned),
        });
        let fields = version["selectableFields"].as_array().into_iter().flatten();
        let schema = &version["schema"]["openAPIV3Schema"];
        let preserve = spec["preserveUnknownFields"] == json!(true);
        kinds.push(Arc::new(Kind {
            group: text(&spec["group"]),
            version: text(&version["name"]),
            kind: kind.clone(),
            list_kind: list_kind.clone(),
            plural: text(&names["plural"]),
            singular: singular.clone(),
            short_names: strings(&names["shortNames"]),
            categories: strings(&names["categories"]),
            namespaced: spec["scope"] == json!("Namespaced"),
            has_status: subresources.get("status").is_some_and(|s| !s.is_null()),
            scale,
            subresources: Vec::new(),
            schema: Arc::new(Schema::custom(schema.clone(), preserve)),
            columns: printer_columns(&version["additionalPrinterColumns"]),
            custom: true,
            selectable_fields: fields
                .filter_map(|f| f["jsonPath"].as_str().map(str::to_owned))
                .collect(),
        }));
    }
    Ok(kinds)
}

/// The columns a CRD asks for; without any, the age.
fn printer_columns(asked: &Value) -> Vec<Column> {
    let mut all = vec![columns::name_column()];
    let asked = asked.as_array().map(Vec::as_slice).unwrap_or_default();
    if asked.is_empty() {
        all.push(Column {
            json_path: Some(".metadata.creationTimestamp".to_owned()),
            description: columns::CREATION_TIMESTAMP.to_owned(),
            ..columns::column("Age", "date", 0)
        });
    }
    for column in asked {
        let text = |field: &str| column[field].as_str().unwrap_or_default().to_owned();
        let priority = column["priority"].as_i64().and_then(|p| i32::try_from(p).ok());
        let description = match column["description"].as_str() {
            Some(words) if !words.is_empty() => words.to_owned(),
            _ => format!(
                "Custom resource definition column (in JSONPath format): {}",
                text("jsonPath")
            ),
        };
        all.push(Column {
            name: text("name"),
            kind: text("type"),
            format: text("format"),
            description,
            priority: priority.unwrap_or(0),
            json_path: Some(text("jsonPath")),
        });
    }
    all
}

/// Which names of the CRD are taken by other kinds of its group.
pub fn name_conflicts(definition: &Value, others: &[Arc<Kind>]) -> Vec<NameConflict> {
    let spec = &definition["spec"];
    let names = &spec["names"];
    let group = spec["group"].as_str().unwrap_or_default();
    let others: Vec<_> = others.iter().filter(|other| other.group == group).collect();
    let resource_taken = |name: &str| {
        let short = |other: &Kind| other.short_names.iter().any(|s| s == name);
        others
            .iter()
            .any(|other| other.plural == name || other.singular == name || short(other))
    };
    let kind_taken = |name: &str| others.iter().any(|other| other.kind == name || other.list_kind == name);
    let mut conflicts = Vec::new();
    let mut check = |name: &str, taken: bool, reason: &'static str| {
        if taken && !name.is_empty() {
            conflicts.push(NameConflict {
                reason,
                message: format!("{name:?} is already in use"),
            });
        }
    };
    let text = |field: &str| names[field].as_str().unwrap_or_default();
    check(text("plural"), resource_taken(text("plural")), "PluralConflict");
    check(text("singular"), resource_taken(text("singular")), "SingularConflict");
    for short in strings(&names["shortNames"]) {
        check(&short, resource_taken(&short), "ShortNamesConflict");
    }
    check(text("kind"), kind_taken(text("kind")), "KindConflict");
    check(text("listKind"), kind_taken(text("listKind")), "ListKindConflict");
    conflicts
}

/// The status a CRD gets: accepted names, `NamesAccepted`, `Established`, stored versions.
/// Conditions that keep their status keep their time.
pub fn status(definition: &Value, conflicts: &[NameConflict], now: Timestamp) -> Value {
    let accepted = conflicts.is_empty();
    let before = &definition["status"];
    let established_before = condition_of(before, "Established").is_some_and(|c| c["status"] == json!("True"));
    let names = match conflicts.last() {
        None => {
            json!({"type": "NamesAccepted", "status": "True", "reason": "NoConflicts", "message": "no conflicts found"})
        }
        Some(last) => {
            json!({"type": "NamesAccepted", "status": "False", "reason": last.reason, "message": last.message})
        }
    };
    let established = if accepted || established_before {
        json!({"type": "Established", "status": "True", "reason": "InitialNamesAccepted",
               "message": "the initial names have been accepted"})
    } else {
        json!({"type": "Established", "status": "False", "reason": "NotAccepted", "message": "not all names are accepted"})
    };
    let mut conditions: Vec<Value> = before["conditions"].as_array().cloned().unwrap_or_default();
    for mut condition in [names, established] {
        let old = conditions.iter_mut().find(|c| c["type"] == condition["type"]);
        let since = old.as_ref().filter(|old| old["status"] == condition["status"]);
        condition["lastTransitionTime"] =
            since.map_or_else(|| json!(seconds(now)), |old| old["lastTransitionTime"].clone());
        match old {
            Some(old) => *old = condition,
            None => conditions.push(condition),
        }
    }
    let mut stored = strings(&before["storedVersions"]);
    let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
    for version in versions.filter(|v| v["storage"] == json!(true)) {
        let name = version["name"].as_str().unwrap_or_default();
        if !stored.iter().any(|s| s == name) {
            stored.push(name.to_owned());
        }
    }
    let accepted_names = if accepted {
        definition["spec"]["names"].clone()
    } else {
        before["acceptedNames"].clone()
    };
    let accepted_names = if accepted_names.is_null() {
        json!({"plural": "", "kind": ""})
    } else {
        accepted_names
    };
    json!({"acceptedNames": accepted_names, "conditions": conditions, "storedVersions": stored})
}

fn condition_of<'a>(status: &'a Value, kind: &str) -> Option<&'a Value> {
    status["conditions"]
        .as_array()?
        .iter()
        .find(|c| c["type"] == json!(kind))
}

fn seconds(now: Timestamp) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn strings(list: &Value) -> Vec<String> {
    list.as_array()
        .into_iter()
        .flatten()
        .filter_map(|v| v.as_str().map(str::to_owned))
        .collect()
}

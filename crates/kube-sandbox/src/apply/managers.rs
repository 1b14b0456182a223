//! `metadata.managedFields`: who owns which fields, as a value that can be worked on.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::set::Set;

/// More update managers than this are folded into one bucket per version.
const MOST_UPDATERS: usize = 10;
const BUCKET: &str = "ancient-changes";

/// What tells managers apart. Appliers have one entry whatever version they speak.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Manager {
    /// The name clients send.
    pub name: String,
    /// Whether it applies; else it updates.
    pub applies: bool,
    /// The version it updated with; empty for appliers.
    pub version: String,
    /// `status`, `scale` or empty.
    pub subresource: String,
}

impl Manager {
    /// How conflicts name it.
    pub fn shown(&self) -> String {
        let mut text = format!("{:?}", self.name);
        if !self.subresource.is_empty() {
            text = format!("{text} with subresource {:?}", self.subresource);
        }
        if !self.applies {
            text = format!("{text} using {}", self.version);
        }
        text
    }

    /// What conflicts are sorted by: the real server sorts the JSON it knows a manager by, where one without a subresource
    /// ends with a brace and so comes after those with one.
    pub fn rank(&self) -> (&str, bool, &str, bool, &str) {
        let whole = self.subresource.is_empty();
        (&self.name, !self.applies, &self.version, whole, &self.subresource)
    }
}

/// What one manager owns.
#[derive(Clone, Debug, Default)]
pub struct Owned {
    /// The version its paths are written in.
    pub version: String,
    /// When it last changed something.
    pub time: Option<String>,
    /// Its fields.
    pub fields: Set,
}

/// All managers of an object.
#[derive(Clone, Debug, Default)]
pub struct Managed(pub BTreeMap<Manager, Owned>);

impl Managed {
    /// Reads `managedFields`; nothing where an entry is not well formed.
    pub fn decode(object: &Value) -> Option<Self> {
        let mut all = BTreeMap::new();
        let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array);
        for entry in entries.into_iter().flatten() {
            let text = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
            let applies = match text("operation").as_str() {
                "Apply" => true,
                "Update" => false,
                _ => return None,
            };
            if entry["fieldsType"].as_str() != Some("FieldsV1") {
                return None;
            }
            let manager = Manager {
                name: text("manager"),
                applies,
                version: if applies { String::new() } else { text("apiVersion") },
                subresource: text("subresource"),
            };
            let owned = Owned {
                version: text("apiVersion"),
                time: entry["time"].as_str().map(str::to_owned),
                fields: Set::decode(entry.get("fieldsV1").unwrap_or(&Value::Null)).unwrap_or_default(),
            };
            all.insert(manager, owned);
        }
        Some(Self(all))
    }

    /// Writes `managedFields`.
    pub fn encode(&self, object: &mut Value) {
        write_entries(self.0.iter().collect(), object);
    }

    /// Takes fields from everyone but `except`, and drops those who own nothing any more.
    pub fn take_from_others(&mut self, except: Option<&Manager>, taken: &Set) {
        for (manager, owned) in &mut self.0 {
            if Some(manager) != except {
                owned.fields = owned.fields.difference(taken);
            }
        }
        self.0
            .retain(|manager, owned| Some(manager) == except || !owned.fields.is_empty());
    }

    /// Folds the oldest updaters together until there are few enough.
    pub fn cap(&mut self) {
        let mut updaters: Vec<(Option<String>, Manager)> = self
            .0
            .iter()
            .filter(|(m, _)| !m.applies)
            .map(|(m, o)| (o.time.clone(), m.clone()))
            .collect();
        let mut count = updaters.len();
        updaters.sort();
        let mut first_of: BTreeMap<String, Manager> = BTreeMap::new();
        for (_, manager) in updaters {
            if count <= MOST_UPDATERS {
                return;
            }
            let Some(first) = first_of.get(&manager.version).cloned() else {
                first_of.insert(manager.version.clone(), manager);
                continue;
            };
            let bucket = Manager {
                name: BUCKET.to_owned(),
                applies: false,
                version: manager.version.clone(),
                subresource: String::new(),
            };
            if !self.0.contains_key(&bucket) {
                let owned = self.0.remove(&first).unwrap_or_default();
                self.0.insert(bucket.clone(), owned);
            }
            if let (Some(merged), Some(into)) = (self.0.remove(&manager), self.0.get_mut(&bucket)) {
                into.fields = into.fields.union(&merged.fields);
                into.time = merged.time;
            }
            count -= 1;
        }
    }
}

/// Writes `managedFields`: appliers before updaters, older entries first.
pub(super) fn write_entries(mut entries: Vec<(&Manager, &Owned)>, object: &mut Value) {
    entries.sort_by_key(|(m, o)| {
        (
            !m.applies,
            o.time.clone(),
            m.name.clone(),
            o.version.clone(),
            m.subresource.clone(),
        )
    });
    let encoded: Vec<Value> = entries
        .into_iter()
        .map(|(manager, owned)| encode(manager, owned))
        .collect();
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
        return;
    };
    if encoded.is_empty() {
        metadata.remove("managedFields");
    } else {
        metadata.insert("managedFields".to_owned(), Value::Array(encoded));
    }
}

fn encode(manager: &Manager, owned: &Owned) -> Value {
    let mut entry = Map::new();
    entry.insert("manager".to_owned(), json!(manager.name));
    entry.insert(
        "operation".to_owned(),
        json!(if manager.applies { "Apply" } else { "Update" }),
    );
    entry.insert("apiVersion".to_owned(), json!(owned.version));
    if let Some(time) = &owned.time {
        entry.insert("time".to_owned(), json!(time));
    }
    entry.insert("fieldsType".to_owned(), json!("FieldsV1"));
    entry.insert("fieldsV1".to_owned(), owned.fields.encode());
    if !manager.subresource.is_empty() {
        entry.insert("subresource".to_owned(), json!(manager.subresource));
    }
    Value::Object(entry)
}

//! Tables: what `kubectl get` asks for instead of objects.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Column, Kind, age, cells, jsonpath, pod_cells};

/// `columnDefinitions` of a Table.
pub fn column_definitions(kind: &Kind) -> Vec<Value> {
    let definition = |column: &Column| {
        json!({"name": column.name, "type": column.kind, "format": column.format,
               "description": column.description, "priority": column.priority})
    };
    kind.columns.iter().map(definition).collect()
}

/// The cells of one object, one per column of its kind.
pub fn row_cells(kind: &Kind, object: &Value, now: Timestamp) -> Vec<Value> {
    if kind.custom {
        return kind
            .columns
            .iter()
            .map(|column| custom_cell(column, object, now))
            .collect();
    }
    if kind.kind == "Pod" {
        return pod_cells::cells(object, now);
    }
    cells::of(&kind.group, &kind.kind, object, now)
}

/// A whole Table of objects. The rows carry what `include` makes of each object: its metadata, all of it or nothing.
pub fn table(kind: &Kind, objects: &[&Value], now: Timestamp, include: &dyn Fn(&Value) -> Option<Value>) -> Value {
    let row = |object: &Value| {
        let mut row = json!({"cells": row_cells(kind, object, now)});
        if let Some(included) = include(object) {
            row["object"] = included;
        }
        row
    };
    let rows: Vec<Value> = objects.iter().map(|object| row(object)).collect();
    // Kinds without specific columns have `rows: null` instead of an empty list.
    let plain = !kind.custom && kind.columns.iter().any(|column| column.name == "Created At");
    let rows = if rows.is_empty() && plain {
        Value::Null
    } else {
        Value::Array(rows)
    };
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {},
        "columnDefinitions": column_definitions(kind),
        "rows": rows,
    })
}

fn custom_cell(column: &Column, object: &Value, now: Timestamp) -> Value {
    let Some(path) = &column.json_path else {
        return object["metadata"]["name"].clone();
    };
    let found = jsonpath::find(object, path);
    let Some(value) = found.first().copied().filter(|v| !v.is_null()) else {
        return Value::Null;
    };
    match column.kind.as_str() {
        "integer" => value
            .as_i64()
            .map_or_else(|| value.as_f64().map_or(Value::Null, |f| json!(f.trunc())), Value::from),
        "number" => value.as_f64().map_or(Value::Null, |_| value.clone()),
        "boolean" => value.as_bool().map_or(Value::Null, Value::from),
        "date" => match value.as_str().map(str::parse::<Timestamp>) {
            Some(Ok(_)) => json!(age::since(value, now)),
            Some(Err(_)) => json!("<invalid>"),
            None => Value::Null,
        },
        _ => {
            let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            json!(found.iter().map(|v| shown(v)).collect::<Vec<_>>().join(" "))
        }
    }
}

//! Valid and invalid values, generated from a schema.

use serde_json::{Map, Value, json};

/// A spec with one invalid value in it.
#[derive(Clone, Debug)]
pub struct Wrong {
    /// The path of the value as the API server writes it.
    pub path: String,
    /// The text that the response must contain.
    pub message: String,
    pub spec: Value,
}

/// The smallest valid value: only the required fields.
pub fn good(schema: &Value) -> Value {
    if let Some(choice) = schema["enum"].get(0) {
        return choice.clone();
    }
    if schema["x-kubernetes-int-or-string"] == true {
        return json!("1Gi");
    }
    match schema["type"].as_str().unwrap_or_default() {
        "string" => json!("a"),
        "boolean" => json!(true),
        "integer" => schema.get("minimum").cloned().unwrap_or(json!(1)),
        "array" => json!([]),
        "object" => {
            let required = schema["required"].as_array().into_iter().flatten();
            let fields = required.filter_map(Value::as_str);
            Value::Object(
                fields
                    .map(|field| (field.to_owned(), good(&schema["properties"][field])))
                    .collect(),
            )
        }
        other => panic!("no value of the type {other:?} is known: {schema}"),
    }
}

/// The number of places for a value.
pub fn fields(schema: &Value) -> usize {
    1 + inside(schema).map(|(_, _, inner)| fields(inner)).sum::<usize>()
}

/// Every invalid value of every field of a spec.
pub fn wrong(spec: &Value) -> Vec<Wrong> {
    at("spec", spec)
}

/// The invalid values of this field and of its children, each in an otherwise valid value.
fn at(path: &str, schema: &Value) -> Vec<Wrong> {
    let mut all: Vec<Wrong> = here(path, schema);
    for (step, place, inner) in inside(schema) {
        let mut deeper = at(&format!("{path}{step}"), inner);
        for one in &mut deeper {
            let mut whole = good(schema);
            match (&mut whole, &place) {
                (Value::Object(fields), Some(field)) => drop(fields.insert(field.clone(), one.spec.take())),
                (Value::Array(items), None) => items.push(one.spec.take()),
                other => panic!("{other:?}"),
            }
            one.spec = whole;
        }
        all.extend(deeper);
    }
    all
}

/// The children of a value: the path as the API server writes it, the field (None for a list item), and its schema.
fn inside(schema: &Value) -> impl Iterator<Item = (String, Option<String>, &Value)> {
    let fields = schema["properties"].as_object().into_iter().flatten();
    let fields = fields.map(|(name, inner)| (format!(".{name}"), Some(name.clone()), inner));
    let values = schema.get("additionalProperties").filter(|inner| inner.is_object());
    let values = values.map(|inner| (".key".to_owned(), Some("key".to_owned()), inner));
    let items = schema.get("items").map(|inner| ("[0]".to_owned(), None, inner));
    fields.chain(values).chain(items)
}

/// Invalid values of this field itself.
fn here(path: &str, schema: &Value) -> Vec<Wrong> {
    let mut all = Vec::new();
    let mut add = |message: String, spec: Value| {
        let path = path.to_owned();
        all.push(Wrong { path, message, spec });
    };
    let bound = |name: &str| schema.get(name).and_then(Value::as_i64);
    let count = |name: &str| {
        schema
            .get(name)
            .and_then(Value::as_u64)
            .and_then(|most| usize::try_from(most).ok())
    };
    let kind = schema["type"].as_str().unwrap_or("integer,string");
    let odd = if kind == "boolean" { json!(7) } else { json!(true) };
    add(format!("must be of type {kind}: "), odd);
    if kind == "integer" {
        add("must be of type integer: ".to_owned(), json!(1.5));
        add("must be of type integer: ".to_owned(), json!("1"));
    }
    if let Some(least) = bound("minimum") {
        add(format!("should be greater than or equal to {least}"), json!(least - 1));
    }
    if let Some(most) = bound("maximum") {
        add(format!("should be less than or equal to {most}"), json!(most + 1));
    }
    if let Some(choices) = schema["enum"].as_array() {
        let choices: Vec<String> = choices.iter().map(Value::to_string).collect();
        add(format!("supported values: {}", choices.join(", ")), json!("Another"));
        add(format!("supported values: {}", choices.join(", ")), json!(""));
    }
    if let Some(most) = count("maxLength") {
        add(format!("may not be more than {most}"), json!("1".repeat(most + 1)));
    }
    if let Some(least) = count("minLength").filter(|least| *least > 0) {
        add(
            format!("should be at least {least} chars long"),
            json!("1".repeat(least - 1)),
        );
    }
    if let Some(pattern) = schema["pattern"].as_str() {
        add(format!("should match '{pattern}'"), json!(" ! "));
    }
    if let Some(most) = count("maxItems") {
        let items = (0..=most).map(|index| {
            let mut item = good(&schema["items"]);
            if let Some(name) = item.get_mut("name") {
                *name = json!(format!("n{index}"));
            }
            item
        });
        add(format!("must have at most {most} items"), items.collect());
    }
    if let Some(most) = count("maxProperties") {
        let inner = &schema["additionalProperties"];
        let many: Map<String, Value> = (0..=most).map(|index| (format!("k{index}"), good(inner))).collect();
        add(format!("must have at most {most} items"), Value::Object(many));
    }
    if schema["x-kubernetes-list-type"] == "map" {
        add(
            "Duplicate value".to_owned(),
            json!([good(&schema["items"]), good(&schema["items"])]),
        );
    }
    for field in schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
    {
        let mut lacking = good(schema);
        if let Some(fields) = lacking.as_object_mut() {
            fields.remove(field);
        }
        add(format!("{path}.{field}: Required value"), lacking);
    }
    all
}

//! Errors about one field, worded as every validation of the real server does.

use serde_json::Value;

use crate::status::Cause;

fn cause(reason: &str, field: &str, message: String) -> Cause {
    Cause {
        reason: reason.to_owned(),
        message,
        field: field.to_owned(),
    }
}

fn with_detail(head: String, detail: &str) -> String {
    if detail.is_empty() {
        head
    } else {
        format!("{head}: {detail}")
    }
}

/// `Invalid value: 0: must be greater than 0`
pub fn invalid(field: &str, value: &Value, detail: &str) -> Cause {
    cause(
        "FieldValueInvalid",
        field,
        with_detail(format!("Invalid value: {}", shown(value)), detail),
    )
}

/// The same with a printed value: the real server prints some Go structs, in an order of fields that JSON objects do not
/// keep.
pub fn invalid_printed(field: &str, printed: &str, detail: &str) -> Cause {
    cause(
        "FieldValueInvalid",
        field,
        with_detail(format!("Invalid value: {printed}"), detail),
    )
}

/// The value has the wrong type; the words are the same.
pub fn type_invalid(field: &str, value: &Value, detail: &str) -> Cause {
    cause(
        "FieldValueTypeInvalid",
        field,
        with_detail(format!("Invalid value: {}", shown(value)), detail),
    )
}

/// `Required value`
pub fn required(field: &str, detail: &str) -> Cause {
    cause(
        "FieldValueRequired",
        field,
        with_detail("Required value".to_owned(), detail),
    )
}

/// `Unsupported value: "x": supported values: "a", "b"`
pub fn not_supported<S: AsRef<str>>(field: &str, value: &Value, supported: &[S]) -> Cause {
    let list: Vec<String> = supported.iter().map(|s| format!("{:?}", s.as_ref())).collect();
    let detail = if list.is_empty() {
        String::new()
    } else {
        format!("supported values: {}", list.join(", "))
    };
    cause(
        "FieldValueNotSupported",
        field,
        with_detail(format!("Unsupported value: {}", shown(value)), &detail),
    )
}

/// `Duplicate value: "x"`
pub fn duplicate(field: &str, value: &Value) -> Cause {
    cause(
        "FieldValueDuplicate",
        field,
        format!("Duplicate value: {}", shown(value)),
    )
}

/// `Forbidden: field is immutable`
pub fn forbidden(field: &str, detail: &str) -> Cause {
    cause(
        "FieldValueForbidden",
        field,
        with_detail("Forbidden".to_owned(), detail),
    )
}

/// `Not found: "x"`
pub fn not_found(field: &str, value: &Value) -> Cause {
    cause("FieldValueNotFound", field, format!("Not found: {}", shown(value)))
}

/// `Too long: may not be more than 63 bytes`
pub fn too_long(field: &str, most: u64) -> Cause {
    let unit = if most == 1 { "byte" } else { "bytes" };
    cause(
        "FieldValueTooLong",
        field,
        format!("Too long: may not be more than {most} {unit}"),
    )
}

/// `Too many: 3: must have at most 2 items`
pub fn too_many(field: &str, found: usize, most: u64) -> Cause {
    let unit = if most == 1 { "item" } else { "items" };
    cause(
        "FieldValueTooMany",
        field,
        format!("Too many: {found}: must have at most {most} {unit}"),
    )
}

/// A value as it stands in an error: text quoted, the rest as JSON with `<`, `>` and `&` escaped.
pub fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => format!("{text:?}"),
        Value::Array(_) | Value::Object(_) => {
            let text = value.to_string();
            text.replace('<', "\\u003c")
                .replace('>', "\\u003e")
                .replace('&', "\\u0026")
        }
        scalar => scalar.to_string(),
    }
}

/// `spec.containers` and `name` make `spec.containers.name`; the root has no name.
pub fn child(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

//! Answers: objects, lists, tables, errors.

use axum::body::Body;
use bytes::{BufMut, Bytes, BytesMut};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, WARNING};
use http::{HeaderValue, Response, StatusCode};
use serde_json::{Value, json};

use super::negotiate::{Accepted, Format};
use crate::status::{ApiError, NO_PAGE};

/// An answer of any kind.
pub type Reply = Response<Body>;

/// Bytes of a given type.
pub fn bytes(code: u16, media: &'static str, body: impl Into<Bytes>) -> Reply {
    let mut response = Response::new(Body::from(body.into()));
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

/// JSON that is written already, in the form that was accepted.
pub fn json_bytes(code: u16, accepted: Accepted, body: Bytes) -> Reply {
    if accepted.format == Format::Json && !accepted.pretty {
        return bytes(code, "application/json", body);
    }
    match serde_json::from_slice(&body) {
        Ok(parsed) => value(code, accepted, &parsed),
        Err(_) => bytes(code, "application/json", body),
    }
}

/// A value in the form that was accepted.
pub fn value(code: u16, accepted: Accepted, body: &Value) -> Reply {
    match accepted.format {
        Format::Yaml => bytes(
            code,
            "application/yaml",
            serde_norway::to_string(body).unwrap_or_default(),
        ),
        Format::Json if accepted.pretty => bytes(
            code,
            "application/json",
            serde_json::to_vec_pretty(body).unwrap_or_default(),
        ),
        Format::Json => bytes(code, "application/json", body.to_string()),
    }
}

/// An error as a `Status`.
pub fn error(error: &ApiError) -> Reply {
    if error.reason == NO_PAGE {
        return bytes(error.code, "text/plain; charset=utf-8", error.message.clone());
    }
    let mut response = value(error.code, Accepted::JSON, &error.to_value());
    if let Some(seconds) = error
        .details
        .as_ref()
        .and_then(|d| d["retryAfterSeconds"].as_i64())
        .and_then(|s| HeaderValue::from_str(&s.to_string()).ok())
    {
        response.headers_mut().insert("retry-after", seconds);
    }
    response
}

/// The `Status` of a deletion that is done.
pub fn deleted(group: &str, plural: &str, name: &str, uid: &str) -> Value {
    let mut details = json!({"name": name, "kind": plural, "uid": uid});
    if !group.is_empty() {
        details["group"] = json!(group);
    }
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}

/// Adds `Warning: 299 - "…"` headers.
pub fn warn(mut response: Reply, warnings: &[String]) -> Reply {
    for warning in warnings {
        let quoted = warning.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(header) = HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
            response.headers_mut().append(WARNING, header);
        }
    }
    response
}

/// A list put together from its parts, each written already.
pub fn list_bytes(kind: &str, api_version: &str, metadata: &Value, items: impl Iterator<Item = Bytes>) -> Bytes {
    let mut out = BytesMut::with_capacity(4096);
    out.put_slice(
        format!(
            "{{\"kind\":{:?},\"apiVersion\":{api_version:?},\"metadata\":{metadata},\"items\":[",
            format!("{kind}List")
        )
        .as_bytes(),
    );
    for (i, item) in items.enumerate() {
        if i > 0 {
            out.put_u8(b',');
        }
        out.put_slice(&item);
    }
    out.put_slice(b"]}");
    out.freeze()
}

//! Request bodies: their size, their form, what they claim to be.

use axum::body::Body;
use bytes::Bytes;
use http::HeaderMap;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde_json::Value;

use super::negotiate::{Format, body_format, content_type};
use super::protobuf;
use crate::kinds::Kind;
use crate::status::ApiError;

/// The real server's limit for one request.
const LIMIT: usize = 3 * 1024 * 1024;

/// Reads a body of at most 3 MiB.
pub async fn read(body: Body) -> Result<Bytes, ApiError> {
    match Limited::new(body, LIMIT).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(ApiError::new(
            413,
            "RequestEntityTooLarge",
            format!("Request entity is too large: limit is {LIMIT}"),
        )),
        Err(error) => Err(ApiError::bad_request(format!("reading the request's body: {error}"))),
    }
}

/// Reads JSON, YAML or protobuf by the Content-Type.
pub fn parse(headers: &HeaderMap, body: &[u8]) -> Result<Value, ApiError> {
    if content_type(headers) == protobuf::MEDIA {
        return protobuf::decode(body);
    }
    match body_format(headers)? {
        Format::Json => json(body),
        Format::Yaml => yaml(body),
    }
}

/// Reads JSON.
pub fn json(body: &[u8]) -> Result<Value, ApiError> {
    serde_json::from_slice(body).map_err(|e| ApiError::bad_request(broken_json(body, &e)))
}

/// Reads YAML, of which JSON is a part.
pub fn yaml(body: &[u8]) -> Result<Value, ApiError> {
    let text = std::str::from_utf8(body).map_err(|_| ApiError::bad_request("yaml: invalid leading UTF-8 octet"))?;
    serde_saphyr::from_str(text).map_err(|e| ApiError::bad_request(format!("error converting YAML to JSON: {e}")))
}

/// The complaint about JSON that cannot be read, in the words clients know.
fn broken_json(body: &[u8], error: &serde_json::Error) -> String {
    let said = if error.is_eof() {
        "unexpected end of JSON input".to_owned()
    } else {
        let offset = offset_of(body, error.line(), error.column());
        match body.get(offset).and_then(|b| char::from_u32(u32::from(*b))) {
            Some(c) => format!("invalid character {c:?} looking for beginning of value"),
            None => error.to_string(),
        }
    };
    format!("couldn't get version/kind; json parse error: {said}")
}

fn offset_of(body: &[u8], line: usize, column: usize) -> usize {
    let before: usize = body
        .split(|b| *b == b'\n')
        .take(line.saturating_sub(1))
        .map(|l| l.len() + 1)
        .sum();
    (before + column).saturating_sub(1)
}

/// An object sent to the path of `kind`: what it says of itself must fit, and what it leaves out is filled in.
pub fn object(kind: &Kind, mut value: Value) -> Result<Value, ApiError> {
    let wanted = api_version(kind);
    let Some(map) = value.as_object_mut() else {
        return Err(ApiError::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go value of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}",
            kind.kind,
            json_type(&value),
        )));
    };
    let claimed_kind = map.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    let claimed_version = map
        .get("apiVersion")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    if !claimed_kind.is_empty() && claimed_kind != kind.kind {
        return Err(ApiError::bad_request(format!(
            "{claimed_kind} in version {:?} cannot be handled as a {}: no kind {claimed_kind:?} is registered for version {claimed_version:?}",
            claimed_version.rsplit('/').next().unwrap_or_default(),
            kind.kind,
        )));
    }
    if !claimed_version.is_empty() && claimed_version != wanted {
        return Err(ApiError::bad_request(format!(
            "the API version in the data ({claimed_version}) does not match the expected API version ({wanted})"
        )));
    }
    map.insert("kind".into(), Value::String(kind.kind.clone()));
    map.insert("apiVersion".into(), Value::String(wanted));
    if !map.get("metadata").is_some_and(Value::is_object) {
        map.insert("metadata".into(), Value::Object(serde_json::Map::new()));
    }
    Ok(value)
}

/// `apps/v1`, or `v1` in the core group.
pub fn api_version(kind: &Kind) -> String {
    if kind.group.is_empty() {
        kind.version.clone()
    } else {
        format!("{}/{}", kind.group, kind.version)
    }
}

fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

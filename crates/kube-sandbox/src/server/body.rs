//! Request bodies: their size, their form, what they claim to be.

use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body_util::BodyExt;
use serde_json::Value;

use super::negotiate::{Format, body_format, content_type};
use super::protobuf;
use crate::kinds::{Kind, Registry};
use crate::status::{ApiError, Cause};

/// The real server's limit for one request.
const LIMIT: usize = 3 * 1024 * 1024;

/// What is still taken, and thrown away, of a body that is too large: a client that writes while its connection closes
/// would never see the answer.
const DRAINED: usize = 64 * 1024 * 1024;

/// How long a client may take to send a body.
const TIME: Duration = Duration::from_secs(60);

/// Reads a body of at most 3 MiB.
pub async fn read(body: Body) -> Result<Bytes, ApiError> {
    read_within(TIME, body).await
}

async fn read_within(time: Duration, body: Body) -> Result<Bytes, ApiError> {
    let message = "Timeout: request did not complete within requested timeout";
    let late = |_| ApiError::new(504, "Timeout", message);
    tokio::time::timeout(time, read_all(body)).await.map_err(late)?
}

async fn read_all(mut body: Body) -> Result<Bytes, ApiError> {
    let mut taken = BytesMut::new();
    let mut size = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| ApiError::bad_request(format!("reading the request's body: {error}")))?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        size += data.len();
        if size <= LIMIT {
            taken.extend_from_slice(&data);
        } else if size > DRAINED {
            break;
        } else {
            taken = BytesMut::new();
        }
    }
    if size <= LIMIT {
        return Ok(taken.freeze());
    }
    let message = format!("Request entity too large: limit is {LIMIT}");
    Err(ApiError::new(413, "RequestEntityTooLarge", message))
}

/// Reads JSON, YAML or protobuf by the Content-Type. `kind` is what the body ought to be.
pub fn parse(headers: &HeaderMap, kind: &str, body: &[u8]) -> Result<Value, ApiError> {
    if content_type(headers) == protobuf::MEDIA {
        return protobuf::decode(body);
    }
    let read = match body_format(headers)? {
        Format::Json => {
            read_json(body).map_err(|message| format!("couldn't get version/kind; json parse error: {message}"))
        }
        Format::Yaml => read_yaml(body),
    };
    let message = match read {
        Ok(Value::Object(map)) => match misread_head(&map) {
            None => return Ok(Value::Object(map)),
            Some(message) => message,
        },
        Ok(other) => format!(
            "couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go value of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}",
            json_type(&other),
        ),
        Err(message) => message,
    };
    Err(ApiError::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): {message} ({})",
        summary(body)
    )))
}

/// What is wrong with a version or a kind that is no text.
fn misread_head(map: &serde_json::Map<String, Value>) -> Option<String> {
    ["apiVersion", "kind"].iter().find_map(|field| {
        let found = map.get(*field).filter(|value| !value.is_string() && !value.is_null())?;
        Some(format!(
            "couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go struct field .{field} of type string",
            json_type(found)
        ))
    })
}

/// 400 for a custom object that does not say its kind; built-in ones need not.
pub fn missing_kind(kind: &str, body: &[u8]) -> ApiError {
    ApiError::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): Object 'Kind' is missing in '{}' ({})",
        String::from_utf8_lossy(body),
        summary(body)
    ))
}

/// The start of a body, for the complaint about it.
fn summary(body: &[u8]) -> String {
    const MOST: usize = 30;
    let more = if body.len() > MOST { " ..." } else { "" };
    let start = &body[..body.len().min(MOST)];
    match body.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => format!("{}{more}", String::from_utf8_lossy(start)),
        Some(_) => start.iter().fold(String::new(), |out, b| format!("{out}{b:02x}")) + more,
    }
}

/// Reads the JSON of a patch.
pub fn json(body: &[u8]) -> Result<Value, ApiError> {
    read_json(body).map_err(|message| ApiError::bad_request(format!("error decoding patch: {message}")))
}

/// Reads the YAML of an applied configuration, of which JSON is a part.
pub fn yaml(body: &[u8]) -> Result<Value, ApiError> {
    read_yaml(body).map_err(|message| ApiError::bad_request(format!("error decoding YAML: {message}")))
}

fn read_yaml(body: &[u8]) -> Result<Value, String> {
    let text = std::str::from_utf8(body).map_err(|_| "yaml: invalid leading UTF-8 octet".to_owned())?;
    serde_saphyr::from_str(text).map_err(|error| {
        let message = error.to_string();
        let first = message.lines().next().unwrap_or_default();
        let cause = first.rsplit_once(": ").map_or(first, |(_, cause)| cause);
        format!("yaml: {cause}")
    })
}

/// Reads JSON; the complaint is in the words clients know.
pub(super) fn read_json(body: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(body).map_err(|error| {
        if error.is_eof() {
            return "unexpected end of JSON input".to_owned();
        }
        let offset = offset_of(body, error.line(), error.column());
        match body.get(offset).copied() {
            Some(c) if error.to_string().starts_with("expected ident") => literal(body, offset, char::from(c)),
            Some(c) if error.to_string().starts_with("trailing") => {
                format!("invalid character {:?} after top-level value", char::from(c))
            }
            Some(c) => format!("invalid character {} looking for beginning of value", quoted(c)),
            None => error.to_string(),
        }
    })
}

/// One byte as Go quotes it.
fn quoted(byte: u8) -> String {
    if (0x80..0xa0).contains(&byte) {
        return format!("'\\u{byte:04x}'");
    }
    format!("{:?}", char::from(byte))
}

/// A word that begins like `true`, `false` or `null` and is none.
fn literal(body: &[u8], offset: usize, found: char) -> String {
    for word in ["true", "false", "null"] {
        for start in offset.saturating_sub(word.len())..offset {
            let same = offset - start;
            if same < word.len() && body.get(start..offset) == Some(&word.as_bytes()[..same]) {
                let expected = char::from(word.as_bytes()[same]);
                return format!("invalid character {found:?} in literal {word} (expecting {expected:?})");
            }
        }
    }
    format!("invalid character {found:?} looking for beginning of value")
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
pub fn object(kinds: &Registry, kind: &Kind, mut value: Value) -> Result<Value, ApiError> {
    let expected = api_version(kind);
    let Some(map) = value.as_object_mut() else {
        return Err(ApiError::bad_request(format!(
            "the object provided is no object but {}",
            json_type(&value)
        )));
    };
    let claimed = |field: &str| map.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (claimed_kind, claimed_version) = (claimed("kind"), claimed("apiVersion"));
    let claimed = |claim: &str, real: &str| !claim.is_empty() && claim != real;
    if kind.custom && claimed(&claimed_kind, &kind.kind) && claimed_version == expected {
        let (group, name) = (
            &kind.group,
            map.get("metadata").and_then(|m| m["name"].as_str()).unwrap_or_default(),
        );
        let cause = Cause {
            reason: "FieldValueInvalid".into(),
            message: format!("Invalid value: {claimed_kind:?}: must be {}", kind.kind),
            field: "kind".into(),
        };
        return Err(ApiError::invalid(group, &claimed_kind, name, &[cause]));
    }
    if claimed(&claimed_kind, &kind.kind) || claimed(&claimed_version, &expected) {
        return Err(mistaken(kinds, kind, &claimed_kind, &claimed_version));
    }
    map.insert("kind".into(), Value::String(kind.kind.clone()));
    map.insert("apiVersion".into(), Value::String(expected));
    if !map.get("metadata").is_some_and(Value::is_object) {
        map.insert("metadata".into(), Value::Object(serde_json::Map::new()));
    }
    Ok(value)
}

/// 400 for an object of another kind or version than its path.
fn mistaken(kinds: &Registry, kind: &Kind, claimed_kind: &str, claimed_version: &str) -> ApiError {
    let claimed_kind = if claimed_kind.is_empty() {
        &kind.kind
    } else {
        claimed_kind
    };
    let (group, version) = claimed_version.split_once('/').unwrap_or(("", claimed_version));
    if kind.custom {
        return ApiError::bad_request(format!(
            "the API version in the data ({claimed_version}) does not match the expected API version ({})",
            api_version(kind)
        ));
    }
    let why = if kinds.find_kind(group, version, claimed_kind).is_some() {
        let package = if group.is_empty() {
            "core"
        } else {
            group.split('.').next().unwrap_or(group)
        };
        format!(
            "converting ({version}.{claimed_kind}) to ({package}.{}): unknown conversion",
            kind.kind
        )
    } else {
        format!(
            "no kind {claimed_kind:?} is registered for version {claimed_version:?} in scheme \"pkg/runtime/scheme.go:110\""
        )
    };
    ApiError::bad_request(format!(
        "{claimed_kind} in version {version:?} cannot be handled as a {}: {why}",
        kind.kind
    ))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_body_that_does_not_end_is_rejected() {
        let body = || Body::from_stream(futures::stream::pending::<Result<Bytes, std::io::Error>>());
        let error = read_within(Duration::from_millis(10), body()).await.unwrap_err();
        assert_eq!((error.code, error.reason), (504, "Timeout"));
        let whole = read_within(TIME, Body::from("{}")).await.unwrap();
        assert_eq!(whole, "{}");
    }
}

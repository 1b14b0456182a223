//! Content negotiation: the form of the answer, and the form of the request's body.

use http::HeaderMap;
use http::header::{ACCEPT, CONTENT_TYPE};

use crate::status::ApiError;

/// How an answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `application/json`
    Json,
    /// `application/yaml`
    Yaml,
}

/// What an answer is turned into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Representation {
    /// The objects as they are.
    Whole,
    /// Rows and columns.
    Table,
    /// Only the metadata of one object, or of each object of a list.
    Partial,
}

/// The outcome of negotiation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// How.
    pub format: Format,
    /// What.
    pub representation: Representation,
    /// Whether JSON is indented for people.
    pub pretty: bool,
}

impl Accepted {
    /// Plain JSON.
    pub const JSON: Self = Self {
        format: Format::Json,
        representation: Representation::Whole,
        pretty: false,
    };

    /// Reads the Accept header; a client that sends none gets JSON. `transforms` says whether Table and
    /// `PartialObjectMetadata` are available here.
    pub fn of(headers: &HeaderMap, transforms: bool) -> Result<Self, ApiError> {
        let text: Vec<&str> = headers.get_all(ACCEPT).iter().filter_map(|v| v.to_str().ok()).collect();
        let text = text.join(",");
        if text.trim().is_empty() {
            return Ok(Self::JSON);
        }
        let mut clauses: Vec<Clause> = text.split(',').map(Clause::parse).collect();
        clauses.sort_by(|a, b| b.quality.total_cmp(&a.quality));
        if let Some(accepted) = clauses.iter().find_map(|c| c.accept(transforms)) {
            return Ok(accepted);
        }
        let known = |c: &Clause<'_>| matches!(c.media, "*/*" | "application/*") || MEDIA_TYPES.contains(&c.media);
        let list = MEDIA_TYPES.join(", ");
        if clauses.iter().any(known) {
            let message = format!("only the following media types are accepted: {list}");
            return Err(ApiError::new(406, "NotAcceptable", message));
        }
        let message = format!("406: Not Acceptable\n\nAvailable representations: {list}");
        let mut error = ApiError::new(406, "NotAcceptable", message);
        error.details = Some(serde_json::json!({}));
        Err(error)
    }
}

/// What the real server lists; protobuf is read here but never written.
const MEDIA_TYPES: [&str; 3] = [
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
];

struct Clause<'a> {
    media: &'a str,
    quality: f32,
    parameters: Vec<(&'a str, &'a str)>,
}

impl<'a> Clause<'a> {
    fn parse(text: &'a str) -> Self {
        let mut parts = text.split(';').map(str::trim);
        let media = parts.next().unwrap_or_default();
        let parameters: Vec<_> = parts.filter_map(|p| p.split_once('=')).collect();
        let quality = parameters
            .iter()
            .find(|(k, _)| *k == "q")
            .and_then(|(_, v)| v.parse().ok())
            .unwrap_or(1.0);
        Self {
            media,
            quality,
            parameters,
        }
    }

    fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(k, _)| *k == name).map(|(_, v)| *v)
    }

    fn accept(&self, transforms: bool) -> Option<Accepted> {
        let format = match self.media {
            "application/json" | "*/*" | "application/*" => Format::Json,
            "application/yaml" => Format::Yaml,
            _ => return None,
        };
        let representation = match (self.parameter("as"), self.parameter("g"), self.parameter("v")) {
            (None, _, _) => Representation::Whole,
            (Some("Table"), Some("meta.k8s.io"), Some("v1" | "v1beta1")) if transforms => Representation::Table,
            (Some("PartialObjectMetadata" | "PartialObjectMetadataList"), Some("meta.k8s.io"), Some("v1"))
                if transforms =>
            {
                Representation::Partial
            }
            _ => return None,
        };
        Some(Accepted {
            format,
            representation,
            pretty: self.parameter("pretty").is_some_and(|v| v != "0" && v != "false"),
        })
    }
}

/// How the request's body is written.
pub fn body_format(headers: &HeaderMap) -> Result<Format, ApiError> {
    match content_type(headers) {
        "" | "application/json" => Ok(Format::Json),
        "application/yaml" => Ok(Format::Yaml),
        _ => Err(unsupported(&MEDIA_TYPES)),
    }
}

/// The media type of the body without its parameters.
pub fn content_type(headers: &HeaderMap) -> &str {
    headers
        .get(CONTENT_TYPE)
        .and_then(|v| v.to_str().ok())
        .and_then(|v| v.split(';').next())
        .unwrap_or_default()
        .trim()
}

/// 415 with the types that are taken.
pub fn unsupported(accepted: &[&str]) -> ApiError {
    ApiError::new(
        415,
        "UnsupportedMediaType",
        format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            accepted.join(", ")
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_form_we_can_give_wins_in_order_of_quality() {
        let table = [
            ("", Some((Format::Json, Representation::Whole))),
            ("*/*", Some((Format::Json, Representation::Whole))),
            ("application/yaml", Some((Format::Yaml, Representation::Whole))),
            (
                "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json",
                Some((Format::Json, Representation::Table)),
            ),
            (
                "application/vnd.kubernetes.protobuf, application/json",
                Some((Format::Json, Representation::Whole)),
            ),
            (
                "application/json;q=0.1, application/yaml;q=0.9",
                Some((Format::Yaml, Representation::Whole)),
            ),
            (
                "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
                Some((Format::Json, Representation::Partial)),
            ),
            ("text/html", None),
            ("application/json;as=Nonsense;v=v1;g=meta.k8s.io", None),
        ];
        for (accept, expected) in table {
            let mut headers = HeaderMap::new();
            if !accept.is_empty() {
                headers.insert(ACCEPT, accept.parse().unwrap());
            }
            let got = Accepted::of(&headers, true);
            assert_eq!(
                got.as_ref().ok().map(|a| (a.format, a.representation)),
                expected,
                "{accept}"
            );
            assert!(got.is_ok() || got.is_err_and(|e| e.code == 406));
        }
    }
}

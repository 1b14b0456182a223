//! Get and list.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::{BufMut, Bytes, BytesMut};
use serde_json::{Value, json};

use super::api::{Api, Call};
use super::body::{self, api_version};
use super::convert;
use super::negotiate::{Accepted, Representation};
use super::query::Query;
use super::respond::{self, Reply};
use super::selectors::{FieldSelector, LabelSelector};
use crate::kinds::Kind;
use crate::status::{ApiError, Cause};
use crate::store::{Object, ObjectKey};

/// What a list or watch selects.
#[derive(Clone, Debug)]
pub(super) struct Selection {
    pub namespace: Option<String>,
    pub labels: LabelSelector,
    pub fields: FieldSelector,
}

impl Selection {
    pub fn of(call: &Call) -> Result<Self, ApiError> {
        let mut fields = FieldSelector::parse(call.query.get("fieldSelector").unwrap_or_default())?;
        check_fields(&call.kind, &fields)?;
        if !call.info.name.is_empty() {
            fields = FieldSelector::parse(&format!("metadata.name={}", call.info.name))?;
        }
        let fields = fields.renamed(|field| convert::stored_field(&call.kind, field));
        let namespace = Some(call.info.namespace.clone()).filter(|n| !n.is_empty() && call.kind.namespaced);
        Ok(Self {
            namespace,
            labels: LabelSelector::parse(call.query.get("labelSelector").unwrap_or_default())?,
            fields,
        })
    }

    pub fn matches(&self, object: &Value) -> bool {
        self.labels.matches(object) && self.fields.matches(object)
    }

    pub fn covers(&self, key: &ObjectKey) -> bool {
        self.namespace.as_ref().is_none_or(|n| *n == key.namespace)
    }
}

fn check_fields(kind: &Kind, fields: &FieldSelector) -> Result<(), ApiError> {
    for field in fields.fields() {
        let known = field == "metadata.name"
            || field == "metadata.namespace"
            || selectable(kind).contains(&field)
            || kind
                .selectable_fields
                .iter()
                .any(|f| f.trim_start_matches('.') == field);
        if !known {
            let shown = if kind.custom || !selectable(kind).is_empty() {
                format!("field label not supported: {field}")
            } else {
                format!("{field:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
            };
            return Err(ApiError::bad_request(shown));
        }
    }
    Ok(())
}

fn selectable(kind: &Kind) -> &'static [&'static str] {
    match (kind.group.as_str(), kind.plural.as_str()) {
        ("", "pods") => &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        ],
        ("", "nodes") => &["spec.unschedulable"],
        ("", "namespaces") => &["status.phase"],
        ("", "secrets") => &["type"],
        ("", "services") => &["spec.clusterIP", "spec.type"],
        ("" | "events.k8s.io", "events") => &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "regarding.kind",
            "regarding.namespace",
            "regarding.name",
            "regarding.uid",
            "reason",
            "reportingComponent",
            "reportingController",
            "source",
            "type",
        ],
        ("apps", "replicasets") => &["status.replicas"],
        _ => &[],
    }
}

/// A continue token: the next list is of the same revision, after the last name.
#[derive(serde::Serialize, serde::Deserialize)]
struct Continue {
    v: String,
    rv: i64,
    start: String,
}

impl Api {
    pub(super) fn get(&self, call: &Call) -> Result<Reply, ApiError> {
        let accepted = Accepted::of(&call.headers, true)?;
        let object = self.find(call)?;
        Ok(object_reply(call, 200, accepted, &object))
    }

    /// The object a request names.
    pub(super) fn find(&self, call: &Call) -> Result<Arc<Object>, ApiError> {
        self.store()
            .get(&call.table(), &key(call))
            .ok_or_else(|| ApiError::not_found(&call.kind.group, &call.kind.plural, &call.info.name))
    }

    pub(super) fn list(&self, call: &Call) -> Result<Reply, ApiError> {
        let accepted = Accepted::of(&call.headers, true)?;
        let selection = Selection::of(call)?;
        let mut page = self.page(call, &selection)?;
        page.objects.iter_mut().for_each(|o| *o = convert::view(&call.kind, o));
        if accepted.representation != Representation::Whole && page.metadata["continue"] == json!("") {
            page.metadata
                .as_object_mut()
                .map(|metadata| metadata.remove("continue"));
        }
        if accepted.representation == Representation::Table {
            let values: Vec<&Value> = page.objects.iter().map(|o| o.value()).collect();
            let mut table = table(&call.kind, &values, Include::asked(&call.query));
            table["metadata"] = page.metadata;
            return Ok(respond::value(200, accepted, &table));
        }
        if accepted.representation == Representation::Partial {
            let items: Vec<Value> = page.objects.iter().map(|o| partial(o.value())).collect();
            return Ok(respond::value(
                200,
                accepted,
                &json!({"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": page.metadata, "items": (!items.is_empty()).then_some(items)}),
            ));
        }
        let items = page.objects.iter().map(|o| item_bytes(&call.kind, o));
        let list = respond::list_bytes(&call.kind.kind, &api_version(&call.kind), &page.metadata, items);
        Ok(respond::json_bytes(200, accepted, list))
    }

    fn page(&self, call: &Call, selection: &Selection) -> Result<Page, ApiError> {
        let limit = call.query.number("limit")?.unwrap_or(0).max(0);
        let limit = usize::try_from(limit).unwrap_or(0);
        let (objects, revision, after) = self.snapshot(call, selection)?;
        let start = after
            .as_ref()
            .map_or(0, |a| objects.partition_point(|o| position(o) <= *a));
        let mut matching = objects[start..].iter().filter(|o| selection.matches(o.value()));
        let mut metadata = list_metadata(&call.kind, revision);
        if limit == 0 {
            return Ok(Page {
                objects: matching.cloned().collect(),
                metadata,
            });
        }
        let page: Vec<Arc<Object>> = matching.by_ref().take(limit).cloned().collect();
        let last = page.last().map(position);
        let remaining = matching.count();
        if let (Some(last), true) = (last, remaining > 0) {
            let token = Continue {
                v: "meta.k8s.io/v1".into(),
                rv: i64::try_from(revision).unwrap_or(i64::MAX),
                start: format!("{}/{}", last.namespace, last.name),
            };
            metadata["continue"] = json!(URL_SAFE_NO_PAD.encode(serde_json::to_vec(&token).unwrap_or_default()));
            if selection.labels.is_empty() && selection.fields.is_empty() {
                metadata["remainingItemCount"] = json!(remaining);
            }
        }
        Ok(Page {
            objects: page,
            metadata,
        })
    }

    /// The objects to page through, the revision they are of, and the place to start after.
    fn snapshot(&self, call: &Call, selection: &Selection) -> Result<Snapshot, ApiError> {
        let namespace = selection.namespace.as_deref();
        let table = call.table();
        let version = call.query.get("resourceVersion");
        let matching = call.query.get("resourceVersionMatch");
        if let Some(token) = call.query.get("continue") {
            if matching.is_some() {
                return Err(list_options(
                    "resourceVersionMatch",
                    "Forbidden: resourceVersionMatch is forbidden when continue is provided",
                    "FieldValueForbidden",
                ));
            }
            if version.is_some_and(|v| v != "0") {
                return Err(ApiError::bad_request(
                    "specifying resource version is not allowed when using continue",
                ));
            }
            let token = decode_continue(token)?;
            let after = token.start.split_once('/').map(|(n, name)| ObjectKey::new(n, name));
            if token.rv < 0 {
                let (objects, revision) = self.store().list(&table, namespace);
                return Ok((objects, revision, after));
            }
            let revision = u64::try_from(token.rv).unwrap_or_default();
            let objects = self
                .store()
                .list_at(&table, namespace, revision)
                .map_err(|_| expired_continue(token))?;
            return Ok((objects, revision, after));
        }
        let asked = version.map(|v| parse_version(call, v)).transpose()?;
        match (matching, asked) {
            (None | Some("NotOlderThan"), None) if matching.is_some() => Err(list_options(
                "resourceVersionMatch",
                "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
                "FieldValueForbidden",
            )),
            (Some("Exact"), None) => Err(list_options(
                "resourceVersionMatch",
                "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
                "FieldValueForbidden",
            )),
            (Some("Exact"), Some(0)) => Err(list_options(
                "resourceVersionMatch",
                "Forbidden: resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
                "FieldValueForbidden",
            )),
            (Some("Exact"), Some(revision)) => {
                self.check_not_future(revision)?;
                let objects = self
                    .store()
                    .list_at(&table, namespace, revision)
                    .map_err(|_| ApiError::gone("The resourceVersion for the provided list is too old."))?;
                Ok((objects, revision, None))
            }
            (None | Some("NotOlderThan"), asked) => {
                self.check_not_future(asked.unwrap_or(0))?;
                let (objects, revision) = self.store().list(&table, namespace);
                Ok((objects, revision, None))
            }
            (Some(other), asked) => {
                let cause = |reason: &str, message: String| Cause {
                    reason: reason.into(),
                    message,
                    field: "resourceVersionMatch".into(),
                };
                let mut causes = Vec::new();
                if asked.is_none() {
                    let message = "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided";
                    causes.push(cause("FieldValueForbidden", message.to_owned()));
                }
                causes.push(cause(
                    "FieldValueNotSupported",
                    format!("Unsupported value: {other:?}: supported values: \"Exact\", \"NotOlderThan\", \"\""),
                ));
                Err(ApiError::invalid("meta.k8s.io", "ListOptions", "", &causes))
            }
        }
    }

    pub(super) fn check_not_future(&self, revision: u64) -> Result<(), ApiError> {
        let now = self.store().revision();
        if revision <= now {
            return Ok(());
        }
        let mut error = ApiError::new(
            504,
            "Timeout",
            format!("Timeout: Too large resource version: {revision}, current: {now}"),
        );
        error.details = Some(json!({
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
            "retryAfterSeconds": 1,
        }));
        Err(error)
    }
}

/// One object in the form the client takes.
pub(super) fn object_reply(call: &Call, code: u16, accepted: Accepted, object: &Arc<Object>) -> Reply {
    let object = convert::view(&call.kind, object);
    match accepted.representation {
        Representation::Whole => respond::json_bytes(code, accepted, object.json()),
        Representation::Partial => respond::value(code, accepted, &partial(object.value())),
        Representation::Table => {
            let mut table = table(&call.kind, &[object.value()], Include::asked(&call.query));
            table["metadata"] = json!({"resourceVersion": object.revision().to_string()});
            respond::value(code, accepted, &table)
        }
    }
}

/// Objects of one revision, and the place to start after.
type Snapshot = (Vec<Arc<Object>>, u64, Option<ObjectKey>);

struct Page {
    objects: Vec<Arc<Object>>,
    metadata: Value,
}

/// A resourceVersion a client sent. What is wrong with it is a bad request in a list and, oddly, an inner error in a
/// watch.
pub(super) fn parse_version(call: &Call, text: &str) -> Result<u64, ApiError> {
    text.parse().map_err(|_| {
        let message =
            format!("resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax");
        if call.info.verb == "watch" {
            ApiError::new(500, "", message)
        } else {
            ApiError::bad_request(format!("invalid resource version: {message}"))
        }
    })
}

fn list_options(field: &str, message: &str, reason: &str) -> ApiError {
    ApiError::invalid(
        "meta.k8s.io",
        "ListOptions",
        "",
        &[Cause {
            reason: reason.into(),
            message: message.into(),
            field: field.into(),
        }],
    )
}

/// Lists of whole custom resources always have the token, even if it is empty; others only when there is one.
pub(super) fn list_metadata(kind: &Kind, revision: u64) -> Value {
    if kind.custom {
        json!({"continue": "", "resourceVersion": revision.to_string()})
    } else {
        json!({"resourceVersion": revision.to_string()})
    }
}

fn decode_continue(token: &str) -> Result<Continue, ApiError> {
    let rejected =
        |why: &str| ApiError::bad_request(format!("invalid continue token: continue key is not valid: {why}"));
    let bytes = URL_SAFE_NO_PAD
        .decode(token.trim_end_matches('='))
        .map_err(|_| rejected("illegal base64 data"))?;
    match body::read_json(&bytes) {
        Ok(value) => serde_json::from_value(value).map_err(|error| rejected(&error.to_string())),
        Err(why) => Err(rejected(&why)),
    }
}

/// 410 with a token that goes on from the same place in the present state.
fn expired_continue(token: Continue) -> ApiError {
    let fresh = Continue { rv: -1, ..token };
    let mut error = ApiError::gone(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.",
    );
    error.continue_token = Some(URL_SAFE_NO_PAD.encode(serde_json::to_vec(&fresh).unwrap_or_default()));
    error
}

/// Where an object is in the order of lists.
fn position(object: &Arc<Object>) -> ObjectKey {
    key_of(object.value())
}

/// The key of an object.
pub(super) fn key_of(object: &Value) -> ObjectKey {
    ObjectKey::new(
        object["metadata"]["namespace"].as_str().unwrap_or_default(),
        object["metadata"]["name"].as_str().unwrap_or_default(),
    )
}

/// The key a request names.
pub(super) fn key(call: &Call) -> ObjectKey {
    let namespace = if call.kind.namespaced {
        call.info.namespace.as_str()
    } else {
        ""
    };
    ObjectKey::new(namespace, call.info.name.as_str())
}

/// An item of a list: built-in kinds leave out kind and apiVersion there.
pub(super) fn item_bytes(kind: &Kind, object: &Object) -> Bytes {
    if kind.custom {
        return object.json();
    }
    let fields = object.json_fields();
    let mut out = BytesMut::with_capacity(fields.len() + 1);
    out.put_u8(b'{');
    out.put_slice(&fields);
    out.freeze()
}

/// Only the metadata.
pub(super) fn partial(object: &Value) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]})
}

/// What a table's rows carry beside their cells: `kubectl get --sort-by` needs the whole object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Include {
    Nothing,
    Metadata,
    Object,
}

impl Include {
    /// `includeObject`; metadata unless said otherwise.
    pub(super) fn asked(query: &Query) -> Self {
        match query.get("includeObject") {
            Some("None") => Self::Nothing,
            Some("Object") => Self::Object,
            _ => Self::Metadata,
        }
    }
}

/// Rows and columns.
pub(super) fn table(kind: &Kind, objects: &[&Value], include: Include) -> Value {
    crate::kinds::table(kind, objects, jiff::Timestamp::now(), &|object| match include {
        Include::Nothing => None,
        Include::Metadata => Some(partial(object)),
        Include::Object => Some(object.clone()),
    })
}

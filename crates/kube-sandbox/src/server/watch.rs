//! Watch: the history from a revision on, as a stream of lines.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::{BufMut, Bytes, BytesMut};
use futures::stream;
use http::header::{CONTENT_TYPE, TRANSFER_ENCODING};
use http::{HeaderValue, Response};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use super::api::{Api, Call};
use super::body::api_version;
use super::convert;
use super::negotiate::{Accepted, Representation};
use super::read::{Include, Selection, parse_version, partial, table};
use super::respond::Reply;
use crate::kinds::Kind;
use crate::status::{ApiError, Cause};
use crate::store::{Change, Event, Object, Watch};

/// How often a client that wants bookmarks gets one when nothing else happens.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);

/// A watch that ends tells its client shortly before where it ended.
const BEFORE_END: Duration = Duration::from_secs(2);

struct Watcher {
    api: Api,
    kind: Arc<Kind>,
    selection: Selection,
    accepted: Accepted,
    bookmarks: bool,
    source: Source,
    /// Tables name their columns in the first event only.
    sent_columns: bool,
    include: Include,
    ends: Instant,
    next_bookmark: Instant,
}

enum Source {
    /// What is there already, then the events after it; the flag asks for the closing bookmark.
    Initial(Vec<Arc<Object>>, Watch, bool),
    Events(Watch),
    Failed(ApiError),
    Over,
}

impl Api {
    pub(super) fn watch(&self, call: &Call) -> Result<Reply, ApiError> {
        let accepted = Accepted::of(&call.headers, true)?;
        let selection = Selection::of(call)?;
        let bookmarks = call.query.flag("allowWatchBookmarks");
        let source = self.source(call, &selection, bookmarks)?;
        let now = Instant::now();
        let ends = now + timeout(call)?;
        let watcher = Watcher {
            api: self.clone(),
            kind: call.kind.clone(),
            selection,
            accepted,
            bookmarks,
            source,
            sent_columns: false,
            include: Include::asked(&call.query),
            ends,
            next_bookmark: first_bookmark(now, ends),
        };
        let body = stream::unfold(watcher, |mut watcher| async move {
            let chunk = watcher.next().await?;
            Some((Ok::<_, std::convert::Infallible>(chunk), watcher))
        });
        let mut response = Response::new(Body::from_stream(body));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.remove(TRANSFER_ENCODING);
        Ok(response)
    }

    fn source(&self, call: &Call, selection: &Selection, bookmarks: bool) -> Result<Source, ApiError> {
        let version = call.query.get("resourceVersion");
        let initial = call
            .query
            .get("sendInitialEvents")
            .map(|_| call.query.flag("sendInitialEvents"));
        check_initial(call, initial, bookmarks)?;
        let table = call.table();
        let from = version.map(|v| parse_version(call, v)).transpose()?.unwrap_or(0);
        let from_state = initial.unwrap_or(from == 0);
        if from_state {
            self.check_not_future(from)?;
            let (objects, revision) = self.store().list(&table, selection.namespace.as_deref());
            let matching = objects.into_iter().filter(|o| selection.matches(o.value())).collect();
            let Ok(events) = self.store().watch(&table, revision) else {
                return Ok(Source::Failed(too_old(revision)));
            };
            return Ok(Source::Initial(matching, events, initial == Some(true) && bookmarks));
        }
        let from = if from == 0 { self.store().revision() } else { from };
        Ok(match self.store().watch(&table, from) {
            Ok(watch) => Source::Events(watch),
            Err(_) => Source::Failed(too_old(from)),
        })
    }
}

/// The next bookmark comes after a minute, or two seconds before the end if that is sooner; none after that.
fn first_bookmark(now: Instant, ends: Instant) -> Instant {
    let last = ends.checked_sub(BEFORE_END).filter(|last| *last > now);
    last.map_or(ends + BOOKMARK_EVERY, |last| last.min(now + BOOKMARK_EVERY))
}

fn too_old(revision: u64) -> ApiError {
    ApiError::gone(format!("too old resource version: {revision}"))
}

fn timeout(call: &Call) -> Result<Duration, ApiError> {
    let asked = call
        .query
        .number("timeoutSeconds")?
        .and_then(|s| u64::try_from(s).ok())
        .filter(|s| *s > 0);
    // The real server picks between half an hour and an hour, so that clients do not all come back at once.
    let random = u64::from(u16::from_le_bytes(super::clock::random())) % 1800;
    Ok(Duration::from_secs(asked.unwrap_or(1800 + random)))
}

fn check_initial(call: &Call, initial: Option<bool>, bookmarks: bool) -> Result<(), ApiError> {
    let reject = |field: &str, message: &str| {
        Err(ApiError::invalid(
            "meta.k8s.io",
            "ListOptions",
            "",
            &[Cause {
                reason: "FieldValueForbidden".into(),
                message: format!("Forbidden: {message}"),
                field: field.into(),
            }],
        ))
    };
    let matching = call.query.get("resourceVersionMatch");
    match (initial, matching) {
        (None, Some(_)) => reject(
            "resourceVersionMatch",
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        ),
        (Some(_), None) => reject(
            "resourceVersionMatch",
            "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        ),
        (Some(_), Some(other)) if other != "NotOlderThan" => reject(
            "resourceVersionMatch",
            "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        ),
        (Some(true), _) if !bookmarks => Ok(()),
        _ => Ok(()),
    }
}

impl Watcher {
    /// The next lines; `None` ends the stream.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let mut out = BytesMut::new();
            match std::mem::replace(&mut self.source, Source::Over) {
                Source::Over => return None,
                Source::Failed(error) => {
                    Self::line(&mut out, "ERROR", &error.to_value());
                    return Some(out.freeze());
                }
                Source::Initial(objects, watch, closing) => {
                    for object in &objects {
                        self.object(&mut out, "ADDED", object, watch.revision());
                    }
                    if closing {
                        let mut bookmark = self.bookmark(watch.revision());
                        bookmark["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
                        Self::line(&mut out, "BOOKMARK", &bookmark);
                    }
                    self.source = Source::Events(watch);
                }
                Source::Events(mut watch) => {
                    let api = self.api.clone();
                    let wake = if self.bookmarks {
                        self.ends.min(self.next_bookmark)
                    } else {
                        self.ends
                    };
                    let events = tokio::select! {
                        biased;
                        events = watch.next(api.store()) => events,
                        () = sleep_until(wake) => Ok(Vec::new()),
                    };
                    match events {
                        Err(_) => self.source = Source::Failed(too_old(watch.revision())),
                        Ok(events) => {
                            for event in &events {
                                self.event(&mut out, event);
                            }
                            let now = Instant::now();
                            if self.bookmarks && now >= self.next_bookmark {
                                self.next_bookmark = first_bookmark(now, self.ends);
                                let bookmark = self.bookmark(watch.revision());
                                Self::line(&mut out, "BOOKMARK", &bookmark);
                            }
                            if now < self.ends {
                                self.source = Source::Events(watch);
                            }
                        }
                    }
                }
            }
            if !out.is_empty() {
                return Some(out.freeze());
            }
        }
    }

    /// One write as this watcher sees it: an object that comes into its selection is added, one that leaves it is
    /// deleted, whatever the write was.
    fn event(&mut self, out: &mut BytesMut, event: &Event) {
        if !self.selection.covers(&event.key) {
            return;
        }
        let matched = event
            .previous
            .as_ref()
            .is_some_and(|p| self.selection.matches(p.value()));
        let matches = event.change != Change::Deleted && self.selection.matches(event.object.value());
        match (matched, matches) {
            (false, false) => {}
            (false, true) => self.object(out, "ADDED", &event.object, event.revision),
            (true, true) => self.object(out, "MODIFIED", &event.object, event.revision),
            (true, false) => match &event.previous {
                Some(last) if event.change != Change::Deleted => {
                    let last = Arc::new(Object::new(last.value().clone(), event.revision));
                    self.object(out, "DELETED", &last, event.revision);
                }
                _ => self.object(out, "DELETED", &event.object, event.revision),
            },
        }
    }

    fn object(&mut self, out: &mut BytesMut, change: &str, object: &Arc<Object>, revision: u64) {
        let object = convert::view(&self.kind, object);
        match self.accepted.representation {
            Representation::Whole => {
                out.put_slice(b"{\"type\":\"");
                out.put_slice(change.as_bytes());
                out.put_slice(b"\",\"object\":");
                out.put_slice(&object.json());
                out.put_slice(b"}\n");
            }
            Representation::Partial => Self::line(out, change, &partial(object.value())),
            Representation::Table => {
                let mut table = table(&self.kind, &[object.value()], self.include);
                table["metadata"] = json!({"resourceVersion": revision.to_string()});
                if std::mem::replace(&mut self.sent_columns, true) {
                    table["columnDefinitions"] = Value::Null;
                }
                Self::line(out, change, &table);
            }
        }
    }

    fn bookmark(&self, revision: u64) -> Value {
        let (kind, version) = match self.accepted.representation {
            Representation::Partial => ("PartialObjectMetadata".to_owned(), "meta.k8s.io/v1".to_owned()),
            Representation::Table => ("Table".to_owned(), "meta.k8s.io/v1".to_owned()),
            Representation::Whole => (self.kind.kind.clone(), api_version(&self.kind)),
        };
        let mut bookmark = json!({
            "kind": kind,
            "apiVersion": version,
            "metadata": {"resourceVersion": revision.to_string()},
        });
        if self.accepted.representation == Representation::Table {
            bookmark["columnDefinitions"] = json!(null);
            bookmark["rows"] = json!([]);
        }
        bookmark
    }

    fn line(out: &mut BytesMut, change: &str, object: &Value) {
        out.put_slice(json!({"type": change, "object": object}).to_string().as_bytes());
        out.put_u8(b'\n');
    }
}

//! An API server of a hundred lines: enough to see what the client parts send and to get in their way.
#![allow(dead_code, reason = "every test file uses a part of it")]

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard};

use http::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

/// A request as it arrived.
#[derive(Debug, Clone)]
pub struct RecordedRequest {
    pub method: Method,
    pub path: String,
    pub query: String,
    pub content_type: String,
    pub body: Value,
}

/// Objects by path.
pub type Objects = BTreeMap<String, Value>;

/// What gets in the way of one request.
pub enum Fault {
    /// Answers with this code and does nothing.
    Reject(u16),
    /// Does what was asked and answers with this code.
    LoseResponse(u16),
    /// Never answers.
    Hang,
    /// Lets another writer change an object first.
    Before(Box<dyn FnOnce(&mut Objects) + Send>),
    /// Nothing.
    Pass,
}

#[derive(Default)]
struct State {
    objects: Objects,
    requests: Vec<RecordedRequest>,
    faults: VecDeque<(Method, Fault)>,
    version: u64,
}

/// Clones share the same objects.
#[derive(Clone, Default)]
pub struct FakeApi {
    state: Arc<Mutex<State>>,
}

impl FakeApi {
    pub fn client(&self) -> Client {
        let api = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let api = api.clone();
            async move { Ok::<_, Infallible>(api.answer(request).await) }
        });
        Client::new(service, "default")
    }

    /// Stores an object under the path of its collection, with a fresh resourceVersion.
    pub fn put(&self, collection: &str, object: Value) -> Value {
        let mut state = self.lock();
        let name = object["metadata"]["name"]
            .as_str()
            .expect("an object has a name")
            .to_owned();
        state.store(format!("{collection}/{name}"), object)
    }

    pub fn get(&self, path: &str) -> Option<Value> {
        self.lock().objects.get(path).cloned()
    }

    pub fn objects(&self) -> Vec<Value> {
        self.lock().objects.values().cloned().collect()
    }

    /// The next request with this method meets the fault; faults of one method are met in order.
    pub fn fault(&self, method: Method, fault: Fault) {
        self.lock().faults.push_back((method, fault));
    }

    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.lock().requests.clone()
    }

    pub fn count(&self, method: &Method) -> usize {
        self.lock()
            .requests
            .iter()
            .filter(|request| request.method == *method)
            .count()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no test panics while it holds the fake")
    }

    async fn answer(&self, request: Request<Body>) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let bytes = body.collect_bytes().await.expect("the body of a test is in memory");
        let body = if bytes.is_empty() {
            Value::Null
        } else {
            serde_json::from_slice(&bytes).expect("JSON")
        };
        let header = |name: &str| {
            parts
                .headers
                .get(name)
                .and_then(|value| value.to_str().ok())
                .unwrap_or_default()
                .to_owned()
        };
        let request = RecordedRequest {
            method: parts.method,
            path: parts.uri.path().to_owned(),
            query: parts.uri.query().unwrap_or_default().to_owned(),
            content_type: header("content-type"),
            body,
        };
        let fault = {
            let mut state = self.lock();
            state.requests.push(request.clone());
            let at = state.faults.iter().position(|(method, _)| *method == request.method);
            at.and_then(|at| state.faults.remove(at))
                .map_or(Fault::Pass, |(_, fault)| fault)
        };
        match fault {
            Fault::Hang => std::future::pending().await,
            Fault::Reject(code) => rejection(code, "injected"),
            Fault::LoseResponse(code) => {
                let _ = self.lock().handle(&request);
                rejection(code, "injected after the deed")
            }
            Fault::Before(deed) => {
                let mut state = self.lock();
                let mut objects = state.objects.clone();
                deed(&mut objects);
                state.objects.retain(|path, _| objects.contains_key(path));
                for (path, object) in objects {
                    if state.objects.get(&path) != Some(&object) {
                        state.store(path, object);
                    }
                }
                respond(state.handle(&request))
            }
            Fault::Pass => respond(self.lock().handle(&request)),
        }
    }
}

type Outcome = Result<Value, (u16, String)>;

impl State {
    fn store(&mut self, path: String, mut object: Value) -> Value {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.objects.insert(path, object.clone());
        object
    }

    fn handle(&mut self, request: &RecordedRequest) -> Outcome {
        let (path, is_status) = match request.path.strip_suffix("/status") {
            Some(path) => (path.to_owned(), true),
            None => (request.path.clone(), false),
        };
        let missing = || (404, format!("{path} not found"));
        match request.method {
            Method::GET => self.objects.get(&path).cloned().ok_or_else(missing),
            Method::POST => {
                let name = request.body["metadata"]["name"].as_str().unwrap_or_default();
                let path = format!("{path}/{name}");
                if self.objects.contains_key(&path) {
                    return Err((409, format!("{path} already exists")));
                }
                Ok(self.store(path, request.body.clone()))
            }
            Method::PATCH => {
                let before = self.objects.get(&path).cloned().ok_or_else(missing)?;
                let after = patched(&before, request, is_status)?;
                // As the real one: a patch that changes nothing makes no new version, and an object on its way
                // out goes with its last finalizer.
                if after == before {
                    return Ok(before);
                }
                let held = after["metadata"]["finalizers"]
                    .as_array()
                    .is_some_and(|list| !list.is_empty());
                if after["metadata"]["deletionTimestamp"].is_string() && !held {
                    self.objects.remove(&path);
                    return Ok(after);
                }
                Ok(self.store(path, after))
            }
            _ => Err((405, "not here".to_owned())),
        }
    }
}

fn patched(before: &Value, request: &RecordedRequest, is_status: bool) -> Outcome {
    let mut after = before.clone();
    if request.content_type.contains("json-patch") {
        let patch: json_patch::Patch = serde_json::from_value(request.body.clone()).expect("a JSON patch");
        json_patch::patch(&mut after, &patch).map_err(|error| (422, error.to_string()))?;
    } else {
        let expected = &request.body["metadata"]["resourceVersion"];
        if expected.is_string() && *expected != before["metadata"]["resourceVersion"] {
            return Err((
                409,
                "the object has been modified; please apply your changes to the latest version".to_owned(),
            ));
        }
        if request.content_type.contains("apply") {
            after["status"] = request.body["status"].clone();
        } else {
            json_patch::merge(&mut after, &request.body);
        }
    }
    if is_status {
        let status = after["status"].clone();
        after = before.clone();
        after["status"] = status;
    }
    Ok(after)
}

fn respond(outcome: Outcome) -> Response<Body> {
    match outcome {
        Ok(object) => Response::builder()
            .body(Body::from(object.to_string().into_bytes()))
            .expect("a response"),
        Err((code, message)) => rejection(code, &message),
    }
}

fn rejection(code: u16, message: &str) -> Response<Body> {
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": code,
        "reason": match code { 404 => "NotFound", 409 => "Conflict", 422 => "Invalid", _ => "InternalError" }});
    Response::builder()
        .status(code)
        .body(Body::from(status.to_string().into_bytes()))
        .expect("a response")
}

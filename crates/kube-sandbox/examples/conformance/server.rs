//! One of the two servers: sends operations, and remembers the objects of its answers.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use futures::AsyncBufReadExt;
use futures::TryStreamExt;
use http::{Request, header};
use kube::client::Body;
use serde_json::Value;

use super::operation::{Operation, Payload, VersionToSend};

/// What came back.
#[derive(Clone, Debug)]
pub struct Answer {
    pub code: u16,
    pub content_type: String,
    pub warnings: Vec<String>,
    pub body: Value,
}

pub struct Server {
    client: kube::Client,
    newest: HashMap<String, Value>,
    first: HashMap<String, Value>,
    continued: String,
}

const DEADLINE: Duration = Duration::from_secs(30);

impl Server {
    pub fn new(client: kube::Client) -> Self {
        Self {
            client,
            newest: HashMap::new(),
            first: HashMap::new(),
            continued: String::new(),
        }
    }

    /// Sends one operation and remembers the object of the answer.
    pub async fn send(&mut self, operation: &Operation) -> Answer {
        let answer = self.answer(operation).await;
        self.learn(operation, &answer);
        answer
    }

    /// Sends one operation. A server that does not respond is an answer with code 0.
    pub async fn answer(&self, operation: &Operation) -> Answer {
        match tokio::time::timeout(DEADLINE, self.exchange(operation)).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => broken(&error.to_string()),
            Err(_) => broken("no answer in time"),
        }
    }

    async fn exchange(&self, operation: &Operation) -> Result<Answer, Box<dyn std::error::Error>> {
        let mut request = Request::builder().method(operation.method).uri(self.uri(operation));
        if let Some(kind) = operation.content_type {
            request = request.header(header::CONTENT_TYPE, kind);
        }
        request = request.header(header::ACCEPT, operation.accept.unwrap_or("application/json"));
        let response = self
            .client
            .send(request.body(Body::from(self.bytes(operation)))?)
            .await?;
        let code = response.status().as_u16();
        let text = |value: &http::HeaderValue| value.to_str().unwrap_or_default().to_owned();
        let content_type = response
            .headers()
            .get(header::CONTENT_TYPE)
            .map(text)
            .unwrap_or_default();
        let warnings = response.headers().get_all(header::WARNING).iter().map(text).collect();
        let bytes = response.into_body().collect_bytes().await?;
        let body = serde_json::from_slice(&bytes).unwrap_or_else(|_| Value::from(String::from_utf8_lossy(&bytes)));
        Ok(Answer {
            code,
            content_type,
            warnings,
            body,
        })
    }

    fn uri(&self, operation: &Operation) -> String {
        let mut uri = operation.path.clone();
        for (at, (key, value)) in operation.query.iter().enumerate() {
            let value = match value.as_str() {
                "$continue" => &self.continued,
                other => other,
            };
            uri.extend([if at == 0 { "?" } else { "&" }, key.as_str(), "=", &encode(value)]);
        }
        uri
    }

    fn bytes(&self, operation: &Operation) -> Vec<u8> {
        match &operation.body {
            Payload::None => Vec::new(),
            Payload::Json(value) => value.to_string().into_bytes(),
            Payload::Raw(text) => text.clone().into_bytes(),
            Payload::Options { of, options } => {
                let known = self.newest.get(of).map(|object| &object["metadata"]);
                let value = |key: &str| known.and_then(|m| m[key].as_str()).unwrap_or("unknown").to_owned();
                let text = options.to_string();
                text.replace("$uid", &value("uid"))
                    .replace("$version", &value("resourceVersion"))
                    .into_bytes()
            }
            Payload::Changed {
                of,
                otherwise,
                sets,
                version,
            } => {
                let mut object = self.newest.get(of).unwrap_or(otherwise).clone();
                let first = self
                    .first
                    .get(of)
                    .map(|object| object["metadata"]["resourceVersion"].clone());
                match (version, first) {
                    (VersionToSend::First, Some(first)) => object["metadata"]["resourceVersion"] = first,
                    (VersionToSend::None, _) => {
                        object["metadata"].as_object_mut().map(|m| m.remove("resourceVersion"));
                    }
                    (VersionToSend::Malformed, _) => object["metadata"]["resourceVersion"] = "malformed".into(),
                    _ => {}
                }
                for (pointer, value) in sets {
                    set(&mut object, pointer, value.clone());
                }
                object.to_string().into_bytes()
            }
        }
    }

    /// Objects are remembered by path, the continue token by itself.
    fn learn(&mut self, operation: &Operation, answer: &Answer) {
        if answer.code == 0 || answer.code >= 300 {
            return;
        }
        if let Some(token) = answer.body["metadata"]["continue"].as_str() {
            token.clone_into(&mut self.continued);
        }
        let Some(name) = answer.body["metadata"]["name"].as_str() else {
            return;
        };
        if operation.query.iter().any(|(key, _)| key == "dryRun")
            || matches!(
                answer.body["kind"].as_str(),
                Some("Scale" | "Status" | "Table" | "PartialObjectMetadata")
            )
        {
            return;
        }
        let path = match operation.method {
            "POST" => format!("{}/{name}", operation.path),
            _ => operation.path.trim_end_matches("/status").to_owned(),
        };
        self.first.entry(path.clone()).or_insert_with(|| answer.body.clone());
        self.newest.insert(path, answer.body.clone());
    }

    /// The version a collection has now.
    pub async fn version(&mut self, path: &str) -> String {
        let answer = self
            .send(&Operation::new("version", "GET", path).query("limit", "1"))
            .await;
        answer.body["metadata"]["resourceVersion"]
            .as_str()
            .unwrap_or("0")
            .to_owned()
    }

    /// Reads a watch until `last` says that an event is the last one; an incomplete one says why at its end.
    pub async fn watch(
        &self,
        path: &str,
        query: &BTreeMap<String, String>,
        last: impl Fn(&Value) -> bool,
    ) -> Vec<Value> {
        let mut uri = format!("{path}?watch=true");
        for (key, value) in query {
            uri.extend(["&", key.as_str(), "=", &encode(value)]);
        }
        let mut events = Vec::new();
        let read = async {
            let request = Request::get(uri).body(Vec::new()).map_err(|e| e.to_string())?;
            let mut lines = self
                .client
                .request_stream(request)
                .await
                .map_err(|e| e.to_string())?
                .lines();
            while let Some(line) = lines.try_next().await.map_err(|e| e.to_string())? {
                let event: Value = serde_json::from_str(&line).map_err(|e| e.to_string())?;
                let done = last(&event);
                events.push(event);
                if done {
                    return Ok(());
                }
            }
            Err("the stream ended early".to_owned())
        };
        let end = tokio::time::timeout(DEADLINE, read)
            .await
            .unwrap_or_else(|_| Err("the last event never came".into()));
        if let Err(why) = end {
            events.push(Value::from(why));
        }
        events
    }
}

fn broken(why: &str) -> Answer {
    Answer {
        code: 0,
        content_type: String::new(),
        warnings: Vec::new(),
        body: Value::from(why),
    }
}

/// Sets a value by pointer, making objects on the way; `null` removes.
pub fn set(object: &mut Value, pointer: &str, value: Value) {
    let mut at = object;
    let parts: Vec<&str> = pointer.trim_start_matches('/').split('/').collect();
    for part in &parts[..parts.len() - 1] {
        at = match part.parse::<usize>() {
            Ok(index) if at.is_array() => match at.get_mut(index) {
                Some(next) => next,
                None => return,
            },
            _ => {
                if !at.is_object() {
                    *at = Value::Object(serde_json::Map::new());
                }
                &mut at[*part]
            }
        };
    }
    if !at.is_object() {
        *at = Value::Object(serde_json::Map::new());
    }
    if let (Some(map), Some(key)) = (at.as_object_mut(), parts.last()) {
        let key = key.replace("~1", "/");
        if value.is_null() {
            map.remove(&key);
        } else {
            map.insert(key, value);
        }
    }
}

fn encode(value: &str) -> String {
    value
        .bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
            other => format!("%{other:02X}"),
        })
        .collect()
}

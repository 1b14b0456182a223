//! The events of the kubelet, worded as the real kubelet's.

use std::collections::HashMap;

use k8s_openapi::api::core::v1::{Event, EventSource, Node, ObjectReference, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Client, Resource, ResourceExt};
use serde_json::json;
use tokio::sync::mpsc;

/// Why an event was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Reason {
    Pulling,
    Pulled,
    Created,
    Started,
    Killing,
    /// A pull, a start or a configuration failed.
    Failed,
    /// A restart waits.
    BackOff,
    /// A pull waits: the same reason, but not a warning.
    BackOffPull,
    Unhealthy,
    FailedMount,
    FailedPostStartHook,
    FailedPreStopHook,
    FailedCreatePodSandBox,
    DeadlineExceeded,
    NodeReady,
    NodeNotReady,
    Starting,
}

impl Reason {
    /// The reason in `kubectl get events`, and whether it is a warning.
    fn reason_and_severity(self) -> (&'static str, bool) {
        match self {
            Self::Pulling => ("Pulling", false),
            Self::Pulled => ("Pulled", false),
            Self::Created => ("Created", false),
            Self::Started => ("Started", false),
            Self::Killing => ("Killing", false),
            Self::Failed => ("Failed", true),
            Self::BackOff => ("BackOff", true),
            Self::BackOffPull => ("BackOff", false),
            Self::Unhealthy => ("Unhealthy", true),
            Self::FailedMount => ("FailedMount", true),
            Self::FailedPostStartHook => ("FailedPostStartHook", true),
            Self::FailedPreStopHook => ("FailedPreStopHook", true),
            Self::FailedCreatePodSandBox => ("FailedCreatePodSandBox", true),
            Self::DeadlineExceeded => ("DeadlineExceeded", false),
            Self::NodeReady => ("NodeReady", false),
            Self::NodeNotReady => ("NodeNotReady", false),
            Self::Starting => ("Starting", false),
        }
    }
}

/// The note of an event may not be longer than this.
const LONGEST_NOTE: usize = 1024;

/// How many different events are remembered for counting.
const REMEMBERED: usize = 2000;

#[derive(Debug)]
struct Note {
    about: ObjectReference,
    host: String,
    reason: Reason,
    message: String,
}

/// Writes events in the order they happened, without blocking the caller.
#[derive(Clone, Debug)]
pub(super) struct Recorder {
    notes: mpsc::UnboundedSender<Note>,
}

impl Recorder {
    /// A recorder, and the task that writes.
    pub fn new(client: Client) -> (Self, impl Future<Output = ()>) {
        let (notes, mut inbox) = mpsc::unbounded_channel();
        let write = async move {
            let mut seen = HashMap::new();
            while let Some(note) = inbox.recv().await {
                if let Err(error) = write(&client, &mut seen, &note).await {
                    tracing::debug!(reason = note.reason.reason_and_severity().0, %error, "an event could not be written");
                }
            }
        };
        (Self { notes }, write)
    }

    /// An event about a pod.
    pub fn pod(&self, pod: &Pod, reason: Reason, message: impl Into<String>) {
        self.send(pod.object_ref(&()), host_of(pod), reason, message.into());
    }

    /// An event about one container of a pod; `path` is such as `spec.containers{valkey}`.
    pub fn container(&self, pod: &Pod, path: &str, reason: Reason, message: impl Into<String>) {
        let about = ObjectReference {
            field_path: Some(path.to_owned()),
            ..pod.object_ref(&())
        };
        self.send(about, host_of(pod), reason, message.into());
    }

    /// An event about a node. Such events live in the namespace `default`.
    pub fn node(&self, name: &str, reason: Reason, message: impl Into<String>) {
        let about = ObjectReference {
            api_version: Some(Node::api_version(&()).into_owned()),
            kind: Some("Node".into()),
            name: Some(name.to_owned()),
            uid: Some(name.to_owned()),
            ..ObjectReference::default()
        };
        self.send(about, name.to_owned(), reason, message.into());
    }

    fn send(&self, about: ObjectReference, host: String, reason: Reason, mut message: String) {
        if message.len() > LONGEST_NOTE {
            let cut = (0..=LONGEST_NOTE).rev().find(|at| message.is_char_boundary(*at));
            message.truncate(cut.unwrap_or(0));
        }
        let _ = self.notes.send(Note {
            about,
            host,
            reason,
            message,
        });
    }
}

fn host_of(pod: &Pod) -> String {
    pod.spec
        .as_ref()
        .and_then(|spec| spec.node_name.clone())
        .unwrap_or_default()
}

type EventCounts = HashMap<(Option<String>, Option<String>, Reason, String), (String, i32)>;

/// One event object for each different note; the same note again counts.
async fn write(client: &Client, seen: &mut EventCounts, note: &Note) -> Result<(), kube::Error> {
    let namespace = note.about.namespace.as_deref().unwrap_or("default");
    let api: Api<Event> = Api::namespaced(client.clone(), namespace);
    let key = (
        note.about.uid.clone(),
        note.about.field_path.clone(),
        note.reason,
        note.message.clone(),
    );
    let now = jiff::Timestamp::now();
    if let Some((name, count)) = seen.get_mut(&key) {
        *count += 1;
        let again = json!({"count": count, "lastTimestamp": Time(now)});
        let patched = api.patch(name, &PatchParams::default(), &Patch::Merge(again)).await;
        if !matches!(&patched, Err(kube::Error::Api(status)) if status.is_not_found()) {
            return patched.map(drop);
        }
    }
    let about = note.about.name.clone().unwrap_or_default();
    let name = format!("{about}.{:x}", now.as_nanosecond());
    let (reason, warning) = note.reason.reason_and_severity();
    let event = Event {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            namespace: Some(namespace.to_owned()),
            ..ObjectMeta::default()
        },
        involved_object: note.about.clone(),
        reason: Some(reason.to_owned()),
        message: Some(note.message.clone()),
        type_: Some(if warning { "Warning" } else { "Normal" }.to_owned()),
        source: Some(EventSource {
            component: Some("kubelet".to_owned()),
            host: Some(note.host.clone()),
        }),
        reporting_component: Some("kubelet".to_owned()),
        reporting_instance: Some(note.host.clone()),
        first_timestamp: Some(Time(now)),
        last_timestamp: Some(Time(now)),
        count: Some(1),
        ..Event::default()
    };
    if seen.len() >= REMEMBERED {
        seen.clear();
    }
    let made = api.create(&PostParams::default(), &event).await?;
    seen.insert(key, (made.name_any(), 1));
    Ok(())
}

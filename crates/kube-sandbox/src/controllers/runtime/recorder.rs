//! Events (core v1), counted instead of repeated.

use std::collections::{HashMap, VecDeque};

use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Client, Resource, ResourceExt};
use serde_json::json;
use tokio::sync::mpsc;

/// Normal or Warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// Nothing is wrong.
    Normal,
    /// Something is wrong.
    Warning,
}

impl EventKind {
    fn word(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// The longest note the API server takes.
const LONGEST_NOTE: usize = 1024;
/// How many different events are remembered for counting.
const REMEMBERED: usize = 1024;

/// Records events without blocking the caller.
#[derive(Clone)]
pub struct Recorder {
    component: &'static str,
    line: mpsc::UnboundedSender<Note>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Note {
    component: &'static str,
    kind: EventKind,
    about: About,
    reason: &'static str,
    message: String,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct About {
    api_version: String,
    kind: String,
    namespace: Option<String>,
    name: String,
    uid: String,
    resource_version: Option<String>,
}

impl Recorder {
    /// A recorder, and the task that writes what it records.
    pub fn new(client: Client, component: &'static str) -> (Self, impl Future<Output = ()> + Send) {
        let (line, notes) = mpsc::unbounded_channel();
        (Self { component, line }, write_all(client, notes))
    }

    /// The same recorder under another component's name.
    pub fn named(&self, component: &'static str) -> Self {
        Self {
            component,
            line: self.line.clone(),
        }
    }

    /// Records one event about an object.
    pub fn event<K: Resource<DynamicType = ()>>(
        &self,
        about: &K,
        kind: EventKind,
        reason: &'static str,
        message: impl Into<String>,
    ) {
        let mut message = message.into();
        if message.len() > LONGEST_NOTE {
            let cut = (0..=LONGEST_NOTE).rev().find(|at| message.is_char_boundary(*at));
            message.truncate(cut.unwrap_or_default());
        }
        let about = About {
            api_version: K::api_version(&()).into_owned(),
            kind: K::kind(&()).into_owned(),
            namespace: about.namespace(),
            name: about.name_any(),
            uid: about.uid().unwrap_or_default(),
            resource_version: about.resource_version(),
        };
        let note = Note {
            component: self.component,
            kind,
            about,
            reason,
            message,
        };
        // The writer ends with the controllers; an event after that has no reader.
        let _ = self.line.send(note);
    }

    /// A Normal event.
    pub fn normal<K: Resource<DynamicType = ()>>(&self, about: &K, reason: &'static str, message: impl Into<String>) {
        self.event(about, EventKind::Normal, reason, message);
    }

    /// A Warning event.
    pub fn warning<K: Resource<DynamicType = ()>>(&self, about: &K, reason: &'static str, message: impl Into<String>) {
        self.event(about, EventKind::Warning, reason, message);
    }
}

struct Written {
    namespace: String,
    name: String,
    count: i32,
}

async fn write_all(client: Client, mut notes: mpsc::UnboundedReceiver<Note>) {
    let mut known: HashMap<Note, Written> = HashMap::new();
    let mut order: VecDeque<Note> = VecDeque::new();
    while let Some(note) = notes.recv().await {
        let mut same = note.clone();
        // The same event about a newer version of an object is counted, not repeated.
        same.about.resource_version = None;
        if let Some(written) = known.get_mut(&same)
            && again(&client, written).await
        {
            continue;
        }
        if let Some(written) = first(&client, &note).await {
            if known.insert(same.clone(), written).is_none() {
                order.push_back(same);
            }
            if order.len() > REMEMBERED
                && let Some(oldest) = order.pop_front()
            {
                known.remove(&oldest);
            }
        }
    }
}

async fn again(client: &Client, written: &mut Written) -> bool {
    let api: Api<Event> = Api::namespaced(client.clone(), &written.namespace);
    let patch = json!({"count": written.count + 1, "lastTimestamp": super::now()});
    let done = api
        .patch(&written.name, &PatchParams::default(), &Patch::Merge(patch))
        .await
        .is_ok();
    written.count += i32::from(done);
    done
}

async fn first(client: &Client, note: &Note) -> Option<Written> {
    let namespace = note.about.namespace.clone().unwrap_or_else(|| "default".into());
    let now = super::now();
    let stamp = k8s_openapi::jiff::Timestamp::now().as_nanosecond();
    let mut event = Event {
        type_: Some(note.kind.word().into()),
        reason: Some(note.reason.into()),
        message: Some(note.message.clone()),
        source: Some(EventSource {
            component: Some(note.component.into()),
            host: None,
        }),
        reporting_component: Some(note.component.into()),
        reporting_instance: Some(String::new()),
        count: Some(1),
        first_timestamp: Some(now.clone()),
        last_timestamp: Some(now),
        involved_object: ObjectReference {
            api_version: Some(note.about.api_version.clone()),
            kind: Some(note.about.kind.clone()),
            namespace: note.about.namespace.clone(),
            name: Some(note.about.name.clone()),
            uid: Some(note.about.uid.clone()),
            resource_version: note.about.resource_version.clone(),
            field_path: None,
        },
        ..Event::default()
    };
    event.metadata.name = Some(format!("{}.{stamp:x}", note.about.name));
    event.metadata.namespace = Some(namespace.clone());
    let api: Api<Event> = Api::namespaced(client.clone(), &namespace);
    match api.create(&PostParams::default(), &event).await {
        Ok(event) => Some(Written {
            namespace,
            name: event.name_any(),
            count: 1,
        }),
        Err(error) => {
            // A namespace that is going away takes no events; anything else is worth a line.
            tracing::debug!(reason = note.reason, name = %note.about.name, %error, "an event could not be written");
            None
        }
    }
}

//! Readers: the health of objects of other controllers, as a health like Ready with its cause.
//!
//! The rules are those of kstatus: an object that is being deleted is terminating, one with a generation that was not
//! observed yet is in progress, `Stalled` means failed, `Reconciling` means in progress, and replica counts are compared in
//! the order of a rollout. In addition the readers report the cause: the scheduler's message, the image that cannot be
//! pulled, how the container last terminated.
//!
//! Readers are pure: no client, no clock. Typed objects and untyped ones (`DynamicObject`, `serde_json::Value`)
//! take the same path, so they cannot disagree. A wrong shape is a [`ReadError`] that names object and field.
//!
//! - [`read`], [`read_value`]: one object of any kind
//! - [`explain`]: a workload's health with its pods' cause
//!
//! Two departures from kstatus, both because a false Ready is worse than a late one: a running Job is not ready
//! until it is complete, and a custom resource without conditions is unknown.

mod claim;
mod container;
mod crd;
mod custom;
mod explain;
mod fields;
mod job;
mod pod;
mod reading;
mod service;
mod workloads;

pub use explain::explain;
pub use fields::ReadError;
pub use reading::{Health, Reading};

use fields::Fields;
use serde::Serialize;
use serde_json::Value;

/// Reads a typed object, or anything else that serialises to a Kubernetes object with apiVersion and kind.
///
/// ```
/// use k8s_openapi::api::apps::v1::{Deployment, DeploymentStatus};
/// use kube_status::readers::{read, Health};
///
/// let mut deployment = Deployment::default();
/// deployment.metadata.name = Some("web".into());
/// deployment.status = Some(DeploymentStatus { replicas: Some(1), updated_replicas: Some(1), ..Default::default() });
///
/// let reading = read(&deployment).unwrap();
/// assert_eq!(reading.health, Health::Progressing);
/// assert_eq!(reading.message, "0 of 1 replicas available");
/// ```
pub fn read(object: &impl Serialize) -> Result<Reading, ReadError> {
    let value = serde_json::to_value(object).map_err(|problem| ReadError::Serialize {
        problem: problem.to_string(),
    })?;
    read_value(&value)
}

/// Reads an untyped object.
///
/// ```
/// use kube_status::readers::{read_value, Health};
/// use serde_json::json;
///
/// let reading = read_value(&json!({
///     "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web-0"},
///     "status": {"phase": "Pending", "conditions": [{
///         "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
///         "message": "0/3 nodes are available: 3 Insufficient memory."}]},
/// })).unwrap();
/// assert_eq!(reading.health, Health::Stuck);
/// assert_eq!(reading.reason, "Unschedulable");
/// assert_eq!(reading.message, "0/3 nodes are available: 3 Insufficient memory.");
/// ```
pub fn read_value(object: &Value) -> Result<Reading, ReadError> {
    let called = called(object);
    let object = Fields::root(object, &called)?;
    let metadata = object.map("metadata")?;
    let generation = metadata.number("generation")?;
    let found = match going(&metadata)? {
        Some(going) => going,
        None => match unobserved(&object, generation)? {
            Some(late) => late,
            None => by_kind(&object)?,
        },
    };
    Ok(Reading { generation, ..found })
}

/// `Kind namespace/name`, as far as the object tells: also an unreadable object must be named.
fn called(object: &Value) -> String {
    let text = |pointer: &str| {
        object
            .pointer(pointer)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
    };
    let kind = text("/kind").unwrap_or("object");
    let name = text("/metadata/name").unwrap_or("without a name");
    match text("/metadata/namespace") {
        Some(namespace) => format!("{kind} {namespace}/{name}"),
        None => format!("{kind} {name}"),
    }
}

fn going(metadata: &Fields<'_>) -> Result<Option<Reading>, ReadError> {
    let Some(since) = metadata.time("deletionTimestamp")? else {
        return Ok(None);
    };
    let finalizers = metadata.strings("finalizers")?;
    let message = if finalizers.is_empty() {
        "being deleted".to_owned()
    } else {
        format!("being deleted, held by {}", finalizers.join(", "))
    };
    Ok(Some(
        Reading::new(Health::Deleting, "Deleting", message).since(Some(since)),
    ))
}

/// Everything in a status is about the past until its generation is the object's. A higher one than the object's is of a
/// past life: the object was restored with its status.
fn unobserved(object: &Fields<'_>, generation: Option<i64>) -> Result<Option<Reading>, ReadError> {
    let observed = object.map("status")?.number("observedGeneration")?;
    Ok(match (observed, generation) {
        (Some(observed), Some(generation)) if observed != generation => Some(Reading::progressing(
            "GenerationNotObserved",
            format!("generation {generation} has not been observed yet, the status is about {observed}"),
        )),
        _ => None,
    })
}

fn by_kind(object: &Fields<'_>) -> Result<Reading, ReadError> {
    let api_version = object.text_or_empty("apiVersion")?;
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    match (group, object.text_or_empty("kind")?) {
        ("apps", "Deployment") => workloads::deployment(object),
        ("apps", "ReplicaSet") => workloads::replica_set(object),
        ("apps", "StatefulSet") => workloads::stateful_set(object),
        ("apps", "DaemonSet") => workloads::daemon_set(object),
        ("batch", "Job") => job::job(object),
        ("", "Pod") => pod::pod(object),
        ("", "PersistentVolumeClaim") => claim::claim(object),
        ("", "Service") => service::service(object),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => crd::crd(object),
        // An object without kind comes out of a list; nothing is known of its nature, so it must speak for itself.
        (_, "") => custom::custom(object, false),
        (group, _) => custom::custom(object, is_built_in(group)),
    }
}

/// Groups that Kubernetes itself serves: without a dot, or under `k8s.io`. `*.x-k8s.io` are custom resources.
pub(crate) fn is_built_in(group: &str) -> bool {
    !group.contains('.') || (group.ends_with(".k8s.io") && !group.ends_with(".x-k8s.io"))
}

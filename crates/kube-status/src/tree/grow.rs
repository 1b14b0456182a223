//! A tree from objects as they were read from the API.

use serde_json::Value;

use super::line::{Line, Node};
use crate::readers::{ReadError, is_built_in, read_value};
use crate::severity::Severity;
use crate::{Condition, Polarity, Untyped, severity};

/// Types of built-in kinds for which True is bad, or unfinished.
const NEGATIVE: [&str; 18] = [
    "ReplicaFailure",
    "Failed",
    "FailureTarget",
    "Suspended",
    "DisruptionTarget",
    "PodResizePending",
    "PodResizeInProgress",
    "MemoryPressure",
    "DiskPressure",
    "PIDPressure",
    "NetworkUnavailable",
    "Resizing",
    "FileSystemResizePending",
    "ControllerResizeError",
    "NodeResizeError",
    "ModifyVolumeError",
    "ModifyingVolume",
    "NonStructuralSchema",
];

/// The same by convention, on any custom resource.
const CONVENTION: [&str; 2] = ["Stalled", "Reconciling"];

impl Node {
    /// An object as it was read from the API, without children. What [`readers`](crate::readers) find out stands in
    /// its row; its other conditions stand below. `negative` names the types of the caller's kinds for which True is
    /// bad; those of the built-in kinds are known.
    ///
    /// ```
    /// use kube_status::tree::{Node, Tone};
    /// use serde_json::json;
    ///
    /// let node = Node::read(&json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "db-0"}, "status": {
    ///     "phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
    ///         "message": "0/3 nodes are available", "lastTransitionTime": "2026-02-05T10:00:00Z"}]}}), &[]).unwrap();
    /// assert_eq!((node.lines[0].reason.as_str(), node.lines[0].tone), ("Unschedulable", Tone::Warning));
    /// ```
    pub fn read(object: &Value, negative: &[&str]) -> Result<Self, ReadError> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let mut node = Self::new(text("/kind"), text("/metadata/name"));
        let row = Line::read(&read_value(object)?);
        let conditions = conditions(object, negative);
        // Where reader and condition give the same reason the condition speaks for itself, with its severity.
        let own = conditions
            .iter()
            .find(|line| line.type_ == "Ready" && line.reason == row.reason);
        node.lines.push(own.cloned().unwrap_or(row));
        node.lines
            .extend(conditions.into_iter().filter(|line| line.type_ != "Ready"));
        Ok(node)
    }

    /// An object with everything that it owns, found by owner references among `others`, in their order.
    ///
    /// ```
    /// use kube_status::tree::Node;
    /// use serde_json::json;
    ///
    /// let set = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db", "uid": "u-1"}});
    /// let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "db-0",
    ///     "ownerReferences": [{"kind": "StatefulSet", "name": "db", "uid": "u-1"}]}});
    /// let tree = Node::grow(&set, &[pod], &[]).unwrap();
    /// assert_eq!(tree.children[0].title(), "Pod/db-0");
    /// ```
    pub fn grow(root: &Value, others: &[Value], negative: &[&str]) -> Result<Self, ReadError> {
        grow(root, others, negative, &mut Vec::new())
    }
}

fn grow<'a>(
    root: &'a Value,
    others: &'a [Value],
    negative: &[&str],
    above: &mut Vec<&'a str>,
) -> Result<Node, ReadError> {
    let mut node = Node::read(root, negative)?;
    let Some(uid) = uid(root) else { return Ok(node) };
    above.push(uid);
    // Owner references are only data: a cycle of them must not be followed without end.
    let owned = others.iter().filter(|other| owners(other).any(|owner| owner == uid));
    for child in owned
        .filter(|child| self::uid(child).is_none_or(|uid| !above.contains(&uid)))
        .collect::<Vec<_>>()
    {
        node.children.push(grow(child, others, negative, above)?);
    }
    above.pop();
    Ok(node)
}

fn uid(object: &Value) -> Option<&str> {
    object.pointer("/metadata/uid").and_then(Value::as_str)
}

fn owners(object: &Value) -> impl Iterator<Item = &str> {
    let references = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    references
        .into_iter()
        .flatten()
        .filter_map(|owner| owner.get("uid")?.as_str())
}

/// The conditions of either generation. The reader has checked their shape; what only this library's stricter rules
/// refuse is left out rather than hiding the whole tree.
fn conditions(object: &Value, negative: &[&str]) -> Vec<Line> {
    let group = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    let group = group.split_once('/').map_or("", |(group, _)| group);
    // `Progressing` is good on a Deployment and unfinished elsewhere: the caller names the types of other kinds.
    let bad_when_true = |type_: &str| {
        if is_built_in(group) {
            NEGATIVE.contains(&type_)
        } else {
            CONVENTION.contains(&type_) || negative.contains(&type_)
        }
    };
    let polarity = |type_: &str| {
        if bad_when_true(type_) {
            Polarity::Negative
        } else {
            Polarity::Positive
        }
    };
    let first = Untyped::<severity::Condition>::read_at(object, crate::Location::STATUS);
    let severities: Vec<(String, Option<Severity>)> = first
        .iter()
        .flat_map(crate::Conditioned::conditions)
        .map(|condition| (condition.type_().to_owned(), condition.severity()))
        .collect();
    let read = Untyped::<Condition>::read(object);
    read.iter()
        .flat_map(crate::Conditioned::conditions)
        .map(|condition: &Condition| {
            let severity = severities
                .iter()
                .find(|(type_, _)| *type_ == condition.type_)
                .and_then(|(_, found)| *found);
            Line::with_severity(condition, polarity(&condition.type_), severity)
        })
        .collect()
}

//! The result of a step.

use serde::{Deserialize, Serialize};

use crate::step::Step;

/// A step and its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The step.
    pub step: Step,
    /// What it changed, or why it failed.
    pub result: Result<Vec<Change>, Failure>,
}

/// What a write did to an object. An apply that changed nothing is not recorded as a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Which kind of object.
    pub kind: ObjectKind,
    /// Its name.
    pub name: String,
    /// What was done to it.
    pub did: Did,
}

/// What was done to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Did {
    /// It did not exist before.
    Created,
    /// It was changed.
    Updated,
    /// It is deleted, or is being deleted.
    Deleted,
    /// The API server rejected it, and the cluster works without it.
    Rejected,
    /// Another operator made it, and it was taken over.
    Adopted,
    /// It was edited by hand, and is as desired again.
    Reverted,
}

/// The objects that a cluster consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectKind {
    /// The headless Service: it resolves every member, ready or not.
    HeadlessService,
    /// The Service for clients.
    ClientService,
    /// `valkey.conf` and the scripts.
    ConfigMap,
    /// `users.acl`.
    AclSecret,
    /// The operator's own passwords.
    SystemSecret,
    /// Allows one eviction at a time.
    PodDisruptionBudget,
    /// A member's workload.
    Deployment,
    /// A member's workload, with persistence.
    StatefulSet,
    /// A member's volume.
    Claim,
    /// A member's `ValkeyNode`.
    ValkeyNode,
    /// The preflight pod, created before a rolling update.
    PreflightPod,
    /// Robin's service account.
    ServiceAccount,
    /// Robin's permissions.
    Role,
    /// The binding of Robin's permissions.
    RoleBinding,
}

/// Why a step failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The object that could not be written, and whether it existed before; none when a server rejected a command.
    pub object: Option<(ObjectKind, bool)>,
    /// Timeout: it is unknown whether the step was executed, and it was not rejected.
    pub unanswered: bool,
    /// The error message.
    pub message: String,
    /// What was written before the failure.
    pub done: Vec<Change>,
}

impl Failure {
    /// A server rejected the step, with this message.
    pub fn rejected(message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            object: None,
            unanswered: false,
            message,
            done: Vec::new(),
        }
    }

    /// Adds what was written before the failure.
    #[must_use]
    pub fn after(self, done: Vec<Change>) -> Self {
        Self { done, ..self }
    }

    /// A server did not respond (timeout).
    pub fn unanswered(message: impl Into<String>) -> Self {
        Self {
            unanswered: true,
            ..Self::rejected(message)
        }
    }

    /// An object could not be written. `existed` says whether it existed before.
    pub fn of_object(kind: ObjectKind, existed: bool, message: impl Into<String>) -> Self {
        Self {
            object: Some((kind, existed)),
            ..Self::rejected(message)
        }
    }
}

/// A kind of command that servers may reject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum CommandKind {
    /// A server joins, gets slots, or replicates another one.
    Join,
    /// Slots move.
    MoveSlots,
    /// A replica is promoted.
    Failover,
    /// A node is forgotten.
    Forget,
    /// Anything else.
    Other,
}

impl CommandKind {
    /// The kind of a step.
    pub fn of(step: &Step) -> Self {
        match step {
            Step::MoveSlots { .. } => Self::MoveSlots,
            Step::Failover { .. } => Self::Failover,
            Step::Forget { .. } => Self::Forget,
            Step::Meet { .. } | Step::Announce { .. } | Step::AddSlots { .. } | Step::Replicate { .. } => Self::Join,
            _ => Self::Other,
        }
    }
}

/// Commands of one kind that servers reject again and again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rejected {
    /// Which kind.
    pub kind: CommandKind,
    /// The shard of a failover.
    pub shard: Option<u32>,
    /// How often, without a success in between.
    pub times: u32,
    /// The last error message.
    pub message: String,
}

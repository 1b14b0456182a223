//! What came of a step.

use crate::step::Step;

/// A step and what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What was to be done.
    pub step: Step,
    /// What it changed, or why it was not done.
    pub result: Result<Vec<Change>, Failure>,
}

/// What a write did to an object. An apply that changed nothing is no change.
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
    /// It was not there before.
    Created,
    /// It is another now.
    Updated,
    /// It is gone, or on its way.
    Deleted,
    /// The API server rejected it, and the cluster can do without it.
    Rejected,
}

/// The objects that a cluster consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectKind {
    /// The Service that finds every member, ready or not.
    HeadlessService,
    /// The Service for clients.
    ClientService,
    /// `valkey.conf` and the scripts.
    ConfigMap,
    /// `users.acl`.
    AclSecret,
    /// The operator's own passwords.
    SystemSecret,
    /// One eviction at a time.
    PodDisruptionBudget,
    /// A member's workload.
    Deployment,
    /// A member's workload, with persistence.
    StatefulSet,
    /// A member's volume.
    Claim,
    /// A member's window.
    ValkeyNode,
    /// A pod that is tried before a roll.
    TrialPod,
}

/// Why a step was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The object that could not be written, and whether it existed before; none when a server refused.
    pub object: Option<(ObjectKind, bool)>,
    /// Nobody answered: whether it was done is not known, and nobody refused it.
    pub unheard: bool,
    /// The error, in the words of whoever refused.
    pub words: String,
    /// What was written before it failed.
    pub done: Vec<Change>,
}

impl Failure {
    /// A server would not do it, in its words.
    pub fn refused(words: impl Into<String>) -> Self {
        let words = words.into();
        Self {
            object: None,
            unheard: false,
            words,
            done: Vec::new(),
        }
    }

    /// After this had been written.
    #[must_use]
    pub fn after(self, done: Vec<Change>) -> Self {
        Self { done, ..self }
    }

    /// A server did not answer.
    pub fn unheard(words: impl Into<String>) -> Self {
        Self {
            unheard: true,
            ..Self::refused(words)
        }
    }

    /// An object could not be written; whether it existed before.
    pub fn of_object(kind: ObjectKind, existed: bool, words: impl Into<String>) -> Self {
        Self {
            object: Some((kind, existed)),
            ..Self::refused(words)
        }
    }
}

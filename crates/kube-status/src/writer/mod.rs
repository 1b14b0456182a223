//! The status writer: the one place that writes status.
//!
//! - [`StatusWriter::apply`]: on a resource that the controller owns, one server-side apply of the whole status with
//!   the resourceVersion it was computed from
//! - [`StatusWriter::patch`]: on an object shared with other writers, the three-way [`Patch`](crate::Patch), with an
//!   optimistic lock and bounded retries
//!
//! Both send nothing when nothing changed, and both shorten what the API server would refuse.

mod document;
mod own;
mod shared;

pub use shared::Shared;

use crate::{Conflict, Malformed};

/// What a write did.
///
/// ```
/// use kube_status::writer::Written;
/// assert!(!Written::<()>::Unchanged.is_changed());
/// ```
#[derive(Debug, Clone, PartialEq)]
#[must_use = "says whether the object has a new version"]
pub enum Written<K> {
    /// Nothing was to be written and nothing was sent.
    Unchanged,
    /// The object as the API server has it now.
    Changed(Box<K>),
}

impl<K> Written<K> {
    /// Whether something was written.
    ///
    /// ```
    /// assert!(!kube_status::writer::Written::<()>::Unchanged.is_changed());
    /// ```
    pub fn is_changed(&self) -> bool {
        matches!(self, Self::Changed(_))
    }
}

/// Why a status was not written.
///
/// ```
/// use kube_status::writer::WriteError;
/// let error = WriteError::Contended { object: "Cart shop/a".into(), attempts: 5 };
/// assert_eq!(
///     error.to_string(),
///     "conditions of Cart shop/a not written: other writers changed it 5 times in a row; try again later",
/// );
/// ```
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The object was changed since it was read, so the status was computed from something old.
    #[error("status of {object} not written: it was changed since it was read; reconcile again from the new version")]
    Stale {
        /// Kind and name.
        object: String,
    },
    /// Other writers were faster every time.
    #[error("conditions of {object} not written: other writers changed it {attempts} times in a row; try again later")]
    Contended {
        /// Kind and name.
        object: String,
        /// How often it was tried.
        attempts: usize,
    },
    /// Another writer changed one of the same conditions.
    #[error("conditions of {object} not written; own the type, or leave it to the other writer")]
    Conflict {
        /// Kind and name.
        object: String,
        /// The condition and what happened to it.
        #[source]
        source: Conflict,
    },
    /// The conditions in the API cannot be read.
    #[error("conditions of {object} not written: those in the API cannot be read; mend them first")]
    Malformed {
        /// Kind and name.
        object: String,
        /// The field and what is wrong with it.
        #[source]
        source: Malformed,
    },
    /// The object lacks what identifies it in the API.
    #[error("status not written: the object has no {field}; write the status of an object read from the API")]
    Unidentified {
        /// What is missing.
        field: &'static str,
    },
    /// The object or the status is not JSON.
    #[error("status of {object} not written: it cannot be turned into JSON")]
    Serialize {
        /// Kind and name, as far as known.
        object: String,
        /// What the serialiser said.
        #[source]
        source: serde_json::Error,
    },
    /// The API server refused, or could not be reached.
    #[error("status of {object} not written: the API server did not take it")]
    Api {
        /// Kind and name.
        object: String,
        /// Its answer.
        #[source]
        source: Box<kube::Error>,
    },
}

impl WriteError {
    /// Whether the object is gone, so that there is nothing left to report on.
    ///
    /// ```
    /// use kube_status::writer::WriteError;
    /// assert!(!WriteError::Stale { object: "Cart shop/a".into() }.is_not_found());
    /// ```
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Api { source, .. } if is(source, 404))
    }

    /// Whether the same write may succeed after a fresh look, without anybody's help.
    ///
    /// ```
    /// use kube_status::writer::WriteError;
    /// assert!(WriteError::Stale { object: "Cart shop/a".into() }.is_race());
    /// ```
    pub fn is_race(&self) -> bool {
        matches!(self, Self::Stale { .. } | Self::Contended { .. })
    }
}

fn is(error: &kube::Error, code: u16) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == code)
}

/// Writes status, under one name.
///
/// ```no_run
/// use k8s_openapi::api::apps::v1::{Deployment, DeploymentStatus};
/// use kube_status::writer::{StatusWriter, WriteError};
///
/// # async fn run(api: kube::Api<Deployment>, seen: Deployment) -> Result<(), WriteError> {
/// let writer = StatusWriter::new("shop-controller");
/// let status = DeploymentStatus { replicas: Some(3), ..Default::default() };
/// if writer.apply(&api, &seen, &status).await?.is_changed() {
///     println!("written");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct StatusWriter {
    manager: String,
    attempts: usize,
}

impl StatusWriter {
    /// A writer under this field manager, the name in `managedFields`.
    ///
    /// ```
    /// let writer = kube_status::writer::StatusWriter::new("shop-controller");
    /// # let _ = writer;
    /// ```
    pub fn new(manager: impl Into<String>) -> Self {
        Self {
            manager: manager.into(),
            attempts: 5,
        }
    }

    /// How often [`StatusWriter::patch`] tries when other writers are faster; 5 if not given, at least once.
    ///
    /// ```
    /// let writer = kube_status::writer::StatusWriter::new("shop-controller").attempts(3);
    /// # let _ = writer;
    /// ```
    #[must_use]
    pub fn attempts(self, attempts: usize) -> Self {
        Self {
            attempts: attempts.max(1),
            ..self
        }
    }
}

//! What keeps objects from being built, in words a person can act on.

/// Why a spec cannot be turned into objects.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// A Secret that the spec names is not there.
    #[error("Secret {name} is missing: {purpose}; create it in the cluster's namespace")]
    MissingSecret {
        /// Its name.
        name: String,
        /// What it is needed for.
        purpose: String,
    },
    /// A Secret lacks a key, or has nothing under it.
    #[error("Secret {name} has {} under the key {key}: {purpose}", if *.empty { "an empty value" } else { "nothing" })]
    MissingKey {
        /// The Secret.
        name: String,
        /// The key.
        key: String,
        /// It is there, and empty.
        empty: bool,
        /// What it is needed for.
        purpose: String,
    },
    /// A part of the spec whose shape the API server does not check is wrong.
    #[error("{field}: {reason}")]
    Shape {
        /// Where, as a path in the spec.
        field: String,
        /// What is wrong, and what to write instead.
        reason: String,
    },
}

impl Problem {
    /// A wrong value at a place of the spec.
    pub(super) fn shape(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Shape {
            field: field.into(),
            reason: reason.into(),
        }
    }

    /// Whether it goes away by itself once somebody creates a Secret: then the cluster waits rather than fails.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::MissingSecret { .. } | Self::MissingKey { .. })
    }
}

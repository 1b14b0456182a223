//! What keeps objects from being built, in words a person can act on.

use candor_api::ValkeyCluster;
use candor_engine::observation::About;

use super::config::tls_secret;

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
    /// The Secret with the certificates has all of them, but nobody can use them.
    #[error(
        "Secret {name}: {words}; servers that run keep the certificates they have, mend the Secret before one restarts"
    )]
    UnusableCertificates {
        /// Its name.
        name: String,
        /// Why not.
        words: String,
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
    pub fn shape(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Shape {
            field: field.into(),
            reason: reason.into(),
        }
    }

    /// Whether it goes away by itself once somebody creates or mends a Secret: then the cluster waits rather than fails.
    pub fn is_missing(&self) -> bool {
        !matches!(self, Self::Shape { .. })
    }

    /// Which part of the spec asks for what all members share and cannot have: its certificates, or else its users.
    pub fn about(&self, cluster: &ValkeyCluster) -> About {
        match self {
            Self::MissingSecret { name, .. }
            | Self::MissingKey { name, .. }
            | Self::UnusableCertificates { name, .. }
                if tls_secret(cluster) == Some(name) =>
            {
                About::Configuration
            }
            _ => About::Users,
        }
    }
}

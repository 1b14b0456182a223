//! Errors that prevent building objects, with messages that a user can act on.

use candor_api::ValkeyCluster;
use candor_engine::observation::About;

use super::config::tls_secret;

/// Why objects cannot be built from a spec.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// A Secret that the spec references does not exist.
    #[error("Secret {name} is missing: {purpose}; create it in the cluster's namespace")]
    MissingSecret {
        /// Name of the Secret.
        name: String,
        /// What the Secret is needed for.
        purpose: String,
    },
    /// A key of a Secret is missing or empty.
    #[error("Secret {name} has {} under the key {key}: {purpose}", if *.empty { "an empty value" } else { "nothing" })]
    MissingKey {
        /// Name of the Secret.
        name: String,
        /// Name of the key.
        key: String,
        /// The key exists, but its value is empty.
        empty: bool,
        /// What the value is needed for.
        purpose: String,
    },
    /// The Secret with the certificates has all keys, but the certificates cannot be used.
    #[error(
        "Secret {name}: {message}; servers that run keep the certificates they have, mend the Secret before one restarts"
    )]
    UnusableCertificates {
        /// Name of the Secret.
        name: String,
        /// Why the certificates cannot be used.
        message: String,
    },
    /// A part of the spec that the API server does not validate is invalid.
    #[error("{field}: {reason}")]
    Shape {
        /// Path of the field in the spec.
        field: String,
        /// What is wrong, and what to write instead.
        reason: String,
    },
}

impl Problem {
    /// An invalid value at a path of the spec.
    pub fn shape(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Shape {
            field: field.into(),
            reason: reason.into(),
        }
    }

    /// Whether creating or repairing a Secret resolves the problem. If so, the cluster waits instead of failing.
    pub fn is_missing(&self) -> bool {
        !matches!(self, Self::Shape { .. })
    }

    /// The part of the spec that needs the missing shared input: its certificates, or otherwise its users.
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

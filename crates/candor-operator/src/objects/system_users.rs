//! The operator's own users and their passwords.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use ring::rand::SecureRandom;

use super::Problem;

/// The user that administers the cluster. It has no access to keys.
pub const OPERATOR: &str = "_operator";
/// The user of probes and metrics. It only reads statistics.
pub const EXPORTER: &str = "_exporter";
/// The user that replicas, and sources of slot migrations, authenticate as.
pub const REPLICATION: &str = "_replication";
/// The user that migrates keys one by one on servers without slot migration.
pub const MIGRATOR: &str = "_migrator";

/// The passwords of the operator's own users. They are never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct SystemPasswords {
    /// Password of [`OPERATOR`].
    pub operator: String,
    /// Password of [`EXPORTER`].
    pub exporter: String,
    /// Password of [`REPLICATION`].
    pub replication: String,
    /// Password of [`MIGRATOR`].
    pub migrator: String,
}

impl fmt::Debug for SystemPasswords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SystemPasswords").finish_non_exhaustive()
    }
}

impl SystemPasswords {
    /// Generates new passwords with 256 random bits each.
    pub fn generate(random: &dyn SecureRandom) -> Result<Self, ring::error::Unspecified> {
        let password = || -> Result<String, ring::error::Unspecified> {
            let mut bytes = [0; 32];
            random.fill(&mut bytes)?;
            Ok(super::hash::hex(&bytes))
        };
        Ok(Self {
            operator: password()?,
            exporter: password()?,
            replication: password()?,
            migrator: password()?,
        })
    }

    /// Reads the passwords from a Secret. A damaged Secret is an error, and the operator never replaces it with new
    /// passwords: running servers still use the old ones.
    pub fn from_secret(secret: &Secret) -> Result<Self, Problem> {
        let name = secret.metadata.name.clone().unwrap_or_default();
        let read = |user: &str| {
            let value = secret.data.as_ref().and_then(|data| data.get(user));
            let text = value.map(|value| String::from_utf8_lossy(&value.0).into_owned());
            match text {
                Some(text) if !text.is_empty() => Ok(text),
                found => Err(Problem::MissingKey {
                    name: name.clone(),
                    key: user.to_owned(),
                    empty: found.is_some(),
                    purpose: format!("the servers know the operator's user {user} by this password; put it back"),
                }),
            }
        };
        Ok(Self {
            operator: read(OPERATOR)?,
            exporter: read(EXPORTER)?,
            replication: read(REPLICATION)?,
            migrator: read(MIGRATOR)?,
        })
    }

    pub(super) fn data(&self) -> BTreeMap<String, ByteString> {
        let all = [
            (OPERATOR, &self.operator),
            (EXPORTER, &self.exporter),
            (REPLICATION, &self.replication),
            (MIGRATOR, &self.migrator),
        ];
        all.map(|(user, password)| (user.to_owned(), ByteString(password.clone().into_bytes())))
            .into()
    }
}

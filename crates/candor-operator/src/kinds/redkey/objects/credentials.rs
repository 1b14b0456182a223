//! The Secret `<name>-robin`: the token that authorizes changes through Robin, the certificate by which the operator
//! recognizes Robin, and the servers' password.
//!
//! The token and the certificate are rotated without an outage. The Secret retains the previous ones beside the new
//! ones, because files reach a pod up to a minute after the Secret has changed. Until the next rotation, Robin accepts
//! either token and the operator trusts either certificate.

use std::fmt;

use candor_api::RedkeyCluster;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, PKCS_ED25519};
use ring::rand::SecureRandom;
use ring::signature::Ed25519KeyPair;
use serde_json::json;

use super::super::config::{Password, text};
use super::{BuildError, names, typed};
use crate::objects::hash;

/// The key of the Secret with the bearer token.
pub const TOKEN: &str = "token";
/// The key with the token from before the last rotation.
pub const PREVIOUS_TOKEN: &str = "previous-token";
/// The key with the certificate.
pub const CERTIFICATE: &str = "tls.crt";
/// The key with the private key of the certificate.
pub const PRIVATE_KEY: &str = "tls.key";
/// The key with the certificate from before the last rotation.
pub const PREVIOUS_CERTIFICATE: &str = "previous-tls.crt";
/// The key with the servers' password. The value is empty if there is none.
pub const PASSWORD: &str = "requirepass";
/// The key with the same password as a part of `redis.conf`, which servers include.
pub const AUTH_FILE: &str = "auth.conf";

/// Robin's token and certificate. They are never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct RobinCredentials {
    /// The token that authorizes changes.
    pub token: String,
    /// The certificate as PEM.
    pub certificate: String,
    /// The private key as PEM.
    pub private_key: String,
    /// The token and the certificate from before the last rotation.
    pub previous: Option<(String, String)>,
}

impl fmt::Debug for RobinCredentials {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("RobinCredentials").finish_non_exhaustive()
    }
}

/// Why credentials cannot be generated.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// The source of randomness failed.
    #[error("generating Robin's token: no randomness")]
    Random,
    /// The certificate could not be generated.
    #[error("generating Robin's certificate")]
    Certificate(#[source] rcgen::Error),
}

impl RobinCredentials {
    /// Generates a token of 256 random bits, and a key with a certificate. The operator compares the certificate by
    /// its bytes, so its dates have no meaning and it never expires.
    pub fn generate(cluster: &str, random: &dyn SecureRandom) -> Result<Self, CredentialsError> {
        let mut token = [0; 32];
        random.fill(&mut token).map_err(|_| CredentialsError::Random)?;
        let key = Ed25519KeyPair::generate_pkcs8(random).map_err(|_| CredentialsError::Random)?;
        let made = || -> Result<(String, String), rcgen::Error> {
            let key = KeyPair::from_pkcs8_der_and_sign_algo(&key.as_ref().into(), &PKCS_ED25519)?;
            let name = names::robin(cluster);
            let mut params = CertificateParams::new(vec![name.clone()])?;
            params.distinguished_name = DistinguishedName::new();
            params.distinguished_name.push(DnType::CommonName, name);
            Ok((params.self_signed(&key)?.pem(), key.serialize_pem()))
        };
        let (certificate, private_key) = made().map_err(CredentialsError::Certificate)?;
        Ok(Self {
            token: hash::hex(&token),
            certificate,
            private_key,
            previous: None,
        })
    }

    /// Reads the credentials from a Secret. None if a part is missing or empty.
    pub fn from_secret(secret: &Secret) -> Option<Self> {
        let read = |key: &str| {
            let value = secret.data.as_ref()?.get(key)?;
            let text = String::from_utf8(value.0.clone()).ok()?;
            (!text.is_empty()).then_some(text)
        };
        Some(Self {
            token: read(TOKEN)?,
            certificate: read(CERTIFICATE)?,
            private_key: read(PRIVATE_KEY)?,
            previous: read(PREVIOUS_TOKEN).zip(read(PREVIOUS_CERTIFICATE)),
        })
    }

    /// Generates new credentials and retains these as the previous ones, which stay valid.
    pub fn rotate(&self, cluster: &str, random: &dyn SecureRandom) -> Result<Self, CredentialsError> {
        Ok(Self {
            previous: Some((self.token.clone(), self.certificate.clone())),
            ..Self::generate(cluster, random)?
        })
    }
}

/// The password in a Secret of `spec.auth`, or why there is none.
pub fn password_of(secret: Option<&Secret>, name: &str) -> Result<Password, SecretError> {
    let name = || name.to_owned();
    let secret = secret.ok_or_else(|| SecretError::Missing { name: name() })?;
    let value = secret.data.as_ref().and_then(|data| data.get(PASSWORD));
    let value = value.ok_or_else(|| SecretError::NoKey { name: name() })?;
    let text = String::from_utf8(value.0.clone()).map_err(|_| SecretError::NoText { name: name() })?;
    // `kubectl create secret --from-file` keeps the line end of the file.
    let text = text.trim_end_matches(['\n', '\r']);
    Password::new(text).ok_or_else(|| SecretError::Empty { name: name() })
}

/// Why a Secret of `spec.auth` has no password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// The Secret does not exist.
    #[error("Secret {name} is missing: spec.auth.secret names it; create it with the key requirepass")]
    Missing {
        /// Name of the Secret.
        name: String,
    },
    /// The Secret does not have the key of the password.
    #[error("Secret {name} has no key requirepass: spec.auth.secret names it; add the key")]
    NoKey {
        /// Name of the Secret.
        name: String,
    },
    /// The password is empty.
    #[error("Secret {name} has an empty requirepass: write a password, or remove spec.auth.secret")]
    Empty {
        /// Name of the Secret.
        name: String,
    },
    /// The password is not valid UTF-8.
    #[error("Secret {name} has a requirepass that is not valid UTF-8: choose a password without such bytes")]
    NoText {
        /// Name of the Secret.
        name: String,
    },
}

/// The password as lines of a configuration file.
pub(super) fn lines(password: &Password) -> String {
    let quoted = text::quoted(password.expose().as_bytes());
    format!("requirepass {quoted}\nmasterauth {quoted}\n")
}

/// Builds the Secret with all keys.
pub(in super::super) fn secret(
    cluster: &RedkeyCluster,
    credentials: &RobinCredentials,
    password: Option<&Password>,
) -> Result<Secret, BuildError> {
    let name = names::robin(&cluster.name_any());
    let plain = password.map(Password::expose).unwrap_or_default();
    let file = password.map_or_else(String::new, lines);
    let mut secret: Secret = typed(
        "metadata",
        json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": names::meta(cluster, &name, &names::robin_labels(cluster)),
            "type": "Opaque",
        }),
    )?;
    let previous = credentials.previous.iter();
    let previous = previous.flat_map(|(token, certificate)| {
        [
            (PREVIOUS_TOKEN, token.as_str()),
            (PREVIOUS_CERTIFICATE, certificate.as_str()),
        ]
    });
    let data = [
        (TOKEN, credentials.token.as_str()),
        (CERTIFICATE, &credentials.certificate),
        (PRIVATE_KEY, &credentials.private_key),
        (PASSWORD, plain),
        (AUTH_FILE, &file),
    ];
    let data = data.into_iter().chain(previous);
    secret.data = Some(
        data.map(|(key, text)| (key.to_owned(), ByteString(text.as_bytes().to_vec())))
            .collect(),
    );
    Ok(secret)
}

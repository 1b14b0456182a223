//! The certificates of one cluster: the one that its servers should present, and those that the operator accepts.
//!
//! The operator sends its password only to a server that presents the certificate of the cluster's Secret: its CA may
//! sign for many others. A changed Secret reaches the servers later than the operator. Until every member presents the
//! new certificate, the operator also accepts the previous certificates and their CAs. Both are recorded in the
//! operator's own Secret: an operator that starts during a renewal can still connect to a server and make it reload its
//! files.
//!
//! A certificate that is not recorded is not accepted. This concerns a server that loaded a certificate which came and
//! went while no operator ran. It also concerns a server with a certificate that was renewed while the operator's own
//! Secret was deleted. Such a server is reported (`TLS: … neither the one of the cluster's Secret nor one before it`).
//! It is accepted again once its pod is restarted.

use std::collections::BTreeMap;

use candor_api::ValkeyCluster;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use valkey_admin::client::{DesiredCertificate, Fingerprint, Tls, TlsError, authorities};

use crate::objects::{Problem, tls_secret};

/// Key in the operator's own Secret: the CAs that all members were last verified with.
const TRUSTED: &str = "trusted-ca.crt";
/// Key in the operator's own Secret: the fingerprints of the certificates that members may still present, one per line,
/// the oldest first.
const ACCEPTED: &str = "accepted-certificates";
/// How many fingerprints are retained if renewals follow each other faster than members reload.
const MOST_ACCEPTED: usize = 16;

/// The certificates of one cluster.
#[derive(Clone, Debug, Default)]
pub struct Certificates {
    /// The Secret's `ca.crt`.
    authority: Option<Vec<u8>>,
    /// The CAs that all members were last verified with.
    trusted: Option<Vec<u8>>,
    /// The certificates that members may still present.
    accepted: Vec<Fingerprint>,
    /// The certificate that every server should present; `None` without TLS, and while the Secret cannot be used.
    pub desired: Option<DesiredCertificate>,
    /// Why the Secret cannot be used.
    pub problem: Option<Problem>,
}

impl Certificates {
    /// Reads the Secret that the spec names, and the operator's own. `None` if the spec does not enable TLS.
    pub fn of(cluster: &ValkeyCluster, secrets: &BTreeMap<String, Secret>, own: Option<&Secret>) -> Option<Self> {
        let name = tls_secret(cluster)?;
        let entry = |secret: &Secret, key: &str| secret.data.as_ref().and_then(|data| Some(data.get(key)?.0.clone()));
        let mut found = Self {
            trusted: own.and_then(|own| entry(own, TRUSTED)),
            accepted: own
                .and_then(|own| entry(own, ACCEPTED))
                .map_or_else(Vec::new, |lines| recorded(&lines)),
            ..Self::default()
        };
        let Some(secret) = secrets.get(name) else {
            return Some(found);
        };
        found.authority = entry(secret, "ca.crt");
        let files = (&found.authority, entry(secret, "tls.crt"), entry(secret, "tls.key"));
        // A missing file is reported where the objects are built.
        if let (Some(authority), Some(certificate), Some(key)) = files {
            match DesiredCertificate::read(authority, &certificate, &key) {
                Ok(desired) => found.desired = Some(desired),
                Err(error) => {
                    found.problem = Some(Problem::UnusableCertificates {
                        name: name.to_owned(),
                        message: error.to_string(),
                    });
                }
            }
        }
        Some(found)
    }

    /// The TLS configuration that accepts the Secret's certificate and those that members may still present.
    pub fn tls(&self) -> Result<Tls, TlsError> {
        let files: Vec<&[u8]> = self.authority.iter().chain(&self.trusted).map(Vec::as_slice).collect();
        Tls::trusting(&files, &self.with_current())
    }

    fn with_current(&self) -> Vec<Fingerprint> {
        let current = self.desired.as_ref().map(DesiredCertificate::fingerprint);
        let mut all = self.accepted.clone();
        all.retain(|one| Some(*one) != current);
        all.extend(current);
        all.drain(..all.len().saturating_sub(MOST_ACCEPTED));
        all
    }

    /// Whether all members were last verified with exactly the CAs of the Secret. If no CAs are recorded, the members
    /// are assumed to have started with these.
    pub fn is_trusted(&self) -> bool {
        let print = |file: &Option<Vec<u8>>| file.as_deref().and_then(authorities);
        self.trusted.is_none() || print(&self.trusted) == print(&self.authority)
    }

    /// Records in the operator's own Secret which CAs and certificates to accept: only those of the Secret once all
    /// members present its certificate, until then also those recorded before.
    pub fn note(&self, own: &mut Secret, all_serve: bool) {
        let current = self.desired.as_ref().map(DesiredCertificate::fingerprint);
        let usable = current.is_some() && (all_serve || self.trusted.is_none());
        let known = if usable { &self.authority } else { &self.trusted };
        let accepted = match current {
            Some(current) if all_serve => vec![current],
            _ => self.with_current(),
        };
        let data = own.data.get_or_insert_default();
        if let Some(known) = known {
            data.insert(TRUSTED.to_owned(), ByteString(known.clone()));
        }
        if !accepted.is_empty() {
            let lines: Vec<String> = accepted.iter().map(ToString::to_string).collect();
            data.insert(ACCEPTED.to_owned(), ByteString(lines.join("\n").into_bytes()));
        }
    }
}

/// Parses the recorded fingerprints. An invalid line is ignored and accepts nothing.
fn recorded(lines: &[u8]) -> Vec<Fingerprint> {
    let lines = String::from_utf8_lossy(lines).into_owned();
    lines.lines().filter_map(|line| line.parse().ok()).collect()
}

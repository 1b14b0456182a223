//! The certificates of one cluster: which one its servers should present, and which ones the operator accepts meanwhile.
//!
//! The operator sends its password only to a server that presents the certificate of the cluster's Secret: its CA may
//! sign for many others. A changed Secret reaches the servers later than the operator, so until every member presents
//! the new certificate, those before it are accepted too, and so are their CAs. Both are recorded in the operator's own
//! Secret: an operator that starts during a renewal can still connect to a server and make it reload its files.
//!
//! What is not recorded is not accepted. A server that loaded a certificate which came and went while no operator ran,
//! or whose certificate was renewed while the operator's own Secret was deleted, is reported (`TLS: … neither the one of
//! the cluster's Secret nor one before it`); it is accepted again once its pod is restarted.

use std::collections::BTreeMap;

use candor_api::ValkeyCluster;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use valkey_admin::client::{Fingerprint, Tls, TlsError, WantedCertificate, authorities};

use crate::objects::{Problem, tls_secret};

/// Where the operator's own Secret has the CAs that all members were last known by.
const TRUSTED: &str = "trusted-ca.crt";
/// Where it has the fingerprints of the certificates that members may still present, one a line, the oldest first.
const ACCEPTED: &str = "accepted-certificates";
/// How many of them are retained, where renewals follow each other faster than members reload.
const MOST_ACCEPTED: usize = 16;

/// The certificates of one cluster.
#[derive(Clone, Debug, Default)]
pub struct Certificates {
    /// The Secret's `ca.crt`.
    authority: Option<Vec<u8>>,
    /// The CAs that all members were last known by.
    trusted: Option<Vec<u8>>,
    /// The certificates that members may still present.
    accepted: Vec<Fingerprint>,
    /// What every server shall serve; none without TLS, and while the Secret cannot be used.
    pub wanted: Option<WantedCertificate>,
    /// Why the Secret cannot be used.
    pub problem: Option<Problem>,
}

impl Certificates {
    /// From the Secret that the spec names, and the operator's own. Nothing where no TLS is asked for.
    pub fn of(cluster: &ValkeyCluster, secrets: &BTreeMap<String, Secret>, own: Option<&Secret>) -> Option<Self> {
        let name = tls_secret(cluster)?;
        let entry = |secret: &Secret, key: &str| secret.data.as_ref().and_then(|data| Some(data.get(key)?.0.clone()));
        let mut found = Self {
            trusted: own.and_then(|own| entry(own, TRUSTED)),
            accepted: own.and_then(|own| entry(own, ACCEPTED)).map_or_else(Vec::new, recorded),
            ..Self::default()
        };
        let Some(secret) = secrets.get(name) else {
            return Some(found);
        };
        found.authority = entry(secret, "ca.crt");
        let files = (&found.authority, entry(secret, "tls.crt"), entry(secret, "tls.key"));
        // What is not there at all is told by who makes the objects.
        if let (Some(authority), Some(certificate), Some(key)) = files {
            match WantedCertificate::read(authority, &certificate, &key) {
                Ok(wanted) => found.wanted = Some(wanted),
                Err(error) => {
                    found.problem = Some(Problem::UnusableCertificates {
                        name: name.to_owned(),
                        words: error.to_string(),
                    });
                }
            }
        }
        Some(found)
    }

    /// Accepts the Secret's certificate and those that members may still present.
    pub fn tls(&self) -> Result<Tls, TlsError> {
        let files: Vec<&[u8]> = self.authority.iter().chain(&self.trusted).map(Vec::as_slice).collect();
        Tls::trusting(&files, &self.with_current())
    }

    fn with_current(&self) -> Vec<Fingerprint> {
        let current = self.wanted.as_ref().map(WantedCertificate::fingerprint);
        let mut all = self.accepted.clone();
        all.retain(|one| Some(*one) != current);
        all.extend(current);
        all.drain(..all.len().saturating_sub(MOST_ACCEPTED));
        all
    }

    /// Whether all members are known by the very CAs of the Secret. Where nobody ever noted whom they are known by,
    /// they are taken to have started with these.
    pub fn is_trusted(&self) -> bool {
        let print = |file: &Option<Vec<u8>>| file.as_deref().and_then(authorities);
        self.trusted.is_none() || print(&self.trusted) == print(&self.authority)
    }

    /// Records in the operator's own Secret how members are known: by the Secret's CA and certificate once all of them
    /// present it, until then also by what was recorded before.
    pub fn note(&self, own: &mut Secret, all_serve: bool) {
        let current = self.wanted.as_ref().map(WantedCertificate::fingerprint);
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
            let lines: String = accepted.iter().map(|one| format!("{one}\n")).collect();
            data.insert(ACCEPTED.to_owned(), ByteString(lines.into_bytes()));
        }
    }
}

/// A line that is no fingerprint accepts nothing.
fn recorded(lines: Vec<u8>) -> Vec<Fingerprint> {
    let lines = String::from_utf8_lossy(&lines).into_owned();
    lines.lines().filter_map(|line| line.parse().ok()).collect()
}

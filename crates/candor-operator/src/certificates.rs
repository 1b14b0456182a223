//! The certificates of one cluster: what its servers shall serve, and whose certificates the operator trusts meanwhile.
//!
//! A changed Secret reaches the servers later than the operator. Until every member is seen to serve the new
//! certificate, the CA that they were known by is trusted beside the new one; it is kept in the operator's own Secret, so
//! that whoever is the operator then can still reach a server to let it read its files again.

use std::collections::BTreeMap;

use candor_api::ValkeyCluster;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use valkey_admin::client::{Tls, TlsError, WantedCertificate, authorities};

use crate::objects::{Problem, tls_secret};

/// Where the operator's own Secret has the CAs that all members were last known by.
const TRUSTED: &str = "trusted-ca.crt";

/// The certificates of one cluster.
#[derive(Clone, Debug, Default)]
pub struct Certificates {
    /// The Secret's `ca.crt`.
    authority: Option<Vec<u8>>,
    /// The CAs that all members were last known by.
    trusted: Option<Vec<u8>>,
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

    /// Trusts the Secret's CA and the one that members were last known by.
    pub fn tls(&self) -> Result<Tls, TlsError> {
        let files: Vec<&[u8]> = self.authority.iter().chain(&self.trusted).map(Vec::as_slice).collect();
        Tls::trusting(&files)
    }

    /// Whether all members are known by the very CAs of the Secret. Where nobody ever noted whom they are known by,
    /// they are taken to have started with these.
    pub fn is_trusted(&self) -> bool {
        let print = |file: &Option<Vec<u8>>| file.as_deref().and_then(authorities);
        self.trusted.is_none() || print(&self.trusted) == print(&self.authority)
    }

    /// Notes in the operator's own Secret whom members are known by: the Secret's CA once all of them serve its
    /// certificate, else what was noted before.
    pub fn note(&self, own: &mut Secret, all_serve: bool) {
        let usable = self.wanted.is_some() && (all_serve || self.trusted.is_none());
        let known = if usable { &self.authority } else { &self.trusted };
        if let Some(known) = known {
            let data = own.data.get_or_insert_default();
            data.insert(TRUSTED.to_owned(), ByteString(known.clone()));
        }
    }
}

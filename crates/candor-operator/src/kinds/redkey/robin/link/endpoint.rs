//! Where a Robin is, and by what the operator and Robin recognize each other.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use valkey_admin::client::{Fingerprint, TlsError};

use crate::kinds::redkey::objects::{ROBIN_TLS_PORT, RobinCredentials};

/// Where Robin is, how to recognize it, and how to be recognized.
#[derive(Clone, PartialEq, Eq)]
pub struct RobinEndpoint {
    /// Its address.
    pub address: SocketAddr,
    /// The certificates that it may present: the current one, and the one before.
    pub certificates: Vec<Fingerprint>,
    /// The tokens that it may accept: the current one first. Files reach a pod up to a minute after its Secret changed.
    pub tokens: Vec<String>,
}

impl fmt::Debug for RobinEndpoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = out.debug_struct("RobinEndpoint");
        out.field("address", &self.address);
        out.field("certificates", &self.certificates).finish_non_exhaustive()
    }
}

impl RobinEndpoint {
    /// The Robin at this address of a pod, with the credentials of its Secret.
    pub fn new(ip: IpAddr, credentials: &RobinCredentials) -> Result<Self, TlsError> {
        let mut certificates = vec![Fingerprint::of_pem(credentials.certificate.as_bytes())?];
        let mut tokens = vec![credentials.token.clone()];
        if let Some((token, certificate)) = &credentials.previous {
            tokens.push(token.clone());
            certificates.extend(Fingerprint::of_pem(certificate.as_bytes()).ok());
        }
        Ok(Self {
            address: SocketAddr::new(ip, ROBIN_TLS_PORT),
            certificates,
            tokens,
        })
    }
}

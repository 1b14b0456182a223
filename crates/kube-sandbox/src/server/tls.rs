//! The sandbox's own certificate authority, its certificates and the kubeconfig.

use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use serde_json::json;

use super::user::User;

/// What can go wrong while certificates are made.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The certificate could not be made.
    #[error("making a certificate for {what}")]
    Certificate {
        /// The name in the certificate.
        what: String,
        /// Why.
        #[source]
        source: rcgen::Error,
    },
    /// The server's TLS settings were rejected.
    #[error("setting up TLS for the API server")]
    Server(#[source] rustls::Error),
    /// The verifier of client certificates was rejected.
    #[error("setting up the check of client certificates")]
    Verifier(#[source] rustls::server::VerifierBuilderError),
}

/// The certificate authority of one sandbox. Its key never leaves the process.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate with its key, both in PEM.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The certificate.
    pub certificate: String,
    /// The key.
    pub key: String,
}

impl Authority {
    /// A new authority.
    pub fn new() -> Result<Self, TlsError> {
        let failed = |source| TlsError::Certificate {
            what: "the certificate authority".into(),
            source,
        };
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, "kube-sandbox");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate().map_err(failed)?;
        Ok(Self {
            issuer: CertifiedIssuer::self_signed(params, key).map_err(failed)?,
        })
    }

    /// The authority's certificate in PEM: what clients trust.
    pub fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// A client certificate: the common name is the user, the organisations are its groups.
    pub fn client(&self, user: &str, groups: &[&str]) -> Result<Identity, TlsError> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, user);
        for group in groups {
            params.distinguished_name.push(DnType::OrganizationName, *group);
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        self.sign(&params, user)
    }

    fn sign(&self, params: &CertificateParams, what: &str) -> Result<Identity, TlsError> {
        let failed = |source| TlsError::Certificate {
            what: what.into(),
            source,
        };
        let key = KeyPair::generate().map_err(failed)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(failed)?;
        Ok(Identity {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        })
    }

    /// The server's TLS settings: client certificates of this authority are verified, but not required.
    pub fn server(&self) -> Result<ServerConfig, TlsError> {
        let failed = |source| TlsError::Certificate {
            what: "the API server".into(),
            source,
        };
        let names = [
            "localhost",
            "127.0.0.1",
            "::1",
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
        ];
        let names: Vec<String> = names.iter().map(|n| (*n).to_owned()).collect();
        let mut params = CertificateParams::new(names).map_err(failed)?;
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, "kube-apiserver");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate().map_err(failed)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(failed)?;
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).map_err(TlsError::Server)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
            .allow_unauthenticated()
            .build()
            .map_err(TlsError::Verifier)?;
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Server)?
            .with_client_cert_verifier(verifier)
            .with_single_cert(
                vec![certificate.der().clone(), self.issuer.der().clone()],
                PrivateKeyDer::Pkcs8(key.serialize_der().into()),
            )
            .map_err(TlsError::Server)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}

/// The user a verified client certificate names.
pub fn user_of(certificate: &CertificateDer<'_>) -> Option<User> {
    let (_, parsed) = x509_parser::parse_x509_certificate(certificate).ok()?;
    let subject = parsed.subject();
    let name = subject.iter_common_name().next()?.as_str().ok()?.to_owned();
    let groups: Vec<String> = subject
        .iter_organization()
        .filter_map(|o| o.as_str().ok().map(str::to_owned))
        .collect();
    Some(User::new(name, groups))
}

/// A kubeconfig for one user, everything in one file.
pub fn kubeconfig(address: SocketAddr, authority: &Authority, identity: &Identity, user: &str) -> String {
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "sandbox", "cluster": {
            "server": format!("https://{address}"),
            "certificate-authority-data": STANDARD.encode(authority.pem()),
        }}],
        "users": [{"name": user, "user": {
            "client-certificate-data": STANDARD.encode(&identity.certificate),
            "client-key-data": STANDARD.encode(&identity.key),
        }}],
        "contexts": [{"name": "sandbox", "context": {"cluster": "sandbox", "user": user, "namespace": "default"}}],
        "current-context": "sandbox",
        "preferences": {},
    });
    serde_norway::to_string(&config).unwrap_or_default()
}

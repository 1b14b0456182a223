//! The certificates of the link. Robin is reached by a pod's address, which no certificate can name, and addresses are
//! reused. The operator therefore accepts exactly the certificate of the cluster's Secret, or the one before it, and
//! nothing else about it matters: neither its name nor its dates nor who signed it.

use std::io;
use std::sync::{Arc, PoisonError, RwLock};

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, OtherError, ServerConfig, SignatureScheme,
    SupportedProtocolVersion,
};
use tokio_rustls::{TlsAcceptor, TlsConnector};
use valkey_admin::client::Fingerprint;

/// Both ends are ours, so nothing older is spoken.
static VERSIONS: [&SupportedProtocolVersion; 1] = [&TLS13];

/// Why the files of the Secret cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// The certificate or the key is not PEM.
    #[error("{0} of Robin's Secret is not PEM")]
    Pem(&'static str, #[source] rustls::pki_types::pem::Error),
    /// The certificate and the key do not belong together, or the key has an unknown algorithm.
    #[error("tls.crt and tls.key of Robin's Secret cannot be used together")]
    Pair(#[source] rustls::Error),
}

/// The certificate that Robin presents. Clones are handles: a replaced certificate is presented to every new connection.
#[derive(Clone, Debug)]
pub struct Identity(Arc<Presented>);

#[derive(Debug)]
struct Presented {
    provider: Arc<CryptoProvider>,
    key: RwLock<Arc<CertifiedKey>>,
}

impl Identity {
    /// Presents this certificate, given as PEM with its private key.
    pub fn new(certificate: &str, private_key: &str) -> Result<Self, IdentityError> {
        let provider = Arc::new(ring::default_provider());
        let key = certified(&provider, certificate, private_key)?;
        Ok(Self(Arc::new(Presented {
            provider,
            key: RwLock::new(Arc::new(key)),
        })))
    }

    /// Replaces the certificate. Open connections are not affected.
    pub fn replace(&self, certificate: &str, private_key: &str) -> Result<(), IdentityError> {
        let key = certified(&self.0.provider, certificate, private_key)?;
        *self.0.key.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(key);
        Ok(())
    }

    /// Accepts TLS connections with the certificate.
    pub(super) fn acceptor(&self) -> Result<TlsAcceptor, rustls::Error> {
        let builder = ServerConfig::builder_with_provider(self.0.provider.clone()).with_protocol_versions(&VERSIONS)?;
        let mut config = builder.with_no_client_auth().with_cert_resolver(self.0.clone());
        // The operator resumes no session, and Robin has little memory.
        config.send_tls13_tickets = 0;
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

impl ResolvesServerCert for Presented {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.key.read().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

fn certified(provider: &CryptoProvider, certificate: &str, private_key: &str) -> Result<CertifiedKey, IdentityError> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate.as_bytes()).collect();
    let chain = chain.map_err(|error| IdentityError::Pem("tls.crt", error))?;
    let key = PrivateKeyDer::from_pem_slice(private_key.as_bytes());
    let key = key.map_err(|error| IdentityError::Pem("tls.key", error))?;
    CertifiedKey::from_der(chain, key, provider).map_err(IdentityError::Pair)
}

/// Connects to a server that presents one of these certificates, and to no other.
pub(super) fn connector(accepted: &[Fingerprint]) -> Result<TlsConnector, rustls::Error> {
    let provider = Arc::new(ring::default_provider());
    let verifier = Pinned {
        algorithms: provider.signature_verification_algorithms,
        accepted: accepted.to_vec(),
    };
    let builder = ClientConfig::builder_with_provider(provider).with_protocol_versions(&VERSIONS)?;
    let mut config = builder
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    // A resumed session would show no certificate.
    config.resumption = Resumption::disabled();
    config.enable_sni = false;
    Ok(TlsConnector::from(Arc::new(config)))
}

/// The certificate that was presented instead of an accepted one.
#[derive(Debug, thiserror::Error)]
#[error("the certificate {0} is not the one of Robin's Secret")]
struct OtherCertificate(Fingerprint);

/// What the peer did wrong in a handshake. `None` if the connection merely ended.
pub(super) enum HandshakeFault {
    /// It presented another certificate.
    Certificate(Fingerprint),
    /// It does not speak TLS as Robin does.
    Protocol(String),
}

pub(super) fn handshake_fault(error: &io::Error) -> Option<HandshakeFault> {
    let cause: &rustls::Error = error.get_ref()?.downcast_ref()?;
    if let rustls::Error::InvalidCertificate(CertificateError::Other(OtherError(other))) = cause
        && let Some(OtherCertificate(presented)) = other.downcast_ref()
    {
        return Some(HandshakeFault::Certificate(*presented));
    }
    Some(HandshakeFault::Protocol(cause.to_string()))
}

#[derive(Debug)]
struct Pinned {
    algorithms: WebPkiSupportedAlgorithms,
    accepted: Vec<Fingerprint>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let presented = Fingerprint::of(end_entity);
        if self.accepted.contains(&presented) {
            return Ok(ServerCertVerified::assertion());
        }
        let other = OtherError(Arc::new(OtherCertificate(presented)));
        Err(rustls::Error::InvalidCertificate(CertificateError::Other(other)))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, cert, dss, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, cert, dss, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

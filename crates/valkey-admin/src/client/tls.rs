//! TLS to a pod: the chain is checked against the given CA; the name is not, because members are dialled by
//! addresses that no certificate can know beforehand.

use std::hash::{Hash, Hasher};
use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{VerifierBuilderError, WebPkiServerVerifier};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Certificates that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file of the Secret is not PEM, or holds nothing.
    #[error("{0} holds no usable certificate or key: {1}")]
    Pem(&'static str, String),
    /// The CA cannot be used to verify anything.
    #[error("ca.crt cannot be used: {0}")]
    Authority(#[from] VerifierBuilderError),
    /// Certificate and key do not belong together, or the key is of an unknown kind.
    #[error("tls.crt and tls.key cannot be used together: {0}")]
    Pair(#[from] rustls::Error),
}

/// How to talk TLS to the members of one cluster.
#[derive(Clone)]
pub struct Tls {
    config: Arc<ClientConfig>,
    /// Of what it was made of: equal means the same certificates, however often they were read.
    print: u64,
    leaf: Arc<[u8]>,
}

impl PartialEq for Tls {
    fn eq(&self, other: &Self) -> bool {
        self.print == other.print
    }
}

impl Eq for Tls {}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls")
    }
}

impl Tls {
    /// From the three entries of the cluster's Secret: `ca.crt`, `tls.crt`, `tls.key`. Certificate and key are
    /// presented to servers that ask for one.
    pub fn new(authority: &[u8], certificate: &[u8], pem: &[u8]) -> Result<Self, TlsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        for root in certificates("ca.crt", authority)? {
            roots.add(root)?;
        }
        let chain = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build()?;
        let key = PrivateKeyDer::from_pem_slice(pem).map_err(|error| TlsError::Pem("tls.key", error.to_string()))?;
        let chain_of_ours = certificates("tls.crt", certificate)?;
        let leaf = chain_of_ours.first().map(|first| first.to_vec()).unwrap_or_default();
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(ChainOnly(chain)))
            .with_client_auth_cert(chain_of_ours, key)?;
        let mut print = std::hash::DefaultHasher::new();
        (authority, certificate, pem).hash(&mut print);
        Ok(Self {
            config: Arc::new(config),
            print: print.finish(),
            leaf: leaf.into(),
        })
    }

    pub(super) async fn connect(&self, ip: IpAddr, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        TlsConnector::from(self.config.clone())
            .connect(ServerName::IpAddress(ip.into()), stream)
            .await
    }

    /// The certificate of the Secret, in DER: what every server should serve.
    pub fn certificate(&self) -> &[u8] {
        &self.leaf
    }

    /// The certificate that a server serves right now, in DER: what tells whether a renewed one is in use.
    pub async fn served_by(&self, address: std::net::SocketAddr) -> io::Result<Vec<u8>> {
        let stream = self.connect(address.ip(), TcpStream::connect(address).await?).await?;
        let (_, session) = stream.get_ref();
        let first = session.peer_certificates().and_then(<[_]>::first);
        first
            .map(|der| der.to_vec())
            .ok_or_else(|| io::Error::other("the server presented no certificate"))
    }
}

fn certificates(name: &'static str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match found {
        Ok(list) if !list.is_empty() => Ok(list),
        Ok(_) => Err(TlsError::Pem(name, "it is empty".to_owned())),
        Err(error) => Err(TlsError::Pem(name, error.to_string())),
    }
}

/// The usual verification of chain, time and signatures, with a wrong name forgiven.
#[derive(Debug)]
struct ChainOnly(Arc<WebPkiServerVerifier>);

impl ServerCertVerifier for ChainOnly {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match self
            .0
            .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
        {
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

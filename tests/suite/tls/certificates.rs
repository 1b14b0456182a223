//! CAs, the certificates that they issue, and the certificate that a server presents.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// A CA.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate with its key.
#[derive(Clone)]
pub struct Issued {
    pub certificate: String,
    pub key: String,
    pub der: Vec<u8>,
}

impl Authority {
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        // A certificate with its issuer's name would be treated as self-signed.
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key");
        Self(CertifiedIssuer::self_signed(params, key).expect("a CA"))
    }

    pub fn pem(&self) -> String {
        self.0.pem()
    }

    pub fn issue(&self) -> Issued {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec!["valkey.example".to_owned()]).expect("a name");
        let leaf = params.signed_by(&key, &self.0).expect("a certificate");
        Issued {
            certificate: leaf.pem(),
            key: key.serialize_pem(),
            der: leaf.der().to_vec(),
        }
    }
}

/// The certificate that a pod's server presents.
pub async fn served_by(pod: &Pod) -> Option<Vec<u8>> {
    let ip: IpAddr = pod.status.as_ref()?.pod_ip.as_ref()?.parse().ok()?;
    let provider = Arc::new(default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .ok()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Curious))
        .with_no_client_auth();
    let dial = async {
        let stream = TcpStream::connect((ip, 6379)).await.ok()?;
        let connector = TlsConnector::from(Arc::new(config));
        connector.connect(ServerName::IpAddress(ip.into()), stream).await.ok()
    };
    let stream = timeout(Duration::from_secs(1), dial).await.ok()??;
    let (_, session) = stream.get_ref();
    session.peer_certificates()?.first().map(|leaf| leaf.to_vec())
}

/// A verifier that accepts any certificate, to read it.
#[derive(Debug)]
struct Curious;

impl ServerCertVerifier for Curious {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        default_provider().signature_verification_algorithms.supported_schemes()
    }
}

//! TLS to a pod. Members are dialled by addresses that no certificate can name beforehand, so the name is not checked.
//! What proves a member instead is the very certificate of its cluster: a CA often signs for many clusters and for
//! others too, and any of them would otherwise receive the operator's password. The chain is checked as well.

use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::io;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{VerifierBuilderError, WebPkiServerVerifier};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, OtherError, RootCertStore, SignatureScheme};
use sha2::{Digest, Sha256};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::ParseError;

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
    /// The CA does not verify the certificate: members would reject each other.
    #[error("tls.crt is of no use beside this ca.crt: {0}")]
    Chain(String),
    /// No server could be accepted.
    #[error("no certificate of a server is known")]
    NoCertificate,
}

/// The SHA-256 of a certificate in DER, as `openssl x509 -fingerprint -sha256` computes it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// Of a certificate in DER.
    pub fn of(certificate: &[u8]) -> Self {
        Self(Sha256::digest(certificate).into())
    }

    /// Of the first certificate of a file `tls.crt`.
    pub fn of_pem(pem: &[u8]) -> Result<Self, TlsError> {
        let chain = certificates("tls.crt", pem)?;
        chain.first().map(|leaf| Self::of(leaf)).ok_or(TlsError::NoCertificate)
    }
}

impl std::fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl std::fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

impl FromStr for Fingerprint {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let wrong = || ParseError::new("fingerprint", "64 hexadecimal digits", text);
        let mut bytes = [0; 32];
        if text.len() != 64 || !text.is_ascii() {
            return Err(wrong());
        }
        for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            let digits = std::str::from_utf8(digits).map_err(|_| wrong())?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| wrong())?;
        }
        Ok(Self(bytes))
    }
}

/// Why a server is not accepted although its certificate is signed by the right CA.
#[derive(Debug, thiserror::Error)]
#[error("the certificate {0} is neither the one of the cluster's Secret nor one before it")]
struct UnknownCertificate(Fingerprint);

/// How to talk TLS to the members of one cluster.
#[derive(Clone)]
pub struct Tls {
    config: Arc<ClientConfig>,
    /// Of what it was made of: equal means the same certificates, however often they were read.
    print: u64,
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

/// The desired certificate: the one of the Secret, with the CAs that members verify each other by. It is usable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DesiredCertificate {
    /// The certificate, in DER.
    pub leaf: Vec<u8>,
    /// A print of the CAs.
    pub authorities: u64,
}

impl DesiredCertificate {
    /// From the three entries of the cluster's Secret, `ca.crt`, `tls.crt` and `tls.key`, or why members could not use
    /// them: each shows this certificate to the others, as a server and as a client, and knows them by this CA.
    pub fn read(authority: &[u8], certificate: &[u8], key: &[u8]) -> Result<Self, TlsError> {
        Tls::new(authority, certificate, key, &[])?;
        let chain = certificates("tls.crt", certificate)?;
        let authorities = certificates("ca.crt", authority)?;
        accepted(&chain, &authorities)?;
        Ok(Self {
            leaf: chain.first().map(|first| first.to_vec()).unwrap_or_default(),
            authorities: print(&authorities),
        })
    }

    /// The fingerprint of the certificate.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.leaf)
    }
}

/// A print of the CAs in a file; none where there are none.
pub fn authorities(pem: &[u8]) -> Option<u64> {
    certificates("ca.crt", pem).ok().map(|found| print(&found))
}

impl Tls {
    /// From the three entries of the cluster's Secret: `ca.crt`, `tls.crt`, `tls.key`. Certificate and key are
    /// presented to servers that ask for one. A server is accepted if it presents the same certificate, or one of those
    /// `before` it.
    pub fn new(authority: &[u8], certificate: &[u8], pem: &[u8], before: &[Fingerprint]) -> Result<Self, TlsError> {
        let roots = certificates("ca.crt", authority)?;
        let key = PrivateKeyDer::from_pem_slice(pem).map_err(|error| TlsError::Pem("tls.key", error.to_string()))?;
        let chain = certificates("tls.crt", certificate)?;
        let own = chain.first().map(|leaf| Fingerprint::of(leaf));
        let accepted: BTreeSet<Fingerprint> = own.into_iter().chain(before.iter().copied()).collect();
        let mut print = std::hash::DefaultHasher::new();
        (authority, certificate, pem, &accepted).hash(&mut print);
        let config = client(&roots, accepted)?.with_client_auth_cert(chain, key)?;
        Ok(Self {
            config: Arc::new(config),
            print: print.finish(),
        })
    }

    /// Trusts the CAs of all these files, accepts servers that present one of these certificates, and presents none.
    /// While a CA is changed, some servers serve a certificate of the old one and some of the new one; and one that
    /// knows only the old rejects a client certificate of the new one, but accepts a client without one. Files that hold
    /// no CA are left out.
    pub fn trusting(files: &[&[u8]], accepted: &[Fingerprint]) -> Result<Self, TlsError> {
        let mut roots: Vec<CertificateDer<'static>> = Vec::new();
        let mut wrong = TlsError::Pem("ca.crt", "it is empty".to_owned());
        for file in files {
            match certificates("ca.crt", file) {
                Ok(more) => roots.extend(more),
                Err(error) => wrong = error,
            }
        }
        roots.sort_by(|one, other| one.as_ref().cmp(other.as_ref()));
        roots.dedup();
        if roots.is_empty() {
            return Err(wrong);
        }
        if accepted.is_empty() {
            return Err(TlsError::NoCertificate);
        }
        let accepted: BTreeSet<Fingerprint> = accepted.iter().copied().collect();
        let mut all = std::hash::DefaultHasher::new();
        (print(&roots), &accepted).hash(&mut all);
        let mut config = client(&roots, accepted)?.with_no_client_auth();
        // A resumed session shows the certificate of an earlier one, and what is served now is what is asked for.
        config.resumption = rustls::client::Resumption::disabled();
        Ok(Self {
            config: Arc::new(config),
            print: all.finish(),
        })
    }

    /// Accepts any certificate and presents none. Only for the server of the same pod, at the pod's own address:
    /// no other process can intercept it, and an expired certificate must not be mistaken for a failed server.
    pub fn unverified() -> Result<Self, TlsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let algorithms = provider.signature_verification_algorithms;
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        let config = builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Unverified(algorithms)))
            .with_no_client_auth();
        Ok(Self {
            config: Arc::new(config),
            print: 0,
        })
    }

    pub(super) async fn connect(&self, ip: IpAddr, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        TlsConnector::from(self.config.clone())
            .connect(ServerName::IpAddress(ip.into()), stream)
            .await
            .map_err(own_message)
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

/// The TLS library shows an error of another verifier as Rust code.
fn own_message(error: io::Error) -> io::Error {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref());
    match cause {
        Some(rustls::Error::InvalidCertificate(CertificateError::Other(OtherError(unknown)))) => {
            io::Error::new(error.kind(), unknown.to_string())
        }
        _ => error,
    }
}

type Verified = rustls::ConfigBuilder<ClientConfig, rustls::client::WantsClientCert>;

fn store(roots: &[CertificateDer<'static>]) -> Result<Arc<RootCertStore>, TlsError> {
    let mut store = RootCertStore::empty();
    for root in roots {
        store.add(root.clone())?;
    }
    Ok(Arc::new(store))
}

fn client(roots: &[CertificateDer<'static>], accepted: BTreeSet<Fingerprint>) -> Result<Verified, TlsError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let chain = WebPkiServerVerifier::builder_with_provider(store(roots)?, provider.clone()).build()?;
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(builder
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Members { chain, accepted })))
}

/// Checks that a peer that trusts these CAs accepts this certificate, from a server and from a client.
fn accepted(chain: &[CertificateDer<'static>], roots: &[CertificateDer<'static>]) -> Result<(), TlsError> {
    let Some((leaf, others)) = chain.split_first() else {
        return Err(TlsError::Pem("tls.crt", "it is empty".to_owned()));
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let roots = store(roots)?;
    let now = UnixTime::now();
    let server = WebPkiServerVerifier::builder_with_provider(roots.clone(), provider.clone()).build()?;
    // Its name is not checked.
    let any_name = ServerName::IpAddress(IpAddr::from([0, 0, 0, 0]).into());
    let verifier = Members {
        chain: server,
        accepted: BTreeSet::from([Fingerprint::of(leaf)]),
    };
    let as_server = verifier.verify_server_cert(leaf, others, &any_name, &[], now);
    let client = WebPkiClientVerifier::builder_with_provider(roots, provider).build()?;
    let as_client = client.verify_client_cert(leaf, others, now);
    as_server
        .map(drop)
        .and(as_client.map(drop))
        .map_err(|error| TlsError::Chain(explain(&error)))
}

/// The cause of a rejected certificate, without parts that change every second: the message is written to status.
fn explain(error: &rustls::Error) -> String {
    use CertificateError as E;
    let cause = match error {
        rustls::Error::InvalidCertificate(E::UnknownIssuer) => "it is signed by none of the CAs in ca.crt",
        rustls::Error::InvalidCertificate(E::Expired | E::ExpiredContext { .. }) => "it has expired",
        rustls::Error::InvalidCertificate(E::NotValidYet | E::NotValidYetContext { .. }) => "it is not valid yet",
        rustls::Error::InvalidCertificate(E::InvalidPurpose | E::InvalidPurposeContext { .. }) => {
            "it must be for server auth and for client auth, because members show it to each other"
        }
        other => return other.to_string(),
    };
    cause.to_owned()
}

fn print(certificates: &[CertificateDer<'static>]) -> u64 {
    let mut sorted: Vec<&[u8]> = certificates.iter().map(|one| &**one).collect();
    sorted.sort_unstable();
    sorted.dedup();
    let mut print = std::hash::DefaultHasher::new();
    sorted.hash(&mut print);
    print.finish()
}

fn certificates(name: &'static str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match found {
        Ok(list) if !list.is_empty() => Ok(list),
        Ok(_) => Err(TlsError::Pem(name, "it is empty".to_owned())),
        Err(error) => Err(TlsError::Pem(name, error.to_string())),
    }
}

/// The usual verification of chain, time and signatures; instead of the name the certificate itself.
#[derive(Debug)]
struct Members {
    chain: Arc<WebPkiServerVerifier>,
    accepted: BTreeSet<Fingerprint>,
}

impl ServerCertVerifier for Members {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let chain = self
            .chain
            .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match chain {
            Ok(_)
            | Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => {}
            other => return other,
        }
        let presented = Fingerprint::of(end_entity);
        if self.accepted.contains(&presented) {
            return Ok(ServerCertVerified::assertion());
        }
        let unknown = OtherError(Arc::new(UnknownCertificate(presented)));
        Err(rustls::Error::InvalidCertificate(CertificateError::Other(unknown)))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.chain.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.chain.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chain.supported_verify_schemes()
    }
}

/// Accepts any certificate whose key the server has.
#[derive(Debug)]
struct Unverified(rustls::crypto::WebPkiSupportedAlgorithms);

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, cert, dss, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, cert, dss, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}

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
use rustls::server::WebPkiClientVerifier;
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
    /// Whoever trusts the CA does not accept the certificate: members would refuse each other.
    #[error("tls.crt is of no use beside this ca.crt: {0}")]
    Chain(String),
}

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

/// What every server shall serve: the Secret's certificate, and the CAs by which members know each other. It can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The certificate, in DER.
    pub leaf: Vec<u8>,
    /// A print of the CAs.
    pub authorities: u64,
}

impl Wanted {
    /// From the three entries of the cluster's Secret, `ca.crt`, `tls.crt` and `tls.key`, or why members could not use
    /// them: each shows this certificate to the others, as a server and as a client, and knows them by this CA.
    pub fn read(authority: &[u8], certificate: &[u8], key: &[u8]) -> Result<Self, TlsError> {
        Tls::new(authority, certificate, key)?;
        let chain = certificates("tls.crt", certificate)?;
        let authorities = certificates("ca.crt", authority)?;
        accepted(&chain, &authorities)?;
        Ok(Self {
            leaf: chain.first().map(|first| first.to_vec()).unwrap_or_default(),
            authorities: print(&authorities),
        })
    }
}

/// A print of the CAs in a file; none where there are none.
pub fn authorities(pem: &[u8]) -> Option<u64> {
    certificates("ca.crt", pem).ok().map(|found| print(&found))
}

impl Tls {
    /// From the three entries of the cluster's Secret: `ca.crt`, `tls.crt`, `tls.key`. Certificate and key are
    /// presented to servers that ask for one.
    pub fn new(authority: &[u8], certificate: &[u8], pem: &[u8]) -> Result<Self, TlsError> {
        let roots = certificates("ca.crt", authority)?;
        let key = PrivateKeyDer::from_pem_slice(pem).map_err(|error| TlsError::Pem("tls.key", error.to_string()))?;
        let chain = certificates("tls.crt", certificate)?;
        let config = client(&roots)?.with_client_auth_cert(chain, key)?;
        let mut print = std::hash::DefaultHasher::new();
        (authority, certificate, pem).hash(&mut print);
        Ok(Self {
            config: Arc::new(config),
            print: print.finish(),
        })
    }

    /// Trusts the CAs of all these files, and presents no certificate. While a CA is changed, some servers serve a
    /// certificate of the old one and some of the new one; and one that knows only the old refuses whoever presents a
    /// certificate of the new, but not who presents none. Files that hold no CA are left out.
    pub fn trusting(files: &[&[u8]]) -> Result<Self, TlsError> {
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
        let mut config = client(&roots)?.with_no_client_auth();
        // A resumed session shows the certificate of an earlier one, and what is served now is what is asked for.
        config.resumption = rustls::client::Resumption::disabled();
        Ok(Self {
            config: Arc::new(config),
            print: print(&roots),
        })
    }

    pub(super) async fn connect(&self, ip: IpAddr, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        TlsConnector::from(self.config.clone())
            .connect(ServerName::IpAddress(ip.into()), stream)
            .await
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

type Verified = rustls::ConfigBuilder<ClientConfig, rustls::client::WantsClientCert>;

fn store(roots: &[CertificateDer<'static>]) -> Result<Arc<RootCertStore>, TlsError> {
    let mut store = RootCertStore::empty();
    for root in roots {
        store.add(root.clone())?;
    }
    Ok(Arc::new(store))
}

fn client(roots: &[CertificateDer<'static>]) -> Result<Verified, TlsError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let chain = WebPkiServerVerifier::builder_with_provider(store(roots)?, provider.clone()).build()?;
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(builder
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(ChainOnly(chain))))
}

/// Whether who trusts these CAs accepts this certificate, of a server and of a client.
fn accepted(chain: &[CertificateDer<'static>], roots: &[CertificateDer<'static>]) -> Result<(), TlsError> {
    let Some((leaf, others)) = chain.split_first() else {
        return Err(TlsError::Pem("tls.crt", "it is empty".to_owned()));
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let roots = store(roots)?;
    let now = UnixTime::now();
    let server = WebPkiServerVerifier::builder_with_provider(roots.clone(), provider.clone()).build()?;
    // The name is forgiven.
    let nobody = ServerName::IpAddress(IpAddr::from([0, 0, 0, 0]).into());
    let as_server = ChainOnly(server).verify_server_cert(leaf, others, &nobody, &[], now);
    let client = WebPkiClientVerifier::builder_with_provider(roots, provider).build()?;
    let as_client = client.verify_client_cert(leaf, others, now);
    as_server
        .map(drop)
        .and(as_client.map(drop))
        .map_err(|error| TlsError::Chain(in_words(&error)))
}

/// Without what changes from one second to the next: these words become a status.
fn in_words(error: &rustls::Error) -> String {
    use CertificateError as E;
    let words = match error {
        rustls::Error::InvalidCertificate(E::UnknownIssuer) => "it is signed by none of the CAs in ca.crt",
        rustls::Error::InvalidCertificate(E::Expired | E::ExpiredContext { .. }) => "it has expired",
        rustls::Error::InvalidCertificate(E::NotValidYet | E::NotValidYetContext { .. }) => "it is not valid yet",
        rustls::Error::InvalidCertificate(E::InvalidPurpose | E::InvalidPurposeContext { .. }) => {
            "it must be for server auth and for client auth, because members show it to each other"
        }
        other => return other.to_string(),
    };
    words.to_owned()
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

//! The HTTP request of probes and hooks: a GET of which only the status code counts. Certificates are not checked, as on
//! a real node.

use std::io;
use std::sync::Arc;

use http_body_util::Empty;
use hyper_util::rt::TokioIo;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// A request to one of a pod's ports.
#[derive(Clone, Debug)]
pub(super) struct Get {
    pub host: String,
    pub port: u16,
    pub tls: bool,
    pub path: String,
    pub headers: Vec<(String, String)>,
}

impl Get {
    /// The address for messages.
    pub fn url(&self) -> String {
        let scheme = if self.tls { "https" } else { "http" };
        format!("{scheme}://{}:{}{}", self.host, self.port, self.path)
    }

    /// The status code, or an error worded as the real kubelet's.
    pub async fn status(&self) -> Result<u16, String> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await;
        let stream = stream.map_err(|error| dial_error(&self.host, self.port, &error))?;
        if !self.tls {
            return self.ask(stream).await;
        }
        let name = ServerName::try_from(self.host.clone()).map_err(|error| error.to_string())?;
        let connector = tokio_rustls::TlsConnector::from(Arc::new(trusting().map_err(|error| error.to_string())?));
        let stream = connector
            .connect(name, stream)
            .await
            .map_err(|error| error.to_string())?;
        self.ask(stream).await
    }

    async fn ask(&self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Result<u16, String> {
        let describe = |error: hyper::Error| {
            if error.is_incomplete_message() {
                "EOF".to_owned()
            } else {
                error.to_string()
            }
        };
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(describe)?;
        let has = |name: &str| self.headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
        let mut request = http::Request::get(&self.path).header("Connection", "close");
        for (name, otherwise) in [
            ("Host", format!("{}:{}", self.host, self.port)),
            ("User-Agent", "kube-probe/1.34".to_owned()),
            ("Accept", "*/*".to_owned()),
        ] {
            if !has(name) {
                request = request.header(name, otherwise);
            }
        }
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let request = request
            .body(Empty::<bytes::Bytes>::new())
            .map_err(|error| error.to_string())?;
        let answer = async { sender.send_request(request).await.map_err(describe) };
        tokio::pin!(answer, connection);
        tokio::select! {
            answer = &mut answer => return answer.map(|answer| answer.status().as_u16()),
            _ = &mut connection => {}
        }
        answer.await.map(|answer| answer.status().as_u16())
    }
}

/// `dial tcp 127.1.2.3:80: connect: connection refused`.
pub(super) fn dial_error(host: &str, port: u16, error: &io::Error) -> String {
    let reason = match error.kind() {
        io::ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
        io::ErrorKind::NetworkUnreachable => "connect: network is unreachable".to_owned(),
        io::ErrorKind::HostUnreachable => "connect: no route to host".to_owned(),
        _ => format!("connect: {error}"),
    };
    format!("dial tcp {host}:{port}: {reason}")
}

fn trusting() -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let schemes = provider.signature_verification_algorithms.supported_schemes();
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let trust = Arc::new(TrustAll(schemes));
    Ok(config
        .dangerous()
        .with_custom_certificate_verifier(trust)
        .with_no_client_auth())
}

/// A probe checks whether a server responds, not its identity.
#[derive(Debug)]
struct TrustAll(Vec<SignatureScheme>);

impl ServerCertVerifier for TrustAll {
    fn verify_server_cert(
        &self,
        _end: &CertificateDer<'_>,
        _chain: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.clone()
    }
}

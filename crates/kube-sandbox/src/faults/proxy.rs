//! Faults between processes: a proxy with its own address in front of an API server.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use http::{HeaderMap, HeaderName, Request, Response, StatusCode, Version, header};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use kube::client::Body;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tower::{BoxError, Layer, Service, service_fn as tower_fn};

use super::handle::Faults;
use super::layer::{FaultService, ResponseBody};
use crate::server::tls::{self, Authority, TlsError};

/// Why a proxy did not start.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// The upstream's kubeconfig leads to no client.
    #[error("making a client of the API server behind the proxy: check its kubeconfig")]
    Upstream(#[source] Box<kube::Error>),
    /// No port.
    #[error("listening on loopback for the fault proxy")]
    Listen(#[source] std::io::Error),
    /// Certificates could not be made.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// The largest body a client may send, well above what an API server takes.
const LARGEST: usize = 16 * 1024 * 1024;

/// A proxy in front of an API server. It sends requests with the kubeconfig of that server, so every client of the proxy
/// has the permissions of that user; it listens on loopback only. Dropping it ends it.
pub struct FaultProxy {
    address: SocketAddr,
    kubeconfig: String,
    stop: CancellationToken,
}

impl FaultProxy {
    /// Over HTTPS, with a separate certificate authority.
    pub async fn https(upstream: kube::Config, faults: &Faults) -> Result<Self, ProxyError> {
        let authority = Authority::new()?;
        let identity = authority.client("proxied", &[])?;
        let acceptor = TlsAcceptor::from(Arc::new(authority.server()?));
        let write = |address| tls::kubeconfig(address, &authority, &identity, "proxied");
        Self::start(upstream, faults, Some(acceptor), write).await
    }

    /// Over plain HTTP.
    pub async fn http(upstream: kube::Config, faults: &Faults) -> Result<Self, ProxyError> {
        Self::start(upstream, faults, None, |address| {
            let config = json!({
                "apiVersion": "v1", "kind": "Config", "current-context": "proxied",
                "clusters": [{"name": "proxied", "cluster": {"server": format!("http://{address}")}}],
                "users": [{"name": "proxied", "user": {}}],
                "contexts": [{"name": "proxied", "context": {"cluster": "proxied", "user": "proxied"}}],
            });
            config.to_string()
        })
        .await
    }

    async fn start(
        upstream: kube::Config,
        faults: &Faults,
        acceptor: Option<TlsAcceptor>,
        kubeconfig: impl FnOnce(SocketAddr) -> String,
    ) -> Result<Self, ProxyError> {
        let client = kube::Client::try_from(upstream).map_err(|error| ProxyError::Upstream(Box::new(error)))?;
        let service = faults.layer().layer(tower_fn(move |request: Request<Body>| {
            let client = client.clone();
            async move { client.send(request).await }
        }));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .map_err(ProxyError::Listen)?;
        let address = listener.local_addr().map_err(ProxyError::Listen)?;
        let stop = CancellationToken::new();
        tokio::spawn(accept(listener, acceptor, service, stop.clone()));
        Ok(Self {
            address,
            kubeconfig: kubeconfig(address),
            stop,
        })
    }

    /// For clients of the proxy, as YAML.
    pub fn kubeconfig(&self) -> &str {
        &self.kubeconfig
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn accept(listener: TcpListener, acceptor: Option<TlsAcceptor>, service: FaultService, stop: CancellationToken) {
    loop {
        let stream = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(_) => continue,
            },
        };
        let (acceptor, service, stop) = (acceptor.clone(), service.clone(), stop.clone());
        tokio::spawn(async move {
            let connection = async {
                match acceptor {
                    Some(acceptor) => {
                        if let Ok(stream) = acceptor.accept(stream).await {
                            serve(stream, service).await;
                        }
                    }
                    None => serve(stream, service).await,
                }
            };
            tokio::select! {
                () = stop.cancelled() => {}
                () = connection => {}
            }
        });
    }
}

/// One connection. An error of the service breaks it, as a lost answer does.
async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, service: FaultService) {
    let service = service_fn(move |request| pass(request, service.clone()));
    let builder = Builder::new(TokioExecutor::new());
    let _ = builder
        .serve_connection_with_upgrades(TokioIo::new(stream), service)
        .await;
}

async fn pass(mut request: Request<Incoming>, mut service: FaultService) -> Result<Response<ResponseBody>, BoxError> {
    let expected = hyper::upgrade::on(&mut request);
    let (mut head, body) = request.into_parts();
    let upgrade = head.headers.contains_key(header::UPGRADE);
    head.version = Version::HTTP_11;
    head.headers.remove(header::HOST);
    if !upgrade {
        strip(&mut head.headers);
    }
    // The address is the upstream's business; a client of HTTP/2 names the proxy's.
    if let Some(path) = head.uri.path_and_query() {
        head.uri = path.as_str().parse()?;
    }
    let body = Limited::new(body, LARGEST).collect().await?.to_bytes();
    let mut answer = service.call(Request::from_parts(head, Body::from(body))).await?;
    if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
        let given = hyper::upgrade::on(&mut answer);
        tokio::spawn(async move {
            let (Ok(near), Ok(far)) = (expected.await, given.await) else {
                return;
            };
            let _ = tokio::io::copy_bidirectional(&mut TokioIo::new(near), &mut TokioIo::new(far)).await;
        });
    } else {
        strip(answer.headers_mut());
    }
    *answer.version_mut() = Version::default();
    Ok(answer)
}

/// Headers that belong to one connection and not to the message.
fn strip(headers: &mut HeaderMap) {
    let hop_by_hop = [
        header::CONNECTION,
        header::TRANSFER_ENCODING,
        header::TE,
        header::TRAILER,
        header::UPGRADE,
        HeaderName::from_static("keep-alive"),
    ];
    for name in hop_by_hop {
        headers.remove(name);
    }
}

//! The listener: TLS, HTTP/1.1 and HTTP/2 on loopback, with limits.
//!
//! A connection without a request under way is closed after [`Limits::idle`]. A watch, a followed log and an exec are
//! requests under way for as long as they last, so no limit ends them.

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::Request;
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::api::Api;
use super::stall::StallGuard;
use super::tls;

/// What clients may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at the same time. More wait until one is closed.
    pub connections: usize,
    /// Time for the TLS handshake.
    pub handshake: Duration,
    /// Time without a request under way. Longer than the 90 s for which clients keep idle connections, so that a client
    /// does not send on a connection that is being closed.
    pub idle: Duration,
    /// Time in which a client accepts nothing of what is written to it.
    pub stalled: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 1000,
            handshake: Duration::from_secs(10),
            idle: Duration::from_secs(120),
            stalled: Duration::from_secs(60),
        }
    }
}

/// Serves until the token is cancelled; open connections end with it.
pub async fn serve(api: Api, listener: TcpListener, config: ServerConfig, limits: Limits, stop: CancellationToken) {
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let places = Arc::new(Semaphore::new(limits.connections));
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = accept(&listener, &places) => accepted,
        };
        let (stream, place) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of file descriptors, most likely: accepting again at once would spin.
                tracing::warn!(%error, "accepting a connection failed");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let (api, acceptor, stop) = (api.clone(), acceptor.clone(), stop.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = connection(api, acceptor, stream, place, limits) => {}
            }
        });
    }
}

/// The next connection, once one of the allowed places is free.
async fn accept(listener: &TcpListener, places: &Arc<Semaphore>) -> std::io::Result<(TcpStream, OwnedSemaphorePermit)> {
    let place = places.clone().acquire_owned().await.map_err(std::io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    Ok((stream, place))
}

async fn connection(api: Api, acceptor: TlsAcceptor, stream: TcpStream, place: OwnedSemaphorePermit, limits: Limits) {
    let _ = stream.set_nodelay(true);
    // The stream holds its place, also when an exec takes the stream out of the connection.
    let stream = StallGuard::new(stream, limits.stalled, Some(place));
    let Ok(Ok(stream)) = tokio::time::timeout(limits.handshake, acceptor.accept(stream)).await else {
        return;
    };
    let session = stream.get_ref().1;
    let user = session
        .peer_certificates()
        .and_then(|chain| chain.first())
        .and_then(tls::user_of);
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http2().max_concurrent_streams(1000);
    // By the negotiated protocol instead of the first bytes, for which hyper would wait without a limit.
    let builder = match session.alpn_protocol() {
        Some(b"h2") => builder.http2_only(),
        _ => builder.http1_only(),
    };
    let requests = Requests::default();
    let under_way = requests.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let (api, user, under_way) = (api.clone(), user.clone(), under_way.begin());
        async move {
            let mut request = request.map(Body::new);
            if let Some(user) = user {
                request.extensions_mut().insert(user);
            }
            let response = api.handle(request).await;
            Ok::<_, Infallible>(response.map(|body| Counted {
                body,
                _request: under_way,
            }))
        }
    });
    let mut served = pin!(builder.serve_connection_with_upgrades(TokioIo::new(stream), service));
    let ended = tokio::select! {
        ended = served.as_mut() => ended,
        () = requests.idle_for(limits.idle) => {
            served.as_mut().graceful_shutdown();
            // A client that has sent half a request gets no more time for the other half.
            tokio::time::timeout(limits.handshake, served).await.unwrap_or(Ok(()))
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended");
    }
}

/// The requests of one connection that are under way.
#[derive(Clone, Default)]
struct Requests {
    count: watch::Sender<usize>,
}

/// One request under way, until this is dropped.
struct UnderWay {
    count: watch::Sender<usize>,
}

impl Requests {
    fn begin(&self) -> UnderWay {
        self.count.send_modify(|count| *count += 1);
        UnderWay {
            count: self.count.clone(),
        }
    }

    /// Returns when no request was under way for this time.
    async fn idle_for(&self, time: Duration) {
        let mut count = self.count.subscribe();
        loop {
            // Fails only without a sender, and `self` is one.
            let _ = count.wait_for(|count| *count == 0).await;
            if tokio::time::timeout(time, count.changed()).await.is_err() {
                return;
            }
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.count.send_modify(|count| *count -= 1);
    }
}

/// A response's body. Its request is under way until the body ends.
struct Counted {
    body: Body,
    _request: UnderWay,
}

impl http_body::Body for Counted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
    use rustls::{ClientConfig, RootCertStore};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio_rustls::TlsConnector;
    use tokio_rustls::client::TlsStream;

    use super::*;
    use crate::server::tls::Authority;

    const DEADLINE: Duration = Duration::from_secs(20);
    const WATCH: &[u8] = b"GET /api/v1/configmaps?watch=true HTTP/1.1\r\nhost: a\r\n\r\n";

    struct Server {
        api: Api,
        address: SocketAddr,
        connector: TlsConnector,
        _stop: tokio_util::sync::DropGuard,
    }

    impl Server {
        async fn start(limits: Limits) -> Self {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let (address, authority) = (listener.local_addr().unwrap(), Authority::new().unwrap());
            let api = Api::new().unwrap();
            api.bootstrap(address, &authority.pem());
            let stop = CancellationToken::new();
            let config = authority.server().unwrap();
            tokio::spawn(serve(api.clone(), listener, config, limits, stop.clone()));
            let mut roots = RootCertStore::empty();
            let root = CertificateDer::from_pem_slice(authority.pem().as_bytes()).unwrap();
            roots.add(root).unwrap();
            let admin = authority.client("admin", &["system:masters"]).unwrap();
            let chain = vec![CertificateDer::from_pem_slice(admin.certificate.as_bytes()).unwrap()];
            let key = PrivateKeyDer::from_pem_slice(admin.key.as_bytes()).unwrap();
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let client = ClientConfig::builder_with_provider(provider)
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_root_certificates(roots)
                .with_client_auth_cert(chain, key)
                .unwrap();
            Self {
                api,
                address,
                connector: TlsConnector::from(Arc::new(client)),
                _stop: stop.drop_guard(),
            }
        }

        async fn connect(&self) -> TlsStream<TcpStream> {
            let stream = TcpStream::connect(self.address).await.unwrap();
            let name = ServerName::try_from("localhost").unwrap();
            self.connector.connect(name, stream).await.unwrap()
        }

        fn write(&self, name: &str) {
            let key = crate::store::ObjectKey::new("default", name);
            let value = serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": name, "namespace": "default"}});
            self.api.store().create("configmaps", key, value).unwrap();
        }
    }

    async fn read_until(stream: &mut TlsStream<TcpStream>, text: &str) {
        let mut taken = Vec::new();
        let read = async {
            while !String::from_utf8_lossy(&taken).contains(text) {
                assert_ne!(stream.read_buf(&mut taken).await.unwrap(), 0, "closed before {text}");
            }
        };
        tokio::time::timeout(DEADLINE, read).await.unwrap();
    }

    /// Waits until the server closes the connection.
    async fn closed(mut stream: TlsStream<TcpStream>) {
        let mut rest = Vec::new();
        // Closed with or without a farewell of TLS.
        let _ = tokio::time::timeout(DEADLINE, stream.read_to_end(&mut rest))
            .await
            .expect("the connection stays open");
    }

    #[tokio::test]
    async fn idle_connections_are_closed_and_watches_are_not() {
        let limits = Limits {
            idle: Duration::from_millis(100),
            handshake: Duration::from_millis(500),
            ..Limits::default()
        };
        let server = Server::start(limits).await;
        let mut watch = server.connect().await;
        watch.write_all(WATCH).await.unwrap();
        read_until(&mut watch, "kube-root-ca.crt").await;
        let silent = server.connect().await;
        let mut half = server.connect().await;
        half.write_all(b"GET /api HTTP/1.1\r\nhost:").await.unwrap();
        let mut used = server.connect().await;
        used.write_all(b"GET /api HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
        read_until(&mut used, "APIVersions").await;
        closed(silent).await;
        closed(half).await;
        closed(used).await;
        // The watch was idle for longer than they were.
        server.write("after");
        read_until(&mut watch, "after").await;
    }

    #[tokio::test]
    async fn connections_over_the_limit_wait_until_one_is_closed() {
        let limits = Limits {
            connections: 1,
            ..Limits::default()
        };
        let server = Server::start(limits).await;
        let mut first = server.connect().await;
        first.write_all(WATCH).await.unwrap();
        read_until(&mut first, "kube-root-ca.crt").await;
        let mut second = pin!(server.connect());
        let early = tokio::time::timeout(Duration::from_millis(200), second.as_mut()).await;
        assert!(early.is_err(), "the second connection was served beside the first");
        drop(first);
        let mut second = tokio::time::timeout(DEADLINE, second).await.unwrap();
        second.write_all(WATCH).await.unwrap();
        read_until(&mut second, "kube-root-ca.crt").await;
    }
}

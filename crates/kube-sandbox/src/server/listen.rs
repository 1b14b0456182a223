//! The listener: TLS, HTTP/1.1 and HTTP/2 on loopback.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::api::Api;
use super::stall::Impatient;
use super::tls;

/// How long a client may take for its TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// How long a client may take nothing of what is written to it.
const PATIENCE: Duration = Duration::from_secs(60);

/// Serves until the token is cancelled; open connections end with it.
pub async fn serve(api: Api, listener: TcpListener, config: ServerConfig, stop: CancellationToken) {
    let acceptor = TlsAcceptor::from(Arc::new(config));
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
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
                () = connection(api, acceptor, stream) => {}
            }
        });
    }
}

async fn connection(api: Api, acceptor: TlsAcceptor, stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let stream = Impatient::new(stream, PATIENCE);
    let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await else {
        return;
    };
    let user = stream
        .get_ref()
        .1
        .peer_certificates()
        .and_then(|chain| chain.first())
        .and_then(tls::user_of);
    let service = service_fn(move |request: Request<Incoming>| {
        let (api, user) = (api.clone(), user.clone());
        async move {
            let mut request = request.map(Body::new);
            if let Some(user) = user {
                request.extensions_mut().insert(user);
            }
            Ok::<_, std::convert::Infallible>(api.handle(request).await)
        }
    });
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http2().max_concurrent_streams(1000);
    if let Err(error) = builder
        .serve_connection_with_upgrades(TokioIo::new(stream), service)
        .await
    {
        tracing::debug!(%error, "a connection ended");
    }
}

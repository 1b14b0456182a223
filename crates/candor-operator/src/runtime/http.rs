//! Plain HTTP for probes and scrapers. The number of connections is limited, and a client that is slow or sends nothing
//! occupies a connection for a few seconds only.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

/// The limits of one listener.
#[derive(Clone, Copy, Debug)]
pub struct HttpLimits {
    /// Concurrent connections; further ones wait to be accepted.
    pub connections: usize,
    /// How long a client may take to send the header of its request.
    pub header: Duration,
    /// How long a connection may last, from its first byte to the end of the response.
    pub connection: Duration,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            connections: 128,
            header: Duration::from_secs(5),
            // An exporter queries its server three times, each for two seconds at most.
            connection: Duration::from_secs(15),
        }
    }
}

/// Largest request header, in bytes.
const HEADER_LIMIT: usize = 16 * 1024;
/// The pause after a connection could not be accepted: the process may be out of file descriptors.
const PAUSE: Duration = Duration::from_millis(500);

/// Serves until dropped. Every connection serves one request: probes and scrapers are rare, and an idle connection
/// would occupy one of the limited connections.
pub async fn serve(listener: TcpListener, router: Router, limits: HttpLimits) {
    let places = Arc::new(Semaphore::new(limits.connections));
    loop {
        // The semaphore is never closed.
        let place = places.clone().acquire_owned().await;
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                if !is_of_one_connection(&error) {
                    tracing::warn!(%error, "failed to accept a connection; retrying");
                    sleep(PAUSE).await;
                }
                continue;
            }
        };
        let service = TowerToHyperService::new(router.clone());
        tokio::spawn(async move {
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(limits.header)
                .max_buf_size(HEADER_LIMIT)
                .keep_alive(false)
                .serve_connection(TokioIo::new(stream), service);
            // A connection that breaks or times out is the client's problem.
            let _ = timeout(limits.connection, connection).await;
            drop(place);
        });
    }
}

/// Whether the error is about one connection: the client closed it before it was accepted.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset
    )
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::time::Instant;

    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;
    use tokio::task::JoinHandle;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(20);
    const LIMITS: HttpLimits = HttpLimits {
        connections: 2,
        header: Duration::from_millis(300),
        connection: Duration::from_millis(600),
    };

    async fn start(limits: HttpLimits) -> (SocketAddr, JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new()
            .route("/", get(|| async { "ok\n" }))
            .route("/never", get(|| async { std::future::pending::<&str>().await }));
        (address, tokio::spawn(serve(listener, router, limits)))
    }

    /// Sends a text and returns everything that the server sends until it closes the connection.
    async fn send(address: SocketAddr, text: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let read = timeout(PATIENCE, stream.read_to_end(&mut answer)).await;
        // A reset also ends the connection.
        let _ = read.expect("the server keeps the connection");
        String::from_utf8(answer).unwrap()
    }

    #[tokio::test]
    async fn a_client_that_never_ends_its_header_is_disconnected() {
        let (address, server) = start(LIMITS).await;
        let begun = Instant::now();
        let answer = send(address, "GET / HTTP/1.1\r\nHost: x\r\n").await;
        assert!(!answer.contains("ok"), "{answer}");
        assert!(begun.elapsed() >= LIMITS.header, "{:?}", begun.elapsed());
        server.abort();
    }

    #[tokio::test]
    async fn a_connection_ends_even_if_its_answer_never_comes() {
        let (address, server) = start(LIMITS).await;
        let answer = send(address, "GET /never HTTP/1.1\r\nHost: x\r\n\r\n").await;
        assert_eq!(answer, "");
        server.abort();
    }

    #[tokio::test]
    async fn idle_connections_that_take_every_place_delay_a_request_and_do_not_prevent_it() {
        let (address, server) = start(LIMITS).await;
        let mut idle = Vec::new();
        for _ in 0..LIMITS.connections {
            idle.push(TcpStream::connect(address).await.unwrap());
        }
        let begun = Instant::now();
        let answer = send(address, "GET / HTTP/1.1\r\nHost: x\r\n\r\n").await;
        assert!(
            answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("ok\n"),
            "{answer}"
        );
        assert!(begun.elapsed() >= LIMITS.header / 2, "{:?}", begun.elapsed());
        server.abort();
    }

    #[tokio::test]
    async fn a_header_without_end_is_not_read_without_end() {
        let limits = HttpLimits {
            header: PATIENCE,
            connection: PATIENCE,
            ..LIMITS
        };
        let (address, server) = start(limits).await;
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
        let line = format!("X: {}\r\n", "x".repeat(1000));
        let begun = Instant::now();
        // The server reads 16 kB; the kernel buffers more on top of that.
        for _ in 0..20_000 {
            if stream.write_all(line.as_bytes()).await.is_err() {
                server.abort();
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "the server keeps reading");
        }
        panic!("the server read 20 MB of header");
    }
}

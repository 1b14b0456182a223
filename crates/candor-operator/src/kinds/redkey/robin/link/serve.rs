//! Robin's side of the link: the agent publishes frames into a [`Feed`], and every connected operator receives them.

use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, BodyDataStream, Bytes};
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::middleware::map_response;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use futures::{StreamExt, stream};
use tokio::net::TcpListener;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until, timeout};

use super::super::Tokens;
use super::super::server::{CLIENT_DEADLINE, accept, serve_connection, unauthorized, with_protocol};
use super::frame::{Frame, FrameError};
use super::tls::Identity;
use super::{BEAT, HEARTBEAT, OPERATOR_SILENCE, PATH};

/// Maximum number of concurrent TLS connections. An operator needs one.
const CONNECTIONS: usize = 32;
/// Changes within this time become one frame.
const TOGETHER: Duration = Duration::from_millis(20);
/// A large frame is followed by a pause that keeps a connection below this many bytes per second.
const BYTES_PER_SECOND: f64 = 8e6;
/// An agent that reported no progress for this long gets no heartbeats: its observation is out of date.
const STALLED: Duration = Duration::from_secs(5);

/// The newest frame. Clones are handles.
#[derive(Clone, Debug)]
pub struct Feed(Arc<Published>);

#[derive(Debug)]
struct Published {
    line: watch::Sender<Option<Bytes>>,
    /// When the observation of the newest frame began.
    observed: watch::Sender<Option<Instant>>,
    progress: Mutex<Instant>,
    refresh: Notify,
}

impl Default for Feed {
    fn default() -> Self {
        Self(Arc::new(Published {
            line: watch::Sender::new(None),
            observed: watch::Sender::new(None),
            progress: Mutex::new(Instant::now()),
            refresh: Notify::new(),
        }))
    }
}

impl Feed {
    /// Publishes a frame of an observation that began at this time. A frame that equals the previous one is not sent
    /// again.
    pub fn publish(&self, frame: &Frame, observed: Instant) -> Result<(), FrameError> {
        let line = frame.encode()?;
        self.progress();
        self.0.line.send_if_modified(|held| {
            let new = held.as_ref() != Some(&line);
            if new {
                *held = Some(line);
            }
            new
        });
        self.0.observed.send_replace(Some(observed));
        Ok(())
    }

    /// Reports that the agent is running. Without it, heartbeats end after a few seconds.
    pub fn progress(&self) {
        *self.0.progress.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// The newest frame was observed again, and is the same.
    #[cfg(test)]
    pub fn observed_again(&self) {
        let known = self.0.line.borrow().is_some();
        self.0.observed.send_replace(known.then(Instant::now));
    }

    /// Waits until an operator asks for a new observation.
    pub async fn refresh_requested(&self) {
        self.0.refresh.notified().await;
    }

    fn is_stalled(&self) -> bool {
        let progress = *self.0.progress.lock().unwrap_or_else(PoisonError::into_inner);
        progress.elapsed() > STALLED
    }
}

/// The TLS listener.
#[derive(Debug)]
pub struct LinkListener {
    /// The socket.
    pub listener: TcpListener,
    /// The certificate.
    pub identity: Identity,
}

impl LinkListener {
    /// Serves the whole API and the observations until it is dropped. All connections end with it.
    pub async fn serve(self, router: Router) -> io::Result<()> {
        let acceptor = self.identity.acceptor().map_err(io::Error::other)?;
        accept(self.listener, CONNECTIONS, move |stream| {
            let (acceptor, router) = (acceptor.clone(), router.clone());
            async move {
                match timeout(CLIENT_DEADLINE, acceptor.accept(stream)).await {
                    Ok(Ok(stream)) => serve_connection(stream, router).await,
                    Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
                    Err(_) => tracing::debug!("a TLS handshake took too long"),
                }
            }
        })
        .await
    }
}

/// The current tokens.
type CurrentTokens = Arc<dyn Fn() -> Tokens + Send + Sync>;

/// The route of the observations. Unlike other reads it needs a token: one of those that `tokens` returns at that time.
pub fn route(feed: Feed, tokens: impl Fn() -> Tokens + Send + Sync + 'static) -> Router {
    let tokens: CurrentTokens = Arc::new(tokens);
    Router::new()
        .route(PATH, post(observations))
        .with_state((feed, tokens))
        .layer(map_response(with_protocol))
}

async fn observations(State((feed, tokens)): State<(Feed, CurrentTokens)>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    if !tokens().admit(&parts.headers) {
        return unauthorized();
    }
    let lines = feed.0.line.subscribe();
    let observed = feed.0.observed.subscribe();
    feed.0.refresh.notify_one();
    let now = Instant::now();
    let connection = Connection {
        tokens,
        feed,
        headers: parts.headers,
        operator: body.into_data_stream(),
        lines,
        observed,
        begun: now,
        fresh: false,
        heard: now,
        sent: now,
        not_before: now,
        pending: false,
    };
    let lines = stream::unfold(connection, |mut connection| async move {
        let line = connection.next().await?;
        Some((Ok::<_, Infallible>(line), connection))
    });
    Body::from_stream(lines).into_response()
}

/// One operator that follows the feed.
struct Connection {
    tokens: CurrentTokens,
    feed: Feed,
    headers: HeaderMap,
    operator: BodyDataStream,
    lines: watch::Receiver<Option<Bytes>>,
    observed: watch::Receiver<Option<Instant>>,
    /// When the connection began.
    begun: Instant,
    /// An observation has begun since. An earlier one may be older than what the operator has observed itself, or has
    /// learned from the status that another operator wrote.
    fresh: bool,
    /// When the operator last sent something.
    heard: Instant,
    /// When something was last sent.
    sent: Instant,
    /// The next frame is not sent earlier.
    not_before: Instant,
    /// A frame waits to be sent.
    pending: bool,
}

impl Connection {
    /// The next line to send. `None` closes the connection.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            tokio::select! {
                biased;
                said = self.operator.next() => self.hear(&said?.ok()?),
                observed = self.observed.changed(), if !self.fresh => {
                    observed.ok()?;
                    self.fresh = self.observed.borrow_and_update().is_some_and(|at| at >= self.begun);
                    self.pending = self.fresh;
                }
                changed = self.lines.changed(), if self.fresh && !self.pending => {
                    changed.ok()?;
                    self.pending = true;
                }
                () = sleep_until(self.not_before), if self.pending => {
                    if let Some(line) = self.frame() {
                        return Some(line);
                    }
                }
                () = sleep_until(self.sent + HEARTBEAT), if !self.pending => {
                    // The token may have been replaced twice since the connection began.
                    if !(self.tokens)().admit(&self.headers) || self.heard.elapsed() > OPERATOR_SILENCE {
                        return None;
                    }
                    self.sent = Instant::now();
                    if !self.feed.is_stalled() {
                        return Some(Bytes::from_static(BEAT));
                    }
                }
            }
        }
    }

    fn hear(&mut self, said: &[u8]) {
        self.heard = Instant::now();
        if said.iter().any(|byte| !BEAT.contains(byte)) {
            self.feed.0.refresh.notify_one();
        }
    }

    fn frame(&mut self) -> Option<Bytes> {
        self.pending = false;
        let line = self.lines.borrow_and_update().clone()?;
        let size = u32::try_from(line.len()).map_or(f64::MAX, f64::from);
        let pause = Duration::try_from_secs_f64(size / BYTES_PER_SECOND).unwrap_or_default();
        self.sent = Instant::now();
        self.not_before = self.sent + pause.max(TOGETHER);
        Some(line)
    }
}

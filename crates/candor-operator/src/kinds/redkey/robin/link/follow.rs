//! The operator's side: one connection per cluster, which reconnects by itself.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{Request, Response, header};
use futures::{StreamExt, stream};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_rustls::client::TlsStream;
use tokio_util::task::AbortOnDropHandle;
use valkey_admin::client::Fingerprint;

use super::super::api::{PROTOCOL, PROTOCOL_HEADER};
use super::super::backoff::Backoff;
use super::endpoint::RobinEndpoint;
use super::frame::{FRAME_LIMIT, Frame, FrameError};
use super::tls::{HandshakeFault, connector, handshake_fault};
use super::view::{Mismatch, RobinView, State};
use super::{BEAT, OPERATOR_BEAT, PATH, REFRESH, SILENCE};
use crate::monitor::ClusterKey;

/// Deadline of each step until the first frame: connect, handshake, response.
const STEP: Duration = Duration::from_secs(1);
/// A connection on which nothing arrives for this long is replaced. Until then a frozen Robin that resumes is noticed
/// at once.
const PATIENCE: Duration = Duration::from_secs(5);

/// Follows the Robins of all clusters. Clones are handles.
#[derive(Clone)]
pub struct RobinLinks {
    trigger: UnboundedSender<ClusterKey>,
    links: Arc<Mutex<HashMap<ClusterKey, Link>>>,
}

/// A followed Robin. Dropping it closes the connection.
struct Link {
    endpoint: watch::Sender<RobinEndpoint>,
    state: Arc<Mutex<State>>,
    refresh: Arc<Notify>,
    task: AbortOnDropHandle<()>,
}

impl RobinLinks {
    /// Follows nothing. It sends a cluster's key to `trigger` when something about its Robin or its servers changes.
    pub fn new(trigger: UnboundedSender<ClusterKey>) -> Self {
        Self {
            trigger,
            links: Arc::default(),
        }
    }

    /// Sets where the Robin of a cluster is. Another address starts anew. Other credentials are used from the next
    /// connection on, which is at once if the present certificate is no longer accepted.
    pub fn follow(&self, key: &ClusterKey, robin: Option<RobinEndpoint>) {
        let mut links = self.links();
        let Some(endpoint) = robin else {
            links.remove(key);
            return;
        };
        if let Some(link) = links.get(key)
            && link.endpoint.borrow().address == endpoint.address
            && !link.task.is_finished()
        {
            link.endpoint.send_if_modified(|held| {
                let changed = *held != endpoint;
                *held = endpoint;
                changed
            });
            return;
        }
        let (sender, receiver) = watch::channel(endpoint);
        let state = Arc::new(Mutex::new(State::new(Instant::now())));
        let refresh = Arc::new(Notify::new());
        let task = Follower {
            key: key.clone(),
            trigger: self.trigger.clone(),
            endpoint: receiver,
            state: state.clone(),
            refresh: refresh.clone(),
        };
        let link = Link {
            endpoint: sender,
            state,
            refresh,
            task: AbortOnDropHandle::new(tokio::spawn(task.run())),
        };
        links.insert(key.clone(), link);
    }

    /// What is known about the Robin of a cluster.
    pub fn view(&self, key: &ClusterKey) -> RobinView {
        let links = self.links();
        links
            .get(key)
            .map(|link| locked(&link.state).view())
            .unwrap_or_default()
    }

    /// Asks Robin to read its `RedkeyCluster` and to query its servers now, instead of when it next would.
    pub fn refresh(&self, key: &ClusterKey) {
        if let Some(link) = self.links().get(key) {
            link.refresh.notify_one();
        }
    }

    /// Stops following the Robin of a cluster.
    pub fn forget(&self, key: &ClusterKey) {
        self.links().remove(key);
    }

    fn links(&self) -> MutexGuard<'_, HashMap<ClusterKey, Link>> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The task of one link.
struct Follower {
    key: ClusterKey,
    trigger: UnboundedSender<ClusterKey>,
    endpoint: watch::Receiver<RobinEndpoint>,
    state: Arc<Mutex<State>>,
    refresh: Arc<Notify>,
}

/// How a connection ended.
enum End {
    /// The address refused it.
    Refused,
    /// It was closed, or nothing arrived.
    Lost,
    /// The answer was not that of the expected Robin.
    Rejected(Mismatch),
}

type Robin = TlsStream<TcpStream>;

impl Follower {
    async fn run(self) {
        tokio::select! {
            () = self.connect_forever() => {}
            () = self.notice_silence() => {}
        }
    }

    async fn notice_silence(&self) {
        loop {
            // Nothing happens earlier than a silence that begins now.
            let at = locked(&self.state).silent_at();
            sleep_until(at.unwrap_or_else(|| Instant::now() + SILENCE)).await;
            self.note(|state| state.pass(Instant::now()));
        }
    }

    async fn connect_forever(&self) {
        let mut backoff = Backoff::default();
        let mut endpoint = self.endpoint.clone();
        loop {
            let begun = Instant::now();
            let current = endpoint.borrow_and_update().clone();
            match self.connect(&current).await {
                End::Refused => self.note(|state| state.refused(Instant::now())),
                End::Rejected(reason) => self.note(|state| state.rejected(reason, Instant::now())),
                End::Lost => {}
            }
            let pause = sleep(backoff.next(Instant::now(), begun.elapsed()));
            tokio::select! {
                () = pause => {}
                // Other credentials are tried at once.
                _ = endpoint.changed() => {}
            }
        }
    }

    /// One connection with the first token that Robin accepts.
    async fn connect(&self, endpoint: &RobinEndpoint) -> End {
        let mut end = End::Rejected(Mismatch::Unauthorized);
        for token in &endpoint.tokens {
            end = self.converse(endpoint, token).await.unwrap_or_else(|end| end);
            if !matches!(end, End::Rejected(Mismatch::Unauthorized)) {
                break;
            }
        }
        end
    }

    /// Returns how the connection ended, as either result.
    async fn converse(&self, endpoint: &RobinEndpoint, token: &str) -> Result<End, End> {
        let stream = timeout(STEP, TcpStream::connect(endpoint.address)).await;
        let stream = stream.map_err(|_| End::Lost)?.map_err(|error| match error.kind() {
            io::ErrorKind::ConnectionRefused => End::Refused,
            _ => End::Lost,
        })?;
        self.note(|state| state.reached(Instant::now()));
        // Requests are small: none should wait for the acknowledgement of another.
        let _ = stream.set_nodelay(true);
        let stream = encrypt(stream, endpoint).await?;
        let presented = presented(&stream);
        let (response, connection) = self.request(stream, token).await?;
        let lines = self.read_lines(response.into_body());
        let revoked = self.revoked(presented);
        let end = tokio::select! {
            end = lines => end,
            () = revoked => End::Lost,
        };
        drop(connection);
        Ok(end)
    }

    /// Sends the request and checks the head of the response. The connection ends when the handle is dropped.
    async fn request(&self, stream: Robin, token: &str) -> Result<(Response<Incoming>, AbortOnDropHandle<()>), End> {
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(|_| End::Lost)?;
        let connection = AbortOnDropHandle::new(tokio::spawn(async move {
            // How it ends is seen where its body is read.
            let _ = connection.await;
        }));
        let request = Request::post(PATH)
            .header(header::HOST, "robin")
            .header(header::AUTHORIZATION, format!("Bearer {token}"))
            .body(upward(self.refresh.clone()))
            .map_err(|_| End::Rejected(Mismatch::Unauthorized))?;
        let response = timeout(STEP, sender.send_request(request)).await;
        let response = response.map_err(|_| End::Lost)?.map_err(|error| {
            // A peer that is not HTTP at all.
            if error.is_parse() {
                End::Rejected(Mismatch::Protocol(None))
            } else {
                End::Lost
            }
        })?;
        judge(&response).map_err(End::Rejected)?;
        Ok((response, connection))
    }

    /// Reads frames and heartbeats until the connection ends.
    async fn read_lines(&self, body: Incoming) -> End {
        let mut chunks = Body::new(body).into_data_stream();
        let mut line: Vec<u8> = Vec::new();
        loop {
            let Ok(Some(Ok(chunk))) = timeout(PATIENCE, chunks.next()).await else {
                return End::Lost;
            };
            let mut rest: &[u8] = &chunk;
            while let Some(at) = rest.iter().position(|byte| *byte == b'\n') {
                line.extend_from_slice(&rest[..at]);
                rest = &rest[at + 1..];
                if let Err(reason) = self.heard(&line) {
                    return End::Rejected(reason);
                }
                line = Vec::new();
            }
            line.extend_from_slice(rest);
            if line.len() > FRAME_LIMIT {
                return End::Rejected(Mismatch::Frame(FrameError::TooLarge.to_string()));
            }
        }
    }

    fn heard(&self, line: &[u8]) -> Result<(), Mismatch> {
        if line.is_empty() {
            self.note(|state| state.beat(Instant::now()));
            return Ok(());
        }
        let frame = Frame::decode(line).map_err(|error| match error {
            FrameError::Protocol(version) => Mismatch::Protocol(Some(version)),
            FrameError::Malformed(error) => Mismatch::Frame(format!("a frame of Robin cannot be decoded: {error}")),
            other => Mismatch::Frame(other.to_string()),
        })?;
        self.note(|state| state.frame(frame, Instant::now()));
        Ok(())
    }

    /// Waits until the operator no longer accepts a certificate.
    async fn revoked(&self, certificate: Option<Fingerprint>) {
        let mut endpoint = self.endpoint.clone();
        let accepted = |held: &RobinEndpoint| certificate.is_some_and(|one| held.certificates.contains(&one));
        // The sender is dropped together with this task.
        let _ = endpoint.wait_for(|held| !accepted(held)).await;
    }

    fn note(&self, change: impl FnOnce(&mut State) -> bool) {
        if change(&mut locked(&self.state)) {
            // Sending fails only while the operator shuts down, when the receiver is gone.
            let _ = self.trigger.send(self.key.clone());
        }
    }
}

async fn encrypt(stream: TcpStream, endpoint: &RobinEndpoint) -> Result<Robin, End> {
    let connector = connector(&endpoint.certificates);
    let connector = connector.map_err(|error| End::Rejected(Mismatch::Tls(error.to_string())))?;
    let name = ServerName::IpAddress(endpoint.address.ip().into());
    let encrypted = timeout(STEP, connector.connect(name, stream)).await;
    encrypted
        .map_err(|_| End::Lost)?
        .map_err(|error| match handshake_fault(&error) {
            Some(HandshakeFault::Certificate(presented)) => End::Rejected(Mismatch::Certificate(presented)),
            Some(HandshakeFault::Protocol(message)) => End::Rejected(Mismatch::Tls(message)),
            None => End::Lost,
        })
}

fn presented(stream: &Robin) -> Option<Fingerprint> {
    let (_, session) = stream.get_ref();
    let leaf = session.peer_certificates()?.first()?;
    Some(Fingerprint::of(leaf))
}

fn judge<T>(response: &Response<T>) -> Result<(), Mismatch> {
    let version = response.headers().get(PROTOCOL_HEADER);
    let version = version.and_then(|value| value.to_str().ok()?.parse().ok());
    if version != Some(PROTOCOL) {
        return Err(Mismatch::Protocol(version));
    }
    match response.status().as_u16() {
        200 => Ok(()),
        401 => Err(Mismatch::Unauthorized),
        other => Err(Mismatch::Status(other)),
    }
}

/// The body of the request: heartbeats of the operator, and requests for a new observation.
fn upward(refresh: Arc<Notify>) -> Body {
    Body::from_stream(stream::unfold(refresh, |refresh| async {
        let line = tokio::select! {
            () = refresh.notified() => REFRESH,
            () = sleep(OPERATOR_BEAT) => BEAT,
        };
        Some((Ok::<_, Infallible>(Bytes::from_static(line)), refresh))
    }))
}

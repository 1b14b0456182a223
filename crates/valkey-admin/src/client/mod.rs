//! The connection to one server: credentials, TLS, deadlines, reconnects, and typed errors.
//!
//! A refused connection ([`NodeError::ConnectionRefused`]), a timeout ([`NodeError::Timeout`]) and a closed connection
//! ([`NodeError::Closed`]) prove different things. A decision about a failover must not confuse them.

mod commands;
mod connection;
mod tls;
mod wire;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use connection::{Broken, Connection};
use redis::{Cmd, Pipeline};
use tokio::sync::Mutex;
use tokio::time::timeout;

pub use commands::{Failover, SetSlot};
pub use tls::{DesiredCertificate, Fingerprint, Tls, TlsError, authorities};
pub use wire::Wire;

use crate::decode::{DecodeError, Exceeded, Limits};
use crate::{ParseError, Reply};

/// An ACL user with its password.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The ACL user.
    pub user: String,
    /// Its password; never shown.
    pub password: String,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

/// Address of a server, and how to connect to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Its address.
    pub address: SocketAddr,
    /// Absent: the default user without a password.
    pub credentials: Option<Credentials>,
    /// Absent: plain text. Present: TLS, and never anything else.
    pub tls: Option<Tls>,
}

impl Endpoint {
    /// Plain text, without credentials.
    pub fn plain(ip: IpAddr, port: u16) -> Self {
        Self {
            address: SocketAddr::new(ip, port),
            credentials: None,
            tls: None,
        }
    }
}

/// Timeouts.
#[derive(Clone, Copy, Debug)]
pub struct Deadlines {
    /// For TCP, TLS and authentication together.
    pub connect: Duration,
    /// For one reply.
    pub answer: Duration,
}

impl Default for Deadlines {
    /// One second each: by contract, a member that does not reply to a ping within a second does not respond.
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(1),
            answer: Duration::from_secs(1),
        }
    }
}

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The connection was refused: no process listens at the address.
    #[error("{0}: connection refused")]
    ConnectionRefused(SocketAddr),
    /// No reply in time: the server may be frozen, slow or unreachable; nothing is proved.
    #[error("{0}: no answer to {1} in time")]
    Timeout(SocketAddr, String),
    /// An open connection was closed: the process ended, or something on the path closed it.
    #[error("{0}: connection closed during {1}")]
    Closed(SocketAddr, String),
    /// The server rejected our user or password.
    #[error("{0}: the server rejected our credentials: {1}")]
    Credentials(SocketAddr, String),
    /// The TLS handshake failed; there is no fallback to plain text.
    #[error("{0}: TLS: {1}")]
    Tls(SocketAddr, #[source] std::io::Error),
    /// Another network error.
    #[error("{0}: {1}")]
    Io(SocketAddr, #[source] std::io::Error),
    /// The server replied with an error message.
    #[error("{0}: {1}: {2}")]
    Server(SocketAddr, String, String),
    /// The server sent a reply above a limit; the connection was closed.
    #[error("{0}: sent a reply above the limit of {1}")]
    TooLarge(SocketAddr, Exceeded),
    /// The reply could not be parsed.
    #[error("{0}: {1}")]
    Parse(SocketAddr, #[source] ParseError),
}

impl NodeError {
    /// The error message of the server, if it replied with one.
    pub fn server_message(&self) -> Option<&str> {
        match self {
            Self::Server(_, _, message) | Self::Credentials(_, message) => Some(message),
            _ => None,
        }
    }

    /// Whether there was no reply: the command was not rejected, and may or may not have been executed.
    pub fn is_unanswered(&self) -> bool {
        matches!(
            self,
            Self::ConnectionRefused(_) | Self::Timeout(..) | Self::Closed(..) | Self::Io(..)
        )
    }

    /// Whether the server does not know the command.
    pub fn is_unknown_command(&self) -> bool {
        self.server_message().is_some_and(|message| {
            let message = message.to_ascii_lowercase();
            message.contains("unknown command") || message.contains("unknown subcommand")
        })
    }
}

/// A client of one server. Clones share one connection, which is opened at the first request and again after it broke.
#[derive(Clone, Debug)]
pub struct Node {
    endpoint: Arc<Endpoint>,
    deadlines: Deadlines,
    connection: Arc<Mutex<Option<Connection>>>,
}

impl Node {
    /// Creates a client; it connects at the first request.
    pub fn new(endpoint: Endpoint, deadlines: Deadlines) -> Self {
        Self {
            endpoint: Arc::new(endpoint),
            deadlines,
            connection: Arc::default(),
        }
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.endpoint.address
    }

    /// Its endpoint.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Sends one command and waits for its reply. Concurrent requests are pipelined on the connection.
    pub async fn ask(&self, command: &Cmd) -> Result<Reply, NodeError> {
        self.ask_within(command, self.deadlines.answer).await
    }

    /// The same with another timeout, for slow commands.
    pub async fn ask_within(&self, command: &Cmd, deadline: Duration) -> Result<Reply, NodeError> {
        let connection = self.connected().await?;
        let request = connection.request(command.get_packed_command(), 1, Limits::REPLY);
        let mut replies = self.replies(timeout(deadline, request).await, command).await?;
        match replies.pop() {
            Some(reply) => self.answered(reply, command),
            None => Err(NodeError::Closed(self.address(), name(command))),
        }
    }

    /// Sends commands as one pipeline; each has its own result.
    pub async fn ask_all(&self, commands: &Pipeline) -> Result<Vec<Result<Reply, NodeError>>, NodeError> {
        let Some(first) = commands.cmd_iter().next() else {
            return Ok(Vec::new());
        };
        let connection = self.connected().await?;
        let request = connection.request(commands.get_packed_pipeline(), commands.len(), Limits::REPLY);
        let replies = self
            .replies(timeout(self.deadlines.answer, request).await, first)
            .await?;
        let each = replies.into_iter().zip(commands.cmd_iter());
        Ok(each.map(|(reply, command)| self.answered(reply, command)).collect())
    }

    async fn replies(
        &self,
        received: Result<Result<Vec<Reply>, Broken>, tokio::time::error::Elapsed>,
        command: &Cmd,
    ) -> Result<Vec<Reply>, NodeError> {
        let address = self.address();
        let error = match received {
            Ok(Ok(replies)) => return Ok(replies),
            Ok(Err(Broken::Closed)) => NodeError::Closed(address, name(command)),
            Ok(Err(Broken::Undecodable(DecodeError::TooLarge(limit)))) => NodeError::TooLarge(address, limit),
            Ok(Err(Broken::Undecodable(DecodeError::Malformed(error)))) => NodeError::Parse(address, error),
            Err(_) => NodeError::Timeout(address, name(command)),
        };
        // The next request opens a new connection: a late reply must not be taken for the reply to another command, and
        // a server that restarted must be found.
        self.connection.lock().await.take();
        Err(error)
    }

    fn answered(&self, reply: Reply, command: &Cmd) -> Result<Reply, NodeError> {
        match reply {
            Reply::Error(message) => Err(self.rejected(message, command)),
            reply => Ok(reply),
        }
    }

    /// Closes the connection; the next request opens a new one.
    pub async fn disconnect(&self) {
        self.connection.lock().await.take();
    }

    async fn connected(&self) -> Result<Connection, NodeError> {
        let mut held = self.connection.lock().await;
        if let Some(connection) = held.as_ref() {
            return Ok(connection.clone());
        }
        let dialled = timeout(self.deadlines.connect, self.dial()).await;
        let connection = dialled.map_err(|_| NodeError::Timeout(self.address(), "connect".to_owned()))??;
        *held = Some(connection.clone());
        Ok(connection)
    }

    async fn dial(&self) -> Result<Connection, NodeError> {
        let stream = Wire::reach(self.address(), self.deadlines.connect).await?;
        let wire = Wire::greet(stream, &self.endpoint, self.deadlines.connect).await?;
        Ok(Connection::over(wire))
    }

    fn rejected(&self, message: String, command: &Cmd) -> NodeError {
        match message.split(' ').next() {
            Some("WRONGPASS" | "NOAUTH") => NodeError::Credentials(self.address(), message),
            _ => NodeError::Server(self.address(), name(command), message),
        }
    }

    fn understood<T>(&self, parsed: Result<T, ParseError>) -> Result<T, NodeError> {
        parsed.map_err(|error| NodeError::Parse(self.address(), error))
    }
}

fn network(address: SocketAddr, during: &str, error: std::io::Error) -> NodeError {
    use std::io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionRefused, ConnectionReset, TimedOut};
    match error.kind() {
        ConnectionRefused => NodeError::ConnectionRefused(address),
        ConnectionReset | ConnectionAborted | BrokenPipe => NodeError::Closed(address, during.to_owned()),
        TimedOut => NodeError::Timeout(address, during.to_owned()),
        _ => NodeError::Io(address, error),
    }
}

/// The name of a command, such as `CLUSTER MEET`, without its arguments: they may contain secrets.
fn name(command: &Cmd) -> String {
    let mut arguments = command.args_iter().filter_map(|arg| match arg {
        redis::Arg::Simple(bytes) => Some(String::from_utf8_lossy(bytes).to_ascii_uppercase()),
        _ => None,
    });
    let first = arguments.next().unwrap_or_default();
    match (first.as_str(), arguments.next()) {
        ("CLUSTER" | "ACL" | "CONFIG" | "MEMORY", Some(second)) => format!("{first} {second}"),
        _ => first,
    }
}

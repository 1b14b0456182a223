//! One node's connection: credentials, TLS, deadlines, reconnection, and what its failures prove.
//!
//! A failure is not only a failure: that nobody listens ([`NodeError::Refused`]), that nobody answers
//! ([`NodeError::Silent`]) and that the connection was closed ([`NodeError::Closed`]) are different facts, and
//! whoever decides about a failover must not confuse them.

mod commands;
mod tls;
mod wire;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, ErrorKind, Pipeline, RedisConnectionInfo, RedisError, Value};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio::time::timeout;

pub use commands::{Failover, SetSlot};
pub use tls::{Tls, TlsError, Wanted as WantedCertificate, authorities};
pub use wire::Wire;

use crate::{ParseError, Reply};

/// Who we are to the server.
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

/// Where a node is and how it is talked to.
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
    /// Plain text, no credentials.
    pub fn plain(ip: IpAddr, port: u16) -> Self {
        Self {
            address: SocketAddr::new(ip, port),
            credentials: None,
            tls: None,
        }
    }
}

/// How long to wait.
#[derive(Clone, Copy, Debug)]
pub struct Deadlines {
    /// For TCP, TLS and the first hello together.
    pub connect: Duration,
    /// For one answer.
    pub answer: Duration,
}

impl Default for Deadlines {
    /// A second each: the contract calls a ping unanswered for a second silence.
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(1),
            answer: Duration::from_secs(1),
        }
    }
}

/// Why a node did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The address answered that nobody listens: the process is not there.
    #[error("{0}: connection refused: nobody listens there")]
    Refused(SocketAddr),
    /// No answer in time: it may be frozen, slow or unreachable; nothing is proved.
    #[error("{0}: no answer to {1} in time")]
    Silent(SocketAddr, String),
    /// An open connection ended: the process ended, or somebody between closed it.
    #[error("{0}: connection closed during {1}")]
    Closed(SocketAddr, String),
    /// The server refused our user or password.
    #[error("{0}: the server refused our credentials: {1}")]
    Credentials(SocketAddr, String),
    /// TLS failed; there is no fallback to plain text.
    #[error("{0}: TLS: {1}")]
    Tls(SocketAddr, #[source] std::io::Error),
    /// Another error of the network.
    #[error("{0}: {1}")]
    Io(SocketAddr, #[source] std::io::Error),
    /// The server answered with an error, in its own words.
    #[error("{0}: {1}: {2}")]
    Server(SocketAddr, String, String),
    /// The answer could not be understood.
    #[error("{0}: {1}")]
    Parse(SocketAddr, #[source] ParseError),
}

impl NodeError {
    /// The server's own words, where it spoke.
    pub fn server_words(&self) -> Option<&str> {
        match self {
            Self::Server(_, _, words) | Self::Credentials(_, words) => Some(words),
            _ => None,
        }
    }

    /// Whether nobody answered: nothing was refused, and whether anything was done is not known.
    pub fn is_unheard(&self) -> bool {
        matches!(
            self,
            Self::Refused(_) | Self::Silent(..) | Self::Closed(..) | Self::Io(..)
        )
    }

    /// Whether the server does not know the command: its version can do less than was thought.
    pub fn is_unknown_command(&self) -> bool {
        self.server_words().is_some_and(|words| {
            let words = words.to_ascii_lowercase();
            words.contains("unknown command") || words.contains("unknown subcommand")
        })
    }
}

/// A node. Cheap to clone; clones share one connection, which is made when first needed and again after it broke.
#[derive(Clone, Debug)]
pub struct Node {
    endpoint: Arc<Endpoint>,
    deadlines: Deadlines,
    connection: Arc<Mutex<Option<MultiplexedConnection>>>,
}

impl Node {
    /// Nothing is dialled yet.
    pub fn new(endpoint: Endpoint, deadlines: Deadlines) -> Self {
        Self {
            endpoint: Arc::new(endpoint),
            deadlines,
            connection: Arc::default(),
        }
    }

    /// Where it is.
    pub fn address(&self) -> SocketAddr {
        self.endpoint.address
    }

    /// Its endpoint.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Sends one command and waits for its answer. Many may be under way at once on the one connection.
    pub async fn ask(&self, command: &Cmd) -> Result<Reply, NodeError> {
        self.ask_within(command, self.deadlines.answer).await
    }

    /// The same with a deadline of its own, for commands that may take long.
    pub async fn ask_within(&self, command: &Cmd, deadline: Duration) -> Result<Reply, NodeError> {
        let mut connection = self.connected().await?;
        let answer = timeout(deadline, connection.send_packed_command(command)).await;
        match answer {
            Ok(Ok(value)) => self.answered(value, command),
            Ok(Err(error)) => self.broken(self.because(&error, command)).await,
            Err(_) => self.broken(NodeError::Silent(self.address(), name(command))).await,
        }
    }

    /// Sends many commands as one, for which each has its own answer.
    pub async fn ask_all(&self, commands: &Pipeline) -> Result<Vec<Result<Reply, NodeError>>, NodeError> {
        let Some(first) = commands.cmd_iter().next() else {
            return Ok(Vec::new());
        };
        let mut connection = self.connected().await?;
        let sent = connection.send_packed_commands(commands, 0, commands.len());
        match timeout(self.deadlines.answer, sent).await {
            Ok(Ok(values)) => Ok(values
                .into_iter()
                .zip(commands.cmd_iter())
                .map(|(value, command)| self.answered(value, command))
                .collect()),
            Ok(Err(error)) => self.broken(self.because(&error, first)).await,
            Err(_) => self.broken(NodeError::Silent(self.address(), name(first))).await,
        }
    }

    /// The crate hands a server's error over as a value.
    fn answered(&self, value: Value, command: &Cmd) -> Result<Reply, NodeError> {
        match value {
            Value::ServerError(error) => Err(self.refused(error.code(), error.details(), command)),
            value => Ok(reply(value)),
        }
    }

    async fn broken<T>(&self, error: NodeError) -> Result<T, NodeError> {
        // After a broken or silent connection the next command starts afresh: a late answer must not be taken
        // for the answer to something else, and a peer that came back must be found.
        if matches!(error, NodeError::Closed(..) | NodeError::Silent(..) | NodeError::Io(..)) {
            self.connection.lock().await.take();
        }
        Err(error)
    }

    /// Ends the connection; the next command makes a new one.
    pub async fn disconnect(&self) {
        self.connection.lock().await.take();
    }

    async fn connected(&self) -> Result<MultiplexedConnection, NodeError> {
        let mut held = self.connection.lock().await;
        if let Some(connection) = held.as_ref() {
            return Ok(connection.clone());
        }
        let dialled = timeout(self.deadlines.connect, self.dial()).await;
        let connection = dialled.map_err(|_| NodeError::Silent(self.address(), "connect".to_owned()))??;
        *held = Some(connection.clone());
        Ok(connection)
    }

    async fn dial(&self) -> Result<MultiplexedConnection, NodeError> {
        let address = self.address();
        let stream = TcpStream::connect(address)
            .await
            .map_err(|error| network(address, "connect", error))?;
        stream
            .set_nodelay(true)
            .map_err(|error| NodeError::Io(address, error))?;
        match &self.endpoint.tls {
            Some(tls) => {
                let stream = tls
                    .connect(address.ip(), stream)
                    .await
                    .map_err(|error| NodeError::Tls(address, error))?;
                self.greet(stream).await
            }
            None => self.greet(stream).await,
        }
    }

    async fn greet<S>(&self, stream: S) -> Result<MultiplexedConnection, NodeError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let mut info = RedisConnectionInfo::default().set_skip_set_lib_name();
        if let Some(credentials) = &self.endpoint.credentials {
            info = info.set_username(&credentials.user).set_password(&credentials.password);
        }
        // Deadlines are ours: the crate's own would close a connection that a slow answer still needs.
        let config = AsyncConnectionConfig::new()
            .set_response_timeout(None)
            .set_connection_timeout(None);
        let made = MultiplexedConnection::new_with_config(&info, stream, config).await;
        let (connection, driver) = made.map_err(|error| match error.kind() {
            ErrorKind::AuthenticationFailed => NodeError::Credentials(self.address(), error.to_string()),
            _ => self.because(&error, &redis::cmd("AUTH")),
        })?;
        tokio::spawn(driver);
        Ok(connection)
    }

    fn because(&self, error: &RedisError, command: &Cmd) -> NodeError {
        let address = self.address();
        if let Some(code) = error.code() {
            return self.refused(code, error.detail(), command);
        }
        if error.is_io_error() || error.is_connection_dropped() || error.is_unrecoverable_error() {
            return NodeError::Closed(address, name(command));
        }
        NodeError::Parse(address, ParseError::new("RESP", "an answer of the protocol", error))
    }

    /// The server's own words, as they stood on the wire.
    fn refused(&self, code: &str, details: Option<&str>, command: &Cmd) -> NodeError {
        let words = format!("{code} {}", details.unwrap_or_default()).trim_end().to_owned();
        match code {
            "WRONGPASS" | "NOAUTH" => NodeError::Credentials(self.address(), words),
            _ => NodeError::Server(self.address(), name(command), words),
        }
    }

    fn understood<T>(&self, parsed: Result<T, ParseError>) -> Result<T, NodeError> {
        parsed.map_err(|error| NodeError::Parse(self.address(), error))
    }
}

fn network(address: SocketAddr, during: &str, error: std::io::Error) -> NodeError {
    use std::io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionRefused, ConnectionReset, TimedOut};
    match error.kind() {
        ConnectionRefused => NodeError::Refused(address),
        ConnectionReset | ConnectionAborted | BrokenPipe => NodeError::Closed(address, during.to_owned()),
        TimedOut => NodeError::Silent(address, during.to_owned()),
        _ => NodeError::Io(address, error),
    }
}

/// `CLUSTER MEET`, never its arguments: they may hold secrets.
fn name(command: &Cmd) -> String {
    let mut words = command.args_iter().filter_map(|arg| match arg {
        redis::Arg::Simple(bytes) => Some(String::from_utf8_lossy(bytes).to_ascii_uppercase()),
        _ => None,
    });
    let first = words.next().unwrap_or_default();
    match (first.as_str(), words.next()) {
        ("CLUSTER" | "ACL" | "CONFIG" | "MEMORY", Some(second)) => format!("{first} {second}"),
        _ => first,
    }
}

/// The crate's value in our own shape, so that parsers need no client.
fn reply(value: Value) -> Reply {
    match value {
        Value::Int(number) => Reply::Int(number),
        Value::BulkString(bytes) => Reply::Bytes(bytes),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => Reply::Bytes(text.into_bytes()),
        Value::Okay => Reply::from("OK"),
        Value::Array(items) | Value::Set(items) => Reply::Array(items.into_iter().map(reply).collect()),
        Value::Map(pairs) => Reply::Map(
            pairs
                .into_iter()
                .map(|(key, value)| (reply(key), reply(value)))
                .collect(),
        ),
        Value::Double(number) => Reply::Bytes(number.to_string().into_bytes()),
        Value::Boolean(yes) => Reply::Int(i64::from(yes)),
        Value::BigNumber(digits) => Reply::Bytes(digits),
        Value::ServerError(error) => Reply::Error(
            format!("{} {}", error.code(), error.details().unwrap_or_default())
                .trim_end()
                .to_owned(),
        ),
        Value::Attribute { data, .. } => reply(*data),
        Value::Push { data, .. } => Reply::Array(data.into_iter().map(reply).collect()),
        _ => Reply::Nil,
    }
}

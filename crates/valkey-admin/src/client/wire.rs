//! A bare connection: bytes out, replies in, and its end noticed immediately. A monitor of hundreds of members holds one
//! of these per member instead of a [`super::Node`]: it has no task, and no buffers while it is idle.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{Endpoint, NodeError, network};
use crate::Reply;
use crate::decode::{DecodeError, Decoder, Limits};

/// Room for the replies of a probe; what a larger reply needed is given back after it.
const ROOM: usize = 2048;

/// Plain or encrypted.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// An open connection.
pub struct Wire {
    address: SocketAddr,
    stream: Box<dyn Stream>,
    decoder: Decoder,
}

impl Wire {
    /// Opens a TCP connection. That the address accepts connections is a fact by itself, even if no reply follows.
    pub async fn reach(address: SocketAddr, within: Duration) -> Result<TcpStream, NodeError> {
        let timed_out = |_| NodeError::Timeout(address, "connect".to_owned());
        let reached = timeout(within, TcpStream::connect(address)).await.map_err(timed_out)?;
        let stream = reached.map_err(|error| network(address, "connect", error))?;
        let set = stream.set_nodelay(true);
        set.map_err(|error| NodeError::Io(address, error))?;
        Ok(stream)
    }

    /// Encrypts if asked, and says who we are.
    pub async fn greet(stream: TcpStream, endpoint: &Endpoint, within: Duration) -> Result<Self, NodeError> {
        let greeted = timeout(within, Self::introduce(stream, endpoint)).await;
        greeted.map_err(|_| NodeError::Timeout(endpoint.address, "AUTH".to_owned()))?
    }

    async fn introduce(stream: TcpStream, endpoint: &Endpoint) -> Result<Self, NodeError> {
        let address = endpoint.address;
        let stream: Box<dyn Stream> = match &endpoint.tls {
            Some(tls) => {
                let stream = tls.connect(address.ip(), stream).await;
                Box::new(stream.map_err(|error| NodeError::Tls(address, error))?)
            }
            None => Box::new(stream),
        };
        let mut wire = Self {
            address,
            stream,
            decoder: Decoder::new(Limits::STATE),
        };
        if let Some(credentials) = &endpoint.credentials {
            let mut auth = redis::cmd("AUTH");
            auth.arg(&credentials.user).arg(&credentials.password);
            wire.send(&auth.get_packed_command()).await?;
            match wire.next().await? {
                Reply::Error(message) if message.starts_with("LOADING") => {}
                Reply::Error(message) => return Err(NodeError::Credentials(address, message)),
                _ => {}
            }
        }
        Ok(wire)
    }

    /// The stream, and the decoder with what was received on it.
    pub(super) fn into_parts(self) -> (Box<dyn Stream>, Decoder) {
        (self.stream, self.decoder)
    }

    /// Sends one request: packed commands with replies within [`Limits::STATE`] all together. The commands are few and
    /// small. A caller that cancels this must drop the connection, because a part may have been sent.
    pub async fn send(&mut self, packed: &[u8]) -> Result<(), NodeError> {
        self.decoder.begin(Limits::STATE);
        let sent = match self.stream.write_all(packed).await {
            Ok(()) => self.stream.flush().await,
            failed => failed,
        };
        sent.map_err(|error| network(self.address, "write", error))
    }

    /// Returns the next reply, or [`NodeError::Closed`] at the end of the connection. Cancel-safe.
    pub async fn next(&mut self) -> Result<Reply, NodeError> {
        loop {
            let decoded = self.decoder.next_reply().map_err(|error| match error {
                DecodeError::TooLarge(limit) => NodeError::TooLarge(self.address, limit),
                DecodeError::Malformed(error) => NodeError::Parse(self.address, error),
            });
            if let Some(reply) = decoded? {
                self.decoder.shrink(2 * ROOM);
                return Ok(reply);
            }
            match self.stream.read_buf(self.decoder.room(ROOM)).await {
                Ok(0) => return Err(NodeError::Closed(self.address, "read".to_owned())),
                Ok(_) => {}
                Err(error) => return Err(network(self.address, "read", error)),
            }
        }
    }
}

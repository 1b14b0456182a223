//! A bare connection: bytes out, answers in, and its end noticed at the instant it comes. What watches hundreds of
//! members holds one of these for each, not a [`super::Node`]: no task of its own, no buffers while nothing is said.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::client::TlsStream;

use super::{Endpoint, NodeError, network};
use crate::Reply;

/// Room for what a beat brings; what a larger answer needed is given back after it.
const ROOM: usize = 2048;

enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// An open connection.
pub struct Wire {
    address: SocketAddr,
    stream: Stream,
    incoming: Vec<u8>,
    read: usize,
}

impl Wire {
    /// Reaches the address, and no more: that somebody listens there is a fact of its own, even when nothing is
    /// answered afterwards.
    pub async fn reach(address: SocketAddr, within: Duration) -> Result<TcpStream, NodeError> {
        let silent = |_| NodeError::Silent(address, "connect".to_owned());
        let reached = timeout(within, TcpStream::connect(address)).await.map_err(silent)?;
        let stream = reached.map_err(|error| network(address, "connect", error))?;
        let set = stream.set_nodelay(true);
        set.map_err(|error| NodeError::Io(address, error))?;
        Ok(stream)
    }

    /// Encrypts if asked, and says who we are.
    pub async fn greet(stream: TcpStream, endpoint: &Endpoint, within: Duration) -> Result<Self, NodeError> {
        let greeted = timeout(within, Self::introduce(stream, endpoint)).await;
        greeted.map_err(|_| NodeError::Silent(endpoint.address, "AUTH".to_owned()))?
    }

    async fn introduce(stream: TcpStream, endpoint: &Endpoint) -> Result<Self, NodeError> {
        let address = endpoint.address;
        let stream = match &endpoint.tls {
            Some(tls) => {
                let stream = tls.connect(address.ip(), stream).await;
                Stream::Tls(Box::new(stream.map_err(|error| NodeError::Tls(address, error))?))
            }
            None => Stream::Plain(stream),
        };
        let mut wire = Self {
            address,
            stream,
            incoming: Vec::new(),
            read: 0,
        };
        if let Some(credentials) = &endpoint.credentials {
            let mut auth = redis::cmd("AUTH");
            auth.arg(&credentials.user).arg(&credentials.password);
            wire.send(&auth.get_packed_command()).await?;
            match wire.next().await? {
                Reply::Error(words) if words.starts_with("LOADING") => {}
                Reply::Error(words) => return Err(NodeError::Credentials(address, words)),
                _ => {}
            }
        }
        Ok(wire)
    }

    /// Writes packed commands. They are few and small: the socket takes them at once or is stuck, so a caller that
    /// gives up half-way must drop the connection.
    pub async fn send(&mut self, packed: &[u8]) -> Result<(), NodeError> {
        let sent = match &mut self.stream {
            Stream::Plain(stream) => stream.write_all(packed).await,
            Stream::Tls(stream) => match stream.write_all(packed).await {
                Ok(()) => stream.flush().await,
                failed => failed,
            },
        };
        sent.map_err(|error| network(self.address, "write", error))
    }

    /// The next answer, or [`NodeError::Closed`] at the connection's end. Safe to give up and call again.
    pub async fn next(&mut self) -> Result<Reply, NodeError> {
        loop {
            let decoded = Reply::decode(&self.incoming[self.read..]);
            let decoded = decoded.map_err(|error| NodeError::Parse(self.address, error))?;
            if let Some((reply, taken)) = decoded {
                self.read += taken;
                if self.read == self.incoming.len() {
                    self.empty();
                }
                return Ok(reply);
            }
            self.incoming.reserve(ROOM);
            let came = match &mut self.stream {
                Stream::Plain(stream) => stream.read_buf(&mut self.incoming).await,
                Stream::Tls(stream) => stream.read_buf(&mut self.incoming).await,
            };
            match came {
                Ok(0) => return Err(NodeError::Closed(self.address, "read".to_owned())),
                Ok(_) => {}
                Err(error) => return Err(network(self.address, "read", error)),
            }
        }
    }

    fn empty(&mut self) {
        self.read = 0;
        if self.incoming.capacity() > 2 * ROOM {
            self.incoming = Vec::new();
        } else {
            self.incoming.clear();
        }
    }
}

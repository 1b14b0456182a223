//! One attempt to send a command to the owner of a slot, following redirections.

use std::net::SocketAddr;

use redis::{Cmd, ErrorKind, RedisError, ServerErrorKind, Value};
use tokio::time::timeout;

use super::links::{Links, PATIENCE};
use super::routes::Routes;
use crate::credentials::Login;
use crate::reach::{Unreached, own_trouble};

/// Maximum number of redirections in one attempt.
const HOPS: usize = 5;

/// Why an attempt failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The attempt was rejected: a refused or closed connection, or an error reply.
    Rejected,
    /// No reply in time. Whether the command was executed is unknown.
    Timeout,
    /// The auditor could not reach the server or could not log in: nothing is known of the slot.
    Unreached(Unreached),
}

impl Trouble {
    /// Classifies the error of a connection that failed or broke.
    pub(super) fn of(error: &RedisError) -> Self {
        own_trouble(error).map_or(Self::Rejected, Self::Unreached)
    }
}

/// What is needed to reach the servers.
#[derive(Default)]
pub(crate) struct Sender {
    pub links: Links,
}

impl Sender {
    /// Sends to the owner and follows MOVED and ASK.
    pub async fn send(
        &self,
        routes: &Routes,
        login: &Login,
        slot: u16,
        command: &Cmd,
        any_member: bool,
    ) -> Result<Value, Trouble> {
        let mut to = routes.of(slot, any_member).ok_or(Trouble::Rejected)?;
        let (mut guessed, mut asking) = (any_member && routes.of(slot, false) != Some(to), false);
        for _ in 0..HOPS {
            let answer = tokio::select! {
                biased;
                answer = self.once(to, login, command, asking) => answer?,
                // The slot has another owner now, or the guessed member no longer responds: the reply of this member
                // does not matter.
                () = routes.left(slot, to, guessed), if !asking => return Err(Trouble::Rejected),
            };
            let error = match answer {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            if let Some(why) = own_trouble(&error) {
                return Err(Trouble::Unreached(why));
            }
            let Some(next) = error.redirect_node().and_then(|(address, _)| target(address, to)) else {
                tracing::debug!(slot, %to, %error, "a write was refused");
                return Err(Trouble::Rejected);
            };
            asking = error.kind() == ErrorKind::Server(ServerErrorKind::Ask);
            if !asking {
                routes.moved(slot, next);
            }
            (to, guessed) = (next, false);
        }
        Err(Trouble::Rejected)
    }

    /// The reply of one server; error replies count as replies too.
    async fn once(
        &self,
        to: SocketAddr,
        login: &Login,
        command: &Cmd,
        asking: bool,
    ) -> Result<Result<Value, RedisError>, Trouble> {
        let mut open = self.links.open(to, login).await?;
        let connection = &mut open.connection;
        let answer = timeout(PATIENCE, async {
            if asking {
                let mut both = redis::pipe();
                both.cmd("ASKING").ignore().add_command(command.clone());
                let (value,): (Value,) = both.query_async(connection).await?;
                Ok(value)
            } else {
                command.query_async(connection).await
            }
        });
        match answer.await {
            Ok(Err(error)) if broken(&error) => {
                self.links.close(to, &open).await;
                Err(Trouble::of(&error))
            }
            Ok(answer) => {
                self.links.answered(to).await;
                Ok(answer)
            }
            Err(_) => {
                self.links.timed_out(to, &open).await;
                Err(Trouble::Timeout)
            }
        }
    }
}

/// Whether the error is about the connection, not about the command.
fn broken(error: &RedisError) -> bool {
    matches!(error.kind(), ErrorKind::Io | ErrorKind::Parse | ErrorKind::Client) || error.is_unrecoverable_error()
}

/// The address in a redirection. An empty host means the host of the redirecting server.
fn target(text: &str, from: SocketAddr) -> Option<SocketAddr> {
    let (host, port) = text.rsplit_once(':')?;
    let port = port.parse().ok()?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let ip = if host.is_empty() { from.ip() } else { host.parse().ok()? };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirections_name_an_address_in_every_form() {
        let from: SocketAddr = "127.1.0.9:6379".parse().unwrap();
        for (text, desired) in [
            ("127.1.0.1:6379", Some("127.1.0.1:6379")),
            (":7000", Some("127.1.0.9:7000")),
            ("fd00::1:6379", Some("[fd00::1]:6379")),
            ("[fd00::1]:6379", Some("[fd00::1]:6379")),
            ("?:6379", None),
            ("127.1.0.1", None),
        ] {
            assert_eq!(
                target(text, from),
                desired.map(|address| address.parse().unwrap()),
                "{text}"
            );
        }
    }
}

//! One command to the owner of a slot, wherever that is, in one attempt.

use std::net::SocketAddr;

use redis::{Cmd, ErrorKind, RedisError, ServerErrorKind, Value};
use tokio::time::timeout;

use super::links::{Links, PATIENCE};
use super::routes::Routes;
use crate::credentials::Login;
use crate::reach::{Unreached, own_trouble};

/// Redirections followed in one attempt.
const HOPS: usize = 5;

/// Why an attempt failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// Something said no: a refused or closed connection, or an error in words.
    Refused,
    /// Nothing was said in time. Whether the command was executed is not known.
    Silent,
    /// The auditor could not get there, or was not let in: nothing is known of the slot.
    Unreached(Unreached),
}

impl Trouble {
    /// What a connection that cannot be had, or broke, says.
    pub(super) fn of(error: &RedisError) -> Self {
        own_trouble(error).map_or(Self::Refused, Self::Unreached)
    }
}

/// What is needed to reach the servers.
#[derive(Default)]
pub(crate) struct Sender {
    pub links: Links,
}

impl Sender {
    /// Sends to the owner, follows MOVED and ASK.
    pub async fn send(
        &self,
        routes: &Routes,
        login: &Login,
        slot: u16,
        command: &Cmd,
        anybody: bool,
    ) -> Result<Value, Trouble> {
        let mut to = routes.of(slot, anybody).ok_or(Trouble::Refused)?;
        let (mut guessed, mut asking) = (anybody && routes.of(slot, false) != Some(to), false);
        for _ in 0..HOPS {
            let answer = tokio::select! {
                biased;
                answer = self.once(to, login, command, asking) => answer?,
                // The slot has another owner now, or who was asked for it answers nobody any more: what this one says
                // does not matter.
                () = routes.left(slot, to, guessed), if !asking => return Err(Trouble::Refused),
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
                return Err(Trouble::Refused);
            };
            asking = error.kind() == ErrorKind::Server(ServerErrorKind::Ask);
            if !asking {
                routes.moved(slot, next);
            }
            (to, guessed) = (next, false);
        }
        Err(Trouble::Refused)
    }

    /// The answer of one server; its errors in words are answers too.
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
                self.links.silent(to, &open).await;
                Err(Trouble::Silent)
            }
        }
    }
}

/// Whether the connection is the trouble, not the command.
fn broken(error: &RedisError) -> bool {
    matches!(error.kind(), ErrorKind::Io | ErrorKind::Parse | ErrorKind::Client) || error.is_unrecoverable_error()
}

/// The address of a redirection. An empty host is that of the server that redirected.
fn target(words: &str, from: SocketAddr) -> Option<SocketAddr> {
    let (host, port) = words.rsplit_once(':')?;
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
        for (words, wanted) in [
            ("127.1.0.1:6379", Some("127.1.0.1:6379")),
            (":7000", Some("127.1.0.9:7000")),
            ("fd00::1:6379", Some("[fd00::1]:6379")),
            ("[fd00::1]:6379", Some("[fd00::1]:6379")),
            ("?:6379", None),
            ("127.1.0.1", None),
        ] {
            assert_eq!(
                target(words, from),
                wanted.map(|address| address.parse().unwrap()),
                "{words}"
            );
        }
    }
}

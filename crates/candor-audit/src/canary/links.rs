//! One connection per member, shared by all writes.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, ConnectionAddr, IntoConnectionInfo, RedisConnectionInfo, RedisError};
use tokio::time::{Instant, timeout};

use super::send::Trouble;
use crate::credentials::Login;

/// Timeout of a dial and of a reply. Anything slower counts as not responding, as the contract defines it.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);
/// Minimum interval between two dials after a refused connection.
const PAUSE: Duration = Duration::from_millis(10);

/// A connection without timeouts: the callers set them.
pub(crate) async fn dial(address: SocketAddr, login: &Login) -> Result<MultiplexedConnection, RedisError> {
    let mut settings = RedisConnectionInfo::default().set_skip_set_lib_name();
    if let Some(user) = &login.user {
        settings = settings.set_username(user);
    }
    if let Some(password) = &login.password {
        settings = settings.set_password(password);
    }
    let target = ConnectionAddr::Tcp(address.ip().to_string(), address.port());
    let client = Client::open(target.into_connection_info()?.set_redis_settings(settings))?;
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(None)
        .set_response_timeout(None);
    client.get_multiplexed_async_connection_with_config(&config).await
}

/// The connections, by address.
#[derive(Default)]
pub(crate) struct Links(Mutex<HashMap<SocketAddr, Arc<Link>>>);

#[derive(Default)]
struct Link(tokio::sync::Mutex<State>);

#[derive(Default)]
struct State {
    open: Option<MultiplexedConnection>,
    /// Identifies the connection: an error of an earlier connection must not close this one.
    number: u64,
    not_before: Option<Instant>,
    answered: Option<Instant>,
}

/// An open connection and its number.
pub(super) struct Open {
    pub connection: MultiplexedConnection,
    number: u64,
}

impl Links {
    fn link(&self, address: SocketAddr) -> Arc<Link> {
        let mut links = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        links.entry(address).or_default().clone()
    }

    /// The connection to a member; dials if there is none.
    pub(super) async fn open(&self, address: SocketAddr, login: &Login) -> Result<Open, Trouble> {
        let link = self.link(address);
        let mut state = link.0.lock().await;
        if let Some(connection) = state.open.clone() {
            let number = state.number;
            return Ok(Open { connection, number });
        }
        if state.not_before.is_some_and(|until| Instant::now() < until) {
            return Err(Trouble::Rejected);
        }
        let dialled = timeout(PATIENCE, dial(address, login)).await;
        state.not_before = Some(Instant::now() + PAUSE);
        let dialled = dialled.map_err(|_| Trouble::Timeout)?;
        let connection = dialled.map_err(|error| Trouble::of(&error))?;
        state.open = Some(connection.clone());
        state.number += 1;
        let number = state.number;
        Ok(Open { connection, number })
    }

    /// The member replied on its connection.
    pub(super) async fn answered(&self, address: SocketAddr) {
        self.link(address).0.lock().await.answered = Some(Instant::now());
    }

    /// Drops the connection.
    pub(super) async fn close(&self, address: SocketAddr, broken: &Open) {
        let link = self.link(address);
        let mut state = link.0.lock().await;
        if state.number == broken.number {
            state.open = None;
        }
    }

    /// A command timed out. Drops the connection only if the member has not replied to any command recently: a slow
    /// server must not lose the replies that it is about to send.
    pub(super) async fn timed_out(&self, address: SocketAddr, broken: &Open) {
        let lately = self.link(address).0.lock().await.answered;
        if lately.is_none_or(|when| when.elapsed() >= PATIENCE) {
            self.close(address, broken).await;
        }
    }
}

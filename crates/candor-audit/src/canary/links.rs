//! Connections to the members, one each, for all writes.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, ConnectionAddr, IntoConnectionInfo, RedisConnectionInfo, RedisError};
use tokio::time::{Instant, timeout};

use super::send::Trouble;
use crate::credentials::Login;

/// How long a dial may take, and an answer: what is slower is silence, as the contract has it.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);
/// A refused dial is not repeated sooner.
const PAUSE: Duration = Duration::from_millis(10);

/// A connection without deadlines of its own: the callers set them.
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
    /// Which connection this is: an error of an earlier one must not close it.
    number: u64,
    not_before: Option<Instant>,
    answered: Option<Instant>,
}

/// An open connection and which one it is.
pub(super) struct Open {
    pub connection: MultiplexedConnection,
    number: u64,
}

impl Links {
    fn link(&self, address: SocketAddr) -> Arc<Link> {
        let mut links = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        links.entry(address).or_default().clone()
    }

    /// The connection to a member, dialled when there is none.
    pub(super) async fn open(&self, address: SocketAddr, login: &Login) -> Result<Open, Trouble> {
        let link = self.link(address);
        let mut state = link.0.lock().await;
        if let Some(connection) = state.open.clone() {
            let number = state.number;
            return Ok(Open { connection, number });
        }
        if state.not_before.is_some_and(|until| Instant::now() < until) {
            return Err(Trouble::Refused);
        }
        let dialled = timeout(PATIENCE, dial(address, login)).await;
        state.not_before = Some(Instant::now() + PAUSE);
        let dialled = dialled.map_err(|_| Trouble::Silent)?;
        let connection = dialled.map_err(|error| Trouble::of(&error))?;
        state.open = Some(connection.clone());
        state.number += 1;
        let number = state.number;
        Ok(Open { connection, number })
    }

    /// The member answered on its connection.
    pub(super) async fn answered(&self, address: SocketAddr) {
        self.link(address).0.lock().await.answered = Some(Instant::now());
    }

    /// The connection is of no more use.
    pub(super) async fn close(&self, address: SocketAddr, broken: &Open) {
        let link = self.link(address);
        let mut state = link.0.lock().await;
        if state.number == broken.number {
            state.open = None;
        }
    }

    /// A command got no answer. The connection goes only when nobody else got one either: a slow server must not lose
    /// what it is about to answer.
    pub(super) async fn silent(&self, address: SocketAddr, broken: &Open) {
        let lately = self.link(address).0.lock().await.answered;
        if lately.is_none_or(|when| when.elapsed() >= PATIENCE) {
            self.close(address, broken).await;
        }
    }
}

//! Why a member could not be judged, and whether an error is the server's or the auditor's.
//!
//! An auditor without a route to the pods, or without a login, knows nothing about the servers. It must not attribute
//! its own failure to them.

use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;

use redis::{ErrorKind, RedisError, ServerErrorKind};
use serde::Serialize;

/// Why nothing is known of a member.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase", tag = "cause", content = "message")]
pub enum Unreached {
    /// There is no route from the auditor to its address.
    NoRoute(String),
    /// It rejects the auditor's user, its password, or a command that the audit needs.
    LoginRejected(String),
    /// It has not responded since the audit started: it may be down, or the auditor has no route to it.
    #[serde(rename = "neverAnswered")]
    NeverResponded,
    /// All members stopped responding at once: a lost route has the same effect for the auditor.
    #[serde(rename = "allSilent")]
    NoneResponds,
    /// No member has accepted a connection since the audit started.
    NeverAccepted(String),
}

impl fmt::Display for Unreached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRoute(message) => write!(f, "there is no route to it from here: {message}"),
            Self::LoginRejected(message) => write!(f, "it rejects the auditor's login: {message}"),
            Self::NeverResponded => f.write_str("it has not responded since the audit began"),
            Self::NoneResponds => f.write_str("no member responds: the route to them may be lost"),
            Self::NeverAccepted(message) => write!(f, "no member accepts a connection from here: {message}"),
        }
    }
}

/// Whether an error is about the auditor instead of the server.
pub(crate) fn own_trouble(error: &RedisError) -> Option<Unreached> {
    if rejects_login(error) {
        return Some(Unreached::LoginRejected(message(error)));
    }
    let no_route = matches!(
        io_kind(error)?,
        io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::NetworkDown
            | io::ErrorKind::AddrNotAvailable
            | io::ErrorKind::PermissionDenied
    );
    no_route.then(|| Unreached::NoRoute(error.to_string()))
}

fn rejects_login(error: &RedisError) -> bool {
    const CODES: [&str; 3] = ["NOAUTH", "WRONGPASS", "NOPERM"];
    let by_kind = matches!(
        error.kind(),
        ErrorKind::AuthenticationFailed | ErrorKind::Server(ServerErrorKind::NoPerm)
    );
    let errors = error.clone().into_server_errors();
    by_kind || errors.is_some_and(|all| all.iter().any(|(_, one)| CODES.contains(&one.code())))
}

/// The server's message, only once if the server rejected several commands.
fn message(error: &RedisError) -> String {
    let errors = error.clone().into_server_errors();
    let first = errors.as_deref().and_then(<[_]>::first);
    first.map_or_else(|| error.to_string(), |(_, one)| one.to_string())
}

/// The kind of an I/O error. The client wraps the error in an `Arc`.
fn io_kind(error: &RedisError) -> Option<io::ErrorKind> {
    let inner = error.source()?.downcast_ref::<Arc<dyn Error + Send + Sync>>()?;
    Some(inner.downcast_ref::<io::Error>()?.kind())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_route_and_a_rejected_login_are_the_auditors_own_trouble() {
        let io = |kind: io::ErrorKind| RedisError::from(io::Error::from(kind));
        for (error, own) in [
            (io(io::ErrorKind::HostUnreachable), true),
            (io(io::ErrorKind::NetworkUnreachable), true),
            (io(io::ErrorKind::ConnectionRefused), false),
            (io(io::ErrorKind::ConnectionReset), false),
            (
                (ErrorKind::AuthenticationFailed, "Password authentication failed").into(),
                true,
            ),
            ((ServerErrorKind::NoPerm.into(), "no permissions").into(), true),
            (
                (ServerErrorKind::ClusterDown.into(), "The cluster is down").into(),
                false,
            ),
        ] {
            assert_eq!(own_trouble(&error).is_some(), own, "{error}");
        }
    }
}

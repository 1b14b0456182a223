//! What can happen to a request.

use std::time::Duration;

/// What a rule does to the request it chose.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// The request is not sent; the client gets a `Status` with this code and reason.
    Reject {
        /// 409, 410, 429, 500, 503 …
        code: u16,
        /// `Conflict`, `Expired`, `TooManyRequests` …
        reason: &'static str,
        /// For a person.
        message: String,
        /// The header `Retry-After`, in seconds.
        retry_after: Option<u32>,
    },
    /// The request is not sent; after the wait the client gets 504.
    TimeOut(Duration),
    /// The request waits, then goes on.
    Delay(Duration),
    /// The request never reaches the server, and the connection breaks.
    Drop,
    /// The server does what was asked, and the connection breaks before the answer.
    LoseResponse,
    /// The server does what was asked; the client dies before it learns of it, and everything it sends later fails,
    /// until [`Faults::revive`](super::Faults::revive).
    Crash,
    /// A get or list is answered with what was true so many versions ago, as far as the layer has seen it.
    StaleRead {
        /// 1 is the version before the newest.
        back: usize,
    },
    /// What comes through a watch.
    Watch(WatchFault),
    /// Another holder takes the lease that the client writes, and the client gets a conflict.
    LoseLease {
        /// The new holder.
        to: String,
    },
}

/// What happens to the events of a watch. Bookmarks pass: they carry no change.
#[derive(Clone, Debug, PartialEq)]
pub enum WatchFault {
    /// Every event comes so much later; their order is kept.
    Lag(Duration),
    /// Changes of one object within this time arrive as one, the newest.
    Coalesce(Duration),
    /// So many events vanish, from the n-th on (the first is 1).
    Lose {
        /// The first that is lost.
        from: u64,
        /// How many.
        count: u64,
    },
    /// The stream ends after so many events.
    Cut {
        /// Events that still come.
        after: u64,
    },
    /// After so many events the server says 410 and ends the stream: the client must list again.
    Expire {
        /// Events that still come.
        after: u64,
    },
}

impl Fault {
    /// 409, as after a concurrent write.
    pub fn conflict() -> Self {
        Self::reject(
            409,
            "Conflict",
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    /// 410, as after compaction.
    pub fn gone() -> Self {
        Self::reject(
            410,
            "Expired",
            "The provided continue parameter is too old or the resource version is compacted",
        )
    }

    /// 429, with the seconds to wait.
    pub fn too_many_requests(retry_after: u32) -> Self {
        match Self::reject(429, "TooManyRequests", "Too many requests, please try again later.") {
            Self::Reject {
                code, reason, message, ..
            } => Self::Reject {
                code,
                reason,
                message,
                retry_after: Some(retry_after),
            },
            other => other,
        }
    }

    /// 500.
    pub fn internal_error() -> Self {
        Self::reject(
            500,
            "InternalError",
            "Internal error occurred: injected by a fault rule",
        )
    }

    /// 503.
    pub fn unavailable() -> Self {
        Self::reject(
            503,
            "ServiceUnavailable",
            "the server is currently unable to handle the request",
        )
    }

    /// A wait in milliseconds, then on.
    pub fn delay_ms(milliseconds: u64) -> Self {
        Self::Delay(Duration::from_millis(milliseconds))
    }

    fn reject(code: u16, reason: &'static str, message: &str) -> Self {
        Self::Reject {
            code,
            reason,
            message: message.to_owned(),
            retry_after: None,
        }
    }

    /// One word for the log.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Reject { .. } => "reject",
            Self::TimeOut(_) => "time-out",
            Self::Delay(_) => "delay",
            Self::Drop => "drop",
            Self::LoseResponse => "lose-answer",
            Self::Crash => "crash",
            Self::StaleRead { .. } => "stale-read",
            Self::Watch(WatchFault::Lag(_)) => "watch-lag",
            Self::Watch(WatchFault::Coalesce(_)) => "watch-coalesce",
            Self::Watch(WatchFault::Lose { .. }) => "watch-lose",
            Self::Watch(WatchFault::Cut { .. }) => "watch-cut",
            Self::Watch(WatchFault::Expire { .. }) => "watch-expire",
            Self::LoseLease { .. } => "lose-lease",
        }
    }
}

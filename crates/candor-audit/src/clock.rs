//! The only clock: every observation is stamped with the time since the audit started.

use std::fmt;
use std::time::Duration;

use serde::Serialize;
use tokio::time::Instant;

/// A point in time, counted from the start of the audit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub Duration);

impl Moment {
    /// The time from `earlier` to this moment; zero if `earlier` is later.
    pub fn since(self, earlier: Moment) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// This moment plus `wait`.
    #[must_use]
    pub fn after(self, wait: Duration) -> Moment {
        Moment(self.0 + wait)
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "+{:.3} s", self.0.as_secs_f64())
    }
}

impl Serialize for Moment {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        seconds(&self.0, serializer)
    }
}

/// Durations in JSON are seconds with a fraction.
pub(crate) fn seconds<S: serde::Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64())
}

/// When the audit started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub fn start() -> Self {
        Self(Instant::now())
    }

    pub fn now(self) -> Moment {
        Moment(self.0.elapsed())
    }
}

//! What every controller stands on: caches fed by watches, a queue of names, writes that are seen at once, events.
//!
//! Nothing here polls. A controller sleeps until a watch event (or a moment it asked for) puts a name in its queue.

mod cache;
mod informer;
mod queue;
mod recorder;
mod resources;
mod work;
mod write;

pub use cache::{Cache, Listener, ObjectKey};
pub use informer::Sink;
pub use queue::Queue;
pub use recorder::Recorder;
pub use resources::{Resources, Served, follow_all};
pub use work::{Controller, Error, work};
pub use write::Writer;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;

/// The present moment, cut to whole seconds as the API stores it.
///
/// Comparing a stored time with an uncut one would call every stored time "older", and conditions would be
/// rewritten for ever.
pub fn now() -> Time {
    Time(whole_second(Timestamp::now()))
}

fn whole_second(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}

/// Seconds from `earlier` to `later`, negative when they are the other way round.
pub fn seconds_between(earlier: &Time, later: &Time) -> i64 {
    later.0.as_second() - earlier.0.as_second()
}

/// `base` plus so many seconds; a time beyond the calendar stays at `base`.
pub fn after_seconds(base: &Time, seconds: i64) -> Time {
    Time(Timestamp::from_second(base.0.as_second().saturating_add(seconds)).unwrap_or(base.0))
}

//! What all controllers share: caches fed by watches, a work queue, writes that update the caches at once, events.
//!
//! Nothing here polls. A controller sleeps until a watch event (or a requeue) puts a key into its queue.

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

/// The current time, truncated to whole seconds as the API stores it.
///
/// Compared with a time that is not truncated, every stored time would be older, and a controller would rewrite
/// conditions at every reconcile.
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

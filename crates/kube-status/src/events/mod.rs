//! Events: a transition is recorded once, a repetition is counted.
//!
//! - [`Notice`] is what there is to tell; [`Notice::of_transition`] makes one of a condition that turned
//! - [`Recorder`] is the trait a controller is generic over; recording never blocks and never fails
//! - [`RecordedEvents`] is the recorder of tests
//! - `EventPublisher` (feature `client`) writes core v1 Events
//!
//! Core v1, because `events.k8s.io` refuses count, source and firstTimestamp, by which people and tools sort and
//! filter; the newer fields are filled as well. Two notices are the same event when everything but the time is the
//! same, the note included: a different note is different news.

mod notice;
mod recorder;

#[cfg(feature = "client")]
mod publisher;
#[cfg(feature = "client")]
mod series;

pub use notice::{EventKind, Notice};
pub use recorder::{RecordedEvents, Recorder};

#[cfg(feature = "client")]
pub use publisher::{EventPublisher, EventPublisherBuilder};

//! Objects in memory: one revision counter, tables per resource, a bounded history for watches.
//!
//! - [`Object`] is one stored object with its cached JSON, shared by all readers.
//! - [`Store`] holds the tables; writes are compare-and-swap on the object's revision.
//! - [`Watch`] reads the history from a revision onwards. Watchers have no queues: one that falls behind the bounded
//!   history gets an error ([`Compacted`]) instead of taking memory.

mod history;
mod object;
mod tables;
mod watch;

pub use history::{Change, Event};
pub use object::{Object, ObjectKey};
pub use tables::{Compacted, Store, Stored, WriteError};
pub use watch::Watch;

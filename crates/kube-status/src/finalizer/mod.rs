//! A finalizer with a deadline: cleanup is retried, warned about, and given up in time.
//!
//! A finalizer without a deadline is the usual cause of a resource stuck in Terminating. Here cleanup has two parts. The
//! **safe part** is cheap and protects what must outlive the object (remove the owner reference from a database that is to
//! be kept). It runs first in every reconcile, also in the first one after the deadline, and the object is not released
//! before it has succeeded. The **cleanup proper** may take longer: after 30 s there is a warning, after 60 s it is given up
//! (both can be set).
//!
//! - [`Deadline::next`] decides, pure: when the deletion was requested, what was done, what to do next
//! - [`Deadline::report`] is the condition `Deleting` and the events for it
//! - [`Stage`] lists the reasons
//! - `Finalizer` (feature `client`) executes the decision
//!
//! If the safe part itself keeps failing, two promises conflict: never to hang, and never to lose what is to be kept. The
//! second wins: the object stays, its condition reports an error, and the finalizer retries.

mod deadline;
mod report;

#[cfg(feature = "client")]
mod client;

pub use deadline::{Cleaned, Deadline, Done, Moment, Next, Release};
pub use report::{DELETING, Report, Stage};

#[cfg(feature = "client")]
pub use client::{Cleanup, Finalization, Finalizer, FinalizerError};

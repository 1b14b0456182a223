//! A finalizer with a deadline: cleanup is retried, warned about, and given up in time.
//!
//! A finalizer that waits for ever for something that will never come is the usual way to a resource stuck in
//! Terminating. Here cleanup has two parts. The **safe part** is cheap and protects what must outlive the object (take
//! the owner reference off a database that is to be kept); it runs first in every look, also in the first look after
//! the deadline, and nothing is released before it has succeeded. The **cleanup proper** may take its time: it is
//! warned about after 30 s and given up after 60 s (both settable).
//!
//! - [`Deadline::next`] is the decision, pure: what was asked when, what was done, what to do next
//! - [`Deadline::report`] is the same for people: the `Deleting` condition and the events
//! - [`Stage`] lists the reasons
//! - `Finalizer` (feature `client`) does it
//!
//! Two promises pull against each other when the safe part itself keeps failing: never to hang, and never to lose
//! what was to be kept. The second wins: such an object stays, says so as an error, and is tried again.

mod deadline;
mod report;

#[cfg(feature = "client")]
mod client;

pub use deadline::{Cleaned, Deadline, Done, Moment, Next, Release};
pub use report::{DELETING, Report, Stage};

#[cfg(feature = "client")]
pub use client::{Cleanup, Finalizer, FinalizerError, Look};

//! Kubernetes status conditions: set, summary, mirror, aggregate and patch, with the rules and the words of the field.
//!
//! Two generations of the same idea exist. Generation 2 (`metav1.Condition`, polarity) is the default and lives at the
//! top of this crate; generation 1 (severities) lives in [`severity`]. They are never mixed.
//!
//! - [`Draft`] is what a controller says; [`set`] puts it on an object and answers with a [`Change`].
//! - [`Conditioned`] and [`ConditionedMut`] are how an object joins.
//! - [`Summary`], [`Mirror`] and [`Aggregate`] make one condition of several; [`merge`] holds their strategy.
//! - [`Patch`] carries changes to an object that others write to as well.
//! - [`Run`] and [`Allowance`] tell of an operation while it runs.
//! - [`Untyped`] reads objects known only as JSON; [`check`] finds what the API server would refuse.
//! - [`ConditionType`] and [`Reason`] declare what a controller says, once; [`documentation`] writes it down.
//! - [`Order`] is the order people read in.
//! - [`GradedCondition`] is a condition with a severity beside it; every rule takes either ([`Metav1`]).
//!
//! What stands around the rules:
//!
//! - [`readers`] say how other people's objects are doing, with the reason a person needs.
//! - [`events`] tell a transition once and count its repetitions; [`finalizer`] holds an object until it is cleaned up,
//!   and not for ever. Both have a pure part; the feature `client` does it.
//! - `writer` (feature `client`) is the one place that writes status; [`limits`] keep texts within what the API takes.
//! - `conditions_schema` (feature `schemars`) writes the CRD's part of a declaration.
//! - `tree` (feature `tree`) draws objects and conditions for a terminal.
//!
//! The rules are pure: no client, no clock (`now` is an argument). The `k8s-openapi` version feature is the user's.
#![forbid(unsafe_code)]

// The derives name this crate by its name, also when it uses them itself.
extern crate self as kube_status;

/// The README's example, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod aggregate;
mod allowance;
mod declare;
mod draft;
mod graded;
mod malformed;
pub mod merge;
mod mirror;
mod object;
mod order;
mod patch;
mod plural;
mod run;
#[cfg(feature = "schemars")]
mod schema;
mod set;
pub mod severity;
mod status;
mod summary;
mod typed;
mod untyped;

pub use aggregate::Aggregate;
pub use allowance::{Allowance, Phase};
pub use declare::{ConditionType, NoReason, Reason, crd_description, documentation};
pub use draft::{Draft, whole_seconds};
pub use graded::{Cause, GradedCondition, Metav1};
pub use jiff::SignedDuration;
pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
#[cfg(feature = "derive")]
pub use kube_status_derive::{ConditionType, Conditioned, Reason};
pub use malformed::{Malformed, Problem, check};
pub use mirror::Mirror;
pub use object::{ConditionField, Conditioned, ConditionedMut};
pub use order::Order;
pub use patch::{Conflict, Ownership, Patch, PatchOperation, PatchVerb, Patchable};
pub use plural::pluralize;
pub use run::Run;
#[cfg(feature = "schemars")]
pub use schema::{conditions_schema, graded_conditions_schema};
pub use set::{find, is_false, is_true, is_unknown, remove, same_state, same_words, set, set_in, turned_to};
pub use status::{Change, Polarity, Status, UnknownWord};
pub use summary::Summary;
pub use typed::{Negative, Typed};
pub use untyped::{Location, NO_REASON_REPORTED, Readable, Untyped};

pub mod events;
pub mod finalizer;
pub mod limits;
pub mod readers;
#[cfg(feature = "tree")]
pub mod tree;
#[cfg(feature = "client")]
pub mod writer;

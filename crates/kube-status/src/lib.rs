//! Kubernetes status conditions: set, summary, mirror, aggregate and patch, with the rules and messages of Go's helpers.
//!
//! Conditions exist in two generations. Generation 2 (`metav1.Condition`, polarity) is the default and is at the top of
//! this crate; generation 1 (severities) is in [`severity`]. A list holds conditions of one generation. One type combines
//! them: [`GradedCondition`] is a condition of generation 2 with the [`Severity`](severity::Severity) of generation 1.
//!
//! - [`Draft`] is what a controller reports; [`set`] puts it on an object and returns a [`Change`].
//! - [`Conditioned`] and [`ConditionedMut`] make an object usable here.
//! - [`Summary`], [`Mirror`] and [`Aggregate`] make one condition of several; [`merge`] holds their strategy.
//! - [`Patch`] carries changes to an object that others write to as well.
//! - [`Run`] and [`Allowance`] report an operation while it runs.
//! - [`Untyped`] reads objects known only as JSON; [`check`] finds what the API server would reject.
//! - [`ConditionType`] and [`Reason`] declare types and reasons once; [`documentation`] generates their documentation.
//! - [`Order`] is the order of conditions in a list; [`Conventions`] are the order and the rules of an API.
//! - Every rule of generation 2 takes [`Condition`] and [`GradedCondition`] ([`Metav1`]).
//!
//! Beside the rules:
//!
//! - [`readers`] report the health of objects of other controllers, with the cause.
//! - [`events`] record a transition once and count its repetitions; [`finalizer`] holds an object until it is cleaned up,
//!   but not longer than a deadline. The decisions are pure; the feature `client` executes them.
//! - `writer` (feature `client`) writes status; [`limits`] shorten texts to what the API accepts.
//! - `conditions_schema` (feature `schemars`) is the schema of a conditions field for CRDs.
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
mod conventions;
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
pub use conventions::Conventions;
pub use declare::{ConditionType, NoReason, Reason, crd_description, documentation};
pub use draft::{Draft, whole_seconds};
pub use graded::{Cause, GradedCondition, Metav1};
pub use jiff::{SignedDuration, Timestamp};
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
pub use set::{
    find, is_false, is_true, is_unknown, remove, same_except_generation, same_state, set, set_in, transitioned_to,
};
pub use status::{Change, Polarity, Status, UnknownStatus};
pub use summary::Summary;
pub use typed::{Negative, Typed};
pub use untyped::{Location, NO_REASON_REPORTED, Readable, Untyped, UntypedObject};

pub mod events;
pub mod finalizer;
pub mod limits;
pub mod readers;
#[cfg(feature = "tree")]
pub mod tree;
#[cfg(feature = "client")]
pub mod writer;

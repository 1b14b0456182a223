//! The controllers: observe, act, write. The only crate that accesses both Kubernetes and the servers.
//!
//! | topic | module |
//! |---|---|
//! | one reconcile of one cluster, as a linear sequence | `reconcile` |
//! | observing: objects, members, drift, preflight pods, evidence of termination | `observe` |
//! | executing steps: objects, servers, deletion | `act` |
//! | publishing status and events | `write` |
//! | logging decisions; dry run | `decisions`, `dry_run` |
//! | Secrets, passwords, certificates | [`credentials`] |
//! | member monitor: one lightweight connection per member | [`monitor`] |
//! | building Kubernetes objects from a spec, without a client | [`objects`] |
//! | differences between the kinds | [`kinds`] |
//! | watches, caches, queue, leader election, metrics | [`runtime`] |
//! | the objects of an installation, and its RBAC permissions | [`manifests`] |
#![forbid(unsafe_code)]

mod act;
pub mod credentials;
mod decisions;
mod dry_run;
pub mod kinds;
pub mod manifests;
pub mod monitor;
pub mod objects;
mod observe;
mod reconcile;
pub mod runtime;
mod write;

pub use observe::endpoint_parts;
pub use runtime::run::{OperatorError, run};
pub use runtime::settings::{LeaseSettings, Settings};

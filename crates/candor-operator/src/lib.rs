//! The controllers: observe, act, write. The only crate that accesses both Kubernetes and the servers.
//!
//! | topic | module |
//! |---|---|
//! | one reconcile of one cluster, as a linear sequence | `reconcile` |
//! | the queue of clusters to reconcile | `queue`; panics in `panics` |
//! | observing | `observe`, `pods`, `workloads` |
//! | whether the node of a vanished pod confirms its termination | `evidence` |
//! | executing steps | `act`: objects by `apply`, servers by `servers` |
//! | publishing status and events | `write`, truncated by `sizes` |
//! | cleaning up a deleted cluster | `deletion` |
//! | logging decisions; dry run | `decisions`, `rehearsal` |
//! | state that is retained for a cluster between two reconciles | `state` |
//! | watches and caches | `watching`, [`cache`]; objects that do not decode: `guarded` |
//! | ownership of objects, drift detection | `ownership`, `shape` |
//! | settings and certificates that each server uses | `applied`, `served`, `certificates`, `nudge` |
//! | Secrets: users' and the operator's own | `secrets`, `passwords` |
//! | servers that reject the operator's user: proof of membership, repair | [`credentials`] |
//! | building Kubernetes objects from a spec, without a client | [`objects`] |
//! | differences between the kinds | [`kinds`] |
//! | member monitor: one lightweight connection per member | [`pulse`] |
//! | leader election | [`lease`] |
//! | limits that protect clusters from each other | [`limits`] |
//! | `/healthz`, `/readyz`, `/metrics` | [`health`], [`metrics`], over [`http`] |
//! | the objects of an installation, and its RBAC permissions | [`manifests`] |
//! | the operator's settings | [`settings`] |
#![forbid(unsafe_code)]

mod act;
mod applied;
mod apply;
pub mod cache;
mod certificates;
mod context;
pub mod credentials;
mod decisions;
mod deletion;
mod evidence;
mod guarded;
pub mod health;
pub mod http;
pub mod kinds;
pub mod lease;
pub mod limits;
pub mod manifests;
pub mod metrics;
mod nudge;
pub mod objects;
mod observe;
mod orphans;
mod ownership;
mod panics;
mod passwords;
mod pods;
pub mod pulse;
mod queue;
mod reconcile;
mod rehearsal;
mod run;
mod secrets;
mod served;
mod servers;
pub mod settings;
mod shape;
mod sizes;
mod state;
mod trials;
mod volumes;
mod watching;
mod workloads;
mod write;

pub use observe::endpoint_parts;
pub use run::{OperatorError, run};
pub use settings::{LeaseSettings, Settings};

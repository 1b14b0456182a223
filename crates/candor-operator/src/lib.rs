//! The controllers: observe, act, write. The only crate that touches both Kubernetes and the servers.
//!
//! | you look for | it is in |
//! |---|---|
//! | one look at one cluster: the straight line | `reconcile` |
//! | which cluster is looked at next | `queue`; panics in `panics` |
//! | all the reading | `observe`, `pods`, `workloads` |
//! | whether the node of a vanished pod confirms its end | `evidence` |
//! | all the doing | `act`: objects by `apply`, servers by `servers` |
//! | all the telling | `write`, cut to size by `sizes` |
//! | letting go of a deleted cluster | `deletion` |
//! | what was decided and why, in the log; a dry run | `decisions`, `rehearsal` |
//! | what is kept about a cluster between two reconciles | `state` |
//! | what the API server told | `watching`, [`cache`]; objects that do not decode: `guarded` |
//! | whose an object is, and whether it is as it shall be | `ownership`, `shape` |
//! | which server runs with which settings, and serves which certificate | `applied`, `served`, `certificates`, `nudge` |
//! | Secrets: users' and our own | `secrets`, `passwords` |
//! | servers that reject our user: proof that they are ours, repair | [`credentials`] |
//! | Kubernetes objects made from a spec, without a client | [`objects`] |
//! | what differs between the kinds | [`kinds`] |
//! | one light connection per member, and what it tells | [`pulse`] |
//! | who acts, of several operators | [`lease`] |
//! | how much one cluster may cost the others | [`limits`] |
//! | `/healthz`, `/readyz`, `/metrics` | [`health`], [`metrics`], over [`http`] |
//! | what an installation consists of, and its rights | [`manifests`] |
//! | what it is started with | [`settings`] |
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

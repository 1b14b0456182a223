//! What runs the controllers: watches and caches, the queue, leader election, health and metrics.
//!
//! | topic | module |
//! |---|---|
//! | starting and stopping | `run`, with the [`settings`] of the operator |
//! | what all reconciles share; what is retained for one cluster | `context`, `state` |
//! | watches; the cache of each watched kind; objects that do not decode | `watching/`, `caches` of [`cache`], `guarded` |
//! | the queue of clusters to reconcile; panics | `queue`, `panics` |
//! | leader election | [`lease`] |
//! | limits that protect clusters from each other | [`limits`] |
//! | `/healthz`, `/readyz`, `/metrics` | [`health`], [`metrics`], over [`http`] |

pub mod cache;
pub(crate) mod caches;
pub(crate) mod context;
pub(crate) mod guarded;
pub mod health;
pub mod http;
pub mod lease;
pub mod limits;
pub mod metrics;
pub(crate) mod panics;
pub(crate) mod queue;
pub(crate) mod run;
pub mod settings;
pub(crate) mod state;
pub(crate) mod watching;

//! `RedkeyCluster`: from its spec to the objects that Kubernetes runs, and the API of its agent.
//!
//! | topic | module |
//! |---|---|
//! | `spec.config`: `redis.conf` text, defaults, owned keys, passwords, memory | [`config`] |
//! | Kubernetes objects built from a spec, without a client | [`objects`] |
//! | one reconcile: observe, plan, act, report, write | `reconcile`, `observe/`, `act` |
//! | taking over a cluster of the existing operator, and standing back while that runs | `adoption`, `other_operator` |
//! | Robin as the operator observes it, and when it counts as dead | `robin_state` |
//! | what happens to volumes when the cluster is deleted | `deletion` |
//! | writing objects, and reverting edits by hand | `drift` |
//! | Robin's HTTP API, without its implementation of the state | [`robin`] |

mod act;
mod adoption;
pub mod config;
mod deletion;
mod drift;
pub mod objects;
mod observe;
pub(crate) mod other_operator;
pub(crate) mod reconcile;
pub mod robin;
mod robin_state;
mod storage;

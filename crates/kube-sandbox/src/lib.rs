//! **A Kubernetes in one process, for trying and testing operators. It is never for production.**
//!
//! | you look for | it is in |
//! |---|---|
//! | the library's front door: start, stop, clients, kubeconfig | [`Sandbox`] |
//! | objects in memory, revisions, history, compaction | [`store`] |
//! | HTTPS, routes, verbs, watch, users, RBAC, discovery | [`server`] |
//! | the built-in kinds and the CRDs, their columns and OpenAPI | [`kinds`] |
//! | structural schemas: defaulting, pruning, validation, CEL | [`schema`] |
//! | defaults and rules of the built-in kinds | [`validation`] |
//! | JSON, merge and strategic patches | [`patch`] |
//! | server-side apply and managed fields | [`apply`] |
//! | the controllers | [`controllers`] |
//! | the scheduler | [`scheduler`] |
//! | pods as local processes | [`kubelet`] |
//! | everything that can be made to go wrong | [`faults`] |
//! | the errors as clients see them | [`status`] |

pub mod apply;
pub mod controllers;
pub mod faults;
pub mod kinds;
pub mod kubelet;
pub mod patch;
mod sandbox;
pub mod scheduler;
pub mod schema;
pub mod server;
pub mod status;
pub mod store;
pub mod validation;

pub use sandbox::{Builder, Sandbox, StartError};

//! **A Kubernetes in one process, for trying and testing operators. It is never for production.**
//!
//! | what | where | feature |
//! |---|---|---|
//! | start, stop, clients, kubeconfig | [`Sandbox`] | `api-server` |
//! | objects in memory, revisions, history, compaction | [`store`] | `api-server` |
//! | HTTPS, routes, verbs, watch, users, RBAC, discovery | [`server`] | `api-server` |
//! | the built-in kinds and the CRDs, their columns and OpenAPI | [`kinds`] | `api-server` |
//! | structural schemas: defaulting, pruning, validation, CEL | [`schema`] | `api-server` |
//! | defaults and rules of the built-in kinds | [`validation`] | `api-server` |
//! | JSON, merge and strategic patches | [`mod@patch`] | `api-server` |
//! | server-side apply and managed fields | [`mod@apply`] | `api-server` |
//! | the controllers | [`controllers`] | `controllers` |
//! | the scheduler | [`scheduler`] | `controllers` |
//! | pods as local processes | [`kubelet`] | `kubelet` |
//! | faults between a client and an API server | [`faults`] | `faults` |
//! | logs and exec, as the API server requests them of the kubelet | [`pod_access`] | |
//! | errors as clients receive them | [`status`] | |
//! | quantities such as `500m` | [`quantity`] | |
//!
//! All features are on by default. Each part needs only the API of Kubernetes, so each can be used alone: the
//! controllers, the kubelet and the faults work on any API server. [`Sandbox`] runs those parts that are compiled in.

#[cfg(feature = "api-server")]
pub mod apply;
#[cfg(feature = "controllers")]
pub mod controllers;
#[cfg(feature = "faults")]
pub mod faults;
#[cfg(feature = "api-server")]
pub mod kinds;
#[cfg(feature = "kubelet")]
pub mod kubelet;
#[cfg(feature = "api-server")]
pub mod patch;
pub mod pod_access;
pub mod quantity;
#[cfg(feature = "api-server")]
mod sandbox;
#[cfg(feature = "controllers")]
pub mod scheduler;
#[cfg(feature = "api-server")]
pub mod schema;
#[cfg(feature = "api-server")]
pub mod server;
pub mod status;
#[cfg(feature = "api-server")]
pub mod store;
#[cfg(feature = "api-server")]
pub mod validation;

#[cfg(feature = "api-server")]
pub use sandbox::{Builder, Sandbox, StartError};

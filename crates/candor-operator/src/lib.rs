//! The controllers: observe, act, write. The only crate that touches both Kubernetes and the servers.
//!
//! | you look for | it is in |
//! |---|---|
//! | Kubernetes objects made from a spec, without a client | [`objects`] |
//! | one light connection per member, and what it tells | [`pulse`] |
#![forbid(unsafe_code)]

pub mod objects;
pub mod pulse;

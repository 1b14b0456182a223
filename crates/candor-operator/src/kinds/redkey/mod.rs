//! `RedkeyCluster`: from its spec to the objects that Kubernetes runs, and the API of its agent.
//!
//! | you look for | it is in |
//! |---|---|
//! | `spec.config`: `redis.conf` text, defaults, owned keys, passwords, memory | [`config`] |
//! | Kubernetes objects made from a spec, without a client | [`objects`] |
//! | Robin's HTTP API, without what stands behind it | [`robin`] |

pub mod config;
pub mod objects;
pub mod robin;

//! `RedkeyCluster`: from its spec to the objects that Kubernetes runs, and the API of its agent.
//!
//! | topic | module |
//! |---|---|
//! | `spec.config`: `redis.conf` text, defaults, owned keys, passwords, memory | [`config`] |
//! | Kubernetes objects built from a spec, without a client | [`objects`] |
//! | Robin's HTTP API, without its implementation of the state | [`robin`] |

pub mod config;
pub mod objects;
pub mod robin;

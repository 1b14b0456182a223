//! `RedkeyCluster`: from its spec to the objects that Kubernetes runs.
//!
//! | you look for | it is in |
//! |---|---|
//! | `spec.config`: `redis.conf` text, defaults, owned keys, passwords, memory | [`config`] |

pub mod config;

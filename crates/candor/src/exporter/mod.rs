//! Metrics of a server for Prometheus, under the names that dashboards for Redis exporters use.
//!
//! | you look for | it is in |
//! |---|---|
//! | which line of `INFO` becomes which metric | [`tables`] |
//! | from a server's replies to the Prometheus text format | [`figures`] |
//! | queries to the server, and HTTP | [`mod@serve`] |
//! | the server's readiness, for the kubelet | [`readiness`] |
//! | that alerts and the dashboard use only exposed metrics (test) | `monitoring` |

mod figures;
#[cfg(test)]
mod monitoring;
mod readiness;
mod serve;
mod tables;

pub use serve::{Server, serve};

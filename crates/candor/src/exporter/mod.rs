//! A server's figures for Prometheus, under the names that dashboards for Redis exporters use.
//!
//! | you look for | it is in |
//! |---|---|
//! | which line of `INFO` becomes which metric | [`tables`] |
//! | from a server's answers to the text that Prometheus reads | [`figures`] |
//! | asking the server, and HTTP | [`mod@serve`] |
//! | the server's readiness, for the kubelet | [`readiness`] |

mod figures;
#[cfg(test)]
mod monitoring;
mod readiness;
mod serve;
mod tables;

pub use serve::{Server, serve};

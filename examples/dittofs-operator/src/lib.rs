//! An operator for DittoFS, an NFS server that may have a PostgreSQL beside it: the worked example of `kube-status`.
//!
//! A reconcile is one straight line:
//!
//! ```text
//! observe ─▶ Observation ─▶ plan ─▶ Plan ─▶ act ─▶ Outcome ─▶ report ─▶ status, events
//! ```
//!
//! | you look for | it is in |
//! |---|---|
//! | the custom resource | [`api`] |
//! | every condition, reason and event, with its message | [`conditions`] |
//! | what there is: all the reading | [`observe`] |
//! | the configuration, judged and hashed | [`config`] |
//! | what there should be: the objects | [`objects`] |
//! | the difference: what to do next (pure) | [`plan`] |
//! | doing it: all the writing but one | [`act`] |
//! | what to report: status and events (pure) | [`report`] |
//! | how a server is deleted | [`cleanup`] |
//! | the line itself, and what wakes it | [`controller`], [`watches`] |

pub mod act;
pub mod api;
pub mod cleanup;
pub mod conditions;
pub mod config;
pub mod controller;
pub mod objects;
pub mod observe;
pub mod plan;
pub mod report;
pub mod watches;

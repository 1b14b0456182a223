//! Checks from outside whether the status of a `ValkeyCluster` or a `RedkeyCluster` is true.
//!
//! On one clock, an [`Auditor`] writes canaries over all slots, queries every server for its role and its links, and
//! watches the object's status. Its report states for how long status said Ready while the cluster was not ready, for
//! how long the cluster was ready while status did not say so, how long a slot accepted no write, and which
//! acknowledged writes are lost. The auditor shares no code with the operator, so that a bug cannot hide itself.
//!
//! | you look for | it is in |
//! |---|---|
//! | entry point: start, current state, finish | [`Auditor`] |
//! | the result, as table and as JSON | [`Audit`] |
//! | the queries to a server, and how replies are parsed | `facts`, `observer` |
//! | what counts as a defect | [`Defect`] |
//! | which members could not be queried, and why | [`Unreached`] |
//! | the timeline, and the figures computed from it | `timeline`, `judge` |
//! | the result, in one sentence | [`AuditResult`] |
//! | the writes: keys, routes, ledger | `canary` |

mod auditor;
mod canary;
mod clock;
mod credentials;
mod defect;
mod facts;
mod histogram;
mod judge;
mod object;
mod observer;
mod reach;
mod report;
mod result;
mod slots;
mod timeline;

pub use auditor::{AuditError, Auditor, ClusterRef, Options};
pub use clock::Moment;
pub use credentials::Login;
pub use defect::Defect;
pub use judge::Now;
pub use object::Kind;
pub use reach::Unreached;
pub use report::{Audit, Latency, NotJudged, Outage, Spell, Truth, Writes};
pub use result::{AuditResult, Outcome};

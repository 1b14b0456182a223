//! Whether the status of a `ValkeyCluster` is true, seen from outside.
//!
//! On one clock an [`Auditor`] writes canaries over all slots, asks every server about its role and its links, and
//! watches the object's status. At the end it says for how long status said Ready while it was not so, for how long
//! it was so and status did not say it, how long a slot took no write, and which acknowledged writes are gone. It
//! shares no code with the operator, so that no mistake can hide itself.
//!
//! | you look for | it is in |
//! |---|---|
//! | the front door: start, look, finish | [`Auditor`] |
//! | the result, as table and as JSON | [`Audit`] |
//! | what is asked of a server, and how it is read | `facts`, `look` |
//! | what counts as wrong | [`Defect`] |
//! | which members could be asked at all | [`Unreached`] |
//! | what happened when, and the figures of it | `timeline`, `judge` |
//! | the verdict, in one sentence | [`Verdict`] |
//! | the writes: keys, routes, ledger | `canary` |

mod auditor;
mod canary;
mod clock;
mod credentials;
mod defect;
mod facts;
mod histogram;
mod judge;
mod look;
mod object;
mod reach;
mod report;
mod slots;
mod timeline;
mod verdict;

pub use auditor::{AuditError, Auditor, ClusterRef, Options};
pub use clock::Moment;
pub use credentials::Login;
pub use defect::Defect;
pub use judge::Now;
pub use reach::Unreached;
pub use report::{Audit, Latency, NotJudged, Outage, Spell, Truth, Writes};
pub use verdict::{Outcome, Verdict};

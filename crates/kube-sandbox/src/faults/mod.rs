//! Faults between a client and any API server.
//!
//! A [`Faults`] holds the [`Rule`]s and remembers what it did. It stands in front of a server as a tower [`FaultLayer`]
//! (in the client's process) or as a `FaultProxy` (between processes, with the feature `api-server`, which has its
//! certificates):
//!
//! ```
//! use kube_sandbox::faults::{Fault, Faults, Rule, Verb};
//!
//! let faults = Faults::seeded(7)
//!     .with(Rule::new("first status write conflicts").writes().subresource("status").nth(1).then(Fault::conflict()))
//!     .with(Rule::new("every third list is late").verb(Verb::List).every(3).then(Fault::delay_ms(200)));
//! assert_eq!(faults.log().len(), 0);
//! ```
//!
//! | what | where |
//! |---|---|
//! | which request a rule means, and which of its matches | [`rule`](Rule) |
//! | what can happen to it | [`Fault`], [`WatchFault`] |
//! | how a request is read: verb, resource, name | [`RequestInfo`] |
//! | counters, the log, the crash | [`Faults`], [`Record`] |
//! | in the client's process | [`FaultLayer`] |
//! | between processes | `FaultProxy` |

mod fault;
mod handle;
mod layer;
mod lease;
#[cfg(feature = "api-server")]
mod proxy;
mod request;
mod rule;
mod snapshots;
mod watch;

pub use fault::{Fault, WatchFault};
pub use handle::{Done, Faults, Record};
pub use layer::{FaultLayer, FaultService, Lost, ResponseBody};
#[cfg(feature = "api-server")]
pub use proxy::{FaultProxy, ProxyError};
pub use request::{RequestInfo, Verb};
pub use rule::Rule;

#[cfg(all(test, feature = "api-server"))]
mod tests;

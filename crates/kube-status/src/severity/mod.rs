//! Generation 1: conditions with severities, as the Cluster API proposal wrote them.
//!
//! A bad condition has a severity: an [`Severity::Error`] needs attention, a [`Severity::Warning`] may need it, an
//! [`Severity::Info`] is work in progress. There is no observed generation, and empty fields are omitted.
//!
//! Three rules of the proposal differ from what Go's helpers do. [`Rules`] has both; the default is the proposal's.

mod aggregate;
mod condition;
mod merge;
mod mirror;
mod set;
mod summary;

use serde::{Deserialize, Serialize};

pub use aggregate::Aggregate;
pub(crate) use condition::severity_name;
pub use condition::{Condition, Draft};
pub use mirror::Mirror;
pub use set::{find, is_false, is_true, is_unknown, remove, same_state, set, set_in};
pub use summary::Summary;

use crate::Order;

/// The type that a summary sets, and the one that mirror and aggregate read.
///
/// ```
/// assert_eq!(kube_status::severity::READY, "Ready");
/// ```
pub const READY: &str = "Ready";

/// Ready first, the rest by name.
///
/// ```
/// use kube_status::severity::ORDER;
/// assert!(ORDER.compare("Ready", "Alpha").is_lt() && ORDER.compare("Paused", "Zulu").is_lt());
/// ```
pub const ORDER: Order<'static> = Order::new(&[READY], &[]);

/// How bad a bad condition is. Ordered by weight: an error is the least of them in a sort, so that it comes first.
///
/// ```
/// use kube_status::severity::Severity;
/// assert!(Severity::Error < Severity::Warning && Severity::Warning < Severity::Info);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub enum Severity {
    /// It is broken.
    Error,
    /// It may still work, but needs attention.
    Warning,
    /// It is in progress.
    Info,
}

impl Severity {
    /// The word as the API spells it.
    ///
    /// ```
    /// assert_eq!(kube_status::severity::Severity::Info.as_str(), "Info");
    /// ```
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "Error",
            Self::Warning => "Warning",
            Self::Info => "Info",
        }
    }
}

impl std::fmt::Display for Severity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The three rules in which the proposal and Go's helpers differ.
///
/// ```
/// use kube_status::severity::Rules;
/// assert!(Rules::PROPOSAL.missing_severity_is_error);
/// assert!(Rules::GO.any_change_moves_time);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// A bad condition without a severity counts as an error; otherwise it comes after everything else.
    pub missing_severity_is_error: bool,
    /// Any change of status, reason, severity or message moves the transition time; otherwise only a change of status.
    pub any_change_moves_time: bool,
    /// A negative condition that is `True` counts by its severity in a merge; otherwise polarity is ignored and it
    /// counts as good news, as in the first releases of Go's helpers.
    pub negative_counts_by_severity: bool,
}

impl Rules {
    /// The rules of the proposal.
    ///
    /// ```
    /// use kube_status::severity::Rules;
    /// assert_eq!(Rules::default(), Rules::PROPOSAL);
    /// ```
    pub const PROPOSAL: Self = Self {
        missing_severity_is_error: true,
        any_change_moves_time: false,
        negative_counts_by_severity: true,
    };

    /// What Go's helpers do today.
    ///
    /// ```
    /// use kube_status::severity::Rules;
    /// assert_ne!(Rules::GO, Rules::PROPOSAL);
    /// ```
    pub const GO: Self = Self {
        missing_severity_is_error: false,
        any_change_moves_time: true,
        negative_counts_by_severity: true,
    };
}

impl Default for Rules {
    fn default() -> Self {
        Self::PROPOSAL
    }
}

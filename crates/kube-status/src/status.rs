//! The three values of a status, which of them is good, and what a write changed.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::{Deserialize, Serialize};

/// The status of a condition.
///
/// ```
/// use kube_status::Status;
/// assert_eq!("False".parse::<Status>(), Ok(Status::False));
/// assert!("Maybe".parse::<Status>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub enum Status {
    /// The condition holds.
    True,
    /// The condition does not hold.
    False,
    /// Not known.
    Unknown,
}

/// A status that is not `True`, `False` or `Unknown`.
///
/// ```
/// let error = "Maybe".parse::<kube_status::Status>().unwrap_err();
/// assert_eq!(error.to_string(), "status \"Maybe\" must be one of True, False, Unknown");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("status {0:?} must be one of True, False, Unknown")]
pub struct UnknownStatus(pub String);

impl Status {
    /// The word as the API spells it.
    ///
    /// ```
    /// assert_eq!(kube_status::Status::True.as_str(), "True");
    /// ```
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }

    /// How a merge reads a stored status: whatever is neither `True` nor `False` is unknown.
    ///
    /// ```
    /// assert_eq!(kube_status::Status::read("Maybe"), kube_status::Status::Unknown);
    /// ```
    pub fn read(word: &str) -> Self {
        match word {
            "True" => Self::True,
            "False" => Self::False,
            _ => Self::Unknown,
        }
    }

    /// The status of a stored condition, as [`Status::read`] sees it.
    ///
    /// ```
    /// use kube_status::{Draft, Status};
    /// let stored = Draft::new("Ready", Status::True, "AllGood").into_condition(1, jiff::Timestamp::UNIX_EPOCH);
    /// assert_eq!(Status::of(&stored), Status::True);
    /// ```
    pub fn of(condition: &Condition) -> Self {
        Self::read(&condition.status)
    }
}

impl From<bool> for Status {
    fn from(value: bool) -> Self {
        if value { Self::True } else { Self::False }
    }
}

impl FromStr for Status {
    type Err = UnknownStatus;

    fn from_str(word: &str) -> Result<Self, UnknownStatus> {
        match word {
            "True" => Ok(Self::True),
            "False" => Ok(Self::False),
            "Unknown" => Ok(Self::Unknown),
            other => Err(UnknownStatus(other.to_owned())),
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<Status> for Cow<'static, str> {
    fn from(status: Status) -> Self {
        Cow::Borrowed(status.as_str())
    }
}

/// Which status of a type is good news.
///
/// ```
/// use kube_status::{Polarity, Status};
/// assert_eq!(Polarity::Negative.good(), Status::False);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Polarity {
    /// `True` is good: `Ready`, `Available`, `UpgradeSucceeded`.
    #[default]
    Positive,
    /// `True` is bad: `Degraded`, `Paused`, `ScalingUp`.
    Negative,
}

impl Polarity {
    /// The status that says all is well.
    ///
    /// ```
    /// use kube_status::{Polarity, Status};
    /// assert_eq!(Polarity::Positive.good(), Status::True);
    /// ```
    pub const fn good(self) -> Status {
        match self {
            Self::Positive => Status::True,
            Self::Negative => Status::False,
        }
    }

    /// The status that says something is wrong.
    ///
    /// ```
    /// use kube_status::{Polarity, Status};
    /// assert_eq!(Polarity::Negative.bad(), Status::True);
    /// ```
    pub const fn bad(self) -> Status {
        match self {
            Self::Positive => Status::False,
            Self::Negative => Status::True,
        }
    }
}

/// What a write to a list of conditions changed. It decides whether to send the status and whether to record an event, so
/// it must be used.
///
/// Ordered by weight: the largest of several changes says what happened as a whole.
///
/// ```
/// use kube_status::Change;
/// let whole = [Change::Nothing, Change::Status, Change::Text].into_iter().max().unwrap();
/// assert!(whole.must_write() && whole.is_transition());
/// ```
#[must_use = "says whether the status must be written and whether an event is due"]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Change {
    /// The list is as it was: nothing to send.
    Nothing,
    /// Reason, message or observed generation changed: send, but there is no transition.
    Text,
    /// A condition was added or removed or changed its status: send, and record an event.
    Status,
}

impl Change {
    /// Whether the list differs from before.
    ///
    /// ```
    /// use kube_status::Change;
    /// assert!(Change::Text.must_write() && !Change::Nothing.must_write());
    /// ```
    pub const fn must_write(self) -> bool {
        !matches!(self, Self::Nothing)
    }

    /// Whether a condition was added or removed or changed its status.
    ///
    /// ```
    /// use kube_status::Change;
    /// assert!(Change::Status.is_transition() && !Change::Text.is_transition());
    /// ```
    pub const fn is_transition(self) -> bool {
        matches!(self, Self::Status)
    }

    /// Both changes as one: the heavier of the two.
    ///
    /// ```
    /// use kube_status::Change;
    /// assert_eq!(Change::Text.and(Change::Nothing), Change::Text);
    /// ```
    pub fn and(self, other: Self) -> Self {
        self.max(other)
    }
}

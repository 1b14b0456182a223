//! A condition type with its polarity: what every constructor takes that turns "good" and "bad" into a status.

use std::borrow::Cow;

use crate::graded::Grade;
use crate::severity::Severity;
use crate::{Cause, Draft, Polarity};

/// The name of a condition type and which status of it is good. A plain string is positive, [`Negative`] turns it
/// round, and a declared enum (`#[derive(ConditionType)]`) knows for itself.
///
/// ```
/// use kube_status::{Negative, Polarity, Typed};
/// assert_eq!("Ready".into_parts(), ("Ready".into(), Polarity::Positive));
/// assert_eq!(Negative("Degraded").into_parts(), ("Degraded".into(), Polarity::Negative));
/// ```
pub trait Typed<'a> {
    /// Name and polarity.
    fn into_parts(self) -> (Cow<'a, str>, Polarity);
}

impl<'a> Typed<'a> for &'a str {
    fn into_parts(self) -> (Cow<'a, str>, Polarity) {
        (Cow::Borrowed(self), Polarity::Positive)
    }
}

impl<'a> Typed<'a> for String {
    fn into_parts(self) -> (Cow<'a, str>, Polarity) {
        (Cow::Owned(self), Polarity::Positive)
    }
}

/// A type of which `True` is bad.
///
/// ```
/// use kube_status::{Draft, Negative, Status};
/// assert_eq!(Draft::bad(Negative("Degraded"), "DiskFull").status, Status::True);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Negative<T>(pub T);

impl<'a, T: Into<Cow<'a, str>>> Typed<'a> for Negative<T> {
    fn into_parts(self) -> (Cow<'a, str>, Polarity) {
        (self.0.into(), Polarity::Negative)
    }
}

impl<'a> Draft<'a> {
    /// All is well: `True` for a positive type, `False` for a negative one.
    ///
    /// ```
    /// use kube_status::{Draft, Negative, Status};
    /// assert_eq!(Draft::good("Ready", "AllGood").status, Status::True);
    /// assert_eq!(Draft::good(Negative("Degraded"), "AllGood").status, Status::False);
    /// ```
    pub fn good(type_: impl Typed<'a>, reason: impl Into<Cow<'a, str>>) -> Self {
        let (name, polarity) = type_.into_parts();
        Self::new(name, polarity.good(), reason)
    }

    /// Something is wrong: `False` for a positive type, `True` for a negative one. The reason brings the severity
    /// (see [`Cause`]); a reason without one is an error.
    ///
    /// ```
    /// use kube_status::{Draft, Negative, Status};
    /// assert_eq!(Draft::bad(Negative("Degraded"), "DiskFull").status, Status::True);
    /// ```
    pub fn bad(type_: impl Typed<'a>, reason: impl Cause<'a>) -> Self {
        let (name, polarity) = type_.into_parts();
        let (reason, severity, expected) = reason.into_parts();
        let grade = Grade {
            status: polarity.bad(),
            severity: severity.unwrap_or(Severity::Error),
            expected,
        };
        Self {
            grade: Some(grade),
            ..Self::new(name, polarity.bad(), reason)
        }
    }

    /// Not known.
    ///
    /// ```
    /// use kube_status::{Draft, Status};
    /// assert_eq!(Draft::unknown("Ready", "NoAnswer").status, Status::Unknown);
    /// ```
    pub fn unknown(type_: impl Typed<'a>, reason: impl Into<Cow<'a, str>>) -> Self {
        Self::new(type_.into_parts().0, crate::Status::Unknown, reason)
    }
}

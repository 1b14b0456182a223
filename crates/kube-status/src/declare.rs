//! Condition types and reasons, declared once as enums: a typo does not compile, and the documentation and the CRD's
//! description come from the same place.

use std::fmt::Write;

use jiff::SignedDuration;

use crate::severity::Severity;
use crate::{Polarity, Status};

/// An enum of condition types. Write it with `#[derive(ConditionType)]`.
///
/// Each variant is a type; its doc comment is its meaning; `#[condition(negative)]` says that `True` is bad,
/// `#[condition(name = "APIServerReady")]` spells a name that is not the variant's, and
/// `#[condition(reasons(Starting, Up))]` names the reasons it is given with.
///
/// ```
/// use kube_status::{ConditionType, Draft, Polarity, Reason, Status};
///
/// /// Why a cache is as it is.
/// #[derive(Clone, Copy, Debug, PartialEq, Eq, Reason)]
/// enum CacheReason {
///     /// Every member answers.
///     AllUp,
///     /// Members are being started.
///     #[reason(severity = Info, expected = "5m")]
///     Starting,
///     /// A disk is full; nothing is written.
///     #[reason(severity = Error)]
///     DiskFull,
/// }
///
/// /// The conditions of a Cache.
/// #[derive(Clone, Copy, Debug, PartialEq, Eq, ConditionType)]
/// #[condition(reasons = CacheReason)]
/// enum CacheCondition {
///     /// The cache serves reads and writes.
///     #[condition(reasons(AllUp, Starting))]
///     Ready,
///     /// The cache serves, but not as it should.
///     #[condition(negative, reasons(DiskFull))]
///     Degraded,
/// }
///
/// assert_eq!(CacheCondition::Degraded.polarity(), Polarity::Negative);
/// let draft = Draft::bad(CacheCondition::Degraded, CacheReason::DiskFull).message("node 3");
/// assert_eq!((&*draft.type_, draft.status, &*draft.reason), ("Degraded", Status::True, "DiskFull"));
/// ```
///
/// A name that was not declared does not compile:
///
/// ```compile_fail
/// use kube_status::{ConditionType, is_true};
/// #[derive(Clone, Copy, ConditionType)]
/// enum Cache {
///     /// It serves.
///     Ready,
/// }
/// let typo = is_true(&[], Cache::Raedy);
/// ```
///
/// Nor does a reason that its enum does not have:
///
/// ```compile_fail
/// use kube_status::{ConditionType, Reason};
/// #[derive(Clone, Copy, Reason)]
/// enum Why {
///     /// All is well.
///     Up,
/// }
/// #[derive(Clone, Copy, ConditionType)]
/// #[condition(reasons = Why)]
/// enum Cache {
///     /// It serves.
///     #[condition(reasons(Down))]
///     Ready,
/// }
/// ```
///
/// Nor one without a doc comment, because the documentation is made of them:
///
/// ```compile_fail
/// #[derive(Clone, Copy, kube_status::ConditionType)]
/// enum Cache {
///     Ready,
/// }
/// ```
pub trait ConditionType: Copy + AsRef<str> + 'static {
    /// The reasons these types are given with.
    type Reason: Reason;

    /// Every type, in the order of declaration.
    const ALL: &'static [Self];

    /// The name as the API spells it.
    fn name(self) -> &'static str;

    /// Which status is good.
    fn polarity(self) -> Polarity;

    /// What it means.
    fn doc(self) -> &'static str;

    /// The reasons it is given with; none where the declaration does not say.
    fn reasons(self) -> &'static [Self::Reason];
}

/// An enum of reasons. Write it with `#[derive(Reason)]`.
///
/// Each variant is a reason; its doc comment is its meaning; `#[reason(severity = Warning)]` says how bad it is, and
/// `#[reason(severity = Info, expected = "10m")]` after how long an info becomes a warning.
///
/// ```
/// use kube_status::severity::Severity;
/// use kube_status::Reason;
/// #[derive(Clone, Copy, Reason)]
/// enum VpcReason {
///     /// The network is being made.
///     #[reason(severity = Info, expected = "10m")]
///     Provisioning,
/// }
/// assert_eq!(VpcReason::Provisioning.severity(), Some(Severity::Info));
/// ```
///
/// Only an info has an expected duration; a typo in a severity is a compile error too:
///
/// ```compile_fail
/// #[derive(Clone, Copy, kube_status::Reason)]
/// enum VpcReason {
///     /// It failed.
///     #[reason(severity = Error, expected = "10m")]
///     Failed,
/// }
/// ```
pub trait Reason: Copy + AsRef<str> + 'static {
    /// Every reason, in the order of declaration.
    const ALL: &'static [Self];

    /// The name as the API spells it.
    fn name(self) -> &'static str;

    /// How bad it is; nothing for the reasons of a good or unknown state.
    fn severity(self) -> Option<Severity>;

    /// How long it may take before it is more than information.
    fn expected(self) -> Option<SignedDuration>;

    /// What it means.
    fn doc(self) -> &'static str;
}

/// For condition types that declare no reasons.
///
/// ```
/// use kube_status::{ConditionType, NoReason, Reason};
/// #[derive(Clone, Copy, ConditionType)]
/// enum Tiny {
///     /// It serves.
///     Ready,
/// }
/// fn reasons<T: ConditionType<Reason = NoReason>>() -> usize {
///     T::Reason::ALL.len()
/// }
/// assert_eq!(reasons::<Tiny>(), 0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoReason {}

impl AsRef<str> for NoReason {
    fn as_ref(&self) -> &str {
        match *self {}
    }
}

impl Reason for NoReason {
    const ALL: &'static [Self] = &[];

    fn name(self) -> &'static str {
        match self {}
    }
    fn severity(self) -> Option<Severity> {
        match self {}
    }
    fn expected(self) -> Option<SignedDuration> {
        match self {}
    }
    fn doc(self) -> &'static str {
        match self {}
    }
}

/// The documentation of declared types: a table of the types and a table of their reasons, in Markdown.
///
/// ```
/// use kube_status::{ConditionType, documentation};
/// #[derive(Clone, Copy, ConditionType)]
/// enum Tiny {
///     /// It serves.
///     Ready,
/// }
/// assert_eq!(
///     documentation::<Tiny>(),
///     "| Type | Good | Meaning | Reasons |\n|---|---|---|---|\n| `Ready` | True | It serves. |  |\n",
/// );
/// ```
pub fn documentation<T: ConditionType>() -> String {
    let mut out = String::from("| Type | Good | Meaning | Reasons |\n|---|---|---|---|\n");
    for &type_ in T::ALL {
        let reasons: Vec<String> = type_.reasons().iter().map(|r| format!("`{}`", r.name())).collect();
        let (name, good, doc) = (type_.name(), type_.polarity().good(), cell(type_.doc()));
        let _ = writeln!(out, "| `{name}` | {good} | {doc} | {} |", reasons.join(", "));
    }
    if T::Reason::ALL.is_empty() {
        return out;
    }
    out.push_str("\n| Reason | Severity | Expected within | Meaning |\n|---|---|---|---|\n");
    for &reason in T::Reason::ALL {
        let severity = reason.severity().map_or("", Severity::as_str);
        let expected = reason.expected().map(|d| format!("{d:#}")).unwrap_or_default();
        let _ = writeln!(
            out,
            "| `{}` | {severity} | {expected} | {} |",
            reason.name(),
            cell(reason.doc())
        );
    }
    out
}

/// A pipe or a line break would end the cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

/// The description of the `conditions` field in a CRD: every type, what is good, what it means.
///
/// ```
/// use kube_status::{ConditionType, crd_description};
/// #[derive(Clone, Copy, ConditionType)]
/// enum Tiny {
///     /// It serves.
///     Ready,
///     /// It serves badly.
///     #[condition(negative)]
///     Degraded,
/// }
/// assert_eq!(
///     crd_description::<Tiny>(),
///     "Conditions of this object. Ready (good when True): It serves. Degraded (good when False): It serves badly.",
/// );
/// ```
pub fn crd_description<T: ConditionType>() -> String {
    let mut out = String::from("Conditions of this object.");
    for &type_ in T::ALL {
        let (name, good, doc) = (type_.name(), type_.polarity().good(), type_.doc());
        let doc = doc.split_whitespace().collect::<Vec<_>>().join(" ");
        let _ = write!(out, " {name} (good when {good}): {doc}");
    }
    out
}

impl crate::Summary<'_> {
    /// Declared types in scope, the most relevant first, with the polarity of their declaration.
    ///
    /// ```
    /// use kube_status::{ConditionType, Summary};
    /// #[derive(Clone, Copy, ConditionType)]
    /// enum Server {
    ///     /// It runs.
    ///     InstanceReady,
    ///     /// It is being drained.
    ///     #[condition(negative)]
    ///     Draining,
    /// }
    /// let summary = Summary::new("Ready").declared([Server::InstanceReady, Server::Draining]);
    /// ```
    #[must_use]
    pub fn declared<T: ConditionType>(self, types: impl IntoIterator<Item = T>) -> Self {
        let types: Vec<T> = types.into_iter().collect();
        let negative = types
            .iter()
            .filter(|t| t.polarity().good() == Status::False)
            .map(|t| t.name());
        self.negative(negative).types(types.iter().map(|t| t.name()))
    }
}

impl crate::severity::Summary<'_> {
    /// Declared types in scope, the most relevant first, with the polarity of their declaration.
    ///
    /// ```
    /// use kube_status::ConditionType;
    /// use kube_status::severity::Summary;
    /// #[derive(Clone, Copy, ConditionType)]
    /// enum Infra {
    ///     /// The network works.
    ///     NetworkReady,
    /// }
    /// let summary = Summary::new().declared([Infra::NetworkReady]).step_counter(true);
    /// ```
    #[must_use]
    pub fn declared<T: ConditionType>(self, types: impl IntoIterator<Item = T>) -> Self {
        let types: Vec<T> = types.into_iter().collect();
        let negative = types
            .iter()
            .filter(|t| t.polarity() == Polarity::Negative)
            .map(|t| t.name());
        self.negative(negative).types(types.iter().map(|t| t.name()))
    }
}

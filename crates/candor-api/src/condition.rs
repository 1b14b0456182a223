//! A condition as Candor's kinds carry it: `metav1.Condition` and how bad it is.

/// `metav1.Condition` with an optional severity, present exactly while the condition is in its bad polarity: it is
/// made from a [`kube_status::Draft`], which has no severity where none belongs.
pub use kube_status::GradedCondition as Condition;

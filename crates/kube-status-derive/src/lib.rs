//! The derives of kube-status: `Conditioned` for objects, `ConditionType` and `Reason` for declarations.
#![forbid(unsafe_code)]

mod declare;
mod object;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Implements `Conditioned` for an object of the usual shape: `metadata: ObjectMeta`, and conditions in `status.conditions`.
///
/// Options, in one or more `#[conditioned(...)]`, each of which makes one implementation (`kind`, `prominent` and
/// `conventions` are given once and apply to all):
/// - `kind = "Server"` where the kind is not the struct's name;
/// - `path = "status?.v1beta2?.conditions"` where the conditions are elsewhere; `?` marks what may be absent;
/// - `graded` for conditions of generation 2 with a severity (`GradedCondition`), `severity` for those of generation 1;
/// - `prominent = "example.org/control-plane"`: objects with this label are listed first in an aggregate;
/// - `conventions = Conventions::CLUSTER_API`: the order and the rules of another API.
///
/// ```
/// use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
/// use kube_status::{Conditioned, GradedCondition};
///
/// #[derive(Default)]
/// struct StoreStatus { conditions: Vec<GradedCondition> }
///
/// #[derive(Default, Conditioned)]
/// #[conditioned(graded, kind = "Store")]
/// struct StoreV1 { metadata: ObjectMeta, status: Option<StoreStatus> }
///
/// assert_eq!(StoreV1::default().kind(), "Store");
/// ```
#[proc_macro_derive(Conditioned, attributes(conditioned))]
pub fn conditioned(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    object::expand(&input)
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}

/// Declares condition types: an enum without fields, documented variant by variant.
///
/// On the enum: `#[condition(reasons = MyReason)]`. On a variant: `#[condition(negative)]`,
/// `#[condition(name = "APIReady")]`, `#[condition(reasons(Up, Down))]`.
///
/// ```
/// use kube_status::{ConditionType, Polarity};
///
/// #[derive(Clone, Copy, ConditionType)]
/// enum Store {
///     /// It serves.
///     #[condition(name = "APIReady")]
///     ApiReady,
///     /// A disk is almost full.
///     #[condition(negative)]
///     DiskPressure,
/// }
///
/// assert_eq!((Store::ApiReady.name(), Store::DiskPressure.polarity()), ("APIReady", Polarity::Negative));
/// ```
#[proc_macro_derive(ConditionType, attributes(condition))]
pub fn condition_type(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    declare::condition_type(&input)
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}

/// Declares reasons: an enum without fields, documented variant by variant.
///
/// On a variant: `#[reason(severity = Info)]`, `#[reason(expected = "10m")]` (with severity Info only),
/// `#[reason(name = "OOMKilled")]`.
///
/// ```
/// use kube_status::Reason;
/// use kube_status::severity::Severity;
///
/// #[derive(Clone, Copy, Reason)]
/// enum Why {
///     /// It used more memory than it may.
///     #[reason(name = "OOMKilled", severity = Error)]
///     OomKilled,
/// }
///
/// assert_eq!((Why::OomKilled.name(), Why::OomKilled.severity()), ("OOMKilled", Some(Severity::Error)));
/// ```
#[proc_macro_derive(Reason, attributes(reason))]
pub fn reason(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    declare::reason(&input)
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}

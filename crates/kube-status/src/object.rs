//! Access to an object: its conditions, kind, name and generation.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::Conventions;

/// An object with conditions. `C` is [`Condition`] (generation 2) by default. An object that has both generations
/// implements the trait once for each, and a call then names the one it means:
/// `set::<Condition, _>(&mut object, draft, now)`.
///
/// `#[derive(Conditioned)]` writes it for the usual shape: `metadata: ObjectMeta` and a `status` with `conditions`. With
/// `kube`'s `CustomResource`, `#[kube(derive = "Conditioned")]` puts it on the resource.
///
/// ```
/// use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
/// use kube_status::{Condition, Conditioned, Draft, Status, set};
///
/// #[derive(Default)]
/// struct ServerStatus { conditions: Vec<Condition> }
///
/// #[derive(Default, Conditioned)]
/// #[conditioned(prominent = "example.org/control-plane")]
/// struct Server { metadata: ObjectMeta, status: Option<ServerStatus> }
///
/// let mut server = Server::default();
/// let _ = set(&mut server, Draft::new("Ready", Status::True, "Up"), jiff::Timestamp::UNIX_EPOCH);
/// assert_eq!((server.kind(), server.conditions().len()), ("Server", 1));
/// ```
///
/// By hand:
///
/// ```
/// use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
/// use kube_status::{Conditioned, is_true};
///
/// struct Server { name: String, conditions: Vec<Condition> }
///
/// impl Conditioned for Server {
///     fn kind(&self) -> &str { "Server" }
///     fn name(&self) -> &str { &self.name }
///     fn generation(&self) -> i64 { 1 }
///     fn conditions(&self) -> &[Condition] { &self.conditions }
/// }
///
/// let server = Server { name: "m1".into(), conditions: vec![] };
/// assert!(!is_true(server.conditions(), "Ready"));
/// ```
pub trait Conditioned<C = Condition> {
    /// The kind, in the singular: `Server`.
    fn kind(&self) -> &str;

    /// `metadata.name`, or nothing.
    fn name(&self) -> &str;

    /// `metadata.generation`, or 0.
    fn generation(&self) -> i64;

    /// The conditions; none where there is no status yet.
    fn conditions(&self) -> &[C];

    /// Whether an aggregate lists this object before its peers, as with the nodes of a control plane.
    fn is_prominent(&self) -> bool {
        false
    }

    /// The conventions of the object's API: [`Conventions::STANDARD`] by default.
    fn conventions(&self) -> Conventions {
        Conventions::STANDARD
    }
}

/// An object with conditions that can be changed.
///
/// ```
/// use kube_status::{ConditionedMut, Draft, Status, set};
/// fn pause<T: ConditionedMut>(object: &mut T, now: jiff::Timestamp) -> kube_status::Change {
///     set(object, Draft::new("Paused", Status::True, "Requested"), now)
/// }
/// ```
pub trait ConditionedMut<C = Condition>: Conditioned<C> {
    /// The list to write to; a missing status is created.
    fn conditions_mut(&mut self) -> &mut Vec<C>;
}

impl<C, T: Conditioned<C> + ?Sized> Conditioned<C> for &T {
    fn kind(&self) -> &str {
        (**self).kind()
    }
    fn name(&self) -> &str {
        (**self).name()
    }
    fn generation(&self) -> i64 {
        (**self).generation()
    }
    fn conditions(&self) -> &[C] {
        (**self).conditions()
    }
    fn is_prominent(&self) -> bool {
        (**self).is_prominent()
    }
    fn conventions(&self) -> Conventions {
        (**self).conventions()
    }
}

impl<C, T: Conditioned<C> + ?Sized> Conditioned<C> for std::sync::Arc<T> {
    fn kind(&self) -> &str {
        (**self).kind()
    }
    fn name(&self) -> &str {
        (**self).name()
    }
    fn generation(&self) -> i64 {
        (**self).generation()
    }
    fn conditions(&self) -> &[C] {
        (**self).conditions()
    }
    fn is_prominent(&self) -> bool {
        (**self).is_prominent()
    }
    fn conventions(&self) -> Conventions {
        (**self).conventions()
    }
}

/// The shapes a `conditions` field has: a list, or a list that may be absent. Used by the derive.
///
/// ```
/// use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
/// use kube_status::ConditionField;
/// let mut field: Option<Vec<Condition>> = None;
/// assert!(field.as_list().is_empty());
/// field.as_list_mut();
/// assert!(field.is_some());
/// ```
pub trait ConditionField<C> {
    /// The conditions, none where the field is absent.
    fn as_list(&self) -> &[C];
    /// The list to write to, created where the field is absent.
    fn as_list_mut(&mut self) -> &mut Vec<C>;
}

impl<C> ConditionField<C> for Vec<C> {
    fn as_list(&self) -> &[C] {
        self
    }
    fn as_list_mut(&mut self) -> &mut Vec<C> {
        self
    }
}

impl<C> ConditionField<C> for Option<Vec<C>> {
    fn as_list(&self) -> &[C] {
        self.as_deref().unwrap_or_default()
    }
    fn as_list_mut(&mut self) -> &mut Vec<C> {
        self.get_or_insert_default()
    }
}

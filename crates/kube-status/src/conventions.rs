//! What differs between APIs: the order of a list, and the rules of generation 1.

use crate::Order;
use crate::severity::Rules;

/// The conventions of an API. An object names them once ([`Conditioned::conventions`](crate::Conditioned::conventions)),
/// and every function that sets conditions on it follows them.
///
/// With [`Conventions::CLUSTER_API`] the results are those of Cluster API's Go helpers, in both generations:
///
/// ```
/// use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
/// use kube_status::{Condition, Conditioned, Conventions, Draft, Timestamp, set};
///
/// #[derive(Default)]
/// struct ClusterStatus { conditions: Vec<Condition> }
///
/// #[derive(Default, Conditioned)]
/// #[conditioned(conventions = Conventions::CLUSTER_API)]
/// struct Cluster { metadata: ObjectMeta, status: Option<ClusterStatus> }
///
/// let mut cluster = Cluster::default();
/// for type_ in ["Backup", "InfrastructureReady"] {
///     let _ = set(&mut cluster, Draft::good(type_, "Up"), Timestamp::UNIX_EPOCH);
/// }
/// assert_eq!(cluster.conditions()[0].type_, "InfrastructureReady");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conventions {
    /// The order of conditions of generation 2. Generation 1 has one order ([`severity::ORDER`](crate::severity::ORDER)).
    pub order: Order<'static>,
    /// The rules of generation 1. Generation 2 has no such choice.
    pub rules: Rules,
}

impl Conventions {
    /// [`Order::STANDARD`] and the rules of the proposal.
    ///
    /// ```
    /// use kube_status::Conventions;
    /// assert_eq!(Conventions::default(), Conventions::STANDARD);
    /// ```
    pub const STANDARD: Self = Self {
        order: Order::STANDARD,
        rules: Rules::PROPOSAL,
    };

    /// What apimachinery's helpers do: conditions stay in the order in which they were added.
    ///
    /// ```
    /// use kube_status::{Conventions, Order};
    /// assert_eq!(Conventions::APIMACHINERY.order, Order::AS_GIVEN);
    /// ```
    pub const APIMACHINERY: Self = Self {
        order: Order::AS_GIVEN,
        rules: Rules::PROPOSAL,
    };

    /// What Cluster API's helpers do: [`Order::CLUSTER_API`] and [`Rules::GO`].
    ///
    /// ```
    /// use kube_status::Conventions;
    /// use kube_status::severity::Rules;
    /// assert_eq!(Conventions::CLUSTER_API.rules, Rules::GO);
    /// ```
    pub const CLUSTER_API: Self = Self {
        order: Order::CLUSTER_API,
        rules: Rules::GO,
    };
}

impl Default for Conventions {
    fn default() -> Self {
        Self::STANDARD
    }
}

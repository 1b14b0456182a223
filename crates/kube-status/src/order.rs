//! The order of conditions in a list.

use std::cmp::Ordering;

use crate::Metav1;

/// Types that come first, types that come last; the rest is between them, by name.
///
/// ```
/// use kube_status::Order;
/// let order = Order::new(&["Ready", "SlotsCovered"], &["Paused"]);
/// let mut types = vec!["Paused", "Healthy", "Ready", "Backup"];
/// types.sort_by(|a, b| order.compare(a, b));
/// assert_eq!(types, ["Ready", "Backup", "Healthy", "Paused"]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order<'a> {
    first: &'a [&'a str],
    last: &'a [&'a str],
    sorts: bool,
}

impl Order<'static> {
    /// Available and Ready first, Paused and Deleting last.
    ///
    /// ```
    /// use kube_status::Order;
    /// assert!(Order::STANDARD.compare("Ready", "Alpha").is_lt() && Order::STANDARD.compare("Zulu", "Paused").is_lt());
    /// ```
    pub const STANDARD: Self = Self::new(&["Available", "Ready"], &["Paused", "Deleting"]);

    /// Leaves the list in the order of arrival, as apimachinery's helpers do.
    ///
    /// ```
    /// use kube_status::Order;
    /// assert!(Order::AS_GIVEN.compare("Paused", "Ready").is_eq());
    /// ```
    pub const AS_GIVEN: Self = Self {
        first: &[],
        last: &[],
        sorts: false,
    };

    /// The order that Cluster API gives its own types; [`Order::STANDARD`] with the types of that API between.
    ///
    /// ```
    /// use kube_status::Order;
    /// assert!(Order::CLUSTER_API.compare("InfrastructureReady", "Alpha").is_lt());
    /// ```
    pub const CLUSTER_API: Self = Self::new(
        &[
            "Available",
            "Ready",
            "UpToDate",
            "RemoteConnectionProbe",
            "BootstrapConfigReady",
            "InfrastructureReady",
            "ControlPlaneInitialized",
            "ControlPlaneAvailable",
            "WorkersAvailable",
            "CertificatesAvailable",
            "Initialized",
            "EtcdClusterHealthy",
            "ControlPlaneComponentsHealthy",
            "NodeHealthy",
            "NodeReady",
            "NodeKubeadmLabelsAndTaintsSet",
            "EtcdPodHealthy",
            "EtcdMemberHealthy",
            "APIServerPodHealthy",
            "ControllerManagerPodHealthy",
            "SchedulerPodHealthy",
            "HealthCheckSucceeded",
            "OwnerRemediated",
            "TopologyReconciled",
            "Updating",
            "RollingOut",
            "Remediating",
            "ScalingDown",
            "ScalingUp",
            "MachinesReady",
            "ControlPlaneMachinesReady",
            "WorkerMachinesReady",
            "MachinesUpToDate",
            "ControlPlaneMachinesUpToDate",
            "WorkerMachinesUpToDate",
        ],
        &["Paused", "Deleting"],
    );
}

impl<'a> Order<'a> {
    /// An order of the caller.
    ///
    /// ```
    /// use kube_status::Order;
    /// const OURS: Order<'static> = Order::new(&["Ready", "SlotsCovered"], &["Paused"]);
    /// assert!(OURS.compare("SlotsCovered", "Backup").is_lt());
    /// ```
    pub const fn new(first: &'a [&'a str], last: &'a [&'a str]) -> Self {
        Self {
            first,
            last,
            sorts: true,
        }
    }

    fn rank(&self, type_: &str) -> usize {
        let at = |list: &[&str]| list.iter().position(|named| *named == type_);
        at(self.first)
            .or_else(|| at(self.last).map(|i| self.first.len() + 1 + i))
            .unwrap_or(self.first.len())
    }

    /// Which of two types comes first.
    ///
    /// ```
    /// use kube_status::Order;
    /// assert!(Order::STANDARD.compare("Alpha", "Beta").is_lt());
    /// ```
    pub fn compare(&self, a: &str, b: &str) -> Ordering {
        if !self.sorts {
            return Ordering::Equal;
        }
        self.rank(a).cmp(&self.rank(b)).then_with(|| a.cmp(b))
    }

    /// Sorts a list; equal types keep their places.
    ///
    /// ```
    /// use kube_status::{Draft, Order, Status};
    /// let at = jiff::Timestamp::UNIX_EPOCH;
    /// let mut list: Vec<_> = ["Paused", "Ready"].map(|t| Draft::new(t, Status::True, "R").into_condition(1, at)).into();
    /// Order::STANDARD.sort(&mut list);
    /// assert_eq!(list[0].type_, "Ready");
    /// ```
    pub fn sort<C: Metav1>(&self, conditions: &mut [C]) {
        self.sort_by_type(conditions, |c| &c.plain().type_);
    }

    pub(crate) fn sort_by_type<C>(&self, conditions: &mut [C], type_of: impl Fn(&C) -> &str) {
        let in_order = conditions.is_sorted_by(|a, b| self.compare(type_of(a), type_of(b)).is_le());
        if !in_order {
            conditions.sort_by(|a, b| self.compare(type_of(a), type_of(b)));
        }
    }
}

impl Default for Order<'_> {
    fn default() -> Self {
        Order::STANDARD
    }
}

//! What the operator does about each reason, and what a person should do: said by `candor status` and in the docs.
//!
//! Every reason is named here, so that a new one does not compile without its advice. `{cluster}` and `{namespace}`
//! stand for the cluster it is about.

use super::conditions::ClusterReason;

/// What is done about a reason; an empty text means nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advice {
    /// What the operator is doing about it.
    pub operator: &'static str,
    /// What a person should do.
    pub person: &'static str,
}

const fn advice(operator: &'static str, person: &'static str) -> Advice {
    Advice { operator, person }
}

/// A write that the API server rejected.
const WRITE: Advice = advice(
    "retries the write",
    "read the API server's message; most often a permission, a quota or an admission rule is missing: candor doctor",
);

impl ClusterReason {
    /// What happens next, and who has to act.
    pub const fn advice(self) -> Advice {
        match self {
            Self::ClusterHealthy
            | Self::ReconcileComplete
            | Self::TopologyComplete
            | Self::AllSlotsAssigned
            | Self::AllNodesReady => advice("", ""),
            Self::Reconciling => advice("brings the cluster to the desired state", ""),
            Self::Initializing => advice(
                "waits for what the first object needs, and continues by itself",
                "create the object that the message names",
            ),
            Self::MissingShards => advice("creates the missing shards and joins them", ""),
            Self::MissingReplicas => advice("creates the missing replicas and waits until they are in sync", ""),
            Self::ServiceError
            | Self::ConfigMapError
            | Self::DeploymentError
            | Self::PodDisruptionBudgetError
            | Self::SecretError
            | Self::PersistentVolumeClaimError => WRITE,
            Self::PodListError => advice(
                "makes no changes while it cannot list pods, and retries",
                "check that the API server responds and that the operator may list pods: candor doctor",
            ),
            Self::PodUnschedulable => advice(
                "waits for a node; running members are left as they are",
                "make room or loosen spec.scheduling: kubectl describe pod -n {namespace} -l valkey.io/cluster={cluster}",
            ),
            Self::PodNotStarting => advice(
                "waits for the kubelet; a corrected spec reaches the pod at once",
                "see why the pod does not start: kubectl describe pod -n {namespace} -l valkey.io/cluster={cluster}",
            ),
            Self::UpdatingNodes => advice("replaces members one by one, replicas first", ""),
            Self::AddingNodes => advice("joins the members to one cluster", ""),
            Self::RebalancingSlots => advice("moves slots; clients are redirected and lose nothing", ""),
            Self::Deleting => advice("removes the cluster; retained volumes stay", ""),
            Self::Stalled => advice(
                "retries with a backoff",
                "remove the cause that Ready names; the operator continues by itself",
            ),
            Self::NodeAddFailed => advice(
                "retries",
                "check that members reach each other on ports 6379 and 16379: kubectl get networkpolicy -n {namespace}",
            ),
            Self::PrimaryLost => advice(
                "promotes a replica once the old primary is confirmed terminated; if it only hangs, the servers elect one",
                "nothing, unless it lasts for more than a minute: candor describe {cluster} -n {namespace}",
            ),
            Self::ReplicaLost => advice(
                "brings the replica back; the shard serves with one copy less",
                "nothing, unless it lasts for more than a minute: candor describe {cluster} -n {namespace}",
            ),
            Self::QuorumLost => advice(
                "takes over only from members that are confirmed terminated; unreachable ones may still have data",
                "bring the nodes of the unreachable members back; a node that is gone for good must be deleted or \
                 tainted: kubectl taint node NAME node.kubernetes.io/out-of-service=nodeshutdown:NoExecute",
            ),
            Self::NoSlotsAvailable => advice(
                "waits until slots can be moved",
                "resume the cluster if it is paused: candor resume {cluster} -n {namespace}",
            ),
            Self::RebalanceFailed => advice(
                "retries with smaller ranges, then key by key, with a backoff",
                "read the server's reply; a server that is out of memory or too slow cannot take slots: \
                 candor describe {cluster} -n {namespace}",
            ),
            Self::FailoverFailed => advice(
                "retries; the primary is not restarted before a replica was promoted",
                "read the server's reply; check that members reach each other on ports 6379 and 16379: \
                 kubectl get networkpolicy -n {namespace}",
            ),
            Self::NodeForgetFailed => advice(
                "retries",
                "read the server's reply, and forget the node on that member (CLUSTER FORGET): \
                 candor cli {cluster} -n {namespace}",
            ),
            Self::ForeignNode => advice(
                "leaves the unknown node alone and joins no member to it",
                "find out who introduced it, and forget it on every member (CLUSTER FORGET): \
                 candor cli {cluster} -n {namespace}",
            ),
            Self::DataLost => advice(
                "serves the empty slots again",
                "restore from a backup if there is one; then acknowledge with the annotation \
                 valkey.io/data-loss-acknowledged and the condition's lastTransitionTime: candor status prints the command",
            ),
            Self::SlotsUnassigned => advice("assigns the slots", ""),
            Self::PausedByUser => advice(
                "reports status and makes no changes",
                "resume: candor resume {cluster} -n {namespace}",
            ),
            Self::NodesNotReady | Self::NodesUnknown => advice(
                "waits for the members",
                "see which: candor describe {cluster} -n {namespace}",
            ),
            Self::ConfigurationPending => advice("sets the configuration on running servers", ""),
            Self::ConfigurationRefused => advice(
                "leaves the running servers unchanged",
                "correct spec.config or the certificate as the server's reply says: kubectl edit vkc {cluster} -n {namespace}",
            ),
            Self::SpecInvalid => advice(
                "leaves the running members unchanged",
                "correct the field that the message names: kubectl edit vkc {cluster} -n {namespace}",
            ),
            Self::DowngradeRefused => advice(
                "leaves the members on the version they run",
                "set spec.image back, or insist: kubectl annotate vkc {cluster} -n {namespace} valkey.io/allow-downgrade=true",
            ),
            Self::UsersPending => advice("sets the users on running servers", ""),
            Self::UsersRefused => advice(
                "leaves the users unchanged",
                "correct spec.users as the server's reply says: kubectl edit vkc {cluster} -n {namespace}",
            ),
            Self::UsersInvalid => advice(
                "leaves the users unchanged",
                "correct spec.users or its Secrets as the message says: kubectl edit vkc {cluster} -n {namespace}",
            ),
            Self::VolumePending => advice("waits for the volume", ""),
            Self::VolumeResizing => advice("waits until the volume has grown", ""),
            Self::VolumeFailed => advice(
                "waits for the volume",
                "a full disk: raise spec.persistence.size or delete what fills it; else see the claims: \
                 kubectl describe pvc -n {namespace} -l valkey.io/cluster={cluster}",
            ),
            Self::PrimariesPiledUp => advice(
                "leaves the primaries where they are",
                "spread them when the load allows a few failovers: candor failover {cluster} -n {namespace} --spread",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use kube_status::Reason;
    use kube_status::severity::Severity;

    use super::ClusterReason;

    #[test]
    fn every_error_says_what_to_do() {
        for reason in ClusterReason::ALL {
            let advice = reason.advice();
            if reason.severity() == Some(Severity::Error) {
                assert!(!advice.person.is_empty(), "{} asks nothing of a person", reason.name());
            }
            if reason.severity().is_some() {
                assert!(
                    !advice.operator.is_empty(),
                    "{} leaves the operator idle",
                    reason.name()
                );
            }
        }
    }
}

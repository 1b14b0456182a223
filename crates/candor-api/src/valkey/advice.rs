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

/// A write that the API server refused.
const WRITE: Advice = advice(
    "tries the write again",
    "read the API server's words above; most often a right, a quota or an admission rule is missing: candor doctor",
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
            Self::Reconciling => advice("brings the cluster to what the spec asks", ""),
            Self::Initializing => advice(
                "waits for what the first object needs, and goes on by itself",
                "create what the message names",
            ),
            Self::MissingShards => advice("creates the missing shards and joins them", ""),
            Self::MissingReplicas => advice("creates the missing replicas and waits until they have copied", ""),
            Self::ServiceError
            | Self::ConfigMapError
            | Self::DeploymentError
            | Self::PodDisruptionBudgetError
            | Self::SecretError
            | Self::PersistentVolumeClaimError => WRITE,
            Self::PodListError => advice(
                "changes nothing while it cannot see pods, and asks again",
                "see that the API server answers and that the operator may list pods: candor doctor",
            ),
            Self::PodUnschedulable => advice(
                "waits for a place; the other members serve",
                "make room or loosen the rules: kubectl describe pod -n {namespace} -l valkey.io/cluster={cluster}",
            ),
            Self::PodNotStarting => advice(
                "waits for the kubelet; a corrected spec reaches the pod at once",
                "read why: kubectl describe pod -n {namespace} -l valkey.io/cluster={cluster}",
            ),
            Self::UpdatingNodes => advice("replaces members one by one, replicas first", ""),
            Self::AddingNodes => advice("joins the members to one cluster", ""),
            Self::RebalancingSlots => advice("moves slots; clients are redirected and lose nothing", ""),
            Self::Deleting => advice("takes the cluster apart; kept volumes stay", ""),
            Self::Stalled => advice(
                "only looks again now and then",
                "mend what Ready names; it goes on by itself",
            ),
            Self::NodeAddFailed => advice(
                "tries again",
                "see that members reach each other on ports 6379 and 16379 (NetworkPolicy)",
            ),
            Self::PrimaryLost => advice(
                "promotes a replica as soon as the old primary is proved dead; slots of this shard are not served until then",
                "nothing, unless it lasts for more than a minute: candor describe {cluster} -n {namespace}",
            ),
            Self::ReplicaLost => advice(
                "brings the replica back; the shard serves, with one copy less",
                "nothing, unless it lasts: candor describe {cluster} -n {namespace}",
            ),
            Self::QuorumLost => advice(
                "takes over only what is proved dead; what is merely silent may still have data",
                "bring the machines of the silent members back; a machine that is gone for good must be deleted or \
                 tainted: kubectl taint node NAME node.kubernetes.io/out-of-service=nodeshutdown:NoExecute",
            ),
            Self::NoSlotsAvailable => advice(
                "waits until slots can be moved",
                "resume the cluster if it is paused: candor resume {cluster} -n {namespace}",
            ),
            Self::RebalanceFailed => advice(
                "tries smaller ranges, then key by key, then seldom",
                "read the server's words above; a server that is out of memory or too slow cannot take slots",
            ),
            Self::FailoverFailed => advice(
                "tries again; the primary is not restarted before a replica has taken over",
                "read the server's words above; see that members reach each other on ports 6379 and 16379",
            ),
            Self::NodeForgetFailed => advice(
                "tries again",
                "read the server's words above, and let the member forget the node by hand (CLUSTER FORGET)",
            ),
            Self::ForeignNode => advice(
                "leaves the stranger alone and joins nobody to it",
                "find out who introduced it, and let every member forget it (CLUSTER FORGET)",
            ),
            Self::DataLost => advice(
                "serves the empty slots again",
                "restore from a backup if there is one; then acknowledge with the annotation \
                 valkey.io/data-loss-acknowledged and the condition's lastTransitionTime",
            ),
            Self::SlotsUnassigned => advice("gives the slots an owner", ""),
            Self::PausedByUser => advice(
                "looks and tells, and changes nothing",
                "let it go on: candor resume {cluster} -n {namespace}",
            ),
            Self::NodesNotReady | Self::NodesUnknown => advice(
                "waits for the members",
                "look at them: candor describe {cluster} -n {namespace}",
            ),
            Self::ConfigurationPending => advice("sets the configuration on running servers", ""),
            Self::ConfigurationRefused => advice(
                "leaves the servers as they run",
                "correct spec.config or the certificate as the server's words say",
            ),
            Self::SpecInvalid => advice("leaves the members as they run", "correct the spec as the message says"),
            Self::DowngradeRefused => advice(
                "leaves the members on the version they run",
                "set the image back, or insist: kubectl annotate vkc {cluster} -n {namespace} valkey.io/allow-downgrade=true",
            ),
            Self::UsersPending => advice("sets the users on running servers", ""),
            Self::UsersRefused => advice(
                "leaves the users as they are",
                "correct spec.users as the server's words say",
            ),
            Self::UsersInvalid => advice(
                "leaves the users as they are",
                "correct spec.users or its Secrets as the message says",
            ),
            Self::VolumePending => advice("waits for the volume", ""),
            Self::VolumeResizing => advice("waits until the volume has grown", ""),
            Self::VolumeFailed => advice(
                "waits for the volume",
                "a full disk: raise spec.persistence.size or delete what fills it; else look at the claims: \
                 kubectl describe pvc -n {namespace} -l valkey.io/cluster={cluster}",
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
    fn whoever_is_told_of_an_error_is_told_what_to_do() {
        for reason in ClusterReason::ALL {
            let advice = reason.advice();
            if reason.severity() == Some(Severity::Error) {
                assert!(!advice.person.is_empty(), "{} asks nothing of anybody", reason.name());
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

//! What the operator does about each reason, and what a person should do: printed by `candor status` and in the docs.
//!
//! Every reason is named here, so that a new one does not compile without its advice. `{cluster}` and `{namespace}`
//! stand for the cluster it is about.

use super::conditions::RedkeyReason;
use crate::valkey::advice::Advice;

const fn advice(operator: &'static str, person: &'static str) -> Advice {
    Advice { operator, person }
}

impl RedkeyReason {
    /// What happens next, and who has to act.
    pub const fn advice(self) -> Advice {
        match self {
            Self::RedkeyClusterReady
            | Self::NotInProgress
            | Self::NotDegraded
            | Self::RobinReady
            | Self::NoDataLost => advice("", ""),
            Self::RedkeyClusterScalingUp => advice("adds servers and gives them slots", ""),
            Self::RedkeyClusterScalingDown => advice("moves slots away from leaving servers, then removes them", ""),
            Self::RedkeyClusterUpgrading => advice(
                "replaces the servers, one by one unless purgeKeysOnRebalance is true",
                "",
            ),
            Self::Initializing => advice("waits for pods and for Robin", ""),
            Self::Configuring => advice("joins servers, assigns slots and attaches replicas", ""),
            Self::Hibernating => advice(
                "keeps the volumes",
                "wake the cluster: kubectl scale rkcl {cluster} -n {namespace} --replicas=3",
            ),
            Self::Deleting => advice("removes the cluster; volumes stay unless deletePVC is set", ""),
            Self::StorageMismatch => advice(
                "leaves servers and volumes as they are",
                "set storage, storageClassName and accessModes back to what the message names: kubectl edit rkcl {cluster} -n {namespace}",
            ),
            Self::OperationFailed => advice(
                "retries with a backoff",
                "read the error above; the operation continues by itself when its cause is gone",
            ),
            Self::PreflightFailed => advice(
                "leaves the running servers and their keys untouched",
                "correct image, resources or config as the message says: kubectl edit rkcl {cluster} -n {namespace}",
            ),
            Self::NotEnoughMemory => advice(
                "moves nothing and checks again",
                "delete keys; or set primaries back, raise maxmemory and the memory limit, then scale down: kubectl edit rkcl {cluster} -n {namespace}",
            ),
            Self::SpecInvalid => advice(
                "leaves the running servers unchanged",
                "correct the field that the message names: kubectl edit rkcl {cluster} -n {namespace}",
            ),
            Self::ConfigInvalid => advice(
                "leaves the servers with the configuration they have",
                "correct the line of spec.config that the message names: kubectl edit rkcl {cluster} -n {namespace}",
            ),
            Self::ConfigIgnored => advice(
                "runs the servers without these lines",
                "remove the keys that the message names from spec.config: kubectl edit rkcl {cluster} -n {namespace}",
            ),
            Self::ConfigRejected => advice(
                "leaves the servers with the configuration they have",
                "correct spec.config as the server's reply says: kubectl edit rkcl {cluster} -n {namespace}",
            ),
            Self::SecretInvalid => advice(
                "leaves the servers with the password they have, and watches the Secret",
                "create the Secret that the message names, with the key requirepass",
            ),
            Self::WriteFailed => advice(
                "retries the write",
                "read the API server's message above; most often a permission, a quota or an admission rule is missing: \
                 candor doctor",
            ),
            Self::PodListError => advice(
                "makes no changes while it cannot list pods, and retries",
                "check that the API server responds and that the operator may list pods: candor doctor",
            ),
            Self::PodUnschedulable => advice(
                "waits for a node; running servers are left as they are",
                "make room or loosen the scheduling rules: kubectl describe pod -n {namespace} -l redkey-cluster-name={cluster}",
            ),
            Self::PodNotStarting => advice(
                "waits for the kubelet; a corrected spec reaches the pod at once",
                "see why the pod does not start: kubectl describe pod -n {namespace} -l redkey-cluster-name={cluster}",
            ),
            Self::OtherOperatorActive => advice(
                "reports status and makes no changes until the other operator stops",
                "find the Deployment of the other operator and scale it to 0: kubectl get deployments -A",
            ),
            Self::Maintenance => advice(
                "reports status and makes no changes",
                "end it: unset spec.paused and remove the annotation redkey.inditex.dev/maintenance",
            ),
            Self::PrimaryLost => advice(
                "promotes a replica once the old primary is confirmed terminated; if it only hangs, the servers elect one",
                "nothing, unless it lasts for more than a minute: kubectl describe rkcl {cluster} -n {namespace}",
            ),
            Self::ReplicaLost => advice("brings the replica back; the shard serves with one copy less", ""),
            Self::QuorumLost => advice(
                "takes over only servers that are confirmed terminated; unreachable ones may still have data",
                "bring the nodes of the unreachable servers back; a node that is gone for good must be deleted or \
                 tainted: kubectl taint node NAME node.kubernetes.io/out-of-service=nodeshutdown:NoExecute",
            ),
            Self::SlotsUncovered => advice(
                "assigns the slots to primaries that serve, once it is certain that no owner comes back",
                "nothing, unless it lasts for more than a minute: kubectl describe rkcl {cluster} -n {namespace}",
            ),
            Self::NodeAddFailed => advice(
                "retries",
                "check that servers reach each other on ports 6379 and 16379: kubectl get networkpolicy -n {namespace}",
            ),
            Self::RebalanceFailed => advice(
                "retries with smaller ranges and a backoff",
                "read the server's reply above; a server that is out of memory or too slow cannot take slots",
            ),
            Self::FailoverFailed => advice(
                "retries; the primary is not restarted before a replica has taken over",
                "read the server's reply above; check that servers reach each other on ports 6379 and 16379",
            ),
            Self::NodeForgetFailed => advice(
                "retries",
                "read the server's reply above, and forget the node by hand (CLUSTER FORGET)",
            ),
            Self::ForeignNode => advice(
                "leaves the unknown node alone and joins no server to it",
                "find out who introduced it, and forget it on every server (CLUSTER FORGET)",
            ),
            Self::RobinStarting => advice("waits for Robin's pod", ""),
            Self::RobinTerminated => advice(
                "executes Robin's steps by itself, and waits for its pod",
                "read why: kubectl describe pod -n {namespace} -l redkey-cluster-name={cluster},\
                 redis.redkeycluster.operator/component=robin",
            ),
            Self::RobinUnresponsive => advice(
                "observes the servers by itself, and deletes Robin's pod after 15 seconds",
                "",
            ),
            Self::RobinOutdated => advice("replaces Robin before any operation starts", ""),
            Self::DataLost => advice(
                "serves the empty slots again",
                "restore from a backup if there is one; then acknowledge with the annotation \
                 redkey.inditex.dev/data-loss-acknowledged and the condition's lastTransitionTime: candor status prints \
                 the command",
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

    use super::RedkeyReason;

    #[test]
    fn every_error_says_what_to_do() {
        for reason in RedkeyReason::ALL {
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

//! What a user should do about a cause, as a command that can be pasted. Pure.

use jiff::{SignedDuration, Timestamp};

use super::cause::{Cause, is_true};
use super::{Cluster, Kind, Member};

/// For so long the operator heals a loss by itself before a user should look.
const HEALS: SignedDuration = SignedDuration::from_secs(60);
/// For so long a volume is normally on its way.
const BINDS: SignedDuration = SignedDuration::from_secs(30);

/// The next step; empty if there is nothing to do.
pub fn next_step(cluster: &Cluster, cause: &Cause, now: Timestamp) -> String {
    let next = Next {
        cluster,
        cause,
        lasted: now.duration_since(cause.since),
    };
    let advice = cluster.kind.advice(&cause.reason).map_or("", |advice| advice.person);
    next.of_cause().unwrap_or_else(|| fill(advice, cluster))
}

/// The command that acknowledges a data loss; none if no loss is reported.
pub fn acknowledge(cluster: &Cluster) -> Option<String> {
    let lost = is_true(cluster, "DataLost")?;
    Some(format!(
        "restore from a backup if there is one, then acknowledge: kubectl annotate {} {} -n {} --overwrite {}={}",
        cluster.kind.short(),
        cluster.name,
        cluster.namespace,
        cluster.kind.acknowledge_annotation(),
        lost.last_transition_time.0
    ))
}

/// Replaces the placeholders of an advice.
pub fn fill(advice: &str, cluster: &Cluster) -> String {
    advice
        .replace("{cluster}", &cluster.name)
        .replace("{namespace}", &cluster.namespace)
}

struct Next<'a> {
    cluster: &'a Cluster,
    cause: &'a Cause,
    lasted: SignedDuration,
}

impl Next<'_> {
    /// What to do about this very cause; none if the advice for its reason says enough.
    fn of_cause(&self) -> Option<String> {
        match self.cause.reason.as_str() {
            "DataLost" => acknowledge(self.cluster),
            "PrimaryLost" | "ReplicaLost" | "SlotsUncovered" => Some(self.lost()),
            "QuorumLost" => self.nodes_back(),
            "PodNotStarting" => Some(self.not_starting()),
            "PodUnschedulable" => Some(self.unschedulable()),
            "VolumePending" => Some(self.volume_pending()),
            "VolumeFailed" => self.volume_failed(),
            "Initializing" | "UsersInvalid" | "SecretInvalid" | "SecretError" | "SpecInvalid" => {
                self.secret().or_else(|| self.quota())
            }
            "ServiceError" | "ConfigMapError" | "DeploymentError" | "PersistentVolumeClaimError" | "WriteFailed" => {
                self.quota()
            }
            _ => None,
        }
    }

    fn says(&self, part: &str) -> bool {
        self.cause.message.contains(part)
    }

    /// `kubectl VERB OBJECT -n NAMESPACE`.
    fn kubectl(&self, rest: &str) -> String {
        format!("kubectl {rest} -n {}", self.cluster.namespace)
    }

    fn edit(&self) -> String {
        self.kubectl(&format!("edit {} {}", self.cluster.kind.short(), self.cluster.name))
    }

    /// The member that the message names, or else the first that is not ready.
    fn member(&self) -> Option<&Member> {
        let members = &self.cluster.members;
        let named = members.iter().find(|one| {
            let named = format!("member {}", one.id);
            let mut rest = self.cause.message.split(&named).skip(1);
            let by_pod = !one.pod.is_empty() && self.says(&one.pod);
            by_pod || rest.any(|rest| !rest.starts_with(|next: char| next.is_ascii_digit()))
        });
        named.or_else(|| members.iter().find(|one| one.ready == Some(false)))
    }

    fn pod(&self) -> Option<&str> {
        self.member().map(|one| one.pod.as_str()).filter(|pod| !pod.is_empty())
    }

    /// `kubectl describe pod POD`, or all pods of the cluster where the pod is not known.
    fn describe_pod(&self) -> String {
        match self.pod() {
            Some(pod) => self.kubectl(&format!("describe pod {pod}")),
            None => self.kubectl(&format!(
                "describe pod -l {}",
                self.cluster.kind.selector(&self.cluster.name)
            )),
        }
    }

    /// A lost member: nothing for the first minute.
    fn lost(&self) -> String {
        let on = self.cause.message.split("may still be running on node ").nth(1);
        if let Some(node) = on.and_then(|rest| rest.split([':', ' ', ',']).next()) {
            return out_of_service(&[node]);
        }
        if self.lasted < HEALS {
            return String::new();
        }
        format!("see why the member does not come back: {}", self.describe_pod())
    }

    fn nodes_back(&self) -> Option<String> {
        let mut nodes: Vec<&str> = self
            .cluster
            .members
            .iter()
            .filter(|one| one.ready == Some(false) && one.reason != "ClusterDown")
            .map(|one| one.host.as_str())
            .collect();
        nodes.retain(|node| !node.is_empty());
        nodes.sort_unstable();
        nodes.dedup();
        (!nodes.is_empty()).then(|| out_of_service(&nodes))
    }

    fn not_starting(&self) -> String {
        let field = if self.says("pull") || self.says("InvalidImageName") {
            "set spec.image to an image that can be pulled"
        } else if self.says("FATAL CONFIG FILE ERROR") {
            "correct the line of spec.config that the message quotes"
        } else if self.says("OOMKilled") {
            "raise spec.resources.limits.memory"
        } else {
            return format!("see why the pod does not start: {}", self.describe_pod());
        };
        format!("{field}: {}", self.edit())
    }

    fn unschedulable(&self) -> String {
        if self.says("PersistentVolume's node affinity") {
            return self.volume_elsewhere();
        }
        let field = if self.says("Insufficient") {
            "add a node, or lower spec.resources.requests"
        } else if self.says("affinity") || self.says("selector") || self.says("topology spread") || self.says("taint") {
            "add a node, or loosen spec.scheduling"
        } else {
            return format!("see why no node takes the pod: {}", self.describe_pod());
        };
        format!("{field}: {}", self.edit())
    }

    /// A volume that only nodes can reach which do not take the pod.
    fn volume_elsewhere(&self) -> String {
        let claim = self.member().map(|one| Kind::claim(&self.cluster.name, one.id));
        let (Some(claim), Some(pod)) = (claim, self.pod()) else {
            return format!("see which node the volume is on: {}", self.kubectl("get pvc"));
        };
        let remove = format!(
            "{} && {}",
            self.kubectl(&format!("delete pvc {claim} --wait=false")),
            self.kubectl(&format!("delete pod {pod}"))
        );
        let data = if self.cluster.replicas == 0 {
            "its data is lost"
        } else {
            "it copies its data again"
        };
        format!("make room where the volume of {pod} is, or give the member an empty volume ({data}): {remove}")
    }

    /// The claim that the message names.
    fn claim(&self) -> Option<&str> {
        self.cause.message.split("volume claim ").nth(1)?.split(' ').next()
    }

    fn volume_pending(&self) -> String {
        if self.says("is being deleted") {
            let Some(pod) = self.pod() else {
                return format!("see the volumes: {}", self.kubectl("get pvc"));
            };
            let delete = self.kubectl(&format!("delete pod {pod}"));
            return if self.cluster.replicas == 0 {
                format!(
                    "save the member's data first, it is the only copy; then let its volume be made again: {delete}"
                )
            } else {
                format!("delete the member's pod, so that it gets a new volume and copies its data again: {delete}")
            };
        }
        match self.claim() {
            Some(claim) if self.lasted >= BINDS => {
                format!(
                    "see why the volume is not bound: {}",
                    self.kubectl(&format!("describe pvc {claim}"))
                )
            }
            _ => String::new(),
        }
    }

    fn volume_failed(&self) -> Option<String> {
        if !self.says("lost its volume") {
            return Some(format!(
                "raise spec.persistence.size, or free the disk: {}",
                self.edit()
            ));
        }
        let (claim, pod) = (self.claim()?, self.pod()?);
        let remove = format!(
            "{} && {}",
            self.kubectl(&format!("delete pvc {claim} --wait=false")),
            self.kubectl(&format!("delete pod {pod}"))
        );
        Some(if self.cluster.replicas == 0 {
            format!("restore the volume, or give up the data of this shard: {remove}")
        } else {
            format!("give the member an empty volume; it copies its data again: {remove}")
        })
    }

    /// The command that creates a missing Secret.
    fn secret(&self) -> Option<String> {
        let name = self
            .cause
            .message
            .split("Secret ")
            .nth(1)?
            .split([' ', ':', ';'])
            .next()?;
        let create = self.kubectl(&format!("create secret generic {name}"));
        let key = || {
            let after = self.cause.message.split("the key ").nth(1)?;
            after.split([' ', ':', ';', ',']).next()
        };
        if !self.says(" is missing") {
            let edit = self.kubectl(&format!("edit secret {name}"));
            return Some(format!("mend the Secret: {edit}"));
        }
        Some(if self.says("tls.crt") {
            format!("{create} --from-file=ca.crt --from-file=tls.crt --from-file=tls.key")
        } else {
            format!("{create} --from-literal={}=PASSWORD", key().unwrap_or("KEY"))
        })
    }

    fn quota(&self) -> Option<String> {
        let quota = self.says("exceeded quota");
        quota.then(|| {
            format!(
                "raise the quota, or ask for less: {}",
                self.kubectl("describe resourcequota")
            )
        })
    }
}

fn out_of_service(nodes: &[&str]) -> String {
    let noun = if nodes.len() == 1 { "node" } else { "nodes" };
    format!(
        "bring {noun} {} back; if gone for good: kubectl taint node {} node.kubernetes.io/out-of-service=nodeshutdown:NoExecute",
        nodes.join(", "),
        nodes.join(" ")
    )
}

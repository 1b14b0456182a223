//! Why a pod fits no node, worded as the real scheduler's messages (1.34).

use std::collections::BTreeMap;

use super::resources::Lack;

/// Why a node is out. This table is the documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Cordoned.
    Unschedulable,
    /// A taint that the pod does not tolerate.
    Taint,
    /// `nodeSelector` or required node affinity.
    NodeAffinity,
    /// A host port is taken.
    Ports,
    /// Too little of a resource.
    Lack(Lack),
    /// A bound volume cannot be reached from there.
    VolumeNodeAffinity,
    /// A bound volume is in another zone.
    VolumeZone,
    /// A claim's volume is not there.
    NoVolume,
    /// No volume can be bound or made there.
    NoVolumeToBind,
    /// A `ReadWriteOncePod` claim is in use.
    ClaimInUse,
    /// Topology spread.
    Spread,
    /// The node lacks the label the spread is over.
    SpreadLabel,
    /// Required pod affinity.
    PodAffinity,
    /// Required pod anti-affinity.
    PodAntiAffinity,
    /// Anti-affinity of a pod that is there.
    ExistingAntiAffinity,
}

impl Reason {
    fn message(&self) -> &str {
        match self {
            Self::Unschedulable => "node(s) were unschedulable",
            Self::Taint => "node(s) had untolerated taint(s)",
            Self::NodeAffinity => "node(s) didn't match Pod's node affinity/selector",
            Self::Ports => "node(s) didn't have free ports for the requested pod ports",
            Self::Lack(lack) => &lack.message,
            Self::VolumeNodeAffinity => "node(s) didn't match PersistentVolume's node affinity",
            Self::VolumeZone => "node(s) had no available volume zone",
            Self::NoVolume => "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
            Self::NoVolumeToBind => "node(s) didn't find available persistent volumes to bind",
            Self::ClaimInUse => {
                "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by \
                 another pod"
            }
            Self::Spread => "node(s) didn't match pod topology spread constraints",
            Self::SpreadLabel => "node(s) didn't match pod topology spread constraints (missing required label)",
            Self::PodAffinity => "node(s) didn't match pod affinity rules",
            Self::PodAntiAffinity => "node(s) didn't match pod anti-affinity rules",
            Self::ExistingAntiAffinity => "node(s) didn't satisfy existing pods anti-affinity rules",
        }
    }

    /// Whether removing other pods could help.
    fn is_resolvable(&self) -> bool {
        match self {
            Self::Lack(lack) => !lack.always,
            Self::Ports | Self::ClaimInUse | Self::Spread | Self::PodAntiAffinity | Self::ExistingAntiAffinity => true,
            _ => false,
        }
    }
}

const NOT_HELPFUL: &str = "Preemption is not helpful for scheduling";
const NO_VICTIMS: &str = "No preemption victims found for incoming pod";

fn histogram<'a>(message: impl Iterator<Item = &'a str>) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for word in message {
        *counts.entry(word).or_default() += 1;
    }
    let mut lines: Vec<String> = counts.iter().map(|(word, count)| format!("{count} {word}")).collect();
    lines.sort();
    lines.join(", ")
}

/// What could help. The beginning comes from the real scheduler's resource claims (1.34), which a sandbox does not have.
fn remedy<'a>(nodes: usize, message: impl Iterator<Item = &'a str>, never: bool) -> String {
    let preemption = if never {
        "not eligible due to preemptionPolicy=Never.".to_owned()
    } else {
        format!("0/{nodes} nodes are available: {}.", histogram(message))
    };
    format!("no new claims to deallocate, preemption: {preemption}")
}

/// The message when every node has its reasons.
pub fn unschedulable(reasons_by_node: &[Vec<Reason>], never_preempts: bool) -> String {
    let nodes = reasons_by_node.len();
    let reasons = histogram(reasons_by_node.iter().flatten().map(Reason::message));
    let help = reasons_by_node.iter().map(|reasons| {
        if reasons.iter().all(Reason::is_resolvable) {
            NO_VICTIMS
        } else {
            NOT_HELPFUL
        }
    });
    format!(
        "0/{nodes} nodes are available: {reasons}. {}",
        remedy(nodes, help, never_preempts)
    )
}

/// The message when the reason lies with the pod and holds for every node. The real one ends as oddly.
pub fn nowhere(nodes: usize, reason: &str) -> String {
    format!("0/{nodes} nodes are available: {reason}. not found")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lack(message: &str, always: bool) -> Reason {
        Reason::Lack(Lack {
            message: message.into(),
            always,
        })
    }

    #[test]
    fn reasons_are_counted_and_sorted_and_preemption_is_judged() {
        let reasons_by_node = [
            vec![Reason::Taint],
            vec![lack("Insufficient cpu", false)],
            vec![lack("Insufficient cpu", true), lack("Insufficient memory", false)],
        ];
        assert_eq!(
            unschedulable(&reasons_by_node, false),
            "0/3 nodes are available: 1 Insufficient memory, 1 node(s) had untolerated taint(s), 2 Insufficient cpu. \
             no new claims to deallocate, preemption: 0/3 nodes are available: 1 No preemption victims found for \
             incoming pod, 2 Preemption is not helpful for scheduling."
        );
        assert_eq!(
            unschedulable(&[vec![Reason::NodeAffinity]], true),
            "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector. no new claims to \
             deallocate, preemption: not eligible due to preemptionPolicy=Never."
        );
        assert_eq!(
            nowhere(2, "persistentvolumeclaim \"x\" not found"),
            "0/2 nodes are available: persistentvolumeclaim \"x\" not found. not found"
        );
    }
}

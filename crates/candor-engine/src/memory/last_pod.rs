//! The pod that a member last ran in, and whether it has terminated. A server that responds in another pod says
//! nothing about the first one, which may still serve clients behind a network partition.

use crate::observation::{Member, Orphan};

/// The pod that a member last ran in, as status remembers it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct LastPod {
    /// Its uid.
    pub uid: String,
    /// The Kubernetes node that it was bound to.
    pub node: String,
    /// The uid of its volume claim; empty without a volume.
    pub claim: String,
    /// It is confirmed terminated.
    pub terminated: bool,
}

/// The state of the pod that a member last ran in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is the member's pod now.
    Standing,
    /// It is confirmed terminated.
    Terminated,
    /// It is none of the member's pods, and nothing confirms that its processes have terminated: they may still be
    /// running.
    Unknown,
}

impl LastPod {
    /// The pod of a member, if the server in it responds. While the pod before it may still exist, that one stays
    /// remembered: its uid is the proof that it may be deleted.
    pub(crate) fn of(member: &Member) -> Option<Self> {
        if member.orphan != Orphan::None {
            return None;
        }
        let pod = member.pod.as_ref().filter(|pod| !pod.uid.is_empty())?;
        member.facts()?;
        Some(Self {
            uid: pod.uid.clone(),
            node: pod.node.clone()?,
            claim: member.claim_uid.clone(),
            terminated: false,
        })
    }

    /// The state of this pod.
    pub(crate) fn fate(&self, member: &Member) -> Fate {
        let pod = member.pod.as_ref();
        // The kubelet of that node runs the member's next pod, so it knows that this pod has to terminate.
        // While the member has a second pod, that one may be this pod.
        let followed_there = pod.is_some_and(|pod| pod.node.as_ref() == Some(&self.node))
            && member.facts().is_some()
            && !member.may_run_elsewhere;
        if self.terminated || member.terminated_pods.contains(&self.uid) {
            Fate::Terminated
        } else if pod.is_some_and(|pod| pod.uid == self.uid) {
            Fate::Standing
        } else if member.orphan != Orphan::None {
            Fate::Unknown
        } else if member.last_node_believed || followed_there {
            Fate::Terminated
        } else {
            Fate::Unknown
        }
    }
}

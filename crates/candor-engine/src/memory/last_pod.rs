//! The pod that a member last ran in, and whether it has terminated. A server that answers in another pod says nothing
//! about the first one: behind a partition that may still serve clients.

use crate::observation::Member;

/// The pod that a member last ran in, as status remembers it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct LastPod {
    /// Its uid.
    pub uid: String,
    /// The Kubernetes node that it was bound to.
    pub node: String,
    /// It is confirmed terminated.
    pub terminated: bool,
}

/// What became of the pod that a member last ran in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is the member's pod now.
    Standing,
    /// It is confirmed terminated.
    Terminated,
    /// It is gone, and nothing confirms that its processes are: they may still be running.
    Unknown,
}

impl LastPod {
    /// The pod of a member whose server answers in it.
    pub(crate) fn of(member: &Member) -> Option<Self> {
        let pod = member.pod.as_ref().filter(|pod| !pod.uid.is_empty())?;
        member.facts()?;
        Some(Self {
            uid: pod.uid.clone(),
            node: pod.node.clone()?,
            terminated: false,
        })
    }

    /// What became of it.
    pub(crate) fn fate(&self, member: &Member) -> Fate {
        let pod = member.pod.as_ref();
        // The kubelet that runs the next pod of the member there has heard that this one is to end.
        let followed_there = pod.is_some_and(|pod| pod.node.as_ref() == Some(&self.node)) && member.facts().is_some();
        if self.terminated || member.terminated_pods.contains(&self.uid) {
            Fate::Terminated
        } else if pod.is_some_and(|pod| pod.uid == self.uid) {
            Fate::Standing
        } else if member.last_node_believed || followed_there {
            Fate::Terminated
        } else {
            Fate::Unknown
        }
    }
}

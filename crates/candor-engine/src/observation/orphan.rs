//! Pods that lost their labels.

use std::net::IpAddr;

/// The pod that a member last ran in, if it is no longer among the member's pods. Kubernetes releases a pod as soon as
/// its labels do not match its workload, and creates another one in its place. The released pod keeps running.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Orphan {
    /// The pod is still the member's pod, or it is deleted.
    #[default]
    None,
    /// It is unknown whether the pod still exists.
    Unread,
    /// The pod still exists.
    Found(OrphanedPod),
}

/// A pod of a member without the member's labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OrphanedPod {
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Its address.
    pub ip: Option<IpAddr>,
    /// It is being deleted.
    pub leaving: bool,
    /// The commands with which a user can restore its labels.
    pub remedy: String,
}

impl Orphan {
    /// The pod, if it exists.
    pub fn found(&self) -> Option<&OrphanedPod> {
        match self {
            Self::Found(pod) => Some(pod),
            Self::None | Self::Unread => None,
        }
    }
}

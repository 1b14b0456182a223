//! The events of `RedkeyCluster`: this file is their documentation. An event marks a transition; a healthy cluster
//! emits none.

use std::fmt::Write;

use kube_status::Reason;
use kube_status::events::Notice;

/// What happened. A severity makes it a Warning, none makes it Normal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Reason)]
pub enum RedkeyEvent {
    /// The cluster is ready.
    RedkeyClusterReady,
    /// Servers are about to be added.
    RedkeyClusterScalingUp,
    /// Servers are about to be removed.
    RedkeyClusterScalingDown,
    /// Servers are about to be changed.
    RedkeyClusterUpgrading,
    /// All servers are stopped, because `primaries` is 0.
    RedkeyClusterScaledToZero,
    /// The `PodDisruptionBudget` is updated.
    UpdatePdb,
    /// Something failed; the message has the error.
    #[reason(severity = Warning)]
    ClusterError,
    /// A fast operation recreated the cluster, and its keys are gone as requested.
    KeysPurged,
    /// A running cluster of another operator is taken over.
    ClusterAdopted,
    /// Another operator manages this cluster: Candor makes no changes.
    #[reason(severity = Warning)]
    OtherOperatorActive,
    /// The status was written by hand, which has no effect; the message names what has.
    #[reason(severity = Warning)]
    StatusEdited,
    /// Lines of `spec.config` are ignored because the operator owns their keys.
    #[reason(severity = Warning)]
    ConfigIgnored,
    /// A server rejects its configuration.
    #[reason(severity = Warning)]
    ConfigRejected,
    /// Fields of `spec.override` are ignored because the operator owns them.
    #[reason(severity = Warning)]
    OverrideIgnored,
    /// The image or the command of Robin's template is replaced by the operator's.
    RobinTemplateReplaced,
    /// The servers run with a new password.
    PasswordApplied,
    /// The Secret of `spec.auth` is missing or has no usable `requirepass`.
    #[reason(severity = Warning)]
    SecretInvalid,
    /// An object that was edited by hand is as desired again.
    DriftReverted,
    /// Robin is terminated or does not respond: the operator executes its steps.
    #[reason(severity = Warning)]
    RobinLost,
    /// Robin answers again.
    RobinRecovered,
    /// The servers that stay have too little memory for the keys of those that leave.
    #[reason(severity = Warning)]
    NotEnoughMemory,
    /// The preflight pod with the new template did not start. Keys are untouched.
    #[reason(severity = Warning)]
    PreflightFailed,
    /// A server could not join.
    #[reason(severity = Warning)]
    NodeAddFailed,
    /// A primary has its slots.
    PrimaryCreated,
    /// A replica follows its primary.
    ReplicaCreated,
    /// A shard has no primary that serves.
    #[reason(severity = Warning)]
    PrimaryLost,
    /// A shard lost a replica that no operation removed.
    #[reason(severity = Warning)]
    ReplicaLost,
    /// Most primaries are missing.
    #[reason(severity = Warning)]
    QuorumLost,
    /// Some slots have no owner.
    #[reason(severity = Warning)]
    SlotsUncovered,
    /// Slots begin to move.
    SlotsRebalancing,
    /// Slots have moved.
    SlotsRebalanced,
    /// Slots could not be moved.
    #[reason(severity = Warning)]
    SlotRebalanceFailed,
    /// A leaving primary is being emptied.
    SlotsDraining,
    /// A leaving primary could not be emptied.
    #[reason(severity = Warning)]
    DrainFailed,
    /// A replica is to become the primary.
    FailoverInitiated,
    /// A shard has a new primary.
    FailoverCompleted,
    /// A replica could not become the primary.
    #[reason(severity = Warning)]
    FailoverFailed,
    /// A replica became the primary without a vote: most primaries were missing, and the old one was confirmed
    /// terminated.
    #[reason(severity = Warning)]
    ReplicasTakenOver,
    /// A node that is gone for good is forgotten by all.
    StaleNodeForgotten,
    /// A node could not be forgotten.
    #[reason(severity = Warning)]
    NodeForgetFailed,
    /// The cluster map has a node that is no server of this cluster.
    #[reason(severity = Warning)]
    ForeignNode,
    /// A shard came back empty: its keys are lost.
    #[reason(severity = Warning)]
    DataLost,
    /// A server's pod cannot be scheduled.
    #[reason(severity = Warning)]
    PodUnschedulable,
    /// A server's pod does not start.
    #[reason(severity = Warning)]
    PodNotStarting,
}

impl RedkeyEvent {
    /// The event with its message.
    pub fn notice(self, note: impl Into<String>) -> Notice {
        match self.severity() {
            Some(_) => Notice::warning(self, note),
            None => Notice::normal(self, note),
        }
    }
}

/// The events as a table, in Markdown.
///
/// ```
/// let table = candor_api::redkey::events::documentation();
/// assert!(table.contains("| `UpdatePdb` | Normal | The `PodDisruptionBudget` is updated. |"));
/// ```
pub fn documentation() -> String {
    let mut out = String::from("| Event | Type | Meaning |\n|---|---|---|\n");
    for event in RedkeyEvent::ALL {
        let kind = if event.severity().is_some() {
            "Warning"
        } else {
            "Normal"
        };
        // Writing to a String cannot fail.
        let _ = writeln!(out, "| `{}` | {kind} | {} |", event.name(), event.doc().trim());
    }
    out
}

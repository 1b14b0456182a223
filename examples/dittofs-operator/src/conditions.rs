//! Every condition, reason and event of the operator. This file is their documentation.

use kube_status::events::Notice;
use kube_status::{ConditionType, Reason};

/// The conditions of a `DittoServer`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ConditionType)]
#[condition(reasons = ServerReason)]
pub enum ServerCondition {
    /// The server is fully operational: what the other conditions come to.
    #[condition(reasons(AllSystemsGo, ComponentsNotReady, ComponentsUnknown))]
    Ready,
    /// The configuration and its Secrets are valid.
    #[condition(reasons(ConfigValid, InvalidConfig, SecretNotFound, ConfigUnknown))]
    ConfigReady,
    /// The PostgreSQL cluster is ready; there only with percona.enabled.
    #[condition(reasons(PerconaReady, PerconaNotReady, PerconaNotInstalled, PerconaUnknown))]
    DatabaseReady,
    /// The StatefulSet has its ready replicas.
    #[condition(reasons(
        StatefulSetReady,
        StatefulSetNotReady,
        StatefulSetRefused,
        StatefulSetUnknown,
        StorageClassNotFound,
        Stopped
    ))]
    Available,
    /// A change is being applied, or waits for something.
    #[condition(
        negative,
        reasons(
            Settled,
            Blocked,
            WaitingForDatabase,
            Applying,
            RollingPods,
            ReconcileFailed,
            Deleting
        )
    )]
    Progressing,
    /// The progress of the deletion; present only while being deleted, written by the finalizer with its own reasons.
    #[condition(negative)]
    Deleting,
}

/// Why a `DittoServer` is as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Reason)]
pub enum ServerReason {
    /// Everything is as asked.
    AllSystemsGo,
    /// At least one condition is bad; the message lists them.
    ComponentsNotReady,
    /// Nothing is known to be bad, and something is not known.
    ComponentsUnknown,
    /// The configuration is an object and its Secrets are there.
    ConfigValid,
    /// The configuration is not YAML, or not an object.
    InvalidConfig,
    /// A referenced Secret does not exist.
    SecretNotFound,
    /// The Secrets could not be read.
    ConfigUnknown,
    /// Percona's operator says ready.
    PerconaReady,
    /// The cluster is not there yet, or Percona's operator does not say ready.
    PerconaNotReady,
    /// The API server does not know PostgreSQL clusters.
    PerconaNotInstalled,
    /// The cluster could not be read.
    PerconaUnknown,
    /// As many replicas are ready as asked for.
    StatefulSetReady,
    /// Fewer replicas are ready than asked for.
    StatefulSetNotReady,
    /// The API server does not take the StatefulSet.
    StatefulSetRefused,
    /// The StatefulSet could not be read.
    StatefulSetUnknown,
    /// The StorageClass of the spec does not exist; no StatefulSet is made with it.
    StorageClassNotFound,
    /// No server is asked for.
    Stopped,
    /// Everything is applied.
    Settled,
    /// Nothing is applied until the configuration is mended.
    Blocked,
    /// The database comes first.
    WaitingForDatabase,
    /// Objects are being written.
    Applying,
    /// Pods are being started, replaced or stopped.
    RollingPods,
    /// The last reconcile failed and is tried again.
    ReconcileFailed,
    /// The server is being deleted.
    Deleting,
}

/// The component that events come from.
pub const CONTROLLER: &str = "dittoserver-controller";

/// Event: the `StatefulSet` was made. More events: a condition that turns bad tells its reason and message, and those of
/// a deletion (`Deleting`, `CleanupFailed`, `CleanupTimeout` ...) are the finalizer's.
pub fn created() -> Notice {
    Notice::normal("Created", "StatefulSet created")
}

/// Event: the configuration changed, by what is named here.
pub fn config_updated(what: &str) -> Notice {
    Notice::normal("ConfigUpdated", format!("{what} updated, pods will restart"))
}

/// Event: a PostgreSQL cluster is deleted.
pub fn percona_deleted(cluster: &str) -> Notice {
    let loss = format!("PostgreSQL cluster {cluster} is deleted with its DittoServer, all its data is lost");
    Notice::warning("PerconaDeleted", loss)
}

/// Event: a PostgreSQL cluster stays behind.
pub fn percona_orphaned(cluster: &str) -> Notice {
    let kept = format!("PostgreSQL cluster {cluster} is kept, nobody manages it from now on");
    Notice::normal("PerconaOrphaned", kept)
}

/// The message about a PostgreSQL cluster that is not ready, in conditions and in events.
pub fn waiting_for(cluster: &str) -> String {
    format!("Waiting for PostgreSQL cluster {cluster} to become ready")
}

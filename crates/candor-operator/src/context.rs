//! What every look at a cluster shares.

use std::sync::Arc;

use kube::Client;
use kube_status::events::EventPublisher;
use kube_status::finalizer::Finalizer;
use kube_status::writer::StatusWriter;

use crate::applied::AppliedSettings;
use crate::cache::ClusterKey;
use crate::evidence::NodeLeases;
use crate::lease::Leadership;
use crate::metrics::Metrics;
use crate::passwords::KnownPasswords;
use crate::pulse::Pulse;
use crate::secrets::Contents;
use crate::served::Served;
use crate::settings::Settings;
use crate::shape::Shapes;
use crate::state::ClusterStates;
use crate::watching::Caches;

/// The name under which fields are owned and status is written.
pub const MANAGER: &str = "candor";
/// The name people filter events by.
pub const COMPONENT: &str = "valkeycluster-controller";

/// What every reconcile shares. Everything in it may be lost in a crash.
pub struct Context {
    /// The API server.
    pub client: Client,
    /// What the operator was started with.
    pub settings: Settings,
    /// What the API server told.
    pub caches: Caches,
    /// What members tell between two looks.
    pub pulse: Pulse,
    /// Tells people.
    pub events: EventPublisher,
    /// Writes status.
    pub writer: StatusWriter,
    /// Holds clusters until they are cleaned up.
    pub finalizer: Finalizer<EventPublisher>,
    /// Objects that were found as wanted.
    pub shapes: Shapes,
    /// Contents of users' Secrets.
    pub secrets: Contents,
    /// The operator's own passwords.
    pub passwords: KnownPasswords,
    /// Which server runs with which settings.
    pub applied: AppliedSettings,
    /// Which server serves which certificate.
    pub served: Served,
    /// What is kept about each cluster between two reconciles.
    pub states: ClusterStates,
    /// Which nodes were heard from after a pod of theirs was gone.
    pub node_leases: NodeLeases,
    /// Whether we may act.
    pub leadership: Leadership,
    /// What is counted.
    pub metrics: Arc<Metrics>,
}

impl Context {
    /// A cluster is gone: nothing is kept about it.
    pub fn forget(&self, key: &ClusterKey) {
        self.pulse.forget(key);
        self.states.forget(key);
        self.applied.forget(key);
        self.served.forget(key);
        self.node_leases.forget(key);
        self.passwords.forget(key);
        self.secrets.forget(key);
        self.metrics.forget(key);
    }
}

//! State that all reconciles share.

use std::sync::Arc;

use kube::Client;
use kube_status::events::EventPublisher;
use kube_status::finalizer::Finalizer;
use kube_status::writer::StatusWriter;

use crate::credentials::passwords::KnownPasswords;
use crate::credentials::presented::Served;
use crate::credentials::secrets::Contents;
use crate::kinds::redkey::other_operator::OtherOperator;
use crate::kinds::redkey::robin::link::RobinLinks;
use crate::monitor::Monitor;
use crate::observe::applied::AppliedSettings;
use crate::observe::drift::Shapes;
use crate::observe::evidence::NodeLeases;
use crate::runtime::cache::ClusterKey;
use crate::runtime::caches::Caches;
use crate::runtime::lease::Leadership;
use crate::runtime::metrics::Metrics;
use crate::runtime::settings::Settings;
use crate::runtime::state::ClusterStates;

/// The field manager of server-side apply and of status writes.
pub const MANAGER: &str = "candor";
/// The reporting component of events, which users filter by.
pub const COMPONENT: &str = "valkeycluster-controller";

/// State that all reconciles share. Everything here may be lost in a crash.
pub struct Context {
    /// The client of the API server.
    pub client: Client,
    /// The settings that the operator was started with.
    pub settings: Settings,
    /// Objects from the API server.
    pub caches: Caches,
    /// The member monitor: what members report between two reconciles.
    pub monitor: Monitor,
    /// The connections to the agents of `RedkeyCluster`.
    pub robins: RobinLinks,
    /// Publishes the events of `ValkeyCluster`.
    pub events: EventPublisher,
    /// Publishes the events of `RedkeyCluster`.
    pub redkey_events: EventPublisher,
    /// Writes status.
    pub writer: StatusWriter,
    /// Keeps clusters until they are cleaned up.
    pub finalizer: Finalizer<EventPublisher>,
    /// Objects that were found to match the desired state.
    pub shapes: Shapes,
    /// Contents of users' Secrets.
    pub secrets: Contents,
    /// The operator's own passwords.
    pub passwords: KnownPasswords,
    /// Which server runs with which settings.
    pub applied: AppliedSettings,
    /// Which server presents which certificate.
    pub served: Served,
    /// Whether the existing operator of `RedkeyCluster` still runs.
    pub other_operator: OtherOperator,
    /// State that is retained for each cluster between two reconciles.
    pub states: ClusterStates,
    /// Which nodes renewed their lease after one of their pods was deleted.
    pub node_leases: NodeLeases,
    /// Whether this operator holds the lease and may act.
    pub leadership: Leadership,
    /// The operator's metrics.
    pub metrics: Arc<Metrics>,
}

impl Context {
    /// Removes everything that is cached for a deleted cluster.
    pub fn forget(&self, key: &ClusterKey) {
        self.monitor.forget(key);
        self.robins.forget(key);
        self.other_operator.forget(key);
        self.states.forget(key);
        self.applied.forget(key);
        self.served.forget(key);
        self.node_leases.forget(key);
        self.passwords.forget(key);
        self.secrets.forget(key);
        self.metrics.forget(key);
    }
}

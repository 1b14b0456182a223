//! Startup and graceful shutdown.

use std::sync::Arc;
use std::time::Duration;

use candor_api::valkey::FINALIZER;
use futures::FutureExt;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use kube_status::events::EventPublisher;
use kube_status::finalizer::Finalizer;
use kube_status::writer::StatusWriter;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::credentials::passwords::KnownPasswords;
use crate::credentials::secrets::Contents;
use crate::kinds::redkey::other_operator::OtherOperator;
use crate::kinds::redkey::robin::link::RobinLinks;
use crate::monitor::Monitor;
use crate::observe::applied::AppliedSettings;
use crate::observe::drift::Shapes;
use crate::observe::evidence::NodeLeases;
use crate::reconcile;
use crate::runtime::caches::Caches;
use crate::runtime::context::{COMPONENT, Context, MANAGER};
use crate::runtime::health::{self, Health};
use crate::runtime::lease::{Keeper, Leadership, LeaseError};
use crate::runtime::limits::bounded;
use crate::runtime::metrics::Metrics;
use crate::runtime::queue;
use crate::runtime::settings::Settings;
use crate::runtime::state::ClusterStates;
use crate::runtime::watching::Watching;

/// How long sending the last events may take at shutdown.
const FAREWELL: Duration = Duration::from_secs(3);

/// Why the operator ended.
#[derive(Debug, thiserror::Error)]
pub enum OperatorError {
    /// The lease was lost.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// The health endpoints could not be served.
    #[error("health and metrics cannot be served on {0}; is the port taken?")]
    Health(std::net::SocketAddr, #[source] std::io::Error),
    /// The queue or a watch panicked: the operator would no longer reconcile, or reconcile with stale caches.
    #[error("{0} ended unexpectedly: the operator ends, so that it is restarted")]
    Task(&'static str, #[source] Option<tokio::task::JoinError>),
}

struct Readiness {
    caches: Caches,
    leadership: Leadership,
}

impl Health for Readiness {
    fn ready(&self) -> Result<(), String> {
        let missing = self.caches.missing();
        if missing.is_empty() {
            Ok(())
        } else {
            Err(format!("not listed yet: {}", missing.join(", ")))
        }
    }

    fn leads(&self) -> bool {
        self.leadership.is_ours()
    }
}

/// Runs the operator until `stop`, or until its lease is lost. At the end it finishes reconciles in progress, sends
/// events and releases the lease.
pub async fn run(client: Client, settings: Settings, stop: CancellationToken) -> Result<(), OperatorError> {
    let client = bounded(client);
    let metrics = Arc::new(Metrics::default());
    let caches = Caches::default();
    let (changed, changes) = mpsc::unbounded_channel();
    // A dry run does not take part in leader election: the leader continues, and no lease is written.
    let settings = Settings {
        lease: settings.lease.filter(|_| !settings.dry_run),
        ..settings
    };
    let leadership = match &settings.lease {
        Some(_) => Leadership::default(),
        None => Leadership::unshared(),
    };
    // Caches fill while another operator is still the leader, so that a new leader need not list first.
    let mut watches = Watching::start(client.clone(), &settings, &caches, changed.clone(), metrics.clone());
    let health = serve_health(&settings, &caches, &leadership, &metrics);
    let lease = keep_lease(&settings, &leadership);
    let instance = settings.lease.as_ref().map_or(COMPONENT, |lease| &lease.identity);
    let events = EventPublisher::builder(COMPONENT)
        .instance(instance)
        .start(client.clone());
    let redkey_events = EventPublisher::builder(candor_api::redkey::EVENT_SOURCE)
        .instance(instance)
        .start(client.clone());
    let context = Arc::new(Context {
        redkey_events: redkey_events.clone(),
        robins: RobinLinks::new(changed.clone()),
        monitor: Monitor::new(changed),
        finalizer: Finalizer::new(FINALIZER, events.clone()),
        events: events.clone(),
        writer: StatusWriter::new(MANAGER),
        shapes: Shapes::default(),
        secrets: Contents::default(),
        applied: AppliedSettings::default(),
        served: crate::credentials::presented::Served::default(),
        other_operator: OtherOperator::default(),
        states: ClusterStates::default(),
        node_leases: NodeLeases::default(),
        passwords: KnownPasswords::default(),
        leadership: leadership.clone(),
        metrics: metrics.clone(),
        caches: caches.clone(),
        settings: settings.clone(),
        client: client.clone(),
    });
    let ended = CancellationToken::new();
    let work = {
        let (ended, leadership, caches) = (ended.clone(), leadership.clone(), caches.clone());
        let metrics = metrics.clone();
        async move {
            tokio::select! {
                () = async { leadership.acquired().await; caches.ready().await } => {}
                () = ended.cancelled() => return,
            }
            let reconcile = move |key| reconcile::reconcile(context.clone(), key).boxed();
            queue::run(changes, ended, &metrics, &reconcile).await;
        }
    };
    let mut work = tokio::spawn(work);
    let result = tokio::select! {
        () = stop.cancelled() => Ok(()),
        error = lease => Err(OperatorError::from(error)),
        error = health => Err(error),
        end = &mut work => Err(OperatorError::Task("the queue", end.err())),
        end = watches.join_next() => Err(OperatorError::Task("a watch", end.and_then(Result::err))),
    };
    ended.cancel();
    if !work.is_finished() {
        // Its error is reported above, or it ends because it was stopped.
        let _ = work.await;
    }
    watches.shutdown().await;
    if !events.flush(FAREWELL).await || !redkey_events.flush(FAREWELL).await {
        tracing::warn!("some events could not be sent before the end");
    }
    if result.is_ok()
        && leadership.is_ours()
        && let Some(lease) = &settings.lease
    {
        let api: Api<Lease> = Api::namespaced(lease.client.clone(), &lease.namespace);
        if let Err(error) = Keeper::release(&api, &lease.name, &lease.identity).await {
            tracing::warn!(%error, "the lease could not be given back; the next operator waits until it runs out");
        }
    }
    result
}

/// Returns only with an error.
async fn serve_health(
    settings: &Settings,
    caches: &Caches,
    leadership: &Leadership,
    metrics: &Arc<Metrics>,
) -> OperatorError {
    let Some(address) = settings.health else {
        return std::future::pending().await;
    };
    let readiness = Arc::new(Readiness {
        caches: caches.clone(),
        leadership: leadership.clone(),
    });
    match health::serve(address, readiness, metrics.clone()).await {
        Ok(()) => std::future::pending().await,
        Err(error) => OperatorError::Health(address, error),
    }
}

/// Returns only when the lease is lost.
async fn keep_lease(settings: &Settings, leadership: &Leadership) -> LeaseError {
    let Some(lease) = &settings.lease else {
        return std::future::pending().await;
    };
    let api: Api<Lease> = Api::namespaced(lease.client.clone(), &lease.namespace);
    let keeper = Keeper::new(
        api,
        lease.name.clone(),
        lease.identity.clone(),
        lease.timing,
        leadership.clone(),
    );
    keeper.keep().await
}

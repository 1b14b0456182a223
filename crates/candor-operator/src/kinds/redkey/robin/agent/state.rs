//! The state behind the HTTP API.

use std::time::Duration;

use candor_api::RedkeyCluster;
use candor_api::redkey::MAINTENANCE;
use candor_api::redkey::status::ClusterStatus;
use kube::ResourceExt;
use tokio::time::Instant;

use super::super::api::{Check, Move, Node, Operation, Replicas, RobinStatus};
use super::super::{Change, Rejection, RobinState, Tokens, Work};
use super::driver::Driver;
use super::kubernetes::Kubernetes;
use super::measure::Measured;
use super::observer::Observer;
use super::requests::Request;
use super::rounds::Rounds;
use super::{check, measure};
use crate::kinds::redkey::objects::names;

/// Everything of the process.
pub(super) struct Agent<D> {
    pub(super) driver: D,
    pub(super) observer: Observer,
    pub(super) rounds: Rounds,
    pub(super) kubernetes: Kubernetes,
    measured: tokio::sync::Mutex<Option<Measured>>,
}

/// What calls of the API have set. Everything here may be lost in a crash.
#[derive(Debug, Default)]
pub(super) struct Overrides {
    /// The status, and the operator's status at that time: it holds until that changes.
    status: Option<(RobinStatus, Option<RobinStatus>)>,
    /// The topology, and the generation at that time: it holds until that changes.
    replicas: Option<(Replicas, Option<i64>)>,
}

impl<D: Driver> Agent<D> {
    pub(super) fn new(driver: D, observer: Observer, rounds: Rounds, kubernetes: Kubernetes) -> Self {
        Self {
            driver,
            observer,
            rounds,
            kubernetes,
            measured: tokio::sync::Mutex::default(),
        }
    }

    fn cluster(&self) -> Option<std::sync::Arc<RedkeyCluster>> {
        self.kubernetes.cluster().borrow().clone()
    }

    /// The status that the operator has written: in the `RedkeyCluster`, or in the configuration until that was read.
    fn operators_status(&self) -> RobinStatus {
        let word = match self.cluster() {
            Some(cluster) => cluster.status.as_ref().map(|status| status.status.clone()),
            None => Some(self.loaded().configuration.redis.cluster.status.clone()),
        };
        let known = word.and_then(|word| ClusterStatus::parse(&word));
        known.map_or(RobinStatus::Unknown, RobinStatus::from)
    }

    /// The status that decides what Robin does.
    pub(super) fn effective_status(&self) -> RobinStatus {
        if self.cluster().is_some_and(|cluster| is_paused(&cluster)) {
            return RobinStatus::Maintenance;
        }
        let operators = self.operators_status();
        let mut overrides = self.rounds.overrides();
        overrides.status.take_if(|(_, before)| *before != Some(operators));
        overrides.status.map_or(operators, |(set, _)| set)
    }

    /// The topology to reach.
    pub(super) fn effective_replicas(&self) -> Replicas {
        let cluster = self.cluster();
        let generation = cluster.as_ref().and_then(|cluster| cluster.metadata.generation);
        let mut overrides = self.rounds.overrides();
        overrides.replicas.take_if(|(_, before)| *before != generation);
        if let Some((set, _)) = overrides.replicas {
            return set;
        }
        let loaded = self.loaded();
        let configured = &loaded.configuration.redis.cluster;
        let (primaries, replicas) = match &cluster {
            Some(cluster) => (cluster.spec.primaries, cluster.spec.replicas_per_primary),
            None => (configured.primaries, configured.replicas_per_primary),
        };
        Replicas {
            primaries: u32::try_from(primaries).unwrap_or(0),
            replicas_per_primary: u32::try_from(replicas).unwrap_or(0),
        }
    }

    /// How long an ended request is remembered.
    fn retention(&self) -> Duration {
        let loaded = self.loaded();
        let seconds = loaded.configuration.redis.reconciler.operation_cleanup_interval_seconds;
        Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
    }

    fn request(&self, request: Request) -> Result<Work, Rejection> {
        let status = self.effective_status();
        let retention = self.retention();
        let fits = || match status {
            RobinStatus::Maintenance => Ok(()),
            _ => self.driver.fits(&request),
        };
        let work = self.rounds.requests().call(request, Instant::now(), retention, fits)?;
        if work == Work::Started {
            tracing::info!(%request, "requested over HTTP");
            self.rounds.wake();
        }
        Ok(work)
    }

    /// The ordinal of a server that is named by its index or its pod.
    fn ordinal(&self, name: &str) -> Result<u32, Rejection> {
        let unknown = || Rejection::UnknownNode(name.to_owned());
        let index = name
            .parse()
            .ok()
            .filter(|_| name.bytes().all(|byte| byte.is_ascii_digit()));
        let ordinal = index.or_else(|| names::ordinal(&self.observer.key.name, name));
        let ordinal = ordinal.ok_or_else(unknown)?;
        let snapshot = self.observer.snapshot();
        let exists = snapshot.is_some_and(|snapshot| snapshot.servers.contains_key(&ordinal));
        exists.then_some(ordinal).ok_or_else(unknown)
    }
}

/// Whether a person has paused the cluster. It counts before the operator has noticed it.
fn is_paused(cluster: &RedkeyCluster) -> bool {
    let annotation = cluster.annotations().get(MAINTENANCE);
    cluster.spec.paused || annotation.is_some_and(|value| value == "true")
}

impl<D: Driver> RobinState for Agent<D> {
    fn tokens(&self) -> Tokens {
        let loaded = self.loaded();
        let previous = loaded.credentials.previous.as_ref().map(|(token, _)| token.as_str());
        Tokens::new([loaded.credentials.token.as_str()].into_iter().chain(previous))
    }

    fn status(&self) -> RobinStatus {
        self.effective_status()
    }

    async fn set_status(&self, status: RobinStatus) -> Result<(), Rejection> {
        let paused = self.cluster().is_some_and(|cluster| is_paused(&cluster));
        if paused && status != RobinStatus::Maintenance {
            return Err(Rejection::Conflict(format!(
                "the RedkeyCluster is paused: remove spec.paused and the annotation {MAINTENANCE} first"
            )));
        }
        let operators = self.operators_status();
        self.rounds.overrides().status = Some((status, Some(operators)));
        tracing::info!(%status, "status set over HTTP");
        self.rounds.wake();
        Ok(())
    }

    fn replicas(&self) -> Replicas {
        self.effective_replicas()
    }

    async fn set_replicas(&self, desired: Replicas) -> Result<Change, Rejection> {
        if desired == self.effective_replicas() {
            return Ok(Change::Unchanged);
        }
        if self.effective_status() != RobinStatus::Maintenance {
            return Err(Rejection::Conflict(format!(
                "the spec of the RedkeyCluster decides the topology: change it there (kubectl scale rkcl {} \
                 --replicas={})",
                self.observer.key.name, desired.primaries
            )));
        }
        let generation = self.cluster().and_then(|cluster| cluster.metadata.generation);
        self.rounds.overrides().replicas = Some((desired, generation));
        tracing::info!(?desired, "topology set over HTTP");
        self.rounds.wake();
        Ok(Change::Started)
    }

    fn operation(&self) -> Operation {
        let retention = self.retention();
        let requested = self.rounds.requests().operation(Instant::now(), retention);
        requested.unwrap_or_else(|| self.observer.driven().operation)
    }

    async fn check(&self) -> Result<Check, Rejection> {
        let unknown = || Rejection::Failed("the pods of the cluster are not known yet; call again".to_owned());
        let snapshot = self.observer.observe().await.ok_or_else(unknown)?;
        Ok(check::check(&self.observer.key.name, &snapshot.servers))
    }

    fn nodes(&self) -> Vec<Node> {
        let Some(snapshot) = self.observer.snapshot() else {
            return Vec::new();
        };
        let nodes = check::nodes(&self.observer.key.name, &snapshot.servers);
        nodes.into_iter().map(|(node, _)| node).collect()
    }

    async fn fix(&self) -> Result<Work, Rejection> {
        self.request(Request::Fix)
    }

    async fn recreate(&self) -> Result<Work, Rejection> {
        self.request(Request::Recreate)
    }

    async fn move_slots(&self, what: Move) -> Result<Work, Rejection> {
        let (from, to) = (self.ordinal(&what.from)?, self.ordinal(&what.to)?);
        if from == to {
            return Err(Rejection::Invalid(
                "from and to are the same server: name two".to_owned(),
            ));
        }
        self.request(Request::Move {
            from,
            to,
            slots: what.slots,
        })
    }

    async fn reset(&self, node: String) -> Result<Work, Rejection> {
        let ordinal = self.ordinal(&node)?;
        self.request(Request::Reset(ordinal))
    }

    async fn metrics(&self) -> String {
        let mut measured = self.measured.lock().await;
        let loaded = self.loaded();
        let metrics = &loaded.configuration.redis.metrics;
        let interval = Duration::from_secs(u64::try_from(metrics.interval_seconds).unwrap_or(0));
        let recent = measured.take().filter(|measured| measured.at.elapsed() < interval);
        let current = match recent {
            Some(recent) => recent,
            None => measure::measure(&self.observer).await,
        };
        let text = super::super::metrics::text(&current.measurement, &metrics.redis_info_keys);
        *measured = Some(current);
        text
    }
}

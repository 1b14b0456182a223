//! Queries the servers and publishes what they report.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use candor_engine::model::{MemberRef, ShardIndex};
use futures::future::join_all;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use tokio::time::Instant;
use valkey_admin::client::{Deadlines, Node};

use super::super::link::{Feed, Frame, ObservedServer};
use super::driver::Driven;
use super::files::Loaded;
use super::kubernetes::{Kubernetes, Pods};
use super::passwords::Passwords;
use crate::monitor::{ClusterKey, Monitor};

/// An observation of this age is still good for a round.
const FRESH: Duration = Duration::from_millis(50);
/// How long a server has to accept a password before another one is tried.
const LOGIN: Duration = Duration::from_secs(1);

/// The servers at one moment.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) begun: Instant,
    pub(super) pods: Arc<Pods>,
    pub(super) servers: BTreeMap<u32, ObservedServer>,
    pub(super) passwords: Passwords,
}

pub(super) struct Observer {
    pub(super) key: ClusterKey,
    pub(super) monitor: Monitor,
    pub(super) feed: Feed,
    kubernetes: Kubernetes,
    /// Queries do not overlap, so that an older one never replaces a newer one.
    turn: tokio::sync::Mutex<()>,
    known: Mutex<Known>,
}

struct Known {
    loaded: Arc<Loaded>,
    passwords: Passwords,
    /// When another password was last tried for a server.
    tried: BTreeMap<u32, Instant>,
    snapshot: Option<Arc<Snapshot>>,
    driven: Driven,
    /// The frame that the last round was about.
    settled: Option<Frame>,
}

/// The reference of a server in the member monitor.
pub fn member(ordinal: u32) -> MemberRef {
    MemberRef {
        shard: ShardIndex(0),
        node: ordinal,
    }
}

impl Observer {
    pub(super) fn new(key: ClusterKey, monitor: Monitor, feed: Feed, kubernetes: Kubernetes, loaded: Loaded) -> Self {
        Self {
            key,
            monitor,
            feed,
            kubernetes,
            turn: tokio::sync::Mutex::new(()),
            known: Mutex::new(Known {
                passwords: Passwords::new(loaded.password.clone()),
                loaded: Arc::new(loaded),
                tried: BTreeMap::new(),
                snapshot: None,
                driven: Driven::default(),
                settled: None,
            }),
        }
    }

    pub(super) fn loaded(&self) -> Arc<Loaded> {
        self.known().loaded.clone()
    }

    pub(super) fn snapshot(&self) -> Option<Arc<Snapshot>> {
        self.known().snapshot.clone()
    }

    pub(super) fn driven(&self) -> Driven {
        self.known().driven.clone()
    }

    /// Takes over changed files. Servers keep their connections until they accept another password.
    pub(super) fn apply(&self, loaded: Loaded) {
        let mut known = self.known();
        let servers: Vec<u32> = known
            .snapshot
            .iter()
            .flat_map(|one| one.servers.keys().copied())
            .collect();
        known.passwords.change(loaded.password.clone(), servers);
        known.loaded = Arc::new(loaded);
    }

    /// Queries every server now. None until the pods are known.
    pub(super) async fn observe(&self) -> Option<Arc<Snapshot>> {
        let _turn = self.turn.lock().await;
        let begun = Instant::now();
        let pods = self.kubernetes.pods().borrow().clone()?;
        self.connect(&pods);
        let mut servers = self.monitor.scrape(&self.key).await;
        let rejecting = self.monitor.rejecting(&self.key);
        let observed = pods.iter().map(|(ordinal, pod)| {
            let at = member(*ordinal);
            let observed = ObservedServer {
                pod_uid: pod.uid().unwrap_or_default(),
                ip: address(pod),
                server: servers.remove(&at).unwrap_or_default(),
                trouble: self.monitor.trouble(&self.key, at),
                rejects_login: rejecting.contains_key(&at),
            };
            (*ordinal, observed)
        });
        let servers = observed.collect();
        let mut known = self.known();
        for at in rejecting.keys() {
            known.try_next_password(at.node, begun);
        }
        let snapshot = Arc::new(Snapshot {
            begun,
            servers,
            passwords: known.passwords.clone(),
            pods: pods.clone(),
        });
        known.snapshot = Some(snapshot.clone());
        drop(known);
        if !rejecting.is_empty() {
            self.connect(&pods);
        }
        Some(snapshot)
    }

    /// The same, unless a query began after `since` and a moment ago.
    pub(super) async fn observe_since(&self, since: Instant) -> Option<Arc<Snapshot>> {
        let now = Instant::now();
        let recent = self
            .snapshot()
            .filter(|one| one.begun >= since && one.begun + FRESH >= now);
        match recent {
            Some(recent) => Some(recent),
            None => self.observe().await,
        }
    }

    /// Points the member monitor to the servers.
    fn connect(&self, pods: &Pods) {
        let mut known = self.known();
        known.passwords.retain(|ordinal| pods.contains_key(&ordinal));
        known.tried.retain(|ordinal, _| pods.contains_key(ordinal));
        let endpoints = pods.iter().filter_map(|(ordinal, pod)| {
            let endpoint = known.passwords.endpoint(*ordinal, address(pod)?);
            Some((member(*ordinal), endpoint))
        });
        self.monitor.watch(&self.key, endpoints.collect());
    }

    /// Whether a server has another password than the desired one, or accepts none.
    pub(super) fn has_login_problems(&self) -> bool {
        let outdated = self.known().passwords.outdated().next().is_some();
        outdated || !self.monitor.rejecting(&self.key).is_empty()
    }

    /// Asks servers with another password whether they accept the desired one now.
    pub(super) async fn try_desired_password(&self) {
        let Some(pods) = self.kubernetes.pods().borrow().clone() else {
            return;
        };
        let asked: Vec<(u32, Node)> = {
            let known = self.known();
            let outdated = known.passwords.outdated().filter_map(|ordinal| {
                let ip = address(pods.get(&ordinal)?)?;
                let endpoint = known.passwords.desired_endpoint(ip);
                Some((ordinal, Node::new(endpoint, Deadlines::default())))
            });
            outdated.collect()
        };
        let desired = self.known().passwords.desired().cloned();
        let answers = asked.into_iter().map(|(ordinal, node)| async move {
            let accepted = node.ping().await.is_ok();
            accepted.then_some(ordinal)
        });
        let accepted = join_all(answers).await;
        let mut known = self.known();
        // The password may have changed again in the meantime.
        if known.passwords.desired() == desired.as_ref() {
            for ordinal in accepted.into_iter().flatten() {
                known.passwords.updated(ordinal);
            }
        }
    }

    /// Publishes the last observation. A plan that was empty for another observation confirms nothing.
    pub(super) fn publish(&self) {
        let (frame, begun) = {
            let known = self.known();
            let Some(snapshot) = &known.snapshot else { return };
            let mut frame = known.frame(&snapshot.servers);
            let settled = known.settled.as_ref();
            frame.plan_empty &= settled.is_some_and(|settled| !frame.differs_from(settled));
            (frame, snapshot.begun)
        };
        if let Err(error) = self.feed.publish(&frame, begun) {
            tracing::error!(%error, "the observation cannot be published");
        }
    }

    /// Publishes the result of a round about this observation.
    pub(super) fn settle(&self, snapshot: &Snapshot, driven: Driven) {
        let mut known = self.known();
        known.driven = driven;
        known.settled = Some(known.frame(&snapshot.servers));
        drop(known);
        self.publish();
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn frame(&self, servers: &BTreeMap<u32, ObservedServer>) -> Frame {
        Frame {
            generation: self.driven.generation,
            plan_empty: self.driven.plan_empty,
            rejected: self.driven.rejected.clone(),
            ..Frame::new(servers.clone())
        }
    }

    fn try_next_password(&mut self, ordinal: u32, now: Instant) {
        let tried = self.tried.get(&ordinal);
        if tried.is_none_or(|at| *at + LOGIN <= now) {
            self.passwords.rejected(ordinal);
            self.tried.insert(ordinal, now);
        }
    }
}

/// The address of a pod in which a server may run. A pod that is over keeps its address in its status, although another
/// pod may have it.
fn address(pod: &Pod) -> Option<IpAddr> {
    let status = pod.status.as_ref()?;
    let over = matches!(status.phase.as_deref(), Some("Failed" | "Succeeded"));
    let ip = status.pod_ip.as_deref().filter(|_| !over)?;
    ip.parse().ok()
}

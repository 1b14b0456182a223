//! Entry point: start an audit, read the current result, finish it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use futures::{Stream, StreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DynamicObject};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, watcher};
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinSet};

use crate::canary::routes::Routes;
use crate::canary::writer::Writer;
use crate::clock::{Clock, Moment};
use crate::credentials::{Login, Source};
use crate::judge::{Now, judge};
use crate::object::{Kind, Object};
use crate::observer;
use crate::report::Audit;
use crate::result::AuditResult;
use crate::timeline::{Happened, Timeline};

/// The port of every member.
const PORT: u16 = 6379;

/// Minimum interval between two lookups of the password after a rejected login.
const LOGIN_PAUSE: Duration = Duration::from_millis(500);

/// Which cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterRef {
    /// Its kind.
    pub kind: Kind,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// How to audit.
#[derive(Clone, Debug)]
pub struct Options {
    /// Canaries per second, over all slots. With 0 the audit writes nothing and only compares status with the servers'
    /// replies.
    pub rate: u32,
    /// The user to log in as; `None` means `default`.
    pub user: Option<String>,
    /// Its password; `None` means the password that the spec gives to that user.
    pub password: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            rate: 2000,
            user: None,
            password: None,
        }
    }
}

/// Why an audit cannot start.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// The cluster object cannot be read.
    #[error("reading {kind} {namespace}/{name}: are its CRDs installed, and may this user read it?")]
    Read {
        /// Its kind.
        kind: Kind,
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// Why.
        #[source]
        source: Box<kube::Error>,
    },
    /// The cluster's servers accept TLS connections only.
    #[error("ValkeyCluster {namespace}/{name} wants TLS: the auditor speaks plain connections only")]
    Tls {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
}

/// State that all parts share.
pub(crate) struct Shared {
    pub clock: Clock,
    pub timeline: Timeline,
    pub routes: Routes,
    /// Notified when a server rejects the auditor's login: the password may have changed.
    pub rejected: Notify,
    login: Mutex<Login>,
    /// Errors of reads from the API server.
    problems: Mutex<BTreeSet<String>>,
    ended: OnceLock<Moment>,
}

impl Shared {
    pub fn login(&self) -> Login {
        self.login.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn log_in(&self, login: Login) {
        *self.login.lock().unwrap_or_else(PoisonError::into_inner) = login;
    }

    fn problem(&self, message: String) {
        self.problems
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(message);
    }

    /// When the audit was asked to end; the current time if it was not.
    pub fn ended(&self) -> Moment {
        self.ended.get().copied().unwrap_or_else(|| self.clock.now())
    }
}

/// A running audit. Dropping it ends the audit without a result.
pub struct Auditor {
    cluster: ClusterRef,
    began: jiff::Timestamp,
    shared: Arc<Shared>,
    writer: Arc<Writer>,
    tasks: JoinSet<()>,
}

impl Auditor {
    /// Starts immediately. The cluster need not exist yet: canaries start as soon as every slot has an owner.
    pub async fn start(client: kube::Client, cluster: ClusterRef, options: Options) -> Result<Self, AuditError> {
        let objects: Api<DynamicObject> =
            Api::namespaced_with(client.clone(), &cluster.namespace, &cluster.kind.resource());
        let ClusterRef { kind, namespace, name } = cluster.clone();
        let found = objects.get_opt(&name).await.map_err(|error| AuditError::Read {
            kind,
            namespace: namespace.clone(),
            name: name.clone(),
            source: Box::new(error),
        })?;
        let source = Source {
            kind,
            client: client.clone(),
            user: options.user,
            password: options.password,
        };
        let mut login = source.given();
        if let Some(object) = &found {
            if object.data["spec"]["networking"]["tls"].is_object() {
                return Err(AuditError::Tls { namespace, name });
            }
            login = source.login(object).await;
        }
        let shared = Arc::new(Shared {
            clock: Clock::start(),
            timeline: Timeline::default(),
            routes: Routes::default(),
            rejected: Notify::new(),
            login: Mutex::new(login),
            problems: Mutex::default(),
            ended: OnceLock::new(),
        });
        let began = jiff::Timestamp::now();
        let prefix = format!("candor-audit-{}", began.as_microsecond());
        let writer = Arc::new(Writer::new(shared.clone(), &prefix));
        let mut tasks = JoinSet::new();
        let of_it = watcher::Config::default().fields(&format!("metadata.name={name}"));
        let events = watcher(objects, of_it).default_backoff().boxed();
        tasks.spawn(follow_object(shared.clone(), events, source));
        let pods: Api<Pod> = Api::namespaced(client, &namespace);
        let members = watcher::Config::default().labels(&kind.members(&name));
        let events = watcher(pods, members).default_backoff().boxed();
        tasks.spawn(follow_members(shared.clone(), events));
        tasks.spawn(writer.clone().run(options.rate));
        Ok(Self {
            cluster,
            began,
            shared,
            writer,
            tasks,
        })
    }

    /// The current state.
    pub fn now(&self) -> Now {
        judge(&self.shared.timeline.sorted(), self.shared.clock.now()).1
    }

    /// How many canaries have been acknowledged so far.
    pub fn acknowledged(&self) -> u64 {
        self.writer.acknowledged()
    }

    /// Ends the audit: sends no new canaries, reads back and removes the existing ones, and returns the figures up to
    /// now.
    pub async fn finish(mut self) -> Audit {
        let end = *self.shared.ended.get_or_init(|| self.shared.clock.now());
        let writes = self.writer.finish().await;
        self.tasks.abort_all();
        let (truth, _) = judge(&self.shared.timeline.sorted(), end);
        let problems = self.shared.problems.lock().unwrap_or_else(PoisonError::into_inner);
        let problems: Vec<String> = problems.iter().cloned().collect();
        let stalled = self.writer.stalled();
        let unobserved = stalled + observer::PAUSE;
        Audit {
            cluster: format!("{}/{}", self.cluster.namespace, self.cluster.name),
            began: self.began,
            lasted: end.0,
            result: AuditResult::of(&truth, &writes, unobserved, &problems),
            truth,
            writes,
            stalled,
            unobserved,
            problems,
        }
    }
}

/// Records changes of the object in the timeline.
async fn follow_object(
    shared: Arc<Shared>,
    mut events: impl Stream<Item = watcher::Result<watcher::Event<DynamicObject>>> + Unpin,
    source: Source,
) {
    let mut last: Option<Object> = None;
    let mut current: Option<DynamicObject> = None;
    let mut listed = false;
    loop {
        let event = tokio::select! {
            event = events.next() => event,
            () = shared.rejected.notified() => {
                // A password may be rotated without a change of the object.
                if let Some(object) = &current {
                    shared.log_in(source.login(object).await);
                }
                tokio::time::sleep(LOGIN_PAUSE).await;
                continue;
            }
        };
        let Some(event) = event else { return };
        let when = shared.clock.now();
        let object = match event {
            Ok(watcher::Event::Init) => {
                listed = false;
                continue;
            }
            Ok(watcher::Event::InitDone) if listed => continue,
            Ok(watcher::Event::InitDone | watcher::Event::Delete(_)) => None,
            Ok(watcher::Event::InitApply(object)) => {
                listed = true;
                Some(object)
            }
            Ok(watcher::Event::Apply(object)) => Some(object),
            Err(error) => {
                tracing::debug!(%error, "the cluster's object cannot be watched just now");
                shared.problem(format!("the cluster cannot be watched: {}", why(&error)));
                continue;
            }
        };
        let observed = object.as_ref().map(|object| Object::read(source.kind, object));
        if observed == last {
            continue;
        }
        let new_spec =
            observed.as_ref().map(|object| object.generation) != last.as_ref().map(|object| object.generation);
        shared.timeline.add(when, Happened::Object(observed.clone()));
        last = observed;
        current = object;
        if let (Some(object), true) = (&current, new_spec) {
            shared.log_in(source.login(object).await);
        }
    }
}

/// The API server's message, where it sent one.
fn why(error: &watcher::Error) -> String {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(next) = cause {
        if let Some(kube::Error::Api(status)) = next.downcast_ref::<kube::Error>() {
            return status.message.clone();
        }
        cause = next.source();
    }
    error.to_string()
}

/// Runs one observer task per member.
async fn follow_members(
    shared: Arc<Shared>,
    mut events: impl Stream<Item = watcher::Result<watcher::Event<Pod>>> + Unpin,
) {
    let mut pods: BTreeMap<String, IpAddr> = BTreeMap::new();
    let mut coming: Option<BTreeMap<String, IpAddr>> = None;
    let mut observers: BTreeMap<(String, IpAddr), ObserverTask> = BTreeMap::new();
    let mut published = false;
    while let Some(event) = events.next().await {
        match event {
            Ok(watcher::Event::Init) => {
                coming = Some(BTreeMap::new());
                continue;
            }
            Ok(watcher::Event::InitApply(pod)) => {
                if let Some((name, ip)) = member(&pod) {
                    coming.get_or_insert_default().insert(name, ip);
                }
                continue;
            }
            Ok(watcher::Event::InitDone) => pods = coming.take().unwrap_or_default(),
            Ok(watcher::Event::Apply(pod)) => {
                pods.remove(pod.metadata.name.as_deref().unwrap_or_default());
                pods.extend(member(&pod));
            }
            Ok(watcher::Event::Delete(pod)) => _ = pods.remove(pod.metadata.name.as_deref().unwrap_or_default()),
            Err(error) => {
                tracing::debug!(%error, "the cluster's pods cannot be watched just now");
                shared.problem(format!("its pods cannot be watched: {}", why(&error)));
                continue;
            }
        }
        let desired: BTreeSet<(String, IpAddr)> = pods.clone().into_iter().collect();
        if published && observers.keys().eq(&desired) {
            continue;
        }
        published = true;
        observers.retain(|who, _| {
            let stays = desired.contains(who);
            if !stays {
                shared.routes.not_responding(SocketAddr::new(who.1, PORT));
            }
            stays
        });
        let names = pods.keys().cloned().collect();
        shared.timeline.add(shared.clock.now(), Happened::Members(names));
        for (name, ip) in desired {
            let address = SocketAddr::new(ip, PORT);
            let observer =
                || ObserverTask(tokio::spawn(observer::watch(shared.clone(), name.clone(), address)).abort_handle());
            observers.entry((name.clone(), ip)).or_insert_with(observer);
        }
    }
}

/// Aborts the observer task when its table entry is dropped.
struct ObserverTask(AbortHandle);

impl Drop for ObserverTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A pod that counts as a member: it has an address and is not terminating.
fn member(pod: &Pod) -> Option<(String, IpAddr)> {
    let status = pod.status.as_ref()?;
    let over = matches!(status.phase.as_deref(), Some("Succeeded" | "Failed"));
    if over || pod.metadata.deletion_timestamp.is_some() {
        return None;
    }
    Some((pod.metadata.name.clone()?, status.pod_ip.as_deref()?.parse().ok()?))
}

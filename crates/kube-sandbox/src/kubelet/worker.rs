//! One pod from its arrival on a node to its end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use super::container::{Runner, now};
use super::create::hosts_file;
use super::events::Reason;
use super::pod::{Context, PodShared, Role};
use super::report::Reporter;
use super::status::Facts;
use super::volumes::{Preparation, Shown};

/// When a token that could not be renewed is asked for again.
const RENEW_AGAIN: Duration = Duration::from_secs(60);

/// A message to a worker.
#[derive(Debug)]
pub(super) enum Update {
    /// The object changed.
    Pod(Arc<Pod>),
    /// The object is gone, perhaps before its containers.
    Deleted(Arc<Pod>),
    /// A `ConfigMap` or `Secret` of the pod's namespace changed; `None`: any may have.
    Object(Option<Shown>),
}

/// Works for one pod.
pub(super) struct Worker {
    context: Arc<Context>,
    shared: Arc<PodShared>,
    inbox: mpsc::UnboundedReceiver<Update>,
    reporter: Reporter,
    runners: JoinSet<String>,
    /// Containers that were begun, with the way to stop them.
    begun: BTreeMap<String, watch::Sender<Option<Instant>>>,
    alive: BTreeMap<String, Role>,
    volumes: JoinSet<()>,
    volumes_ready: watch::Receiver<bool>,
    refresh_at: Option<Instant>,
    start_time: Time,
    ending: Option<Ending>,
    over: bool,
}

/// Why and until when a pod is brought to its end.
struct Ending {
    deadline: Instant,
    failure: Option<(&'static str, String)>,
}

impl Worker {
    pub fn new(context: Arc<Context>, shared: Arc<PodShared>, inbox: mpsc::UnboundedReceiver<Update>) -> Self {
        let (_, volumes_ready) = watch::channel(false);
        let start = shared
            .pod()
            .status
            .as_ref()
            .and_then(|status| status.start_time.clone());
        Self {
            reporter: Reporter::new(context.client.clone(), &shared),
            context,
            shared,
            inbox,
            runners: JoinSet::new(),
            begun: BTreeMap::new(),
            alive: BTreeMap::new(),
            volumes: JoinSet::new(),
            volumes_ready,
            refresh_at: None,
            start_time: start.unwrap_or_else(now),
            ending: None,
            over: false,
        }
    }

    /// Works until the pod is over and its object is gone, or its namesake's turn has come.
    pub async fn run(mut self) {
        if is_terminal(&self.shared.pod()) {
            // Ended under an earlier kubelet: nothing runs, only its deletion is left to do.
            self.over = true;
        } else if let Err(error) = self.arrive() {
            let message = format!("Failed to create pod sandbox: {error}");
            self.context
                .recorder
                .pod(&self.shared.pod(), Reason::FailedCreatePodSandBox, message);
        }
        let mut gone = false;
        loop {
            self.consider_deletion(gone);
            self.advance();
            if !gone && !self.reported_by_another() {
                self.report().await;
            }
            if self.over && gone {
                break;
            }
            if self.over && self.shared.pod().metadata.deletion_timestamp.is_some() && self.reporter.delete().await {
                break;
            }
            gone |= self.wait().await;
        }
        self.clean().await;
    }

    /// A pod that was over when this kubelet met it keeps the status it has.
    fn reported_by_another(&self) -> bool {
        self.over && self.begun.is_empty() && self.ending.is_none()
    }

    fn arrive(&mut self) -> std::io::Result<()> {
        let spec = self.shared.pod().spec.clone().unwrap_or_default();
        std::fs::create_dir_all(&self.shared.folder)?;
        std::fs::write(self.shared.folder.join("hosts"), hosts_file(&self.shared, &spec))?;
        let (ready, receiver) = watch::channel(false);
        self.volumes_ready = receiver;
        self.volumes
            .spawn(prepare_volumes(self.context.clone(), self.shared.clone(), ready));
        Ok(())
    }

    /// Notes that the pod is to end: by deletion, by force, or by its deadline.
    fn consider_deletion(&mut self, gone: bool) {
        let pod = self.shared.pod();
        let spec = pod.spec.as_ref();
        let deleted = pod.metadata.deletion_timestamp.is_some();
        if deleted || gone {
            let given = pod.metadata.deletion_grace_period_seconds.filter(|_| deleted);
            let grace = given
                .or_else(|| spec.and_then(|spec| spec.termination_grace_period_seconds))
                .unwrap_or(30);
            let grace = Duration::from_secs(u64::try_from(grace).unwrap_or(0).max(1));
            self.end_by(Instant::now() + grace, None);
        }
        let limit = spec.and_then(|spec| spec.active_deadline_seconds);
        if limit.is_some_and(|limit| jiff::Timestamp::now().duration_since(self.start_time.0).as_secs() >= limit)
            && !self.over
        {
            let message = "Pod was active on the node longer than the specified deadline";
            if self.ending.is_none() {
                self.context.recorder.pod(&pod, Reason::DeadlineExceeded, message);
            }
            let grace = spec
                .and_then(|spec| spec.termination_grace_period_seconds)
                .unwrap_or(30);
            let grace = Duration::from_secs(u64::try_from(grace).unwrap_or(0).max(1));
            self.end_by(Instant::now() + grace, Some(("DeadlineExceeded", message.to_owned())));
        }
    }

    fn end_by(&mut self, deadline: Instant, failure: Option<(&'static str, String)>) {
        match &mut self.ending {
            None => self.ending = Some(Ending { deadline, failure }),
            Some(ending) => ending.deadline = ending.deadline.min(deadline),
        }
    }

    /// Starts and stops what is due.
    fn advance(&mut self) {
        while let Some(ended) = self.runners.try_join_next() {
            if let Ok(name) = ended {
                self.alive.remove(&name);
            }
        }
        if self.over {
            return;
        }
        if self.ending.is_some() || self.is_done() {
            self.stop_next();
        } else if *self.volumes_ready.borrow() {
            self.start_next();
        }
    }

    /// Whether no main container will run again, or an init container failed for good.
    fn is_done(&self) -> bool {
        let views = self.shared.views();
        let init_failed = views
            .values()
            .any(|view| view.role == Role::Init && view.done && view.exit_code() != Some(0));
        let mut mains = views.values().filter(|view| view.role == Role::Main);
        init_failed || mains.all(|view| view.done)
    }

    fn start_next(&mut self) {
        let spec = self.shared.pod().spec.clone().unwrap_or_default();
        for container in spec.init_containers.unwrap_or_default() {
            let Some(view) = self.shared.view(&container.name) else {
                return;
            };
            let (name, role) = (container.name.clone(), view.role);
            if !self.begun.contains_key(&name) {
                self.begin(container, role);
                return;
            }
            let passed = match role {
                Role::Init => view.done && view.exit_code() == Some(0),
                Role::Sidecar | Role::Main => view.started,
            };
            let all_begun = spec.containers.iter().all(|main| self.begun.contains_key(&main.name));
            if !(passed || all_begun && role == Role::Sidecar) {
                return;
            }
        }
        for container in spec.containers {
            if !self.begun.contains_key(&container.name) {
                self.begin(container, Role::Main);
            }
        }
    }

    fn begin(&mut self, container: Container, role: Role) {
        let (stop, stopped) = watch::channel(None);
        let name = container.name.clone();
        self.begun.insert(name.clone(), stop);
        self.alive.insert(name.clone(), role);
        let runner = Runner {
            context: self.context.clone(),
            pod: self.shared.clone(),
            container: Arc::new(container),
            role,
            stop: stopped,
        };
        self.runners.spawn(async move {
            runner.run().await;
            name
        });
    }

    /// Main and init containers at once; then the sidecars, the last first.
    fn stop_next(&mut self) {
        self.volumes.abort_all();
        let far = || Instant::now() + Duration::from_secs(30);
        let deadline = self.ending.as_ref().map_or_else(far, |ending| ending.deadline);
        let mut plain: Vec<String> = self
            .alive
            .iter()
            .filter(|(_, role)| **role != Role::Sidecar)
            .map(|(name, _)| name.clone())
            .collect();
        if plain.is_empty() {
            let spec = self.shared.pod().spec.clone().unwrap_or_default();
            let sidecars = spec
                .init_containers
                .unwrap_or_default()
                .into_iter()
                .rev()
                .map(|container| container.name);
            plain.extend(sidecars.into_iter().find(|name| self.alive.contains_key(name)));
        }
        if plain.is_empty() {
            self.over = true;
        }
        for stop in plain.iter().filter_map(|name| self.begun.get(name)) {
            stop.send_if_modified(|known| {
                let sooner = known.is_none_or(|known| deadline < known);
                if sooner {
                    *known = Some(deadline);
                }
                sooner
            });
        }
    }

    async fn report(&mut self) {
        let pod = self.shared.pod();
        let placed = *self.volumes_ready.borrow();
        let status = {
            let views = self.shared.views();
            let facts = Facts {
                pod: &pod,
                views: &views,
                ip: placed.then(|| self.shared.addresses.pod.clone()),
                host_ip: self.shared.addresses.host.clone(),
                start_time: self.start_time.clone(),
                over: self.over && self.ending.is_some(),
                failure: self.ending.as_ref().and_then(|ending| ending.failure.clone()),
                now: now(),
            };
            facts.status()
        };
        self.reporter.report(status).await;
    }

    /// Waits until something has happened; whether the object is gone.
    async fn wait(&mut self) -> bool {
        let limit = self
            .shared
            .pod()
            .spec
            .as_ref()
            .and_then(|spec| spec.active_deadline_seconds);
        let left = limit.filter(|_| !self.over).map(|limit| {
            let active = jiff::Timestamp::now().duration_since(self.start_time.0).as_secs();
            Duration::from_secs(u64::try_from(limit - active).unwrap_or(0))
        });
        let renew = self
            .shared
            .volumes
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .renew_at;
        let update = tokio::select! {
            update = self.inbox.recv() => update,
            () = self.shared.changed.notified() => return false,
            Some(ended) = self.runners.join_next() => {
                if let Ok(name) = ended {
                    self.alive.remove(&name);
                }
                return false;
            }
            // No guard on the present value: what became ready since the last look would never be heard of.
            Ok(()) = self.volumes_ready.changed() => return false,
            () = at(self.refresh_at) => {
                self.refresh_at = None;
                self.refresh();
                return false;
            }
            () = at(renew), if !self.over => {
                let later = Instant::now() + RENEW_AGAIN;
                self.shared.volumes.write().unwrap_or_else(std::sync::PoisonError::into_inner).renew_at = Some(later);
                self.refresh();
                return false;
            }
            () = after(left), if self.ending.is_none() => return false,
            () = self.reporter.retry() => return false,
        };
        match update {
            None => true,
            Some(Update::Deleted(pod)) => {
                self.shared.saw(pod);
                true
            }
            Some(Update::Pod(pod)) => {
                let labels_changed =
                    pod.labels() != self.shared.pod().labels() || pod.annotations() != self.shared.pod().annotations();
                self.shared.saw(pod);
                if labels_changed {
                    self.refresh_later();
                }
                false
            }
            Some(Update::Object(object)) => {
                self.shared.objects.notify_waiters();
                let volumes = self
                    .shared
                    .volumes
                    .read()
                    .unwrap_or_else(std::sync::PoisonError::into_inner);
                let shown = object.is_none_or(|object| volumes.shows(&object));
                drop(volumes);
                if shown {
                    self.refresh_later();
                }
                false
            }
        }
    }

    fn refresh_later(&mut self) {
        let due = Instant::now() + self.context.config.volume_refresh;
        self.refresh_at.get_or_insert(due);
    }

    /// Brings the volumes up to date. A failure leaves them as they were, as on a real node.
    fn refresh(&mut self) {
        if self.over || self.ending.is_some() || !*self.volumes_ready.borrow() {
            return;
        }
        while self.volumes.try_join_next().is_some() {}
        let (context, shared) = (self.context.clone(), self.shared.clone());
        self.volumes.spawn(async move {
            if let Err((volume, error)) = prepare(&context, &shared).await {
                let message = format!("MountVolume.SetUp failed for volume \"{volume}\" : {error}");
                context.recorder.pod(&shared.pod(), Reason::FailedMount, message);
            }
        });
    }

    async fn clean(mut self) {
        self.volumes.shutdown().await;
        self.runners.shutdown().await;
        let folder = self.shared.folder.clone();
        let removed = tokio::task::spawn_blocking(move || std::fs::remove_dir_all(folder)).await;
        if let Ok(Err(error)) = removed {
            tracing::debug!(pod = self.shared.name, %error, "a pod's folder could not be removed");
        }
        self.context.subnet.release(self.shared.ip);
    }
}

fn is_terminal(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

async fn after(wait: Option<Duration>) {
    match wait {
        Some(wait) => sleep(wait).await,
        None => std::future::pending().await,
    }
}

async fn prepare(context: &Context, shared: &PodShared) -> Result<(), (String, super::volumes::VolumeError)> {
    let pod = shared.pod();
    let group = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.security_context.as_ref()?.fs_group);
    let preparation = Preparation {
        client: &context.client,
        pod: &pod,
        addresses: &shared.addresses,
        folder: &shared.folder,
        fs_group: group.filter(|_| !context.launcher.user_namespace()),
    };
    let made = preparation.all().await?;
    *shared
        .volumes
        .write()
        .unwrap_or_else(std::sync::PoisonError::into_inner) = made;
    Ok(())
}

/// Prepares the volumes, again and again with growing waits, or at once when an object they may need has changed.
async fn prepare_volumes(context: Arc<Context>, shared: Arc<PodShared>, ready: watch::Sender<bool>) {
    let mut wait = Duration::from_millis(500);
    loop {
        let changed = shared.objects.notified();
        tokio::pin!(changed);
        changed.as_mut().enable();
        let Err((volume, error)) = prepare(&context, &shared).await else {
            let _ = ready.send(true);
            return;
        };
        let message = format!("MountVolume.SetUp failed for volume \"{volume}\" : {error}");
        context.recorder.pod(&shared.pod(), Reason::FailedMount, message);
        tokio::select! {
            () = changed => {}
            () = sleep(wait) => wait = (wait * 2).min(Duration::from_secs(122)),
        }
    }
}

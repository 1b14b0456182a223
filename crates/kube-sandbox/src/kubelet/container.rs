//! One container from its first start to its end: pull, create, run, supervise, restart.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{
    Container, ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use rustix::process::Signal;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use super::backoff::{Backoff, go_duration};
use super::create::{CreateError, Created, create, image_id};
use super::events::Reason;
use super::images::{Image, full_name};
use super::logs::Log;
use super::pod::{Context, Launched, PodShared, Role};
use super::probe::{Kind, ProbeResult, Target};
use super::process::Process;

/// The pod ends: until when a container may take its time.
pub(super) type Stop = watch::Receiver<Option<Instant>>;

/// How often a container that cannot be configured is tried again.
const CONFIG_RETRY: Duration = Duration::from_secs(10);

/// What a container is given at least after its `preStop` hook.
const LEAST_GRACE: Duration = Duration::from_secs(2);

/// Works for one container.
pub(super) struct Runner {
    pub context: Arc<Context>,
    pub pod: Arc<PodShared>,
    pub container: Arc<Container>,
    pub role: Role,
    pub stop: Stop,
}

/// How one start ended.
struct End {
    code: i32,
    reason: &'static str,
    message: Option<String>,
    started: Option<Time>,
}

impl Runner {
    /// Starts the container, again as its policy says, until it has ended for good.
    pub async fn run(mut self) {
        let name = self.container.name.clone();
        let mut backoff = Backoff::new(self.context.config.restart_backoff);
        let mut stop = self.stop.clone();
        for attempt in 0.. {
            let begun = Instant::now();
            let made = tokio::select! {
                made = self.prepare(attempt) => made,
                _ = wait_for_stop(&mut stop) => break,
            };
            let end = self.live(made, attempt).await;
            let (again, code) = (self.again(end.code), end.code);
            self.ended(end, attempt);
            if !again || self.stop.borrow().is_some() {
                break;
            }
            let wait = backoff.after(begun.elapsed());
            tracing::debug!(
                pod = self.pod.name,
                container = name,
                code,
                ?wait,
                "a container ended and will be restarted"
            );
            tokio::select! {
                () = self.hold_back(wait) => {}
                _ = wait_for_stop(&mut stop) => break,
            }
        }
        self.pod.update(&name, |view| {
            view.done = true;
            view.ready = false;
            view.started = false;
        });
    }

    /// Whether a container that ended with `code` is started again.
    fn again(&self, code: i32) -> bool {
        let object = self.pod.pod();
        let policy = object
            .spec
            .as_ref()
            .and_then(|spec| spec.restart_policy.as_deref())
            .unwrap_or("Always");
        match (self.role, policy) {
            (Role::Sidecar, _) | (Role::Main, "Always") => true,
            (Role::Init | Role::Main, "Never") => false,
            (Role::Init | Role::Main, _) => code != 0,
        }
    }

    fn event(&self, reason: Reason, message: impl Into<String>) {
        let path = self.role.path(&self.container.name);
        self.context.recorder.container(&self.pod.pod(), &path, reason, message);
    }

    fn wait_state(&self, reason: &str, message: Option<String>) {
        let waiting = ContainerStateWaiting {
            reason: Some(reason.to_owned()),
            message,
        };
        self.pod.update(&self.container.name, |view| {
            let ended = view.state.take().filter(|state| state.terminated.is_some());
            view.last = ended.or(view.last.take());
            view.state = Some(ContainerState {
                waiting: Some(waiting),
                ..ContainerState::default()
            });
        });
    }

    /// `CrashLoopBackOff` until the wait is over; no wait shows nothing.
    async fn hold_back(&self, wait: Duration) {
        if wait.is_zero() {
            return;
        }
        let (name, label) = (&self.container.name, self.pod.label());
        let message = format!(
            "back-off {} restarting failed container={name} pod={label}",
            go_duration(wait)
        );
        self.wait_state("CrashLoopBackOff", Some(message));
        self.event(
            Reason::BackOff,
            format!("Back-off restarting failed container {name} in pod {label}"),
        );
        sleep(wait).await;
    }

    /// Pulls and creates, as often as it takes.
    async fn prepare(&self, attempt: i32) -> Created {
        let fault = self.pod.fault(&self.context);
        if fault.never_start {
            std::future::pending::<()>().await;
        }
        sleep(fault.start_delay).await;
        loop {
            let image = self.pull(attempt).await;
            match create(&self.context, &self.pod, &self.container, &image, attempt).await {
                Ok(created) => {
                    self.event(Reason::Created, format!("Created container: {}", self.container.name));
                    return created;
                }
                Err(error) => {
                    let reason = match error {
                        CreateError::Config(_) => "CreateContainerConfigError",
                        CreateError::Root(_) => "CreateContainerError",
                    };
                    self.wait_state(reason, Some(error.to_string()));
                    self.event(Reason::Failed, format!("Error: {error}"));
                }
            }
            tokio::select! {
                () = self.pod.objects.notified() => {}
                () = sleep(CONFIG_RETRY) => {}
            }
        }
    }

    /// Finds the image. An unknown one is retried with back-off, as a real pull is.
    async fn pull(&self, attempt: i32) -> Image {
        let given = self.container.image.clone().unwrap_or_default();
        let mut backoff = Backoff::new(self.context.config.pull_backoff).without_free_try();
        loop {
            let policy = self.container.image_pull_policy.as_deref();
            let known = self.context.config.images.find(&given);
            if let Some(image) = known {
                if policy == Some("Always") && attempt == 0 {
                    self.event(Reason::Pulling, format!("Pulling image \"{given}\""));
                    self.event(
                        Reason::Pulled,
                        format!(
                            "Successfully pulled image \"{given}\" in 0s (0s including waiting). Image size: 0 bytes."
                        ),
                    );
                } else {
                    self.event(
                        Reason::Pulled,
                        format!("Container image \"{given}\" already present on machine"),
                    );
                }
                return image;
            }
            if policy == Some("Never") {
                let message = format!("Container image \"{given}\" is not present with pull policy of Never");
                self.wait_state("ErrImageNeverPull", Some(message.clone()));
                self.event(Reason::Failed, format!("Error: ErrImageNeverPull: {message}"));
                std::future::pending::<()>().await;
            }
            let full = full_name(&given);
            let cause = format!(
                "failed to pull and unpack image \"{full}\": failed to resolve reference \"{full}\": {full}: not found"
            );
            self.event(Reason::Pulling, format!("Pulling image \"{given}\""));
            self.event(Reason::Failed, format!("Failed to pull image \"{given}\": {cause}"));
            self.event(Reason::Failed, "Error: ErrImagePull");
            self.wait_state("ErrImagePull", Some(cause.clone()));
            let wait = backoff.after(Duration::ZERO);
            // The real kubelet shows the error first, and the back-off from its next sync of the pod on.
            sleep(wait / 5).await;
            self.event(Reason::BackOffPull, format!("Back-off pulling image \"{given}\""));
            self.event(Reason::Failed, "Error: ImagePullBackOff");
            let message = format!("Back-off pulling image \"{given}\": ErrImagePull: {cause}");
            self.wait_state("ImagePullBackOff", Some(message));
            sleep(wait / 5 * 4).await;
        }
    }

    /// Runs a created container to its end.
    async fn live(&mut self, made: Created, attempt: i32) -> End {
        let name = self.container.name.clone();
        let end = match self.launch(&made, attempt).await {
            Ok((process, log)) => self.attend(&made, process, log).await,
            Err(message) => {
                self.event(Reason::Failed, format!("Error: {message}"));
                End {
                    code: 128,
                    reason: "StartError",
                    message: Some(message),
                    started: None,
                }
            }
        };
        self.pod.update(&name, |view| {
            view.launched = None;
            view.container_id = Some(made.id);
        });
        let folder = made.folder;
        tokio::task::spawn_blocking(move || {
            if let Err(error) = std::fs::remove_dir_all(&folder) {
                tracing::debug!(folder = %folder.display(), %error, "a container's folder could not be removed");
            }
        });
        end
    }

    async fn launch(&self, made: &Created, attempt: i32) -> Result<(Process, Arc<Log>), String> {
        let folder = self.pod.folder.join("logs").join(&self.container.name);
        let prepared = tokio::fs::create_dir_all(&folder).await;
        let log = match prepared {
            Ok(()) => Log::create(folder.join(format!("{attempt}.log"))).await,
            Err(error) => Err(error),
        };
        let log = log.map_err(|error| error.to_string())?;
        let process = self.context.launcher.container(&made.place, &made.invocation).await.map_err(|error| {
            format!(
                "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create \
                 failed: unable to start container process: error during container init: {error}: unknown"
            )
        })?;
        let launched = Launched {
            handle: process.handle(),
            invocation: Arc::new(made.invocation.clone()),
        };
        let kept = log.clone();
        let image = full_name(self.container.image.as_deref().unwrap_or_default());
        self.pod.update(&self.container.name, |view| {
            view.launched = Some(launched);
            view.container_id = Some(made.id.clone());
            view.restarts = attempt;
            view.image_id = image_id(&image);
            view.image = image;
            view.previous_log = view.log.replace(kept);
            let ended = view.state.take().filter(|state| state.terminated.is_some());
            view.last = ended.or(view.last.take());
            view.state = Some(ContainerState {
                running: Some(ContainerStateRunning {
                    started_at: Some(now()),
                }),
                ..ContainerState::default()
            });
        });
        if attempt >= 2 {
            let _ = tokio::fs::remove_file(folder.join(format!("{}.log", attempt - 2))).await;
        }
        self.event(Reason::Started, format!("Started container {}", self.container.name));
        Ok((process, log))
    }

    /// Supervises a running container: output, hooks, probes, the request to stop.
    async fn attend(&mut self, made: &Created, mut process: Process, log: Arc<Log>) -> End {
        let started = Some(now());
        let launched = Launched {
            handle: process.handle(),
            invocation: Arc::new(made.invocation.clone()),
        };
        let target = Target {
            context: self.context.clone(),
            pod: self.pod.clone(),
            container: self.container.clone(),
            role: self.role,
            launched,
        };
        let mut output = JoinSet::new();
        if let Some((stdout, stderr)) = process.output() {
            output.spawn(log.clone().copy("stdout", stdout));
            output.spawn(log.clone().copy("stderr", stderr));
        }
        let code = self.until_end(&mut process, &target).await;
        while output.join_next().await.is_some() {}
        log.end();
        let message = self.termination_message(made, &log, code).await;
        End {
            code,
            reason: if code == 0 { "Completed" } else { "Error" },
            message,
            started,
        }
    }

    async fn until_end(&mut self, process: &mut Process, target: &Target) -> i32 {
        let mut stop = self.stop.clone();
        tokio::select! {
            code = process.wait() => return code,
            outcome = target.post_start() => if outcome.is_err() {
                target.event(Reason::Killing, "FailedPostStartHook");
                let deadline = Instant::now() + self.grace(None);
                return self.terminate(process, target, deadline).await;
            },
            _ = wait_for_stop(&mut stop) => {}
        }
        let (sender, mut results) = mpsc::unbounded_channel();
        let mut probers = JoinSet::new();
        let probe = |kind: Kind| match kind {
            Kind::Startup => self.container.startup_probe.clone(),
            Kind::Liveness => self.container.liveness_probe.clone(),
            Kind::Readiness => self.container.readiness_probe.clone(),
        };
        let later = || {
            [Kind::Liveness, Kind::Readiness]
                .into_iter()
                .filter_map(|kind| Some((kind, probe(kind)?)))
        };
        let name = self.container.name.clone();
        if let Some(startup) = probe(Kind::Startup) {
            probers.spawn(target.clone().probe(Kind::Startup, startup, sender.clone()));
        } else {
            let _ = sender.send(ProbeResult {
                kind: Kind::Startup,
                passes: true,
            });
        }
        let deadline = loop {
            tokio::select! {
                code = process.wait() => return code,
                Ok(deadline) = wait_for_stop(&mut stop) => break deadline,
                Some(result) = results.recv() => match result {
                    ProbeResult { kind: Kind::Startup, passes: true } => {
                        for (kind, probe) in later() {
                            probers.spawn(target.clone().probe(kind, probe, sender.clone()));
                        }
                        let ready = probe(Kind::Readiness).is_none();
                        self.pod.update(&name, |view| (view.started, view.ready) = (true, ready));
                    }
                    ProbeResult { kind: Kind::Readiness, passes } => self.pod.update(&name, |view| view.ready = passes),
                    ProbeResult { kind: Kind::Liveness, passes: true } => {}
                    ProbeResult { kind, passes: false } => {
                        let which = if kind == Kind::Startup { "startup" } else { "liveness" };
                        target.event(Reason::Killing, format!("Container {name} failed {which} probe, will be restarted"));
                        let own = probe(kind).and_then(|probe| probe.termination_grace_period_seconds);
                        let deadline = Instant::now() + self.grace(own);
                        return self.terminate(process, target, deadline).await;
                    }
                },
            }
        };
        target.event(Reason::Killing, format!("Stopping container {name}"));
        self.terminate(process, target, deadline).await
    }

    fn grace(&self, own: Option<i64>) -> Duration {
        let object = self.pod.pod();
        let of_pod = object
            .spec
            .as_ref()
            .and_then(|spec| spec.termination_grace_period_seconds);
        Duration::from_secs(u64::try_from(own.or(of_pod).unwrap_or(30)).unwrap_or(0).max(1))
    }

    /// `preStop`, SIGTERM, and SIGKILL when the time is over. The time may be cut short while it runs.
    async fn terminate(&mut self, process: &mut Process, target: &Target, mut deadline: Instant) -> i32 {
        let mut stop = self.stop.clone();
        stop.mark_unchanged();
        let handle = process.handle();
        let mut hook = Some(Box::pin(target.pre_stop()));
        let mut asked = false;
        loop {
            let in_hook = hook.is_some();
            let hooked = async {
                match hook.as_mut() {
                    Some(hook) => hook.await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                code = process.wait() => return code,
                () = hooked => {}
                () = sleep_until(deadline) => if !in_hook {
                    handle.signal(Signal::KILL);
                    return process.wait().await;
                },
                Ok(()) = stop.changed() => {
                    if let Some(sooner) = *stop.borrow_and_update() {
                        deadline = deadline.min(sooner);
                    }
                    continue;
                }
            }
            hook = None;
            if !asked {
                asked = true;
                deadline = deadline.max(
                    Instant::now()
                        + if in_hook && has_pre_stop(target) {
                            LEAST_GRACE
                        } else {
                            Duration::ZERO
                        },
                );
                handle.signal(Signal::TERM);
            }
        }
    }

    /// The content of the termination message file, or the end of the log if the policy asks for it.
    async fn termination_message(&self, made: &Created, log: &Arc<Log>, code: i32) -> Option<String> {
        const LONGEST: usize = 4096;
        let written = tokio::fs::read(&made.termination_message).await.unwrap_or_default();
        let mut text = String::from_utf8_lossy(&written)
            .chars()
            .take(LONGEST)
            .collect::<String>();
        let fall_back = self.container.termination_message_policy.as_deref() == Some("FallbackToLogsOnError");
        if text.is_empty() && fall_back && code != 0 {
            text = log.clone().tail(80, 2048).await.unwrap_or_default();
        }
        Some(text).filter(|text| !text.is_empty())
    }

    fn ended(&self, end: End, attempt: i32) {
        self.pod.update(&self.container.name, |view| {
            view.ready = false;
            view.started = false;
            view.restarts = attempt;
            let ended = ContainerStateTerminated {
                container_id: view.container_id.clone(),
                exit_code: end.code,
                reason: Some(end.reason.to_owned()),
                message: end.message,
                started_at: Some(end.started.unwrap_or(Time(jiff::Timestamp::UNIX_EPOCH))),
                finished_at: Some(now()),
                signal: None,
            };
            let earlier = view.state.take().filter(|state| state.terminated.is_some());
            view.last = earlier.or(view.last.take());
            view.state = Some(ContainerState {
                terminated: Some(ended),
                ..ContainerState::default()
            });
        });
    }
}

fn has_pre_stop(target: &Target) -> bool {
    target
        .container
        .lifecycle
        .as_ref()
        .is_some_and(|lifecycle| lifecycle.pre_stop.is_some())
}

async fn wait_for_stop(stop: &mut Stop) -> Result<Instant, ()> {
    let seen = stop.wait_for(Option::is_some).await.map_err(drop)?;
    (*seen).ok_or(())
}

pub(super) fn now() -> Time {
    Time(jiff::Timestamp::now())
}

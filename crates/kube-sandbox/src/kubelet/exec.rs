//! Logs and exec, as the API server asks for them.

use std::io;
use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::pod::{Context, Launched, PodShared};
use super::pods::Pods;
use super::process::exit_code;
use super::terminal::Terminal;
use super::{ContainerRef, ExecProcess, ExecRequest, Kubelet, LogOptions, PodAccess};
use crate::status::ApiError;

/// The kubelet for the API server: without owning it, because the kubelet's client leads to the API server itself and
/// a circle would never be dropped.
struct Access {
    context: Weak<Context>,
    pods: Weak<Pods>,
}

impl Kubelet {
    /// Logs and exec for the API server.
    pub fn access(&self) -> Arc<dyn PodAccess> {
        Arc::new(Access {
            context: Arc::downgrade(&self.context),
            pods: Arc::downgrade(&self.pods),
        })
    }
}

impl PodAccess for Kubelet {
    fn logs(
        &self,
        of: ContainerRef,
        options: LogOptions,
    ) -> BoxFuture<'static, Result<BoxStream<'static, io::Result<Bytes>>, ApiError>> {
        self.access().logs(of, options)
    }

    fn exec(&self, of: ContainerRef, request: ExecRequest) -> BoxFuture<'static, Result<ExecProcess, ApiError>> {
        self.access().exec(of, request)
    }
}

fn gone() -> ApiError {
    internal(&"the kubelet has stopped")
}

impl PodAccess for Access {
    fn logs(
        &self,
        of: ContainerRef,
        options: LogOptions,
    ) -> BoxFuture<'static, Result<BoxStream<'static, io::Result<Bytes>>, ApiError>> {
        let pods = self.pods.upgrade();
        async move {
            let pods = pods.ok_or_else(gone)?;
            let (pod, name) = find(&pods, &of)?;
            let view = pod.view(&name).ok_or_else(|| unknown(&pod, &name))?;
            let log = if options.previous { view.previous_log } else { view.log };
            let log = log.ok_or_else(|| {
                if options.previous {
                    let message = format!(
                        "previous terminated container \"{name}\" in pod \"{}\" not found",
                        of.pod
                    );
                    return ApiError::bad_request(message);
                }
                let reason = view
                    .state
                    .and_then(|state| state.waiting)
                    .and_then(|waiting| waiting.reason);
                let reason = reason.unwrap_or_else(|| "ContainerCreating".to_owned());
                let message = match reason.as_str() {
                    "ErrImagePull" | "ImagePullBackOff" => "trying and failing to pull image".to_owned(),
                    other => other.to_owned(),
                };
                ApiError::bad_request(format!(
                    "container \"{name}\" in pod \"{}\" is waiting to start: {message}",
                    of.pod
                ))
            })?;
            log.read(&options).await.map_err(|error| internal(&error))
        }
        .boxed()
    }

    fn exec(&self, of: ContainerRef, request: ExecRequest) -> BoxFuture<'static, Result<ExecProcess, ApiError>> {
        let (pods, context) = (self.pods.upgrade(), self.context.upgrade());
        async move {
            let (pods, context) = (pods.ok_or_else(gone)?, context.ok_or_else(gone)?);
            let (pod, name) = find(&pods, &of)?;
            let view = pod.view(&name).ok_or_else(|| unknown(&pod, &name))?;
            let launched = view.launched.ok_or_else(|| {
                let message = format!("container not found (\"{name}\")");
                ApiError::new(500, "InternalError", message)
            })?;
            start(context, launched, request).await
        }
        .boxed()
    }
}

/// The pod and the container that is meant: the one named, the annotated default, or the first.
fn find(pods: &Pods, of: &ContainerRef) -> Result<(Arc<PodShared>, String), ApiError> {
    let pod = pods
        .find(&of.namespace, &of.pod)
        .ok_or_else(|| ApiError::not_found("", "pods", &of.pod))?;
    let object = pod.pod();
    let annotated = object.metadata.annotations.as_ref();
    let annotated = annotated.and_then(|all| all.get("kubectl.kubernetes.io/default-container").cloned());
    let first = || {
        object
            .spec
            .as_ref()
            .and_then(|spec| spec.containers.first())
            .map(|first| first.name.clone())
    };
    let name = of.container.clone().or(annotated).or_else(first).unwrap_or_default();
    Ok((pod, name))
}

fn unknown(pod: &PodShared, name: &str) -> ApiError {
    ApiError::bad_request(format!("container {name} is not valid for pod {}", pod.name))
}

fn internal(error: &dyn std::fmt::Display) -> ApiError {
    ApiError::new(500, "InternalError", format!("Internal error occurred: {error}"))
}

async fn start(context: Arc<Context>, launched: Launched, request: ExecRequest) -> Result<ExecProcess, ApiError> {
    let mut run = (*launched.invocation).clone();
    run.command.clone_from(&request.command);
    let program = request.command.first().cloned().unwrap_or_default();
    if !executable(&launched, &program) {
        let message = format!(
            "error executing command in container: failed to exec in container: failed to start exec: OCI runtime exec \
             failed: exec failed: unable to start container process: exec: \"{program}\": executable file not found in \
             $PATH: unknown"
        );
        return Err(internal(&message));
    }
    let pid = launched.handle.pid();
    if request.tty {
        if !run.env.iter().any(|(name, _)| name == "TERM") {
            run.env.push(("TERM".to_owned(), "xterm".to_owned()));
        }
        let (ours, theirs) = open_terminal().map_err(|error| internal(&error))?;
        let child = context
            .launcher
            .exec_on_terminal(pid, &run, theirs)
            .await
            .map_err(|error| internal(&error))?;
        return on_terminal(child, ours, request.stdin).map_err(|error| internal(&error));
    }
    let stdin = if request.stdin { Stdio::piped() } else { Stdio::null() };
    let streams = [stdin, Stdio::piped(), Stdio::piped()];
    let mut child = context
        .launcher
        .exec(pid, &run, streams)
        .await
        .map_err(|error| internal(&error))?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (Some(stdout), Some(stderr)) = (stdout, stderr) else {
        return Err(internal(&"a process without output"));
    };
    Ok(ExecProcess {
        stdin: child.stdin.take().map(|stdin| Box::new(stdin) as _),
        stdout: Box::new(stdout),
        stderr: Some(Box::new(stderr)),
        resize: None,
        exit: async move { child.wait().await.map_or(255, exit_code) }.boxed(),
    })
}

/// Whether the container has the program, looked up as `execvp` does.
fn executable(launched: &Launched, program: &str) -> bool {
    let root = format!("/proc/{}/root", launched.handle.pid());
    let find = |path: &str| std::fs::symlink_metadata(format!("{root}/{}", path.trim_start_matches('/'))).is_ok();
    if program.contains('/') {
        return !program.starts_with('/') || find(program);
    }
    let env = &launched.invocation.env;
    let search = env
        .iter()
        .find(|(name, _)| name == "PATH")
        .map_or(super::launch::PATH, |(_, value)| value);
    !program.is_empty() && search.split(':').any(|folder| find(&format!("{folder}/{program}")))
}

fn open_terminal() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let ours = openpt(flags)?;
    grantpt(&ours)?;
    unlockpt(&ours)?;
    let theirs = ioctl_tiocgptpeer(&ours, flags)?;
    Ok((ours, theirs))
}

fn on_terminal(mut child: tokio::process::Child, ours: OwnedFd, stdin: bool) -> io::Result<ExecProcess> {
    let sized = ours.try_clone()?;
    let terminal = Terminal::new(ours)?;
    let (resize, mut sizes) = tokio::sync::mpsc::channel::<(u16, u16)>(4);
    let exit = async move {
        let mut open = true;
        loop {
            tokio::select! {
                status = child.wait() => return status.map_or(255, exit_code),
                size = sizes.recv(), if open => match size {
                    Some((ws_col, ws_row)) => {
                        let size = Winsize { ws_row, ws_col, ws_xpixel: 0, ws_ypixel: 0 };
                        let _ = tcsetwinsize(&sized, size);
                    }
                    None => open = false,
                },
            }
        }
    };
    let writer = terminal.try_clone()?;
    Ok(ExecProcess {
        stdin: stdin.then(|| Box::new(writer) as _),
        stdout: Box::new(terminal),
        stderr: None,
        resize: Some(resize),
        exit: exit.boxed(),
    })
}

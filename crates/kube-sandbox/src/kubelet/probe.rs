//! Startup, liveness and readiness probes.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{
    Container, ExecAction, GRPCAction, HTTPGetAction, HTTPHeader, Probe, TCPSocketAction,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};

use super::events::Reason;
use super::http;
use super::pod::{Context, Launched, PodShared, Role};
use super::process::exit_code;

/// Which of the three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Startup,
    Liveness,
    Readiness,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Startup => "Startup",
            Self::Liveness => "Liveness",
            Self::Readiness => "Readiness",
        }
    }
}

/// A probe's threshold was reached: it holds now, or it does not.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProbeResult {
    pub kind: Kind,
    pub passes: bool,
}

/// One container's access to itself, for probes and hooks.
#[derive(Clone)]
pub(super) struct Target {
    pub context: Arc<Context>,
    pub pod: Arc<PodShared>,
    pub container: Arc<Container>,
    pub role: Role,
    pub launched: Launched,
}

impl Target {
    /// Probes until the container ends, and tells every change of the verdict; a startup probe ends with its first.
    pub async fn probe(self, kind: Kind, probe: Probe, results: mpsc::UnboundedSender<ProbeResult>) {
        let seconds = |value: Option<i32>, otherwise: i32| {
            Duration::from_secs(u64::try_from(value.filter(|v| *v > 0).unwrap_or(otherwise)).unwrap_or(1))
        };
        let delay = Duration::from_secs(u64::try_from(probe.initial_delay_seconds.unwrap_or(0)).unwrap_or(0));
        let period = seconds(probe.period_seconds, 10);
        let limit = seconds(probe.timeout_seconds, 1);
        let need_success = probe.success_threshold.unwrap_or(1).max(1);
        let need_failure = probe.failure_threshold.unwrap_or(3).max(1);
        let mut ticks = interval_at(Instant::now() + delay, period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut reported = None;
        let mut run = (false, 0);
        loop {
            ticks.tick().await;
            let outcome = self.check(&probe, limit).await;
            let passes = outcome.is_ok();
            run = if run.0 == passes {
                (passes, run.1 + 1)
            } else {
                (passes, 1)
            };
            if let Err(why) = outcome {
                let message = format!("{} probe failed: {why}", kind.name());
                self.event(Reason::Unhealthy, message);
            }
            let needed = if passes { need_success } else { need_failure };
            if run.1 >= needed && reported != Some(passes) {
                reported = Some(passes);
                if results.send(ProbeResult { kind, passes }).is_err() || kind == Kind::Startup {
                    return;
                }
            }
        }
    }

    /// An event about this container.
    pub fn event(&self, reason: Reason, message: impl Into<String>) {
        let path = self.role.path(&self.container.name);
        self.context.recorder.container(&self.pod.pod(), &path, reason, message);
    }

    async fn check(&self, probe: &Probe, limit: Duration) -> Result<(), String> {
        if let Some(action) = &probe.exec {
            self.exec(action, limit).await
        } else if let Some(action) = &probe.http_get {
            self.http_get(action, limit).await.map(drop)
        } else if let Some(action) = &probe.tcp_socket {
            self.tcp(action, limit).await
        } else if let Some(GRPCAction { port, .. }) = &probe.grpc {
            Err(format!(
                "the sandbox makes no gRPC calls (port {port}); use an exec, httpGet or tcpSocket probe"
            ))
        } else {
            Ok(())
        }
    }

    /// Runs a command in the container; what it wrote is the reason of a failure.
    pub async fn exec(&self, action: &ExecAction, limit: Duration) -> Result<(), String> {
        let command = action.command.clone().unwrap_or_default();
        let mut run = (*self.launched.invocation).clone();
        run.command.clone_from(&command);
        let streams = [Stdio::null(), Stdio::piped(), Stdio::piped()];
        let child = self
            .context
            .launcher
            .exec(self.launched.handle.pid(), &run, streams)
            .await;
        let child = child.map_err(|error| error.to_string())?;
        match timeout(limit, child.wait_with_output()).await {
            Ok(Ok(output)) if output.status.success() => Ok(()),
            Ok(Ok(output)) => {
                let code = exit_code(output.status);
                let text = [output.stdout, output.stderr].concat();
                let text = String::from_utf8_lossy(&text).into_owned();
                Err(if text.is_empty() {
                    format!("command failed with exit code {code}")
                } else {
                    text
                })
            }
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!(
                "command timed out: {:?} timed out after {}s",
                command.join(" "),
                limit.as_secs()
            )),
        }
    }

    /// A GET that must answer with a code from 200 to 399.
    pub async fn http_get(&self, action: &HTTPGetAction, limit: Duration) -> Result<(), String> {
        let host = action
            .host
            .clone()
            .filter(|host| !host.is_empty())
            .unwrap_or_else(|| self.pod.ip.to_string());
        let port = self.port(&action.port)?;
        let tls = action.scheme.as_deref() == Some("HTTPS");
        let path = action
            .path
            .clone()
            .filter(|path| !path.is_empty())
            .unwrap_or_else(|| "/".to_owned());
        let path = if path.starts_with('/') {
            path
        } else {
            format!("/{path}")
        };
        let headers = action
            .http_headers
            .iter()
            .flatten()
            .map(|HTTPHeader { name, value }| (name.clone(), value.clone()));
        let request = http::Get {
            host,
            port,
            tls,
            path,
            headers: headers.collect(),
        };
        let address = request.url();
        match timeout(limit, request.status()).await {
            Ok(Ok(200..=399)) => Ok(()),
            Ok(Ok(code)) => Err(format!("HTTP probe failed with statuscode: {code}")),
            Ok(Err(error)) => Err(format!("Get \"{address}\": {error}")),
            Err(_) => Err(format!(
                "Get \"{address}\": context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
            )),
        }
    }

    async fn tcp(&self, action: &TCPSocketAction, limit: Duration) -> Result<(), String> {
        let host = action
            .host
            .clone()
            .filter(|host| !host.is_empty())
            .unwrap_or_else(|| self.pod.ip.to_string());
        let port = self.port(&action.port)?;
        match timeout(limit, tokio::net::TcpStream::connect((host.as_str(), port))).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(http::dial_error(&host, port, &error)),
            Err(_) => Err(format!("dial tcp {host}:{port}: i/o timeout")),
        }
    }

    /// A port by number, or by the name the container gave it.
    fn port(&self, port: &IntOrString) -> Result<u16, String> {
        let number = match port {
            IntOrString::Int(number) => Some(*number),
            IntOrString::String(name) => {
                let named = self
                    .container
                    .ports
                    .iter()
                    .flatten()
                    .find(|port| port.name.as_deref() == Some(name));
                named.map(|port| port.container_port).or_else(|| name.parse().ok())
            }
        };
        let number = number
            .and_then(|number| u16::try_from(number).ok())
            .filter(|number| *number > 0);
        number.ok_or_else(|| format!("couldn't find port: {port:?} in {}", self.container.name))
    }
}

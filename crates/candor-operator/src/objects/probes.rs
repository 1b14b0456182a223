//! The probes of a member's server.
//!
//! | probe | handler | period | fails |
//! |---|---|---|---|
//! | startup | `alive.sh` in the container | 1 s | after 60 s, plus the time that an empty restart does not listen |
//! | liveness | `alive.sh` in the container | 25 s | at the first failure: the script itself retries for 24 s |
//! | readiness | exporter over HTTP, otherwise `ready.sh` in the container | 2 s, or 5 s | at the first failure |
//!
//! A command in a container costs a node 20 to 30 ms of CPU time (runc, a shell, a client), an HTTP request less than
//! 1 ms (docs/kube.md). Liveness is a command nevertheless: a healthy server must not be restarted because the
//! exporter crashes or its image cannot be pulled. Readiness may depend on the exporter: a pod with a container that
//! does not run is not ready anyway.

use candor_api::valkey::spec::Exporter;
use k8s_openapi::api::core::v1::{Container, ExecAction, HTTPGetAction, Probe};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::Value;

use super::pod::TemplateVersion;
use super::{EXPORTER_PORT, Inputs, METRICS};

/// The exporter's path that reports whether its server is ready.
const READINESS_PATH: &str = "/readyz";
/// Timeout of one attempt, with a second to spare: a busy node is slow to start a shell and a client.
const LIMIT_SECONDS: i32 = 5;

// The kubelet restarts a server that does not respond for 24 s, between 29 and 54 s after its last reply. One command
// makes all attempts, because starting each command costs CPU time.
/// Attempts of one liveness probe: 4 s each, with a second in between.
const LIVENESS_TRIES: i32 = 5;
/// Period of the liveness probe.
const LIVENESS_PERIOD_SECONDS: i32 = 25;
/// The script ends after 24 s. The timeout is longer, because a node that is slow to start the script is no reason to
/// restart the server.
const LIVENESS_LIMIT_SECONDS: i32 = 40;
/// Grace period for a server that hangs. It is shorter than the period for saving data, because a hung server does not
/// handle the signal.
const HUNG_GRACE_SECONDS: i64 = 5;

/// Adds the probes to a server container. The server does not listen for `silent` seconds if it must not return as
/// primary.
pub(super) fn apply(server: &mut Container, inputs: &Inputs<'_>, version: TemplateVersion, silent: i32) {
    server.startup_probe = Some(exec(&["sh", "/scripts/alive.sh"], 1, 60_i32.saturating_add(silent)));
    let (liveness, readiness) = match version {
        TemplateVersion::Release0_1_0 => (
            Probe {
                termination_grace_period_seconds: Some(10),
                ..exec(&["sh", "/scripts/alive.sh"], 2, 6)
            },
            exec(&["sh", "/scripts/ready.sh"], 2, 1),
        ),
        TemplateVersion::Current => (
            Probe {
                timeout_seconds: Some(LIVENESS_LIMIT_SECONDS),
                termination_grace_period_seconds: Some(HUNG_GRACE_SECONDS),
                ..exec(
                    &["sh", "/scripts/alive.sh", &LIVENESS_TRIES.to_string()],
                    LIVENESS_PERIOD_SECONDS,
                    1,
                )
            },
            if exporter_answers(inputs) {
                http(READINESS_PATH, 2)
            } else {
                exec(&["sh", "/scripts/ready.sh"], 5, 1)
            },
        ),
    };
    server.liveness_probe = Some(liveness);
    server.readiness_probe = Some(readiness);
}

/// Whether the metrics container is the exporter of this version, started by the operator's command. Another image, or
/// other arguments or variables, may not answer the readiness probe.
pub(super) fn exporter_answers(inputs: &Inputs<'_>) -> bool {
    let spec = &inputs.cluster.spec;
    let exporter = spec.exporter.clone().unwrap_or_default();
    let Exporter {
        enabled, image, args, ..
    } = &exporter;
    let starts_otherwise = |partial: &Value| {
        let fields = ["image", "command", "args", "env", "envFrom"];
        partial.get("name").and_then(Value::as_str) == Some(METRICS)
            && fields.iter().any(|field| partial.get(field).is_some())
    };
    enabled.unwrap_or(true) && image.is_none() && args.is_empty() && !spec.containers.iter().any(starts_otherwise)
}

fn http(path: &str, period: i32) -> Probe {
    Probe {
        http_get: Some(HTTPGetAction {
            path: Some(path.to_owned()),
            port: IntOrString::Int(i32::from(EXPORTER_PORT)),
            scheme: Some("HTTP".to_owned()),
            ..HTTPGetAction::default()
        }),
        ..every(period, 1)
    }
}

fn exec(command: &[&str], period: i32, failures: i32) -> Probe {
    Probe {
        exec: Some(ExecAction {
            command: Some(command.iter().map(ToString::to_string).collect()),
        }),
        ..every(period, failures)
    }
}

fn every(period: i32, failures: i32) -> Probe {
    Probe {
        period_seconds: Some(period),
        timeout_seconds: Some(LIMIT_SECONDS),
        failure_threshold: Some(failures),
        ..Probe::default()
    }
}

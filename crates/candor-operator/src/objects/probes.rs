//! The probes of a member's server.
//!
//! | probe | asked | every | fails |
//! |---|---|---|---|
//! | startup | `alive.sh` in the container | 1 s | after a minute, and after the silence of an empty restart |
//! | liveness | `alive.sh` in the container | 25 s | at once: the script itself tries for 24 s |
//! | readiness | the exporter over HTTP, else `ready.sh` in the container | 2 s, else 5 s | at once |
//!
//! A command in a container costs a node 20 to 30 ms of processor time (runc, a shell, a client), an HTTP request less than
//! one (docs/kube.md). Liveness is a command all the same: where the exporter crashes or its image cannot be pulled, a
//! healthy server must not be restarted for it. Readiness may depend on the exporter: a pod with a container that does not
//! run is not ready anyway.

use candor_api::valkey::spec::Exporter;
use k8s_openapi::api::core::v1::{Container, ExecAction, HTTPGetAction, Probe};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::Value;

use super::pod::TemplateVersion;
use super::{EXPORTER_PORT, Inputs, METRICS};

/// Where the exporter answers whether its server is ready.
const READINESS_PATH: &str = "/readyz";
/// How long one try may take, with a second to spare: a busy node starts a shell and a client slowly.
const LIMIT_SECONDS: i32 = 5;

// A server is restarted when it was silent for 24 s, and 29 to 54 s after its last answer: the tries follow each other
// within one command, because every command costs.
/// How often one liveness probe asks: 4 s each and a second in between.
const LIVENESS_TRIES: i32 = 5;
/// How often liveness is probed.
const LIVENESS_PERIOD_SECONDS: i32 = 25;
/// The script ends by itself after 24 s. That a node cannot even start it in time is no reason to restart the server.
const LIVENESS_LIMIT_SECONDS: i32 = 40;
/// A server that hangs is not waited for as long as one that saves its data: it does not hear the signal.
const HUNG_GRACE_SECONDS: i64 = 5;

/// Gives a server its probes. It stays silent for `silent` seconds where it must not come back as the primary it was.
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

/// Whether the metrics container is the exporter of this version, as we start it: another image, or other arguments and
/// variables, may not answer.
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

//! The row of a pod: its STATUS is worked out from phases, conditions and every container's state.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::age;

/// Name, ready, status, restarts, age, IP, node, nominated node, readiness gates.
pub(super) fn cells(pod: &Value, now: Timestamp) -> Vec<Value> {
    let summary = Summary::of(pod);
    let restarts = match &summary.last_restart {
        Some(last) if summary.restarts != 0 => format!("{} ({} ago)", summary.restarts, age::since(&json!(last), now)),
        _ => summary.restarts.to_string(),
    };
    let or_none = |value: &Value| json!(value.as_str().filter(|text| !text.is_empty()).unwrap_or("<none>"));
    vec![
        pod["metadata"]["name"].clone(),
        json!(format!("{}/{}", summary.ready, summary.containers)),
        json!(summary.status),
        json!(restarts),
        json!(age::since(&pod["metadata"]["creationTimestamp"], now)),
        or_none(&pod["status"]["podIPs"][0]["ip"]),
        or_none(&pod["spec"]["nodeName"]),
        or_none(&pod["status"]["nominatedNodeName"]),
        json!(readiness_gates(pod)),
    ]
}

fn readiness_gates(pod: &Value) -> String {
    let gates = list(&pod["spec"]["readinessGates"]);
    if gates.is_empty() {
        return "<none>".to_owned();
    }
    let open = gates
        .iter()
        .filter(|gate| condition(pod, gate["conditionType"].as_str().unwrap_or_default()));
    format!("{}/{}", open.count(), gates.len())
}

struct Summary {
    status: String,
    ready: usize,
    containers: usize,
    restarts: i64,
    last_restart: Option<String>,
}

impl Summary {
    fn of(pod: &Value) -> Self {
        let status = &pod["status"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let phase = text(&status["phase"]);
        let mut reason = Some(text(&status["reason"]))
            .filter(|r| !r.is_empty())
            .unwrap_or_else(|| phase.clone());
        let gated = |c: &Value| c["type"] == json!("PodScheduled") && c["reason"] == json!("SchedulingGated");
        if list(&status["conditions"]).iter().any(gated) {
            "SchedulingGated".clone_into(&mut reason);
        }
        let inits = list(&pod["spec"]["initContainers"]);
        let sidecar = |name: &Value| {
            inits
                .iter()
                .any(|c| c["name"] == *name && c["restartPolicy"] == json!("Always"))
        };
        let mut summary = Self {
            status: reason,
            ready: 0,
            containers: list(&pod["spec"]["containers"]).len() + inits.iter().filter(|c| sidecar(&c["name"])).count(),
            restarts: 0,
            last_restart: None,
        };
        let mut sidecars = (0, None);
        let initializing = summary.initialization(status, inits.len(), &sidecar, &mut sidecars);
        if !initializing || condition(pod, "Initialized") {
            (summary.restarts, summary.last_restart) = sidecars;
            summary.containers_of(pod);
        }
        let leaving = pod["metadata"]["deletionTimestamp"].is_string();
        if leaving && status["reason"] == json!("NodeLost") {
            "Unknown".clone_into(&mut summary.status);
        } else if leaving && phase != "Succeeded" && phase != "Failed" {
            "Terminating".clone_into(&mut summary.status);
        }
        summary
    }

    /// Whether an init container still runs, waits or failed; the status says which.
    fn initialization(
        &mut self,
        status: &Value,
        count: usize,
        sidecar: &dyn Fn(&Value) -> bool,
        sidecars: &mut (i64, Option<String>),
    ) -> bool {
        for (index, container) in list(&status["initContainerStatuses"]).iter().enumerate() {
            let (restarts, last) = restarts_of(container);
            self.restarts += restarts;
            self.last_restart = later(self.last_restart.take(), last.clone());
            let is_sidecar = sidecar(&container["name"]);
            if is_sidecar {
                sidecars.0 += restarts;
                sidecars.1 = later(sidecars.1.take(), last);
            }
            let (terminated, waiting) = (&container["state"]["terminated"], &container["state"]["waiting"]);
            let waits_for = waiting["reason"]
                .as_str()
                .filter(|r| !r.is_empty() && *r != "PodInitializing");
            if terminated.is_object() && terminated["exitCode"] == json!(0) {
                continue;
            }
            if is_sidecar && container["started"] == json!(true) {
                self.ready += usize::from(container["ready"] == json!(true));
                continue;
            }
            self.status = if terminated.is_object() {
                format!("Init:{}", ended(terminated))
            } else if let Some(reason) = waits_for {
                format!("Init:{reason}")
            } else {
                format!("Init:{index}/{count}")
            };
            return true;
        }
        false
    }

    fn containers_of(&mut self, pod: &Value) {
        let mut running = false;
        for container in list(&pod["status"]["containerStatuses"]).iter().rev() {
            let (restarts, last) = restarts_of(container);
            self.restarts += restarts;
            self.last_restart = later(self.last_restart.take(), last);
            let state = &container["state"];
            let waits_for = state["waiting"]["reason"].as_str().filter(|reason| !reason.is_empty());
            if let Some(reason) = waits_for {
                reason.clone_into(&mut self.status);
            } else if state["terminated"].is_object() {
                self.status = ended(&state["terminated"]);
            } else if container["ready"] == json!(true) && state["running"].is_object() {
                running = true;
                self.ready += 1;
            }
        }
        if self.status == "Completed" && running {
            let word = if condition(pod, "Ready") { "Running" } else { "NotReady" };
            word.clone_into(&mut self.status);
        }
    }
}

fn ended(terminated: &Value) -> String {
    match terminated["reason"].as_str().filter(|reason| !reason.is_empty()) {
        Some(reason) => reason.to_owned(),
        None => match terminated["signal"].as_i64().filter(|signal| *signal != 0) {
            Some(signal) => format!("Signal:{signal}"),
            None => format!("ExitCode:{}", terminated["exitCode"].as_i64().unwrap_or_default()),
        },
    }
}

fn restarts_of(container: &Value) -> (i64, Option<String>) {
    let last = container["lastState"]["terminated"]["finishedAt"]
        .as_str()
        .map(str::to_owned);
    (container["restartCount"].as_i64().unwrap_or_default(), last)
}

/// RFC 3339 in UTC sorts as text.
fn later(a: Option<String>, b: Option<String>) -> Option<String> {
    a.max(b)
}

fn condition(pod: &Value, kind: &str) -> bool {
    let holds = |c: &Value| c["type"] == json!(kind) && c["status"] == json!("True");
    list(&pod["status"]["conditions"]).iter().any(holds)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

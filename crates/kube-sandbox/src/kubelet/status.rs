//! A pod's status, computed from what is known of its containers. No clock, no network.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Container, ContainerState, ContainerStateWaiting, ContainerStatus, HostIP, Pod, PodCondition, PodIP, PodSpec,
    PodStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::pod::{Role, View};

/// What a status is made from.
pub(super) struct Facts<'a> {
    pub pod: &'a Pod,
    pub views: &'a BTreeMap<String, View>,
    /// The address, once the pod's network and folders are ready.
    pub ip: Option<String>,
    pub host_ip: String,
    pub start_time: Time,
    /// The kubelet has ended the pod and nothing of it runs any more.
    pub over: bool,
    /// Why the kubelet gave the pod up.
    pub failure: Option<(&'static str, String)>,
    pub now: Time,
}

impl Facts<'_> {
    fn spec(&self) -> PodSpec {
        self.pod.spec.clone().unwrap_or_default()
    }

    /// The whole status, with the times of conditions that did not change.
    pub fn status(&self) -> PodStatus {
        let spec = self.spec();
        let phase = self.phase(&spec);
        let init = spec.init_containers.as_deref().unwrap_or_default();
        let (reason, message) = self.failure.clone().map_or((None, None), |(reason, message)| {
            (Some(reason.to_owned()), Some(message))
        });
        let statuses =
            |containers: &[Container]| containers.iter().map(|c| self.container(c, &spec)).collect::<Vec<_>>();
        PodStatus {
            conditions: Some(self.conditions(&spec, phase)),
            container_statuses: Some(statuses(&spec.containers)),
            init_container_statuses: (!init.is_empty()).then(|| statuses(init)),
            host_ip: Some(self.host_ip.clone()),
            host_ips: Some(vec![HostIP {
                ip: self.host_ip.clone(),
            }]),
            pod_ip: self.ip.clone(),
            pod_ips: self.ip.clone().map(|ip| vec![PodIP { ip }]),
            phase: Some(phase.to_owned()),
            qos_class: Some(
                self.pod
                    .status
                    .as_ref()
                    .and_then(|s| s.qos_class.clone())
                    .unwrap_or_else(|| qos(&spec).to_owned()),
            ),
            reason,
            message,
            start_time: Some(self.start_time.clone()),
            ..PodStatus::default()
        }
    }

    fn phase(&self, spec: &PodSpec) -> &'static str {
        if self.failure.is_some() {
            return "Failed";
        }
        let policy = spec.restart_policy.as_deref().unwrap_or("Always");
        let view = |container: &Container| self.views.get(&container.name);
        let init = spec.init_containers.iter().flatten().filter(|_| !self.main_begun(spec));
        for container in init {
            let Some(view) = view(container) else { return "Pending" };
            match view.role {
                Role::Init if view.done && view.exit_code() == Some(0) => {}
                Role::Init if view.done && view.exit_code().is_some() => {
                    return if policy == "Never" || self.over {
                        "Failed"
                    } else {
                        "Pending"
                    };
                }
                Role::Sidecar if view.started || view.done => {}
                _ if self.over => return "Failed",
                _ => return "Pending",
            }
        }
        let mut count = [0; 4];
        let [running, waiting, stopped, succeeded] = &mut count;
        for container in &spec.containers {
            let state = view(container).and_then(|view| view.state.as_ref());
            let before = view(container).is_some_and(|view| view.last.is_some());
            match state {
                Some(state) if state.running.is_some() => *running += 1,
                Some(state) if state.terminated.is_some() => {
                    *stopped += 1;
                    *succeeded += i32::from(state.terminated.as_ref().is_some_and(|end| end.exit_code == 0));
                }
                _ if before => *stopped += 1,
                _ => *waiting += 1,
            }
        }
        let [running, waiting, stopped, succeeded] = count;
        if self.over {
            return if waiting == 0 && stopped == succeeded {
                "Succeeded"
            } else {
                "Failed"
            };
        }
        match policy {
            _ if waiting > 0 => "Pending",
            _ if running > 0 => "Running",
            "Always" => "Running",
            _ if stopped == succeeded => "Succeeded",
            "Never" => "Failed",
            _ => "Running",
        }
    }

    fn container(&self, container: &Container, spec: &PodSpec) -> ContainerStatus {
        let view = self.views.get(&container.name);
        let waiting = || {
            let initializing = view.is_some_and(|view| view.role == Role::Main)
                && spec.init_containers.as_ref().is_some_and(|init| !init.is_empty());
            let reason = if initializing {
                "PodInitializing"
            } else {
                "ContainerCreating"
            };
            let later = view.is_some_and(|view| view.role != Role::Main) && self.ip.is_some();
            waiting_state(if later { "PodInitializing" } else { reason })
        };
        let state = view.and_then(|view| view.state.clone()).unwrap_or_else(waiting);
        ContainerStatus {
            name: container.name.clone(),
            image: view.map(|view| view.image.clone()).unwrap_or_default(),
            image_id: view.map(|view| view.image_id.clone()).unwrap_or_default(),
            container_id: view.and_then(|view| view.container_id.clone()),
            ready: view.is_some_and(|view| match view.role {
                Role::Init => view.done && view.exit_code() == Some(0),
                Role::Main | Role::Sidecar => view.ready,
            }),
            started: Some(view.is_some_and(|view| view.started)),
            restart_count: view.map_or(0, |view| view.restarts),
            state: Some(state),
            last_state: Some(view.and_then(|view| view.last.clone()).unwrap_or_default()),
            ..ContainerStatus::default()
        }
    }

    fn conditions(&self, spec: &PodSpec, phase: &str) -> Vec<PodCondition> {
        let completed = phase == "Succeeded";
        let mut list = Vec::new();
        let sandbox = self.ip.is_some() && !self.over && !matches!(phase, "Succeeded" | "Failed");
        list.push(self.condition("PodReadyToStartContainers", sandbox, None, None));
        let missing = self.uninitialized(spec);
        let initialized = if missing.is_empty() {
            let reason = completed.then_some("PodCompleted");
            self.condition("Initialized", true, reason, None)
        } else {
            let message = format!("containers with incomplete status: [{}]", missing.join(" "));
            self.condition("Initialized", false, Some("ContainersNotInitialized"), Some(message))
        };
        list.push(initialized);
        let (ok, reason, message) = self.containers_ready(spec, phase);
        let (gates_ok, gate_message) = self.gates(spec);
        let pod_ready = if ok && !gates_ok {
            self.condition("Ready", false, Some("ReadinessGatesNotReady"), gate_message)
        } else {
            self.condition("Ready", ok, reason, message.clone())
        };
        list.push(pod_ready);
        list.push(self.condition("ContainersReady", ok, reason, message));
        list.push(self.condition("PodScheduled", true, None, None));
        list
    }

    /// Whether a main container has ever run: the pod was initialized then, whatever its sidecars do now.
    fn main_begun(&self, spec: &PodSpec) -> bool {
        let views = spec
            .containers
            .iter()
            .filter_map(|container| self.views.get(&container.name));
        let begun = |state: &ContainerState| state.running.is_some() || state.terminated.is_some();
        views
            .into_iter()
            .any(|view| view.last.is_some() || view.state.as_ref().is_some_and(begun))
    }

    fn uninitialized(&self, spec: &PodSpec) -> Vec<String> {
        if self.main_begun(spec) {
            return Vec::new();
        }
        let init = spec.init_containers.iter().flatten();
        let missing = init.filter(|container| {
            !self.views.get(&container.name).is_some_and(|view| match view.role {
                Role::Init => view.done && view.exit_code() == Some(0),
                Role::Sidecar | Role::Main => view.started,
            })
        });
        missing.map(|container| container.name.clone()).collect()
    }

    fn containers_ready(&self, spec: &PodSpec, phase: &str) -> (bool, Option<&'static str>, Option<String>) {
        match phase {
            "Succeeded" => return (false, Some("PodCompleted"), None),
            "Failed" => return (false, Some("PodFailed"), None),
            _ => {}
        }
        let sidecars = spec
            .init_containers
            .iter()
            .flatten()
            .filter(|c| Role::of_init(c) == Role::Sidecar);
        let all = sidecars.chain(&spec.containers);
        let unready: Vec<&str> = all
            .filter(|c| !self.views.get(&c.name).is_some_and(|view| view.ready))
            .map(|c| c.name.as_str())
            .collect();
        if unready.is_empty() {
            return (true, None, None);
        }
        let message = format!("containers with unready status: [{}]", unready.join(" "));
        (false, Some("ContainersNotReady"), Some(message))
    }

    fn gates(&self, spec: &PodSpec) -> (bool, Option<String>) {
        let mut parts = Vec::new();
        for gate in spec.readiness_gates.iter().flatten() {
            let kind = &gate.condition_type;
            match self.known(kind).map(|known| known.status.as_str()) {
                Some("True") => {}
                Some(status) => {
                    parts.push(format!(
                        "the status of pod readiness gate \"{kind}\" is not \"True\", but {status}"
                    ));
                }
                None => parts.push(format!(
                    "corresponding condition of pod readiness gate \"{kind}\" does not exist."
                )),
            }
        }
        let message = parts.join(", ");
        (message.is_empty(), Some(message).filter(|message| !message.is_empty()))
    }

    fn known(&self, kind: &str) -> Option<&PodCondition> {
        let status = self.pod.status.as_ref();
        status.and_then(|status| status.conditions.iter().flatten().find(|known| known.type_ == kind))
    }

    fn condition(&self, kind: &str, ok: bool, reason: Option<&str>, message: Option<String>) -> PodCondition {
        let status = if ok { "True" } else { "False" };
        let since = self.known(kind).filter(|known| known.status == status);
        let since = since.and_then(|known| known.last_transition_time.clone());
        PodCondition {
            type_: kind.to_owned(),
            status: status.to_owned(),
            reason: reason.map(str::to_owned),
            message,
            last_transition_time: Some(since.unwrap_or_else(|| self.now.clone())),
            ..PodCondition::default()
        }
    }
}

/// A container that waits, for this reason.
pub(super) fn waiting_state(reason: &str) -> ContainerState {
    ContainerState {
        waiting: Some(ContainerStateWaiting {
            reason: Some(reason.to_owned()),
            message: None,
        }),
        ..ContainerState::default()
    }
}

/// `Guaranteed`, `Burstable` or `BestEffort`.
fn qos(spec: &PodSpec) -> &'static str {
    let all = spec.containers.iter().chain(spec.init_containers.iter().flatten());
    let mut guaranteed = true;
    let mut any = false;
    for container in all {
        let resources = container.resources.clone().unwrap_or_default();
        let (limits, requests) = (
            resources.limits.unwrap_or_default(),
            resources.requests.unwrap_or_default(),
        );
        for name in ["cpu", "memory"] {
            let (limit, request) = (limits.get(name), requests.get(name));
            any |= limit.is_some() || request.is_some();
            guaranteed &= limit.is_some() && (request.is_none() || request == limit);
        }
    }
    match (any, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// What a container did: `-` nothing yet, `r` runs, `b` waits for its restart, `0` or `1` ended for good.
    fn view(role: Role, did: char) -> View {
        let mut view = View::new(role, &Container::default());
        let ended = |code| Some(serde_json::from_value(json!({"terminated": {"exitCode": code}})).unwrap());
        match did {
            'r' => {
                view.state = Some(serde_json::from_value(json!({"running": {}})).unwrap());
                (view.started, view.ready) = (true, true);
            }
            'b' => {
                view.last = ended(1);
                view.state = Some(waiting_state("CrashLoopBackOff"));
            }
            '0' | '1' => {
                view.state = ended(i32::from(did == '1'));
                view.done = true;
            }
            _ => {}
        }
        view
    }

    fn status(policy: &str, init: &str, main: &str, over: bool) -> PodStatus {
        let names = |kind: &str, did: &str| -> Vec<Value> {
            did.char_indices()
                .map(|(at, _)| json!({"name": format!("{kind}{at}")}))
                .collect()
        };
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": "p"},
            "spec": {"restartPolicy": policy, "initContainers": names("i", init), "containers": names("m", main)},
        }))
        .unwrap();
        let views = |kind: &str, role: Role, did: &str| -> Vec<(String, View)> {
            did.char_indices()
                .map(|(at, did)| (format!("{kind}{at}"), view(role, did)))
                .collect()
        };
        let views = views("i", Role::Init, init)
            .into_iter()
            .chain(views("m", Role::Main, main))
            .collect();
        let facts = Facts {
            pod: &pod,
            views: &views,
            ip: Some("127.9.1.1".into()),
            host_ip: "127.9.0.1".into(),
            start_time: Time(jiff::Timestamp::UNIX_EPOCH),
            over,
            failure: None,
            now: Time(jiff::Timestamp::UNIX_EPOCH),
        };
        facts.status()
    }

    #[test]
    fn the_phase_follows_policy_and_containers() {
        for (policy, init, main, over, phase) in [
            ("Always", "", "-", false, "Pending"),
            ("Always", "", "r-", false, "Pending"),
            ("Always", "", "r", false, "Running"),
            ("Always", "", "b", false, "Running"),
            ("Always", "r", "-", false, "Pending"),
            ("Always", "0", "r", false, "Running"),
            ("Always", "b", "-", false, "Pending"),
            ("Never", "1", "-", false, "Failed"),
            ("Never", "", "00", false, "Succeeded"),
            ("Never", "", "01", false, "Failed"),
            ("Never", "", "0r", false, "Running"),
            ("OnFailure", "", "0b", false, "Running"),
            ("OnFailure", "", "0", false, "Succeeded"),
            ("Always", "", "0", true, "Succeeded"),
            ("Always", "", "01", true, "Failed"),
            ("Always", "", "-", true, "Failed"),
        ] {
            let found = status(policy, init, main, over).phase;
            assert_eq!(
                found.as_deref(),
                Some(phase),
                "{policy}, init `{init}`, main `{main}`, over {over}"
            );
        }
    }

    #[test]
    fn conditions_name_what_is_missing() {
        let condition = |init: &str, main: &str, kind: &str| {
            let all = status("Always", init, main, false).conditions.unwrap();
            let found = all.into_iter().find(|condition| condition.type_ == kind).unwrap();
            (
                found.status,
                found.reason.unwrap_or_default(),
                found.message.unwrap_or_default(),
            )
        };
        let expected =
            |status: &str, reason: &str, message: &str| (status.to_owned(), reason.to_owned(), message.to_owned());
        assert_eq!(condition("", "r", "Ready"), expected("True", "", ""));
        assert_eq!(
            condition("", "rb", "Ready"),
            expected("False", "ContainersNotReady", "containers with unready status: [m1]")
        );
        assert_eq!(
            condition("0r", "-", "Initialized"),
            expected(
                "False",
                "ContainersNotInitialized",
                "containers with incomplete status: [i1]"
            )
        );
        assert_eq!(condition("0", "r", "Initialized"), expected("True", "", ""));
    }
}

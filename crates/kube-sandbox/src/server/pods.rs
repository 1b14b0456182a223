//! What only pods have: binding, eviction, logs.

use axum::body::Body;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response};
use serde_json::{Value, json};

use super::api::{Api, Call};
use super::delete::DeleteOptions;
use super::negotiate::Accepted;
use super::pipeline::success;
use super::read::key;
use super::respond::{self, Reply};
use super::scale::selector_text;
use super::selectors::LabelSelector;
use super::update::other_uid;
use super::{body, clock, meta};
use crate::pod_access::{ContainerRef, LogOptions};
use crate::status::ApiError;
use crate::store::ObjectKey;

const BUDGETS: &str = "poddisruptionbudgets.policy";
const WOULD_VIOLATE: &str = "Cannot evict pod as it would violate the pod's disruption budget.";

impl Api {
    /// Binding a pod to its node, once.
    pub(super) fn bind(&self, call: &Call) -> Result<Reply, ApiError> {
        let accepted = Accepted::of(&call.headers, false)?;
        let binding = body::parse(&call.headers, "Binding", &call.body)?;
        self.bind_pod(call, &call.info.name, &binding)?;
        Ok(respond::value(201, accepted, &success(201)))
    }

    fn bind_pod(&self, call: &Call, pod: &str, binding: &Value) -> Result<(), ApiError> {
        if meta::text(binding, "name") != pod {
            return Err(ApiError::bad_request(
                "name in URL does not match name in Binding object",
            ));
        }
        let node = binding["target"]["name"].as_str().unwrap_or_default();
        if node.is_empty() {
            return Err(ApiError::new(500, "", "target.name: Required value"));
        }
        let reject = |why: String| Err(ApiError::conflict("", "pods/binding", pod, &why));
        let key = ObjectKey::new(call.info.namespace.as_str(), pod);
        self.modify("pods", &key, |value| {
            let (asked, found) = (meta::text(binding, "uid"), meta::text(value, "uid"));
            if !asked.is_empty() && asked != found {
                return Err(other_uid(call, asked, found));
            }
            if meta::is_deleting(value) {
                return reject(format!("pod {pod} is being deleted, cannot be assigned to a host"));
            }
            if let Some(taken) = value["spec"]["nodeName"].as_str().filter(|n| !n.is_empty()) {
                return reject(format!("pod {pod} is already assigned to node {taken:?}"));
            }
            if value["spec"]["schedulingGates"]
                .as_array()
                .is_some_and(|g| !g.is_empty())
            {
                return reject(format!("pod {pod} has non-empty .spec.schedulingGates"));
            }
            value["spec"]["nodeName"] = json!(node);
            for field in ["annotations", "labels"] {
                for (name, text) in binding["metadata"][field].as_object().into_iter().flatten() {
                    value["metadata"][field][name] = text.clone();
                }
            }
            set_condition(value, json!({"type": "PodScheduled", "status": "True"}));
            Ok(())
        })
        .map(|_| ())
    }

    /// A deletion that respects disruption budgets.
    pub(super) fn evict(&self, call: &Call) -> Result<Reply, ApiError> {
        let accepted = Accepted::of(&call.headers, false)?;
        let eviction = body::parse(&call.headers, "Eviction", &call.body)?;
        if meta::text(&eviction, "name") != call.info.name {
            return Err(ApiError::bad_request(
                "name in URL does not match name in Eviction object",
            ));
        }
        let options = DeleteOptions::from_value(&eviction["deleteOptions"])?;
        let dry = call.query.dry_run("CreateOptions")? || options.is_dry();
        let pod = self.find(call)?;
        // The pod that was found, not one that takes its name meanwhile.
        let options = options.only(meta::text(pod.value(), "uid"));
        let phase = pod.value()["status"]["phase"].as_str().unwrap_or_default();
        let unguarded = matches!(phase, "Succeeded" | "Failed" | "Pending") || meta::is_deleting(pod.value());
        if !unguarded {
            self.spend_budget(pod.value(), dry)?;
        }
        if !dry {
            self.modify("pods", &key(call), |value| {
                if meta::text(value, "uid") != meta::text(pod.value(), "uid") {
                    return Err(ApiError::not_found("", "pods", &call.info.name));
                }
                set_condition(
                    value,
                    json!({
                        "type": "DisruptionTarget", "status": "True",
                        "reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting",
                    }),
                );
                Ok(())
            })?;
        }
        self.delete_object(&call.kind, &key(call), &options, dry)?;
        Ok(respond::value(201, accepted, &success(201)))
    }

    /// Takes one disruption from the pod's budget, or rejects the eviction.
    fn spend_budget(&self, pod: &Value, dry: bool) -> Result<(), ApiError> {
        let namespace = meta::text(pod, "namespace");
        let (budgets, _) = self.store().list(BUDGETS, Some(namespace));
        let guards: Vec<_> = budgets
            .iter()
            .filter(|b| {
                let selector = &b.value()["spec"]["selector"];
                selector.is_object() && LabelSelector::parse(&selector_text(selector)).is_ok_and(|s| s.matches(pod))
            })
            .collect();
        let budget = match guards.as_slice() {
            [] => return Ok(()),
            [one] => one.value(),
            _ => {
                return Err(ApiError::new(
                    500,
                    "",
                    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
                ));
            }
        };
        let status = &budget["status"];
        let number = |field: &str| status[field].as_i64().unwrap_or(0);
        if !is_ready(pod) {
            let always = budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow";
            let healthy = number("currentHealthy") >= number("desiredHealthy") && number("desiredHealthy") > 0;
            if always || healthy {
                return Ok(());
            }
        }
        let name = meta::text(budget, "name").to_owned();
        let pod_name = meta::text(pod, "name").to_owned();
        let key = ObjectKey::new(namespace, name.as_str());
        let spend = |value: &mut Value| {
            let status = &value["status"];
            let number = |field: &str| status[field].as_i64().unwrap_or(0);
            if number("observedGeneration") < value["metadata"]["generation"].as_i64().unwrap_or(0) {
                return Err(too_many(
                    &format!("The disruption budget {name} is still being processed by the server."),
                    10,
                ));
            }
            let allowed = number("disruptionsAllowed");
            if allowed <= 0 {
                return Err(too_many(
                    &format!(
                        "The disruption budget {name} needs {} healthy pods and has {} currently",
                        number("desiredHealthy"),
                        number("currentHealthy")
                    ),
                    0,
                ));
            }
            value["status"]["disruptionsAllowed"] = json!(allowed - 1);
            value["status"]["disruptedPods"][pod_name.as_str()] = json!(clock::now());
            Ok(())
        };
        if dry {
            return spend(&mut budget.clone());
        }
        self.modify(BUDGETS, &key, spend).map(|_| ())
    }

    /// The container's log, as the kubelet has it.
    pub(super) async fn logs(&self, call: &Call) -> Result<Reply, ApiError> {
        let pod = self.find(call)?;
        let container = chosen_container(call, pod.value())?;
        let number = |name: &str| -> Result<Option<usize>, ApiError> {
            Ok(call.query.number(name)?.and_then(|n| usize::try_from(n).ok()))
        };
        let options = LogOptions {
            follow: call.query.flag("follow"),
            previous: call.query.flag("previous"),
            tail_lines: number("tailLines")?,
            since_seconds: call.query.number("sinceSeconds")?,
            limit_bytes: number("limitBytes")?,
            timestamps: call.query.flag("timestamps"),
        };
        let of = ContainerRef {
            namespace: call.info.namespace.clone(),
            pod: call.info.name.clone(),
            container: Some(container),
        };
        let stream = self.kubelet()?.logs(of, options).await?;
        let mut response = Response::new(Body::from_stream(stream));
        response
            .headers_mut()
            .insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
        Ok(response)
    }

    /// The kubelet, or an error without one.
    pub(super) fn kubelet(&self) -> Result<&std::sync::Arc<dyn crate::pod_access::PodAccess>, ApiError> {
        self.pod_access().ok_or_else(|| {
            ApiError::new(
                500,
                "InternalError",
                "Internal error occurred: this sandbox runs no kubelet, so pods have no logs and no processes",
            )
        })
    }
}

/// The container a request means: the one it names, or the only one there is.
pub(super) fn chosen_container(call: &Call, pod: &Value) -> Result<String, ApiError> {
    let name = meta::text(pod, "name");
    let names = |list: &str| -> Vec<&str> {
        pod["spec"][list]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|c| c["name"].as_str())
            .collect()
    };
    let (main, init) = (names("containers"), names("initContainers"));
    if let Some(asked) = call.query.get("container") {
        if main.iter().chain(&init).any(|c| *c == asked) {
            return Ok(asked.to_owned());
        }
        return Err(ApiError::bad_request(format!(
            "container {asked} is not valid for pod {name}"
        )));
    }
    let annotated = pod["metadata"]["annotations"]["kubectl.kubernetes.io/default-container"].as_str();
    if let Some(default) = annotated.filter(|d| main.contains(d)) {
        return Ok(default.to_owned());
    }
    match main.as_slice() {
        [only] => Ok((*only).to_owned()),
        [] => Err(ApiError::bad_request(format!(
            "a container name must be specified for pod {name}"
        ))),
        many => {
            let mut message = format!(
                "a container name must be specified for pod {name}, choose one of: [{}]",
                many.join(" ")
            );
            if !init.is_empty() {
                message = format!("{message} or one of the init containers: [{}]", init.join(" "));
            }
            Err(ApiError::bad_request(message))
        }
    }
}

fn too_many(cause: &str, retry: i64) -> ApiError {
    let mut error = ApiError::new(429, "TooManyRequests", WOULD_VIOLATE);
    let mut details = json!({"causes": [{"reason": "DisruptionBudget", "message": cause}]});
    if retry > 0 {
        details["retryAfterSeconds"] = json!(retry);
    }
    error.details = Some(details);
    error
}

fn is_ready(pod: &Value) -> bool {
    pod["status"]["conditions"]
        .as_array()
        .is_some_and(|list| list.iter().any(|c| c["type"] == "Ready" && c["status"] == "True"))
}

/// Sets a pod's condition; its transition time moves only with its status.
fn set_condition(pod: &mut Value, mut condition: Value) {
    let mut conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let before = conditions.iter().position(|c| c["type"] == condition["type"]);
    let unchanged = before
        .map(|i| &conditions[i])
        .filter(|c| c["status"] == condition["status"]);
    condition["lastTransitionTime"] = match unchanged {
        Some(old) => old["lastTransitionTime"].clone(),
        None => json!(clock::now()),
    };
    condition["lastProbeTime"] = Value::Null;
    match before {
        Some(i) => conditions[i] = condition,
        None => conditions.push(condition),
    }
    pod["status"]["conditions"] = Value::Array(conditions);
}

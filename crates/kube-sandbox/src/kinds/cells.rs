//! The rows of the built-in kinds, pods apart.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::age;
use super::cell_text::{
    access_modes, containers, endpoints, external_address, labels, list, number, or, or_not_available, ports, selector,
    size, slice_endpoints, slice_ports,
};

/// One cell per column in `columns::of`.
pub(super) fn of(group: &str, kind: &str, object: &Value, now: Timestamp) -> Vec<Value> {
    let row = Row { object, now };
    let (spec, status) = (&object["spec"], &object["status"]);
    match kind {
        "Deployment" => row.named(vec![
            json!(format!(
                "{}/{}",
                number(&status["readyReplicas"]),
                number(&spec["replicas"])
            )),
            json!(number(&status["updatedReplicas"])),
            json!(number(&status["availableReplicas"])),
            row.age(),
            containers(&spec["template"], "name"),
            containers(&spec["template"], "image"),
            selector(&spec["selector"]),
        ]),
        "ReplicaSet" => row.named(vec![
            json!(number(&spec["replicas"])),
            json!(number(&status["replicas"])),
            json!(number(&status["readyReplicas"])),
            row.age(),
            containers(&spec["template"], "name"),
            containers(&spec["template"], "image"),
            selector(&spec["selector"]),
        ]),
        "StatefulSet" => row.named(vec![
            json!(format!(
                "{}/{}",
                number(&status["readyReplicas"]),
                number(&spec["replicas"])
            )),
            row.age(),
            containers(&spec["template"], "name"),
            containers(&spec["template"], "image"),
        ]),
        "DaemonSet" => row.named(vec![
            json!(number(&status["desiredNumberScheduled"])),
            json!(number(&status["currentNumberScheduled"])),
            json!(number(&status["numberReady"])),
            json!(number(&status["updatedNumberScheduled"])),
            json!(number(&status["numberAvailable"])),
            labels(&spec["template"]["spec"]["nodeSelector"]),
            row.age(),
            containers(&spec["template"], "name"),
            containers(&spec["template"], "image"),
            selector(&spec["selector"]),
        ]),
        "Job" => row.job(),
        "CronJob" => row.named(vec![
            spec["schedule"].clone(),
            or(&spec["timeZone"], "<none>"),
            json!(spec["suspend"] == json!(true)),
            json!(list(&status["active"]).len()),
            if status["lastScheduleTime"].is_string() {
                json!(age::since(&status["lastScheduleTime"], now))
            } else {
                json!("<none>")
            },
            row.age(),
            containers(&spec["jobTemplate"]["spec"]["template"], "name"),
            containers(&spec["jobTemplate"]["spec"]["template"], "image"),
            selector(&spec["jobTemplate"]["spec"]["selector"]),
        ]),
        "Service" => row.named(vec![
            spec["type"].clone(),
            or(&spec["clusterIPs"][0], "<none>"),
            json!(external_address(object)),
            json!(ports(&spec["ports"])),
            row.age(),
            labels(&spec["selector"]),
        ]),
        "Endpoints" => row.named(vec![json!(endpoints(object)), row.age()]),
        "EndpointSlice" => row.named(vec![
            object["addressType"].clone(),
            json!(slice_ports(object)),
            json!(slice_endpoints(object)),
            row.age(),
        ]),
        "Node" => row.node(),
        "Event" => row.event(group),
        "Namespace" => row.named(vec![status["phase"].clone(), row.age()]),
        "Secret" => row.named(vec![object["type"].clone(), json!(size(&object["data"])), row.age()]),
        "ServiceAccount" => row.named(vec![json!(list(&object["secrets"]).len()), row.age()]),
        "ConfigMap" => {
            let count = size(&object["data"]) + size(&object["binaryData"]);
            row.named(vec![json!(count), row.age()])
        }
        "PersistentVolume" => row.volume(),
        "PersistentVolumeClaim" => row.claim(),
        "StorageClass" => row.storage_class(),
        "PodDisruptionBudget" => row.named(vec![
            or_not_available(&spec["minAvailable"]),
            or_not_available(&spec["maxUnavailable"]),
            json!(number(&status["disruptionsAllowed"])),
            row.age(),
        ]),
        "NetworkPolicy" => row.named(vec![selector(&spec["podSelector"]), row.age()]),
        "RoleBinding" | "ClusterRoleBinding" => row.binding(),
        "Lease" => row.named(vec![or(&spec["holderIdentity"], ""), row.age()]),
        "ControllerRevision" => row.revision(),
        "PriorityClass" => row.named(vec![
            json!(number(&object["value"])),
            json!(object["globalDefault"] == json!(true)),
            row.age(),
            or(&object["preemptionPolicy"], ""),
        ]),
        _ => row.named(vec![object["metadata"]["creationTimestamp"].clone()]),
    }
}

struct Row<'a> {
    object: &'a Value,
    now: Timestamp,
}

impl Row<'_> {
    fn named(&self, rest: Vec<Value>) -> Vec<Value> {
        let mut cells = vec![self.object["metadata"]["name"].clone()];
        cells.extend(rest);
        cells
    }

    fn age(&self) -> Value {
        json!(age::since(&self.object["metadata"]["creationTimestamp"], self.now))
    }

    /// The phase, unless it is being deleted.
    fn phase(&self) -> Value {
        if self.object["metadata"]["deletionTimestamp"].is_string() {
            return json!("Terminating");
        }
        or(&self.object["status"]["phase"], "")
    }

    fn volume(&self) -> Vec<Value> {
        let spec = &self.object["spec"];
        let claim = &spec["claimRef"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let bound = if claim.is_object() {
            format!("{}/{}", text(&claim["namespace"]), text(&claim["name"]))
        } else {
            String::new()
        };
        self.named(vec![
            or(&spec["capacity"]["storage"], "0"),
            json!(access_modes(&spec["accessModes"])),
            or(&spec["persistentVolumeReclaimPolicy"], ""),
            self.phase(),
            json!(bound),
            or(&spec["storageClassName"], ""),
            or(&spec["volumeAttributesClassName"], "<unset>"),
            or(&self.object["status"]["reason"], ""),
            self.age(),
            or(&spec["volumeMode"], "<unset>"),
        ])
    }

    fn claim(&self) -> Vec<Value> {
        let (spec, status) = (&self.object["spec"], &self.object["status"]);
        let bound = spec["volumeName"].as_str().is_some_and(|name| !name.is_empty());
        self.named(vec![
            self.phase(),
            or(&spec["volumeName"], ""),
            if bound {
                or(&status["capacity"]["storage"], "0")
            } else {
                json!("")
            },
            json!(if bound {
                access_modes(&status["accessModes"])
            } else {
                String::new()
            }),
            or(&spec["storageClassName"], ""),
            or(&spec["volumeAttributesClassName"], "<unset>"),
            self.age(),
            or(&spec["volumeMode"], "<unset>"),
        ])
    }

    fn storage_class(&self) -> Vec<Value> {
        let object = self.object;
        let default = object["metadata"]["annotations"]["storageclass.kubernetes.io/is-default-class"] == json!("true");
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        vec![
            json!(if default {
                format!("{name} (default)")
            } else {
                name.to_owned()
            }),
            object["provisioner"].clone(),
            or(&object["reclaimPolicy"], "Delete"),
            or(&object["volumeBindingMode"], "Immediate"),
            json!(object["allowVolumeExpansion"] == json!(true)),
            self.age(),
        ]
    }

    fn job(&self) -> Vec<Value> {
        let (spec, status) = (&self.object["spec"], &self.object["status"]);
        let holds = |kind: &str| {
            let expected = |c: &Value| c["type"] == json!(kind) && c["status"] == json!("True");
            list(&status["conditions"]).iter().any(expected)
        };
        let state = ["Complete", "Failed", "Suspended", "FailureTarget"]
            .into_iter()
            .find(|kind| holds(kind));
        let state = match state {
            Some("FailureTarget") => "FailureTarget",
            Some(state) => state,
            None if self.object["metadata"]["deletionTimestamp"].is_string() => "Terminating",
            None => "Running",
        };
        let done = number(&status["succeeded"]);
        let completions = match spec["completions"].as_i64() {
            Some(expected) => format!("{done}/{expected}"),
            None if number(&spec["parallelism"]) > 1 => format!("{done}/1 of {}", number(&spec["parallelism"])),
            None => format!("{done}/1"),
        };
        let seconds = |value: &Value| {
            value
                .as_str()
                .and_then(|t| t.parse::<Timestamp>().ok())
                .map(Timestamp::as_second)
        };
        let duration = seconds(&status["startTime"]).map_or_else(String::new, |start| {
            age::human(seconds(&status["completionTime"]).unwrap_or_else(|| self.now.as_second()) - start)
        });
        self.named(vec![
            json!(state),
            json!(completions),
            json!(duration),
            self.age(),
            containers(&spec["template"], "name"),
            containers(&spec["template"], "image"),
            selector(&spec["selector"]),
        ])
    }

    fn node(&self) -> Vec<Value> {
        let (object, status) = (self.object, &self.object["status"]);
        let ready = list(&status["conditions"]).iter().find(|c| c["type"] == json!("Ready"));
        let mut state = match ready {
            Some(ready) if ready["status"] == json!("True") => "Ready",
            Some(_) => "NotReady",
            None => "Unknown",
        }
        .to_owned();
        if object["spec"]["unschedulable"] == json!(true) {
            state.push_str(",SchedulingDisabled");
        }
        let mut roles = Vec::new();
        for (key, value) in object["metadata"]["labels"].as_object().into_iter().flatten() {
            match key.strip_prefix("node-role.kubernetes.io/") {
                Some(role) if !role.is_empty() => roles.push(role),
                None if key == "kubernetes.io/role" => roles.extend(value.as_str()),
                _ => {}
            }
        }
        let address = |kind: &str| {
            let found = list(&status["addresses"]).iter().find(|a| a["type"] == json!(kind));
            found.map_or_else(|| json!("<none>"), |a| a["address"].clone())
        };
        let info = &status["nodeInfo"];
        self.named(vec![
            json!(state),
            json!(if roles.is_empty() {
                "<none>".to_owned()
            } else {
                roles.join(",")
            }),
            self.age(),
            or(&info["kubeletVersion"], ""),
            address("InternalIP"),
            address("ExternalIP"),
            or(&info["osImage"], "<unknown>"),
            or(&info["kernelVersion"], "<unknown>"),
            or(&info["containerRuntimeVersion"], "<unknown>"),
        ])
    }

    /// The two groups name the same fields differently.
    fn event(&self, group: &str) -> Vec<Value> {
        let object = self.object;
        let pick = |core: &str, new: &str| {
            object
                .get(if group.is_empty() { core } else { new })
                .unwrap_or(&Value::Null)
        };
        let regarding = pick("involvedObject", "regarding");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let seen = |value: &Value| age::since(value, self.now);
        let (first, last) = (
            pick("firstTimestamp", "deprecatedFirstTimestamp"),
            pick("lastTimestamp", "deprecatedLastTimestamp"),
        );
        let first_seen = if first.is_string() {
            seen(first)
        } else {
            seen(&object["eventTime"])
        };
        let series = &object["series"];
        let last_seen = if series.is_object() {
            seen(&series["lastObservedTime"])
        } else if last.is_string() {
            seen(last)
        } else {
            first_seen.clone()
        };
        let count = if series.is_object() {
            number(&series["count"])
        } else {
            number(pick("count", "deprecatedCount")).max(1)
        };
        let kind = text(&regarding["kind"]).to_lowercase();
        let name = text(&regarding["name"]);
        let source = pick("source", "deprecatedSource");
        let either = |a: &Value, b: &Value| Some(text(a)).filter(|t| !t.is_empty()).unwrap_or_else(|| text(b));
        let controller = if group.is_empty() {
            &object["reportingComponent"]
        } else {
            &object["reportingController"]
        };
        let component = either(&source["component"], controller);
        let host = either(&source["host"], &object["reportingInstance"]);
        vec![
            json!(last_seen),
            or(&object["type"], ""),
            or(&object["reason"], ""),
            json!(if name.is_empty() {
                kind
            } else {
                format!("{kind}/{name}")
            }),
            or(&regarding["fieldPath"], ""),
            json!(if host.is_empty() {
                component
            } else {
                format!("{component}, {host}")
            }),
            json!(text(pick("message", "note")).trim()),
            json!(first_seen),
            json!(count),
            object["metadata"]["name"].clone(),
        ]
    }

    fn binding(&self) -> Vec<Value> {
        let role = &self.object["roleRef"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let of = |kind: &str| {
            let chosen = list(&self.object["subjects"])
                .iter()
                .filter(|s| s["kind"] == json!(kind));
            let name = |s: &Value| match kind {
                "ServiceAccount" => format!("{}/{}", text(&s["namespace"]), text(&s["name"])),
                _ => text(&s["name"]),
            };
            json!(chosen.map(name).collect::<Vec<_>>().join(", "))
        };
        self.named(vec![
            json!(format!("{}/{}", text(&role["kind"]), text(&role["name"]))),
            self.age(),
            of("User"),
            of("Group"),
            of("ServiceAccount"),
        ])
    }

    fn revision(&self) -> Vec<Value> {
        let owners = list(&self.object["metadata"]["ownerReferences"]);
        let owner = owners.iter().find(|o| o["controller"] == json!(true));
        let shown = owner.map_or_else(
            || "<none>".to_owned(),
            |owner| {
                let text = |field: &str| owner[field].as_str().unwrap_or_default();
                let group = text("apiVersion").split_once('/').map_or("", |(group, _)| group);
                let kind = text("kind").to_lowercase();
                let qualified = if group.is_empty() {
                    kind
                } else {
                    format!("{kind}.{group}")
                };
                format!("{qualified}/{}", text("name"))
            },
        );
        self.named(vec![json!(shown), json!(number(&self.object["revision"])), self.age()])
    }
}

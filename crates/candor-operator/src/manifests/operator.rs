//! The operator's namespace, service account, Deployment, Service and policies. The pods meet the `restricted` Pod
//! Security Standard.

use serde_json::{Value, json};

use super::{NAME, Options, PORT};

/// The name of the metrics port.
pub(super) const METRICS: &str = "metrics";
/// An unprivileged user id that no node assigns to a user.
pub(super) const USER: i64 = 65_532;

/// Labels of every object.
pub(super) fn labels() -> Value {
    labels_of("operator")
}

/// Labels of every object of a component.
pub(super) fn labels_of(component: &str) -> Value {
    let mut labels = selector_of(component);
    labels["app.kubernetes.io/part-of"] = json!("candor");
    labels["app.kubernetes.io/version"] = json!(env!("CARGO_PKG_VERSION"));
    labels
}

/// The label selector of the operator's pods. It never changes, because a Deployment's selector is immutable.
pub(super) fn selector() -> Value {
    selector_of("operator")
}

/// The same for the pods of another component.
pub(super) fn selector_of(component: &str) -> Value {
    json!({"app.kubernetes.io/name": "candor", "app.kubernetes.io/component": component})
}

/// The label selector of an installed operator's Deployment and pods.
pub fn selector_text() -> String {
    let labels = selector();
    let pairs = labels.as_object().into_iter().flatten();
    let pairs: Vec<String> = pairs
        .filter_map(|(name, value)| Some(format!("{name}={}", value.as_str()?)))
        .collect();
    pairs.join(",")
}

fn metadata(options: &Options) -> Value {
    json!({"name": NAME, "namespace": options.namespace, "labels": labels()})
}

pub(super) fn namespace(options: &Options) -> Value {
    let mut labels = labels();
    for mode in ["enforce", "audit", "warn"] {
        labels[format!("pod-security.kubernetes.io/{mode}")] = json!("restricted");
    }
    json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": options.namespace, "labels": labels},
    })
}

/// The service account. Its token is mounted only in the operator's pods, not by default.
pub(super) fn account(options: &Options) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": metadata(options),
        "automountServiceAccountToken": false,
    })
}

/// The Service that Prometheus scrapes.
pub(super) fn service(options: &Options) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": metadata(options),
        "spec": {
            "selector": selector(),
            "ports": [{"name": METRICS, "port": PORT, "targetPort": METRICS, "protocol": "TCP"}],
        },
    })
}

/// Resource requests and limits. There is no CPU limit: a throttled operator renews its lease too late.
pub(super) fn resources() -> Value {
    json!({
        "requests": {"cpu": "50m", "memory": "64Mi"},
        "limits": {"memory": "256Mi"},
    })
}

/// The Deployment. During an upgrade the new pod is ready and has listed everything before the old one terminates and
/// releases its lease.
pub(super) fn deployment(options: &Options) -> Value {
    let mut args = vec![
        "operator".to_owned(),
        format!("--health-address=$(POD_IP):{PORT}"),
        "--lease-namespace=$(POD_NAMESPACE)".to_owned(),
        format!("--max-members={}", options.max_members),
    ];
    if !options.watch_namespaces.is_empty() {
        args.push(format!("--watch-namespaces={}", options.watch_namespaces.join(",")));
    }
    let of_pod = |name: &str, path: &str| json!({"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}});
    let probe = |path: &str, period: u8| {
        json!({
            "httpGet": {"path": path, "port": METRICS, "scheme": "HTTP"},
            "periodSeconds": period, "timeoutSeconds": 3, "failureThreshold": 3,
        })
    };
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": metadata(options),
        "spec": {
            "replicas": options.replicas,
            "selector": {"matchLabels": selector()},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "template": {
                "metadata": {"labels": labels()},
                "spec": {
                    "serviceAccountName": NAME,
                    "automountServiceAccountToken": true,
                    "enableServiceLinks": false,
                    "securityContext": {
                        "runAsNonRoot": true, "runAsUser": USER, "runAsGroup": USER,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "containers": [{
                        "name": "operator",
                        "image": options.image,
                        "imagePullPolicy": "IfNotPresent",
                        "args": args,
                        "env": [
                            of_pod("POD_IP", "status.podIP"),
                            of_pod("POD_NAME", "metadata.name"),
                            of_pod("POD_NAMESPACE", "metadata.namespace"),
                            {"name": "CANDOR_IMAGE", "value": options.image},
                            {"name": "CANDOR_LOG", "value": "info"},
                        ],
                        "ports": [{"name": METRICS, "containerPort": PORT, "protocol": "TCP"}],
                        "livenessProbe": probe("/healthz", 10),
                        "readinessProbe": probe("/readyz", 5),
                        "resources": resources(),
                        "securityContext": {
                            "allowPrivilegeEscalation": false,
                            "readOnlyRootFilesystem": true,
                            "capabilities": {"drop": ["ALL"]},
                        },
                    }],
                },
            },
        },
    })
}

pub(super) fn budget(options: &Options) -> Value {
    json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": metadata(options),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": selector()}},
    })
}

/// The network policy. Egress is not restricted: there is no portable way to express the API server's address, and
/// members may have any address.
pub(super) fn network_policy(options: &Options) -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
        "metadata": metadata(options),
        "spec": {
            "podSelector": {"matchLabels": selector()},
            "policyTypes": ["Ingress"],
            "ingress": [{"ports": [{"port": METRICS, "protocol": "TCP"}]}],
        },
    })
}

//! The web page inside the cluster: its own Deployment and service account. The account reads clusters of all
//! namespaces; every viewer logs in and sees only what the viewer's own permissions allow.

use serde_json::{Value, json};

use super::Options;
use super::operator::{USER, labels_of, selector_of};

/// The name of its objects.
pub const WEB: &str = "candor-web";
/// Where the page is served.
pub const WEB_PORT: u16 = 8088;
/// The component in its labels.
const COMPONENT: &str = "web";

/// Every object of the page.
pub(super) fn objects(options: &Options) -> Vec<Value> {
    vec![
        account(options),
        role(),
        binding(options),
        service(options),
        deployment(options),
    ]
}

fn metadata(options: &Options) -> Value {
    json!({"name": WEB, "namespace": options.namespace, "labels": labels_of(COMPONENT)})
}

fn account(options: &Options) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": metadata(options),
        "automountServiceAccountToken": false,
    })
}

/// It reads what pages show, and asks who a viewer is and what the viewer may see. It reads no Secrets and writes
/// nothing.
fn role() -> Value {
    let read = ["list", "watch"];
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": WEB, "labels": labels_of(COMPONENT)},
        "rules": [
            {"apiGroups": ["valkey.io"], "resources": ["valkeyclusters", "valkeynodes"], "verbs": read},
            {"apiGroups": ["redkey.inditex.dev"], "resources": ["redkeyclusters"], "verbs": read},
            {"apiGroups": [""], "resources": ["pods", "events", "nodes"], "verbs": read},
            {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": read},
            {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]},
            {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]},
        ],
    })
}

fn binding(options: &Options) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": WEB, "labels": labels_of(COMPONENT)},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": WEB},
        "subjects": [{"kind": "ServiceAccount", "name": WEB, "namespace": options.namespace}],
    })
}

fn service(options: &Options) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": metadata(options),
        "spec": {
            "selector": selector_of(COMPONENT),
            "ports": [{"name": "http", "port": WEB_PORT, "targetPort": "http", "protocol": "TCP"}],
        },
    })
}

fn deployment(options: &Options) -> Value {
    let mut args = vec![
        "web".to_owned(),
        "--login".to_owned(),
        format!("--listen=0.0.0.0:{WEB_PORT}"),
    ];
    args.extend(options.web_host.as_ref().map(|host| format!("--host={host}")));
    let probe = |period: u8| {
        // The page rejects requests for a host that is not its own, such as the pod's address.
        json!({
            "httpGet": {"path": "/healthz", "port": "http", "scheme": "HTTP",
                "httpHeaders": [{"name": "Host", "value": "localhost"}]},
            "periodSeconds": period, "timeoutSeconds": 3, "failureThreshold": 3,
        })
    };
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": metadata(options),
        "spec": {
            // Logins are in its memory.
            "replicas": 1,
            "selector": {"matchLabels": selector_of(COMPONENT)},
            "template": {
                "metadata": {"labels": labels_of(COMPONENT)},
                "spec": {
                    "serviceAccountName": WEB,
                    "automountServiceAccountToken": true,
                    "enableServiceLinks": false,
                    "securityContext": {
                        "runAsNonRoot": true, "runAsUser": USER, "runAsGroup": USER,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "containers": [{
                        "name": "web",
                        "image": options.image,
                        "imagePullPolicy": "IfNotPresent",
                        "args": args,
                        "ports": [{"name": "http", "containerPort": WEB_PORT, "protocol": "TCP"}],
                        "livenessProbe": probe(10),
                        "readinessProbe": probe(5),
                        "resources": {"requests": {"cpu": "10m", "memory": "48Mi"}, "limits": {"memory": "128Mi"}},
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

//! The kinds the sequences use, and what objects of them look like.

use serde_json::{Value, json};

use super::random::Random;

pub struct Kind {
    pub base: &'static str,
    pub version: &'static str,
    pub plural: &'static str,
    pub name: &'static str,
    pub status: bool,
    pub scale: bool,
    /// Changes that are allowed, and changes that are not.
    pub changes: &'static [(&'static str, &'static str)],
    /// Writes to the status.
    pub statuses: &'static [(&'static str, &'static str)],
}

const META: &[(&str, &str)] = &[
    ("/metadata/labels/tier", r#""web""#),
    ("/metadata/labels/tier", r#""db""#),
    ("/metadata/labels", "null"),
    ("/metadata/annotations/note", r#""said""#),
    ("/metadata/labels/tier", r#""not valid!""#),
    ("/metadata/name", r#""other""#),
    ("/metadata/finalizers", r#"["conformance.dev/hold"]"#),
    ("/metadata/finalizers", "null"),
    (
        "/metadata/ownerReferences",
        r#"[{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":"11111111-1111-4111-8111-111111111111"}]"#,
    ),
];

pub fn metadata_changes() -> &'static [(&'static str, &'static str)] {
    META
}

pub const KINDS: &[Kind] = &[
    Kind {
        base: "/api/v1",
        version: "v1",
        plural: "configmaps",
        name: "ConfigMap",
        status: false,
        scale: false,
        changes: &[
            ("/data/a", r#""1""#),
            ("/data/b", r#""2""#),
            ("/data", "null"),
            ("/data/a", "7"),
            ("/immutable", "true"),
            ("/binaryData/x", r#""aGk=""#),
            ("/data/bad key", r#""x""#),
            ("/unknown", "1"),
        ],
        statuses: &[],
    },
    Kind {
        base: "/api/v1",
        version: "v1",
        plural: "secrets",
        name: "Secret",
        status: false,
        scale: false,
        changes: &[
            ("/stringData/a", r#""plain""#),
            ("/data/b", r#""aGk=""#),
            ("/data/c", r#""not base64!""#),
            ("/type", r#""kubernetes.io/tls""#),
            ("/immutable", "true"),
        ],
        statuses: &[],
    },
    Kind {
        base: "/api/v1",
        version: "v1",
        plural: "services",
        name: "Service",
        status: true,
        scale: false,
        changes: &[
            ("/spec/selector/app", r#""other""#),
            ("/spec/ports/0/port", "81"),
            ("/spec/ports/0/port", "99999"),
            ("/spec/type", r#""NodePort""#),
            ("/spec/type", r#""Nonsense""#),
            ("/spec/sessionAffinity", r#""ClientIP""#),
            ("/spec/publishNotReadyAddresses", "true"),
        ],
        statuses: &[("/status/loadBalancer/ingress", r#"[{"ip":"192.0.2.1"}]"#)],
    },
    Kind {
        base: "/api/v1",
        version: "v1",
        plural: "pods",
        name: "Pod",
        status: true,
        scale: false,
        changes: &[
            ("/spec/containers/0/image", r#""other:2""#),
            ("/spec/containers/0/name", r#""renamed""#),
            ("/spec/activeDeadlineSeconds", "60"),
            ("/spec/nodeName", r#""n1""#),
            ("/spec/tolerations", r#"[{"key":"a","operator":"Exists"}]"#),
            ("/spec/restartPolicy", r#""Sometimes""#),
        ],
        statuses: &[
            ("/status/phase", r#""Running""#),
            ("/status/message", r#""words""#),
            ("/status/conditions", r#"[{"type":"Ready","status":"True"}]"#),
        ],
    },
    Kind {
        base: "/api/v1",
        version: "v1",
        plural: "serviceaccounts",
        name: "ServiceAccount",
        status: false,
        scale: false,
        changes: &[
            ("/automountServiceAccountToken", "false"),
            ("/secrets", r#"[{"name":"s1"}]"#),
            ("/imagePullSecrets", r#"[{"name":"p1"},{"name":"p2"}]"#),
        ],
        statuses: &[],
    },
    Kind {
        base: "/api/v1",
        version: "v1",
        plural: "persistentvolumeclaims",
        name: "PersistentVolumeClaim",
        status: true,
        scale: false,
        changes: &[
            ("/spec/resources/requests/storage", r#""2Gi""#),
            ("/spec/accessModes", r#"["ReadWriteMany"]"#),
            ("/spec/volumeName", r#""pv-1""#),
        ],
        statuses: &[("/status/phase", r#""Bound""#)],
    },
    Kind {
        base: "/apis/apps/v1",
        version: "apps/v1",
        plural: "deployments",
        name: "Deployment",
        status: true,
        scale: true,
        changes: &[
            ("/spec/replicas", "3"),
            ("/spec/replicas", "-1"),
            ("/spec/template/spec/containers/0/image", r#""other:2""#),
            ("/spec/template/metadata/labels/extra", r#""1""#),
            ("/spec/selector/matchLabels/app", r#""changed""#),
            ("/spec/strategy", r#"{"type":"Recreate"}"#),
            ("/spec/paused", "true"),
            ("/spec/minReadySeconds", "5"),
            ("/status/replicas", "9"),
        ],
        statuses: &[
            ("/status/replicas", "2"),
            ("/status/observedGeneration", "1"),
            ("/status/replicas", "-2"),
            (
                "/status/conditions",
                r#"[{"type":"Available","status":"True","reason":"r","message":"m"}]"#,
            ),
        ],
    },
    Kind {
        base: "/apis/apps/v1",
        version: "apps/v1",
        plural: "statefulsets",
        name: "StatefulSet",
        status: true,
        scale: true,
        changes: &[
            ("/spec/replicas", "2"),
            ("/spec/serviceName", r#""changed""#),
            ("/spec/podManagementPolicy", r#""Parallel""#),
            ("/spec/updateStrategy/rollingUpdate/partition", "1"),
            ("/spec/template/spec/terminationGracePeriodSeconds", "5"),
        ],
        statuses: &[
            ("/status/replicas", "1"),
            ("/status/readyReplicas", "1"),
            ("/status/currentRevision", r#""r1""#),
        ],
    },
    Kind {
        base: "/apis/coordination.k8s.io/v1",
        version: "coordination.k8s.io/v1",
        plural: "leases",
        name: "Lease",
        status: false,
        scale: false,
        changes: &[
            ("/spec/holderIdentity", r#""me""#),
            ("/spec/leaseDurationSeconds", "0"),
            ("/spec/leaseDurationSeconds", "15"),
            ("/spec/leaseTransitions", "-1"),
            ("/spec/renewTime", r#""2026-01-02T03:04:05.678901Z""#),
            ("/spec/renewTime", r#""yesterday""#),
        ],
        statuses: &[],
    },
    Kind {
        base: "/apis/policy/v1",
        version: "policy/v1",
        plural: "poddisruptionbudgets",
        name: "PodDisruptionBudget",
        status: true,
        scale: false,
        changes: &[
            ("/spec/minAvailable", "2"),
            ("/spec/minAvailable", r#""50%""#),
            ("/spec/maxUnavailable", "1"),
            ("/spec/unhealthyPodEvictionPolicy", r#""AlwaysAllow""#),
        ],
        statuses: &[("/status/disruptionsAllowed", "1")],
    },
    Kind {
        base: "/apis/rbac.authorization.k8s.io/v1",
        version: "rbac.authorization.k8s.io/v1",
        plural: "roles",
        name: "Role",
        status: false,
        scale: false,
        changes: &[
            (
                "/rules",
                r#"[{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}]"#,
            ),
            ("/rules", r#"[{"apiGroups":[""],"resources":["secrets"],"verbs":[]}]"#),
            ("/rules", "null"),
        ],
        statuses: &[],
    },
    Kind {
        base: "/apis/rbac.authorization.k8s.io/v1",
        version: "rbac.authorization.k8s.io/v1",
        plural: "rolebindings",
        name: "RoleBinding",
        status: false,
        scale: false,
        changes: &[
            ("/subjects", r#"[{"kind":"User","name":"u"}]"#),
            ("/subjects", r#"[{"kind":"ServiceAccount","name":"s"}]"#),
            ("/roleRef/name", r#""changed""#),
        ],
        statuses: &[],
    },
    Kind {
        base: "/apis/conformance.dev/v1",
        version: "conformance.dev/v1",
        plural: "widgets",
        name: "Widget",
        status: true,
        scale: true,
        changes: &[
            ("/spec/replicas", "4"),
            ("/spec/replicas", "11"),
            ("/spec/replicas", r#""many""#),
            ("/spec/color", r#""red""#),
            ("/spec/color", r#""purple""#),
            ("/spec/frozen", r#""changed""#),
            ("/spec/unknown", "1"),
            ("/spec/parts", r#"[{"name":"a","size":1},{"name":"b"}]"#),
            ("/spec/parts", r#"[{"name":"a"},{"name":"a"}]"#),
            ("/spec/tags", r#"["x","y"]"#),
            ("/spec/tags", r#"["x","x"]"#),
            ("/spec/free", r#"{"any":{"thing":[1,2]}}"#),
            ("/spec/when", r#""not a time""#),
            ("/spec/limit", r#""5""#),
            ("/spec/code", r#""Q""#),
        ],
        statuses: &[
            ("/status/replicas", "2"),
            ("/status/selector", r#""app=a""#),
            ("/status/conditions", r#"[{"type":"Ready","status":"True"}]"#),
            ("/status/conditions", r#"[{"type":"Ready","status":"Perhaps"}]"#),
            ("/status/replicas", r#""x""#),
        ],
    },
];

/// A good object of the kind.
pub fn object(kind: &Kind, namespace: &str, name: &str, random: &mut Random) -> Value {
    let tier = *random.pick(&["web", "db"]);
    let mut object = json!({
        "apiVersion": kind.version, "kind": kind.name,
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": name, "tier": tier}},
    });
    let template = json!({
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "main", "image": "image:1", "env": [{"name": "A", "value": "1"}],
            "ports": [{"name": "http", "containerPort": 80}]}]},
    });
    match kind.name {
        "ConfigMap" => object["data"] = json!({"a": "0", "text": "line\nline\n"}),
        "Secret" => object["stringData"] = json!({"word": "open"}),
        "Service" => {
            object["spec"] =
                json!({"selector": {"app": name}, "ports": [{"name": "http", "port": 80, "targetPort": "http"}]});
            if random.one_in(2) {
                object["spec"]["clusterIP"] = json!("None");
            }
        }
        "Pod" => {
            object["spec"] = template["spec"].clone();
            if random.one_in(3) {
                object["spec"]["containers"][0]["resources"] =
                    json!({"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "0.5Gi"}});
            }
        }
        "PersistentVolumeClaim" => {
            object["spec"] = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
        }
        "Deployment" => {
            object["spec"] =
                json!({"replicas": random.below(3), "selector": {"matchLabels": {"app": name}}, "template": template});
        }
        "StatefulSet" => {
            object["spec"] =
                json!({"serviceName": name, "selector": {"matchLabels": {"app": name}}, "template": template});
        }
        "Lease" => object["spec"] = json!({"holderIdentity": "x", "leaseDurationSeconds": 10}),
        "PodDisruptionBudget" => {
            object["spec"] = json!({"minAvailable": 1, "selector": {"matchLabels": {"app": name}}});
        }
        "Role" => object["rules"] = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}]),
        "RoleBinding" => {
            object["roleRef"] = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"});
            object["subjects"] = json!([{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "u"}]);
        }
        "Widget" => object["spec"] = json!({"frozen": "first", "parts": [{"name": "a"}]}),
        _ => {}
    }
    object
}

/// The definition of `Widget`: defaults, bounds, an enum, list maps and sets, preserved fields, CEL with `oldSelf`.
pub fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.conformance.dev"},
        "spec": {
            "group": "conformance.dev", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList",
                "shortNames": ["wd"], "categories": ["all"]},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas",
                    "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector"}},
                "additionalPrinterColumns": [
                    {"name": "Color", "type": "string", "jsonPath": ".spec.color"},
                    {"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas"},
                    {"name": "Frozen", "type": "string", "jsonPath": ".spec.frozen", "priority": 1},
                ],
                "schema": {"openAPIV3Schema": {
                    "type": "object", "required": ["spec"],
                    "properties": {
                        "spec": {
                            "type": "object", "required": ["frozen"],
                            "properties": {
                                "replicas": {"type": "integer", "format": "int32", "minimum": 0, "maximum": 10, "default": 1},
                                "color": {"type": "string", "enum": ["red", "green"], "default": "green"},
                                "frozen": {"type": "string", "maxLength": 20,
                                    "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "frozen cannot change"}]},
                                "code": {"type": "string", "pattern": "^[a-z]+$"},
                                "when": {"type": "string", "format": "date-time"},
                                "limit": {"x-kubernetes-int-or-string": true},
                                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                                "tags": {"type": "array", "maxItems": 5, "x-kubernetes-list-type": "set",
                                    "items": {"type": "string", "maxLength": 10}},
                                "parts": {"type": "array", "maxItems": 5, "x-kubernetes-list-type": "map",
                                    "x-kubernetes-list-map-keys": ["name"],
                                    "items": {"type": "object", "required": ["name"], "properties": {
                                        "name": {"type": "string", "maxLength": 10},
                                        "size": {"type": "integer", "default": 3}}}},
                            },
                            "x-kubernetes-validations": [
                                {"rule": "!has(self.tags) || self.replicas >= size(self.tags)",
                                    "messageExpression": "self.replicas == 0 ? 'no replica for any tag' : 'fewer replicas than tags'",
                                    "fieldPath": ".replicas", "reason": "FieldValueForbidden"},
                            ],
                        },
                        "status": {"type": "object", "properties": {
                            "replicas": {"type": "integer"}, "selector": {"type": "string"},
                            "conditions": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
                                "items": {"type": "object", "required": ["type", "status"], "properties": {
                                    "type": {"type": "string"}, "status": {"type": "string", "enum": ["True", "False", "Unknown"]}}}},
                        }},
                    },
                }},
            }],
        },
    })
}

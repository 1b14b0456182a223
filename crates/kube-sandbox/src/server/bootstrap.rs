//! What every cluster has from the start: namespaces, default roles, the `kubernetes` service.

use std::net::SocketAddr;

use serde_json::{Value, json};

use super::api::Api;
use super::clock;
use crate::store::ObjectKey;

const RBAC: &str = "rbac.authorization.k8s.io";

impl Api {
    /// Fills an empty server. `address` is where it listens, `ca` what its clients trust.
    pub fn bootstrap(&self, address: SocketAddr, ca: &str) {
        self.set_authority(ca);
        for name in ["default", "kube-system", "kube-public", "kube-node-lease"] {
            self.put_first(
                "namespaces",
                "",
                json!({
                    "apiVersion": "v1", "kind": "Namespace",
                    "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
                    "spec": {"finalizers": ["kubernetes"]},
                    "status": {"phase": "Active"},
                }),
            );
            self.publish_authority(name);
        }
        for (name, rules) in roles() {
            self.put_first(
                "clusterroles.rbac.authorization.k8s.io",
                "",
                json!({
                    "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole",
                    "metadata": {"name": name, "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"}},
                    "rules": rules,
                }),
            );
        }
        for (role, groups) in [
            ("cluster-admin", &["system:masters"][..]),
            ("system:basic-user", &["system:authenticated"]),
            ("system:discovery", &["system:authenticated"]),
            (
                "system:public-info-viewer",
                &["system:authenticated", "system:unauthenticated"],
            ),
        ] {
            let subjects: Vec<Value> = groups
                .iter()
                .map(|g| json!({"kind": "Group", "apiGroup": RBAC, "name": g}))
                .collect();
            self.put_first(
                "clusterrolebindings.rbac.authorization.k8s.io",
                "",
                json!({
                    "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRoleBinding",
                    "metadata": {"name": role, "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"}},
                    "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
                    "subjects": subjects,
                }),
            );
        }
        self.own_service(address);
    }

    /// The service through which pods would find the server, with the address it really has behind it.
    fn own_service(&self, address: SocketAddr) {
        let labels = json!({"component": "apiserver", "provider": "kubernetes"});
        self.put_first(
            "services",
            "default",
            json!({
                "apiVersion": "v1", "kind": "Service",
                "metadata": {"name": "kubernetes", "namespace": "default", "labels": labels},
                "spec": {
                    "type": "ClusterIP", "clusterIP": "10.96.0.1", "clusterIPs": ["10.96.0.1"],
                    "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack", "sessionAffinity": "None",
                    "internalTrafficPolicy": "Cluster",
                    "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": address.port()}],
                },
                "status": {"loadBalancer": {}},
            }),
        );
        let skip = json!({"endpointslice.kubernetes.io/skip-mirror": "true"});
        self.put_first(
            "endpoints",
            "default",
            json!({
                "apiVersion": "v1", "kind": "Endpoints",
                "metadata": {"name": "kubernetes", "namespace": "default", "labels": skip},
                "subsets": [{
                    "addresses": [{"ip": address.ip().to_string()}],
                    "ports": [{"name": "https", "port": address.port(), "protocol": "TCP"}],
                }],
            }),
        );
        self.put_first(
            "endpointslices.discovery.k8s.io",
            "default",
            json!({
                "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
                "metadata": {
                    "name": "kubernetes", "namespace": "default", "generation": 1,
                    "labels": {"kubernetes.io/service-name": "kubernetes"},
                },
                "addressType": "IPv4",
                "endpoints": [{"addresses": [address.ip().to_string()], "conditions": {"ready": true}}],
                "ports": [{"name": "https", "port": address.port(), "protocol": "TCP"}],
            }),
        );
    }

    /// Puts the authority's certificate into a namespace, where pods look for it.
    pub(super) fn publish_authority(&self, namespace: &str) {
        let Some(ca) = self.authority() else {
            return;
        };
        self.put_first("configmaps", namespace, json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {
                "name": "kube-root-ca.crt", "namespace": namespace,
                "annotations": {
                    "kubernetes.io/description": "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.",
                },
            },
            "data": {"ca.crt": ca},
        }));
    }

    fn put_first(&self, table: &str, namespace: &str, mut object: Value) {
        object["metadata"]["uid"] = json!(clock::uid());
        object["metadata"]["creationTimestamp"] = json!(clock::now());
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        // A name that is taken is as good: nothing here is written twice.
        let _ = self.store().create(table, ObjectKey::new(namespace, name), object);
    }
}

fn roles() -> Vec<(&'static str, Value)> {
    let read = json!(["get", "list", "watch"]);
    let write = json!(["create", "delete", "deletecollection", "patch", "update"]);
    let core = json!([
        "configmaps",
        "endpoints",
        "persistentvolumeclaims",
        "persistentvolumeclaims/status",
        "pods",
        "pods/log",
        "pods/status",
        "serviceaccounts",
        "services",
        "services/status",
        "events",
        "namespaces",
    ]);
    let core_edit = json!([
        "configmaps",
        "endpoints",
        "events",
        "persistentvolumeclaims",
        "pods",
        "pods/attach",
        "pods/exec",
        "pods/eviction",
        "pods/portforward",
        "secrets",
        "serviceaccounts",
        "services",
    ]);
    let apps = json!([
        "controllerrevisions",
        "daemonsets",
        "daemonsets/status",
        "deployments",
        "deployments/scale",
        "deployments/status",
        "replicasets",
        "replicasets/scale",
        "replicasets/status",
        "statefulsets",
        "statefulsets/scale",
        "statefulsets/status",
    ]);
    let view = vec![
        json!({"apiGroups": [""], "resources": core, "verbs": read}),
        json!({"apiGroups": ["apps"], "resources": apps, "verbs": read}),
        json!({"apiGroups": ["policy"], "resources": ["poddisruptionbudgets", "poddisruptionbudgets/status"], "verbs": read}),
        json!({"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": read}),
    ];
    let mut edit = view.clone();
    edit.extend([
        json!({"apiGroups": [""], "resources": ["secrets", "pods/exec", "pods/attach", "pods/portforward"], "verbs": read}),
        json!({"apiGroups": [""], "resources": core_edit, "verbs": write}),
        json!({"apiGroups": [""], "resources": ["serviceaccounts/token"], "verbs": ["create"]}),
        json!({"apiGroups": ["apps"], "resources": apps, "verbs": write}),
        json!({"apiGroups": ["policy"], "resources": ["poddisruptionbudgets"], "verbs": write}),
        json!({"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]}),
    ]);
    let mut admin = edit.clone();
    admin.extend([
        json!({"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles", "rolebindings"], "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]}),
        json!({"apiGroups": ["authorization.k8s.io"], "resources": ["localsubjectaccessreviews"], "verbs": ["create"]}),
    ]);
    let paths = ["/healthz", "/livez", "/readyz", "/version", "/version/"];
    vec![
        ("admin", json!(admin)),
        (
            "cluster-admin",
            json!([
                {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
                {"nonResourceURLs": ["*"], "verbs": ["*"]},
            ]),
        ),
        ("edit", json!(edit)),
        (
            "system:basic-user",
            json!([
                {"apiGroups": ["authorization.k8s.io"], "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"], "verbs": ["create"]},
                {"apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"], "verbs": ["create"]},
            ]),
        ),
        (
            "system:auth-delegator",
            json!([
                {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]},
                {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]},
            ]),
        ),
        (
            "system:discovery",
            json!([{
                "nonResourceURLs": [
                    "/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*", "/readyz",
                    "/version", "/version/",
                ],
                "verbs": ["get"],
            }]),
        ),
        (
            "system:public-info-viewer",
            json!([{"nonResourceURLs": paths, "verbs": ["get"]}]),
        ),
        ("view", json!(view)),
    ]
}

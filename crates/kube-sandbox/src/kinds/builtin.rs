//! The built-in kinds: one row each, as discovery of a real server lists them.

use std::sync::Arc;

use super::{Kind, ScalePaths, columns};
use crate::schema::Schema;

struct Row {
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    short: &'static str,
    namespaced: bool,
    /// Short names after it, then `status`, `scale` and the other subresources.
    subresources: &'static str,
    /// In `kubectl get all`.
    all: bool,
}

const fn row(group: &'static str, kind: &'static str, plural: &'static str, short: &'static str) -> Row {
    Row {
        group,
        kind,
        plural,
        short,
        namespaced: true,
        subresources: "",
        all: false,
    }
}

impl Row {
    const fn cluster(mut self) -> Self {
        self.namespaced = false;
        self
    }

    const fn with(mut self, subresources: &'static str) -> Self {
        self.subresources = subresources;
        self
    }

    const fn in_all(mut self) -> Self {
        self.all = true;
        self
    }
}

const ROWS: &[Row] = &[
    row("", "ConfigMap", "configmaps", "cm"),
    row("", "Endpoints", "endpoints", "ep"),
    row("", "Event", "events", "ev"),
    row("", "Namespace", "namespaces", "ns")
        .cluster()
        .with("finalize status"),
    row("", "Node", "nodes", "no").cluster().with("proxy status"),
    row("", "PersistentVolumeClaim", "persistentvolumeclaims", "pvc").with("status"),
    row("", "PersistentVolume", "persistentvolumes", "pv")
        .cluster()
        .with("status"),
    row("", "Pod", "pods", "po")
        .in_all()
        .with("attach binding ephemeralcontainers eviction exec log portforward proxy resize status"),
    row("", "Secret", "secrets", ""),
    row("", "ServiceAccount", "serviceaccounts", "sa").with("token"),
    row("", "Service", "services", "svc").in_all().with("proxy status"),
    row("apps", "ControllerRevision", "controllerrevisions", ""),
    row("apps", "DaemonSet", "daemonsets", "ds").in_all().with("status"),
    row("apps", "Deployment", "deployments", "deploy")
        .in_all()
        .with("scale status"),
    row("apps", "ReplicaSet", "replicasets", "rs")
        .in_all()
        .with("scale status"),
    row("apps", "StatefulSet", "statefulsets", "sts")
        .in_all()
        .with("scale status"),
    row("batch", "CronJob", "cronjobs", "cj").in_all().with("status"),
    row("batch", "Job", "jobs", "").in_all().with("status"),
    row("policy", "PodDisruptionBudget", "poddisruptionbudgets", "pdb").with("status"),
    row("coordination.k8s.io", "Lease", "leases", ""),
    row("discovery.k8s.io", "EndpointSlice", "endpointslices", ""),
    row("events.k8s.io", "Event", "events", "ev"),
    row("networking.k8s.io", "NetworkPolicy", "networkpolicies", "netpol"),
    row(
        "rbac.authorization.k8s.io",
        "ClusterRoleBinding",
        "clusterrolebindings",
        "",
    )
    .cluster(),
    row("rbac.authorization.k8s.io", "ClusterRole", "clusterroles", "").cluster(),
    row("rbac.authorization.k8s.io", "RoleBinding", "rolebindings", ""),
    row("rbac.authorization.k8s.io", "Role", "roles", ""),
    row("scheduling.k8s.io", "PriorityClass", "priorityclasses", "pc").cluster(),
    row("storage.k8s.io", "StorageClass", "storageclasses", "sc").cluster(),
    row(
        "admissionregistration.k8s.io",
        "ValidatingAdmissionPolicy",
        "validatingadmissionpolicies",
        "",
    )
    .cluster()
    .with("status"),
    row(
        "admissionregistration.k8s.io",
        "ValidatingAdmissionPolicyBinding",
        "validatingadmissionpolicybindings",
        "",
    )
    .cluster(),
    row(
        "apiextensions.k8s.io",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        "crd crds",
    )
    .cluster()
    .with("status"),
];

/// All built-in kinds, in the order of discovery.
pub(super) fn all() -> Vec<Arc<Kind>> {
    ROWS.iter().map(|row| Arc::new(row.kind())).collect()
}

/// `io.k8s.api.core.v1.Pod` for `("", "v1", "Pod")`: the name of a built-in definition.
pub fn definition_name(group: &str, version: &str, kind: &str) -> String {
    if group == "apiextensions.k8s.io" {
        return format!("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.{version}.{kind}");
    }
    let package = match group {
        "" => "core",
        "rbac.authorization.k8s.io" => "rbac",
        other => other.split('.').next().unwrap_or(other),
    };
    format!("io.k8s.api.{package}.{version}.{kind}")
}

impl Row {
    fn kind(&self) -> Kind {
        let words = |text: &str| {
            text.split(' ')
                .filter(|w| !w.is_empty())
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let subresources = words(self.subresources);
        let has = |name: &str| subresources.iter().any(|s| s == name);
        let mut categories = Vec::new();
        if self.all {
            categories.push("all".to_owned());
        }
        if self.kind == "CustomResourceDefinition" {
            categories.push("api-extensions".to_owned());
        }
        Kind {
            group: self.group.to_owned(),
            version: "v1".to_owned(),
            kind: self.kind.to_owned(),
            list_kind: format!("{}List", self.kind),
            plural: self.plural.to_owned(),
            singular: self.kind.to_lowercase(),
            short_names: words(self.short),
            categories,
            namespaced: self.namespaced,
            has_status: has("status"),
            scale: has("scale").then(|| ScalePaths {
                spec: ".spec.replicas".to_owned(),
                status: ".status.replicas".to_owned(),
                selector: Some(".spec.selector".to_owned()),
            }),
            subresources: subresources
                .iter()
                .filter(|s| *s != "status" && *s != "scale")
                .cloned()
                .collect(),
            schema: Arc::new(Schema::builtin(self.group, "v1", self.kind)),
            columns: columns::of(self.kind),
            custom: false,
            selectable_fields: Vec::new(),
        }
    }
}

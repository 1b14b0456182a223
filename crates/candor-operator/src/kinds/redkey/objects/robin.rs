//! The agent of a cluster: its pod, its service account, and its minimal permissions.

use candor_api::redkey::{GROUP, ROBIN};
use k8s_openapi::api::core::v1::{ConfigMap, PodTemplateSpec};
use kube::ResourceExt;
use serde_json::{Value, json};

use super::robin_config::{self, Configuration};
use super::{BuildError, Inputs, Note, ROBIN_PORT, ROBIN_TLS_PORT, RobinObjects, credentials, names, overrides, typed};

const FIELD: &str = "spec.robin.template";

/// Paths of Robin's files. Templates of users mount the `ConfigMap` at `/opt/conf/configmap` as well.
const CONFIG_FOLDER: &str = "/etc/candor/robin/config";
const CREDENTIALS_FOLDER: &str = "/etc/candor/robin/credentials";

/// Volumes that only the operator defines.
pub(super) const VOLUMES: [&str; 2] = ["candor-config", "candor-credentials"];

/// The user of the operator's image.
const USER: i64 = 65_532;

pub(super) fn objects(inputs: &Inputs<'_>, notes: &mut Vec<Note>) -> Result<RobinObjects, BuildError> {
    let cluster = inputs.cluster;
    let (cluster_name, namespace) = (cluster.name_any(), cluster.namespace().unwrap_or_default());
    let name = names::robin(&cluster_name);
    let meta = names::meta(cluster, &name, &names::robin_labels(cluster));
    let written = cluster.spec.robin.as_ref().and_then(|robin| robin.template.as_ref());
    let whole = overrides::robin(FIELD, template(inputs, &name), written, notes);
    let template: PodTemplateSpec = overrides::read(FIELD, &whole, written, notes)?;
    // A template may name another service account, which then gets the permissions.
    let account = template
        .spec
        .as_ref()
        .and_then(|spec| spec.service_account_name.clone());
    let account = account.unwrap_or_else(|| name.clone());
    Ok(RobinObjects {
        deployment: typed(
            FIELD,
            json!({
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": meta,
                "spec": {
                    "replicas": i32::from(cluster.spec.primaries > 0),
                    "revisionHistoryLimit": 2,
                    // Two Robin pods at a time would send commands to the same servers.
                    "strategy": {"type": "Recreate"},
                    "selector": {"matchLabels": names::robin_selector(&cluster_name)},
                    "template": template,
                },
            }),
        )?,
        config_map: config_map(inputs, &meta, &namespace)?,
        secret: credentials::secret(cluster, inputs.credentials, inputs.config.password.as_ref())?,
        service_account: typed(
            FIELD,
            json!({
                "apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta,
                "automountServiceAccountToken": false,
            }),
        )?,
        role: typed(
            FIELD,
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": meta,
                "rules": [
                    {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]},
                    {
                        "apiGroups": [GROUP], "resources": ["redkeyclusters"], "resourceNames": [cluster_name],
                        "verbs": ["get"],
                    },
                ],
            }),
        )?,
        role_binding: typed(
            FIELD,
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": meta,
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
                "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
            }),
        )?,
    })
}

fn config_map(inputs: &Inputs<'_>, meta: &Value, namespace: &str) -> Result<ConfigMap, BuildError> {
    let cluster = inputs.cluster;
    let file = Configuration::of(namespace, &cluster.name_any(), &cluster.spec, inputs.status.name()).yaml();
    let file = file.map_err(|error| BuildError::Shape {
        field: "spec.robin.config",
        reason: error.to_string(),
    })?;
    typed(
        "spec.robin.config",
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": meta,
            "data": {robin_config::KEY: file},
        }),
    )
}

fn template(inputs: &Inputs<'_>, name: &str) -> Value {
    let of_pod = |name: &str, path: &str| json!({"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}});
    let probe = |period: u8, failures: u8| {
        json!({
            "httpGet": {"path": "/health", "port": ROBIN_PORT},
            "periodSeconds": period, "timeoutSeconds": 5, "failureThreshold": failures,
        })
    };
    let [config, credentials] = VOLUMES;
    json!({
        "metadata": {"labels": names::robin_labels(inputs.cluster)},
        "spec": {
            "serviceAccountName": name,
            "automountServiceAccountToken": true,
            "enableServiceLinks": false,
            "terminationGracePeriodSeconds": 10,
            "containers": [{
                "name": ROBIN,
                "image": inputs.robin_image,
                "args": [
                    "robin",
                    format!("--config={CONFIG_FOLDER}/{}", robin_config::KEY),
                    format!("--credentials={CREDENTIALS_FOLDER}"),
                    "--address=$(POD_IP)",
                ],
                "env": [of_pod("POD_IP", "status.podIP"), of_pod("POD_NAMESPACE", "metadata.namespace")],
                "ports": [
                    {"name": "prometheus", "containerPort": ROBIN_PORT, "protocol": "TCP"},
                    {"name": "operator", "containerPort": ROBIN_TLS_PORT, "protocol": "TCP"},
                ],
                "resources": {
                    "requests": {"cpu": "20m", "memory": "32Mi"},
                    "limits": {"cpu": "100m", "memory": "100Mi"},
                },
                "volumeMounts": [
                    {"name": config, "mountPath": CONFIG_FOLDER, "readOnly": true},
                    {"name": credentials, "mountPath": CREDENTIALS_FOLDER, "readOnly": true},
                ],
                "startupProbe": probe(1, 60),
                "livenessProbe": probe(5, 6),
                "readinessProbe": probe(5, 1),
                "securityContext": {
                    "allowPrivilegeEscalation": false,
                    "capabilities": {"drop": ["ALL"]},
                    "readOnlyRootFilesystem": true,
                    "runAsNonRoot": true,
                },
                "terminationMessagePolicy": "FallbackToLogsOnError",
            }],
            "volumes": [
                {"name": config, "configMap": {"name": name}},
                {"name": credentials, "secret": {"secretName": name, "defaultMode": 0o440}},
            ],
            "securityContext": {
                "runAsNonRoot": true,
                "runAsUser": USER,
                "runAsGroup": USER,
                "fsGroup": USER,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
        },
    })
}

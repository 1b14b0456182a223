//! The pod of a server.

use candor_api::redkey::REDIS;
use kube::ResourceExt;
use serde_json::{Value, json};

use super::super::config::memory;
use super::{Inputs, PORT, names, shared};

/// The user and group of the official images.
const SERVER_USER: i64 = 999;

/// Paths inside a pod.
pub(super) const CONFIG_FOLDER: &str = "/conf";
pub(super) const SCRIPTS_FOLDER: &str = "/scripts";
pub(super) const CREDENTIALS_FOLDER: &str = "/credentials";
pub(super) const DATA_FOLDER: &str = "/data";

/// Volumes that only the operator defines.
pub(super) const VOLUMES: [&str; 3] = ["config", "data", "credentials"];

/// Probe failures before a restart. Each probe of a hung server runs into its timeout, so the kubelet restarts the
/// server half a minute after its last reply.
const HUNG_FAILURES: u64 = 6;

/// The pod's spec, before `spec.override`.
pub(super) fn spec(inputs: &Inputs<'_>) -> Value {
    let cluster = inputs.cluster;
    let name = cluster.name_any();
    let mut volumes = vec![
        json!({"name": "config", "configMap": {"name": name}}),
        json!({"name": "credentials", "secret": {
            "secretName": names::robin(&name),
            "defaultMode": 0o440,
            // Servers must not get Robin's token and key.
            "items": [
                {"key": super::credentials::PASSWORD, "path": super::credentials::PASSWORD},
                {"key": super::credentials::AUTH_FILE, "path": super::credentials::AUTH_FILE},
            ],
        }}),
    ];
    if cluster.spec.ephemeral {
        volumes.push(json!({"name": "data", "emptyDir": {}}));
    }
    json!({
        "containers": [server(inputs)],
        "volumes": volumes,
        "securityContext": {
            "runAsNonRoot": true,
            "runAsUser": SERVER_USER,
            "runAsGroup": SERVER_USER,
            "fsGroup": SERVER_USER,
            // The kubelet does not change the owner of millions of files at every start.
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "terminationGracePeriodSeconds": 30,
        // A server needs neither access to the API server nor the names of other Services.
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
    })
}

fn server(inputs: &Inputs<'_>) -> Value {
    let spec = &inputs.cluster.spec;
    let resources = spec
        .resources
        .clone()
        .unwrap_or_else(|| memory::resources(inputs.config.maxmemory));
    // A server that must not return as primary does not listen for two node timeouts (guard.sh).
    let held_back = inputs.config.node_timeout / 500;
    let probe = |script: &str, period: u64, failures: u64| {
        json!({
            "exec": {"command": ["sh", format!("{SCRIPTS_FOLDER}/{script}")]},
            "periodSeconds": period,
            "timeoutSeconds": 5,
            "failureThreshold": failures,
        })
    };
    let mut liveness = probe("alive.sh", 2, HUNG_FAILURES);
    liveness["terminationGracePeriodSeconds"] = json!(10);
    json!({
        "name": REDIS,
        "image": spec.server_image(),
        "command": [
            "sh", format!("{SCRIPTS_FOLDER}/start.sh"), format!("{CONFIG_FOLDER}/{}", shared::CONFIG_KEY),
            "--include", format!("{CREDENTIALS_FOLDER}/{}", super::credentials::AUTH_FILE),
        ],
        "env": [
            {"name": "POD_IP", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}},
            {"name": "VALKEY_DATA", "value": if inputs.config.keeps_data { "kept" } else { "lost" }},
        ],
        "ports": [
            {"name": "client", "containerPort": PORT, "protocol": "TCP"},
            {"name": "gossip", "containerPort": PORT + 10_000, "protocol": "TCP"},
        ],
        "resources": resources,
        "volumeMounts": [
            {"name": "config", "mountPath": CONFIG_FOLDER, "readOnly": true},
            {"name": "config", "mountPath": SCRIPTS_FOLDER, "readOnly": true},
            {"name": "credentials", "mountPath": CREDENTIALS_FOLDER, "readOnly": true},
            {"name": "data", "mountPath": DATA_FOLDER},
        ],
        "startupProbe": probe("alive.sh", 1, 60 + held_back.min(100_000)),
        "livenessProbe": liveness,
        "readinessProbe": probe("ready.sh", 2, 1),
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": true,
            "runAsNonRoot": true,
        },
        // If the server fails to start, the last lines of its log become part of the pod's status.
        "terminationMessagePolicy": "FallbackToLogsOnError",
    })
}

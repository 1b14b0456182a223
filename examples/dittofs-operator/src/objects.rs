//! What there should be: every object the operator makes, built without a client.
//!
//! All of them belong to the server and go with it, except the PostgreSQL cluster: it never has an owner reference, so
//! that garbage collection never takes it, whatever becomes of the server.

use kube::Resource;
use kube::core::ApiResource;
use kube::core::gvk::GroupVersionKind;
use serde_json::{Value, json};

use crate::api::DittoServer;

/// The annotation of pods that makes them roll with their configuration.
pub const CONFIG_HASH: &str = "dittofs.io/config-hash";

/// The label that names which server an object was made for.
pub const SERVER: &str = "dittofs.io/server";

/// Percona's resource, which may not be installed: it is handled without types.
pub fn percona() -> ApiResource {
    ApiResource::from_gvk_with_plural(
        &GroupVersionKind::gvk("pgv2.percona.com", "v2", "PerconaPGCluster"),
        "perconapgclusters",
    )
}

/// The name of its definition.
pub const PERCONA_CRD: &str = "perconapgclusters.pgv2.percona.com";

fn labels(server: &DittoServer) -> Value {
    json!({
        "app.kubernetes.io/name": "dittofs",
        "app.kubernetes.io/managed-by": "dittofs-operator",
        SERVER: server.metadata.name,
    })
}

/// The metadata of an object that goes with the server.
fn owned(server: &DittoServer, name: &str) -> Value {
    json!({
        "name": name,
        "namespace": server.metadata.namespace,
        "labels": labels(server),
        "ownerReferences": [server.controller_owner_ref(&())],
    })
}

/// The configuration as the server reads it.
pub fn config_map(server: &DittoServer) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": owned(server, &server.named("config")),
        "data": {"config.yaml": server.spec.config},
    })
}

/// What clients mount, what names the pod, and the API.
pub fn services(server: &DittoServer) -> [Value; 3] {
    let name = server.metadata.name.as_deref().unwrap_or_default();
    let nfs = json!({"name": "nfs", "port": server.spec.nfs_port, "protocol": "TCP", "targetPort": "nfs"});
    let api = json!({"name": "api", "port": server.spec.api_port, "protocol": "TCP", "targetPort": "api"});
    let service = |name: &str, spec: Value| {
        let mut spec = spec;
        spec["selector"] = json!({SERVER: server.metadata.name});
        json!({"apiVersion": "v1", "kind": "Service", "metadata": owned(server, name), "spec": spec})
    };
    [
        service(name, json!({"ports": [nfs]})),
        service(
            &server.named("headless"),
            json!({"clusterIP": "None", "ports": [nfs, api]}),
        ),
        service(&server.named("api"), json!({"ports": [api]})),
    ]
}

/// The server itself, to be run with the configuration of this hash.
pub fn stateful_set(server: &DittoServer, hash: &str) -> Value {
    let spec = &server.spec;
    let name = server.metadata.name.as_deref().unwrap_or_default();
    let reference = |secret| json!({"secretRef": secret});
    let secrets: Vec<Value> = spec.secret_refs.iter().map(reference).collect();
    let probe = |path: &str, initial: i32, period: i32, failures: i32| {
        json!({
            "httpGet": {"path": path, "port": spec.api_port},
            "initialDelaySeconds": initial, "periodSeconds": period,
            "timeoutSeconds": 5, "failureThreshold": failures,
        })
    };
    let container = json!({
        "name": "dittofs",
        "image": spec.image,
        "args": [
            "start", "--config", "/etc/dittofs/config.yaml",
            "--nfs-port", spec.nfs_port.to_string(), "--api-port", spec.api_port.to_string(),
        ],
        "ports": [
            {"name": "nfs", "containerPort": spec.nfs_port, "protocol": "TCP"},
            {"name": "api", "containerPort": spec.api_port, "protocol": "TCP"},
        ],
        "envFrom": secrets,
        "livenessProbe": probe("/health", 15, 10, 3),
        "readinessProbe": probe("/health/ready", 10, 5, 3),
        // 30 times 5 s: a server that must replay its journal has 150 s to come up.
        "startupProbe": probe("/health", 0, 5, 30),
        // Endpoints forget the pod meanwhile; connections are drained after SIGTERM.
        "lifecycle": {"preStop": {"exec": {"command": ["/bin/sh", "-c", "sleep 5"]}}},
        "volumeMounts": [
            {"name": "config", "mountPath": "/etc/dittofs", "readOnly": true},
            {"name": "data", "mountPath": "/data"},
        ],
    });
    let mut claim = json!({
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": spec.storage.size}},
    });
    if let Some(class) = &spec.storage.storage_class_name {
        claim["storageClassName"] = json!(class);
    }
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": owned(server, name),
        "spec": {
            "replicas": spec.replicas,
            "serviceName": server.named("headless"),
            "selector": {"matchLabels": {SERVER: server.metadata.name}},
            "template": {
                "metadata": {"labels": labels(server), "annotations": {CONFIG_HASH: hash}},
                "spec": {
                    "containers": [container],
                    "volumes": [{"name": "config", "configMap": {"name": server.named("config")}}],
                },
            },
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}],
        },
    })
}

/// The PostgreSQL cluster, without an owner reference.
pub fn database(server: &DittoServer) -> Value {
    let claim = json!({
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": server.spec.storage.size}},
    });
    json!({
        "apiVersion": "pgv2.percona.com/v2", "kind": "PerconaPGCluster",
        "metadata": {
            "name": server.database_name(),
            "namespace": server.metadata.namespace,
            "labels": labels(server),
        },
        "spec": {
            "crVersion": "2.5.0",
            "postgresVersion": 16,
            "instances": [{"name": "instance1", "replicas": 1, "dataVolumeClaimSpec": claim}],
            "proxy": {"pgBouncer": {"replicas": 1}},
            "backups": {"pgbackrest": {"repos": [{"name": "repo1", "volume": {"volumeClaimSpec": claim}}]}},
        },
    })
}

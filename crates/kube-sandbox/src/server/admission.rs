//! The admission plugins that operators rely on: namespaces, service accounts, tolerations, the default storage class.

use std::time::Duration;

use serde_json::{Value, json};

use super::api::{Api, Call};
use super::{clock, meta};
use crate::quantity::Quantity;
use crate::status::{ApiError, qualified};
use crate::store::ObjectKey;

/// How often, and how far apart, the server looks up the default account of a new namespace.
const ACCOUNT_ATTEMPTS: u32 = 10;
const ACCOUNT_PAUSE: Duration = Duration::from_millis(100);
const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

impl Api {
    /// Changes and rejects new objects.
    pub(super) fn admit_create(&self, call: &Call, value: &mut Value) -> Result<(), ApiError> {
        self.check_namespace(call, value)?;
        match (call.kind.group.as_str(), call.kind.plural.as_str()) {
            ("", "pods") => self.admit_pod(call, value),
            ("", "persistentvolumeclaims") => {
                self.default_storage_class(value);
                protect(value, "kubernetes.io/pvc-protection");
                Ok(())
            }
            ("", "persistentvolumes") => {
                protect(value, "kubernetes.io/pv-protection");
                Ok(())
            }
            ("", "services") => self.allocate(call, value),
            _ => Ok(()),
        }
    }

    /// A namespaced object needs a namespace that exists and is not being deleted.
    pub(super) fn check_namespace(&self, call: &Call, value: &Value) -> Result<(), ApiError> {
        if !call.kind.namespaced {
            return Ok(());
        }
        let namespace = &call.info.namespace;
        let found = self
            .store()
            .get("namespaces", &ObjectKey::new("", namespace.as_str()))
            .ok_or_else(|| ApiError::not_found("", "namespaces", namespace))?;
        if !meta::is_deleting(found.value()) {
            return Ok(());
        }
        let mut error = forbidden(
            call,
            value,
            &format!("unable to create new content in namespace {namespace} because it is being terminated"),
        );
        if let Some(details) = error.details.as_mut() {
            details["causes"] = json!([{
                "reason": "NamespaceTerminating",
                "message": format!("namespace {namespace} is being terminated"),
                "field": "metadata.namespace",
            }]);
        }
        Err(error)
    }

    fn admit_pod(&self, call: &Call, pod: &mut Value) -> Result<(), ApiError> {
        add_tolerations(pod);
        set_priority(pod);
        let spec = &pod["spec"];
        let named = spec["serviceAccountName"].as_str().or(spec["serviceAccount"].as_str());
        let account = named.filter(|n| !n.is_empty()).unwrap_or("default").to_owned();
        pod["spec"]["serviceAccountName"] = json!(account);
        pod["spec"]["serviceAccount"] = json!(account);
        let namespace = call.info.namespace.as_str();
        let found = self
            .store()
            .get("serviceaccounts", &ObjectKey::new(namespace, account.as_str()));
        let Some(found) = found else {
            return Err(forbidden(
                call,
                pod,
                &format!(
                    "error looking up service account {namespace}/{account}: serviceaccount {account:?} not found"
                ),
            ));
        };
        let automount = pod["spec"]["automountServiceAccountToken"]
            .as_bool()
            .or(found.value()["automountServiceAccountToken"].as_bool())
            .unwrap_or(true);
        if automount {
            mount_token(pod);
        }
        Ok(())
    }

    /// The controller creates the account `default` shortly after its namespace. A pod that needs it waits as on the real
    /// server: ten attempts, about a second.
    pub(super) async fn await_default_account(&self, call: &Call) {
        if !call.kind.group.is_empty() || call.kind.plural != "pods" {
            return;
        }
        let key = ObjectKey::new(call.info.namespace.as_str(), "default");
        for _ in 0..ACCOUNT_ATTEMPTS {
            let there = |table: &str, key: &ObjectKey| self.store().get(table, key).is_some();
            if there("serviceaccounts", &key) || !there("namespaces", &ObjectKey::new("", call.info.namespace.as_str()))
            {
                return;
            }
            let pod: Value = serde_json::from_slice(&call.body).unwrap_or_default();
            if pod["spec"]["serviceAccountName"]
                .as_str()
                .is_some_and(|name| !name.is_empty())
            {
                return;
            }
            tokio::time::sleep(ACCOUNT_PAUSE).await;
        }
    }

    /// A claim grows only where its storage class says so.
    pub(super) fn admit_resize(&self, call: &Call, old: &Value, new: &Value) -> Result<(), ApiError> {
        let is_claim = call.kind.group.is_empty() && call.kind.plural == "persistentvolumeclaims";
        if !is_claim || !call.info.subresource.is_empty() {
            return Ok(());
        }
        let size = |claim: &Value| Quantity::parse(claim["spec"]["resources"]["requests"]["storage"].as_str()?);
        let grows = matches!((size(old), size(new)), (Some(old), Some(new)) if old < new);
        let class = new["spec"]["storageClassName"].as_str().unwrap_or_default();
        let class = self
            .store()
            .get("storageclasses.storage.k8s.io", &ObjectKey::new("", class));
        let expands = class.is_some_and(|class| class.value()["allowVolumeExpansion"] == json!(true));
        if !grows || expands {
            return Ok(());
        }
        let why = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must \
                   support resize";
        Err(forbidden(call, new, why))
    }

    fn default_storage_class(&self, claim: &mut Value) {
        if claim["spec"]["storageClassName"].is_string() || !claim["spec"].is_object() {
            return;
        }
        let (classes, _) = self.store().list("storageclasses.storage.k8s.io", None);
        let is_default = |class: &Value| {
            class["metadata"]["annotations"]["storageclass.kubernetes.io/is-default-class"] == json!("true")
        };
        let chosen = classes.iter().filter(|c| is_default(c.value())).max_by_key(|c| {
            (
                meta::text(c.value(), "creationTimestamp").to_owned(),
                std::cmp::Reverse(meta::text(c.value(), "name").to_owned()),
            )
        });
        if let Some(class) = chosen {
            claim["spec"]["storageClassName"] = json!(meta::text(class.value(), "name"));
        }
    }
}

/// Changes objects that are being updated: a pod with new tolerations gets the usual ones again.
pub(super) fn admit_update(call: &Call, value: &mut Value) {
    if call.kind.group.is_empty() && call.kind.plural == "pods" && call.info.subresource.is_empty() {
        add_tolerations(value);
    }
}

/// Protects storage that is in use: a controller removes the finalizer when no pod uses it any more.
fn protect(value: &mut Value, finalizer: &str) {
    let mut finalizers: Vec<Value> = meta::finalizers(value).into_iter().map(Value::from).collect();
    if !finalizers.contains(&json!(finalizer)) {
        finalizers.push(json!(finalizer));
        meta::set(value, "finalizers", Some(Value::Array(finalizers)));
    }
}

/// 403 about an object that is being made.
pub(super) fn forbidden(call: &Call, value: &Value, why: &str) -> ApiError {
    let name = meta::text(value, "name");
    ApiError::new(
        403,
        "Forbidden",
        format!(
            "{} {name:?} is forbidden: {why}",
            qualified(&call.kind.group, &call.kind.plural)
        ),
    )
    .about(&call.kind.group, &call.kind.plural, name)
}

/// Without priority classes every pod has the same priority.
fn set_priority(pod: &mut Value) {
    if let Some(spec) = pod["spec"].as_object_mut() {
        spec.insert("priority".into(), json!(0));
        spec.entry("preemptionPolicy")
            .or_insert_with(|| json!("PreemptLowerPriority"));
    }
}

/// Pods stay five minutes on a node that is not ready, unless they say otherwise.
fn add_tolerations(pod: &mut Value) {
    if !pod["spec"].is_object() {
        return;
    }
    let mut tolerations = pod["spec"]["tolerations"].as_array().cloned().unwrap_or_default();
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let covered = tolerations.iter().any(|t| {
            let same_key = t["key"] == *key || t["key"].as_str().unwrap_or_default().is_empty();
            let same_effect = t["effect"] == "NoExecute" || t["effect"].as_str().unwrap_or_default().is_empty();
            same_key && same_effect
        });
        if !covered {
            tolerations
                .push(json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}));
        }
    }
    pod["spec"]["tolerations"] = Value::Array(tolerations);
}

/// The volume every container finds its token, its CA and its namespace in.
fn mount_token(pod: &mut Value) {
    let mounted = |c: &Value| {
        c["volumeMounts"]
            .as_array()
            .is_some_and(|m| m.iter().any(|m| m["mountPath"] == TOKEN_PATH))
    };
    let lists = ["initContainers", "containers"];
    let needed = lists
        .iter()
        .any(|list| pod["spec"][list].as_array().is_some_and(|l| !l.iter().all(mounted)));
    if !needed {
        return;
    }
    let name = clock::generated_name("kube-api-access-");
    for list in lists {
        // Not by `pod["spec"][list]`, which would put a null where there is no list.
        let containers = pod["spec"].get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            if mounted(container) {
                continue;
            }
            let mut mounts = container["volumeMounts"].as_array().cloned().unwrap_or_default();
            mounts.push(json!({"name": name, "readOnly": true, "mountPath": TOKEN_PATH}));
            container["volumeMounts"] = Value::Array(mounts);
        }
    }
    let mut volumes = pod["spec"]["volumes"].as_array().cloned().unwrap_or_default();
    volumes.push(json!({"name": name, "projected": {"defaultMode": 420, "sources": [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [
            {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}},
        ]}},
    ]}}));
    pod["spec"]["volumes"] = Value::Array(volumes);
}

//! Serves `CustomResourceDefinition`s when they are written, and deletes their objects when they are deleted.

use std::sync::PoisonError;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::api::{Api, Call, table_of};
use super::delete::DeleteOptions;
use super::{clock, meta};
use crate::kinds::Kind;
use crate::status::ApiError;
use crate::store::{Object, ObjectKey};

/// The table of CRDs.
pub(super) const TABLE: &str = "customresourcedefinitions.apiextensions.k8s.io";
const FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Whether objects of this kind define kinds.
pub(super) fn is_crd(kind: &Kind) -> bool {
    kind.group == "apiextensions.k8s.io" && kind.plural == "customresourcedefinitions"
}

/// The name of the CRD that defines a custom kind.
pub(super) fn name_of(kind: &Kind) -> String {
    format!("{}.{}", kind.plural, kind.group)
}

/// A CRD that is being deleted waits for its objects.
pub(super) fn begin_deletion(definition: &mut Value) {
    let mut finalizers: Vec<String> = meta::finalizers(definition).into_iter().map(str::to_owned).collect();
    if !meta::is_deleting(definition) && !finalizers.iter().any(|f| f == FINALIZER) {
        finalizers.push(FINALIZER.into());
    }
    meta::set(definition, "finalizers", Some(json!(finalizers)));
    set_condition(
        definition,
        "True",
        "InstanceDeletionPending",
        "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    );
}

fn set_condition(definition: &mut Value, status: &str, reason: &str, message: &str) {
    let mut conditions = definition["status"]["conditions"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    conditions.retain(|c| c["type"] != "Terminating");
    conditions.push(json!({
        "type": "Terminating", "status": status, "reason": reason, "message": message,
        "lastTransitionTime": clock::now(),
    }));
    definition["status"]["conditions"] = Value::Array(conditions);
}

impl Api {
    /// Rejects new custom objects while their CRD is being deleted.
    pub(super) fn check_crd(&self, call: &Call) -> Result<(), ApiError> {
        let kind = &call.kind;
        if !kind.custom {
            return Ok(());
        }
        let Some(definition) = self.store().get(TABLE, &ObjectKey::new("", name_of(kind))) else {
            return Err(ApiError::no_page());
        };
        if !meta::is_deleting(definition.value()) {
            return Ok(());
        }
        let message = format!(
            "{} not allowed while custom resource definition is terminating",
            call.info.verb
        );
        Err(ApiError::new(405, "MethodNotAllowed", message).about(&kind.group, &kind.plural, ""))
    }

    /// Called after every write of a CRD: serves the stored one, and writes its status.
    ///
    /// Concurrent writes are not served in their order, so this reads the store instead of the write, one at a time.
    pub(super) fn crd_written(&self, written: &Object) {
        let _installation = self.installation().lock().unwrap_or_else(PoisonError::into_inner);
        let name = meta::text(written.value(), "name").to_owned();
        let key = ObjectKey::new("", name.as_str());
        let Some(definition) = self.store().get(TABLE, &key) else {
            self.kinds().remove_crd(&name);
            return;
        };
        if meta::is_deleting(definition.value()) {
            if meta::finalizers(definition.value()).contains(&FINALIZER) {
                let (api, uid) = (self.clone(), meta::text(definition.value(), "uid").to_owned());
                tokio::spawn(async move { api.clean_up(&name, &uid).await });
            }
            return;
        }
        match self.kinds().install_crd(definition.value(), Timestamp::now()) {
            Ok(status) => {
                let written = self.modify(TABLE, &key, |value| {
                    value["status"] = status.clone();
                    Ok(())
                });
                if let Err(error) = written {
                    tracing::debug!(%error, name, "the CRD was deleted before its status was written");
                }
            }
            Err(error) => tracing::warn!(%error, name, "a CRD that passed validation cannot be served"),
        }
    }

    /// Deletes the objects of a CRD that is being deleted, then removes its finalizer. A CRD that was created again under
    /// the same name has another uid and keeps its objects.
    async fn clean_up(&self, name: &str, uid: &str) {
        let key = ObjectKey::new("", name);
        loop {
            let stored = self.store().get(TABLE, &key);
            let Some(definition) = stored.filter(|definition| meta::text(definition.value(), "uid") == uid) else {
                return;
            };
            let served: Vec<_> = self
                .kinds()
                .all()
                .into_iter()
                .filter(|k| {
                    k.custom
                        && definition.value()["spec"]["group"] == *k.group
                        && definition.value()["spec"]["names"]["plural"] == *k.plural
                })
                .collect();
            let Some(kind) = served.first() else {
                break;
            };
            let (objects, _) = self.store().list(&table_of(kind), None);
            if objects.is_empty() {
                break;
            }
            for object in &objects {
                let key = super::read::key_of(object.value());
                if !meta::is_deleting(object.value()) {
                    // An object that is gone already is not an error.
                    let _ = self.delete_object(kind, &key, &DeleteOptions::default(), false);
                }
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let done = self.modify(TABLE, &key, |value| {
            if meta::text(value, "uid") != uid {
                return Err(ApiError::not_found(
                    "apiextensions.k8s.io",
                    "customresourcedefinitions",
                    name,
                ));
            }
            let kept: Vec<String> = meta::finalizers(value)
                .into_iter()
                .filter(|f| *f != FINALIZER)
                .map(str::to_owned)
                .collect();
            meta::set(value, "finalizers", (!kept.is_empty()).then(|| json!(kept)));
            set_condition(value, "False", "InstanceDeletionCompleted", "removed all instances");
            Ok(())
        });
        if let Ok(definition) = done {
            self.crd_written(&definition);
        }
    }
}

//! `CustomResourceDefinition`s come into force when they are written, and take their objects with them when they go.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::api::{Api, table_of};
use super::delete::DeleteOptions;
use super::{clock, meta};
use crate::kinds::Kind;
use crate::store::{Object, ObjectKey};

/// The table of definitions.
pub(super) const TABLE: &str = "customresourcedefinitions.apiextensions.k8s.io";
const FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Whether objects of this kind define kinds.
pub(super) fn is_crd(kind: &Kind) -> bool {
    kind.group == "apiextensions.k8s.io" && kind.plural == "customresourcedefinitions"
}

/// A definition that is asked to go waits for its objects.
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
    /// Called after every write of a definition: serves it, and writes its status.
    pub(super) fn crd_written(&self, definition: &Object) {
        let name = meta::text(definition.value(), "name").to_owned();
        let key = ObjectKey::new("", name.as_str());
        if self.store().get(TABLE, &key).is_none() {
            self.kinds().remove_crd(&name);
            return;
        }
        if meta::is_deleting(definition.value()) {
            if meta::finalizers(definition.value()).contains(&FINALIZER) {
                let api = self.clone();
                tokio::spawn(async move { api.clean_up(&name).await });
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
                    tracing::debug!(%error, name, "the definition went before its status was written");
                }
            }
            Err(error) => tracing::warn!(%error, name, "a definition that passed validation cannot be served"),
        }
    }

    /// Deletes the objects of a definition that is going, then lets it go.
    async fn clean_up(&self, name: &str) {
        let key = ObjectKey::new("", name);
        loop {
            let Some(definition) = self.store().get(TABLE, &key) else {
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
                    // Already gone is as good.
                    let _ = self.delete_object(kind, &key, &DeleteOptions::default(), false);
                }
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let done = self.modify(TABLE, &key, |value| {
            let kept: Vec<String> = meta::finalizers(value)
                .into_iter()
                .filter(|f| *f != FINALIZER)
                .map(str::to_owned)
                .collect();
            meta::set(value, "finalizers", (!kept.is_empty()).then(|| json!(kept)));
            set_condition(value, "False", "InstanceDeletionCompleted", "removed all instances");
            Ok(())
        });
        if done.is_ok() && self.store().get(TABLE, &key).is_none() {
            self.kinds().remove_crd(name);
        }
    }
}

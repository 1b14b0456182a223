//! The status of a resource that the controller owns.

use std::fmt::Debug;

use kube::api::{Api, Patch, PatchParams};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::document::{Document, is_same_content, keep_within_limits, without_nulls};
use super::{StatusWriter, WriteError, Written, is};

impl StatusWriter {
    /// Writes the whole status of a resource that this controller owns, computed from `observed`.
    ///
    /// One server-side apply with the resourceVersion of `observed`: fields that this writer wrote before and that are no
    /// longer in `status` are removed, and a status computed from an old version is never written
    /// ([`WriteError::Stale`]: read the object again and compute the status anew; a retry with the same status would be
    /// untrue). When `status` equals that of `observed`, nothing is sent.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::apps::v1::{Deployment, DeploymentStatus};
    /// # use kube_status::writer::{StatusWriter, WriteError};
    /// # async fn run(api: kube::Api<Deployment>, seen: Deployment) -> Result<(), WriteError> {
    /// let status = DeploymentStatus { replicas: Some(3), ..Default::default() };
    /// match StatusWriter::new("shop-controller").apply(&api, &seen, &status).await {
    ///     Err(error) if error.is_race() || error.is_not_found() => {} // the watch will bring the new version, or none
    ///     other => { let _ = other?; }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn apply<K, S>(&self, api: &Api<K>, observed: &K, status: &S) -> Result<Written<K>, WriteError>
    where
        K: Clone + Debug + Serialize + DeserializeOwned,
        S: Serialize + ?Sized,
    {
        let observed = Document::of(observed)?;
        let status = serde_json::to_value(status).map_err(|source| WriteError::Serialize {
            object: observed.called.clone(),
            source,
        })?;
        let mut status = without_nulls(status);
        keep_within_limits(&mut status);
        if is_same_content(observed.status().unwrap_or(&json!({})), &status) {
            return Ok(Written::Unchanged);
        }
        let body = json!({
            "apiVersion": observed.text("/apiVersion", "apiVersion")?,
            "kind": observed.text("/kind", "kind")?,
            "metadata": {"name": observed.name()?, "resourceVersion": observed.version()?},
            "status": status,
        });
        let params = PatchParams::apply(&self.manager).force();
        match api.patch_status(observed.name()?, &params, &Patch::Apply(&body)).await {
            Ok(written) => Ok(Written::Changed(Box::new(written))),
            // With force no field manager can object, so a conflict is the resourceVersion's.
            Err(error) if is(&error, 409) => Err(WriteError::Stale {
                object: observed.called,
            }),
            Err(error) => Err(observed.rejected(error)),
        }
    }
}

//! Doing what was planned: every write but the status.

use kube::api::{DynamicObject, Patch, PatchParams};
use kube::{Api, Client, ResourceExt};

use crate::api::DittoServer;
use crate::conditions::CONTROLLER;
use crate::plan::Step;

/// A step that failed.
#[derive(Debug, thiserror::Error)]
#[error("{target} could not be written: {source}")]
pub struct StepError {
    target: String,
    is_server: bool,
    source: kube::Error,
}

impl StepError {
    /// Whether the API server rejected the `StatefulSet`: a retry changes nothing.
    pub fn rejects_server(&self) -> bool {
        self.is_server && matches!(&self.source, kube::Error::Api(status) if matches!(status.code, 400 | 403 | 422))
    }
}

/// Takes the steps in order and stops at the first that fails: what comes later may depend on it.
pub async fn act(client: &Client, server: &DittoServer, steps: &[Step]) -> Result<(), StepError> {
    for step in steps {
        let namespace = server.namespace().unwrap_or_default();
        let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), &namespace, &step.resource);
        let ours = PatchParams {
            force: matches!(step.patch, Patch::Apply(_)),
            ..PatchParams::apply(CONTROLLER)
        };
        let written = api.patch(&step.name, &ours, &step.patch).await;
        written.map_err(|source| StepError {
            target: step.target(),
            is_server: step.is_server(),
            source,
        })?;
    }
    Ok(())
}

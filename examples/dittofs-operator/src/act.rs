//! Doing what was planned: every write but the status.

use k8s_openapi::api::apps::v1::StatefulSet;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::ApiResource;
use kube::core::gvk::GroupVersionKind;
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

use crate::api::DittoServer;
use crate::objects::percona;
use crate::plan::Step;
use crate::words::CONTROLLER;

/// A step that failed.
#[derive(Debug, thiserror::Error)]
#[error("{target} could not be written: {source}")]
pub struct StepError {
    /// Kind and name of what was to be written.
    pub target: String,
    /// Whether it was the server itself.
    pub is_server: bool,
    /// What the API server said.
    #[source]
    pub source: kube::Error,
}

impl StepError {
    /// Whether the API server looked at the object and will not have it: another try changes nothing.
    pub fn is_refusal(&self) -> bool {
        matches!(&self.source, kube::Error::Api(status) if matches!(status.code, 400 | 403 | 422))
    }
}

/// Takes the steps in order and stops at the first that fails: what comes later may depend on it.
pub async fn act(client: &Client, server: &DittoServer, steps: &[Step]) -> Result<(), StepError> {
    for step in steps {
        take(client, server, step).await.map_err(|source| StepError {
            target: step.target(server),
            is_server: step.is_server(),
            source,
        })?;
    }
    Ok(())
}

async fn take(client: &Client, server: &DittoServer, step: &Step) -> Result<(), kube::Error> {
    let namespace = server.namespace().unwrap_or_default();
    match step {
        Step::Apply(object) => {
            let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            let (group, version) = text("/apiVersion")
                .rsplit_once('/')
                .unwrap_or(("", text("/apiVersion")));
            let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, text("/kind")));
            let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), &namespace, &resource);
            let ours = PatchParams::apply(CONTROLLER).force();
            api.patch(text("/metadata/name"), &ours, &Patch::Apply(object)).await?;
        }
        Step::Scale(replicas) => {
            let api: Api<StatefulSet> = Api::namespaced(client.clone(), &namespace);
            let change = Patch::Merge(json!({"spec": {"replicas": replicas}}));
            let ours = PatchParams {
                field_manager: Some(CONTROLLER.to_owned()),
                ..PatchParams::default()
            };
            api.patch(&server.name_any(), &ours, &change).await?;
        }
        Step::Disown(patch) => disown(client, server, patch).await?,
    }
    Ok(())
}

/// Takes owner references off a database, see [`crate::plan::disown`].
pub async fn disown(client: &Client, server: &DittoServer, patch: &Value) -> Result<(), kube::Error> {
    let namespace = server.namespace().unwrap_or_default();
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), &namespace, &percona());
    let params = PatchParams::default();
    api.patch(&server.database_name(), &params, &Patch::Merge(patch))
        .await
        .map(drop)
}

//! Writing a pod's status, and taking the pod away when it is over.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, PodStatus};
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams, Preconditions};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use super::pod::PodShared;

/// Writes one pod's status when it differs from what was written last.
///
/// A strategic patch, so that conditions of others (readiness gates, `DisruptionTarget`) stay.
pub(super) struct Reporter {
    api: Api<Pod>,
    name: String,
    uid: String,
    written: Option<Value>,
    retry_at: Option<Instant>,
}

const RETRY: Duration = Duration::from_millis(500);

impl Reporter {
    pub fn new(client: Client, shared: &PodShared) -> Self {
        Self {
            api: Api::namespaced(client, &shared.namespace),
            name: shared.name.clone(),
            uid: shared.uid.clone(),
            written: None,
            retry_at: None,
        }
    }

    pub async fn report(&mut self, status: PodStatus) {
        let status = serde_json::to_value(status).unwrap_or_default();
        let same = self
            .written
            .as_ref()
            .is_some_and(|written| without_times(written) == without_times(&status));
        if same {
            return;
        }
        let mut patch = status.clone();
        if let Some(written) = &self.written {
            name_removed(written, &mut patch);
        }
        let patch = json!({"metadata": {"uid": self.uid}, "status": patch});
        let answer = self
            .api
            .patch_status(&self.name, &PatchParams::default(), &Patch::Strategic(patch))
            .await;
        self.retry_at = None;
        match answer {
            Ok(_) => self.written = Some(status),
            // Gone, or a namesake: the watch will say so.
            Err(kube::Error::Api(answer)) if matches!(answer.code, 404 | 409) => self.written = Some(status),
            Err(error) => {
                tracing::debug!(pod = self.name, %error, "a pod's status could not be written; trying again");
                self.retry_at = Some(Instant::now() + RETRY);
            }
        }
    }

    /// Ends when a failed write is due again.
    pub async fn retry(&mut self) {
        match self.retry_at {
            Some(time) => sleep_until(time).await,
            None => std::future::pending().await,
        }
    }

    /// Takes the object away, if it is still this pod; whether that is settled.
    pub async fn delete(&mut self) -> bool {
        let params = DeleteParams {
            grace_period_seconds: Some(0),
            preconditions: Some(Preconditions {
                uid: Some(self.uid.clone()),
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        match self.api.delete(&self.name, &params).await {
            Ok(_) => true,
            Err(kube::Error::Api(answer)) if matches!(answer.code, 404 | 409) => true,
            Err(error) => {
                tracing::debug!(pod = self.name, %error, "a pod could not be deleted; trying again");
                self.retry_at = Some(Instant::now() + RETRY);
                false
            }
        }
    }
}

/// The status without the times at which conditions changed: those alone are no news.
fn without_times(status: &Value) -> Value {
    let mut status = status.clone();
    for condition in status["conditions"].as_array_mut().into_iter().flatten() {
        if let Some(fields) = condition.as_object_mut() {
            fields.remove("lastTransitionTime");
        }
    }
    status
}

/// Puts `null` where a field was written before and is absent now; a patch removes nothing that it does not name.
fn name_removed(before: &Value, patch: &mut Value) {
    fn nulls(before: &Value, after: &mut Value) {
        let (Some(before), Some(after)) = (before.as_object(), after.as_object_mut()) else {
            return;
        };
        for key in before.keys() {
            after.entry(key).or_insert(Value::Null);
        }
    }
    nulls(before, patch);
    let known = before["conditions"].as_array().cloned().unwrap_or_default();
    for condition in patch["conditions"].as_array_mut().into_iter().flatten() {
        if let Some(before) = known.iter().find(|known| known["type"] == condition["type"]) {
            nulls(before, condition);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outdated_reason_is_removed_by_name() {
        let before = json!({"podIP": "a", "reason": "r", "conditions": [{"type": "Ready", "reason": "x"}]});
        let mut patch = json!({"podIP": "a", "conditions": [{"type": "Ready"}, {"type": "New"}]});
        name_removed(&before, &mut patch);
        let expected =
            json!({"podIP": "a", "reason": null, "conditions": [{"type": "Ready", "reason": null}, {"type": "New"}]});
        assert_eq!(patch, expected);
    }
}

//! What runs when a container has started and before it is stopped.

use std::time::Duration;

use k8s_openapi::api::core::v1::LifecycleHandler;

use super::events::Reason;
use super::probe::Target;

/// The longest time a hook may take where nothing else limits it.
const LONG: Duration = Duration::from_secs(365 * 24 * 3600);

impl Target {
    /// Runs `postStart`; a failure ends the container.
    pub async fn post_start(&self) -> Result<(), String> {
        let handler = self
            .container
            .lifecycle
            .as_ref()
            .and_then(|lifecycle| lifecycle.post_start.clone());
        let Some(handler) = handler else { return Ok(()) };
        let outcome = self.hook(&handler).await;
        if outcome.is_err() {
            self.event(Reason::FailedPostStartHook, "PostStartHook failed");
        }
        outcome
    }

    /// Runs `preStop`. A failure is recorded as an event and changes nothing.
    pub async fn pre_stop(&self) {
        let handler = self
            .container
            .lifecycle
            .as_ref()
            .and_then(|lifecycle| lifecycle.pre_stop.clone());
        let Some(handler) = handler else { return };
        if self.hook(&handler).await.is_err() {
            self.event(Reason::FailedPreStopHook, "PreStopHook failed");
        }
    }

    async fn hook(&self, handler: &LifecycleHandler) -> Result<(), String> {
        if let Some(action) = &handler.exec {
            self.exec(action, LONG).await
        } else if let Some(action) = &handler.http_get {
            self.http_get(action, LONG).await
        } else if let Some(action) = &handler.sleep {
            tokio::time::sleep(Duration::from_secs(u64::try_from(action.seconds).unwrap_or(0))).await;
            Ok(())
        } else {
            Err("a hook needs exec, httpGet or sleep".to_owned())
        }
    }
}

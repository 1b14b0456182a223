//! What a user sees who watches the cluster from its creation on.

use std::sync::{Arc, Mutex, PoisonError};

use futures::StreamExt;
use kube::api::{Api, DynamicObject};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, watcher};
use tokio::task::JoinHandle;

/// The `state/reason` of a cluster as it changed; consecutive duplicates are recorded once.
pub struct Rows {
    seen: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Rows {
    pub(crate) fn start(api: Api<DynamicObject>, name: &str) -> Self {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let noted = seen.clone();
        let of_it = watcher::Config::default().fields(&format!("metadata.name={name}"));
        let mut events = watcher(api, of_it).default_backoff().applied_objects().boxed();
        let task = tokio::spawn(async move {
            while let Some(event) = events.next().await {
                let Ok(object) = event else { continue };
                let status = &object.data["status"];
                // Before the first status there is nothing to show.
                let (Some(state), Some(reason)) = (status["state"].as_str(), status["reason"].as_str()) else {
                    continue;
                };
                let mut rows = noted.lock().unwrap_or_else(PoisonError::into_inner);
                let row = format!("{state}/{reason}");
                if rows.last() != Some(&row) {
                    rows.push(row);
                }
            }
        });
        Self { seen, task }
    }

    /// The rows up to Ready.
    pub async fn seen(self) -> Vec<String> {
        crate::until("the watch shows Ready", async || {
            let rows = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            rows.last()
                .is_some_and(|row| row.starts_with("Ready/"))
                .then(|| rows.clone())
        })
        .await
    }
}

impl Drop for Rows {
    fn drop(&mut self) {
        self.task.abort();
    }
}

//! What a user sees who watches the cluster from its creation on.

use std::sync::{Arc, Mutex, PoisonError};

use candor_audit::Kind;
use futures::StreamExt;
use kube::api::{Api, DynamicObject};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, watcher};
use serde_json::Value;
use tokio::task::JoinHandle;

/// The cells of a cluster as they changed; consecutive duplicates are recorded once.
pub struct Rows {
    seen: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Rows {
    pub(crate) fn start(api: Api<DynamicObject>, name: &str, kind: Kind) -> Self {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let request_log = seen.clone();
        let of_it = watcher::Config::default().fields(&format!("metadata.name={name}"));
        let mut events = watcher(api, of_it).default_backoff().applied_objects().boxed();
        let task = tokio::spawn(async move {
            while let Some(event) = events.next().await {
                let Ok(object) = event else { continue };
                let Some(row) = row(kind, &object.data["status"]) else {
                    continue;
                };
                let mut rows = request_log.lock().unwrap_or_else(PoisonError::into_inner);
                if rows.last() != Some(&row) {
                    rows.push(row);
                }
            }
        });
        Self { seen, task }
    }

    /// Waits until the watch has shown the cluster.
    pub async fn begun(&self) {
        crate::until("the watch shows a row", async || {
            let rows = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            (!rows.is_empty()).then_some(())
        })
        .await;
    }

    /// The rows up to Ready.
    pub async fn seen(self) -> Vec<String> {
        crate::until("the watch shows Ready", async || {
            let rows = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            rows.last()
                .is_some_and(|row| row.starts_with("Ready"))
                .then(|| rows.clone())
        })
        .await
    }
}

/// The cells that tell what happens.
fn row(kind: Kind, status: &Value) -> Option<String> {
    match kind {
        // Before the first status there is nothing to show.
        Kind::ValkeyCluster => Some(format!("{}/{}", status["state"].as_str()?, status["reason"].as_str()?)),
        Kind::RedkeyCluster => {
            let substatus = &status["substatus"];
            let cells = [
                &status["status"],
                &substatus["status"],
                &substatus["upgradingPartition"],
            ];
            let cells = cells
                .into_iter()
                .filter_map(Value::as_str)
                .filter(|cell| !cell.is_empty());
            Some(cells.collect::<Vec<_>>().join("/"))
        }
    }
}

impl Drop for Rows {
    fn drop(&mut self) {
        self.task.abort();
    }
}

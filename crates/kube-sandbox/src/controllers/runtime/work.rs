//! The loop that every controller shares.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use super::cache::ObjectKey;
use super::queue::Queue;

/// Why a reconcile failed. It is requeued.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server rejected the request or could not be reached.
    #[error("the API server answered: {0}")]
    Api(#[from] kube::Error),
    /// A file of a volume could not be made or removed.
    #[error("volume folder {path}: {source}")]
    Folder {
        /// Which folder.
        path: String,
        /// The error of the system.
        #[source]
        source: std::io::Error,
    },
    /// An object is not (yet) what the controller needs.
    #[error("{0}")]
    NotYet(String),
}

impl Error {
    /// Whether a concurrent write changed or deleted the object: the watch will deliver that, nothing is wrong.
    pub fn is_race(&self) -> bool {
        matches!(self, Self::Api(kube::Error::Api(status)) if status.code == 409 || status.code == 404)
    }

    /// Whether an object of that name exists already.
    pub fn already_exists(&self) -> bool {
        matches!(self, Self::Api(kube::Error::Api(status)) if status.reason == "AlreadyExists")
    }

    /// Whether the object does not exist (any more).
    pub fn not_found(&self) -> bool {
        matches!(self, Self::Api(kube::Error::Api(status)) if status.code == 404)
    }

    /// The message for users: the API server's own where it answered.
    pub fn message(&self) -> String {
        match self {
            Self::Api(kube::Error::Api(status)) => status.message.clone(),
            other => other.to_string(),
        }
    }
}

/// A controller: reconciles one object at a time.
pub trait Controller: Send + Sync + 'static {
    /// For the log.
    const NAME: &'static str;
    /// How many objects it reconciles at once.
    const WORKERS: usize = 2;
    /// Brings one object closer to its desired state; `Some` requeues it after that time.
    fn reconcile(&self, key: &ObjectKey) -> impl Future<Output = Result<Option<Duration>, Error>> + Send;
}

/// Works through a queue until dropped.
pub async fn work<C: Controller>(controller: Arc<C>, queue: Arc<Queue<ObjectKey>>) {
    let workers = (0..C::WORKERS).map(|_| async {
        loop {
            let key = queue.next().await;
            match controller.reconcile(&key).await {
                Ok(again) => {
                    queue.succeeded(&key);
                    if let Some(pause) = again {
                        queue.add_after(key.clone(), pause);
                    }
                }
                Err(error) => {
                    if error.is_race() {
                        tracing::trace!(controller = C::NAME, %key, %error, "conflict with a concurrent write, requeued");
                    } else {
                        tracing::debug!(controller = C::NAME, %key, %error, "reconcile failed, requeued");
                    }
                    queue.retry(key.clone());
                }
            }
            queue.done(&key);
        }
    });
    futures::future::join_all(workers).await;
}

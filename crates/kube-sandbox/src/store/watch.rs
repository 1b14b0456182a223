//! A reader of one resource's history.

use tokio::sync::watch as signal;

use super::history::Event;
use super::tables::{Compacted, Store};

/// How many events one step hands out: enough to be cheap, few enough to be written at once.
const BATCH: usize = 128;

/// A place in the history of one resource. It holds no events, so a watcher that never reads costs nothing.
#[derive(Debug)]
pub struct Watch {
    resource: String,
    seen: u64,
    written: signal::Receiver<u64>,
}

impl Watch {
    pub(super) fn new(resource: String, seen: u64, written: signal::Receiver<u64>) -> Self {
        Self {
            resource,
            seen,
            written,
        }
    }

    /// The revision up to which everything was handed out: what a bookmark may say.
    pub fn revision(&self) -> u64 {
        self.seen
    }

    /// The next events, oldest first, never none; an error when some were forgotten before they were read.
    /// Dropping the future loses nothing.
    pub async fn next(&mut self, store: &Store) -> Result<Vec<Event>, Compacted> {
        loop {
            self.written.mark_unchanged();
            let events = self.ready(store)?;
            if !events.is_empty() {
                return Ok(events);
            }
            if self.written.changed().await.is_err() {
                // The table is gone with its store: nothing will ever come.
                std::future::pending::<()>().await;
            }
        }
    }

    /// The events that are there already, without waiting.
    pub fn ready(&mut self, store: &Store) -> Result<Vec<Event>, Compacted> {
        let (events, complete) = store.events_after(&self.resource, self.seen, BATCH)?;
        self.seen = self.seen.max(complete);
        Ok(events)
    }
}

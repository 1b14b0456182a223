//! What happened to one resource, newest last, bounded in number and bytes.

use std::collections::VecDeque;
use std::sync::Arc;

use super::object::{Object, ObjectKey};

/// How many events of one resource are kept.
const MAX_EVENTS: usize = 2048;
/// How much memory they may take together, so that large objects that change often do not fill it.
const MAX_BYTES: usize = 64 << 20;

/// What a write did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The object is new.
    Added,
    /// It was there before.
    Modified,
    /// It is gone; the event carries its last state with the revision of the deletion.
    Deleted,
}

/// One write.
#[derive(Clone, Debug)]
pub struct Event {
    /// The write's revision.
    pub revision: u64,
    /// What it did.
    pub change: Change,
    /// To which object.
    pub key: ObjectKey,
    /// The state after it (for a deletion: the last state).
    pub object: Arc<Object>,
    /// The state before it.
    pub previous: Option<Arc<Object>>,
}

/// The events of one resource that are still kept.
#[derive(Debug, Default)]
pub(super) struct History {
    events: VecDeque<Event>,
    bytes: usize,
    /// Everything up to and with this revision is forgotten.
    compacted: u64,
}

impl History {
    pub(super) fn push(&mut self, event: Event) {
        self.bytes += event.object.weight();
        self.events.push_back(event);
        while self.events.len() > MAX_EVENTS || (self.bytes > MAX_BYTES && self.events.len() > 1) {
            self.forget_oldest();
        }
    }

    /// Forgets everything up to and with `revision`.
    pub(super) fn compact(&mut self, revision: u64) {
        while self.events.front().is_some_and(|e| e.revision <= revision) {
            self.forget_oldest();
        }
        self.compacted = self.compacted.max(revision);
    }

    fn forget_oldest(&mut self) {
        if let Some(oldest) = self.events.pop_front() {
            self.bytes = self.bytes.saturating_sub(oldest.object.weight());
            self.compacted = self.compacted.max(oldest.revision);
        }
    }

    /// Events after `revision`, oldest first; `None` when some of them are forgotten.
    pub(super) fn after(&self, revision: u64) -> Option<impl DoubleEndedIterator<Item = &Event>> {
        if revision < self.compacted {
            return None;
        }
        let start = self.events.partition_point(|e| e.revision <= revision);
        Some(self.events.range(start..))
    }
}

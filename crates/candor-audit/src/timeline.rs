//! What happened when, as it was seen: the only thing the figures are made from.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use crate::clock::Moment;
use crate::defect::Seen;
use crate::object::Object;

/// One thing that was seen. Only changes are kept.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Happened {
    /// The `ValkeyCluster` is like this now, or gone.
    Object(Option<Object>),
    /// These pods are the members now.
    Members(BTreeSet<String>),
    /// A member was looked at.
    Looked { pod: String, seen: Seen },
    /// A canary got no acknowledgement from here on.
    SlotOut { slot: u16, silent: bool },
    /// It got one.
    SlotBack { slot: u16 },
}

/// All that happened. Entries may come late and out of order (silence is known only afterwards); readers sort.
#[derive(Debug, Default)]
pub(crate) struct Timeline(Mutex<Vec<(Moment, Happened)>>);

impl Timeline {
    pub fn add(&self, when: Moment, what: Happened) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((when, what));
    }

    /// Everything so far, in the order of time.
    pub fn sorted(&self) -> Vec<(Moment, Happened)> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        all.sort_by_key(|(when, _)| *when);
        all
    }
}

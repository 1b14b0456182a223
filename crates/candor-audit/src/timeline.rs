//! The timeline of observations: the only input of the figures.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use crate::clock::Moment;
use crate::defect::Observation;
use crate::object::Object;

/// One observation. Only changes are stored.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Happened {
    /// The `ValkeyCluster` has this state now, or is gone.
    Object(Option<Object>),
    /// These pods are the members now.
    Members(BTreeSet<String>),
    /// A member was observed.
    Observed { pod: String, observed: Observation },
    /// A canary has had no acknowledgement since this moment.
    SlotOut { slot: u16, timed_out: bool },
    /// The canary was acknowledged.
    SlotBack { slot: u16 },
}

/// All observations. Entries may arrive late and out of order, because a missing reply is known only after its
/// timeout. Readers sort them.
#[derive(Debug, Default)]
pub(crate) struct Timeline(Mutex<Vec<(Moment, Happened)>>);

impl Timeline {
    pub fn add(&self, when: Moment, what: Happened) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((when, what));
    }

    /// All entries so far, sorted by time.
    pub fn sorted(&self) -> Vec<(Moment, Happened)> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        all.sort_by_key(|(when, _)| *when);
        all
    }
}

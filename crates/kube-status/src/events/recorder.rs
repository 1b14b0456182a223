//! Recorders of notices: the trait, and a fake for tests.

use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::core::v1::ObjectReference;

use super::Notice;

/// Records notices. Recording does not block, does not fail and is not async: an event must never change what a
/// reconcile does.
///
/// ```
/// use k8s_openapi::api::core::v1::ObjectReference;
/// use kube_status::events::{Notice, RecordedEvents, Recorder};
///
/// fn greet(recorder: &impl Recorder, object: &ObjectReference) {
///     recorder.record(object, Notice::normal("Created", "StatefulSet created"));
/// }
///
/// let recorded = RecordedEvents::default();
/// greet(&recorded, &ObjectReference::default());
/// assert_eq!(recorded.reasons(), ["Created"]);
/// ```
pub trait Recorder: Send + Sync {
    /// Records a notice about an object.
    fn record(&self, about: &ObjectReference, notice: Notice);
}

impl<R: Recorder + ?Sized> Recorder for &R {
    fn record(&self, about: &ObjectReference, notice: Notice) {
        (**self).record(about, notice);
    }
}

impl<R: Recorder + ?Sized> Recorder for Arc<R> {
    fn record(&self, about: &ObjectReference, notice: Notice) {
        (**self).record(about, notice);
    }
}

/// A recorder that keeps all notices, for tests. Clones share them.
///
/// ```
/// use k8s_openapi::api::core::v1::ObjectReference;
/// use kube_status::events::{Notice, RecordedEvents, Recorder};
///
/// let recorded = RecordedEvents::default();
/// for _ in 0..3 {
///     recorded.record(&ObjectReference::default(), Notice::warning("CleanupFailed", "no route"));
/// }
/// assert_eq!(recorded.series(), [(Notice::warning("CleanupFailed", "no route"), 3)]);
/// ```
#[derive(Debug, Clone, Default)]
pub struct RecordedEvents {
    notices: Arc<Mutex<Vec<(ObjectReference, Notice)>>>,
}

impl Recorder for RecordedEvents {
    fn record(&self, about: &ObjectReference, notice: Notice) {
        self.lock().push((about.clone(), notice));
    }
}

impl RecordedEvents {
    /// All notices so far, in order, repetitions included.
    ///
    /// ```
    /// use kube_status::events::{Notice, RecordedEvents, Recorder};
    /// let recorded = RecordedEvents::default();
    /// recorded.record(&Default::default(), Notice::normal("Created", "x"));
    /// assert_eq!(recorded.all()[0].1.reason, "Created");
    /// ```
    pub fn all(&self) -> Vec<(ObjectReference, Notice)> {
        self.lock().clone()
    }

    /// The reasons so far, in order.
    ///
    /// ```
    /// use kube_status::events::{Notice, RecordedEvents, Recorder};
    /// let recorded = RecordedEvents::default();
    /// recorded.record(&Default::default(), Notice::normal("Created", "x"));
    /// assert_eq!(recorded.reasons(), ["Created"]);
    /// ```
    pub fn reasons(&self) -> Vec<String> {
        self.lock().iter().map(|(_, notice)| notice.reason.clone()).collect()
    }

    /// What would stand in the cluster: every distinct event once, with its count, in order of first appearance.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::ObjectReference;
    /// use kube_status::events::{Notice, RecordedEvents, Recorder};
    ///
    /// let events = RecordedEvents::default();
    /// for _ in 0..3 {
    ///     events.record(&ObjectReference::default(), Notice::warning("SlowDisk", "fsync takes 2 s"));
    /// }
    /// assert_eq!(events.series()[0].1, 3);
    /// ```
    pub fn series(&self) -> Vec<(Notice, usize)> {
        let mut series: Vec<(ObjectReference, Notice, usize)> = Vec::new();
        for (about, notice) in self.lock().iter() {
            match series
                .iter_mut()
                .find(|(known, same, _)| known == about && same == notice)
            {
                Some((_, _, count)) => *count += 1,
                None => series.push((about.clone(), notice.clone(), 1)),
            }
        }
        series.into_iter().map(|(_, notice, count)| (notice, count)).collect()
    }

    /// Takes all notices so far.
    ///
    /// ```
    /// use kube_status::events::{Notice, RecordedEvents, Recorder};
    /// let recorded = RecordedEvents::default();
    /// recorded.record(&Default::default(), Notice::normal("Created", "x"));
    /// assert_eq!(recorded.take().len(), 1);
    /// assert!(recorded.all().is_empty());
    /// ```
    pub fn take(&self) -> Vec<(ObjectReference, Notice)> {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<(ObjectReference, Notice)>> {
        // A test that panicked while recording must not hide its own failure behind a poisoned lock.
        self.notices.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

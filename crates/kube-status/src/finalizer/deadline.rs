//! The decision: transitions between stages, without a clock.

use jiff::{SignedDuration, Timestamp};

/// When cleanup is retried, warned about and given up, counted from the request to delete.
///
/// ```
/// use jiff::SignedDuration;
/// use kube_status::finalizer::Deadline;
///
/// let patient = Deadline { release_after: SignedDuration::from_mins(10), ..Deadline::default() };
/// assert_eq!(patient.warn_after, SignedDuration::from_secs(30));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadline {
    /// Cleanup that takes longer is warned about; 30 s.
    pub warn_after: SignedDuration,
    /// Cleanup that takes longer is given up; 60 s.
    pub release_after: SignedDuration,
    /// How long to wait between two tries; 10 s.
    pub retry_every: SignedDuration,
    /// How long one try may take when the deadline is near or has passed; 5 s.
    pub last_try: SignedDuration,
}

impl Default for Deadline {
    fn default() -> Self {
        Self {
            warn_after: SignedDuration::from_secs(30),
            release_after: SignedDuration::from_secs(60),
            retry_every: SignedDuration::from_secs(10),
            last_try: SignedDuration::from_secs(5),
        }
    }
}

/// An object at one moment, as far as its deletion goes.
///
/// ```
/// use kube_status::finalizer::{Deadline, Done, Moment, Next};
/// let new = Moment { deletion_timestamp: None, held: false, now: jiff::Timestamp::UNIX_EPOCH };
/// assert_eq!(Deadline::default().next(&new, &Done::Nothing), Next::Hold);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// `metadata.deletionTimestamp`.
    pub deletion_timestamp: Option<Timestamp>,
    /// Whether our finalizer is on it.
    pub held: bool,
    /// Now.
    pub now: Timestamp,
}

/// How the cleanup proper ended this time.
///
/// ```
/// use kube_status::finalizer::{Cleaned, Done};
/// let waits = Done::Cleanup(Ok(Cleaned::Pending("Waiting for 2 pods".into())));
/// # let _ = waits;
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cleaned {
    /// Everything is done.
    Complete,
    /// It is on its way; what it waits for.
    Pending(String),
}

/// What was done in this reconcile so far.
///
/// ```
/// use kube_status::finalizer::Done;
/// assert_ne!(Done::SafePart(Ok(())), Done::SafePart(Err("forbidden".into())));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Done {
    /// Nothing yet.
    Nothing,
    /// The safe part, or why it failed.
    SafePart(Result<(), String>),
    /// The cleanup proper (after a safe part that succeeded), or why it failed.
    Cleanup(Result<Cleaned, String>),
}

/// Why an object is released.
///
/// ```
/// use kube_status::finalizer::{Next, Release};
/// assert_ne!(Next::Release(Release::Clean), Next::Release(Release::GivenUp("2 pods left".into())));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Release {
    /// Everything is done.
    Clean,
    /// The deadline has passed; what was still open.
    GivenUp(String),
}

/// What to do next.
///
/// ```
/// use kube_status::finalizer::{Deadline, Done, Moment, Next};
/// let at = jiff::Timestamp::UNIX_EPOCH;
/// let deleted = Moment { deletion_timestamp: Some(at), held: true, now: at };
/// match Deadline::default().next(&deleted, &Done::Nothing) {
///     Next::SafePart => println!("protect what is kept"),
///     other => unreachable!("{other:?}"),
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "is what to do next"]
pub enum Next {
    /// Put the finalizer on, before anything is made that would need cleanup.
    Hold,
    /// The object lives: go on with the reconcile.
    Live,
    /// The object is being deleted and is not ours to hold: nothing to do.
    NotHeld,
    /// Run the safe part.
    SafePart,
    /// Run the cleanup proper, for at most this long.
    Cleanup {
        /// How long it may take.
        budget: SignedDuration,
    },
    /// Take the finalizer off.
    Release(Release),
    /// Reconcile again after this time.
    Wait(SignedDuration),
}

impl Deadline {
    /// What to do next with an object.
    ///
    /// ```
    /// use kube_status::finalizer::{Cleaned, Deadline, Done, Moment, Next, Release};
    ///
    /// let deletion_timestamp = "2026-02-05T10:00:00Z".parse()?;
    /// // The controller was away for an hour: the deadline has passed before the first reconcile.
    /// let late = Moment { deletion_timestamp: Some(deletion_timestamp), held: true, now: "2026-02-05T11:00:00Z".parse()? };
    /// let deadline = Deadline::default();
    /// assert_eq!(deadline.next(&late, &Done::Nothing), Next::SafePart);
    /// assert!(matches!(deadline.next(&late, &Done::SafePart(Ok(()))), Next::Cleanup { .. }));
    /// assert_eq!(
    ///     deadline.next(&late, &Done::Cleanup(Err("no route".into()))),
    ///     Next::Release(Release::GivenUp("no route".into())),
    /// );
    /// # Ok::<_, jiff::Error>(())
    /// ```
    pub fn next(&self, moment: &Moment, done: &Done) -> Next {
        let Some(deletion_timestamp) = moment.deletion_timestamp else {
            return if moment.held { Next::Live } else { Next::Hold };
        };
        if !moment.held {
            return Next::NotHeld;
        }
        match done {
            Done::Nothing => Next::SafePart,
            Done::SafePart(Ok(())) => {
                let left = self.release_after - elapsed(deletion_timestamp, moment.now);
                Next::Cleanup {
                    budget: left.max(self.last_try),
                }
            }
            // Whatever the clock says: what is to be kept is not safe yet.
            Done::SafePart(Err(_)) => Next::Wait(self.pause(deletion_timestamp, moment.now)),
            Done::Cleanup(Ok(Cleaned::Complete)) => Next::Release(Release::Clean),
            Done::Cleanup(Ok(Cleaned::Pending(open)) | Err(open)) => {
                if self.is_over(deletion_timestamp, moment.now) {
                    Next::Release(Release::GivenUp(open.clone()))
                } else {
                    Next::Wait(self.pause(deletion_timestamp, moment.now))
                }
            }
        }
    }

    pub(super) fn is_slow(&self, deletion_timestamp: Timestamp, now: Timestamp) -> bool {
        elapsed(deletion_timestamp, now) >= self.warn_after
    }

    fn is_over(&self, deletion_timestamp: Timestamp, now: Timestamp) -> bool {
        elapsed(deletion_timestamp, now) >= self.release_after
    }

    /// Until the next try, or until the next thing there is to say or do, if that comes first.
    fn pause(&self, deletion_timestamp: Timestamp, now: Timestamp) -> SignedDuration {
        let passed = elapsed(deletion_timestamp, now);
        let until = [self.warn_after - passed, self.release_after - passed];
        until
            .into_iter()
            .filter(SignedDuration::is_positive)
            .fold(self.retry_every, Ord::min)
    }
}

/// The API server's clock may be ahead of ours: then nothing has passed yet.
pub(super) fn elapsed(deletion_timestamp: Timestamp, now: Timestamp) -> SignedDuration {
    now.duration_since(deletion_timestamp).max(SignedDuration::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + second).unwrap()
    }

    fn seconds(seconds: i64) -> SignedDuration {
        SignedDuration::from_secs(seconds)
    }

    fn deleted(second: i64) -> Moment {
        Moment {
            deletion_timestamp: Some(at(0)),
            held: true,
            now: at(second),
        }
    }

    #[test]
    fn the_table() {
        let failed = || Err("no route".to_owned());
        let pending = || Done::Cleanup(Ok(Cleaned::Pending("2 pods".to_owned())));
        let live = |held| Moment {
            deletion_timestamp: None,
            held,
            now: at(0),
        };
        let cleanup = |budget| Next::Cleanup {
            budget: seconds(budget),
        };
        for (case, moment, done, next) in [
            ("new", live(false), Done::Nothing, Next::Hold),
            ("live", live(true), Done::Nothing, Next::Live),
            (
                "held by others only",
                Moment {
                    held: false,
                    ..deleted(5)
                },
                Done::Nothing,
                Next::NotHeld,
            ),
            ("first reconcile", deleted(0), Done::Nothing, Next::SafePart),
            (
                "first reconcile after the deadline",
                deleted(3_600),
                Done::Nothing,
                Next::SafePart,
            ),
            ("safe", deleted(1), Done::SafePart(Ok(())), cleanup(59)),
            (
                "safe, near the deadline",
                deleted(58),
                Done::SafePart(Ok(())),
                cleanup(5),
            ),
            (
                "safe, after the deadline",
                deleted(3_600),
                Done::SafePart(Ok(())),
                cleanup(5),
            ),
            (
                "not safe",
                deleted(1),
                Done::SafePart(failed()),
                Next::Wait(seconds(10)),
            ),
            (
                "not safe after the deadline",
                deleted(3_600),
                Done::SafePart(failed()),
                Next::Wait(seconds(10)),
            ),
            (
                "done",
                deleted(1),
                Done::Cleanup(Ok(Cleaned::Complete)),
                Next::Release(Release::Clean),
            ),
            (
                "done late",
                deleted(3_600),
                Done::Cleanup(Ok(Cleaned::Complete)),
                Next::Release(Release::Clean),
            ),
            ("on its way", deleted(1), pending(), Next::Wait(seconds(10))),
            (
                "in time for the warning",
                deleted(27),
                pending(),
                Next::Wait(seconds(3)),
            ),
            ("in time for the end", deleted(58), pending(), Next::Wait(seconds(2))),
            (
                "over",
                deleted(60),
                pending(),
                Next::Release(Release::GivenUp("2 pods".to_owned())),
            ),
            (
                "over, failing",
                deleted(61),
                Done::Cleanup(Err("no route".to_owned())),
                Next::Release(Release::GivenUp("no route".to_owned())),
            ),
            (
                "the API server's clock is ahead",
                deleted(-20),
                pending(),
                Next::Wait(seconds(10)),
            ),
        ] {
            assert_eq!(Deadline::default().next(&moment, &done), next, "{case}");
        }
    }

    proptest! {
        /// Cleanup that never ends, tries that fail at random, a first reconcile at any time.
        #[test]
        fn nothing_hangs_and_nothing_is_released_before_it_is_safe(
            first_reconcile in -30_i64..600,
            safe in prop::collection::vec(any::<bool>(), 1..40),
            takes in prop::collection::vec(0_i64..20, 40),
        ) {
            let deadline = Deadline::default();
            let mut now = at(first_reconcile);
            let mut released = None;
            let mut last_unsafe = None;
            for attempt in 0..200 {
                let moment = |now| Moment { deletion_timestamp: Some(at(0)), held: true, now };
                prop_assert_eq!(deadline.next(&moment(now), &Done::Nothing), Next::SafePart);
                let is_safe = *safe.get(attempt).unwrap_or(&true);
                let result = if is_safe { Ok(()) } else { Err("not yet".to_owned()) };
                let mut next = deadline.next(&moment(now), &Done::SafePart(result));
                if let Next::Cleanup { budget } = next {
                    prop_assert!(is_safe && budget >= deadline.last_try && budget <= deadline.release_after);
                    now += seconds(takes[attempt % takes.len()]).min(budget);
                    next = deadline.next(&moment(now), &Done::Cleanup(Err("no".to_owned())));
                } else {
                    last_unsafe = Some(now);
                }
                match next {
                    Next::Wait(after) => {
                        prop_assert!(after > SignedDuration::ZERO && after <= deadline.retry_every);
                        now += after;
                    }
                    Next::Release(Release::GivenUp(_)) => {
                        prop_assert!(is_safe, "released in a reconcile whose safe part failed");
                        released = Some(now);
                        break;
                    }
                    other => prop_assert!(false, "{other:?}"),
                }
            }
            let released = released.expect("released in the end");
            prop_assert!(released >= at(60), "not before the deadline");
            // It ends with the deadline, the first reconcile or the first safe reconcile, whichever comes last, and one try.
            let unsafe_until = last_unsafe.map_or(at(0), |last| last + deadline.retry_every);
            let latest = at(60).max(at(first_reconcile)).max(unsafe_until) + deadline.last_try;
            prop_assert!(released <= latest, "{released} is later than {latest}");
        }
    }
}

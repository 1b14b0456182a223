//! The same decision for people: a condition and events.

use jiff::SignedDuration;

use super::deadline::{Cleaned, Deadline, Done, Moment, Next, Release, elapsed};
use crate::events::Notice;
use crate::severity::Severity;
use crate::{Condition, Draft, Negative, Status};

/// The type of the condition that says how the deletion stands. Its polarity is negative.
///
/// ```
/// use kube_status::finalizer::DELETING;
/// use kube_status::{Condition, Metav1, find};
/// fn before<C: Metav1>(conditions: &[C]) -> Option<&Condition> {
///     find(conditions, DELETING).map(Metav1::plain)
/// }
/// assert!(before::<Condition>(&[]).is_none());
/// ```
pub const DELETING: &str = "Deleting";

/// How the deletion of an object stands: the reasons of the [`DELETING`] condition and of its events.
///
/// ```
/// use kube_status::finalizer::Stage;
/// assert_eq!(Stage::CleanupTimeout.as_str(), "CleanupTimeout");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Cleanup has begun, or waits for something.
    CleaningUp,
    /// The safe part failed: the object stays until what must be kept is safe.
    SafePartFailed,
    /// The cleanup proper failed and is tried again.
    CleanupFailed,
    /// Cleanup takes longer than expected.
    CleanupSlow,
    /// Cleanup was given up, the object is released.
    CleanupTimeout,
    /// Everything is done, the object is released.
    CleanupComplete,
}

impl Stage {
    /// Every stage, for documentation.
    ///
    /// ```
    /// use kube_status::finalizer::Stage;
    /// assert!(Stage::ALL.contains(&Stage::CleanupSlow));
    /// ```
    pub const ALL: [Self; 6] = [
        Self::CleaningUp,
        Self::SafePartFailed,
        Self::CleanupFailed,
        Self::CleanupSlow,
        Self::CleanupTimeout,
        Self::CleanupComplete,
    ];

    /// The reason as it stands in the condition.
    ///
    /// ```
    /// assert_eq!(kube_status::finalizer::Stage::CleaningUp.as_str(), "CleaningUp");
    /// ```
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CleaningUp => "CleaningUp",
            Self::SafePartFailed => "SafePartFailed",
            Self::CleanupFailed => "CleanupFailed",
            Self::CleanupSlow => "CleanupSlow",
            Self::CleanupTimeout => "CleanupTimeout",
            Self::CleanupComplete => "CleanupComplete",
        }
    }

    /// How bad it is.
    ///
    /// ```
    /// use kube_status::finalizer::Stage;
    /// use kube_status::severity::Severity;
    /// assert_eq!(Stage::SafePartFailed.severity(), Severity::Error);
    /// ```
    pub const fn severity(self) -> Severity {
        match self {
            Self::CleaningUp | Self::CleanupComplete => Severity::Info,
            Self::CleanupFailed | Self::CleanupSlow => Severity::Warning,
            Self::SafePartFailed | Self::CleanupTimeout => Severity::Error,
        }
    }
}

/// What to say about a deletion.
///
/// ```
/// use kube_status::finalizer::{Deadline, Done, Moment, Stage};
/// let at = jiff::Timestamp::UNIX_EPOCH;
/// let moment = Moment { deletion_timestamp: Some(at), held: true, now: at };
/// let next = Deadline::default().next(&moment, &Done::Nothing);
/// let report = Deadline::default().report("Cart", &moment, &Done::Nothing, &next, None).unwrap();
/// assert_eq!((report.stage, report.draft.reason.as_ref()), (Stage::CleaningUp, "CleaningUp"));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Where it stands.
    pub stage: Stage,
    /// The [`DELETING`] condition.
    pub draft: Draft<'static>,
    /// The events that are due.
    pub notices: Vec<Notice>,
}

impl Deadline {
    /// What to say about an object after [`Deadline::next`] has decided; `None` for one that is not being deleted by us.
    ///
    /// `before` is the [`DELETING`] condition as it was read. With it the start and the warning are recorded once, also by
    /// a controller that was restarted in between.
    ///
    /// ```
    /// use kube_status::finalizer::{Deadline, Done, Moment, Stage};
    ///
    /// let moment = Moment { deletion_timestamp: Some("2026-02-05T10:00:00Z".parse()?), held: true, now: "2026-02-05T10:00:01Z".parse()? };
    /// let failed = Done::Cleanup(Err("no route".into()));
    /// let next = Deadline::default().next(&moment, &failed);
    /// let report = Deadline::default().report("DittoServer", &moment, &failed, &next, None).unwrap();
    /// assert_eq!(report.stage, Stage::CleanupFailed);
    /// let notices: Vec<_> = report.notices.iter().map(|notice| (notice.reason.as_str(), notice.note.as_str())).collect();
    /// assert_eq!(notices, [
    ///     ("Deleting", "DittoServer is being deleted, cleaning up resources"),
    ///     ("CleanupFailed", "Cleanup failed: no route"),
    /// ]);
    /// # Ok::<_, jiff::Error>(())
    /// ```
    pub fn report(
        &self,
        kind: &str,
        moment: &Moment,
        done: &Done,
        next: &Next,
        before: Option<&Condition>,
    ) -> Option<Report> {
        let deletion_timestamp = moment.deletion_timestamp.filter(|_| moment.held)?;
        let (stage, message) = self.stage_and_message(moment, done, next);
        let mut notices = Vec::new();
        let before_reason = before
            .filter(|before| before.status == Status::True.as_str())
            .map(|before| before.reason.as_str());
        if before_reason.is_none() {
            notices.push(Notice::normal(
                DELETING,
                format!("{kind} is being deleted, cleaning up resources"),
            ));
        }
        if let Done::SafePart(Err(why)) | Done::Cleanup(Err(why)) = done {
            let (reason, what) = match done {
                Done::SafePart(_) => (Stage::SafePartFailed, "Protecting what is kept failed"),
                _ => (Stage::CleanupFailed, "Cleanup failed"),
            };
            notices.push(Notice::warning(reason.as_str(), format!("{what}: {why}")));
        }
        if stage == Stage::CleanupSlow && before_reason != Some(Stage::CleanupSlow.as_str()) {
            notices.push(Notice::warning(stage.as_str(), self.warning()));
        }
        match next {
            Next::Release(Release::Clean) => {
                notices.push(Notice::normal(
                    stage.as_str(),
                    "Cleanup is complete, the finalizer is removed",
                ));
            }
            Next::Release(Release::GivenUp(_)) => notices.push(Notice::warning(stage.as_str(), message.clone())),
            _ => {}
        }
        let notices = notices.into_iter().map(|notice| notice.action("Delete")).collect();
        let draft = Draft::bad(Negative(DELETING), (stage.severity(), stage.as_str()))
            .message(message)
            .since(deletion_timestamp);
        Some(Report { stage, draft, notices })
    }

    fn stage_and_message(&self, moment: &Moment, done: &Done, next: &Next) -> (Stage, String) {
        let slow = moment
            .deletion_timestamp
            .is_some_and(|deletion_timestamp| self.is_slow(deletion_timestamp, moment.now));
        match (next, done) {
            (Next::Release(Release::Clean), _) => (Stage::CleanupComplete, "Cleanup is complete".to_owned()),
            (Next::Release(Release::GivenUp(open)), _) => {
                let passed = moment
                    .deletion_timestamp
                    .map_or(self.release_after, |deletion_timestamp| {
                        elapsed(deletion_timestamp, moment.now)
                    });
                (
                    Stage::CleanupTimeout,
                    format!("Cleanup was given up after {}: {open}", seconds(passed)),
                )
            }
            (_, Done::SafePart(Err(why))) => (
                Stage::SafePartFailed,
                format!("Kept until what must outlive it is safe: {why}"),
            ),
            (_, Done::Cleanup(Ok(Cleaned::Pending(open)) | Err(open))) if slow => {
                (Stage::CleanupSlow, format!("{}: {open}", self.warning()))
            }
            (_, Done::Cleanup(Err(why))) => (Stage::CleanupFailed, format!("Cleanup failed: {why}")),
            (_, Done::Cleanup(Ok(Cleaned::Pending(open)))) => (Stage::CleaningUp, open.clone()),
            _ => (Stage::CleaningUp, "Cleaning up".to_owned()),
        }
    }

    fn warning(&self) -> String {
        let (warn, release) = (seconds(self.warn_after), seconds(self.release_after));
        format!("Cleanup takes longer than {warn} and will be given up after {release}")
    }
}

fn seconds(duration: SignedDuration) -> String {
    format!("{} s", duration.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;

    fn deleted(second: i64) -> Moment {
        let at = |second| Timestamp::from_second(1_000_000 + second).unwrap();
        Moment {
            deletion_timestamp: Some(at(0)),
            held: true,
            now: at(second),
        }
    }

    fn report(second: i64, done: &Done, before: Option<&Condition>) -> Report {
        let deadline = Deadline::default();
        let next = deadline.next(&deleted(second), done);
        deadline.report("Cart", &deleted(second), done, &next, before).unwrap()
    }

    fn reasons(report: &Report) -> Vec<&str> {
        report.notices.iter().map(|notice| notice.reason.as_str()).collect()
    }

    #[test]
    fn a_cleanup_that_never_ends_records_each_step_once() {
        let failed = Done::Cleanup(Err("no route".to_owned()));
        let mut before: Option<Condition> = None;
        let mut steps = Vec::new();
        for second in [0, 10, 20, 30, 40, 50, 60] {
            let report = report(second, &failed, before.as_ref());
            steps.push((second, reasons(&report).join(" "), report.stage.as_str()));
            before = Some(report.draft.into_condition(1, deleted(second).now));
        }
        assert_eq!(
            steps,
            [
                (0, "Deleting CleanupFailed".to_owned(), "CleanupFailed"),
                (10, "CleanupFailed".to_owned(), "CleanupFailed"),
                (20, "CleanupFailed".to_owned(), "CleanupFailed"),
                (30, "CleanupFailed CleanupSlow".to_owned(), "CleanupSlow"),
                (40, "CleanupFailed".to_owned(), "CleanupSlow"),
                (50, "CleanupFailed".to_owned(), "CleanupSlow"),
                (60, "CleanupFailed CleanupTimeout".to_owned(), "CleanupTimeout"),
            ]
        );
        let last = before.unwrap();
        assert_eq!(last.message, "Cleanup was given up after 60 s: no route");
        assert_eq!(
            last.last_transition_time.0,
            deleted(0).now,
            "deleting since it was requested"
        );
    }

    #[test]
    fn every_stage_has_its_message() {
        let waiting = Done::Cleanup(Ok(Cleaned::Pending("Waiting for 2 pods".to_owned())));
        let unsafe_ = Done::SafePart(Err("forbidden".to_owned()));
        for (second, done, stage, message, events) in [
            (1, Done::Nothing, Stage::CleaningUp, "Cleaning up", vec!["Deleting"]),
            (
                1,
                waiting.clone(),
                Stage::CleaningUp,
                "Waiting for 2 pods",
                vec!["Deleting"],
            ),
            (
                31,
                waiting,
                Stage::CleanupSlow,
                "Cleanup takes longer than 30 s and will be given up after 60 s: Waiting for 2 pods",
                vec!["Deleting", "CleanupSlow"],
            ),
            (
                99,
                unsafe_,
                Stage::SafePartFailed,
                "Kept until what must outlive it is safe: forbidden",
                vec!["Deleting", "SafePartFailed"],
            ),
            (
                1,
                Done::Cleanup(Ok(Cleaned::Complete)),
                Stage::CleanupComplete,
                "Cleanup is complete",
                vec!["Deleting", "CleanupComplete"],
            ),
        ] {
            let report = report(second, &done, None);
            assert_eq!((report.stage, report.draft.message.as_ref()), (stage, message));
            assert_eq!(reasons(&report), events);
        }
    }

    #[test]
    fn an_object_that_is_not_being_deleted_has_no_report() {
        let live = Moment {
            deletion_timestamp: None,
            ..deleted(0)
        };
        let next = Deadline::default().next(&live, &Done::Nothing);
        assert_eq!(
            Deadline::default().report("Cart", &live, &Done::Nothing, &next, None),
            None
        );
    }
}

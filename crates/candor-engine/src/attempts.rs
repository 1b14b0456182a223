//! What this process has tried lately, with the results: failovers acknowledged and not yet performed, evacuations
//! that failed, a rejected preflight pod, certificate reloads, commands without a response or rejected, back-off.
//!
//! A plain value: [`plan`](crate::plan::plan) reads it, [`Attempts::record`] updates it after the steps were executed.
//! Everything here may be lost in a crash; a new process starts with the default and tries once more.

use std::collections::BTreeMap;
use std::mem::Discriminant;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::model::{MemberRef, ShardIndex};
use crate::observation::{Observation, Preflight};
use crate::outcome::{CommandKind, Did, Failure, Outcome, Rejected};
use crate::plan::{Plan, Stage};
use crate::step::{FailoverBy, Step};

/// A planned failover takes a fraction of a second. After this time it is sent again, each time later.
const FAILOVER_RETRY: SignedDuration = SignedDuration::from_secs(2);
/// The longest wait before a failover is sent again.
const FAILOVER_RETRY_LIMIT: SignedDuration = SignedDuration::from_secs(30);
/// A failover that was acknowledged more often than this, and not performed, has failed.
const ACKNOWLEDGED_LIMIT: u32 = 3;
/// The operator gives up an evacuation that failed this often until the node is uncordoned.
const EVACUATION_LIMIT: u32 = 3;
/// How often a server is asked to reload its certificate while the new files may not have arrived in its volume.
const RELOAD_RETRY: SignedDuration = SignedDuration::from_secs(1);
/// How often a primary announces its slots to a member that has not learned them: a handshake takes a fraction of this.
const ANNOUNCE_RETRY: SignedDuration = SignedDuration::from_millis(500);
/// A slot migration command may time out for this long, while the server responds to others, before it has failed.
const UNANSWERED_LIMIT: SignedDuration = SignedDuration::from_secs(15);

/// The shortest wait before the next reconcile.
const SHORTEST: Duration = Duration::from_millis(50);
/// The longest wait while something is in progress.
const LONGEST: Duration = Duration::from_secs(1);
/// The longest wait while something keeps failing.
const LONGEST_OF_FAILING: Duration = Duration::from_secs(30);

/// What was tried for one cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attempts {
    /// Planned failovers that a replica acknowledged and has not performed yet.
    failovers: BTreeMap<MemberRef, Acknowledged>,
    /// Failed evacuations of a cordoned node, by the name of the primary's pod.
    evacuations: BTreeMap<String, u32>,
    /// The template of a preflight pod that the API server rejected: the rolling update runs without a preflight.
    rejected_preflight: Option<String>,
    /// When each server was last asked to reload its certificate.
    reloads: BTreeMap<MemberRef, Timestamp>,
    /// When each primary last announced its slots to a member.
    announced: BTreeMap<(MemberRef, MemberRef), Timestamp>,
    /// Since when slot migration commands time out.
    unanswered_since: Option<Timestamp>,
    /// Commands that servers reject, until one of their kind succeeds or none is planned.
    rejected: Vec<Rejected>,
    /// Since when reconciles, or steps in them, fail.
    failing_since: Option<Timestamp>,
    /// The stage of the last reconcile, and since when.
    stage: Option<(Discriminant<Stage>, Timestamp)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Acknowledged {
    times: u32,
    last: Timestamp,
}

impl Attempts {
    /// Whether a step was sent a moment ago and must be given time before it is sent again.
    pub fn is_under_way(&self, step: &Step, now: Timestamp) -> bool {
        match step {
            Step::ReloadCertificate(at) => self
                .reloads
                .get(at)
                .is_some_and(|last| now.duration_since(*last) < RELOAD_RETRY),
            Step::Announce { at, to } => self
                .announced
                .get(&(*at, *to))
                .is_some_and(|last| now.duration_since(*last) < ANNOUNCE_RETRY),
            _ => planned_failover(step)
                .and_then(|to| self.failovers.get(&to))
                .is_some_and(|sent| now.duration_since(sent.last) < sent.retry_after()),
        }
    }

    /// How often a replica acknowledged a planned failover that it has not performed.
    pub fn acknowledged(&self, to: MemberRef) -> u32 {
        self.failovers.get(&to).map_or(0, |sent| sent.times)
    }

    /// Whether the evacuation of this pod's primary failed too often.
    pub fn gave_up_evacuating(&self, pod: &str) -> bool {
        self.evacuations
            .get(pod)
            .is_some_and(|failed| *failed >= EVACUATION_LIMIT)
    }

    /// Whether the API server rejected a preflight pod of this template.
    pub fn preflight_was_rejected(&self, template: &str) -> bool {
        self.rejected_preflight.as_deref() == Some(template)
    }

    /// Commands that servers reject again and again.
    pub fn rejected(&self) -> impl Iterator<Item = &Rejected> {
        self.rejected.iter()
    }

    /// Failovers of a shard that servers rejected.
    pub fn rejected_failovers(&self, shard: ShardIndex) -> Option<&Rejected> {
        let mut failovers = self.rejected.iter().filter(|one| one.kind == CommandKind::Failover);
        failovers.find(|one| one.shard == Some(shard.0))
    }

    /// The same attempts, with the rejections that another process reports: it executes the commands.
    #[must_use]
    pub fn with_rejected(&self, rejected: &[Rejected]) -> Self {
        Self {
            rejected: rejected.to_vec(),
            ..self.clone()
        }
    }

    /// Records what a reconcile did. An outcome that repeats without effect becomes a failure here: a failover that is
    /// acknowledged again and again, or a slot migration command that keeps timing out.
    pub fn record(&mut self, observed: &Observation, plan: &Plan, outcomes: &mut [Outcome], now: Timestamp) {
        let pending = |to: &MemberRef| plan.pending().any(|step| planned_failover(step) == Some(*to));
        self.failovers.retain(|to, _| pending(to));
        let cordoned = |pod: &str| {
            let mut pods = observed.members.values().filter_map(|member| member.pod.as_ref());
            pods.any(|one| one.name == pod && one.cordoned)
        };
        self.evacuations.retain(|pod, _| cordoned(pod));
        self.reloads.retain(|_, last| now.duration_since(*last) < RELOAD_RETRY);
        self.announced
            .retain(|_, last| now.duration_since(*last) < ANNOUNCE_RETRY);
        for outcome in outcomes.iter_mut() {
            self.record_outcome(observed, outcome, now);
        }
        self.record_rejections(plan, outcomes);
        self.record_evacuation(observed, plan, outcomes);
        if outcomes.iter().all(|outcome| outcome.result.is_ok()) {
            self.failing_since = None;
        }
    }

    fn record_outcome(&mut self, observed: &Observation, outcome: &mut Outcome, now: Timestamp) {
        match (&outcome.step, &mut outcome.result) {
            (Step::ReloadCertificate(at), _) => {
                self.reloads.insert(*at, now);
            }
            (Step::Announce { at, to }, _) => {
                self.announced.insert((*at, *to), now);
            }
            (Step::MoveSlots { .. } | Step::Stabilize { .. }, Ok(_)) => self.unanswered_since = None,
            (Step::MoveSlots { .. } | Step::Stabilize { .. }, Err(failure)) if failure.unanswered => {
                let since = *self.unanswered_since.get_or_insert(now);
                let lasted = now.duration_since(since);
                if lasted >= UNANSWERED_LIMIT {
                    failure.unanswered = false;
                    failure.message = format!("{} (no response for {} s)", failure.message, lasted.as_secs());
                }
            }
            (Step::CreatePreflight, Ok(changes)) if changes.iter().any(|change| change.did == Did::Rejected) => {
                if let Preflight::Missing { template } = &observed.preflight {
                    self.rejected_preflight = Some(template.clone());
                }
            }
            (step, Ok(_)) => {
                if let Some(to) = planned_failover(step) {
                    let sent = self.failovers.entry(to).or_insert(Acknowledged { times: 0, last: now });
                    (sent.times, sent.last) = (sent.times + 1, now);
                    if sent.times > ACKNOWLEDGED_LIMIT {
                        outcome.result = Err(Failure::rejected(format!(
                            "member {to} acknowledged CLUSTER FAILOVER {} times and is still a replica",
                            sent.times
                        )));
                    }
                }
            }
            _ => {}
        }
    }

    fn record_rejections(&mut self, plan: &Plan, outcomes: &[Outcome]) {
        let answers = |step: &Step| matches!(step, Step::ClearFailoverRequest { rejected: Some(_) });
        let planned = |one: &Rejected| {
            let same = |step: &Step| command(step) == (one.kind, one.shard);
            // The count is the answer to the user, so it stays until the request is answered.
            let answered = |step: &Step| one.kind == CommandKind::Failover && answers(step);
            plan.pending().any(|step| same(step) || answered(step))
        };
        self.rejected.retain(planned);
        for outcome in outcomes {
            let (kind, shard) = command(&outcome.step);
            let known = self
                .rejected
                .iter()
                .position(|one| (one.kind, one.shard) == (kind, shard));
            match (&outcome.result, known) {
                (Ok(_), Some(at)) => drop(self.rejected.remove(at)),
                (Err(failure), known) if !failure.unanswered => {
                    let before = known.map_or(0, |at| self.rejected.remove(at).times);
                    self.rejected.push(Rejected {
                        kind,
                        shard,
                        times: before.saturating_add(1),
                        message: failure.message.clone(),
                    });
                }
                _ => {}
            }
        }
    }

    /// Counts a failed evacuation of a primary from a cordoned node.
    fn record_evacuation(&mut self, observed: &Observation, plan: &Plan, outcomes: &[Outcome]) {
        let Stage::FailingOver {
            drained: true,
            to: Some(to),
            ..
        } = plan.stage
        else {
            return;
        };
        let failed = |outcome: &Outcome| matches!(outcome.step, Step::Failover { .. }) && outcome.result.is_err();
        let primary = observed.primary(to.shard).map(|(primary, _)| primary);
        let pod = primary.and_then(|primary| observed.members.get(&primary)?.pod.as_ref());
        if let Some(pod) = pod.filter(|_| outcomes.iter().any(failed)) {
            *self.evacuations.entry(pod.name.clone()).or_default() += 1;
        }
    }

    /// When to reconcile again after a failure: at once after the first, then later the longer it lasts. The back-off
    /// depends on time and not on the number of attempts, because every change of an object triggers an attempt too.
    pub fn back_off(&mut self, now: Timestamp) -> Duration {
        let since = *self.failing_since.get_or_insert(now);
        (elapsed(since, now) / 2).clamp(SHORTEST, LONGEST_OF_FAILING)
    }

    /// When to reconcile again while a cluster waits in a stage: soon at first, then up to a second later, and much later
    /// while a user must act.
    pub fn wait_in(&mut self, stage: &Stage, now: Timestamp) -> Duration {
        let kind = std::mem::discriminant(stage);
        let since = match self.stage {
            Some((known, since)) if known == kind => since,
            _ => now,
        };
        self.stage = Some((kind, since));
        let longest = match stage {
            Stage::LockedOut(_) => LONGEST_OF_FAILING,
            _ => LONGEST,
        };
        (elapsed(since, now) / 10).clamp(SHORTEST, longest)
    }
}

impl Acknowledged {
    fn retry_after(&self) -> SignedDuration {
        let times = i32::try_from(self.times).unwrap_or(i32::MAX);
        FAILOVER_RETRY
            .checked_mul(times)
            .map_or(FAILOVER_RETRY_LIMIT, |wait| wait.min(FAILOVER_RETRY_LIMIT))
    }
}

/// Which command a step is.
fn command(step: &Step) -> (CommandKind, Option<u32>) {
    let shard = match step {
        Step::Failover { to, .. } => Some(to.shard.0),
        _ => None,
    };
    (CommandKind::of(step), shard)
}

/// The replica that a planned failover promotes.
fn planned_failover(step: &Step) -> Option<MemberRef> {
    match step {
        Step::Failover {
            to,
            by: FailoverBy::Planned,
        } => Some(*to),
        _ => None,
    }
}

fn elapsed(since: Timestamp, now: Timestamp) -> Duration {
    now.duration_since(since).try_into().unwrap_or(Duration::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::{Member, Pod};

    const TO: MemberRef = MemberRef {
        shard: ShardIndex(0),
        node: 1,
    };

    fn failover() -> Step {
        Step::Failover {
            to: TO,
            by: FailoverBy::Planned,
        }
    }

    fn acknowledged() -> Vec<Outcome> {
        vec![Outcome {
            step: failover(),
            result: Ok(Vec::new()),
        }]
    }

    fn seconds(seconds: i64) -> SignedDuration {
        SignedDuration::from_secs(seconds)
    }

    #[test]
    fn acknowledged_but_unperformed_failover_backs_off_and_then_fails() {
        let (mut attempts, mut now) = (Attempts::default(), Timestamp::UNIX_EPOCH);
        let plan = Plan::new(Stage::Writing, vec![failover()]);
        let mut failed = Vec::new();
        for times in 1..=5 {
            assert!(!attempts.is_under_way(&failover(), now));
            let mut outcomes = acknowledged();
            attempts.record(&Observation::default(), &plan, &mut outcomes, now);
            failed.push(outcomes[0].result.is_err());
            assert!(attempts.is_under_way(&failover(), now + FAILOVER_RETRY * (times - 1) + seconds(1)));
            now += FAILOVER_RETRY * times;
        }
        assert_eq!(failed, [false, false, false, true, true]);
        let done = Plan::new(Stage::Healthy, Vec::new());
        attempts.record(&Observation::default(), &done, &mut [], now);
        assert!(
            !attempts.is_under_way(&failover(), now),
            "it is performed: counted from one again"
        );
    }

    #[test]
    fn a_failed_evacuation_is_given_up_until_its_node_is_uncordoned() {
        let pod = |cordoned| Pod {
            name: "p".to_owned(),
            cordoned,
            ..Pod::default()
        };
        let observed = |cordoned| {
            let member = Member {
                pod: Some(pod(cordoned)),
                ..Member::default()
            };
            Observation {
                members: [(TO, member)].into(),
                ..Observation::default()
            }
        };
        let mut attempts = Attempts {
            evacuations: [("p".to_owned(), EVACUATION_LIMIT), ("gone".to_owned(), 1)].into(),
            ..Attempts::default()
        };
        let plan = Plan::new(Stage::Healthy, Vec::new());
        attempts.record(&observed(true), &plan, &mut [], Timestamp::UNIX_EPOCH);
        assert!(attempts.gave_up_evacuating("p") && !attempts.gave_up_evacuating("q"));
        assert_eq!(attempts.evacuations.len(), 1, "a pod that is gone is forgotten");
        attempts.record(&observed(false), &plan, &mut [], Timestamp::UNIX_EPOCH);
        assert!(!attempts.gave_up_evacuating("p"));
    }

    #[test]
    fn a_slot_migration_that_times_out_for_long_becomes_a_failure() {
        let mut attempts = Attempts::default();
        let step = Step::MoveSlots {
            moves: Vec::new(),
            legacy: false,
        };
        let plan = Plan::new(Stage::Writing, vec![step.clone()]);
        let mut at = |second| {
            let mut outcomes = vec![Outcome {
                step: step.clone(),
                result: Err(Failure::unanswered("timed out")),
            }];
            let now = Timestamp::UNIX_EPOCH + seconds(second);
            attempts.record(&Observation::default(), &plan, &mut outcomes, now);
            outcomes.remove(0).result.unwrap_err()
        };
        assert!(at(0).unanswered && at(14).unanswered);
        let failure = at(15);
        assert_eq!(
            (failure.unanswered, failure.message.as_str()),
            (false, "timed out (no response for 15 s)")
        );
    }

    #[test]
    fn failures_back_off_by_time_and_a_reconcile_without_one_resets_it() {
        let (mut attempts, start) = (Attempts::default(), Timestamp::UNIX_EPOCH);
        assert_eq!(attempts.back_off(start), SHORTEST);
        assert_eq!(attempts.back_off(start + seconds(10)), Duration::from_secs(5));
        assert_eq!(attempts.back_off(start + seconds(900)), LONGEST_OF_FAILING);
        let plan = Plan::new(Stage::Healthy, Vec::new());
        attempts.record(&Observation::default(), &plan, &mut [], start);
        assert_eq!(attempts.back_off(start + seconds(901)), SHORTEST);
    }
}

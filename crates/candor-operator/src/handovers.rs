//! Primaries that are giving way. A replica that was told to take over is given the time to do it, and one that says OK
//! again and again without doing it is told of.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use candor_engine::model::MemberRef;
use candor_engine::step::{FailoverBy, Step};

use crate::cache::ClusterKey;

/// A hand-over takes a fraction of a second; after so long it is asked for again, and ever more seldom.
const AGAIN: Duration = Duration::from_secs(2);
/// The longest pause.
const LONGEST: Duration = Duration::from_secs(30);
/// So often it may come to nothing before it is called a failure.
const TRIES: u32 = 3;

/// Who was told to take over, how often, and when last. Nothing in it must survive a crash: then it is counted anew.
#[derive(Default)]
pub struct Handovers(Mutex<HashMap<(ClusterKey, MemberRef), (u32, Instant)>>);

/// Primaries that could not be made to give way for their machine's sake, by their pods. After some tries that is given
/// up: a cluster that serves is not to be called unready for as long as a machine is closed.
#[derive(Default)]
pub struct Evacuations(Mutex<HashMap<(ClusterKey, String), u32>>);

impl Evacuations {
    /// It came to nothing once more.
    pub fn failed(&self, key: &ClusterKey, pod: &str) {
        *self.lock().entry((key.clone(), pod.to_owned())).or_default() += 1;
    }

    /// Whether a pod on a closed machine is still to be left; one whose machine is open is tried anew another time.
    pub fn is_worth_it(&self, key: &ClusterKey, pod: &str, closed: bool) -> bool {
        let mut tried = self.lock();
        if tried.is_empty() {
            return closed;
        }
        let place = (key.clone(), pod.to_owned());
        if !closed {
            tried.remove(&place);
        }
        closed && tried.get(&place).is_none_or(|times| *times < TRIES)
    }

    /// A cluster is gone.
    pub fn forget(&self, cluster: &ClusterKey) {
        self.lock().retain(|(key, _), _| key != cluster);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(ClusterKey, String), u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Handovers {
    /// Whether a step is to be left alone for now: it was taken a moment ago.
    pub fn is_under_way(&self, key: &ClusterKey, step: &Step, now: Instant) -> bool {
        let told = heir(step).and_then(|to| self.lock().get(&(key.clone(), to)).copied());
        told.is_some_and(|(times, last)| now.duration_since(last) < (AGAIN * times).min(LONGEST))
    }

    /// A server said that it would take over; how often it has said so, when that is too often.
    pub fn accepted(&self, key: &ClusterKey, to: MemberRef, now: Instant) -> Option<u32> {
        let mut told = self.lock();
        let (times, last) = told.entry((key.clone(), to)).or_insert((0, now));
        (*times, *last) = (*times + 1, now);
        (*times > TRIES).then_some(*times)
    }

    /// Only what is still to be done counts on.
    pub fn keep(&self, key: &ClusterKey, steps: &[Step]) {
        let wanted = |to: MemberRef| steps.iter().any(|step| heir(step) == Some(to));
        self.lock().retain(|(cluster, to), _| cluster != key || wanted(*to));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(ClusterKey, MemberRef), (u32, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Who takes over with the primary's help.
fn heir(step: &Step) -> Option<MemberRef> {
    match step {
        Step::Failover {
            to,
            by: FailoverBy::Agreement,
        } => Some(*to),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use candor_engine::model::ShardIndex;

    use super::*;

    #[test]
    fn a_primary_that_cannot_give_way_is_left_alone_until_its_machine_was_open_again() {
        let tried = Evacuations::default();
        let key = ClusterKey {
            namespace: "shop".into(),
            name: "cart".into(),
        };
        assert!(!tried.is_worth_it(&key, "p", false));
        for _ in 0..TRIES {
            assert!(tried.is_worth_it(&key, "p", true));
            tried.failed(&key, "p");
        }
        assert!(!tried.is_worth_it(&key, "p", true));
        assert!(tried.is_worth_it(&key, "q", true), "another pod is not that one");
        assert!(!tried.is_worth_it(&key, "p", false));
        assert!(tried.is_worth_it(&key, "p", true));
    }

    #[test]
    fn who_pretends_to_take_over_is_told_ever_more_seldom_and_after_three_times_it_is_a_failure() {
        let (told, mut now) = (Handovers::default(), Instant::now());
        let key = ClusterKey {
            namespace: "shop".into(),
            name: "cart".into(),
        };
        let to = MemberRef {
            shard: ShardIndex(0),
            node: 1,
        };
        let by = FailoverBy::Agreement;
        let step = Step::Failover { to, by };
        let mut answers = Vec::new();
        for times in 1..=5 {
            assert!(!told.is_under_way(&key, &step, now));
            answers.push(told.accepted(&key, to, now));
            assert!(told.is_under_way(&key, &step, now + AGAIN * (times - 1) + Duration::from_secs(1)));
            now += AGAIN * times;
        }
        assert_eq!(answers, [None, None, None, Some(4), Some(5)]);
        told.keep(&key, std::slice::from_ref(&step));
        assert_eq!(told.accepted(&key, to, now), Some(6));
        told.keep(&key, &[]);
        assert_eq!(told.accepted(&key, to, now), None, "what was done is counted no more");
    }
}

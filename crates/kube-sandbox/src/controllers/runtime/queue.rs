//! The work queue: each key is in it at most once, and no two workers reconcile the same key at once.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// A queue of keys.
///
/// A key added while a worker holds it comes back when the worker is done, so no change is lost and no object is
/// reconciled twice at the same time.
pub struct Queue<T> {
    state: Mutex<State<T>>,
    wake: Notify,
}

struct State<T> {
    ready: VecDeque<T>,
    waiting: HashSet<T>,
    held: HashSet<T>,
    later: BTreeSet<(Instant, u64, T)>,
    moments: HashMap<T, (Instant, u64)>,
    failures: HashMap<T, u32>,
    counter: u64,
}

/// The first pause after a failure; it doubles with every further one.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

fn pause_after(failures: u32) -> Duration {
    FIRST_PAUSE
        .saturating_mul(1 << failures.clamp(1, 20).saturating_sub(1))
        .min(LONGEST_PAUSE)
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self {
            state: Mutex::new(State {
                ready: VecDeque::new(),
                waiting: HashSet::new(),
                held: HashSet::new(),
                later: BTreeSet::new(),
                moments: HashMap::new(),
                failures: HashMap::new(),
                counter: 0,
            }),
            wake: Notify::new(),
        }
    }
}

impl<T: Clone + Eq + Hash + Ord> Queue<T> {
    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a key, unless it is queued already.
    pub fn add(&self, key: T) {
        let mut state = self.state();
        if state.waiting.insert(key.clone()) && !state.held.contains(&key) {
            state.ready.push_back(key);
            drop(state);
            self.wake.notify_one();
        }
    }

    /// Adds a key after a delay.
    pub fn add_after(&self, key: T, pause: Duration) {
        let mut state = self.state();
        state.counter += 1;
        let order = state.counter;
        let at = Instant::now() + pause;
        match state.moments.get(&key).copied() {
            // An earlier time for the same key is enough: that reconcile requeues again if necessary.
            Some((when, _)) if when <= at => return,
            Some((when, order)) => drop(state.later.remove(&(when, order, key.clone()))),
            None => {}
        }
        state.moments.insert(key.clone(), (at, order));
        state.later.insert((at, order, key));
        drop(state);
        self.wake.notify_one();
    }

    /// Adds a key again after a failure, with a delay that doubles.
    pub fn retry(&self, key: T) {
        let failures = {
            let mut state = self.state();
            let failures = state.failures.entry(key.clone()).or_default();
            *failures += 1;
            *failures
        };
        self.add_after(key, pause_after(failures));
    }

    /// Forgets the failures of a key.
    pub fn succeeded(&self, key: &T) {
        self.state().failures.remove(key);
    }

    /// The next key; the caller holds it until [`Queue::done`].
    pub async fn next(&self) -> T {
        loop {
            let due = {
                let mut state = self.state();
                state.promote(Instant::now());
                if let Some(key) = state.ready.pop_front() {
                    state.waiting.remove(&key);
                    state.held.insert(key.clone());
                    if !state.ready.is_empty() {
                        self.wake.notify_one();
                    }
                    return key;
                }
                state.later.first().map(|(at, _, _)| *at)
            };
            match due {
                Some(at) => tokio::select! {
                    () = self.wake.notified() => {}
                    () = tokio::time::sleep_until(at) => {}
                },
                None => self.wake.notified().await,
            }
        }
    }

    /// Gives a key back.
    pub fn done(&self, key: &T) {
        let mut state = self.state();
        state.held.remove(key);
        if state.waiting.contains(key) {
            state.ready.push_back(key.clone());
            drop(state);
            self.wake.notify_one();
        }
    }
}

impl<T: Clone + Eq + Hash + Ord> State<T> {
    fn promote(&mut self, now: Instant) {
        while self.later.first().is_some_and(|(at, _, _)| *at <= now) {
            let Some((_, _, key)) = self.later.pop_first() else {
                return;
            };
            self.moments.remove(&key);
            if self.waiting.insert(key.clone()) && !self.held.contains(&key) {
                self.ready.push_back(key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_key_is_in_line_once() {
        let queue = Queue::default();
        queue.add("a");
        queue.add("a");
        queue.add("b");
        assert_eq!([queue.next().await, queue.next().await], ["a", "b"]);
        assert!(queue.state().ready.is_empty());
    }

    #[tokio::test]
    async fn a_key_added_while_held_comes_back_after_done_and_not_before() {
        let queue = Queue::default();
        queue.add("a");
        let held = queue.next().await;
        queue.add("a");
        queue.add("b");
        assert_eq!(queue.next().await, "b");
        queue.done(&held);
        assert_eq!(queue.next().await, "a");
    }

    #[test]
    fn failures_wait_longer_each_time_up_to_a_limit() {
        let pauses: Vec<_> = [1, 2, 3, 14, 99]
            .map(|failures| pause_after(failures).as_millis())
            .into();
        assert_eq!(pauses, [5, 10, 20, 30_000, 30_000]);
    }

    #[tokio::test]
    async fn success_forgets_the_failures() {
        let queue = Queue::default();
        queue.retry("a");
        let key = queue.next().await;
        assert_eq!(queue.state().failures.get("a"), Some(&1));
        queue.succeeded(&key);
        assert!(queue.state().failures.is_empty());
    }

    #[tokio::test]
    async fn of_two_later_moments_the_earlier_counts() {
        let queue = Queue::default();
        queue.add_after("a", Duration::from_secs(1000));
        queue.add_after("a", Duration::from_millis(1));
        queue.add_after("a", Duration::from_secs(2000));
        assert_eq!(queue.next().await, "a");
        assert!(queue.state().later.is_empty());
    }
}

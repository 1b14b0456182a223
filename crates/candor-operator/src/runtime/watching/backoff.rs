//! The backoff of a failed watch.

use std::time::Duration;

use kube::runtime::utils::Backoff;
use tokio::time::Instant;

/// The backoff of a failed watch. The first wait is very short, because events are missed meanwhile; it doubles while
/// the watch keeps failing. A successful start alone does not reset it.
#[derive(Debug, Default)]
pub(super) struct WatchBackoff {
    last: Option<(Instant, Duration)>,
}

/// The first wait.
const FIRST: Duration = Duration::from_millis(50);
/// The longest wait.
const LONGEST: Duration = Duration::from_secs(30);
/// A watch that ran for this long has recovered.
const HELD: Duration = Duration::from_secs(5);

impl WatchBackoff {
    fn after_failure(&mut self, now: Instant) -> Duration {
        let failing = self.last.filter(|(at, wait)| now < *at + *wait + HELD);
        let wait = failing.map_or(FIRST, |(_, wait)| (wait * 2).min(LONGEST));
        self.last = Some((now, wait));
        wait
    }
}

impl Iterator for WatchBackoff {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Some(self.after_failure(Instant::now()))
    }
}

impl Backoff for WatchBackoff {
    fn reset(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_that_fails_once_is_back_at_once_and_one_that_keeps_failing_waits_longer() {
        let mut backoff = WatchBackoff::default();
        let mut now = Instant::now();
        let mut waits = Vec::new();
        for _ in 0..12 {
            let wait = backoff.after_failure(now);
            backoff.reset();
            now += wait;
            waits.push(wait);
        }
        assert_eq!(waits[..3], [50, 100, 200].map(Duration::from_millis));
        assert_eq!(waits[11], LONGEST);
        assert_eq!(backoff.after_failure(now + HELD), FIRST);
    }
}

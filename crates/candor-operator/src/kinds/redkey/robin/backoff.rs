//! Pauses between attempts to connect, to the operator's Robin and to the API server.

use std::time::Duration;

use tokio::time::Instant;

/// An attempt that lasted longer than this succeeded, and its end is the first failure.
const HELD: Duration = Duration::from_secs(2);
/// The first pause.
const FIRST: Duration = Duration::from_millis(50);
/// The longest pause while the failures are new: a process that is just starting is found soon.
const SOON: Duration = Duration::from_millis(200);
/// How long failures are new.
const NEW: Duration = Duration::from_secs(10);
/// The longest pause.
const LONGEST: Duration = Duration::from_secs(2);

/// The pauses of one connection.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    failures: u32,
    failing: Option<Instant>,
}

impl Backoff {
    /// The pause after an attempt that ends now and lasted this long.
    pub(super) fn next(&mut self, now: Instant, lasted: Duration) -> Duration {
        if lasted > HELD {
            *self = Self::default();
            return Duration::ZERO;
        }
        let since = *self.failing.get_or_insert(now);
        let pause = FIRST * 2u32.saturating_pow(self.failures.min(10));
        self.failures = self.failures.saturating_add(1);
        pause.min(if now - since < NEW { SOON } else { LONGEST })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_failure_is_retried_soon_and_a_lasting_one_seldom() {
        let mut backoff = Backoff::default();
        let mut now = Instant::now();
        assert_eq!(backoff.next(now, HELD * 2), Duration::ZERO, "it worked until now");
        let mut pauses = Vec::new();
        for _ in 0..100 {
            let pause = backoff.next(now, Duration::ZERO);
            pauses.push(pause);
            now += pause;
        }
        assert_eq!(pauses[..4], [50, 100, 200, 200].map(Duration::from_millis));
        assert_eq!(pauses[99], LONGEST);
        assert_eq!(backoff.next(now, HELD * 2), Duration::ZERO);
        assert_eq!(backoff.next(now, Duration::ZERO), FIRST);
    }
}

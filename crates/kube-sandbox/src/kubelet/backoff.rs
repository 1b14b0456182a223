//! When to try again.

use std::time::Duration;

use super::config::BackoffConfig;

/// The waits of one container or image: none before the first retry, then doubling, and forgotten after a long calm.
#[derive(Clone, Copy, Debug)]
pub(super) struct Backoff {
    config: BackoffConfig,
    next: Option<Duration>,
}

impl Backoff {
    pub fn new(config: BackoffConfig) -> Self {
        Self { config, next: None }
    }

    /// The wait before the next try, after one that lasted `lasted`.
    pub fn after(&mut self, lasted: Duration) -> Duration {
        if lasted > self.config.max * 2 {
            self.next = None;
        }
        let wait = self.next.unwrap_or(Duration::ZERO);
        self.next = Some(match self.next {
            None => self.config.base,
            Some(wait) => (wait * 2).min(self.config.max),
        });
        wait
    }

    /// Begins with the first wait instead of none.
    #[must_use]
    pub fn without_free_try(mut self) -> Self {
        self.next = Some(self.config.base);
        self
    }
}

/// A wait as Go prints it: `10s`, `1m20s`, `5m0s`, `500ms`.
pub(super) fn go_duration(wait: Duration) -> String {
    let seconds = wait.as_secs();
    if wait.subsec_millis() != 0 && seconds == 0 {
        format!("{}ms", wait.as_millis())
    } else if seconds < 60 {
        format!("{seconds}s")
    } else {
        format!("{}m{}s", seconds / 60, seconds % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_restart_is_at_once_and_the_waits_double_to_five_minutes() {
        let mut backoff = Backoff::new(BackoffConfig {
            base: Duration::from_secs(10),
            max: Duration::from_secs(300),
        });
        let waits: Vec<String> = (0..8).map(|_| go_duration(backoff.after(Duration::ZERO))).collect();
        assert_eq!(waits, ["0s", "10s", "20s", "40s", "1m20s", "2m40s", "5m0s", "5m0s"]);
        assert_eq!(backoff.after(Duration::from_secs(601)), Duration::ZERO);
        assert_eq!(backoff.after(Duration::ZERO), Duration::from_secs(10));
    }
}

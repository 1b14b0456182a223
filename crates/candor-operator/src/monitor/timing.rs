//! Timing of the member monitor: every interval, timeout and backoff.

use std::time::Duration;

/// Probe interval of a healthy member. Together with [`SILENCE`] it bounds the time to notice a frozen member: 1.5 s.
pub(super) const INTERVAL: Duration = Duration::from_millis(500);
/// A member that takes longer to reply counts as not responding.
pub(super) const SILENCE: Duration = Duration::from_secs(1);
/// Probe interval after a change in the cluster: other members are about to notice it too.
pub(super) const ALERT_INTERVAL: Duration = Duration::from_millis(50);
/// How long a cluster stays alert after a change.
pub(super) const ALERT: Duration = Duration::from_secs(1);
/// Connect timeout.
pub(super) const CONNECT: Duration = Duration::from_secs(1);
/// Connect timeout after an open connection has just closed: the close already signals a problem.
pub(super) const RECONNECT: Duration = Duration::from_millis(500);
/// How long a replica that was frozen counts as not in sync while its primary does not confirm its link. A broken link
/// is known to the replica itself by then.
pub(super) const CONFIRMATION: Duration = Duration::from_secs(5);
/// How long a connection without replies is kept open. A frozen process that resumes replies there immediately, but a
/// process that vanished without closing the connection never will.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// Triggers of the same cluster within this time are merged into one reconcile.
pub(super) const TOGETHER: Duration = Duration::from_millis(20);
/// A connection for commands that is unused for this long is closed.
pub(super) const IDLE: Duration = Duration::from_secs(30);

/// The backoff before the next connection attempt, after `failures` consecutive failures that began `since` ago. A
/// restarted process must be noticed within 100 to 200 ms, and a process that stays down must cost almost nothing.
pub(super) fn again(failures: u32, since: Duration) -> Duration {
    match failures {
        0 => Duration::ZERO,
        1..=3 => Duration::from_millis(20),
        _ if since < Duration::from_secs(30) => Duration::from_millis(100),
        _ if since < Duration::from_secs(300) => Duration::from_millis(200),
        _ => Duration::from_secs(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restart_is_noticed_soon_and_an_absence_costs_ten_dials_a_second_at_most() {
        let (mut now, mut dials, mut failures) = (Duration::ZERO, 0, 1);
        while now < Duration::from_secs(30) {
            let wait = again(failures, now);
            assert!(wait <= Duration::from_millis(100), "{wait:?} after {now:?}");
            (now, dials, failures) = (now + wait, dials + 1, failures + 1);
        }
        assert!(dials <= 310, "{dials}");
        assert_eq!(again(10_000, Duration::from_secs(3600)), Duration::from_secs(1));
    }
}

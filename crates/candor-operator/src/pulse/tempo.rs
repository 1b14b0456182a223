//! How often, how long, how soon again: every duration of the pulse, and what it is for.

use std::time::Duration;

/// Between two beats of a healthy member. With [`SILENCE`] it bounds how long a frozen one goes unnoticed: 1.5 s.
pub(super) const BEAT: Duration = Duration::from_millis(500);
/// An answer that takes longer is silence.
pub(super) const SILENCE: Duration = Duration::from_secs(1);
/// Between two beats of a cluster in which something has just changed: the others are about to notice too.
pub(super) const ALERT_BEAT: Duration = Duration::from_millis(50);
/// How long a cluster stays alert after a change.
pub(super) const ALERT: Duration = Duration::from_secs(1);
/// How long a connection may take to be made.
pub(super) const CONNECT: Duration = Duration::from_secs(1);
/// The same where an open connection has just ended: somebody told that something is wrong.
pub(super) const RECONNECT: Duration = Duration::from_millis(500);
/// How long a silent connection is kept: a frozen process that goes on answers there at once, but one that is gone
/// without a word never will.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// Calls for a reconcile of one cluster that come closer together than this become one.
pub(super) const TOGETHER: Duration = Duration::from_millis(20);
/// A connection for acting that nobody asked for in this long is ended.
pub(super) const IDLE: Duration = Duration::from_secs(30);

/// How long to wait before dialling again, after so many failures in a row since so long ago. A process that restarts
/// must be seen within a tenth of a second or two, one that stays away must cost next to nothing.
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
    fn a_restart_is_seen_soon_and_an_absence_costs_ten_dials_a_second_at_most() {
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

//! What the operator knows about a Robin, and how that changes. Plain values: time is an argument.

use std::sync::Arc;

use tokio::time::Instant;
use valkey_admin::client::Fingerprint;

use super::SILENCE;
use super::frame::Frame;
use crate::kinds::redkey::robin::api::PROTOCOL;

/// What the operator knows about the Robin of a cluster.
#[derive(Clone, Debug, Default)]
pub enum RobinView {
    /// The operator follows no Robin of this cluster.
    #[default]
    NotFollowed,
    /// Robin has sent nothing yet. If its address refuses connections, it is not up yet, and nothing has terminated.
    Connecting {
        /// Since when the operator follows this address, or since when something listens there again.
        since: Instant,
    },
    /// Robin streams what it observes.
    Live {
        /// The newest frame.
        frame: Arc<Frame>,
        /// When the frame, or the last heartbeat after it, arrived.
        received: Instant,
    },
    /// Nothing has arrived for two seconds, connected or not. Robin may be frozen, slow or unreachable: nothing is
    /// proven.
    Silent {
        /// Since when nothing has arrived.
        since: Instant,
        /// The last frame, if there was one.
        last: Option<Arc<Frame>>,
    },
    /// The address refuses connections, and Robin was live there: its process has terminated.
    Refused {
        /// Since when.
        since: Instant,
    },
    /// What answers at the address is not the Robin that the operator expects.
    Rejected {
        /// Since when.
        since: Instant,
        /// Why.
        reason: Mismatch,
    },
}

/// Why an answer is not that of the expected Robin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// It presents another certificate, so it received neither the token nor anything else.
    #[error("the certificate {0} is not the one of Robin's Secret")]
    Certificate(Fingerprint),
    /// It does not speak TLS as Robin does.
    #[error("TLS: {0}")]
    Tls(String),
    /// It rejects the token.
    #[error("Robin rejects the token of its Secret")]
    Unauthorized,
    /// It speaks another version of the protocol, or none.
    #[error("Robin speaks {}, the operator speaks protocol {PROTOCOL}", protocol(*.0))]
    Protocol(Option<u32>),
    /// It does not know the request.
    #[error("Robin replies {0} to the request for its observations")]
    Status(u16),
    /// Its frames cannot be used.
    #[error("{0}")]
    Frame(String),
}

fn protocol(version: Option<u32>) -> String {
    version.map_or_else(
        || "no known protocol".to_owned(),
        |version| format!("protocol {version}"),
    )
}

/// The state of one link. Every method returns whether the operator should reconcile.
#[derive(Debug)]
pub(super) struct State {
    phase: Phase,
    last: Option<Arc<Frame>>,
    /// When something was last heard that shows a live Robin, or one that is not up yet.
    heard: Instant,
    /// A frame has arrived on the current connection, so its heartbeats confirm the last frame.
    confirmed: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum Phase {
    Connecting { since: Instant },
    Live,
    Silent,
    Refused { since: Instant },
    Rejected { since: Instant, reason: Mismatch },
}

impl State {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            phase: Phase::Connecting { since: now },
            last: None,
            heard: now,
            confirmed: false,
        }
    }

    pub(super) fn view(&self) -> RobinView {
        let last = self.last.clone();
        match (&self.phase, last) {
            (Phase::Live, Some(frame)) => RobinView::Live {
                frame,
                received: self.heard,
            },
            // A live Robin has sent a frame.
            (Phase::Live | Phase::Silent, last) => RobinView::Silent {
                since: self.heard,
                last,
            },
            (Phase::Connecting { since }, _) => RobinView::Connecting { since: *since },
            (Phase::Refused { since }, _) => RobinView::Refused { since: *since },
            (Phase::Rejected { since, reason }, _) => RobinView::Rejected {
                since: *since,
                reason: reason.clone(),
            },
        }
    }

    /// The address accepted a connection.
    pub(super) fn reached(&mut self, now: Instant) -> bool {
        self.confirmed = false;
        if !matches!(self.phase, Phase::Refused { .. }) {
            return false;
        }
        // The process that was live has terminated, and another one listens.
        self.heard = now;
        self.enter(Phase::Connecting { since: now })
    }

    /// A frame arrived.
    pub(super) fn frame(&mut self, frame: Frame, now: Instant) -> bool {
        self.heard = now;
        self.confirmed = true;
        let new = self.last.as_ref().is_none_or(|last| frame.differs_from(last));
        self.last = Some(Arc::new(frame));
        self.enter(Phase::Live) || new
    }

    /// A heartbeat arrived.
    pub(super) fn beat(&mut self, now: Instant) -> bool {
        if self.confirmed {
            self.heard = now;
            return self.enter(Phase::Live);
        }
        // A Robin that has just started has observed nothing yet. It does not confirm the frames of the one before it.
        if matches!(self.phase, Phase::Connecting { .. }) {
            self.heard = now;
        }
        false
    }

    /// The address refused a connection.
    pub(super) fn refused(&mut self, now: Instant) -> bool {
        self.confirmed = false;
        match self.phase {
            Phase::Refused { .. } => false,
            _ if self.last.is_some() => self.enter(Phase::Refused { since: now }),
            Phase::Connecting { .. } => {
                self.heard = now;
                false
            }
            _ => {
                self.heard = now;
                self.enter(Phase::Connecting { since: now })
            }
        }
    }

    /// The answer is not that of the expected Robin.
    pub(super) fn rejected(&mut self, reason: Mismatch, now: Instant) -> bool {
        self.confirmed = false;
        let since = match &self.phase {
            Phase::Rejected { since, .. } => *since,
            _ => now,
        };
        self.enter(Phase::Rejected { since, reason })
    }

    /// When the link becomes silent if nothing arrives. `None` while silence would prove nothing new.
    pub(super) fn silent_at(&self) -> Option<Instant> {
        matches!(self.phase, Phase::Live | Phase::Connecting { .. }).then(|| self.heard + SILENCE)
    }

    /// Applies the passing of time.
    pub(super) fn pass(&mut self, now: Instant) -> bool {
        self.silent_at().is_some_and(|at| at <= now) && self.enter(Phase::Silent)
    }

    fn enter(&mut self, phase: Phase) -> bool {
        let changed = self.phase != phase;
        self.phase = phase;
        changed
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use super::*;

    fn frame() -> Frame {
        Frame::new(BTreeMap::new())
    }

    #[tokio::test]
    async fn a_refused_connection_is_evidence_only_where_robin_was_live() {
        let now = Instant::now();
        let mut state = State::new(now);
        assert!(!state.refused(now));
        assert!(matches!(state.view(), RobinView::Connecting { .. }), "not up yet");
        let later = now + SILENCE + Duration::from_secs(60);
        assert!(!state.refused(later));
        assert!(!state.pass(later + SILENCE / 2), "a refusal is not silence");
        assert!(state.frame(frame(), later));
        assert!(state.refused(later));
        assert!(matches!(state.view(), RobinView::Refused { .. }));
        assert!(!state.refused(later + SILENCE), "nothing new");
        assert!(!state.pass(later + SILENCE * 10), "evidence does not fade");
    }

    #[tokio::test]
    async fn a_restarted_robin_does_not_confirm_the_frames_of_the_one_before() {
        let now = Instant::now();
        let mut state = State::new(now);
        state.reached(now);
        state.frame(frame(), now);
        state.reached(now);
        assert!(!state.beat(now + SILENCE));
        assert!(state.pass(now + SILENCE));
        assert!(matches!(state.view(), RobinView::Silent { last: Some(_), .. }));
        assert!(!state.beat(now + SILENCE));
        assert!(matches!(state.view(), RobinView::Silent { .. }));
        assert!(state.frame(frame(), now + SILENCE));
        assert!(matches!(state.view(), RobinView::Live { .. }));
    }

    #[tokio::test]
    async fn a_thawed_robin_is_live_again_by_its_heartbeat() {
        let now = Instant::now();
        let mut state = State::new(now);
        state.reached(now);
        state.frame(frame(), now);
        assert!(!state.beat(now + SILENCE / 2));
        assert!(!state.pass(now + SILENCE));
        assert!(state.pass(now + SILENCE * 2));
        assert!(state.beat(now + SILENCE * 3));
        assert!(matches!(state.view(), RobinView::Live { .. }));
    }

    #[tokio::test]
    async fn a_process_that_listens_after_a_termination_is_a_new_one() {
        let now = Instant::now();
        let mut state = State::new(now);
        state.frame(frame(), now);
        state.refused(now);
        assert!(state.reached(now));
        assert!(matches!(state.view(), RobinView::Connecting { .. }));
        assert!(state.pass(now + SILENCE), "and it may be frozen too");
        assert!(matches!(state.view(), RobinView::Silent { .. }));
    }
}

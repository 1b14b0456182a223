//! Requests of the HTTP API. Robin carries out one at a time; a repeated call asks for its progress.

use std::fmt;
use std::time::Duration;

use tokio::time::Instant;

use super::super::api::Operation;
use super::super::{Rejection, Work};

/// What a call of the API asks Robin to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Repair the cluster.
    Fix,
    /// Form the cluster again from scratch, without its keys.
    Recreate,
    /// Move slots.
    Move {
        /// The ordinal of the source.
        from: u32,
        /// The ordinal of the destination.
        to: u32,
        /// How many; 0 means all of them.
        slots: u16,
    },
    /// Reset the server with this ordinal.
    Reset(u32),
}

impl fmt::Display for Request {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fix => write!(out, "repairing the cluster"),
            Self::Recreate => write!(out, "forming the cluster again"),
            Self::Move { from, to, slots: 0 } => write!(out, "moving all slots from server {from} to {to}"),
            Self::Move { from, to, slots } => write!(out, "moving {slots} slots from server {from} to {to}"),
            Self::Reset(server) => write!(out, "resetting server {server}"),
        }
    }
}

impl Request {
    /// What Robin is doing while it carries out the request, and after it failed.
    fn operation(self, failed: bool) -> Operation {
        match (self, failed) {
            (Self::Fix, false) => Operation::Fixing,
            (Self::Fix, true) => Operation::FixingError,
            (Self::Recreate, false) => Operation::Recreating,
            (Self::Recreate, true) => Operation::RecreatingError,
            (Self::Move { .. }, false) => Operation::Resharding,
            (Self::Move { .. }, true) => Operation::ReshardingError,
            (Self::Reset(_), false) => Operation::Resetting,
            (Self::Reset(_), true) => Operation::ResettingError,
        }
    }

    /// Whether a repeated call after the end asks for the result instead of starting the work again.
    fn is_polled(self) -> bool {
        matches!(self, Self::Move { .. } | Self::Reset(_))
    }
}

/// The current request, or the last one. Everything here may be lost in a crash: the caller calls again.
#[derive(Debug, Default)]
pub(super) struct Requests(Option<(Request, State)>);

#[derive(Debug)]
enum State {
    Running,
    Ended { at: Instant, result: Result<(), String> },
}

impl Requests {
    /// The request to carry out.
    pub(super) fn running(&self) -> Option<Request> {
        match &self.0 {
            Some((request, State::Running)) => Some(*request),
            _ => None,
        }
    }

    /// Takes a call. `fits` is asked before new work is started. An ended request is forgotten after `retention`.
    pub(super) fn call(
        &mut self,
        request: Request,
        now: Instant,
        retention: Duration,
        fits: impl FnOnce() -> Result<(), String>,
    ) -> Result<Work, Rejection> {
        self.forget(now, retention);
        match &self.0 {
            Some((running, State::Running)) if *running == request => return Ok(Work::Running),
            Some((running, State::Running)) => {
                return Err(Rejection::Conflict(format!(
                    "Robin is {running}: call again when it has finished"
                )));
            }
            Some((ended, State::Ended { result, .. })) if *ended == request => match result {
                Ok(()) if request.is_polled() => return Ok(Work::Completed),
                Ok(()) => {}
                Err(reason) => {
                    let rejected = Rejection::Failed(reason.clone());
                    // The next call starts again.
                    self.0 = None;
                    return Err(rejected);
                }
            },
            _ => {}
        }
        fits().map_err(Rejection::Conflict)?;
        self.0 = Some((request, State::Running));
        Ok(Work::Started)
    }

    /// The driver finished a request.
    pub(super) fn end(&mut self, request: Request, now: Instant, result: Result<(), String>) {
        if self.running() == Some(request) {
            self.0 = Some((request, State::Ended { at: now, result }));
        }
    }

    /// What Robin is doing because of a request, if anything.
    pub(super) fn operation(&mut self, now: Instant, retention: Duration) -> Option<Operation> {
        self.forget(now, retention);
        match &self.0 {
            Some((request, State::Running)) => Some(request.operation(false)),
            Some((request, State::Ended { result: Err(_), .. })) => Some(request.operation(true)),
            _ => None,
        }
    }

    fn forget(&mut self, now: Instant, retention: Duration) {
        self.0
            .take_if(|(_, state)| matches!(state, State::Ended { at, .. } if *at + retention <= now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RETENTION: Duration = Duration::from_secs(30);
    const MOVE: Request = Request::Move {
        from: 3,
        to: 4,
        slots: 0,
    };

    fn call(requests: &mut Requests, request: Request, now: Instant) -> Result<Work, Rejection> {
        requests.call(request, now, RETENTION, || Ok(()))
    }

    #[test]
    fn a_move_is_started_once_and_then_asked_about() {
        let (mut requests, now) = (Requests::default(), Instant::now());
        assert_eq!(call(&mut requests, MOVE, now), Ok(Work::Started));
        assert_eq!(call(&mut requests, MOVE, now), Ok(Work::Running));
        assert_eq!(requests.operation(now, RETENTION), Some(Operation::Resharding));
        let other = call(&mut requests, Request::Fix, now);
        assert!(matches!(other, Err(Rejection::Conflict(reason)) if reason.contains("from server 3 to 4")));
        requests.end(MOVE, now, Ok(()));
        assert_eq!(requests.running(), None);
        for _ in 0..2 {
            assert_eq!(call(&mut requests, MOVE, now), Ok(Work::Completed));
        }
        assert_eq!(call(&mut requests, MOVE, now + RETENTION), Ok(Work::Started));
    }

    #[test]
    fn a_completed_repair_is_started_again() {
        let (mut requests, now) = (Requests::default(), Instant::now());
        for _ in 0..2 {
            assert_eq!(call(&mut requests, Request::Fix, now), Ok(Work::Started));
            assert_eq!(call(&mut requests, Request::Fix, now), Ok(Work::Running));
            requests.end(Request::Fix, now, Ok(()));
        }
    }

    #[test]
    fn a_failure_is_reported_once_and_then_tried_again() {
        let (mut requests, now) = (Requests::default(), Instant::now());
        assert_eq!(call(&mut requests, MOVE, now), Ok(Work::Started));
        requests.end(MOVE, now, Err("c-4 does not respond".to_owned()));
        assert_eq!(requests.operation(now, RETENTION), Some(Operation::ReshardingError));
        let failed = Rejection::Failed("c-4 does not respond".to_owned());
        assert_eq!(call(&mut requests, MOVE, now), Err(failed));
        assert_eq!(call(&mut requests, MOVE, now), Ok(Work::Started));
    }

    #[test]
    fn a_request_that_does_not_fit_is_not_started() {
        let (mut requests, now) = (Requests::default(), Instant::now());
        let rejected = requests.call(MOVE, now, RETENTION, || Err("no".to_owned()));
        assert_eq!(rejected, Err(Rejection::Conflict("no".to_owned())));
        assert_eq!(requests.running(), None);
        // The result of an earlier request is not a request of the same kind that runs.
        requests.end(MOVE, now, Ok(()));
        assert_eq!(requests.operation(now, RETENTION), None);
    }
}

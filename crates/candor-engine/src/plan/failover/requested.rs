//! A failover that a user requests: executed when only configuration is left to do, and answered whether it succeeds
//! or not.

use valkey_admin::NodeId;

use super::super::stage::SOON;
use super::super::{Plan, Stage, View};
use crate::model::{FailoverRequest, MemberRef};
use crate::observation::{Facts, Member};
use crate::step::{FailoverBy, Step};

/// After this many rejections by a server the failover is not retried, and the user gets the reason.
const TRIES: u32 = 5;

/// The decision about a request.
enum Request {
    /// It is done: the shard has another primary.
    Done,
    /// It cannot be done.
    Impossible(String),
    /// Promote this replica.
    To(MemberRef),
    /// Not now: slots of the shard are being migrated, or not every member knows yet that the two belong to one shard.
    Later,
}

impl View<'_> {
    /// Plans a planned failover of the named primary, with the primary's help: no acknowledged write is lost.
    pub(in crate::plan) fn requested_failover(&self) -> Option<Plan> {
        let handover = self.asked()?.ok()?;
        let Request::To(to) = self.judge(&handover) else {
            return None;
        };
        let stage = Stage::FailingOver {
            shard: handover.shard,
            to: Some(to),
            drained: false,
        };
        let by = FailoverBy::Planned;
        Some(Plan::new(stage, vec![Step::Failover { to, by }]))
    }

    /// Removes a request that is done or impossible, whatever else is in progress. A rejected spec blocks replacing
    /// members, but does not block a requested failover.
    pub(in crate::plan) fn clear_failover_request(&self, plan: &mut Plan) {
        let rejected = match self.asked() {
            None => return,
            Some(Err(message)) => Some(message),
            Some(Ok(handover)) => match self.judge(&handover) {
                Request::Done => None,
                Request::Impossible(message) => Some(message),
                Request::To(to) if matches!(plan.stage, Stage::Rejected { .. } | Stage::Stuck { member: None, .. }) => {
                    let by = FailoverBy::Planned;
                    plan.steps.push(Step::Failover { to, by });
                    plan.requeue_after = SOON;
                    return;
                }
                Request::To(_) | Request::Later => return,
            },
        };
        plan.steps.push(Step::ClearFailoverRequest { rejected });
    }

    /// A member that responds and is not in sync because of the operator's own failover: its shard has a new primary,
    /// which the old primary and the other replicas now have to replicate.
    pub(in crate::plan) fn follows_planned_failover(&self, at: MemberRef, member: &Member) -> bool {
        let Some((primary_at, primary)) = self.observed.primary(at.shard) else {
            return false;
        };
        let asked = self.asked().and_then(Result::ok);
        let asked = asked.is_some_and(|asked| asked.shard == at.shard && asked.from != primary.id);
        let evacuated = self.memory.candidate == Some(primary_at);
        (asked || evacuated) && member.facts().is_some_and(|facts| !facts.loading)
    }

    /// The primary that a user wants to replace.
    pub(in crate::plan) fn requested_from(&self) -> Option<NodeId> {
        Some(self.asked()?.ok()?.from)
    }

    fn asked(&self) -> Option<Result<FailoverRequest, String>> {
        let asked = self.desired.failover.as_ref()?;
        Some(asked.as_ref().copied().map_err(ToString::to_string))
    }

    fn judge(&self, asked: &FailoverRequest) -> Request {
        let shard = asked.shard;
        let Some((primary_at, primary)) = self.observed.primary(shard) else {
            return Request::Impossible(format!("shard {shard} has no primary"));
        };
        if primary.id != asked.from {
            return Request::Done;
        }
        if shard.0 >= self.desired.shards {
            return Request::Impossible(format!("shard {shard} is on its way out"));
        }
        let of_it = self.memory.candidate.is_none_or(|candidate| candidate.shard == shard);
        if of_it && self.memory.failovers_rejected >= TRIES {
            return Request::Impossible(format!("it was refused {TRIES} times"));
        }
        let rejected = self.attempts.rejected_failovers(shard).filter(|one| one.times >= TRIES);
        if let Some(rejected) = rejected {
            return Request::Impossible(format!("servers rejected it {TRIES} times: {}", rejected.message));
        }
        if self.is_moving(shard) {
            return Request::Later;
        }
        if let Some(to) = asked.to {
            return match self.unfit(primary_at, to) {
                Some(message) => Request::Impossible(message),
                None if self.are_known_as_one(primary_at, to) => Request::To(to),
                None => Request::Later,
            };
        }
        match self.plan_failover(primary_at) {
            Some(Step::Failover { to, .. }) => Request::To(to),
            _ if self.planned_candidate(primary_at).is_some() => Request::Later,
            _ => Request::Impossible(format!("shard {shard} has no replica in sync")),
        }
    }

    /// Why a member cannot be promoted in place of this primary.
    fn unfit(&self, primary_at: MemberRef, to: MemberRef) -> Option<String> {
        let facts = self.observed.members.get(&to).and_then(Member::facts);
        let synced = |facts: &Facts| facts.in_sync && !facts.is_primary() && !facts.loading;
        if to.shard != primary_at.shard || !self.desired.includes(to) {
            Some(format!("member {to} is none of shard {}", primary_at.shard))
        } else if to == primary_at {
            Some(format!("member {to} is the primary already"))
        } else if !self.stays(to) && self.observed.shard(to.shard).any(|(_, other)| other.stays()) {
            Some(format!(
                "member {to} is on a node that takes no new pods, or on its way out"
            ))
        } else if facts.is_some_and(synced) {
            None
        } else {
            Some(format!("member {to} is not in sync"))
        }
    }
}

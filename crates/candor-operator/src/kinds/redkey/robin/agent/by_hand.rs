//! Requests of the HTTP API, carried out step by step. They are how a person works in Maintenance: Robin does nothing by
//! itself then, and the desired state is what the request names.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use candor_api::redkey::MAINTENANCE;
use candor_engine::attempts::Attempts;
use candor_engine::kinds::redkey::operation::Planned;
use candor_engine::model::{MemberRef, ShardIndex};
use candor_engine::observation::{Facts, Member, Observation};
use candor_engine::outcome::Failure;
use candor_engine::slots::SlotMove;
use candor_engine::step::Step;
use tokio::time::Instant;
use valkey_admin::{NodeId, SlotRange, SlotSet};

use super::super::api::RobinStatus;
use super::driver::{Driven, Round};
use super::planning::{Planning, is_for_servers, operation, planned_for};
use super::requests::Request;

/// A request that makes no progress for this long has failed.
const PATIENCE: Duration = Duration::from_secs(120);

/// When the next round of a request begins.
const BY_HAND: Duration = Duration::from_millis(100);

/// The progress of the running request. Everything here may be lost in a crash: the caller calls again.
#[derive(Default)]
pub(super) struct ByHand(Mutex<Option<Started>>);

/// What was decided when a request began.
#[derive(Clone, Debug)]
struct Started {
    request: Request,
    at: Instant,
    /// The slots to move.
    slots: SlotSet,
    /// The nodes to reset, by their ids before.
    ids: BTreeSet<NodeId>,
}

/// What to do next for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Execute these, with every server in a shard of its own.
    Steps(Vec<Step>),
    /// Execute the server half of the plan by hand.
    Plan,
    /// It is finished.
    Ended(Result<(), String>),
}

impl ByHand {
    /// The next steps of a request. `planned` is the plan by hand: without pause, for the requested topology.
    pub(super) fn next(&self, request: &Request, alone: &Observation, planned: &Planned) -> Next {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let started = match state.as_ref().filter(|started| started.request == *request) {
            Some(started) => started.clone(),
            None => match Started::new(*request, alone) {
                Ok(started) => state.insert(started).clone(),
                Err(reason) => return Next::Ended(Err(reason)),
            },
        };
        let next = started.next(alone, planned);
        if matches!(next, Next::Ended(_)) {
            *state = None;
        }
        next
    }

    /// Forgets a request that was given up.
    pub(super) fn forget(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// The servers, each in a shard of its own: a request names servers, not shards.
pub(super) fn alone(round: &Round<'_>, member: impl Fn(u32) -> Option<Member>) -> Observation {
    let members = round.pods.keys().filter_map(|ordinal| {
        let at = MemberRef {
            shard: ShardIndex(*ordinal),
            node: *ordinal,
        };
        Some((at, member(*ordinal)?))
    });
    Observation {
        members: members.collect(),
        objects_ready: true,
        ..Observation::default()
    }
}

fn at(ordinal: u32) -> MemberRef {
    MemberRef {
        shard: ShardIndex(ordinal),
        node: ordinal,
    }
}

fn facts(alone: &Observation, ordinal: u32) -> Result<&Facts, String> {
    let member = alone.members.get(&at(ordinal));
    let facts = member.and_then(Member::facts);
    facts.ok_or_else(|| format!("server {ordinal} does not respond"))
}

impl Started {
    fn new(request: Request, alone: &Observation) -> Result<Self, String> {
        let mut started = Self {
            request,
            at: Instant::now(),
            slots: SlotSet::new(),
            ids: BTreeSet::new(),
        };
        match request {
            Request::Move { from, to, slots } => {
                let owned = facts(alone, from)?.slots();
                if !facts(alone, to)?.is_primary() {
                    return Err(format!("server {to} is a replica: slots are moved between primaries"));
                }
                let most = if slots == 0 { owned.len() } else { usize::from(slots) };
                if owned.len() < most {
                    return Err(format!("server {from} owns {} slots, not {most}", owned.len()));
                }
                started.slots = owned.iter().take(most).map(SlotRange::from).collect();
            }
            Request::Reset(server) => {
                let facts = facts(alone, server)?;
                if !facts.slots().is_empty() {
                    let owned = facts.slots().len();
                    return Err(format!("server {server} owns {owned} slots: move them away first"));
                }
                started.ids.insert(facts.id);
            }
            Request::Recreate => {
                for ordinal in alone.members.keys().map(|at| at.node) {
                    started.ids.insert(facts(alone, ordinal)?.id);
                }
            }
            Request::Fix => {}
        }
        Ok(started)
    }

    fn next(&self, alone: &Observation, planned: &Planned) -> Next {
        match self.request {
            Request::Move { from, to, .. } => self.move_slots(alone, from, to),
            _ if self.at.elapsed() > PATIENCE => {
                let stage = &planned.plan.stage;
                Next::Ended(Err(format!("no end in {} s: {stage}", PATIENCE.as_secs())))
            }
            Request::Reset(_) => self.reset(alone).unwrap_or(Next::Ended(Ok(()))),
            Request::Recreate => self.reset(alone).unwrap_or_else(|| plan(planned)),
            Request::Fix => plan(planned),
        }
    }

    /// Moves the slots that the destination does not own yet.
    fn move_slots(&self, alone: &Observation, from: u32, to: u32) -> Next {
        let owned = match (facts(alone, from), facts(alone, to)) {
            (Ok(_), Ok(to)) => to.slots(),
            (Err(reason), _) | (_, Err(reason)) => return Next::Ended(Err(reason)),
        };
        let slots = self.slots.difference(&owned);
        if slots.is_empty() {
            return Next::Ended(Ok(()));
        }
        let (from, to) = (ShardIndex(from), ShardIndex(to));
        Next::Steps(vec![Step::MoveSlots {
            moves: vec![SlotMove { from, to, slots }],
            legacy: false,
        }])
    }

    /// Resets the nodes that still have their old ids, and makes the others forget these ids. None when both is done.
    fn reset(&self, alone: &Observation) -> Option<Next> {
        let old: Vec<Step> = alone
            .answering()
            .filter(|(_, facts)| self.ids.contains(&facts.id))
            .map(|(at, _)| Step::Reset(at))
            .collect();
        if !old.is_empty() {
            return Some(Next::Steps(old));
        }
        let knowing = alone.answering().flat_map(|(at, facts)| {
            let entries = facts.map.0.iter().filter(|entry| self.ids.contains(&entry.id));
            entries.map(move |entry| Step::Forget { at, node: entry.id })
        });
        let knowing: Vec<Step> = knowing.collect();
        (!knowing.is_empty()).then_some(Next::Steps(knowing))
    }
}

/// What the plan by hand leaves to do.
fn plan(planned: &Planned) -> Next {
    if planned.plan.stage.is_settled() {
        Next::Ended(Ok(()))
    } else {
        Next::Plan
    }
}

/// What a person asks Robin to do in Maintenance.
#[derive(Clone, Copy)]
pub(super) enum Hand<'a> {
    /// A request.
    Request(&'a Request),
    /// Another topology than that of the spec.
    Topology,
}

impl<'a> Hand<'a> {
    /// What is asked for in this round.
    pub(super) fn of(round: &Round<'a>) -> Option<Self> {
        if round.status != RobinStatus::Maintenance {
            return None;
        }
        if let Some(request) = round.request {
            return Some(Self::Request(request));
        }
        let spec = &round.cluster.spec;
        let of_spec = (spec.primaries, spec.replicas_per_primary);
        let number = |count: u32| i32::try_from(count).unwrap_or(i32::MAX);
        let asked = (
            number(round.replicas.primaries),
            number(round.replicas.replicas_per_primary),
        );
        (asked != of_spec && asked.0 > 0).then_some(Self::Topology)
    }
}

impl Planning {
    /// One round of what a person asked for. The report is about the plan of the spec, which stays as it is.
    pub(super) async fn drive_by_hand(
        &self,
        round: &Round<'_>,
        of_spec: &Planned,
        mut attempts: Attempts,
        hand: Hand<'_>,
    ) -> Driven {
        let anew = matches!(hand, Hand::Request(Request::Recreate));
        let planned = planned_by_hand(round, &attempts, anew).unwrap_or_else(|| of_spec.clone());
        let alone = alone(round, |ordinal| {
            let mut members = planned.observed.members.iter();
            members
                .find(|(at, _)| at.node == ordinal)
                .map(|(_, member)| member.clone())
        });
        let next = match hand {
            Hand::Request(request) => self.by_hand.next(request, &alone, &planned),
            Hand::Topology if planned.plan.stage.is_settled() => Next::Ended(Ok(())),
            Hand::Topology => Next::Plan,
        };
        let (observation, steps) = match &next {
            Next::Steps(steps) => (&alone, steps.clone()),
            Next::Plan => (
                &planned.observed,
                planned
                    .plan
                    .steps
                    .iter()
                    .filter(|step| is_for_servers(step))
                    .cloned()
                    .collect(),
            ),
            Next::Ended(_) => (&alone, Vec::new()),
        };
        let mut outcomes = self.execute(round, observation, &steps).await;
        attempts.record(observation, &planned.plan, &mut outcomes, round.now);
        *self.attempts.lock().unwrap_or_else(PoisonError::into_inner) = attempts;
        let failed = outcomes.iter().filter_map(|one| one.result.as_ref().err());
        let failed: Vec<&Failure> = failed.collect();
        let finished = match (next, failed.iter().find(|failure| !failure.unanswered)) {
            (Next::Ended(result), _) => Some(result),
            (Next::Steps(_), Some(rejected)) => {
                self.by_hand.forget();
                Some(Err(rejected.message.clone()))
            }
            _ => None,
        };
        Driven {
            generation: round.cluster.metadata.generation,
            plan_empty: of_spec.plan.stage.is_settled(),
            operation: operation(round, &planned, &steps, !failed.is_empty()),
            rejected: Vec::new(),
            again: finished.is_none().then_some(BY_HAND),
            finished: finished.filter(|_| round.request.is_some()),
        }
    }
}

/// The plan of a person in Maintenance: the topology that was asked for, without pause and without an upgrade. Every key
/// is kept, unless the cluster is formed anew.
fn planned_by_hand(round: &Round<'_>, attempts: &Attempts, anew: bool) -> Option<Planned> {
    let mut cluster = round.cluster.clone();
    cluster.spec.paused = false;
    cluster.spec.purge_keys_on_rebalance = false;
    let number = |count: u32| i32::try_from(count).unwrap_or(i32::MAX);
    cluster.spec.primaries = number(round.replicas.primaries);
    cluster.spec.replicas_per_primary = number(round.replicas.replicas_per_primary);
    if let Some(annotations) = &mut cluster.metadata.annotations {
        annotations.remove(MAINTENANCE);
    }
    let status = cluster.status.get_or_insert_default();
    status.operation = None;
    if anew {
        status.formed = false;
        status.topology.clear();
    }
    let mut planned = planned_for(round, &cluster, attempts, true)?;
    planned.desired.paused = false;
    Some(planned)
}

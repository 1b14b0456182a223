//! `CLUSTER MIGRATESLOTS` (Valkey 9 and later): the source pushes whole ranges and hands them over atomically.
//!
//! The hand-over itself takes milliseconds. What clients notice is what comes after it: the source deletes the keys it
//! has given away before it does anything else, about a quarter of a million a second. So each source has one job
//! at a time, and no job has more keys than it can delete before anybody minds.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::try_join_all;
use tokio::time::{Instant, sleep_until};

use super::{Advance, Move, MoveError, Primaries, SlotMover, primary};
use crate::capability::MoveBy;
use crate::client::Node;
use crate::migrations::{Direction, Migration, Progress};
use crate::{NodeId, SlotSet};

/// Interval between two checks of a running migration, one command each.
const POLL_INTERVAL: Duration = Duration::from_millis(15);
/// Keys of one job, about: a tenth of a second of deleting.
const JOB_KEYS: u64 = 30_000;

/// The mover for servers that push.
#[derive(Clone, Copy, Debug, Default)]
pub struct Push;

impl SlotMover for Push {
    fn by(&self) -> MoveBy {
        MoveBy::Push
    }

    async fn advance(&self, primaries: &Primaries, moves: &[Move], budget: Duration) -> Result<Advance, MoveError> {
        let deadline = Instant::now() + budget;
        let mut by_source: BTreeMap<NodeId, Vec<&Move>> = BTreeMap::new();
        for one in moves {
            by_source.entry(one.from).or_default().push(one);
        }
        let turns = by_source
            .into_iter()
            .map(|(source, moves)| from_source(primaries, source, moves, deadline));
        let mut whole = Advance::default();
        for turn in try_join_all(turns).await? {
            whole.moved = whole.moved.union(&turn.moved);
            whole.left += turn.left;
            whole.failed.extend(turn.failed);
        }
        Ok(whole)
    }
}

/// One source: job after job, until all is moved, one failed, or the time is over. A job under way at that time goes on,
/// and the next turn finds it.
async fn from_source(
    primaries: &Primaries,
    source: NodeId,
    moves: Vec<&Move>,
    deadline: Instant,
) -> Result<Advance, MoveError> {
    let node = primary(primaries, source)?;
    let asked = moves.iter().fold(SlotSet::new(), |all, one| all.union(&one.slots));
    let before = owned_by(node, source).await?;
    let most = slots_of_a_job(node, &before).await?;
    let mut turn = Advance::default();
    let mut jobs = exports(node.slot_migrations().await?);
    // A job that ended in failure before this turn began is not held against it: the caller has seen it.
    let known: Vec<String> = jobs.iter().map(|job| job.name.clone()).collect();
    let owned = loop {
        let failed = |job: &&Migration| matches!(job.progress, Progress::Failed | Progress::Cancelled);
        let failed = jobs.iter().filter(failed).filter(|job| !known.contains(&job.name));
        turn.failed = failed.filter_map(|job| failure(&moves, job)).collect();
        let running = jobs.iter().any(|job| job.progress == Progress::Running);
        if !running {
            let owned = owned_by(node, source).await?;
            let next = moves
                .iter()
                .map(|one| {
                    (
                        one.slots.intersection(&owned).iter().take(most).collect::<SlotSet>(),
                        one.to,
                    )
                })
                .find(|(slots, _)| !slots.is_empty());
            match next {
                Some(next) if turn.failed.is_empty() => node.migrate_slots(&[next]).await?,
                _ => break owned,
            }
        }
        if Instant::now() + POLL_INTERVAL > deadline {
            break owned_by(node, source).await?;
        }
        sleep_until(Instant::now() + POLL_INTERVAL).await;
        jobs = exports(node.slot_migrations().await?);
    };
    turn.moved = asked.intersection(&before).difference(&owned);
    turn.left = asked.intersection(&owned).len();
    Ok(turn)
}

/// How many slots a job may have: as many as hold [`JOB_KEYS`] keys, if all are alike.
async fn slots_of_a_job(node: &Node, owned: &SlotSet) -> Result<usize, MoveError> {
    let slots = u64::try_from(owned.len()).unwrap_or(u64::MAX);
    let most = JOB_KEYS.saturating_mul(slots) / node.info(&["keyspace"]).await?.keys.max(1);
    Ok(usize::try_from(most).unwrap_or(usize::MAX).max(1))
}

fn exports(jobs: Vec<Migration>) -> Vec<Migration> {
    jobs.into_iter()
        .filter(|job| job.direction == Direction::Export)
        .collect()
}

fn failure(moves: &[&Move], job: &Migration) -> Option<(Move, String)> {
    let one = moves
        .iter()
        .find(|one| Some(one.to) == job.target && !one.slots.intersection(&job.slots).is_empty())?;
    Some((
        Move {
            slots: job.slots.clone(),
            ..(*one).clone()
        },
        job.message.clone(),
    ))
}

/// What the source itself says it owns.
async fn owned_by(node: &Node, source: NodeId) -> Result<SlotSet, MoveError> {
    let map = node.cluster_nodes().await?;
    Ok(map.get(source).map(|entry| entry.slots.clone()).unwrap_or_default())
}

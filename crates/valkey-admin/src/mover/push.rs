//! `CLUSTER MIGRATESLOTS` (Valkey 9 and later): the source pushes whole ranges and hands them over atomically.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::try_join_all;
use tokio::time::{Instant, sleep_until};

use super::{Advance, Move, MoveError, Primaries, SlotMover, primary};
use crate::capability::MoveBy;
use crate::migrations::{Direction, Migration, Progress};
use crate::{NodeId, SlotSet};

/// How often a running migration is looked at; one local question each time.
const LOOK: Duration = Duration::from_millis(15);

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

/// One source: start what is not under way, then watch until it is over or the time is.
async fn from_source(
    primaries: &Primaries,
    source: NodeId,
    moves: Vec<&Move>,
    deadline: Instant,
) -> Result<Advance, MoveError> {
    let node = primary(primaries, source)?;
    let mut turn = Advance::default();
    let owned = owned_by(primaries, source).await?;
    let jobs = exports(node.slot_migrations().await?);
    let running = jobs.iter().filter(|job| job.progress == Progress::Running);
    let busy = running.fold(SlotSet::new(), |busy, job| busy.union(&job.slots));
    // A job that ended in failure before this turn began is not held against it: the caller has seen it.
    let known: Vec<String> = jobs.into_iter().map(|job| job.name).collect();
    let wanted: Vec<(SlotSet, NodeId)> = moves
        .iter()
        .map(|one| (one.slots.intersection(&owned).difference(&busy), one.to))
        .filter(|(slots, _)| !slots.is_empty())
        .collect();
    if !wanted.is_empty() {
        node.migrate_slots(&wanted).await?;
    }
    loop {
        let jobs = exports(node.slot_migrations().await?);
        let mut any_running = false;
        turn.failed.clear();
        for job in &jobs {
            match job.progress {
                Progress::Running => any_running = true,
                Progress::Failed | Progress::Cancelled if !known.contains(&job.name) => {
                    turn.failed.extend(failure(&moves, job));
                }
                _ => {}
            }
        }
        if !any_running || Instant::now() + LOOK > deadline {
            break;
        }
        sleep_until(Instant::now() + LOOK).await;
    }
    let still = owned_by(primaries, source).await?;
    let asked = moves.iter().fold(SlotSet::new(), |all, one| all.union(&one.slots));
    turn.moved = asked.intersection(&owned).difference(&still);
    turn.left = asked.intersection(&still).len();
    Ok(turn)
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
async fn owned_by(primaries: &Primaries, source: NodeId) -> Result<SlotSet, MoveError> {
    let map = primary(primaries, source)?.cluster_nodes().await?;
    Ok(map.get(source).map(|entry| entry.slots.clone()).unwrap_or_default())
}

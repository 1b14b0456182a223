//! Slot migration on servers without built-in slot migration.

use std::time::{Duration, Instant};

use valkey_admin::SlotSet;
use valkey_admin::mover::{Legacy, Move, SlotMover};

use crate::keys::{self, node};
use crate::manual;
use crate::servers::{Generation, Primaries};
use crate::table::{Row, each, median, seconds};
use crate::{Result, Sizes};

/// From three primaries of Valkey 8.0 to five: 6,554 slots and two fifths of the keys change their owner. The operator
/// and the manual baseline run in turns, because a single round says little.
pub async fn legacy(sizes: Sizes) -> Result<Vec<Row>> {
    const ROUNDS: usize = 3;
    let all = 0..sizes.moved_keys / 2 * 5;
    let (mut movers, mut manual_times, mut slots) = (Vec::new(), Vec::new(), 0);
    for _ in 0..ROUNDS {
        let (took, moved) = by_mover(all.clone()).await?;
        movers.push(took);
        slots = moved;
        let primaries = Primaries::start(Generation::Eight, 5, 3).await?;
        keys::fill(primaries.members[0], all.clone()).await?;
        let patience = Duration::from_secs(150);
        manual_times.push(manual::rebalance(Generation::Eight, primaries.members[0], patience).await?);
    }
    let (ours, manual_time) = (median(&movers), median(&manual_times));
    let ratio = manual_time.as_secs_f64() / ours.as_secs_f64();
    let row = Row::new(
        &format!(
            "the legacy mover on Valkey 8.0, {slots} slots with {} keys",
            sizes.moved_keys
        ),
        "4 times faster than by hand",
        format!("{} ({ratio:.1} times faster; rounds: {})", seconds(ours), each(&movers)),
        ratio >= 4.0,
    );
    Ok(vec![row.manual(format!(
        "{} (rounds: {})",
        seconds(manual_time),
        each(&manual_times)
    ))])
}

async fn by_mover(all: std::ops::Range<u32>) -> Result<(Duration, usize)> {
    let primaries = Primaries::start(Generation::Eight, 5, 3).await?;
    keys::fill(primaries.members[0], all.clone()).await?;
    let mut nodes = valkey_admin::mover::Primaries::new();
    let mut ids = Vec::new();
    for member in &primaries.members {
        let node = node(*member);
        let id = node.my_id().await?;
        ids.push(id);
        nodes.insert(id, node);
    }
    let owned = keys::owners(primaries.members[0]).await?;
    let mut moves = Vec::new();
    for (from, member) in ids.iter().zip(&primaries.members).take(3) {
        let (_, slots) = owned
            .iter()
            .find(|(address, _)| address == member)
            .ok_or("a primary lost its slots")?;
        // Each primary keeps a fifth of all slots and gives half of the rest to each of the two empty primaries.
        let leaving: Vec<_> = slots.iter().skip(16384 / 5).collect();
        let (one, other) = leaving.split_at(leaving.len() / 2);
        for (slots, to) in [(one, ids[3]), (other, ids[4])] {
            moves.push(Move {
                from: *from,
                to,
                slots: slots.iter().copied().collect::<SlotSet>(),
            });
        }
    }
    let slots = moves.iter().map(|piece| piece.slots.len()).sum();
    let mover = Legacy::default();
    let begun = Instant::now();
    loop {
        let turn = mover.advance(&nodes, &moves, Duration::from_millis(300)).await?;
        if let Some((_, words)) = turn.failed.first() {
            return Err(format!("the mover gave up: {words}").into());
        }
        if turn.done() {
            break;
        }
        if begun.elapsed() > Duration::from_secs(120) {
            return Err(format!("{} slots are left after 120 s", turn.left).into());
        }
    }
    let took = begun.elapsed();
    match keys::missing(primaries.members[0], all).await? {
        0 => Ok((took, slots)),
        gone => Err(format!("{gone} keys are gone after the move").into()),
    }
}

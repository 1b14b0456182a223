//! `SETSLOT`, `GETKEYSINSLOT`, `MIGRATE`: slot by slot, for every server. Several slots are in flight at once, and
//! keys travel in batches by size, so that no batch holds the source up for long.
//!
//! The order of commands for one slot is what makes it safe to be killed between any two: the destination is
//! marked before the source (else a client would be sent to a node that refuses it), and the new owner is told
//! first (else a crash could leave the slot with nobody).

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::{join_all, try_join_all};
use futures::stream::{self, StreamExt};
use redis::cmd;
use tokio::time::Instant;

use super::{Advance, Move, MoveError, Primaries, SlotMover, primary};
use crate::capability::MoveBy;
use crate::client::{Credentials, Node, NodeError, SetSlot};
use crate::nodes::Mark;
use crate::{NodeId, Slot, SlotSet};

/// How many keys are asked for at once.
const LISTED: usize = 1000;
/// A batch holds at most so many bytes, or a single larger key.
const BATCH_BYTES: u64 = 256 * 1024;
/// How long one MIGRATE may take inside the server.
const MIGRATE_WITHIN: Duration = Duration::from_secs(10);

/// The mover for servers without a better way.
#[derive(Clone, Debug)]
pub struct Legacy {
    /// Whom the source is to be to the destination; absent: the default user.
    pub credentials: Option<Credentials>,
    /// Slots in flight at one source.
    pub in_flight: usize,
}

impl Default for Legacy {
    fn default() -> Self {
        Self {
            credentials: None,
            in_flight: 16,
        }
    }
}

/// Until when a turn begins slots, and until when it goes on with those it has begun.
#[derive(Clone, Copy)]
struct Until {
    begin: Instant,
    arrive: Instant,
}

/// One slot's way.
struct Journey<'a> {
    slot: Slot,
    from: (NodeId, &'a Node),
    to: (NodeId, &'a Node),
}

impl SlotMover for Legacy {
    fn by(&self) -> MoveBy {
        MoveBy::Legacy
    }

    async fn advance(&self, primaries: &Primaries, moves: &[Move], budget: Duration) -> Result<Advance, MoveError> {
        let begin = Instant::now() + budget;
        let until = Until {
            begin,
            // As long again: a slot that is half moved makes clients ask twice.
            arrive: begin + budget,
        };
        let mut by_source: BTreeMap<NodeId, Vec<Journey<'_>>> = BTreeMap::new();
        for one in moves {
            let (from, to) = (primary(primaries, one.from)?, primary(primaries, one.to)?);
            let journeys = by_source.entry(one.from).or_default();
            journeys.extend(one.slots.iter().map(|slot| Journey {
                slot,
                from: (one.from, from),
                to: (one.to, to),
            }));
        }
        let turns = by_source
            .into_iter()
            .map(|(source, journeys)| self.leave(primaries, source, journeys, until));
        let mut whole = Advance::default();
        for turn in try_join_all(turns).await? {
            whole.moved = whole.moved.union(&turn.moved);
            whole.left += turn.left;
            whole.failed.extend(turn.failed);
        }
        Ok(whole)
    }
}

impl Legacy {
    async fn leave(
        &self,
        primaries: &Primaries,
        source: NodeId,
        mut journeys: Vec<Journey<'_>>,
        until: Until,
    ) -> Result<Advance, MoveError> {
        let map = primary(primaries, source)?.cluster_nodes().await?;
        let me = map.get(source);
        let owned = me.map(|entry| entry.slots.clone()).unwrap_or_default();
        journeys.retain(|journey| owned.contains(journey.slot));
        // What an earlier turn began is finished first, so that few slots are ever half-way.
        let begun: SlotSet = me
            .map(|entry| entry.marks.iter().filter_map(leaving).collect())
            .unwrap_or_default();
        journeys.sort_by_key(|journey| (!begun.contains(journey.slot), journey.slot));
        let total = journeys.len();
        let mut turn = Advance::default();
        let attempts: Vec<_> = journeys
            .into_iter()
            .map(|journey| self.attempt(primaries, journey, until))
            .collect();
        let mut travels = stream::iter(attempts).buffer_unordered(self.in_flight);
        while let Some((journey, moved)) = travels.next().await {
            match moved {
                Ok(true) => {
                    turn.moved.insert(journey.slot);
                }
                Ok(false) => {}
                Err(error) => {
                    let slots = SlotSet::from_iter([journey.slot]);
                    turn.failed.push((
                        Move {
                            from: journey.from.0,
                            to: journey.to.0,
                            slots,
                        },
                        error.to_string(),
                    ));
                }
            }
        }
        turn.left = total - turn.moved.len();
        Ok(turn)
    }

    async fn attempt<'a>(
        &self,
        primaries: &Primaries,
        journey: Journey<'a>,
        until: Until,
    ) -> (Journey<'a>, Result<bool, NodeError>) {
        let moved = if Instant::now() < until.begin {
            self.travel(primaries, &journey, until.arrive).await
        } else {
            Ok(false)
        };
        (journey, moved)
    }

    /// Moves one slot; false when the time was over first.
    async fn travel(&self, primaries: &Primaries, journey: &Journey<'_>, deadline: Instant) -> Result<bool, NodeError> {
        let Journey { slot, from, to } = *journey;
        to.1.set_slot(slot, SetSlot::Importing(from.0)).await?;
        from.1.set_slot(slot, SetSlot::Migrating(to.0)).await?;
        loop {
            let keys = from.1.keys_in_slot(slot, LISTED).await?;
            if keys.is_empty() {
                break;
            }
            for batch in by_size(from.1, keys).await? {
                self.migrate(from.1, to.1, &batch).await?;
                if Instant::now() >= deadline {
                    return Ok(false);
                }
            }
        }
        to.1.set_slot(slot, SetSlot::Node(to.0)).await?;
        from.1.set_slot(slot, SetSlot::Node(to.0)).await?;
        // Gossip tells the others too; telling them spares clients a redirection in between.
        let others = primaries.iter().filter(|(id, _)| **id != from.0 && **id != to.0);
        join_all(others.map(|(_, node)| node.set_slot(slot, SetSlot::Node(to.0)))).await;
        Ok(true)
    }

    async fn migrate(&self, from: &Node, to: &Node, keys: &[Vec<u8>]) -> Result<(), NodeError> {
        let address = to.address();
        let mut command = cmd("MIGRATE");
        command
            .arg(address.ip().to_string())
            .arg(address.port())
            .arg("")
            .arg(0)
            .arg(millis(MIGRATE_WITHIN));
        // A key that the destination already has is from an earlier try whose answer was lost: ours is newer,
        // because the source served writes until now.
        command.arg("REPLACE");
        if let Some(credentials) = &self.credentials {
            command.arg("AUTH2").arg(&credentials.user).arg(&credentials.password);
        }
        command.arg("KEYS").arg(keys);
        from.ask_within(&command, MIGRATE_WITHIN).await.map(drop)
    }
}

fn leaving(mark: &Mark) -> Option<Slot> {
    match mark {
        Mark::Migrating { slot, .. } => Some(*slot),
        Mark::Importing { .. } => None,
    }
}

/// Cuts a list of keys into batches of at most [`BATCH_BYTES`].
async fn by_size(node: &Node, keys: Vec<Vec<u8>>) -> Result<Vec<Vec<Vec<u8>>>, NodeError> {
    let sizes = try_join_all(keys.iter().map(|key| node.memory_usage(key))).await?;
    let mut batches: Vec<Vec<Vec<u8>>> = Vec::new();
    let mut filled = BATCH_BYTES;
    for (key, size) in keys.into_iter().zip(sizes) {
        match batches.last_mut() {
            Some(batch) if filled + size <= BATCH_BYTES => batch.push(key),
            _ => {
                batches.push(vec![key]);
                filled = 0;
            }
        }
        filled += size;
    }
    Ok(batches)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

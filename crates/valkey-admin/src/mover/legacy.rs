//! `SETSLOT`, `GETKEYSINSLOT`, `MIGRATE`: slot by slot, for every server. Slots travel in convoys, and keys in batches
//! by size, so that no batch holds the source up for long.
//!
//! The order of commands for one slot is what makes it safe to be killed between any two: the destination is
//! marked before the source (else a client would be sent to a node that refuses it), and the slot is assigned
//! at the new owner first (else a crash could leave it without an owner).
//!
//! Why convoys: a server writes its map to the disk, and waits for the disk, once for all `SETSLOT`s that reach it
//! together, but once for each that comes alone.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures::future::{join_all, try_join_all};
use redis::cmd;
use tokio::sync::Semaphore;
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
/// Batches that wait at one source: one that it works on, and the next, so that it is never without work. More would
/// be worked off in a row, and clients would wait for all of them.
const BATCHES: usize = 2;

/// Slots in the first convoy of a turn, and in the largest one.
const CONVOY: (usize, usize) = (16, 64);
/// A convoy that arrives sooner than this is followed by a larger one; one that takes twice as long, by a smaller one.
const ARRIVES: Duration = Duration::from_millis(100);
/// Convoys under way at one source.
const IN_FLIGHT: usize = 2;

/// The mover for servers without a better way.
#[derive(Clone, Debug, Default)]
pub struct Legacy {
    /// Credentials that the source uses at the destination; absent: the default user.
    pub credentials: Option<Credentials>,
}

/// Until when a turn begins slots, and until when it goes on with those it has begun.
#[derive(Clone, Copy)]
struct Until {
    begin: Instant,
    arrive: Instant,
}

/// A node by its name.
type Named<'a> = (NodeId, &'a Node);

/// Slots that travel together.
struct Convoy<'a> {
    slots: Vec<Slot>,
    from: Named<'a>,
    to: Named<'a>,
}

/// The slots that have not left, and how many leave together.
struct Remaining<'r, 'a> {
    rest: &'r [(Slot, Named<'a>)],
    size: usize,
}

impl<'a> Remaining<'_, 'a> {
    /// The next slots with the same destination.
    fn next(&mut self, from: Named<'a>) -> Option<Convoy<'a>> {
        let to = self.rest.first()?.1;
        let same_way = self.rest.iter().take(self.size).take_while(|(_, one)| one.0 == to.0);
        let (convoy, rest) = self.rest.split_at(same_way.count());
        self.rest = rest;
        Some(Convoy {
            slots: convoy.iter().map(|(slot, _)| *slot).collect(),
            from,
            to,
        })
    }

    /// Each convoy costs both servers two writes to their disks, however many slots are in it. But the more slots are
    /// half moved, the more clients ask twice.
    fn adapt(&mut self, took: Duration) {
        if took < ARRIVES {
            self.size = (self.size * 2).min(CONVOY.1);
        } else if took > ARRIVES * 2 {
            self.size = (self.size / 2).max(1);
        }
    }
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
        let mut by_source: BTreeMap<NodeId, Vec<(Slot, Named<'_>)>> = BTreeMap::new();
        for one in moves {
            let to = (one.to, primary(primaries, one.to)?);
            let leaving = by_source.entry(one.from).or_default();
            leaving.extend(one.slots.iter().map(|slot| (slot, to)));
        }
        let turns = by_source
            .into_iter()
            .map(|(source, leaving)| self.leave(primaries, source, leaving, until));
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
        mut leaving: Vec<(Slot, Named<'_>)>,
        until: Until,
    ) -> Result<Advance, MoveError> {
        let from = (source, primary(primaries, source)?);
        let map = from.1.cluster_nodes().await?;
        let me = map.get(source);
        let owned = me.map(|entry| entry.slots.clone()).unwrap_or_default();
        leaving.retain(|(slot, _)| owned.contains(*slot));
        // What an earlier turn began is finished first, so that few slots are ever half-way.
        let begun: SlotSet = me
            .map(|entry| entry.marks.iter().filter_map(marked_to_leave).collect())
            .unwrap_or_default();
        leaving.sort_by_key(|(slot, to)| (!begun.contains(*slot), to.0, *slot));
        let total = leaving.len();
        let batches = Semaphore::new(BATCHES);
        let remaining = Mutex::new(Remaining {
            rest: &leaving,
            size: CONVOY.0,
        });
        let senders = (0..IN_FLIGHT).map(|_| self.send_convoys(primaries, from, &remaining, &batches, until));
        let mut turn = Advance::default();
        for sent in join_all(senders).await {
            turn.moved = turn.moved.union(&sent.moved);
            turn.failed.extend(sent.failed);
        }
        self.confirm(source, &leaving, &mut turn).await?;
        turn.left = total - turn.moved.len();
        Ok(turn)
    }

    /// Has every new owner say that it is. The old owner's word that was on its way while the slot changed hands can
    /// still be the newer one for the new owner (a collision of epochs is resolved at any time), and then each of
    /// the two believes the other to be the owner.
    async fn confirm(
        &self,
        source: NodeId,
        leaving: &[(Slot, Named<'_>)],
        turn: &mut Advance,
    ) -> Result<(), MoveError> {
        for same_way in leaving.chunk_by(|(_, one), (_, other)| one.0 == other.0) {
            let to = same_way[0].1;
            let moved = same_way
                .iter()
                .map(|(slot, _)| *slot)
                .filter(|slot| turn.moved.contains(*slot));
            let moved: SlotSet = moved.collect();
            if moved.is_empty() {
                continue;
            }
            let map = to.1.cluster_nodes().await?;
            let owned = map.get(to.0).map(|entry| entry.slots.clone()).unwrap_or_default();
            let mut failed = Vec::new();
            let given_back = moved.difference(&owned).iter().collect();
            each(given_back, &mut failed, |slot| to.1.set_slot(slot, SetSlot::Node(to.0))).await;
            for (slot, error) in failed {
                turn.moved.remove(slot);
                turn.failed.push(failure((source, to.0), slot, &error));
            }
        }
        Ok(())
    }

    /// Sends one convoy after the other until the time is over.
    async fn send_convoys<'a>(
        &self,
        primaries: &Primaries,
        from: Named<'a>,
        remaining: &Mutex<Remaining<'_, 'a>>,
        batches: &Semaphore,
        until: Until,
    ) -> Advance {
        let next = || remaining.lock().unwrap_or_else(PoisonError::into_inner).next(from);
        let mut whole = Advance::default();
        while Instant::now() < until.begin
            && let Some(convoy) = next()
        {
            let begun = Instant::now();
            let one = self.travel(primaries, convoy, batches, until.arrive).await;
            whole.moved = whole.moved.union(&one.moved);
            whole.failed.extend(one.failed);
            remaining
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .adapt(begun.elapsed());
        }
        whole
    }

    /// Moves the slots of one convoy. One that fails does not hold the others up, and slots with keys left when the
    /// time is over stay at the source.
    async fn travel(
        &self,
        primaries: &Primaries,
        convoy: Convoy<'_>,
        batches: &Semaphore,
        deadline: Instant,
    ) -> Advance {
        let Convoy { slots, from, to } = convoy;
        let mut failed = Vec::new();
        let slots = each(slots, &mut failed, |slot| {
            to.1.set_slot(slot, SetSlot::Importing(from.0))
        })
        .await;
        let slots = each(slots, &mut failed, |slot| {
            from.1.set_slot(slot, SetSlot::Migrating(to.0))
        })
        .await;
        let mut emptied = Vec::new();
        let empties = slots
            .iter()
            .map(|slot| self.empty(*slot, from.1, to.1, batches, deadline));
        for (slot, empty) in slots.iter().zip(join_all(empties).await) {
            match empty {
                Ok(true) => emptied.push(*slot),
                Ok(false) => {}
                Err(error) => failed.push((*slot, error)),
            }
        }
        let owned = SetSlot::Node(to.0);
        let slots = each(emptied, &mut failed, |slot| to.1.set_slot(slot, owned)).await;
        let slots = each(slots, &mut failed, |slot| from.1.set_slot(slot, owned)).await;
        // Gossip tells the others too; telling them spares clients a redirection in between.
        let others = primaries.iter().filter(|(id, _)| **id != from.0 && **id != to.0);
        join_all(others.flat_map(|(_, node)| slots.iter().map(|slot| node.set_slot(*slot, owned)))).await;
        let failure = |(slot, error): (Slot, NodeError)| failure((from.0, to.0), slot, &error);
        Advance {
            moved: slots.into_iter().collect(),
            left: 0,
            failed: failed.into_iter().map(failure).collect(),
        }
    }

    /// Moves the keys of one slot; false when the time was over first.
    async fn empty(
        &self,
        slot: Slot,
        from: &Node,
        to: &Node,
        batches: &Semaphore,
        deadline: Instant,
    ) -> Result<bool, NodeError> {
        loop {
            let keys = from.keys_in_slot(slot, LISTED).await?;
            if keys.is_empty() {
                return Ok(true);
            }
            for batch in by_size(from, keys).await? {
                let _turn = batches.acquire().await;
                self.migrate(from, to, &batch).await?;
                if Instant::now() >= deadline {
                    return Ok(false);
                }
            }
        }
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
        // A key that the destination already has is from an earlier try with a lost reply: the source's is newer,
        // because the source served writes until now.
        command.arg("REPLACE");
        if let Some(credentials) = &self.credentials {
            command.arg("AUTH2").arg(&credentials.user).arg(&credentials.password);
        }
        command.arg("KEYS").arg(keys);
        from.ask_within(&command, MIGRATE_WITHIN).await.map(drop)
    }
}

fn failure((from, to): (NodeId, NodeId), slot: Slot, error: &NodeError) -> (Move, String) {
    let slots = SlotSet::from_iter([slot]);
    (Move { from, to, slots }, error.to_string())
}

/// Does the same for every slot at once; those it was done for.
async fn each<F: Future<Output = Result<(), NodeError>>>(
    slots: Vec<Slot>,
    failed: &mut Vec<(Slot, NodeError)>,
    order: impl Fn(Slot) -> F,
) -> Vec<Slot> {
    let answers = join_all(slots.iter().map(|slot| order(*slot))).await;
    let mut done = Vec::with_capacity(slots.len());
    for (slot, answer) in slots.into_iter().zip(answers) {
        match answer {
            Ok(()) => done.push(slot),
            Err(error) => failed.push((slot, error)),
        }
    }
    done
}

fn marked_to_leave(mark: &Mark) -> Option<Slot> {
    match mark {
        Mark::Migrating { slot, .. } => Some(*slot),
        Mark::Importing { .. } => None,
    }
}

/// Cuts a list of keys into batches of at most [`BATCH_BYTES`].
async fn by_size(node: &Node, keys: Vec<Vec<u8>>) -> Result<Vec<Vec<Vec<u8>>>, NodeError> {
    let sizes = node.memory_usage(&keys).await?;
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

//! Writes canaries at a steady rate and reads them back.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use redis::{Cmd, Value};
use tokio::sync::Semaphore;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use super::ledger::Ledger;
use super::send::{Sender, Trouble};
use crate::auditor::Shared;
use crate::clock::Moment;
use crate::histogram::Histogram;
use crate::reach::Unreached;
use crate::report::{Latency, Outage, Writes};
use crate::slots::{self, SLOTS};
use crate::timeline::Happened;

/// Interval at which writes are issued in small batches.
const TICK: Duration = Duration::from_millis(5);
/// Delay before a failed write is retried.
const RETRY: Duration = Duration::from_millis(10);
/// A write that takes longer counts as an outage of its slot; anything below is slowness.
const OUTAGE: Duration = Duration::from_millis(300);
/// Allowance beyond three times the usual latency before a slot counts as out.
const JITTER: Duration = Duration::from_millis(10);
/// Maximum number of waiting writes: more would give no new information and would add load.
const MOST_WAITING: usize = 128;
/// Time limit for the writes in flight at the end.
const LAST_CALL: Duration = Duration::from_secs(5);
/// Reading back ends when nothing could be read for this long.
const READ_BACK: Duration = Duration::from_secs(10);
/// Removal ends when nothing could be removed for this long.
const REMOVAL: Duration = Duration::from_secs(2);
const READERS: usize = 256;

/// Writes canaries until it is stopped, then reads them back.
pub(crate) struct Writer {
    shared: Arc<Shared>,
    sender: Sender,
    keys: Vec<String>,
    busy: Vec<AtomicBool>,
    /// Slots that a write was sent to, acknowledged or not. Their keys are removed at the end.
    touched: Vec<AtomicBool>,
    stopped: AtomicBool,
    /// One permit per write in flight.
    under_way: Arc<Semaphore>,
    unacknowledged: AtomicU64,
    found: Mutex<Found>,
}

const MOST_UNDER_WAY: u32 = 4096;

#[derive(Default)]
struct Found {
    ledger: Ledger,
    acknowledged: u64,
    latency: Histogram,
    /// The longest write so far. Whether it was an outage is known only at the end.
    longest: Option<Outage>,
    /// Why a canary could not be sent at all, when last tried.
    unreached: Option<Unreached>,
    stalled: Duration,
}

impl Found {
    /// The latency of a write without an outage: three times the usual round trip, plus the time during which the
    /// auditor itself could not run.
    fn own_latency(&self) -> Duration {
        self.latency.permille(500) * 3 + self.stalled + JITTER
    }
}

/// A write in flight.
struct Write {
    slot: u16,
    bit: u32,
    from: Moment,
    /// Set once the slot was reported as out to the judge; `true` if the only evidence is a missing reply.
    reported: Option<bool>,
    /// Why it could not be sent, if that ever happened.
    unreached: Option<Unreached>,
}

impl Writer {
    /// Uses keys that no other audit uses.
    pub fn new(shared: Arc<Shared>, prefix: &str) -> Self {
        Self {
            shared,
            sender: Sender::default(),
            keys: slots::tags().iter().map(|tag| format!("{prefix}:{{{tag}}}")).collect(),
            busy: (0..SLOTS).map(|_| AtomicBool::new(false)).collect(),
            touched: (0..SLOTS).map(|_| AtomicBool::new(false)).collect(),
            stopped: AtomicBool::new(false),
            under_way: Arc::new(Semaphore::new(MOST_UNDER_WAY as usize)),
            unacknowledged: AtomicU64::new(0),
            found: Mutex::new(Found::default()),
        }
    }

    fn found(&self) -> MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Issues no new writes from here on.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Issues this many writes per second as soon as every slot has an owner. With 0 it only measures how long the
    /// auditor itself could not run.
    pub async fn run(self: Arc<Self>, rate: u32) {
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut begun = None;
        let mut last = Instant::now();
        let mut next = 0;
        while !self.stopped() {
            ticks.tick().await;
            let stalled = last.elapsed().saturating_sub(TICK);
            last = Instant::now();
            {
                let mut found = self.found();
                found.stalled = found.stalled.max(stalled);
            }
            if rate == 0 || (begun.is_none() && !self.shared.routes.complete()) {
                continue;
            }
            let begun = begun.get_or_insert(last);
            let due = begun.elapsed().as_micros() * u128::from(rate) / 1_000_000;
            let due = u64::try_from(due).unwrap_or(u64::MAX);
            for n in next..due {
                self.start(n);
            }
            next = due;
        }
    }

    /// Starts one write, unless an earlier write to its slot still waits or the limit of waiting writes is reached.
    fn start(self: &Arc<Self>, n: u64) {
        let slot = slots::nth(n);
        if self.shared.routes.waiting() >= MOST_WAITING || self.busy[usize::from(slot)].swap(true, Ordering::Relaxed) {
            return;
        }
        let Ok(permit) = self.under_way.clone().try_acquire_owned() else {
            self.busy[usize::from(slot)].store(false, Ordering::Relaxed);
            return;
        };
        let bit = u32::try_from(n / u64::from(SLOTS)).unwrap_or(u32::MAX);
        let writer = self.clone();
        tokio::spawn(async move {
            writer.write(slot, bit).await;
            writer.busy[usize::from(slot)].store(false, Ordering::Relaxed);
            drop(permit);
        });
    }

    async fn write(&self, slot: u16, bit: u32) {
        let mut write = Write {
            slot,
            bit,
            from: self.shared.clock.now(),
            reported: None,
            unreached: None,
        };
        let mut command = redis::cmd("SETBIT");
        command.arg(&self.keys[usize::from(slot)]).arg(bit).arg(1);
        let mut trouble = self.attempt(slot, &command, false).await.err();
        let mut patience = None;
        let mut tries = 0u32;
        while let Some(why) = &trouble {
            let patience = *patience.get_or_insert_with(|| {
                self.shared.routes.wait();
                OUTAGE.max(self.found().own_latency())
            });
            let waited = self.shared.clock.now().since(write.from);
            if let Some(timed_out) = outage_to_report(write.reported, why, waited >= patience) {
                let when = if write.reported.is_none() {
                    write.from
                } else {
                    self.shared.clock.now()
                };
                write.reported = Some(timed_out);
                self.shared.timeline.add(when, Happened::SlotOut { slot, timed_out });
            }
            match why {
                Trouble::Unreached(why) => write.unreached = Some(why.clone()),
                // The command may have been executed.
                Trouble::Rejected | Trouble::Timeout => self.touch(slot),
            }
            if self.stopped() && self.shared.clock.now() > self.shared.ended().after(LAST_CALL) {
                break;
            }
            sleep(RETRY).await;
            tries += 1;
            trouble = self.attempt(slot, &command, tries % 4 == 3).await.err();
        }
        if patience.is_some() {
            self.shared.routes.served();
        }
        self.note(write, trouble.is_none());
    }

    async fn attempt(&self, slot: u16, command: &Cmd, any_member: bool) -> Result<Value, Trouble> {
        let login = self.shared.login();
        self.sender
            .send(&self.shared.routes, &login, slot, command, any_member)
            .await
    }

    fn touch(&self, slot: u16) {
        self.touched[usize::from(slot)].store(true, Ordering::Relaxed);
    }

    /// The write has ended.
    fn note(&self, write: Write, acknowledged: bool) {
        let Write {
            slot,
            bit,
            from,
            reported,
            unreached,
        } = write;
        let now = self.shared.clock.now();
        if reported.is_some() && acknowledged {
            self.shared.timeline.add(now, Happened::SlotBack { slot });
        }
        let mut found = self.found();
        let lasted = now.since(from);
        // The time during which the auditor could not reach the server says nothing about the slot.
        if unreached.is_none() && found.longest.is_none_or(|longest| longest.lasted < lasted) {
            found.longest = Some(Outage { slot, from, lasted });
        }
        found.unreached = unreached.or_else(|| found.unreached.take());
        if acknowledged {
            self.touch(slot);
            found.acknowledged += 1;
            found.latency.add(lasted);
            found.ledger.note(slot, bit);
        } else {
            self.unacknowledged.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits for the writes in flight, reads everything back, and removes the canaries.
    pub async fn finish(&self) -> Writes {
        self.stop();
        // Every write ends soon after `LAST_CALL`. This then holds all permits, so that no new write starts.
        let _all = self.under_way.acquire_many(MOST_UNDER_WAY).await;
        let written = self.found().ledger.written();
        let progress = Mutex::new(Instant::now());
        let read = futures::stream::iter(written).map(|slot| self.read(slot, &progress));
        let held: Vec<(u16, Option<Vec<u8>>)> = read.buffer_unordered(READERS).collect().await;
        let left_keys = self.remove_all().await;
        let found = self.found();
        let lost = |(slot, bits): &(u16, Option<Vec<u8>>)| bits.as_ref().map(|bits| found.ledger.missing(*slot, bits));
        let own_latency = found.own_latency();
        Writes {
            acknowledged: found.acknowledged,
            unacknowledged: self.unacknowledged.load(Ordering::Relaxed),
            unreached: found.unreached.clone(),
            lost: held.iter().filter_map(lost).sum(),
            unread_slots: held.iter().filter(|(_, bits)| bits.is_none()).count() as u64,
            left_keys,
            longest_outage: found.longest.filter(|longest| longest.lasted > own_latency),
            own_latency,
            latency: Latency {
                p50: found.latency.permille(500),
                p99: found.latency.permille(990),
                p999: found.latency.permille(999),
                longest: found.latency.longest(),
            },
        }
    }

    /// The value of a slot's canary; `None` if no slot at all could be read for a while.
    async fn read(&self, slot: u16, progress: &Mutex<Instant>) -> (u16, Option<Vec<u8>>) {
        let last = || *progress.lock().unwrap_or_else(PoisonError::into_inner);
        let mut command = redis::cmd("GET");
        command.arg(&self.keys[usize::from(slot)]);
        for tries in 0u32.. {
            let answer = self.attempt(slot, &command, tries % 4 == 3).await;
            let held = match answer {
                Ok(Value::BulkString(bits)) => bits,
                Ok(Value::Nil) => Vec::new(),
                _ if last().elapsed() > READ_BACK => break,
                _ => {
                    sleep(RETRY).await;
                    continue;
                }
            };
            *progress.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
            return (slot, Some(held));
        }
        (slot, None)
    }

    /// Removes all canaries. Returns how many keys may remain.
    async fn remove_all(&self) -> u64 {
        let touched = |slot: &u16| self.touched[usize::from(*slot)].load(Ordering::Relaxed);
        let progress = Mutex::new(Instant::now());
        let removed = futures::stream::iter((0..SLOTS).filter(touched)).map(|slot| self.remove(slot, &progress));
        let left = removed
            .buffer_unordered(READERS)
            .filter(|removed| std::future::ready(!removed));
        left.count().await as u64
    }

    /// Whether the key of a slot was removed; gives up when no key at all could be removed for a while.
    async fn remove(&self, slot: u16, progress: &Mutex<Instant>) -> bool {
        let mut command = redis::cmd("UNLINK");
        command.arg(&self.keys[usize::from(slot)]);
        for tries in 0u32.. {
            if self.attempt(slot, &command, tries % 4 == 3).await.is_ok() {
                *progress.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
                return true;
            }
            if progress.lock().unwrap_or_else(PoisonError::into_inner).elapsed() > REMOVAL {
                break;
            }
            sleep(RETRY).await;
        }
        tracing::debug!(slot, "a canary could not be removed");
        false
    }

    /// How many writes have been acknowledged so far.
    pub fn acknowledged(&self) -> u64 {
        self.found().acknowledged
    }

    /// The longest time during which this program could not run.
    pub fn stalled(&self) -> Duration {
        self.found().stalled
    }
}

/// What to report to the judge about a write that still waits; the value says whether the only evidence is a missing
/// reply. Reports once when the write waits too long, and once more when an error replaces the missing reply. A write
/// that the auditor could not send at all is not reported.
fn outage_to_report(reported: Option<bool>, why: &Trouble, too_long: bool) -> Option<bool> {
    match (reported, why) {
        (_, Trouble::Unreached(_)) => None,
        (None, why) if too_long => Some(*why == Trouble::Timeout),
        (Some(true), Trouble::Rejected) => Some(false),
        _ => None,
    }
}

//! The steady stream of canaries, and their reading back.

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
use crate::report::{Latency, Outage, Writes};
use crate::slots::{self, SLOTS};
use crate::timeline::Happened;

/// Writes are handed out in small portions.
const TICK: Duration = Duration::from_millis(5);
/// A write that failed is tried again.
const RETRY: Duration = Duration::from_millis(10);
/// A write that took longer is an outage of its slot in the eyes of the judge; anything below is slowness.
const OUTAGE: Duration = Duration::from_millis(300);
/// So many writes wait at most: more of them would tell nothing new and would be a load of their own.
const MOST_WAITING: usize = 128;
/// Writes that are under way at the end get so long.
const LAST_CALL: Duration = Duration::from_secs(5);
/// Reading back ends when nothing could be read for so long.
const READ_BACK: Duration = Duration::from_secs(10);
const READERS: usize = 256;

/// Writes canaries until it is stopped, then reads them back.
pub(crate) struct Writer {
    shared: Arc<Shared>,
    sender: Sender,
    keys: Vec<String>,
    busy: Vec<AtomicBool>,
    stopped: AtomicBool,
    /// One permit per write under way.
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
    outage: Option<Outage>,
    stalled: Duration,
}

impl Writer {
    /// Keys that no other audit uses.
    pub fn new(shared: Arc<Shared>, prefix: &str) -> Self {
        Self {
            shared,
            sender: Sender::default(),
            keys: slots::tags().iter().map(|tag| format!("{prefix}:{{{tag}}}")).collect(),
            busy: (0..SLOTS).map(|_| AtomicBool::new(false)).collect(),
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

    /// No new writes from here on.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Writes so many a second, from the first moment that every slot has an owner.
    pub async fn run(self: Arc<Self>, rate: u32) {
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        while !self.shared.routes.complete() && !self.stopped() {
            ticks.tick().await;
        }
        let begun = Instant::now();
        let mut last = begun;
        let mut next = 0;
        while !self.stopped() {
            ticks.tick().await;
            let stalled = last.elapsed().saturating_sub(TICK);
            last = Instant::now();
            {
                let mut found = self.found();
                found.stalled = found.stalled.max(stalled);
            }
            let due = begun.elapsed().as_micros() * u128::from(rate) / 1_000_000;
            let due = u64::try_from(due).unwrap_or(u64::MAX);
            for n in next..due {
                self.start(n);
            }
            next = due;
        }
    }

    /// One write, unless its slot still waits for an earlier one or enough of them wait.
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
        let from = self.shared.clock.now();
        let mut command = redis::cmd("SETBIT");
        command.arg(&self.keys[usize::from(slot)]).arg(bit).arg(1);
        let mut trouble = self.attempt(slot, &command, false).await.err();
        let mut waited = false;
        let mut told = None;
        let mut tries = 0u32;
        while let Some(why) = trouble {
            if !waited {
                waited = true;
                self.shared.routes.wait();
            }
            if let Some(news) = outage_news(told, why, self.shared.clock.now().since(from)) {
                let when = if told.is_none() { from } else { self.shared.clock.now() };
                told = Some(news);
                let silent = news == Trouble::Silent;
                self.shared.timeline.add(when, Happened::SlotOut { slot, silent });
            }
            if self.stopped() && self.shared.clock.now() > self.shared.ended().after(LAST_CALL) {
                break;
            }
            sleep(RETRY).await;
            tries += 1;
            trouble = self.attempt(slot, &command, tries % 4 == 3).await.err();
        }
        if waited {
            self.shared.routes.served();
        }
        self.note(slot, bit, from, trouble.is_none(), told.is_some());
    }

    async fn attempt(&self, slot: u16, command: &Cmd, anybody: bool) -> Result<Value, Trouble> {
        let login = self.shared.login();
        self.sender
            .send(&self.shared.routes, &login, slot, command, anybody)
            .await
    }

    /// The write is over.
    fn note(&self, slot: u16, bit: u32, from: Moment, acknowledged: bool, told: bool) {
        let now = self.shared.clock.now();
        if told && acknowledged {
            self.shared.timeline.add(now, Happened::SlotBack { slot });
        }
        let mut found = self.found();
        let lasted = now.since(from);
        if found.outage.is_none_or(|longest| longest.lasted < lasted) {
            found.outage = Some(Outage { slot, from, lasted });
        }
        if acknowledged {
            found.acknowledged += 1;
            found.latency.add(lasted);
            found.ledger.note(slot, bit);
        } else {
            self.unacknowledged.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits for the writes under way, reads everything back, and removes the canaries.
    pub async fn finish(&self) -> Writes {
        self.stop();
        // Every write ends by itself soon after the last call; the permits are back then, and kept, so that none begins.
        let _all = self.under_way.acquire_many(MOST_UNDER_WAY).await;
        let written = self.found().ledger.written();
        let progress = Mutex::new(Instant::now());
        let read = futures::stream::iter(written).map(|slot| self.read(slot, &progress));
        let held: Vec<(u16, Option<Vec<u8>>)> = read.buffer_unordered(READERS).collect().await;
        let gone = futures::stream::iter(&held).map(|(slot, _)| self.remove(*slot));
        gone.buffer_unordered(READERS).collect::<()>().await;
        let found = self.found();
        let lost = |(slot, bits): &(u16, Option<Vec<u8>>)| bits.as_ref().map(|bits| found.ledger.missing(*slot, bits));
        Writes {
            acknowledged: found.acknowledged,
            unacknowledged: self.unacknowledged.load(Ordering::Relaxed),
            lost: held.iter().filter_map(lost).sum(),
            unread_slots: held.iter().filter(|(_, bits)| bits.is_none()).count() as u64,
            longest_outage: found.outage,
            latency: Latency {
                p50: found.latency.permille(500),
                p99: found.latency.permille(990),
                p999: found.latency.permille(999),
                longest: found.latency.longest(),
            },
        }
    }

    /// What a slot's canary holds; nothing is known of it when no slot at all could be read for a while.
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

    /// Leaves the cluster as it was. A canary that cannot be removed at once stays: it is small and harms nobody.
    async fn remove(&self, slot: u16) {
        let mut command = redis::cmd("UNLINK");
        command.arg(&self.keys[usize::from(slot)]);
        if self.attempt(slot, &command, false).await.is_err() {
            tracing::debug!(slot, "a canary could not be removed");
        }
    }

    /// How many were acknowledged so far.
    pub fn acknowledged(&self) -> u64 {
        self.found().acknowledged
    }

    /// The longest that this program was kept from running.
    pub fn stalled(&self) -> Duration {
        self.found().stalled
    }
}

/// What the judge is to hear of a write that still waits: once that it does, and once more when silence became words.
fn outage_news(told: Option<Trouble>, why: Trouble, waited: Duration) -> Option<Trouble> {
    match told {
        None if waited >= OUTAGE => Some(why),
        Some(Trouble::Silent) if why == Trouble::Refused => Some(Trouble::Refused),
        _ => None,
    }
}

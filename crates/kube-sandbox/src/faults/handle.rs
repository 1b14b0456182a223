//! The state behind a fault layer: rules with their counters, the log, and whether the client has crashed.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use super::fault::Fault;
use super::layer::FaultLayer;
use super::request::RequestInfo;
use super::rule::Rule;
use super::snapshots::Snapshots;

/// Rules, counters and the log. Cheap to clone; clones share everything.
#[derive(Clone)]
pub struct Faults {
    shared: Arc<Shared>,
}

struct Shared {
    seed: u64,
    state: Mutex<State>,
}

type OnCrash = Box<dyn Fn() + Send + Sync>;

struct State {
    rules: Vec<(Rule, u64)>,
    requests: u64,
    writes: Vec<RequestInfo>,
    log: Vec<Record>,
    snapshots: Option<Snapshots>,
    /// Cancelled by a crash, and new after each revival.
    life: CancellationToken,
    on_crash: Vec<Arc<OnCrash>>,
}

/// What was done to one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The request's number, counted from 1 over all that passed here.
    pub request: u64,
    /// The request in words: `update leases.coordination.k8s.io a/b`.
    pub what: String,
    /// The rule's name.
    pub rule: String,
    /// What happened.
    pub done: Done,
}

/// What happened to a request, or to an event of its watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Done {
    /// The fault of this name struck the request.
    Fault(&'static str),
    /// A stale read was due, but no older answer is known: the client got the current one.
    NothingOlder,
    /// This event never reached the client.
    EventLost(String),
    /// This event took the place of an older one of the same object.
    EventMerged(String),
    /// The watch ended here, by 410 or by the end of the stream.
    WatchEnded,
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{} {}: {} by {:?}", self.request, self.what, self.done, self.rule)
    }
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fault(name) => f.write_str(name),
            Self::NothingOlder => f.write_str("no older answer known"),
            Self::EventLost(event) => write!(f, "lost {event}"),
            Self::EventMerged(event) => write!(f, "merged {event}"),
            Self::WatchEnded => f.write_str("watch ended"),
        }
    }
}

/// A request under way: its number, and the faults that the rules chose for it.
pub(super) struct ChosenFaults {
    pub number: u64,
    pub life: CancellationToken,
    pub strikes: Vec<(String, Fault)>,
}

impl Faults {
    /// No rules yet. The seed decides where chance does: the same seed and the same requests give the same faults.
    pub fn seeded(seed: u64) -> Self {
        let state = State {
            rules: Vec::new(),
            requests: 0,
            writes: Vec::new(),
            log: Vec::new(),
            snapshots: None,
            life: CancellationToken::new(),
            on_crash: Vec::new(),
        };
        Self {
            shared: Arc::new(Shared {
                seed,
                state: Mutex::new(state),
            }),
        }
    }

    /// The same with one more rule. Rules act in the order they were added.
    #[must_use]
    pub fn with(self, rule: Rule) -> Self {
        self.add(rule);
        self
    }

    /// Adds a rule while requests pass; it counts from now.
    pub fn add(&self, rule: Rule) {
        let mut state = self.state();
        if matches!(rule.fault, Fault::StaleRead { .. }) {
            state.snapshots.get_or_insert_default();
        }
        state.rules.push((rule, 0));
    }

    /// Remembers answers from now on, so that a stale read that is added later has something to give.
    #[must_use]
    pub fn remembering(self) -> Self {
        self.state().snapshots.get_or_insert_default();
        self
    }

    /// Takes all rules away; counters of requests, the log and what is remembered stay.
    pub fn calm(&self) {
        self.state().rules.clear();
    }

    /// The layer for a client: `ClientBuilder::try_from(config)?.with_layer(&faults.layer()).build()`.
    pub fn layer(&self) -> FaultLayer {
        FaultLayer::new(self.clone())
    }

    /// What was done so far.
    pub fn log(&self) -> Vec<Record> {
        self.state().log.clone()
    }

    /// How many requests came by.
    pub fn requests(&self) -> u64 {
        self.state().requests
    }

    /// The writes that reached the server, in order. Without faults, their number is the number of crash points.
    pub fn writes(&self) -> Vec<RequestInfo> {
        self.state().writes.clone()
    }

    /// Whether the client is dead.
    pub fn is_crashed(&self) -> bool {
        self.state().life.is_cancelled()
    }

    /// Resolves when a crash occurs. The caller then drops the client's task.
    pub async fn crashed(&self) {
        let life = self.state().life.clone();
        life.cancelled_owned().await;
    }

    /// Called in the moment of a crash, before anything else reaches the client: the place to kill its process.
    pub fn on_crash(&self, act: impl Fn() + Send + Sync + 'static) {
        self.state().on_crash.push(Arc::new(Box::new(act)));
    }

    /// Lets requests pass again, for the client's next life.
    pub fn revive(&self) {
        let mut state = self.state();
        if state.life.is_cancelled() {
            state.life = CancellationToken::new();
        }
    }

    pub(super) fn crash(&self) {
        let (life, acts) = {
            let state = self.state();
            (state.life.clone(), state.on_crash.clone())
        };
        for act in acts {
            act();
        }
        life.cancel();
    }

    /// Counts the request and asks every rule.
    pub(super) fn judge(&self, request: &RequestInfo) -> ChosenFaults {
        let seed = self.shared.seed;
        let mut guard = self.state();
        let state = &mut *guard;
        state.requests += 1;
        let number = state.requests;
        let mut strikes = Vec::new();
        if !state.life.is_cancelled() {
            for (index, (rule, matches)) in state.rules.iter_mut().enumerate() {
                if !rule.matches(request) {
                    continue;
                }
                *matches += 1;
                if rule.strikes(*matches, draw(seed, index as u64, *matches)) {
                    strikes.push((rule.name.clone(), rule.fault.clone()));
                }
            }
        }
        let life = state.life.clone();
        ChosenFaults { number, life, strikes }
    }

    pub(super) fn record(&self, number: u64, request: &RequestInfo, rule: &str, done: Done) {
        let record = Record {
            request: number,
            what: request.to_string(),
            rule: rule.to_owned(),
            done,
        };
        tracing::debug!(%record, "fault");
        self.state().log.push(record);
    }

    pub(super) fn passed_write(&self, request: &RequestInfo) {
        self.state().writes.push(request.clone());
    }

    /// Runs `act` on what is remembered, where anything is to be.
    pub(super) fn with_snapshots<T>(&self, act: impl FnOnce(&mut Snapshots) -> T) -> Option<T> {
        self.state().snapshots.as_mut().map(act)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing in here panics while it holds the lock half-way through a change.
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A number of 0.0 to 1.0 that depends on seed, rule and match alone, so that the order in which concurrent requests
/// of different rules arrive changes nothing (`SplitMix64`).
fn draw(seed: u64, rule: u64, number: u64) -> f64 {
    let mut z = seed
        .wrapping_add(rule.wrapping_mul(0xD1B5_4A32_D192_ED03))
        .wrapping_add(number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    let bits = u32::try_from((z ^ (z >> 31)) >> 32).unwrap_or(u32::MAX);
    f64::from(bits) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_follows_the_seed_and_nothing_else() {
        let many = |seed| (1..=1000).map(|n| draw(seed, 0, n)).collect::<Vec<f64>>();
        assert_eq!(many(1), many(1));
        assert_ne!(many(1), many(2));
        let below = many(3).iter().filter(|x| **x < 0.25).count();
        assert!((200..300).contains(&below), "{below} of 1000 below a quarter");
    }
}

//! What every look at a cluster shares.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use candor_engine::plan::Stage;
use kube::Client;
use kube_status::events::EventPublisher;
use kube_status::finalizer::Finalizer;
use kube_status::writer::StatusWriter;

use crate::applied::AppliedSettings;
use crate::cache::ClusterKey;
use crate::decisions::Decisions;
use crate::handovers::{Evacuations, Handovers};
use crate::lease::Leadership;
use crate::metrics::Metrics;
use crate::passwords::KnownPasswords;
use crate::pods::LastPods;
use crate::pulse::Pulse;
use crate::secrets::Contents;
use crate::served::Served;
use crate::settings::Settings;
use crate::shape::Shapes;
use crate::trials::RefusedTrials;
use crate::watching::Caches;

/// The name under which fields are owned and status is written.
pub const MANAGER: &str = "candor";
/// The name people filter events by.
pub const COMPONENT: &str = "valkeycluster-controller";

/// What every look shares. Nothing in it must survive a crash.
pub struct Context {
    /// The API server.
    pub client: Client,
    /// What the operator was started with.
    pub settings: Settings,
    /// What the API server told.
    pub caches: Caches,
    /// What members tell between two looks.
    pub pulse: Pulse,
    /// Tells people.
    pub events: EventPublisher,
    /// Writes status.
    pub writer: StatusWriter,
    /// Holds clusters until they are cleaned up.
    pub finalizer: Finalizer<EventPublisher>,
    /// Objects that were found as wanted.
    pub shapes: Shapes,
    /// Contents of users' Secrets.
    pub secrets: Contents,
    /// The operator's own passwords.
    pub passwords: KnownPasswords,
    /// Which server runs with which settings.
    pub applied: AppliedSettings,
    /// Which server serves which certificate.
    pub served: Served,
    /// What was decided last.
    pub decisions: Decisions,
    /// Primaries that are giving way.
    pub handovers: Handovers,
    /// Primaries that cannot be made to leave a closed machine.
    pub evacuations: Evacuations,
    /// Trials that the API server would not have.
    pub refused_trials: RefusedTrials,
    /// The pods that members last ran in.
    pub last_pods: LastPods,
    /// Whether we may act.
    pub leadership: Leadership,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// Since when each cluster has been in its stage, and when its status was last written.
    pub pace: Pace,
}

/// How often to look and to write.
#[derive(Default)]
pub struct Pace {
    stages: Mutex<HashMap<ClusterKey, (std::mem::Discriminant<Stage>, Instant)>>,
    writes: Mutex<HashMap<ClusterKey, Instant>>,
    /// Since when looks have failed, or steps in them.
    failing: Mutex<HashMap<ClusterKey, Instant>>,
    /// Since when questions about moving slots stay unanswered.
    unheard: Mutex<HashMap<ClusterKey, Instant>>,
}

/// Progress is written at most this often.
const PROGRESS: Duration = Duration::from_secs(1);
/// The shortest pause between two looks.
const SHORTEST: Duration = Duration::from_millis(50);
/// The longest pause while something is under way.
const LONGEST: Duration = Duration::from_secs(1);
/// The longest pause while something keeps failing.
const LONGEST_OF_FAILING: Duration = Duration::from_secs(30);

impl Pace {
    /// When to look again while a cluster stays in a stage: soon at first, then ever more seldom up to a second.
    pub fn next(&self, key: &ClusterKey, stage: &Stage) -> Duration {
        let now = Instant::now();
        let kind = std::mem::discriminant(stage);
        let mut stages = self.stages.lock().unwrap_or_else(PoisonError::into_inner);
        let (known, since) = stages.entry(key.clone()).or_insert((kind, now));
        if *known != kind {
            (*known, *since) = (kind, now);
        }
        (now.duration_since(*since) / 10).clamp(SHORTEST, LONGEST)
    }

    /// How long mere progress must wait until it may be written; nothing when it may be written now.
    pub fn hold_progress(&self, key: &ClusterKey) -> Option<Duration> {
        let writes = self.writes.lock().unwrap_or_else(PoisonError::into_inner);
        let since = writes.get(key)?.elapsed();
        PROGRESS.checked_sub(since).filter(|left| !left.is_zero())
    }

    /// A status was written.
    pub fn written(&self, key: &ClusterKey) {
        let mut writes = self.writes.lock().unwrap_or_else(PoisonError::into_inner);
        writes.insert(key.clone(), Instant::now());
    }

    /// When to look again after a failure: at once where it is the first, ever more seldom while it lasts. It goes by
    /// time and not by tries, because every change of an object is a try too.
    pub fn failed(&self, key: &ClusterKey) -> Duration {
        let now = Instant::now();
        let mut failing = self.failing.lock().unwrap_or_else(PoisonError::into_inner);
        let since = *failing.entry(key.clone()).or_insert(now);
        (now.duration_since(since) / 2).clamp(SHORTEST, LONGEST_OF_FAILING)
    }

    /// A look in which nothing failed.
    pub fn went_well(&self, key: &ClusterKey) {
        self.failing.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }

    /// A question about moving slots was not answered; for how long that has been so.
    pub fn unheard(&self, key: &ClusterKey) -> Duration {
        let mut unheard = self.unheard.lock().unwrap_or_else(PoisonError::into_inner);
        unheard.entry(key.clone()).or_insert_with(Instant::now).elapsed()
    }

    /// One was.
    pub fn heard(&self, key: &ClusterKey) {
        self.unheard.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }

    /// A cluster is gone.
    pub fn forget(&self, key: &ClusterKey) {
        self.stages.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
        self.writes.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
        self.went_well(key);
        self.heard(key);
    }
}

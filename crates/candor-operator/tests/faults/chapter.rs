//! The scenarios that run on a cluster, with or without faults, and their results.

use std::fmt::Debug;
use std::time::{Duration, Instant};

use candor_api::ValkeyCluster;
use candor_api::valkey::FAILOVER;
use candor_operator::Settings;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, PostParams};
use kube::{Api, ResourceExt};
use kube_sandbox::faults::{Done, Faults, RequestInfo};
use serde_json::json;
use tokio::sync::Semaphore;

use crate::disturbance::Disturbance;
use crate::ending::{Ending, difference, ending};
use crate::life::Life;
use crate::support::{Stage, is_ready};
use crate::truth::{AuditedKind, Auditor};

/// Timeout of a run, measured on a clock that stops while the test host is stalled. It is longer than any scenario
/// takes.
const PATIENCE: Duration = Duration::from_secs(40);
/// Timeout of a run in wall-clock time, even if the test host is stalled.
const PATIENCE_AT_ALL: Duration = Duration::from_secs(300);
const NAME: &str = "cart";
/// Interval between two checks for progress.
const POLL: Duration = Duration::from_millis(30);
/// Limits the number of concurrent runs over all tests: members and servers mostly wait.
static SIDE_BY_SIDE: Semaphore = Semaphore::const_new(6);

/// A part of a cluster's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chapter {
    Create,
    ScaleOut,
    ScaleIn,
    Roll,
    Users,
    Delete,
    Failover,
}

/// The result of a run.
pub struct Run {
    pub ending: Ending,
    pub writes: Vec<RequestInfo>,
    /// How many faults were injected.
    pub struck: usize,
    pub false_ready: Duration,
    /// False reports in the status.
    pub lies: Vec<String>,
    pub took: Duration,
    /// The difference from the desired final state when the run timed out.
    pub wrong: Option<String>,
}

/// A sequence of what happens to a cluster.
pub trait Scenario: Copy + Debug {
    /// The kind of the cluster.
    type Cluster: AuditedKind;
    /// What is recorded while the scenario runs.
    type Witness;
    /// The number of the scenario: each leaves out other disturbances.
    fn number(self) -> usize;
    /// The name of the cluster.
    fn name(self) -> &'static str;
    /// Whether a run takes long: fewer disturbances are tested unless all of them are requested.
    fn is_long(self) -> bool {
        false
    }
    /// Creates the initial state, without faults.
    async fn prepare(self, stage: &Stage);
    /// Starts recording.
    async fn record(self, stage: &Stage) -> Self::Witness;
    /// Performs the user's action.
    async fn begin(self, stage: &Stage);
    /// Whether the scenario is finished, according to the cluster.
    async fn is_over(self, stage: &Stage) -> bool;
    /// What must not have happened on the way.
    async fn complaints(self, stage: &Stage, witness: Self::Witness) -> Vec<String>;
}

impl Scenario for Chapter {
    type Cluster = ValkeyCluster;
    type Witness = ();

    fn number(self) -> usize {
        self as usize
    }

    fn name(self) -> &'static str {
        NAME
    }

    async fn record(self, _: &Stage) {}

    async fn complaints(self, _: &Stage, (): ()) -> Vec<String> {
        Vec::new()
    }

    async fn prepare(self, stage: &Stage) {
        let secret: Secret = serde_json::from_value(json!({"metadata": {"name": "cart-users"},
            "stringData": {"app": "one", "web": "two"}}))
        .unwrap();
        let secrets: Api<Secret> = Api::namespaced(stage.client(), "default");
        secrets.create(&PostParams::default(), &secret).await.unwrap();
        if self == Self::Create {
            return;
        }
        let life = Life::start(stage.client(), Faults::seeded(1), Settings::default());
        let shards = if self == Self::ScaleIn { 3 } else { 2 };
        let replicas = i32::from(self != Self::ScaleOut && self != Self::ScaleIn);
        let spec = json!({"shards": shards, "replicas": replicas,
            "users": [{"name": "app", "commands": {"allow": ["@read"]}}]});
        stage.create(NAME, spec).await;
        quiet(stage).await;
        life.end().await;
    }

    async fn begin(self, stage: &Stage) {
        match self {
            Self::Create => drop(stage.create(NAME, json!({"shards": 2, "replicas": 1})).await),
            Self::ScaleOut => stage.change(NAME, json!({"shards": 3})).await,
            Self::ScaleIn => stage.change(NAME, json!({"shards": 2})).await,
            Self::Roll => {
                // The change also includes a node selector, so that a preflight pod runs before members restart.
                let change = json!({"resources": {"limits": {"memory": "256Mi"}},
                    "scheduling": {"nodeSelector": {"kubernetes.io/os": "linux"}}});
                stage.change(NAME, change).await;
            }
            Self::Users => {
                let users = json!([{"name": "app", "commands": {"allow": ["@read", "@write"]}},
                    {"name": "web", "commands": {"allow": ["@read"]}}]);
                stage.change(NAME, json!({"users": users})).await;
            }
            Self::Delete => {
                let api = stage.clusters("default");
                api.delete(NAME, &DeleteParams::default()).await.unwrap();
            }
            Self::Failover => {
                let primary = stage.primary(NAME, 1).await.unwrap();
                stage.annotate(NAME, FAILOVER, &format!("1/{}", primary.node_id)).await;
            }
        }
    }

    async fn is_over(self, stage: &Stage) -> bool {
        let cluster = stage.clusters("default").get_opt(NAME).await.unwrap();
        match cluster {
            None => self == Self::Delete,
            Some(cluster) if self == Self::Failover => {
                let answered = !cluster.annotations().contains_key(FAILOVER);
                let candidate = stage.primary(NAME, 1).await.is_some_and(|primary| primary.node == 1);
                answered && candidate && is_ready(&cluster)
            }
            Some(cluster) => self != Self::Delete && is_ready(&cluster),
        }
    }
}

/// Performs one run. An operator that is killed is replaced by another one. If `desired` is given, the run waits
/// for this final state. Otherwise it waits until nothing changes any more.
pub async fn run<S: Scenario>(scenario: S, disturbance: Option<&Disturbance>, desired: Option<&Ending>) -> Run {
    let _turn = SIDE_BY_SIDE.acquire().await.unwrap();
    let stage = Stage::set().await;
    scenario.prepare(&stage).await;
    let witness = scenario.record(&stage).await;
    let faults = Faults::seeded(7).remembering();
    for rule in disturbance.iter().flat_map(|one| &one.rules) {
        faults.add(rule.clone());
    }
    let mut settings = Settings::default();
    settings.relist = disturbance.and_then(|one| one.relist).unwrap_or(settings.relist);
    let costs = disturbance.map_or(Duration::ZERO, |one| one.costs);
    let auditor = Auditor::start::<S::Cluster>(&stage, scenario.name(), costs);
    faults.on_crash(auditor.death());
    let mut life = Life::start(stage.client(), faults.clone(), settings.clone());
    let mut running = false;
    scenario.begin(&stage).await;
    let begun = Instant::now();
    let (mut last, mut same) = (Ending::new(), 0);
    let wrong = loop {
        if life.is_over() {
            life = Life::start(stage.client(), candidate(&faults, disturbance), settings.clone());
            running = false;
        }
        if !running && life.is_up() {
            running = true;
            auditor.new_life();
        }
        if scenario.is_over(&stage).await {
            let now = ending(&stage).await;
            same = if now == last { same + 1 } else { 0 };
            last = now;
            let done = desired.map_or(same >= 8, |desired| *desired == last);
            if done {
                break None;
            }
        }
        let patience = if scenario.is_long() { PATIENCE * 4 } else { PATIENCE };
        if auditor.passed() > patience || begun.elapsed() > PATIENCE_AT_ALL {
            break Some(match desired {
                Some(desired) => difference(desired, &ending(&stage).await),
                None => "never quiet".to_owned(),
            });
        }
        tokio::time::sleep(POLL).await;
    };
    let (false_ready, mut lies) = auditor.false_ready();
    lies.extend(scenario.complaints(&stage, witness).await);
    let log = faults.log();
    let nothing = log.iter().filter(|one| one.done == Done::NothingOlder).count();
    Run {
        ending: last,
        writes: faults.writes(),
        struck: log.len() - 2 * nothing,
        false_ready,
        lies,
        took: begun.elapsed(),
        wrong,
    }
}
/// The faults of the next operator: none, unless the disturbance continues.
fn candidate(faults: &Faults, disturbance: Option<&Disturbance>) -> Faults {
    let rules = disturbance.map(|one| one.afterwards.clone()).unwrap_or_default();
    if rules.is_empty() {
        return Faults::seeded(1);
    }
    faults.calm();
    faults.revive();
    for rule in rules {
        faults.add(rule);
    }
    faults.clone()
}

/// Waits until the cluster is ready and nothing changes any more.
async fn quiet(stage: &Stage) {
    let begun = Instant::now();
    let (mut last, mut same) = (Ending::new(), 0);
    while same < 3 {
        assert!(begun.elapsed() < PATIENCE_AT_ALL, "never quiet");
        tokio::time::sleep(POLL).await;
        let cluster = stage.clusters("default").get(NAME).await.unwrap();
        if !is_ready(&cluster) {
            continue;
        }
        let now = ending(stage).await;
        same = if now == last { same + 1 } else { 0 };
        last = now;
    }
}

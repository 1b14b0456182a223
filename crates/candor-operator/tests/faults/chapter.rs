//! What is done to a cluster, disturbed or not, and how it went.

use std::time::{Duration, Instant};

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
use crate::truth::Auditor;

/// Longer than anything here takes, by the clock that stands still when the machine does.
const PATIENCE: Duration = Duration::from_secs(40);
/// Whatever the machine does.
const PATIENCE_AT_ALL: Duration = Duration::from_secs(300);
const NAME: &str = "cart";
/// Between two looks at how far it came.
const POLL: Duration = Duration::from_millis(30);
/// Runs at a time, over all tests: members and servers wait more than they work.
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

/// How a run went.
pub struct Run {
    pub ending: Ending,
    pub writes: Vec<RequestInfo>,
    /// How often it was disturbed.
    pub struck: usize,
    pub false_ready: Duration,
    /// What was said falsely.
    pub lies: Vec<String>,
    pub took: Duration,
    /// What was different from the wanted ending when patience ended.
    pub wrong: Option<String>,
}

impl Chapter {
    /// What stands before it, undisturbed.
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

    /// What a person does.
    async fn begin(self, stage: &Stage) {
        match self {
            Self::Create => drop(stage.create(NAME, json!({"shards": 2, "replicas": 1})).await),
            Self::ScaleOut => stage.change(NAME, json!({"shards": 3})).await,
            Self::ScaleIn => stage.change(NAME, json!({"shards": 2})).await,
            Self::Roll => {
                // Other machines are tried before anybody is rolled to them.
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

    /// Whether it is over, as far as the cluster says.
    async fn is_over(self, stage: &Stage) -> bool {
        let cluster = stage.clusters("default").get_opt(NAME).await.unwrap();
        match cluster {
            None => self == Self::Delete,
            Some(cluster) if self == Self::Failover => {
                let answered = !cluster.annotations().contains_key(FAILOVER);
                let heir = stage.primary(NAME, 1).await.is_some_and(|primary| primary.node == 1);
                answered && heir && is_ready(&cluster)
            }
            Some(cluster) => self != Self::Delete && is_ready(&cluster),
        }
    }

    /// One run. An operator that dies is followed by another. With a wanted ending the run waits for it; without, for
    /// everything to be quiet.
    pub async fn run(self, disturbance: Option<&Disturbance>, wanted: Option<&Ending>) -> Run {
        let _turn = SIDE_BY_SIDE.acquire().await.unwrap();
        let stage = Stage::set().await;
        self.prepare(&stage).await;
        let faults = Faults::seeded(7).remembering();
        for rule in disturbance.iter().flat_map(|one| &one.rules) {
            faults.add(rule.clone());
        }
        let mut settings = Settings::default();
        settings.relist = disturbance.and_then(|one| one.relist).unwrap_or(settings.relist);
        let costs = disturbance.map_or(Duration::ZERO, |one| one.costs);
        let auditor = Auditor::start(&stage, NAME, costs);
        faults.on_crash(auditor.death());
        let mut life = Life::start(stage.client(), faults.clone(), settings.clone());
        let mut running = false;
        self.begin(&stage).await;
        let begun = Instant::now();
        let (mut last, mut same) = (Ending::new(), 0);
        let wrong = loop {
            if life.is_over() {
                life = Life::start(stage.client(), heir(&faults, disturbance), settings.clone());
                running = false;
            }
            if !running && life.is_up() {
                running = true;
                auditor.new_life();
            }
            if self.is_over(&stage).await {
                let now = ending(&stage).await;
                same = if now == last { same + 1 } else { 0 };
                last = now;
                let done = wanted.map_or(same >= 8, |wanted| *wanted == last);
                if done {
                    break None;
                }
            }
            if auditor.passed() > PATIENCE || begun.elapsed() > PATIENCE_AT_ALL {
                break Some(match wanted {
                    Some(wanted) => difference(wanted, &ending(&stage).await),
                    None => "never quiet".to_owned(),
                });
            }
            tokio::time::sleep(POLL).await;
        };
        let (false_ready, lies) = auditor.false_ready();
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
}

/// What the next operator meets: nothing, unless the disturbance goes on.
fn heir(faults: &Faults, disturbance: Option<&Disturbance>) -> Faults {
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

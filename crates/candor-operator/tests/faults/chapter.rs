//! What is done to a cluster, disturbed or not, and how it went.

use std::time::{Duration, Instant};

use candor_operator::Settings;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use kube_sandbox::faults::{Faults, RequestInfo, Rule};
use serde_json::json;

use crate::ending::{Ending, difference, ending};
use crate::life::Life;
use crate::support::{Stage, is_ready};
use crate::truth::Auditor;

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(40);
const NAME: &str = "cart";

/// A part of a cluster's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chapter {
    Create,
    ScaleOut,
    ScaleIn,
    Users,
    Delete,
}

/// How a run went.
pub struct Run {
    pub ending: Ending,
    pub writes: Vec<RequestInfo>,
    pub killed: bool,
    pub false_ready: Duration,
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
        stage.until(NAME, "prepared", PATIENCE, is_ready).await;
        quiet(stage).await;
        life.end().await;
    }

    /// What a person does.
    async fn begin(self, stage: &Stage) {
        match self {
            Self::Create => drop(stage.create(NAME, json!({"shards": 2, "replicas": 1})).await),
            Self::ScaleOut => stage.change(NAME, json!({"shards": 3})).await,
            Self::ScaleIn => stage.change(NAME, json!({"shards": 2})).await,
            Self::Users => {
                let users = json!([{"name": "app", "commands": {"allow": ["@read", "@write"]}},
                    {"name": "web", "commands": {"allow": ["@read"]}}]);
                stage.change(NAME, json!({"users": users})).await;
            }
            Self::Delete => {
                let api = stage.clusters("default");
                api.delete(NAME, &DeleteParams::default()).await.unwrap();
            }
        }
    }

    /// Whether it is over, as far as the cluster says.
    async fn is_over(self, stage: &Stage) -> bool {
        let cluster = stage.clusters("default").get_opt(NAME).await.unwrap();
        match cluster {
            None => self == Self::Delete,
            Some(cluster) => self != Self::Delete && is_ready(&cluster),
        }
    }

    /// One run. An operator that dies is followed by another, undisturbed one. With a wanted ending the run waits for
    /// it; without, for everything to be quiet.
    pub async fn run(self, rule: Option<Rule>, wanted: Option<&Ending>) -> Run {
        let stage = Stage::set().await;
        self.prepare(&stage).await;
        let faults = Faults::seeded(7).remembering();
        faults_with(&faults, rule);
        let auditor = Auditor::start(&stage, NAME);
        let mut life = Life::start(stage.client(), faults.clone(), Settings::default());
        auditor.new_life();
        self.begin(&stage).await;
        let begun = Instant::now();
        let mut killed = false;
        let (mut last, mut same) = (Ending::new(), 0);
        let wrong = loop {
            if life.is_over() {
                killed = true;
                life = Life::start(stage.client(), Faults::seeded(1), Settings::default());
                auditor.new_life();
            }
            if self.is_over(&stage).await {
                let now = ending(&stage).await;
                same = if now == last { same + 1 } else { 0 };
                last = now;
                let done = wanted.map_or(same >= 10, |wanted| *wanted == last);
                if done {
                    break None;
                }
            }
            if begun.elapsed() > PATIENCE {
                break Some(match wanted {
                    Some(wanted) => difference(wanted, &ending(&stage).await),
                    None => "never quiet".to_owned(),
                });
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        if let Some(wrong) = &wrong {
            println!("{self:?} went wrong: {wrong}");
        }
        Run {
            ending: last,
            writes: faults.writes(),
            killed,
            false_ready: auditor.false_ready().await,
            wrong,
        }
    }
}

fn faults_with(faults: &Faults, rule: Option<Rule>) {
    if let Some(rule) = rule {
        faults.add(rule);
    }
}

/// Waits until nothing changes any more.
async fn quiet(stage: &Stage) {
    let begun = Instant::now();
    let (mut last, mut same) = (Ending::new(), 0);
    while same < 3 {
        let now = ending(stage).await;
        same = if now == last { same + 1 } else { 0 };
        last = now;
        assert!(begun.elapsed() < PATIENCE, "never quiet");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

//! A test environment: Kubernetes and an operator in this process, simulated members, and the CLI.

#[path = "../../../candor-operator/tests/support/mod.rs"]
#[allow(dead_code)] // the operator's own tests ask for more
pub mod support;

use std::ops::Deref;

use candor_operator::runtime::lease;
use candor_operator::{LeaseSettings, Settings};
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::runner::Cli;
use support::Stage;

/// A Kubernetes with an operator for its default namespace, and the CLI.
pub struct Desk {
    pub stage: Stage,
    user: Cli,
    stop: CancellationToken,
    operator: JoinHandle<()>,
}

impl Deref for Desk {
    type Target = Cli;
    fn deref(&self) -> &Cli {
        &self.user
    }
}

impl Desk {
    /// Starts everything.
    pub async fn set() -> Self {
        let stage = Stage::set().await;
        let user = Cli::with(Some(stage.sandbox.kubeconfig()));
        let stop = CancellationToken::new();
        let settings = Settings {
            namespaces: vec!["default".to_owned()],
            lease: Some(LeaseSettings {
                client: stage.client(),
                namespace: "default".to_owned(),
                name: "candor-operator".to_owned(),
                identity: "candor-0".to_owned(),
                timing: lease::Timing::default(),
            }),
            ..Settings::default()
        };
        let (client, ended) = (stage.client(), stop.clone());
        let operator = tokio::spawn(async move {
            candor_operator::run(client, settings, ended).await.unwrap();
        });
        Self {
            stage,
            user,
            stop,
            operator,
        }
    }

    /// Creates a cluster and waits until it is Ready.
    pub async fn ready(&self, name: &str, spec: Value) {
        self.stage.create(name, spec).await;
        self.stage.ready(name).await;
    }

    /// Stops the Kubernetes with everything in it; keeps the CLI and its folder.
    pub fn collapse(self) -> Cli {
        let Self {
            stage, user, operator, ..
        } = self;
        operator.abort();
        drop(stage);
        user
    }

    /// Shuts the operator down cleanly.
    pub async fn end(self) {
        self.stop.cancel();
        self.operator.await.unwrap();
    }
}

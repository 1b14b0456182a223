//! A Kubernetes with simulated members, an operator that can be ended, and the page.

#[path = "../../../candor-operator/tests/support/mod.rs"]
#[allow(dead_code)] // the operator's own tests ask for more
pub mod support;

use std::ops::Deref;

use candor_operator::runtime::lease;
use candor_operator::{LeaseSettings, Settings};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::Child;

use crate::runner::{Cli, lines, next};
use support::{Operator, Stage};

/// Everything but the browser.
pub struct Theatre {
    stage: Stage,
    pub cli: Cli,
    operator: Option<Operator>,
    pub page: Option<Child>,
    /// The address of the page, without a slash at its end.
    pub url: String,
}

impl Deref for Theatre {
    type Target = Stage;
    fn deref(&self) -> &Stage {
        &self.stage
    }
}

impl Theatre {
    /// Starts everything, the page with these arguments.
    pub async fn open(words: &str) -> Self {
        let stage = Stage::set().await;
        let cli = Cli::with(Some(stage.sandbox.kubeconfig()));
        let mut theatre = Self {
            stage,
            cli,
            operator: None,
            page: None,
            url: String::new(),
        };
        theatre.start_operator();
        theatre.serve(&format!("--listen 127.0.0.1:0 {words}")).await;
        theatre
    }

    /// Serves the page anew as the owner of a token, instead of as an administrator.
    pub async fn serve_as(&mut self, token: &str, words: &str) {
        if let Some(mut page) = self.page.take() {
            page.kill().await.unwrap();
        }
        let mut config: serde_json::Value = serde_norway::from_str(self.stage.sandbox.kubeconfig()).unwrap();
        config["users"][0]["user"] = serde_json::json!({"token": token});
        std::fs::write(self.cli.kubeconfig(), config.to_string()).unwrap();
        self.serve(&format!("--listen 127.0.0.1:0 {words}")).await;
    }

    /// Starts an operator with a lease.
    pub fn start_operator(&mut self) {
        let lease = LeaseSettings {
            client: self.stage.client(),
            namespace: "default".to_owned(),
            name: "candor-operator".to_owned(),
            identity: "candor-0".to_owned(),
            timing: lease::Timing::default(),
        };
        let settings = Settings {
            namespaces: vec!["default".to_owned()],
            lease: Some(lease),
            ..Settings::default()
        };
        self.operator = Some(Operator::start_with(self.stage.client(), settings));
    }

    /// Ends the operator.
    pub async fn end_operator(&mut self) {
        if let Some(operator) = self.operator.take() {
            operator.end().await;
        }
    }

    /// Starts the page.
    pub async fn serve(&mut self, words: &str) {
        let mut page = self.cli.begin(&format!("web {words}"));
        let line = next(&mut lines(page.stdout.take())).await;
        let url = line.split_whitespace().find(|word| word.starts_with("http://"));
        url.expect("it says where it serves")
            .trim_end_matches('/')
            .clone_into(&mut self.url);
        self.page = Some(page);
    }

    /// Sends a signal to the page.
    pub fn signal(&self, signal: Signal) {
        let id = self.page.as_ref().and_then(Child::id).expect("it lives");
        kill_process(Pid::from_raw(i32::try_from(id).unwrap()).unwrap(), signal).unwrap();
    }

    /// Ends everything.
    pub async fn close(mut self) {
        self.end_operator().await;
        if let Some(mut page) = self.page.take() {
            page.kill().await.unwrap();
        }
    }
}

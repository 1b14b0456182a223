//! Runs a server's own client in its pod, through the API server: where pods cannot be reached from here, and for
//! `candor cli`. A password goes in by standard input, never on a command line.

use candor_api::redkey::REDIS;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{AttachParams, AttachedProcess};
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::cluster::Kind;
use super::connect::Connected;

/// Finds the client in the image, and runs it with the password in its environment.
const RUN: &str = "export REDISCLI_AUTH; [ -n \"$REDISCLI_AUTH\" ] || unset REDISCLI_AUTH; \
    cli=$(command -v valkey-cli || command -v redis-cli) || exit 127; exec \"$cli\" \"$@\"";
/// The files that a server's pod has with TLS.
const TLS: [&str; 7] = [
    "--tls",
    "--cacert",
    "/tls/ca.crt",
    "--cert",
    "/tls/tls.crt",
    "--key",
    "/tls/tls.key",
];

/// The standard input of a client.
pub type Input = Box<dyn AsyncWrite + Send + Unpin>;

/// How to call a server's client.
#[derive(Clone, Debug, Default)]
pub struct Call {
    /// The user; none is the user `default`.
    pub user: Option<String>,
    /// Its password.
    pub password: Option<String>,
    /// Whether the server uses TLS.
    pub tls: bool,
    /// The client's arguments.
    pub arguments: Vec<String>,
}

impl Call {
    fn command(&self, script: &str) -> Vec<String> {
        let mut words: Vec<String> = ["sh", "-c", script, "cli"].map(str::to_owned).into();
        if self.tls {
            words.extend(TLS.map(str::to_owned));
        }
        if let Some(user) = &self.user {
            words.extend(["--no-auth-warning", "--user", user].map(str::to_owned));
        }
        words.extend(self.arguments.iter().cloned());
        words
    }

    fn password_line(&self) -> String {
        format!("{}\n", self.password.as_deref().unwrap_or_default())
    }

    /// Starts the client without a terminal. What is written to it after the password is its input.
    pub async fn start(
        &self,
        at: &Connected,
        kind: Kind,
        pod: &str,
    ) -> Result<(AttachedProcess, Option<Input>), kube::Error> {
        let script = format!("read -r REDISCLI_AUTH; {RUN}");
        let parameters = AttachParams::default()
            .container(container(kind))
            .stdin(true)
            .stderr(true);
        let mut process = pods(at).exec(pod, self.command(&script), &parameters).await?;
        let Some(input) = process.stdin() else {
            return Ok((process, None));
        };
        let mut input: Input = Box::new(input);
        let sent = input.write_all(self.password_line().as_bytes()).await;
        sent.map_err(|error| kube::Error::Service(error.into()))?;
        Ok((process, Some(input)))
    }

    /// Runs the client to its end; answers what it printed.
    pub async fn output(&self, at: &Connected, kind: Kind, pod: &str) -> Result<String, String> {
        let (mut process, input) = self.start(at, kind, pod).await.map_err(|error| match error {
            kube::Error::Api(status) => status.message.clone(),
            error => super::chain(&error),
        })?;
        drop(input);
        let mut text = String::new();
        if let Some(mut out) = process.stdout() {
            out.read_to_string(&mut text).await.map_err(|error| error.to_string())?;
        }
        Ok(text)
    }

    /// Starts the client in a terminal. The password is sent when the terminal has stopped to echo.
    pub async fn start_in_terminal(
        &self,
        at: &Connected,
        kind: Kind,
        pod: &str,
    ) -> Result<AttachedProcess, kube::Error> {
        let script = format!("stty -echo || exit 1; printf '{READY}'; read -r REDISCLI_AUTH; stty echo; {RUN}");
        let parameters = AttachParams::interactive_tty().container(container(kind));
        pods(at).exec(pod, self.command(&script), &parameters).await
    }

    /// The line that the client waits for in a terminal.
    pub fn unlock(&self) -> String {
        self.password_line()
    }
}

/// What a terminal prints when it waits for the password.
pub const READY: &str = "candor-waits";

fn pods(at: &Connected) -> Api<Pod> {
    Api::namespaced(at.client.clone(), &at.namespace)
}

/// The container of the server.
fn container(kind: Kind) -> &'static str {
    match kind {
        Kind::ValkeyCluster => "server",
        Kind::RedkeyCluster => REDIS,
    }
}

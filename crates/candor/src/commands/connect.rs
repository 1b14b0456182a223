//! Which API server, as which user, in which namespace: kubectl's own flags.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use super::errors::CommandError;

/// How long to wait for a connection; a person is waiting.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where to connect to: the flags of kubectl.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Which cluster")]
pub struct Connection {
    /// The kubeconfig.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context in it.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// The namespace; the context's own if not given.
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
}

/// A client and the namespace that is meant.
#[derive(Clone)]
pub struct Connected {
    /// The client.
    pub client: Client,
    /// The namespace that was given, or the context's.
    pub namespace: String,
    /// The API server's address.
    pub server: String,
}

impl Connection {
    /// From a line that is still being typed: whatever is there of the flags.
    pub fn from_words(words: impl Iterator<Item = String>) -> Self {
        let mut found = Self::default();
        let mut words = words.peekable();
        while let Some(word) = words.next() {
            let (flag, value) = match word.split_once('=') {
                Some((flag, value)) => (flag.to_owned(), Some(value.to_owned())),
                None => (word, words.peek().cloned()),
            };
            match flag.as_str() {
                "-n" | "--namespace" => found.namespace = value,
                "--context" => found.context = value,
                "--kubeconfig" => found.kubeconfig = value.map(PathBuf::from),
                _ => {}
            }
        }
        found
    }

    /// The namespace, if one was given.
    pub fn given_namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// A client. Nothing is asked of the API server yet.
    pub async fn connect(&self) -> Result<Connected, CommandError> {
        self.with(self.config().await?)
    }

    /// A client with the permissions of a token's owner.
    pub async fn connect_as(&self, token: &str) -> Result<Connected, CommandError> {
        let mut config = self.config().await?;
        config.auth_info = AuthInfo {
            token: Some(token.to_owned().into()),
            ..AuthInfo::default()
        };
        self.with(config)
    }

    fn with(&self, mut config: Config) -> Result<Connected, CommandError> {
        config.connect_timeout = Some(PATIENCE);
        let server = config.cluster_url.to_string();
        let namespace = self
            .namespace
            .clone()
            .unwrap_or_else(|| config.default_namespace.clone());
        let client = Client::try_from(config).map_err(|error| CommandError::NoConfig(super::chain(&error)))?;
        Ok(Connected {
            client,
            namespace,
            server,
        })
    }

    async fn config(&self) -> Result<Config, CommandError> {
        if self.kubeconfig.is_none() && self.context.is_none() {
            return Config::infer()
                .await
                .map_err(|error| CommandError::NoConfig(super::chain(&error)));
        }
        let read = match &self.kubeconfig {
            Some(path) => Kubeconfig::read_from(path),
            None => Kubeconfig::read(),
        };
        let file = read.map_err(|error| CommandError::NoConfig(super::chain(&error)))?;
        if let Some(requested) = &self.context {
            let known: Vec<String> = file.contexts.iter().map(|one| one.name.clone()).collect();
            if !known.contains(requested) {
                return Err(CommandError::NoContext {
                    requested: requested.clone(),
                    known: if known.is_empty() {
                        "none".to_owned()
                    } else {
                        known.join(", ")
                    },
                });
            }
        }
        let options = KubeConfigOptions {
            context: self.context.clone(),
            ..KubeConfigOptions::default()
        };
        Config::from_custom_kubeconfig(file, &options)
            .await
            .map_err(|error| CommandError::NoConfig(super::chain(&error)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_count_while_the_line_is_still_being_typed() {
        let words = |line: &str| Connection::from_words(line.split(' ').map(str::to_owned));
        assert_eq!(words("candor status -n shop s").namespace.as_deref(), Some("shop"));
        assert_eq!(
            words("candor status --namespace=shop").namespace.as_deref(),
            Some("shop")
        );
        assert_eq!(words("candor --context a status").context.as_deref(), Some("a"));
        assert_eq!(words("candor status").namespace, None);
    }
}

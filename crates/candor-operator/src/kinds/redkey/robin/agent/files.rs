//! Robin's files: the configuration from its `ConfigMap`, and the credentials from its Secret. Kubernetes replaces them
//! up to a minute after the objects changed, so they are read again every few seconds.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::RobinSettings;
use crate::kinds::redkey::config::Password;
use crate::kinds::redkey::objects::RobinCredentials;
use crate::kinds::redkey::objects::credentials::{
    CERTIFICATE, PASSWORD, PREVIOUS_CERTIFICATE, PREVIOUS_TOKEN, PRIVATE_KEY, TOKEN,
};
use crate::kinds::redkey::objects::robin_config::{Configuration, ConfigurationError};
use crate::kinds::redkey::robin::link::tls::IdentityError;

/// How often files are read.
pub(super) const INTERVAL: Duration = Duration::from_secs(2);

/// Why files cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// A file cannot be read.
    #[error("{} cannot be read: is it mounted?", .0.display())]
    Unreadable(PathBuf, #[source] io::Error),
    /// The configuration cannot be parsed.
    #[error("{} cannot be used", .0.display())]
    Configuration(PathBuf, #[source] ConfigurationError),
    /// The Secret has no usable token, certificate or key.
    #[error("{} is empty: the operator writes it anew when Robin's Secret is deleted", .0.display())]
    Empty(PathBuf),
    /// The certificate cannot be used.
    #[error(transparent)]
    Certificate(IdentityError),
}

/// The content of the files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Loaded {
    pub(super) configuration: Configuration,
    pub(super) credentials: RobinCredentials,
    pub(super) password: Option<Password>,
}

/// Where the files are.
#[derive(Clone, Debug)]
pub(super) struct Files {
    config: PathBuf,
    credentials: PathBuf,
}

impl Files {
    pub(super) fn new(settings: &RobinSettings) -> Self {
        Self {
            config: settings.config.clone(),
            credentials: settings.credentials.clone(),
        }
    }

    /// Reads all files.
    pub(super) fn read(&self) -> Result<Loaded, FilesError> {
        let configuration = Configuration::parse(&text(&self.config)?);
        let configuration = configuration.map_err(|error| FilesError::Configuration(self.config.clone(), error))?;
        let previous = (self.optional(PREVIOUS_TOKEN)?, self.optional(PREVIOUS_CERTIFICATE)?);
        Ok(Loaded {
            configuration,
            credentials: RobinCredentials {
                token: self.required(TOKEN)?,
                certificate: self.required(CERTIFICATE)?,
                private_key: self.required(PRIVATE_KEY)?,
                previous: previous.0.zip(previous.1),
            },
            password: self.optional(PASSWORD)?.and_then(Password::new),
        })
    }

    /// Reads all files, and returns their content if it differs.
    pub(super) fn changed(&self, before: &Loaded) -> Result<Option<Loaded>, FilesError> {
        let now = self.read()?;
        Ok((now != *before).then_some(now))
    }

    fn required(&self, name: &str) -> Result<String, FilesError> {
        let path = self.credentials.join(name);
        let text = text(&path)?;
        if text.is_empty() {
            return Err(FilesError::Empty(path));
        }
        Ok(text)
    }

    fn optional(&self, name: &str) -> Result<Option<String>, FilesError> {
        match text(&self.credentials.join(name)) {
            Ok(text) => Ok(Some(text).filter(|text| !text.is_empty())),
            Err(FilesError::Unreadable(_, error)) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn text(path: &Path) -> Result<String, FilesError> {
    std::fs::read_to_string(path).map_err(|error| FilesError::Unreadable(path.to_owned(), error))
}

//! A container's environment, from every source, and `$(NAME)` in commands.

use std::collections::HashMap;

use k8s_openapi::api::core::v1::{ConfigMap, Container, EnvFromSource, EnvVar, EnvVarSource, Pod, Secret};
use kube::{Api, Client, ResourceExt};

use super::fields::{self, Addresses, FieldError};

/// Why a container cannot be configured; the message is that of `CreateContainerConfigError`.
#[derive(Debug, thiserror::Error)]
pub(super) enum EnvError {
    #[error("{kind} \"{name}\" not found")]
    NoObject { kind: &'static str, name: String },
    #[error("couldn't find key {key} in {kind} {namespace}/{name}")]
    NoKey {
        key: String,
        kind: &'static str,
        namespace: String,
        name: String,
    },
    #[error(transparent)]
    Field(#[from] FieldError),
    #[error("{}", message(.0))]
    Api(#[from] kube::Error),
}

/// What the API server answered, without the client's wrapping.
pub(super) fn message(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}

/// What the environment of a container is made from.
pub(super) struct Sources<'a> {
    pub client: &'a Client,
    pub pod: &'a Pod,
    pub addresses: &'a Addresses,
    /// Set before all others, such as `KUBERNETES_SERVICE_HOST` and the image's own.
    pub given: Vec<(String, String)>,
}

impl Sources<'_> {
    fn namespace(&self) -> String {
        self.pod.namespace().unwrap_or_default()
    }

    /// The variables in the order they are set; a name that is set again keeps its place and takes the last value.
    pub async fn environment(&self, container: &Container) -> Result<Vec<(String, String)>, EnvError> {
        let mut env = Environment::default();
        for (name, value) in &self.given {
            env.set(name, value.clone());
        }
        for source in container.env_from.iter().flatten() {
            for (name, value) in self.whole(source).await? {
                env.set(&name, value);
            }
        }
        for variable in container.env.iter().flatten() {
            if let Some(value) = self.one(container, variable, &env).await? {
                env.set(&variable.name, value);
            }
        }
        Ok(env.0)
    }

    async fn whole(&self, source: &EnvFromSource) -> Result<Vec<(String, String)>, EnvError> {
        let prefix = source.prefix.clone().unwrap_or_default();
        let data = if let Some(of) = &source.config_map_ref {
            self.config_map(&of.name, of.optional).await?
        } else if let Some(of) = &source.secret_ref {
            self.secret(&of.name, of.optional).await?
        } else {
            None
        };
        let mut all: Vec<_> = data.unwrap_or_default().into_iter().collect();
        all.sort();
        Ok(all
            .into_iter()
            .map(|(name, value)| (format!("{prefix}{name}"), value))
            .collect())
    }

    async fn one(
        &self,
        container: &Container,
        variable: &EnvVar,
        env: &Environment,
    ) -> Result<Option<String>, EnvError> {
        let Some(source) = &variable.value_from else {
            let value = variable.value.as_deref().unwrap_or_default();
            return Ok(Some(expand(value, |name| env.get(name))));
        };
        self.from(container, source).await
    }

    async fn from(&self, container: &Container, source: &EnvVarSource) -> Result<Option<String>, EnvError> {
        if let Some(of) = &source.field_ref {
            return Ok(Some(fields::field(self.pod, self.addresses, &of.field_path)?));
        }
        if let Some(of) = &source.resource_field_ref {
            return Ok(Some(fields::resource(self.pod, container, of)?));
        }
        let (kind, name, key, optional, data) = if let Some(of) = &source.config_map_key_ref {
            let data = self.config_map(&of.name, of.optional).await?;
            ("ConfigMap", &of.name, &of.key, of.optional, data)
        } else if let Some(of) = &source.secret_key_ref {
            let data = self.secret(&of.name, of.optional).await?;
            ("Secret", &of.name, &of.key, of.optional, data)
        } else {
            return Ok(None);
        };
        let value = data.and_then(|mut data| data.remove(key));
        if value.is_none() && optional != Some(true) {
            return Err(EnvError::NoKey {
                key: key.clone(),
                kind,
                namespace: self.namespace(),
                name: name.clone(),
            });
        }
        Ok(value)
    }

    async fn config_map(
        &self,
        name: &str,
        optional: Option<bool>,
    ) -> Result<Option<HashMap<String, String>>, EnvError> {
        let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), &self.namespace());
        let found = api.get_opt(name).await?;
        present(found, "configmap", name, optional)
            .map(|found| found.map(|map| map.data.into_iter().flatten().collect()))
    }

    async fn secret(&self, name: &str, optional: Option<bool>) -> Result<Option<HashMap<String, String>>, EnvError> {
        let api: Api<Secret> = Api::namespaced(self.client.clone(), &self.namespace());
        let found = present(api.get_opt(name).await?, "secret", name, optional)?;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok(found.map(|secret| {
            secret
                .data
                .into_iter()
                .flatten()
                .map(|(key, value)| (key, text(value.0)))
                .collect()
        }))
    }
}

fn present<T>(found: Option<T>, kind: &'static str, name: &str, optional: Option<bool>) -> Result<Option<T>, EnvError> {
    if found.is_none() && optional != Some(true) {
        return Err(EnvError::NoObject {
            kind,
            name: name.to_owned(),
        });
    }
    Ok(found)
}

#[derive(Default)]
struct Environment(Vec<(String, String)>);

impl Environment {
    fn set(&mut self, name: &str, value: String) {
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }

    fn get(&self, name: &str) -> Option<String> {
        self.0
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.clone())
    }
}

/// Replaces `$(NAME)`; `$$` is a dollar, and an unknown name stays as it is written.
pub(super) fn expand(text: &str, lookup: impl Fn(&str) -> Option<String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let tail = &rest[at + 1..];
        if let Some(after) = tail.strip_prefix('$') {
            out.push('$');
            rest = after;
        } else if let Some((name, after)) = tail.strip_prefix('(').and_then(|tail| tail.split_once(')')) {
            match lookup(name) {
                Some(value) => out.push_str(&value),
                None => out.push_str(&rest[at..at + name.len() + 3]),
            }
            rest = after;
        } else {
            out.push('$');
            rest = tail;
        }
    }
    out.push_str(rest);
    out
}

/// Command and arguments with the environment put in. The image's own count where the container names none; a
/// container that names a command does not get the image's arguments.
pub(super) fn command_line(
    container: &Container,
    entrypoint: &[String],
    args: &[String],
    env: &[(String, String)],
) -> Vec<String> {
    let lookup = |name: &str| {
        env.iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.clone())
    };
    let expanded = |words: &[String]| words.iter().map(|word| expand(word, lookup)).collect::<Vec<_>>();
    let own_command = container.command.as_deref().filter(|words| !words.is_empty());
    let own_args = container.args.as_deref().filter(|words| !words.is_empty());
    let mut line = own_command.map_or_else(|| entrypoint.to_vec(), expanded);
    match (own_command, own_args) {
        (_, Some(words)) => line.extend(expanded(words)),
        (None, None) => line.extend_from_slice(args),
        (Some(_), None) => {}
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_parentheses_are_replaced_as_kubernetes_does() {
        let lookup = |name: &str| (name == "A").then(|| "1".to_owned());
        for (text, expected) in [
            ("$(A)", "1"),
            ("$$(A)", "$(A)"),
            ("$$$(A)", "$1"),
            ("$(B)", "$(B)"),
            ("$A $", "$A $"),
            ("$(A", "$(A"),
            ("x$(A)y$(A)", "x1y1"),
        ] {
            assert_eq!(expand(text, lookup), expected, "{text}");
        }
    }

    #[test]
    fn a_command_of_the_container_sets_the_arguments_of_the_image_aside() {
        let words = |list: &[&str]| Some(list.iter().map(ToString::to_string).collect::<Vec<_>>());
        for (command, args, expected) in [
            (None, None, vec!["entry", "arg"]),
            (None, words(&["x"]), vec!["entry", "x"]),
            (words(&["run"]), None, vec!["run"]),
            (words(&["run"]), words(&["$(A)"]), vec!["run", "1"]),
        ] {
            let container = Container {
                command,
                args,
                ..Container::default()
            };
            let env = [("A".to_owned(), "1".to_owned())];
            let line = command_line(&container, &["entry".to_owned()], &["arg".to_owned()], &env);
            assert_eq!(line, expected);
        }
    }
}

//! The user that the auditor logs in as: `default` or a named user, with the password that the cluster gives it.

use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, DynamicObject};
use serde_json::Value;

use crate::object::Kind;

/// A user of the servers.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Login {
    /// The user; `None` means `default`.
    pub user: Option<String>,
    /// Its password, if it has one.
    pub password: Option<String>,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

/// Where the login comes from.
pub(crate) struct Source {
    pub kind: Kind,
    pub client: kube::Client,
    pub user: Option<String>,
    pub password: Option<String>,
}

impl Source {
    /// The login from the options alone.
    pub fn given(&self) -> Login {
        Login {
            user: self.user.clone(),
            password: self.password.clone(),
        }
    }

    /// The login from the options. A password that is not set there is taken from the spec.
    pub async fn login(&self, object: &DynamicObject) -> Login {
        let mut login = self.given();
        if login.password.is_none() {
            let user = self.user.as_deref().unwrap_or("default");
            login.password = self.of_spec(object, user).await;
        }
        login
    }

    async fn of_spec(&self, object: &DynamicObject, user: &str) -> Option<String> {
        let (secret, key) = secret_of(self.kind, object, user)?;
        let namespace = object.metadata.namespace.as_deref().unwrap_or("default");
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
        let found = match secrets.get(&secret).await {
            Ok(found) => found.data.unwrap_or_default().remove(&key)?,
            Err(error) => {
                tracing::debug!(secret, %error, "the user's password cannot be read");
                return None;
            }
        };
        let text = String::from_utf8(found.0).ok()?;
        // Editors and `echo` append a newline; the operator strips it too.
        let text = text.strip_suffix('\n').unwrap_or(&text);
        let text = text.strip_suffix('\r').unwrap_or(text);
        // An empty text is no password.
        (!text.is_empty()).then(|| text.to_owned())
    }
}

/// The Secret and its key, if the spec names a user with a password.
fn secret_of(kind: Kind, object: &DynamicObject, name: &str) -> Option<(String, String)> {
    match kind {
        Kind::ValkeyCluster => secret_of_user(object, name),
        Kind::RedkeyCluster => secret_of_servers(object),
    }
}

/// The Secret of `spec.auth`. A password of `spec.config` is in the agent's Secret.
fn secret_of_servers(object: &DynamicObject) -> Option<(String, String)> {
    let named = object.data["spec"]["auth"]["secret"].as_str().map(str::to_owned);
    let name = match named {
        Some(name) => name,
        None => format!("{}-robin", object.metadata.name.as_deref()?),
    };
    Some((name, "requirepass".to_owned()))
}

fn secret_of_user(object: &DynamicObject, name: &str) -> Option<(String, String)> {
    let users = object.data["spec"]["users"].as_array()?;
    let user = users.iter().find(|user| user["name"] == name)?;
    if user["nopass"] == Value::Bool(true) || user["resetpass"] == Value::Bool(true) {
        return None;
    }
    let secret = &user["passwordSecret"];
    let cluster = object.metadata.name.as_deref()?;
    let key = secret["keys"][0].as_str().unwrap_or(name).to_owned();
    let name = secret["name"]
        .as_str()
        .map_or_else(|| format!("{cluster}-users"), str::to_owned);
    Some((name, key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn secret_for(users: &Value) -> Option<(String, String)> {
        let mut object = DynamicObject::new("c", &Kind::ValkeyCluster.resource());
        object.data = json!({"spec": {"users": users}});
        secret_of(Kind::ValkeyCluster, &object, "default")
    }

    #[test]
    fn the_secret_of_the_default_user_is_found_where_the_contract_puts_it() {
        let pair = |name: &str, key: &str| Some((name.to_owned(), key.to_owned()));
        for (users, desired) in [
            (json!([]), None),
            (json!([{"name": "app", "passwordSecret": {}}]), None),
            (json!([{"name": "default", "nopass": true, "passwordSecret": {}}]), None),
            (json!([{"name": "default", "resetpass": true}]), None),
            (json!([{"name": "default"}]), pair("c-users", "default")),
            (
                json!([{"name": "default", "passwordSecret": {}}]),
                pair("c-users", "default"),
            ),
            (
                json!([{"name": "default", "passwordSecret": {"name": "s", "keys": ["new", "old"]}}]),
                pair("s", "new"),
            ),
        ] {
            assert_eq!(secret_for(&users), desired, "{users}");
        }
    }

    #[test]
    fn the_password_of_a_redkeycluster_is_in_the_secret_that_its_spec_names() {
        for (spec, name) in [
            (json!({"auth": {"secret": "s"}}), "s"),
            (json!({"config": "requirepass x"}), "c-robin"),
        ] {
            let mut object = DynamicObject::new("c", &Kind::RedkeyCluster.resource());
            object.data = json!({"spec": spec});
            let found = secret_of(Kind::RedkeyCluster, &object, "default");
            assert_eq!(found, Some((name.to_owned(), "requirepass".to_owned())));
        }
    }

    #[test]
    fn a_password_is_never_shown() {
        let login = Login {
            user: None,
            password: Some("secret".into()),
        };
        assert!(!format!("{login:?}").contains("secret"));
    }
}

//! As whom the auditor writes and asks: the `default` user, with its password when the cluster gives it one.

use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, DynamicObject};
use serde_json::Value;

/// A user of the servers.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Login {
    /// The user; none means `default`.
    pub user: Option<String>,
    /// Its password, when it has one.
    pub password: Option<String>,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

/// The password that the spec gives to `default`: the first key of the Secret it names.
pub(crate) async fn of_default_user(client: &kube::Client, object: &DynamicObject) -> Login {
    let Some((secret, key)) = secret_of(object) else {
        return Login::default();
    };
    let namespace = object.metadata.namespace.as_deref().unwrap_or("default");
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let password = match secrets.get(&secret).await {
        Ok(found) => found.data.unwrap_or_default().remove(&key),
        Err(error) => {
            tracing::warn!(secret, %error, "the password of the default user cannot be read");
            None
        }
    };
    Login {
        user: None,
        password: password.and_then(|bytes| String::from_utf8(bytes.0).ok()),
    }
}

/// The Secret and the key in it, where the spec names `default` with a password.
fn secret_of(object: &DynamicObject) -> Option<(String, String)> {
    let users = object.data["spec"]["users"].as_array()?;
    let user = users.iter().find(|user| user["name"] == "default")?;
    if user["nopass"] == Value::Bool(true) {
        return None;
    }
    let secret = user.get("passwordSecret")?;
    let cluster = object.metadata.name.as_deref()?;
    let name = secret["name"]
        .as_str()
        .map_or_else(|| format!("{cluster}-users"), str::to_owned);
    let key = secret["keys"][0].as_str().unwrap_or("default").to_owned();
    Some((name, key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn secret_for(users: &Value) -> Option<(String, String)> {
        let mut object = DynamicObject::new("c", &crate::object::kind());
        object.data = json!({"spec": {"users": users}});
        secret_of(&object)
    }

    #[test]
    fn the_secret_of_the_default_user_is_found_where_the_contract_puts_it() {
        let pair = |name: &str, key: &str| Some((name.to_owned(), key.to_owned()));
        for (users, wanted) in [
            (json!([]), None),
            (json!([{"name": "app", "passwordSecret": {}}]), None),
            (json!([{"name": "default", "nopass": true, "passwordSecret": {}}]), None),
            (json!([{"name": "default"}]), None),
            (
                json!([{"name": "default", "passwordSecret": {}}]),
                pair("c-users", "default"),
            ),
            (
                json!([{"name": "default", "passwordSecret": {"name": "s", "keys": ["new", "old"]}}]),
                pair("s", "new"),
            ),
        ] {
            assert_eq!(secret_for(&users), wanted, "{users}");
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

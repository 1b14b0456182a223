//! Who asks.

use std::collections::BTreeMap;

/// An authenticated user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// `system:serviceaccount:default:default`
    pub name: String,
    /// Set for service accounts.
    pub uid: String,
    /// What the bindings are about.
    pub groups: Vec<String>,
    /// What an authenticator adds, such as the pod a token is bound to.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// An authenticated user of these groups; `system:authenticated` is added.
    pub fn new(name: impl Into<String>, groups: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let mut groups: Vec<String> = groups.into_iter().map(Into::into).collect();
        let all_users = "system:authenticated".to_owned();
        if !groups.contains(&all_users) {
            groups.push(all_users);
        }
        Self {
            name: name.into(),
            groups,
            ..Self::default()
        }
    }

    /// Who gives no name.
    pub fn anonymous() -> Self {
        Self {
            name: "system:anonymous".into(),
            groups: vec!["system:unauthenticated".into()],
            ..Self::default()
        }
    }

    /// A service account.
    pub fn service_account(namespace: &str, name: &str, uid: &str) -> Self {
        let mut user = Self::new(
            format!("system:serviceaccount:{namespace}:{name}"),
            [
                "system:serviceaccounts".to_owned(),
                format!("system:serviceaccounts:{namespace}"),
            ],
        );
        uid.clone_into(&mut user.uid);
        user
    }

    /// Whether everything is allowed.
    pub fn is_master(&self) -> bool {
        self.groups.iter().any(|g| g == "system:masters")
    }
}

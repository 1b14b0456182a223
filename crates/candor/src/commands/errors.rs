//! Why a command failed, each error with what to do next.

use kube::core::Status;

use super::cluster::Kind;

/// What failed, and what to do next.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// No kubeconfig can be used.
    #[error(
        "no kubeconfig can be used: {0}\nName one with --kubeconfig or KUBECONFIG, or start a cluster on this host: candor sandbox"
    )]
    NoConfig(String),
    /// The context is not in the kubeconfig.
    #[error("the kubeconfig has no context {requested:?}\nIt has: {known}")]
    NoContext {
        /// The requested context.
        requested: String,
        /// The existing contexts.
        known: String,
    },
    /// The API server does not respond.
    #[error(
        "the API server does not respond: {0}\nIs it up, and is this the right one? See: kubectl config current-context"
    )]
    Unreachable(String),
    /// The CRDs are not installed.
    #[error(
        "the API server knows no {0}: Candor's CRDs are not installed there\nInstall them: kubectl apply -f deploy/crds (and see: candor doctor)"
    )]
    NoDefinition(String),
    /// A permission is missing.
    #[error("{message}\n{remedy}")]
    Forbidden {
        /// The API server's message.
        message: String,
        /// How to grant the permission.
        remedy: String,
    },
    /// The API server rejects the credentials.
    #[error(
        "the API server rejects the credentials: {0}\nThe credentials of the kubeconfig have run out or belong to another cluster; log in again"
    )]
    Unauthorized(String),
    /// There is no such cluster.
    #[error("there is no {kind} {name:?} in namespace {namespace}\n{hint}")]
    NoCluster {
        /// The requested kind, or `cluster` if none was.
        kind: &'static str,
        /// The requested name.
        name: String,
        /// The namespace that was searched.
        namespace: String,
        /// What exists instead.
        hint: String,
    },
    /// Clusters of several kinds have the name.
    #[error(
        "there are two clusters {name:?} in namespace {namespace}, a ValkeyCluster and a RedkeyCluster\nName the one that you mean: vkc/{name} or rkcl/{name}"
    )]
    Ambiguous {
        /// The name.
        name: String,
        /// The namespace that was searched.
        namespace: String,
    },
    /// The API server rejected the request for another reason.
    #[error("{what}: {message}")]
    Refused {
        /// The attempted action.
        what: String,
        /// The API server's message.
        message: String,
    },
    /// The arguments make no sense.
    #[error("{0}")]
    Usage(String),
    /// A file cannot be read or written.
    #[error("{path}: {message}")]
    File {
        /// Which.
        path: String,
        /// Why.
        message: String,
    },
}

impl CommandError {
    /// Converts an error of the client. `what` is the attempted action.
    pub fn of(error: &kube::Error, what: &str) -> Self {
        match error {
            kube::Error::Api(status) => Self::of_status(status, what),
            kube::Error::Service(_) | kube::Error::HyperError(_) | kube::Error::ReadEvents(_) => {
                Self::Unreachable(super::chain(error))
            }
            other => Self::Refused {
                what: what.to_owned(),
                message: super::chain(other),
            },
        }
    }

    fn of_status(status: &Status, what: &str) -> Self {
        let message = status.message.clone();
        match status.code {
            401 => Self::Unauthorized(message),
            403 => Self::Forbidden {
                remedy: remedy(&message),
                message,
            },
            // The kind does not exist; for a missing object the API server names the object.
            404 if status.details.as_ref().is_none_or(|details| details.name.is_empty()) => {
                Self::NoDefinition(what.to_owned())
            }
            _ => Self::Refused {
                what: what.to_owned(),
                message,
            },
        }
    }

    /// No cluster has that name; suggests the most similar names.
    pub fn no_cluster(kind: Option<Kind>, name: &str, namespace: &str, known: &[String]) -> Self {
        Self::NoCluster {
            kind: kind.map_or("cluster", Kind::name),
            name: name.to_owned(),
            namespace: namespace.to_owned(),
            hint: nearest(name, known),
        }
    }

    /// What failed, without what to do next.
    pub fn first_line(&self) -> String {
        self.to_string().lines().next().unwrap_or_default().to_owned()
    }
}

/// The names most similar to the requested one.
fn nearest(name: &str, known: &[String]) -> String {
    const SHOWN: usize = 3;
    if known.is_empty() {
        return "There is none at all there; list every namespace with: candor status -A".to_owned();
    }
    // A kind before the name does not count.
    let bare = |address: &str| address.rsplit('/').next().unwrap_or_default().to_owned();
    let mut ranked: Vec<(usize, &String)> = known
        .iter()
        .map(|other| (strsim::damerau_levenshtein(name, &bare(other)), other))
        .collect();
    ranked.sort();
    let close = |distance: usize| distance <= name.len().div_ceil(2).max(2);
    let near: Vec<&str> = ranked
        .iter()
        .filter(|(distance, other)| close(*distance) || other.contains(name))
        .take(SHOWN)
        .map(|(_, other)| other.as_str())
        .collect();
    if near.is_empty() {
        let some: Vec<&str> = ranked.iter().take(SHOWN).map(|(_, other)| other.as_str()).collect();
        let more = known.len().saturating_sub(SHOWN);
        let more = if more > 0 {
            format!(" (and {more} more)")
        } else {
            String::new()
        };
        format!("There is: {}{more}", some.join(", "))
    } else {
        format!("Did you mean {}?", near.join(", "))
    }
}

/// How to grant the permission that the API server's message names: `User "x" cannot list resource "pods" in API group
/// "" in the namespace "shop"`.
fn remedy(message: &str) -> String {
    let quoted = |after: &str| {
        let rest = message.split_once(after)?.1;
        Some(rest.split('"').nth(1)?.to_owned())
    };
    let verb = message
        .split_once(" cannot ")
        .and_then(|(_, rest)| rest.split_whitespace().next());
    let resource = quoted(" resource ");
    let (Some(verb), Some(resource), Some(user)) = (verb, resource, quoted("User ")) else {
        return "An administrator must grant the permission; candor doctor lists all that are needed".to_owned();
    };
    let group = quoted("API group ").filter(|group| !group.is_empty());
    let full = group.map_or(resource.clone(), |group| format!("{resource}.{group}"));
    match quoted("in the namespace ") {
        Some(namespace) => format!(
            "An administrator can grant it with:\n  kubectl create role candor-{verb} -n {namespace} --verb={verb} --resource={full}\n  \
             kubectl create rolebinding candor-{verb} -n {namespace} --role=candor-{verb} --user={user}"
        ),
        None => format!(
            "An administrator can grant it with:\n  kubectl create clusterrole candor-{verb} --verb={verb} --resource={full}\n  \
             kubectl create clusterrolebinding candor-{verb} --clusterrole=candor-{verb} --user={user}\n\
             or name a namespace with -n"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(all: &[&str]) -> Vec<String> {
        all.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_nearest_names_are_offered() {
        for (asked, known, hint) in [
            ("shpo", vec!["shop", "billing"], "Did you mean shop?"),
            ("prod", vec!["prod-eu", "prod-us"], "Did you mean prod-eu, prod-us?"),
            ("shop", vec!["vkc/shop"], "Did you mean vkc/shop?"),
            ("zzz", vec!["alpha", "beta"], "There is: beta, alpha"),
            (
                "x",
                vec![],
                "There is none at all there; list every namespace with: candor status -A",
            ),
        ] {
            assert_eq!(nearest(asked, &names(&known)), hint);
        }
    }

    #[test]
    fn a_missing_right_is_named_with_the_command_that_gives_it() {
        let message = "pods is forbidden: User \"jane\" cannot list resource \"pods\" in API group \"\" in the namespace \"shop\"";
        assert!(remedy(message).contains("kubectl create role candor-list -n shop --verb=list --resource=pods"));
        assert!(remedy(message).contains("--user=jane"));
        let wide = "leases.coordination.k8s.io is forbidden: User \"jane\" cannot list resource \"leases\" in API group \
                    \"coordination.k8s.io\" at the cluster scope";
        assert!(remedy(wide).contains("--resource=leases.coordination.k8s.io"));
        assert!(remedy(wide).contains("clusterrole"));
        assert!(remedy("no").contains("candor doctor"));
    }
}

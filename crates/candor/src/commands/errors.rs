//! Why a command failed, each error with what to do next.

use kube::core::Status;

/// What failed, and what to do next.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// No kubeconfig can be used.
    #[error(
        "no kubeconfig can be used: {0}\nName one with --kubeconfig or KUBECONFIG, or start a cluster on this machine: candor sandbox"
    )]
    NoConfig(String),
    /// The context is not in the kubeconfig.
    #[error("the kubeconfig has no context {wanted:?}\nIt has: {known}")]
    NoContext {
        /// The requested context.
        wanted: String,
        /// The existing contexts.
        known: String,
    },
    /// The API server does not respond.
    #[error(
        "the API server does not answer: {0}\nIs it up, and is this the right one? See: kubectl config current-context"
    )]
    Unreachable(String),
    /// The CRDs are not installed.
    #[error(
        "the API server knows no {0}: Candor's definitions are not installed there\nInstall them: kubectl apply -f deploy/crds (and see: candor doctor)"
    )]
    NoDefinition(String),
    /// A permission is missing.
    #[error("{words}\n{remedy}")]
    Forbidden {
        /// The API server's message.
        words: String,
        /// How to grant the permission.
        remedy: String,
    },
    /// The API server rejects the credentials.
    #[error(
        "the API server does not know who is asking: {0}\nThe credentials of the kubeconfig have run out or belong to another cluster; log in again"
    )]
    Unauthorized(String),
    /// There is no such cluster.
    #[error("there is no ValkeyCluster {name:?} in namespace {namespace}\n{hint}")]
    NoCluster {
        /// The requested name.
        name: String,
        /// The namespace that was searched.
        namespace: String,
        /// What exists instead.
        hint: String,
    },
    /// The API server rejected the request for another reason.
    #[error("{what}: {words}")]
    Refused {
        /// The attempted action.
        what: String,
        /// The API server's message.
        words: String,
    },
    /// The arguments make no sense.
    #[error("{0}")]
    Usage(String),
    /// A file cannot be read or written.
    #[error("{path}: {words}")]
    File {
        /// Which.
        path: String,
        /// Why.
        words: String,
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
                words: super::chain(other),
            },
        }
    }

    fn of_status(status: &Status, what: &str) -> Self {
        let words = status.message.clone();
        match status.code {
            401 => Self::Unauthorized(words),
            403 => Self::Forbidden {
                remedy: remedy(&words),
                words,
            },
            // The kind does not exist; for a missing object the API server names the object.
            404 if status.details.as_ref().is_none_or(|details| details.name.is_empty()) => {
                Self::NoDefinition(what.to_owned())
            }
            _ => Self::Refused {
                what: what.to_owned(),
                words,
            },
        }
    }

    /// No cluster has that name; suggests the most similar names.
    pub fn no_cluster(name: &str, namespace: &str, known: &[String]) -> Self {
        Self::NoCluster {
            name: name.to_owned(),
            namespace: namespace.to_owned(),
            hint: nearest(name, known),
        }
    }
}

/// The names most similar to the requested one.
fn nearest(name: &str, known: &[String]) -> String {
    const SHOWN: usize = 3;
    if known.is_empty() {
        return "There is none at all there; look everywhere with: candor status -A".to_owned();
    }
    let mut ranked: Vec<(usize, &String)> = known
        .iter()
        .map(|other| (strsim::damerau_levenshtein(name, other), other))
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
fn remedy(words: &str) -> String {
    let quoted = |after: &str| {
        let rest = words.split_once(after)?.1;
        Some(rest.split('"').nth(1)?.to_owned())
    };
    let verb = words
        .split_once(" cannot ")
        .and_then(|(_, rest)| rest.split_whitespace().next());
    let resource = quoted(" resource ");
    let (Some(verb), Some(resource), Some(user)) = (verb, resource, quoted("User ")) else {
        return "An administrator must give the right; candor doctor lists all that are needed".to_owned();
    };
    let group = quoted("API group ").filter(|group| !group.is_empty());
    let full = group.map_or(resource.clone(), |group| format!("{resource}.{group}"));
    match quoted("in the namespace ") {
        Some(namespace) => format!(
            "Who may, gives the right with:\n  kubectl create role candor-{verb} -n {namespace} --verb={verb} --resource={full}\n  \
             kubectl create rolebinding candor-{verb} -n {namespace} --role=candor-{verb} --user={user}"
        ),
        None => format!(
            "Who may, gives the right with:\n  kubectl create clusterrole candor-{verb} --verb={verb} --resource={full}\n  \
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
            ("zzz", vec!["alpha", "beta"], "There is: beta, alpha"),
            (
                "x",
                vec![],
                "There is none at all there; look everywhere with: candor status -A",
            ),
        ] {
            assert_eq!(nearest(asked, &names(&known)), hint);
        }
    }

    #[test]
    fn a_missing_right_is_named_with_the_command_that_gives_it() {
        let words = "pods is forbidden: User \"jane\" cannot list resource \"pods\" in API group \"\" in the namespace \"shop\"";
        assert!(remedy(words).contains("kubectl create role candor-list -n shop --verb=list --resource=pods"));
        assert!(remedy(words).contains("--user=jane"));
        let wide = "leases.coordination.k8s.io is forbidden: User \"jane\" cannot list resource \"leases\" in API group \
                    \"coordination.k8s.io\" at the cluster scope";
        assert!(remedy(wide).contains("--resource=leases.coordination.k8s.io"));
        assert!(remedy(wide).contains("clusterrole"));
        assert!(remedy("no").contains("candor doctor"));
    }
}

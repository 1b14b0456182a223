//! What a request means, read from its method, path and query alone.

use std::fmt;

use http::{Method, Request, Uri, header::USER_AGENT};

/// The verbs of Kubernetes, as RBAC names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verb {
    /// One object.
    Get,
    /// A collection.
    List,
    /// A stream of changes.
    Watch,
    /// A new object, also a subresource such as `eviction` or `token`.
    Create,
    /// The whole object.
    Update,
    /// A part of it.
    Patch,
    /// One object.
    Delete,
    /// Many at once.
    DeleteCollection,
}

impl Verb {
    /// Whether it changes something.
    pub fn writes(self) -> bool {
        !matches!(self, Self::Get | Self::List | Self::Watch)
    }

    /// As RBAC writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }
}

/// One request, in the terms of the API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestInfo {
    /// What is asked.
    pub verb: Verb,
    /// Empty for the core group.
    pub group: String,
    /// `v1`
    pub version: String,
    /// The plural; empty for paths that are no resource, such as `/version`.
    pub resource: String,
    /// `status`, `scale`, `log` …; empty for the object itself.
    pub subresource: String,
    /// Empty for cluster-wide requests.
    pub namespace: String,
    /// Empty for collections.
    pub name: String,
    /// The user agent that the client sent.
    pub user_agent: String,
    /// Asked with `dryRun=All`: nothing is changed.
    pub dry_run: bool,
    /// The path as sent.
    pub path: String,
}

impl RequestInfo {
    /// Reads a request.
    pub fn of<B>(request: &Request<B>) -> Self {
        let user_agent = request
            .headers()
            .get(USER_AGENT)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        Self::read(request.method(), request.uri(), user_agent)
    }

    /// Reads a request's parts.
    pub fn read(method: &Method, uri: &Uri, user_agent: &str) -> Self {
        let path = uri.path();
        let mut parts = path.split('/').filter(|part| !part.is_empty());
        let (group, version) = match parts.next() {
            Some("api") => (String::new(), parts.next().unwrap_or_default().to_owned()),
            Some("apis") => (
                parts.next().unwrap_or_default().to_owned(),
                parts.next().unwrap_or_default().to_owned(),
            ),
            _ => (String::new(), String::new()),
        };
        let rest: Vec<&str> = if version.is_empty() {
            Vec::new()
        } else {
            parts.collect()
        };
        // `/namespaces/a/pods/b/status`, but `/namespaces/a` and `/namespaces/a/status` are namespaces themselves.
        let (namespace, rest) = match rest.as_slice() {
            ["namespaces", namespace, resource, ..] if !matches!(*resource, "status" | "finalize") => {
                ((*namespace).to_owned(), &rest[2..])
            }
            ["namespaces", namespace, ..] => ((*namespace).to_owned(), &rest[..]),
            _ => (String::new(), &rest[..]),
        };
        let part = |at: usize| rest.get(at).copied().unwrap_or_default().to_owned();
        let (resource, name) = (part(0), part(1));
        let subresource = rest.get(2..).map(|parts| parts.join("/")).unwrap_or_default();
        let query = uri.query().unwrap_or_default();
        let verb = match *method {
            Method::POST => Verb::Create,
            Method::PUT => Verb::Update,
            Method::PATCH => Verb::Patch,
            Method::DELETE if name.is_empty() => Verb::DeleteCollection,
            Method::DELETE => Verb::Delete,
            _ if asks(query, "watch") => Verb::Watch,
            _ if name.is_empty() && !resource.is_empty() => Verb::List,
            _ => Verb::Get,
        };
        Self {
            verb,
            group,
            version,
            resource,
            subresource,
            namespace,
            name,
            user_agent: user_agent.to_owned(),
            dry_run: query.split('&').any(|pair| pair == "dryRun=All"),
            path: path.to_owned(),
        }
    }

    /// Whether it changes what is stored.
    pub fn writes(&self) -> bool {
        self.verb.writes() && !self.dry_run && !self.resource.is_empty()
    }
}

impl fmt::Display for RequestInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.verb.as_str())?;
        if self.resource.is_empty() {
            return f.write_str(&self.path);
        }
        f.write_str(&self.resource)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        if !self.subresource.is_empty() {
            write!(f, "/{}", self.subresource)?;
        }
        match (self.namespace.as_str(), self.name.as_str()) {
            ("", "") => Ok(()),
            ("", name) => write!(f, " {name}"),
            (namespace, "") => write!(f, " {namespace}/"),
            (namespace, name) => write!(f, " {namespace}/{name}"),
        }
    }
}

/// Whether a flag of the query is set, in any of the spellings the real server takes.
fn asks(query: &str, flag: &str) -> bool {
    query.split('&').any(|pair| match pair.split_once('=') {
        Some((key, value)) => key == flag && matches!(value, "1" | "true" | "True" | "TRUE" | "t" | "T"),
        None => pair == flag,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_described_as_verb_resource_and_name() {
        let table = [
            ("GET", "/api/v1/pods", "list pods"),
            ("GET", "/api/v1/namespaces/a/pods?watch=1", "watch pods a/"),
            ("GET", "/api/v1/namespaces/a/pods?watch=0", "list pods a/"),
            ("GET", "/api/v1/namespaces/a", "get namespaces a/a"),
            ("PUT", "/api/v1/namespaces/a/finalize", "update namespaces/finalize a/a"),
            ("PUT", "/api/v1/namespaces/a/status", "update namespaces/status a/a"),
            ("POST", "/api/v1/namespaces", "create namespaces"),
            (
                "POST",
                "/api/v1/namespaces/a/pods/b/eviction",
                "create pods/eviction a/b",
            ),
            (
                "PATCH",
                "/apis/apps/v1/namespaces/a/deployments/b/status",
                "patch deployments.apps/status a/b",
            ),
            (
                "DELETE",
                "/apis/apps/v1/namespaces/a/deployments",
                "deletecollection deployments.apps a/",
            ),
            ("DELETE", "/api/v1/nodes/n", "delete nodes n"),
            ("GET", "/version", "get /version"),
            ("GET", "/apis", "get /apis"),
            ("GET", "/apis/apps/v1", "get /apis/apps/v1"),
        ];
        for (method, uri, message) in table {
            let request = Request::builder().method(method).uri(uri).body(()).unwrap();
            assert_eq!(RequestInfo::of(&request).to_string(), message, "{method} {uri}");
        }
    }

    #[test]
    fn a_dry_run_is_no_write() {
        let request = |uri: &str| RequestInfo::of(&Request::builder().method("POST").uri(uri).body(()).unwrap());
        assert!(request("/api/v1/namespaces/a/pods").writes());
        assert!(!request("/api/v1/namespaces/a/pods?dryRun=All").writes());
    }
}

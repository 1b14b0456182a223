//! From a method and a path to what is meant: the same reading for RBAC, routing and the log.

use http::Method;

/// What a request asks for, as RBAC sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestInfo {
    /// `get`, `list`, `watch`, `create` …; the lower-case method for paths that are no resource.
    pub verb: String,
    /// The whole path.
    pub path: String,
    /// Whether the path names a resource.
    pub is_resource: bool,
    /// Empty for core.
    pub group: String,
    /// `v1`
    pub version: String,
    /// Empty for cluster-wide requests.
    pub namespace: String,
    /// The plural name.
    pub resource: String,
    /// `status`, `log` …
    pub subresource: String,
    /// Empty for collections.
    pub name: String,
    /// More path parts than a resource can have.
    pub too_deep: bool,
}

impl RequestInfo {
    /// Reads a path such as `/apis/apps/v1/namespaces/a/deployments/b/scale`.
    pub fn parse(method: &Method, path: &str, watch: bool) -> Self {
        let mut info = Self {
            verb: method.as_str().to_ascii_lowercase(),
            path: path.to_owned(),
            ..Self::default()
        };
        let decoded: Vec<String> = path.split('/').filter(|p| !p.is_empty()).map(percent_decode).collect();
        let parts: Vec<&str> = decoded.iter().map(String::as_str).collect();
        let rest = match parts.as_slice() {
            ["api", version, rest @ ..] if !rest.is_empty() => {
                (*version).clone_into(&mut info.version);
                rest
            }
            ["apis", group, version, rest @ ..] if !rest.is_empty() => {
                (*group).clone_into(&mut info.group);
                (*version).clone_into(&mut info.version);
                rest
            }
            _ => return info,
        };
        info.is_resource = true;
        let (watch, rest) = match rest {
            ["watch", rest @ ..] if !rest.is_empty() => (true, rest),
            rest => (watch, rest),
        };
        let rest = match rest {
            ["namespaces", namespace, rest @ ..] => {
                (*namespace).clone_into(&mut info.namespace);
                match rest {
                    [] => &["namespaces", *namespace][..],
                    ["status"] => &["namespaces", *namespace, "status"][..],
                    ["finalize"] => &["namespaces", *namespace, "finalize"][..],
                    rest => rest,
                }
            }
            rest => rest,
        };
        let part = |i: usize| rest.get(i).copied().unwrap_or_default();
        part(0).clone_into(&mut info.resource);
        part(1).clone_into(&mut info.name);
        part(2).clone_into(&mut info.subresource);
        info.too_deep = rest.len() > 3;
        let verb = match (method.as_str(), info.name.is_empty()) {
            ("GET" | "HEAD", _) if watch => "watch",
            ("GET" | "HEAD", true) => "list",
            ("GET" | "HEAD", false) => "get",
            ("POST", _) => "create",
            ("PUT", _) => "update",
            ("PATCH", _) => "patch",
            ("DELETE", true) => "deletecollection",
            ("DELETE", false) => "delete",
            _ => "",
        };
        verb.clone_into(&mut info.verb);
        info
    }
}

/// `%2F` and the like; what is not valid stays as it is.
pub(crate) fn percent_decode(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(b) = bytes.next() {
        if b == b'%' {
            let rest = bytes.clone();
            let hex: Vec<u8> = rest.take(2).collect();
            let code = std::str::from_utf8(&hex).ok().filter(|h| h.len() == 2);
            if let Some(code) = code.and_then(|h| u8::from_str_radix(h, 16).ok()) {
                out.push(code);
                bytes.nth(1);
                continue;
            }
        }
        out.push(b);
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_mean_what_the_real_server_takes_them_for() {
        let table = [
            ("GET", "/api/v1/pods", "list  pods//"),
            ("GET", "/api/v1/namespaces/a/pods/b", "get a pods/b/"),
            ("GET", "/api/v1/namespaces/a/pods/b/log", "get a pods/b/log"),
            ("POST", "/api/v1/namespaces", "create  namespaces//"),
            ("GET", "/api/v1/namespaces/a", "get a namespaces/a/"),
            ("PUT", "/api/v1/namespaces/a/finalize", "update a namespaces/a/finalize"),
            (
                "DELETE",
                "/apis/apps/v1/namespaces/a/deployments",
                "deletecollection a deployments//",
            ),
            (
                "PATCH",
                "/apis/apps/v1/namespaces/a/deployments/x/scale",
                "patch a deployments/x/scale",
            ),
            ("GET", "/apis/apps/v1/watch/deployments", "watch  deployments//"),
            (
                "GET",
                "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode",
                "get  clusterroles/system:node/",
            ),
        ];
        for (method, path, expected) in table {
            let info = RequestInfo::parse(&method.parse().unwrap(), path, false);
            let got = format!(
                "{} {} {}/{}/{}",
                info.verb, info.namespace, info.resource, info.name, info.subresource
            );
            assert_eq!(got, expected, "{method} {path}");
        }
        for path in [
            "/",
            "/api",
            "/api/v1",
            "/apis/apps",
            "/apis/apps/v1",
            "/healthz",
            "/version",
        ] {
            assert!(!RequestInfo::parse(&Method::GET, path, false).is_resource, "{path}");
        }
    }
}

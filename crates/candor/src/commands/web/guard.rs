//! What every request must satisfy, and the headers of every response.
//!
//! A page on another site can make a browser send requests here. The Host header shows whether the browser was led here
//! under a foreign name (DNS rebinding), and `Sec-Fetch-Site` and `Origin` show whether another site sent the request.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

/// Only files of this server, no inline script or style, no frame around it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The names under which the page may be opened.
#[derive(Clone, Debug)]
pub struct Hosts(pub Vec<String>);

impl Hosts {
    /// This machine's own names and those that the user gave.
    pub fn new(given: impl IntoIterator<Item = String>) -> Self {
        let own = ["localhost", "127.0.0.1", "[::1]"].map(str::to_owned);
        Self(own.into_iter().chain(given).collect())
    }

    /// Whether a Host header names one of them, with any port: the connection reached this port already.
    fn allow(&self, host: &str) -> bool {
        let is_port = |text: &str| text.is_empty() || text[1..].bytes().all(|byte| byte.is_ascii_digit());
        self.0.iter().any(|name| {
            let rest = host
                .get(..name.len())
                .filter(|start| start.eq_ignore_ascii_case(name))
                .map(|_| &host[name.len()..]);
            rest.is_some_and(|rest| (rest.is_empty() || rest.starts_with(':')) && is_port(rest))
        })
    }
}

/// Why a request is rejected.
fn rejection(hosts: &Hosts, method: &Method, headers: &HeaderMap) -> Option<&'static str> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let Some(host) = text("host") else {
        return Some("The request names no host.");
    };
    if !hosts.allow(host) {
        return Some(
            "The request names a host that is not this page's. Open it by its own address, or allow the name with --host.",
        );
    }
    let is_foreign = text("sec-fetch-site").is_some_and(|site| !matches!(site, "same-origin" | "none"));
    // A link on another site may open a page: that reads nothing and changes nothing.
    let is_link = method == Method::GET
        && text("sec-fetch-mode") == Some("navigate")
        && text("sec-fetch-dest") == Some("document");
    if is_foreign && !is_link {
        return Some("The request comes from another site.");
    }
    let origin = text("origin").and_then(|origin| origin.split_once("://"));
    match text("origin") {
        Some(_) if origin.is_some_and(|(_, name)| name.eq_ignore_ascii_case(host)) => None,
        Some(_) => Some("The request comes from another site."),
        // Browsers name the origin of everything that changes something.
        None if method != Method::GET && method != Method::HEAD => Some("The request names no origin."),
        None => None,
    }
}

/// Rejects what must not be answered and adds the headers that browsers need to protect the page.
pub async fn guard(State(hosts): State<Hosts>, request: Request, next: Next) -> Response {
    let mut response = match rejection(&hosts, request.method(), request.headers()) {
        Some(why) => (StatusCode::FORBIDDEN, why).into_response(),
        None => next.run(request).await,
    };
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // Stricter, and browsers would name no origin in forms.
        (header::REFERRER_POLICY, "same-origin"),
        (
            header::HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
        (
            header::HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rejected(method: &Method, headers: &[(&'static str, &str)]) -> bool {
        let hosts = Hosts::new(["candor.example".to_owned()]);
        let headers = headers
            .iter()
            .map(|(name, value)| (header::HeaderName::from_static(name), value.parse().unwrap()))
            .collect();
        rejection(&hosts, method, &headers).is_some()
    }

    #[test]
    fn a_foreign_host_is_rejected() {
        for (host, is_rejected) in [
            ("127.0.0.1:8088", false),
            ("LOCALHOST:8088", false),
            ("[::1]:8088", false),
            ("candor.example", false),
            ("evil.example", true),
            ("localhost.evil.example", true),
            ("127.0.0.1.evil.example:8088", true),
            ("localhost:80@evil.example", true),
            ("", true),
        ] {
            assert_eq!(rejected(&Method::GET, &[("host", host)]), is_rejected, "{host}");
        }
        assert!(rejected(&Method::GET, &[]), "no host at all");
    }

    #[test]
    fn a_request_of_another_site_is_rejected_and_a_link_is_not() {
        let host = ("host", "127.0.0.1:8088");
        let site = |site: &'static str| ("sec-fetch-site", site);
        assert!(rejected(&Method::GET, &[host, site("cross-site")]));
        assert!(rejected(&Method::GET, &[host, site("same-site")]));
        assert!(!rejected(&Method::GET, &[host, site("same-origin")]));
        assert!(!rejected(&Method::GET, &[host, site("none")]));
        let link = [
            host,
            site("cross-site"),
            ("sec-fetch-mode", "navigate"),
            ("sec-fetch-dest", "document"),
        ];
        assert!(!rejected(&Method::GET, &link));
        assert!(rejected(&Method::POST, &link));
        let frame = [
            host,
            site("cross-site"),
            ("sec-fetch-mode", "navigate"),
            ("sec-fetch-dest", "iframe"),
        ];
        assert!(rejected(&Method::GET, &frame));
    }

    #[test]
    fn a_change_needs_the_origin_of_the_page_itself() {
        let host = ("host", "127.0.0.1:8088");
        assert!(rejected(&Method::POST, &[host]));
        assert!(rejected(&Method::POST, &[host, ("origin", "null")]));
        assert!(rejected(&Method::POST, &[host, ("origin", "https://evil.example")]));
        assert!(rejected(&Method::POST, &[host, ("origin", "http://127.0.0.1:9999")]));
        assert!(!rejected(&Method::POST, &[host, ("origin", "http://127.0.0.1:8088")]));
    }
}

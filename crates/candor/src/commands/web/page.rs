//! The frame of every page, and the files that belong to it. Nothing is fetched from elsewhere.

use std::io::Write;
use std::sync::LazyLock;

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use flate2::Compression;
use flate2::write::GzEncoder;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest, Sha256};

use super::marks::Rendered;
use crate::commands::clean::clean;

/// The script of the page.
pub const SCRIPT: &str = include_str!("page.js");
/// Its style sheet.
pub const STYLE: &str = include_str!("style.css");
/// Its icon.
pub const ICON: &str = include_str!("icon.svg");

/// Browsers keep script and style sheet for as long as they are the same.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let digest = Sha256::new().chain_update(SCRIPT).chain_update(STYLE).finalize();
    digest
        .iter()
        .take(6)
        .fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
});

/// What surrounds the content of a page.
#[derive(Clone, Debug, Default)]
pub struct Frame {
    /// The title, after which the name of the program follows.
    pub title: String,
    /// The name of the cluster in the navigation.
    pub trail: Option<String>,
    /// Where its changes come from; `None` for a page that does not change.
    pub stream: Option<String>,
    /// Whether the page can change clusters.
    pub has_actions: bool,
    /// The user that is logged in.
    pub user: Option<String>,
}

/// A whole page.
pub fn page(frame: &Frame, content: &Markup) -> String {
    let mode = if frame.has_actions {
        "Changes are made with your own permissions."
    } else {
        "Read-only: this page changes nothing. Start it with --actions to allow changes."
    };
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (frame.title) " · Candor" }
                link rel="icon" href="/icon.svg";
                link rel="stylesheet" href={ "/style.css?v=" (*VERSION) };
                script src={ "/page.js?v=" (*VERSION) } defer {}
            }
            body data-stream=[frame.stream.as_deref()] {
                a class="skip" href="#main" { "Skip to the content" }
                header class="top" {
                    nav aria-label="Pages" {
                        a class="brand" href="/" { (PreEscaped(LOGO)) "Candor" }
                        @if let Some(trail) = &frame.trail { span class="trail" aria-current="page" { (trail) } }
                    }
                    @if frame.stream.is_some() {
                        div class="live" { span class="dot" aria-hidden="true" {} span id="live" { "Connecting" } span id="fresh" {} }
                    }
                    @if let Some(user) = &frame.user {
                        form method="post" action="/logout" class="user" { span { (user) } button { "Log out" } }
                    }
                }
                p id="alert" role="alert" {}
                main id="main" tabindex="-1" { (content) }
                footer {
                    p class="mode" { (if frame.has_actions { "✎ " } else { "◉ " }) (mode) }
                    noscript { p { "Without its script this page shows the moment at which it was loaded." } }
                }
            }
        }
    };
    clean(&page.into_string(), false)
}

const LOGO: &str = r#"<svg viewBox="0 0 24 24" width="20" height="20" aria-hidden="true"><circle cx="12" cy="12" r="9" fill="none" stroke="currentColor" stroke-width="3" stroke-dasharray="16 2.85"/><circle cx="12" cy="12" r="3" fill="currentColor"/></svg>"#;

/// The parts of one list.
pub fn list(rendered: &Rendered, name: &str) -> Markup {
    let parts = rendered
        .iter()
        .filter(|(list, _)| *list == name)
        .flat_map(|(_, parts)| parts);
    html! { div id=(name) class="list" { @for part in parts { (PreEscaped(&part.html)) } } }
}

/// A page with only a heading and a sentence.
pub fn message(title: &str, text: &str) -> Markup {
    html! { section class="card message" { h1 { (title) } p { (text) } p { a href="/" { "All clusters" } } } }
}

/// A response, compressed if the browser takes it. `lasting` is for files whose address changes with their content.
pub fn respond(request: &HeaderMap, status: StatusCode, kind: &str, text: &str, lasting: bool) -> Response {
    let accepted = request
        .get(header::ACCEPT_ENCODING)
        .and_then(|value| value.to_str().ok());
    let is_taken = accepted.is_some_and(|all| all.split(',').any(|one| one.trim().starts_with("gzip")));
    let compressed = is_taken.then(|| gzip(text)).flatten();
    let cache = if lasting {
        "public, max-age=31536000, immutable"
    } else {
        "no-store"
    };
    let mut response = Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, kind)
        .header(header::CACHE_CONTROL, cache)
        .header(header::VARY, "Accept-Encoding");
    let body = match compressed {
        Some(bytes) => {
            response = response.header(header::CONTENT_ENCODING, "gzip");
            Body::from(bytes)
        }
        None => Body::from(text.to_owned()),
    };
    response.body(body).unwrap_or_default()
}

/// A page as a response.
pub fn html_response(request: &HeaderMap, status: StatusCode, page: &str) -> Response {
    respond(request, status, "text/html; charset=utf-8", page, false)
}

fn gzip(text: &str) -> Option<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).ok()?;
    encoder.finish().ok()
}

//! The page where a user logs in with a Kubernetes token.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use maud::html;

use super::page::{self, Frame, html_response};
use super::serve::{App, query};
use super::sight::Sight;

/// Who sends a request; without a valid login the response that leads to the login page.
pub fn viewer(app: &App, headers: &HeaderMap) -> Result<Sight, Box<Response>> {
    let Some(sessions) = &app.sessions else {
        return Ok(Sight::default());
    };
    sessions.of(headers).map(Sight::of).ok_or_else(|| {
        let is_stream = headers
            .get(header::ACCEPT)
            .is_some_and(|kind| kind == "text/event-stream");
        Box::new(if is_stream {
            (StatusCode::UNAUTHORIZED, "Log in again.").into_response()
        } else {
            see_other("/login")
        })
    })
}

/// Leads to another page.
pub fn see_other(path: &str) -> Response {
    (StatusCode::SEE_OTHER, [(header::LOCATION, path.to_owned())]).into_response()
}

/// The login page.
pub async fn form(State(app): State<Arc<App>>, headers: HeaderMap) -> Response {
    show(&app, &headers, StatusCode::OK, None)
}

fn show(app: &App, headers: &HeaderMap, status: StatusCode, error: Option<&str>) -> Response {
    if app.sessions.is_none() {
        return see_other("/");
    }
    let content = html! {
        section class="card message" {
            h1 { "Log in" }
            p { "With a Kubernetes token. You see exactly what your permissions in this Kubernetes allow." }
            @if let Some(error) = error { p class="banner bad" role="alert" { (error) } }
            form method="post" action="/login" {
                label for="token" { "Token" }
                input id="token" name="token" type="password" autocomplete="off" required autofocus;
                button class="primary" { "Log in" }
            }
            p class="hint" { "For example of a service account: kubectl create token NAME -n NAMESPACE" }
        }
    };
    let frame = Frame {
        title: "Log in".to_owned(),
        ..Frame::default()
    };
    html_response(headers, status, &page::page(&frame, &content))
}

/// Logs in.
pub async fn begin(State(app): State<Arc<App>>, headers: HeaderMap, body: String) -> Response {
    let Some(sessions) = &app.sessions else {
        return see_other("/");
    };
    let token = query(Some(&body), "token").unwrap_or_default();
    match sessions
        .begin(&app.at.client, token.trim(), is_secure(&headers), Timestamp::now())
        .await
    {
        Some(cookie) => with_cookie(cookie),
        None => show(
            &app,
            &headers,
            StatusCode::UNAUTHORIZED,
            Some("The API server does not accept this token."),
        ),
    }
}

/// Logs out.
pub async fn end(State(app): State<Arc<App>>, headers: HeaderMap) -> Response {
    match &app.sessions {
        Some(sessions) => with_cookie(sessions.end(&headers, is_secure(&headers))),
        None => see_other("/"),
    }
}

fn with_cookie(cookie: String) -> Response {
    (
        StatusCode::SEE_OTHER,
        [(header::LOCATION, "/".to_owned()), (header::SET_COOKIE, cookie)],
    )
        .into_response()
}

/// Whether the browser reached a proxy by TLS. Without one the page is opened through `kubectl port-forward`.
fn is_secure(headers: &HeaderMap) -> bool {
    headers.get("x-forwarded-proto").is_some_and(|scheme| scheme == "https")
}

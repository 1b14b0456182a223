//! Routes and what they share.

use std::sync::{Arc, RwLock, RwLockReadGuard};
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use jiff::Timestamp;
use tokio::sync::watch;

use super::cluster::{self, PageOptions};
use super::figures::{Figures, Watching};
use super::fleet::{self, Filter};
use super::guard::{Hosts, guard};
use super::login::{self, viewer};
use super::page::{self, Frame, html_response, respond};
use super::session::Sessions;
use super::sight::Sight;
use super::source::Shared;
use super::stream::stream;
use super::view::View;
use super::world::{Key, World};
use super::{actions, change, frames};
use crate::commands::cluster::Kind;
use crate::commands::connect::{Connected, Connection};

/// How long the first page waits for the first lists.
const PATIENCE: Duration = Duration::from_secs(3);

/// What all requests share.
pub struct App {
    /// The connection to the API server.
    pub at: Connected,
    /// What is known.
    pub shared: Shared,
    /// Notified when that changes.
    pub changed: watch::Sender<u64>,
    /// Figures of the clusters that somebody looks at.
    pub watching: Watching,
    /// The token that a request for a change must repeat; `None`: the page is read-only.
    pub token: Option<String>,
    /// The logins; `None`: whoever reaches the page is the user of the kubeconfig.
    pub sessions: Option<Sessions>,
    /// Where to connect to with a user's own token.
    pub connection: Connection,
}

impl App {
    /// What is known now.
    pub fn world(&self) -> Option<RwLockReadGuard<'_, World>> {
        self.shared.read().ok()
    }

    /// When the API server last responded.
    pub fn heard(&self) -> Option<Timestamp> {
        self.world()?.heard()
    }

    /// Notifications of changes.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// What the servers of a cluster report, kept current for as long as it is held.
    pub fn figures(&self, key: &Key) -> Arc<RwLock<Figures>> {
        self.watching.of(&self.at, &self.shared, key)
    }

    /// Waits until the clusters were listed once, or for a while.
    pub async fn listed(&self) {
        let mut changes = self.changes();
        let complete = async {
            while !self.world().is_some_and(|world| world.is_complete()) {
                if changes.changed().await.is_err() {
                    return;
                }
            }
        };
        // A page without clusters says what is missing.
        let _ = tokio::time::timeout(PATIENCE, complete).await;
    }
}

/// All routes.
pub fn router(app: Arc<App>, hosts: Hosts) -> Router {
    let file = |kind: &'static str, text: &'static str| {
        get(move |headers: HeaderMap| async move { respond(&headers, StatusCode::OK, kind, text, true) })
    };
    Router::new()
        .route("/", get(fleet_page))
        .route("/stream", get(fleet_stream))
        .route("/c/{namespace}/{kind}/{name}", get(cluster_page))
        .route("/c/{namespace}/{kind}/{name}/stream", get(cluster_stream))
        .route("/page.js", file("text/javascript; charset=utf-8", page::SCRIPT))
        .route("/style.css", file("text/css; charset=utf-8", page::STYLE))
        .route("/icon.svg", file("image/svg+xml", page::ICON))
        .route("/healthz", get(|| async { "ok" }))
        .route("/login", get(login::form).post(login::begin))
        .route("/logout", post(login::end))
        .route("/c/{namespace}/{kind}/{name}/confirm", get(change::confirm))
        .route("/c/{namespace}/{kind}/{name}/change", post(change::perform))
        .fallback(missing)
        .layer(from_fn_with_state(hosts, guard))
        .with_state(app)
}

/// The values of a query, the last of each name.
pub fn query(raw: Option<&str>, name: &str) -> Option<String> {
    let pairs = form_urlencoded::parse(raw.unwrap_or_default().as_bytes());
    let values = pairs.filter(|(key, value)| key == name && !value.is_empty());
    values.last().map(|(_, value)| value.into_owned())
}

fn filter(raw: Option<&str>) -> Filter {
    Filter {
        namespace: query(raw, "namespace"),
        text: query(raw, "q").unwrap_or_default(),
    }
}

/// The cluster that a path names.
pub fn key((namespace, kind, name): (String, String, String)) -> Option<Key> {
    let kind = Kind::ALL.into_iter().find(|one| one.short() == kind)?;
    Some(Key { namespace, kind, name })
}

fn options(app: &App, sight: &Sight, raw: Option<&str>) -> PageOptions {
    let shards = query(raw, "shards").and_then(|text| text.parse().ok());
    PageOptions {
        shards: shards.filter(|shards| (1..=actions::MOST).contains(shards)),
        token: change::token(app, sight),
    }
}

async fn fleet_page(State(app): State<Arc<App>>, headers: HeaderMap, RawQuery(raw): RawQuery) -> Response {
    let mut sight = match viewer(&app, &headers) {
        Ok(sight) => sight,
        Err(response) => return *response,
    };
    app.listed().await;
    let filter = filter(raw.as_deref());
    let now = Timestamp::now();
    if sight.refresh(&app, now, None).await.is_none() {
        return login::see_other("/login");
    }
    let user = sight.session().map(super::session::Session::name);
    let namespaces = app.world().map(|world| world.namespaces()).unwrap_or_default();
    let namespaces: Vec<String> = namespaces.into_iter().filter(|one| sight.sees_namespace(one)).collect();
    let mut view = View::fleet(filter.clone(), sight);
    let Some(Some(rendered)) = view.render(&app, now).await else {
        return unavailable(&headers);
    };
    let content = frames::fleet(&filter, &namespaces, &fleet::lists(&rendered));
    let frame = Frame {
        title: "Clusters".to_owned(),
        stream: Some(with_query("/stream", raw.as_deref())),
        has_actions: app.token.is_some(),
        user,
        ..Frame::default()
    };
    html_response(&headers, StatusCode::OK, &page::page(&frame, &content))
}

async fn fleet_stream(State(app): State<Arc<App>>, headers: HeaderMap, RawQuery(raw): RawQuery) -> Response {
    match viewer(&app, &headers) {
        Ok(sight) => stream(app, View::fleet(filter(raw.as_deref()), sight)).into_response(),
        Err(response) => *response,
    }
}

async fn cluster_page(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    Path(path): Path<(String, String, String)>,
    RawQuery(raw): RawQuery,
) -> Response {
    let Some(key) = key(path) else {
        return missing(headers).await;
    };
    let sight = match viewer(&app, &headers) {
        Ok(sight) => sight,
        Err(response) => return *response,
    };
    app.listed().await;
    let options = options(&app, &sight, raw.as_deref());
    let user = sight.session().map(super::session::Session::name);
    let mut view = View::cluster(&app, key.clone(), options, sight);
    let Some(Some(rendered)) = view.render(&app, Timestamp::now()).await else {
        return login::see_other("/login");
    };
    let is_gone = rendered
        .iter()
        .any(|(_, parts)| parts.iter().any(|part| part.id == "gone"));
    let frame = Frame {
        title: key.name.clone(),
        trail: Some(format!("{}/{}", key.namespace, key.name)),
        stream: Some(with_query(&format!("{}/stream", key.path()), raw.as_deref())),
        has_actions: app.token.is_some(),
        user,
    };
    let status = if is_gone { StatusCode::NOT_FOUND } else { StatusCode::OK };
    html_response(&headers, status, &page::page(&frame, &cluster::lists(&rendered)))
}

async fn cluster_stream(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    Path(path): Path<(String, String, String)>,
    RawQuery(raw): RawQuery,
) -> Response {
    let Some(key) = key(path) else {
        return missing(headers).await;
    };
    let sight = match viewer(&app, &headers) {
        Ok(sight) => sight,
        Err(response) => return *response,
    };
    let options = options(&app, &sight, raw.as_deref());
    let view = View::cluster(&app, key, options, sight);
    stream(app, view).into_response()
}

fn with_query(path: &str, raw: Option<&str>) -> String {
    raw.map_or_else(|| path.to_owned(), |raw| format!("{path}?{raw}"))
}

/// A page that does not exist.
pub async fn missing(headers: HeaderMap) -> Response {
    let content = page::message(
        "There is no such page",
        "The address names nothing that this page shows.",
    );
    let frame = Frame {
        title: "Not found".to_owned(),
        ..Frame::default()
    };
    html_response(&headers, StatusCode::NOT_FOUND, &page::page(&frame, &content))
}

fn unavailable(headers: &HeaderMap) -> Response {
    let content = page::message("Nothing can be shown", "Reload the page, or start candor web again.");
    let frame = Frame {
        title: "Unavailable".to_owned(),
        ..Frame::default()
    };
    html_response(headers, StatusCode::SERVICE_UNAVAILABLE, &page::page(&frame, &content))
}

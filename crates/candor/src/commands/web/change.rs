//! Changes that a user requests: shown first, confirmed on a page of their own, then written with the user's own
//! permissions.

use std::sync::Arc;

use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use jiff::Timestamp;
use maud::{Markup, html};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::actions::{MOST, steps, with_shards};
use super::login::{see_other, viewer};
use super::page::{self, Frame, html_response};
use super::serve::{App, key, missing, query};
use super::sight::Sight;
use super::world::Key;
use crate::commands::cluster::{Cluster, Kind};
use crate::commands::connect::Connected;
use crate::commands::errors::CommandError;
use crate::commands::failover;
use crate::commands::output::some;
use crate::commands::snapshot::Snapshot;
use crate::commands::{plan, requests};

/// A change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Pause,
    Resume,
    Restart,
    Failover { shard: u32 },
    Scale { shards: i32 },
}

impl Change {
    /// From a query or a form.
    fn read(raw: Option<&str>) -> Option<Self> {
        let number = |name: &str| query(raw, name)?.parse::<u32>().ok();
        Some(match query(raw, "action")?.as_str() {
            "pause" => Self::Pause,
            "resume" => Self::Resume,
            "restart" => Self::Restart,
            "failover" => Self::Failover {
                shard: number("shard")?,
            },
            "scale" => Self::Scale {
                shards: i32::try_from(number("shards")?)
                    .ok()
                    .filter(|n| (1..=MOST).contains(n))?,
            },
            _ => return None,
        })
    }

    /// The fields of the form that repeat it.
    fn fields(self) -> Vec<(&'static str, String)> {
        match self {
            Self::Pause => vec![("action", "pause".to_owned())],
            Self::Resume => vec![("action", "resume".to_owned())],
            Self::Restart => vec![("action", "restart".to_owned())],
            Self::Failover { shard } => vec![("action", "failover".to_owned()), ("shard", shard.to_string())],
            Self::Scale { shards } => vec![("action", "scale".to_owned()), ("shards", shards.to_string())],
        }
    }

    fn title(self, cluster: &Cluster) -> String {
        let name = format!("{}/{}", cluster.namespace, cluster.name);
        match self {
            Self::Pause => format!("Pause {name}?"),
            Self::Resume => format!("Resume {name}?"),
            Self::Restart => format!("Restart the members of {name}?"),
            Self::Failover { shard } => format!("Fail over shard {shard} of {name}?"),
            Self::Scale { shards } => format!("Scale {name} to {}?", some(shards.into(), cluster.kind.unit())),
        }
    }

    /// What will happen.
    fn explanation(self, snapshot: &Snapshot) -> Markup {
        match self {
            Self::Pause => {
                html! { p { "The operator reports status but makes no changes, until the cluster is resumed." } }
            }
            Self::Resume => html! { p { "The operator makes changes again." } },
            Self::Restart => html! { p { "Every member is replaced, one by one, replicas first." } },
            Self::Failover { .. } => html! {
                p { "The best replica becomes the primary with the old primary's help: no acknowledged write is lost." }
            },
            Self::Scale { shards } => {
                let after = with_shards(&snapshot.object, shards);
                html! { (steps(&plan::preview(Some(&snapshot.object), &after, &plan::weights(snapshot)))) }
            }
        }
    }

    /// The patch that requests it, or why it would be of no use.
    fn patch(self, snapshot: &Snapshot, now: Timestamp) -> Result<Value, String> {
        let kind = snapshot.object.kind();
        match self {
            Self::Pause => Ok(requests::paused()),
            Self::Resume => Ok(requests::resumed(kind)),
            Self::Restart if kind == Kind::RedkeyCluster => {
                Err("A RedkeyCluster cannot be restarted by request: change its image, resources or config.".to_owned())
            }
            Self::Restart => Ok(requests::restarted(now)),
            Self::Failover { shard } => {
                let request = failover::request(snapshot, shard, None)?;
                Ok(json!({"metadata": {"annotations": {kind.failover_annotation(): request.to_string()}}}))
            }
            Self::Scale { shards } => {
                let (field, _) = kind.shape_fields();
                Ok(json!({"spec": {field: shards}}))
            }
        }
    }
}

/// The token that a viewer's requests for changes must repeat; `None` if changes are not allowed.
pub fn token(app: &App, sight: &Sight) -> Option<String> {
    let own = app.token.clone()?;
    Some(sight.session().map_or(own, |session| session.change_token.clone()))
}

/// A cluster that the viewer may see.
async fn snapshot(app: &App, sight: &mut Sight, key: &Key) -> Option<Snapshot> {
    let now = Timestamp::now();
    sight.refresh(app, now, Some(key)).await?;
    let snapshot = app.world()?.snapshot(key, now);
    snapshot.filter(|_| sight.sees(key))
}

/// The page that asks for a confirmation. It changes nothing.
pub async fn confirm(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    Path(path): Path<(String, String, String)>,
    RawQuery(raw): RawQuery,
) -> Response {
    let mut sight = match viewer(&app, &headers) {
        Ok(sight) => sight,
        Err(response) => return *response,
    };
    let (Some(key), Some(change)) = (key(path), Change::read(raw.as_deref())) else {
        return missing(headers).await;
    };
    let (Some(token), Some(snapshot)) = (token(&app, &sight), snapshot(&app, &mut sight, &key).await) else {
        return missing(headers).await;
    };
    let cluster = snapshot.object.view();
    let title = change.title(&cluster);
    let content = html! {
        section class="card message" {
            h1 { (title) }
            @match change.patch(&snapshot, snapshot.now) {
                Ok(_) => {
                    (change.explanation(&snapshot))
                    form method="post" action={ (key.path()) "/change" } {
                        input type="hidden" name="token" value=(token);
                        input type="hidden" name="generation" value=(cluster.generation.unwrap_or(0));
                        @for (name, value) in change.fields() { input type="hidden" name=(name) value=(value); }
                        button class="primary" { (title.trim_end_matches('?')) }
                        a href=(key.path()) { "Cancel" }
                    }
                }
                Err(why) => { p class="banner bad" { (why) } p { a href=(key.path()) { "Back" } } }
            }
        }
    };
    respond(&app, &sight, &headers, StatusCode::OK, &title, &content)
}

/// Writes a confirmed change.
pub async fn perform(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    Path(path): Path<(String, String, String)>,
    body: String,
) -> Response {
    let mut sight = match viewer(&app, &headers) {
        Ok(sight) => sight,
        Err(response) => return *response,
    };
    let form = Some(body.as_str());
    let (Some(key), Some(change)) = (key(path), Change::read(form)) else {
        return missing(headers).await;
    };
    let (Some(token), Some(snapshot)) = (token(&app, &sight), snapshot(&app, &mut sight, &key).await) else {
        return missing(headers).await;
    };
    let refused = |status: StatusCode, why: &str| {
        let content = page::message("Nothing was changed", why);
        respond(&app, &sight, &headers, status, "Nothing was changed", &content)
    };
    if !is_same(&token, &query(form, "token").unwrap_or_default()) {
        return refused(StatusCode::FORBIDDEN, "The request does not come from this page.");
    }
    let generation = snapshot.object.metadata().generation.unwrap_or(0).to_string();
    if query(form, "generation").as_deref() != Some(&generation) {
        let why = "The cluster's spec has changed since the confirmation was shown. Look at the plan again.";
        return refused(StatusCode::CONFLICT, why);
    }
    let patch = match change.patch(&snapshot, snapshot.now) {
        Ok(patch) => patch,
        Err(why) => return refused(StatusCode::CONFLICT, &why),
    };
    match write(&app, &sight, &key, &patch).await {
        Ok(()) => see_other(&key.path()),
        Err(error) => refused(StatusCode::BAD_REQUEST, &error.to_string()),
    }
}

/// Writes with the permissions of the viewer.
async fn write(app: &App, sight: &Sight, key: &Key, patch: &Value) -> Result<(), CommandError> {
    let at = match sight.session() {
        Some(session) => app.connection.connect_as(session.token()).await?,
        None => app.at.clone(),
    };
    let at = Connected {
        namespace: key.namespace.clone(),
        ..at
    };
    requests::write(&at, &key.reference(), patch).await
}

fn respond(
    app: &App,
    sight: &Sight,
    headers: &HeaderMap,
    status: StatusCode,
    title: &str,
    content: &Markup,
) -> Response {
    let frame = Frame {
        title: title.to_owned(),
        has_actions: app.token.is_some(),
        user: sight.session().map(super::session::Session::name),
        ..Frame::default()
    };
    html_response(headers, status, &page::page(&frame, content))
}

/// Compares hashes, so that the time it takes says nothing about the token.
fn is_same(one: &str, other: &str) -> bool {
    Sha256::digest(one) == Sha256::digest(other)
}

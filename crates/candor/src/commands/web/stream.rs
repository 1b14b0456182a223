//! The stream of changes of one viewer: what changed since the last message, at most a few times a second, and a
//! message every second in any case, so that a viewer notices a broken stream.

use std::collections::HashMap;
use std::convert::Infallible;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use axum::response::sse::{Event, Sse};
use futures::Stream;
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use super::marks::{Part, Rendered};
use super::serve::App;
use super::view::View;
use crate::commands::clean;

/// A message is sent at least this often.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// Changes within this time are one message.
const GATHER: Duration = Duration::from_millis(200);

/// What a viewer has: the hash of each part, in the order of each list.
#[derive(Default)]
pub struct Sent(HashMap<&'static str, Vec<(String, u64)>>);

impl Sent {
    /// The lists that changed: every part in its order, with its HTML if that changed.
    pub fn changes(&mut self, rendered: &Rendered) -> Map<String, Value> {
        let mut changed = Map::new();
        for (list, parts) in rendered {
            let now: Vec<(String, u64)> = parts.iter().map(|part| (part.id.clone(), hash(part))).collect();
            let before = self.0.insert(list, now.clone());
            if before.as_ref() == Some(&now) {
                continue;
            }
            let known: HashMap<&str, u64> = before.iter().flatten().map(|(id, hash)| (id.as_str(), *hash)).collect();
            let entry = |(part, (id, hash)): (&Part, &(String, u64))| match known.get(id.as_str()) {
                Some(same) if same == hash => json!([id]),
                _ => json!([id, part.html]),
            };
            changed.insert((*list).to_owned(), parts.iter().zip(&now).map(entry).collect());
        }
        changed
    }
}

fn hash(part: &Part) -> u64 {
    let mut hasher = DefaultHasher::new();
    part.html.hash(&mut hasher);
    hasher.finish()
}

struct Viewer {
    app: Arc<App>,
    view: View,
    sent: Sent,
    changes: watch::Receiver<u64>,
    last: Option<Instant>,
}

/// The stream of a view.
pub fn stream(app: Arc<App>, view: View) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let viewer = Viewer {
        changes: app.changes(),
        app,
        view,
        sent: Sent::default(),
        last: None,
    };
    Sse::new(futures::stream::unfold(viewer, |mut viewer| async move {
        let message = viewer.next().await?;
        Some((Ok(Event::default().data(message)), viewer))
    }))
}

impl Viewer {
    /// The next message; `None` ends the stream.
    async fn next(&mut self) -> Option<String> {
        if let Some(last) = self.last {
            let is_changed = timeout(HEARTBEAT.saturating_sub(last.elapsed()), self.changes.changed()).await;
            if matches!(is_changed, Ok(Err(_))) {
                return None;
            }
            if is_changed.is_ok() {
                sleep_until(last + GATHER).await;
            }
        }
        self.last = Some(Instant::now());
        self.changes.mark_unchanged();
        let now = Timestamp::now();
        let rendered = self.view.render(&self.app, now).await?;
        let lists = rendered
            .map(|rendered| self.sent.changes(&rendered))
            .unwrap_or_default();
        let heard = self.app.heard().map(|at| now.duration_since(at).as_millis().max(0));
        let message =
            json!({"now": now.as_millisecond(), "old": heard.and_then(|age| i64::try_from(age).ok()), "lists": lists});
        Some(clean::json(&message.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use maud::html;

    use super::*;

    #[test]
    fn only_what_changed_is_sent_again() {
        let part = |id: &str, text: &str| Part::new(id, html! { p id=(id) { (text) } });
        let mut sent = Sent::default();
        let all = sent.changes(&vec![("rows", vec![part("a", "1"), part("b", "1")])]);
        assert_eq!(
            json!(all),
            json!({"rows": [["a", "<p id=\"a\">1</p>"], ["b", "<p id=\"b\">1</p>"]]})
        );
        let none = sent.changes(&vec![("rows", vec![part("a", "1"), part("b", "1")])]);
        assert_eq!(json!(none), json!({}));
        let one = sent.changes(&vec![("rows", vec![part("b", "2"), part("a", "1")])]);
        assert_eq!(json!(one), json!({"rows": [["b", "<p id=\"b\">2</p>"], ["a"]]}));
        let gone = sent.changes(&vec![("rows", vec![part("a", "1")])]);
        assert_eq!(json!(gone), json!({"rows": [["a"]]}));
    }
}

//! Small pieces of pages: a state as a sign and a word, ages that go on counting, parts that are updated one by one.

use jiff::Timestamp;
use kube_status::tree::{Tone, since};
use maud::{Markup, html};

use crate::commands::clean::clean;
use crate::commands::cluster::answer::Answer;

/// A part of a page that is sent again when it changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The id of its element.
    pub id: String,
    /// The element.
    pub html: String,
}

impl Part {
    /// A part of escaped HTML. Characters that only change how other text is shown are removed here, once for all.
    pub fn new(id: impl Into<String>, html: Markup) -> Self {
        Self {
            id: id.into(),
            html: clean(&html.into_string(), false),
        }
    }
}

/// What a page shows: lists of parts, each in the element of its name.
pub type Rendered = Vec<(&'static str, Vec<Part>)>;

/// The class of a tone.
pub const fn class(tone: Tone) -> &'static str {
    match tone {
        Tone::Good => "good",
        Tone::Info => "info",
        Tone::Warning => "warn",
        Tone::Error => "bad",
        Tone::Unknown => "unknown",
    }
}

/// The sign of a tone, so that no state is shown by its colour alone.
pub const fn sign(tone: Tone) -> &'static str {
    match tone {
        Tone::Good => "✓",
        Tone::Info => "↻",
        Tone::Warning => "!",
        Tone::Error => "✕",
        Tone::Unknown => "?",
    }
}

/// A state: its sign and its word.
pub fn pill(tone: Tone, word: &str) -> Markup {
    html! {
        span class={ "pill " (class(tone)) } {
            span class="sign" aria-hidden="true" { (sign(tone)) }
            (word)
        }
    }
}

/// How long ago a moment was; the script of the page counts on.
pub fn age(at: Timestamp, now: Timestamp) -> Markup {
    html! { time datetime=(at) data-age { (since(at, now)) } }
}

/// Impact and state of an answer, as `candor status` begins. The durations in it count on.
pub fn sentence(answer: &Answer, now: Timestamp) -> Markup {
    let text = answer.text();
    let Some(at) = answer.since else {
        return html! { (text) };
    };
    let duration = format!("for {}", since(at, now));
    let mut parts = text.split(&duration);
    html! {
        (parts.next().unwrap_or_default())
        @for part in parts { "for " (age(at, now)) (part) }
    }
}

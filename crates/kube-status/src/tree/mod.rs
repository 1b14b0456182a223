//! The tree: objects with their conditions, as a person wants to see them in a terminal.
//!
//! ```text
//! NAME                     STATUS  REASON           SINCE  MESSAGE
//! ValkeyCluster/prod       False   MissingReplicas  2m5s   Waiting for all replicas to be created
//! ├─Degraded               True    ReplicaLost      2m5s   Replica lost in shard 1: no answer for 3 s
//! ├─5 ValkeyNodes...       True    MemberReady      3d4h   See prod-0-0, prod-0-1, prod-1-0, ... (2 more)
//! └─ValkeyNode/prod-1-1    False   PodNotReady      2m5s   container server is running but not ready
//! ```
//!
//! - [`Node`] is an object with its [`Line`]s (conditions) and children; [`Node::grow`] makes a tree of objects as they
//!   were read, by their owner references
//! - [`View`] says how to show it: [`View::render`] makes the text
//! - [`use_colour`] and [`since`] are the two decisions a program around it needs
//!
//! Everything is pure: the width of the terminal, whether to colour and the time are arguments. What other people
//! wrote into a message (control characters, escape sequences) never reaches the terminal.

mod arrange;
mod grow;
mod layout;
mod line;
mod since;
mod wrap;

pub use line::{Line, Node, Tone};
pub use since::since;

use std::collections::BTreeMap;
use std::ffi::OsStr;

use jiff::Timestamp;

/// Which conditions are shown below an object, besides the one that speaks for it.
///
/// ```
/// use kube_status::tree::{Node, Show, View};
/// let text = View::new(jiff::Timestamp::UNIX_EPOCH).show(Show::All).render(&Node::new("Shop", "main"));
/// assert!(text.contains("Shop/main"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Show {
    /// Those that are not good news.
    #[default]
    WhatMatters,
    /// All of them.
    All,
    /// None: only the one in the object's own row.
    None,
}

/// How a tree is shown.
///
/// ```
/// use kube_status::tree::{Line, Node, View};
/// use kube_status::{Draft, Polarity, Status};
///
/// let now: jiff::Timestamp = "2026-02-05T10:00:30Z".parse()?;
/// let ready = Draft::new("Ready", Status::True, "Up").into_condition(1, "2026-02-05T10:00:00Z".parse()?);
/// let shop = Node::new("Shop", "main").line(Line::of(&ready, Polarity::Positive))
///     .child(Node::new("Cart", "a").line(Line::of(&ready, Polarity::Positive)))
///     .child(Node::new("Cart", "b").line(Line::of(&ready, Polarity::Positive)));
///
/// assert_eq!(View::new(now).render(&shop), "\
/// NAME          STATUS  REASON  SINCE  MESSAGE
/// Shop/main     True    Up      30s
/// └─2 Carts...  True    Up      30s    See a, b
/// ");
/// # Ok::<_, jiff::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct View {
    now: Timestamp,
    width: Option<usize>,
    colour: bool,
    group: bool,
    show: Show,
    exceptions: BTreeMap<String, Show>,
}

impl View {
    /// Without colour, as wide as the text needs, equal siblings grouped, only the conditions that matter.
    ///
    /// ```
    /// use kube_status::tree::{Node, View};
    /// let text = View::new(jiff::Timestamp::UNIX_EPOCH).render(&Node::new("Shop", "main"));
    /// assert_eq!(text, "NAME       STATUS  REASON  SINCE  MESSAGE\nShop/main\n");
    /// ```
    pub fn new(now: Timestamp) -> Self {
        Self {
            now,
            width: None,
            colour: false,
            group: true,
            show: Show::default(),
            exceptions: BTreeMap::new(),
        }
    }

    /// Wraps at this many columns. Below what a table needs the message moves under its row, then everything does.
    ///
    /// ```
    /// use kube_status::tree::{Node, View};
    /// let text = View::new(jiff::Timestamp::UNIX_EPOCH).width(80).render(&Node::new("Shop", "main"));
    /// assert!(text.contains("Shop/main"));
    /// ```
    #[must_use]
    pub fn width(self, columns: usize) -> Self {
        Self {
            width: Some(columns),
            ..self
        }
    }

    /// Colours status and reason by [`Tone`]; ask [`use_colour`] whether to.
    ///
    /// ```
    /// use kube_status::tree::{Node, View};
    /// let text = View::new(jiff::Timestamp::UNIX_EPOCH).colour(true).render(&Node::new("Shop", "main"));
    /// assert!(text.contains("Shop/main"));
    /// ```
    #[must_use]
    pub fn colour(self, colour: bool) -> Self {
        Self { colour, ..self }
    }

    /// Whether equal siblings become one row.
    ///
    /// ```
    /// use kube_status::tree::{Node, View};
    /// let text = View::new(jiff::Timestamp::UNIX_EPOCH).group(false).render(&Node::new("Shop", "main"));
    /// assert!(text.contains("Shop/main"));
    /// ```
    #[must_use]
    pub fn group(self, group: bool) -> Self {
        Self { group, ..self }
    }

    /// Which conditions to show of every object.
    ///
    /// ```
    /// use kube_status::tree::{Node, Show, View};
    /// let text = View::new(jiff::Timestamp::UNIX_EPOCH).show(Show::None).render(&Node::new("Shop", "main"));
    /// assert!(text.contains("Shop/main"));
    /// ```
    #[must_use]
    pub fn show(self, show: Show) -> Self {
        Self { show, ..self }
    }

    /// Which conditions to show of one kind (`ValkeyNode`) or one object (`ValkeyNode/prod-0-0`); the object's own
    /// exception beats its kind's. An object with its own exception is never hidden in a group.
    ///
    /// ```
    /// use kube_status::tree::{Line, Node, Show, View};
    /// use kube_status::{Draft, Polarity, Status};
    ///
    /// let at = jiff::Timestamp::UNIX_EPOCH;
    /// let fine = |name: &str| Node::new("Cart", name)
    ///     .line(Line::of(&Draft::new("Ready", Status::True, "Up").into_condition(1, at), Polarity::Positive));
    /// let shop = Node::new("Shop", "main").child(fine("a")).child(fine("b")).child(fine("c"));
    /// let text = View::new(at).show_for("Cart/b", Show::All).render(&shop);
    /// assert!(text.contains("2 Carts...") && text.contains("Cart/b"));
    /// ```
    #[must_use]
    pub fn show_for(mut self, kind_or_object: impl Into<String>, show: Show) -> Self {
        self.exceptions.insert(kind_or_object.into(), show);
        self
    }

    /// The tree as text, one line break after every row, no blanks at the ends of rows.
    ///
    /// ```
    /// use kube_status::tree::{Node, View};
    /// let shop = Node::new("Shop", "main").child(Node::new("Cart", "a"));
    /// assert!(View::new(jiff::Timestamp::UNIX_EPOCH).render(&shop).contains("└─Cart/a"));
    /// ```
    pub fn render(&self, root: &Node) -> String {
        layout::layout(&arrange::rows(root, self), self)
    }

    fn show_of(&self, node: &Node) -> Show {
        let own = self.exceptions.get(&node.title());
        *own.or_else(|| self.exceptions.get(&node.kind)).unwrap_or(&self.show)
    }
}

/// Whether to colour: only on a terminal, and not when `NO_COLOR` is set to anything.
///
/// ```
/// use std::io::IsTerminal;
/// use kube_status::tree::use_colour;
///
/// let colour = use_colour(std::io::stdout().is_terminal(), std::env::var_os("NO_COLOR").as_deref());
/// # let _ = colour;
/// assert!(use_colour(true, None));
/// assert!(!use_colour(true, Some("1".as_ref())));
/// assert!(!use_colour(false, None));
/// ```
pub fn use_colour(is_terminal: bool, no_color: Option<&OsStr>) -> bool {
    is_terminal && no_color.is_none_or(OsStr::is_empty)
}

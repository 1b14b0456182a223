//! The state of the screen, and how keys change it.

use std::cmp::Reverse;

use jiff::Timestamp;
use ratatui::crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers};

use super::source::Update;
use crate::commands::snapshot::Snapshot;
use crate::commands::status::screen::Report;
use crate::commands::status::shards::Member;

/// A key press or another event of the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Press {
    /// Quit.
    Quit,
    /// Freeze or resume the snapshot.
    Pause,
    /// Show or hide the page about keys and columns.
    Help,
    /// Sort by the next column.
    Sort,
    /// Scroll by this many members, down or up.
    Scroll(isize),
    /// The terminal was resized.
    Resize,
}

impl Press {
    /// Translates an event of the terminal.
    pub fn of(event: &Event) -> Option<Self> {
        let key = match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => key,
            Event::Resize(..) => return Some(Self::Resize),
            _ => return None,
        };
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c' | 'd') if control => Some(Self::Quit),
            KeyCode::Char('q') | KeyCode::Esc => Some(Self::Quit),
            KeyCode::Char('f' | ' ') => Some(Self::Pause),
            KeyCode::Char('?' | 'h') => Some(Self::Help),
            KeyCode::Char('s') => Some(Self::Sort),
            KeyCode::Down | KeyCode::Char('j') => Some(Self::Scroll(1)),
            KeyCode::Up | KeyCode::Char('k') => Some(Self::Scroll(-1)),
            KeyCode::PageDown => Some(Self::Scroll(10)),
            KeyCode::PageUp => Some(Self::Scroll(-10)),
            _ => None,
        }
    }
}

/// The sort order of members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// By shard and index.
    #[default]
    Shard,
    /// The highest rate of commands first.
    Operations,
    /// The highest memory use first.
    Memory,
    /// The largest lag first.
    Lag,
}

impl Sort {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Shard => "shard",
            Self::Operations => "ops/s",
            Self::Memory => "memory",
            Self::Lag => "lag",
        }
    }

    fn next(self) -> Self {
        match self {
            Self::Shard => Self::Operations,
            Self::Operations => Self::Memory,
            Self::Memory => Self::Lag,
            Self::Lag => Self::Shard,
        }
    }
}

/// The state of the screen.
#[derive(Debug)]
pub struct Model {
    /// When it is drawn.
    pub now: Timestamp,
    /// Whether to use colours.
    pub colour: bool,
    /// The sort order of members.
    pub sort: Sort,
    /// Why the API server cannot be queried.
    pub trouble: Option<String>,
    /// How many members are scrolled off the top.
    pub scroll: usize,
    /// Whether the page about keys and columns is shown.
    pub help: bool,
    latest: Snapshot,
    frozen: Option<Snapshot>,
}

impl Model {
    /// Starts with the first snapshot.
    pub fn new(snapshot: Snapshot, colour: bool) -> Self {
        Self {
            now: snapshot.now,
            colour,
            sort: Sort::default(),
            trouble: None,
            scroll: 0,
            help: false,
            latest: snapshot,
            frozen: None,
        }
    }

    /// The snapshot that is shown.
    pub fn snapshot(&self) -> &Snapshot {
        self.frozen.as_ref().unwrap_or(&self.latest)
    }

    /// Whether the snapshot is frozen.
    pub fn is_paused(&self) -> bool {
        self.frozen.is_some()
    }

    /// The report for the snapshot. Ages are as of now, or as of the time of the snapshot while it is frozen.
    pub fn report(&self) -> Report {
        let mut snapshot = self.snapshot().clone();
        if !self.is_paused() {
            snapshot.now = self.now;
        }
        Report::of(&snapshot)
    }

    /// Members in the selected order.
    pub fn members(&self, report: &Report) -> Vec<Member> {
        let mut members: Vec<Member> = report.shards.iter().flat_map(|shard| shard.members.clone()).collect();
        // A stable sort: equal members stay in the order of their shards.
        match self.sort {
            Sort::Shard => {}
            Sort::Operations => members.sort_by_key(|one| Reverse(one.operations)),
            Sort::Memory => members.sort_by_key(|one| Reverse(one.memory)),
            Sort::Lag => members.sort_by_key(|one| (one.link_up != Some(false), Reverse(one.lag_bytes))),
        }
        members
    }

    /// Applies an update. Updates that arrive while the snapshot is frozen are shown afterwards.
    pub fn update(&mut self, update: Update) {
        match update {
            Update::Snapshot(snapshot) => {
                self.trouble = None;
                self.latest = *snapshot;
            }
            Update::Servers(servers) => self.latest.servers = servers,
            Update::Trouble(message) => self.trouble = Some(message),
        }
    }

    /// Handles a key press; returns false to quit.
    pub fn press(&mut self, press: Press) -> bool {
        match press {
            // The page is closed before the program.
            Press::Quit if self.help => self.help = false,
            Press::Quit => return false,
            Press::Help => self.help = !self.help,
            Press::Pause => {
                self.frozen = match self.frozen.take() {
                    Some(_) => None,
                    None => Some(self.latest.clone()),
                };
            }
            Press::Sort => (self.sort, self.scroll) = (self.sort.next(), 0),
            Press::Scroll(by) => {
                let last = self
                    .report()
                    .shards
                    .iter()
                    .map(|shard| shard.members.len())
                    .sum::<usize>();
                self.scroll = self.scroll.saturating_add_signed(by).min(last.saturating_sub(1));
            }
            Press::Resize => {}
        }
        true
    }
}

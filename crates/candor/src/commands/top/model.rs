//! What is shown, and what keys do to it.

use std::cmp::Reverse;

use jiff::Timestamp;
use ratatui::crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers};

use super::source::Update;
use crate::commands::picture::Picture;
use crate::commands::status::screen::Report;
use crate::commands::status::shards::Member;

/// What was pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Press {
    /// Enough.
    Quit,
    /// The picture stays as it is, or goes on.
    Pause,
    /// By another column.
    Sort,
    /// So many members down, or up.
    Scroll(isize),
    /// The terminal has another size.
    Resize,
}

impl Press {
    /// What an event of the terminal means.
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
            KeyCode::Char('p' | ' ') => Some(Self::Pause),
            KeyCode::Char('s') => Some(Self::Sort),
            KeyCode::Down | KeyCode::Char('j') => Some(Self::Scroll(1)),
            KeyCode::Up | KeyCode::Char('k') => Some(Self::Scroll(-1)),
            KeyCode::PageDown => Some(Self::Scroll(10)),
            KeyCode::PageUp => Some(Self::Scroll(-10)),
            _ => None,
        }
    }
}

/// What members are sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// Shard and place.
    #[default]
    Shard,
    /// The busiest first.
    Operations,
    /// The fullest first.
    Memory,
    /// The one furthest behind first.
    Lag,
}

impl Sort {
    /// In a word.
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

/// What is shown.
#[derive(Debug)]
pub struct Model {
    /// When it is drawn.
    pub now: Timestamp,
    /// Whether to colour.
    pub colour: bool,
    /// By what members are sorted.
    pub sort: Sort,
    /// Why the API server cannot be asked.
    pub trouble: Option<String>,
    /// How many members are above the screen.
    pub scroll: usize,
    latest: Picture,
    frozen: Option<Picture>,
}

impl Model {
    /// The first picture.
    pub fn new(picture: Picture, colour: bool) -> Self {
        Self {
            now: picture.now,
            colour,
            sort: Sort::default(),
            trouble: None,
            scroll: 0,
            latest: picture,
            frozen: None,
        }
    }

    /// The picture that is shown.
    pub fn picture(&self) -> &Picture {
        self.frozen.as_ref().unwrap_or(&self.latest)
    }

    /// Whether it stays as it is.
    pub fn is_paused(&self) -> bool {
        self.frozen.is_some()
    }

    /// What the picture comes to; ages are as of now, and of the time of the picture while it stays as it is.
    pub fn report(&self) -> Report {
        let mut picture = self.picture().clone();
        if !self.is_paused() {
            picture.now = self.now;
        }
        Report::of(&picture)
    }

    /// Members in the order that is asked for.
    pub fn members(&self, report: &Report) -> Vec<Member> {
        let mut members: Vec<Member> = report.shards.iter().flat_map(|shard| shard.members.clone()).collect();
        // A stable sort: members that are equal stay in the order of their shards.
        match self.sort {
            Sort::Shard => {}
            Sort::Operations => members.sort_by_key(|one| Reverse(one.operations)),
            Sort::Memory => members.sort_by_key(|one| Reverse(one.memory)),
            Sort::Lag => members.sort_by_key(|one| (one.link_up != Some(false), Reverse(one.lag_bytes))),
        }
        members
    }

    /// Takes something new. What comes while the picture stays as it is, is shown afterwards.
    pub fn update(&mut self, update: Update) {
        match update {
            Update::Picture(picture) => {
                self.trouble = None;
                self.latest = *picture;
            }
            Update::Servers(servers) => self.latest.servers = servers,
            Update::Trouble(words) => self.trouble = Some(words),
        }
    }

    /// Does what a key says; false when it was enough.
    pub fn press(&mut self, press: Press) -> bool {
        match press {
            Press::Quit => return false,
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

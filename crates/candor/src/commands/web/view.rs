//! What a viewer looks at, and when it must be drawn again.

use std::collections::HashMap;
use std::sync::{Arc, RwLock};

use jiff::{SignedDuration, Timestamp};

use super::cluster::{self, PageOptions};
use super::figures::Figures;
use super::fleet::{self, Around, Filter, Row};
use super::marks::Rendered;
use super::serve::App;
use super::sight::Sight;
use super::world::Key;
use crate::commands::liveness::Liveness;

/// Rows whose cluster did not change are drawn again this often: the hour in them moves on. The script of the page
/// counts the durations meanwhile.
const REDRAW: SignedDuration = SignedDuration::from_secs(20);

/// What a viewer looks at.
pub enum View {
    /// All clusters.
    Fleet(Box<Fleet>),
    /// One cluster.
    Cluster(Box<One>),
}

/// All clusters, with the rows that were drawn last.
pub struct Fleet {
    filter: Filter,
    sight: Sight,
    rows: HashMap<Key, (u64, Timestamp, Row)>,
    drawn: Option<(u64, Timestamp)>,
    operator: Option<Liveness>,
}

/// One cluster.
pub struct One {
    key: Key,
    options: PageOptions,
    sight: Sight,
    figures: Option<Arc<RwLock<Figures>>>,
}

impl View {
    /// All clusters that match a filter.
    pub fn fleet(filter: Filter, sight: Sight) -> Self {
        Self::Fleet(Box::new(Fleet {
            filter,
            sight,
            rows: HashMap::new(),
            drawn: None,
            operator: None,
        }))
    }

    /// One cluster.
    pub fn cluster(app: &App, key: Key, options: PageOptions, sight: Sight) -> Self {
        // With a login the page has no permission to read the servers' passwords.
        let figures = sight.is_owner().then(|| app.figures(&key));
        Self::Cluster(Box::new(One {
            key,
            options,
            sight,
            figures,
        }))
    }

    /// What to show now; `Some(None)` if nothing can have changed, `None` if the viewer may not look any more.
    pub async fn render(&mut self, app: &App, now: Timestamp) -> Option<Option<Rendered>> {
        match self {
            Self::Fleet(fleet) => {
                fleet.sight.refresh(app, now, None).await?;
                Some(fleet.render(app, now))
            }
            Self::Cluster(one) => {
                one.sight.refresh(app, now, Some(&one.key)).await?;
                Some(Some(one.render(app, now)))
            }
        }
    }
}

impl Fleet {
    fn render(&mut self, app: &App, now: Timestamp) -> Option<Rendered> {
        let world = app.world()?;
        let operator = world.operator(now);
        let is_same_operator = self.operator.as_ref() == Some(&operator);
        let is_old = |at: Timestamp| now.duration_since(at) >= REDRAW;
        let is_drawn = self
            .drawn
            .is_some_and(|(revision, at)| revision == world.revision() && !is_old(at));
        if is_drawn && is_same_operator {
            return None;
        }
        if !is_same_operator {
            self.rows.clear();
        }
        let mut rows = HashMap::new();
        for (key, revision) in world.clusters() {
            if !self.sight.sees(key) {
                continue;
            }
            let known = self.rows.remove(key);
            let known = known.filter(|(drawn, at, _)| *drawn == revision && !is_old(*at));
            let row = known.or_else(|| {
                let mut snapshot = world.snapshot(key, now)?;
                self.sight.limit(&mut snapshot, &key.namespace);
                Some((revision, now, Row::of(key, &snapshot)))
            });
            rows.extend(row.map(|row| (key.clone(), row)));
        }
        self.rows = rows;
        self.drawn = Some((world.revision(), now));
        self.operator = Some(operator);
        let rows: Vec<Row> = self.rows.values().map(|(_, _, row)| row.clone()).collect();
        let around = Around {
            notes: world.notes(|namespace| self.sight.sees_namespace(namespace)),
            ..Around::of(&world, now)
        };
        Some(fleet::render(&rows, &self.filter, &around))
    }
}

impl One {
    fn render(&self, app: &App, now: Timestamp) -> Rendered {
        let snapshot = app.world().and_then(|world| world.snapshot(&self.key, now));
        let Some(mut snapshot) = snapshot.filter(|_| self.sight.sees(&self.key)) else {
            return cluster::gone(&self.key);
        };
        self.sight.limit(&mut snapshot, &self.key.namespace);
        if let Some(figures) = self.figures.as_ref().and_then(|figures| figures.read().ok()) {
            snapshot.servers.clone_from(&figures.servers);
            snapshot.notes.extend(figures.note.clone());
        }
        cluster::render(&snapshot, &self.options)
    }
}

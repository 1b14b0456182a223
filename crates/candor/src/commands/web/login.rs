//! What a viewer may see.

use jiff::Timestamp;

use super::serve::App;
use super::world::Key;
use crate::commands::snapshot::Snapshot;

/// What a viewer may see. The user of the kubeconfig sees what the watches see.
#[derive(Clone, Debug, Default)]
pub struct Sight;

impl Sight {
    /// Checks again what the viewer may see; `None` if the viewer may not look any more.
    pub async fn refresh(&mut self, _app: &App, _now: Timestamp) -> Option<()> {
        Some(())
    }

    /// Whether the viewer may see a cluster.
    pub fn sees(&self, _key: &Key) -> bool {
        true
    }

    /// Removes what the viewer may not see.
    pub fn limit(&self, _snapshot: &mut Snapshot, _namespace: &str) {}
}

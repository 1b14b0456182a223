//! What the operator is started with.

use std::net::SocketAddr;
use std::time::Duration;

use kube::Client;

use crate::{lease, limits};

/// What the operator is started with.
#[derive(Clone)]
pub struct Settings {
    /// Namespaces to watch; empty: all.
    pub namespaces: Vec<String>,
    /// Observe, plan and report in the log; change nothing.
    pub dry_run: bool,
    /// Where `/healthz`, `/readyz` and `/metrics` are served; absent: nowhere.
    pub health: Option<SocketAddr>,
    /// Absent: this operator is the only one.
    pub lease: Option<LeaseSettings>,
    /// The image of the exporter beside every server, unless a cluster names another.
    pub exporter_image: String,
    /// How many members one cluster may have: a spec that asks for more is rejected.
    pub max_members: u32,
    /// How long one turn of a slot mover may last.
    pub move_budget: Duration,
    /// How often every kind is listed anew, whatever its watch told: an event that was lost on the way is missed by
    /// nobody else.
    pub relist: Duration,
}

/// The lease by which one of several operators acts.
#[derive(Clone)]
pub struct LeaseSettings {
    /// A connection that nothing else uses: requests about clusters must not delay a renewal.
    pub client: Client,
    /// Where it is.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Who we are, the pod's name for instance.
    pub identity: String,
    /// How long it lasts.
    pub timing: lease::Timing,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            namespaces: Vec::new(),
            dry_run: false,
            health: None,
            lease: None,
            exporter_image: "candor:latest".to_owned(),
            max_members: limits::MAX_MEMBERS,
            move_budget: Duration::from_millis(300),
            relist: Duration::from_secs(600),
        }
    }
}

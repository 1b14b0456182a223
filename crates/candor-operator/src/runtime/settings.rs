//! The operator's settings.

use std::net::SocketAddr;
use std::time::Duration;

use kube::Client;

use crate::runtime::{lease, limits};

/// The operator's settings.
#[derive(Clone)]
pub struct Settings {
    /// Namespaces to watch; empty: all.
    pub namespaces: Vec<String>,
    /// Observe, plan and report in the log; change nothing.
    pub dry_run: bool,
    /// Address of `/healthz`, `/readyz` and `/metrics`; absent: not served.
    pub health: Option<SocketAddr>,
    /// Absent: this operator is the only one.
    pub lease: Option<LeaseSettings>,
    /// The image of the exporter beside every server, unless a cluster names another.
    pub exporter_image: String,
    /// Maximum number of members of one cluster: a spec with more is rejected.
    pub max_members: u32,
    /// How long one turn of the slot mover may take.
    pub move_budget: Duration,
    /// How often every kind is listed again, in addition to its watch: only a list recovers an event that the watch
    /// lost.
    pub relist: Duration,
}

/// The lease for leader election among several operators.
#[derive(Clone)]
pub struct LeaseSettings {
    /// A client that nothing else uses: requests about clusters must not delay a renewal.
    pub client: Client,
    /// The namespace of the Lease.
    pub namespace: String,
    /// The name of the Lease.
    pub name: String,
    /// The holder identity of this operator, for example the pod's name.
    pub identity: String,
    /// Lease duration and renewal interval.
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

//! Which server presents which certificate: observed, not assumed. A changed Secret reaches a pod's volume some time
//! after it was written (`refresh`), and the server loads it when the operator makes it reload its files.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use candor_engine::observation::Applied;
use valkey_admin::client::{DesiredCertificate, Node, NodeError};

use crate::credentials::certificates::Certificates;
use crate::observe::applied::{Place, Process};
use crate::runtime::cache::ClusterKey;

/// How long the TLS handshake with a server may take.
const HANDSHAKE: Duration = Duration::from_secs(1);
/// After this time a changed Secret is in every pod. Which CAs a server trusts cannot be observed from outside: after a
/// change of `ca.crt` alone, the operator makes the server reload its files during this time.
const ARRIVED: Duration = Duration::from_secs(100);

/// Observed certificates by member. An entry is valid for one process and one certificate: if either changes, it is
/// discarded.
#[derive(Default)]
pub struct Served(Mutex<HashMap<Place, Known>>);

struct Known {
    run_id: String,
    desired: DesiredCertificate,
    since: Instant,
    /// The server presents the certificate and trusts the CAs that belong to it.
    applied: bool,
    /// The server was observed to present another certificate before: it loads the next one together with the CAs.
    served_another: bool,
    /// The pod was annotated, or an attempt to do so failed.
    marked: bool,
    /// When the server was last ordered to reload its files.
    told: Option<Instant>,
    /// The error message of the server if it rejected the reload.
    rejected: Option<String>,
}

impl Served {
    /// Whether a server presents the certificate of the Secret. A Secret that cannot be used is reported elsewhere, and
    /// servers are not queried.
    pub async fn observe(&self, node: &Node, process: Process<'_>, certificates: &Certificates) -> Applied {
        let (Some(desired), Some(tls)) = (&certificates.desired, &node.endpoint().tls) else {
            return Applied::Yes;
        };
        let trusted = certificates.is_trusted();
        if self.known(process, desired, |known| known.applied) {
            return Applied::Yes;
        }
        let Ok(Ok(served)) = tokio::time::timeout(HANDSHAKE, tls.served_by(node.address())).await else {
            return Applied::No;
        };
        self.known(process, desired, |known| known.saw(&served, trusted))
    }

    /// Whether a member's pod is still to be annotated with the certificate: once for each certificate, even if that
    /// fails.
    pub fn is_unmarked(&self, place: &Place) -> bool {
        let mut all = self.lock();
        all.get_mut(place)
            .is_some_and(|known| !std::mem::replace(&mut known.marked, true))
    }

    /// Records that a server was ordered to reload its files.
    pub fn told(&self, place: &Place, result: &Result<(), NodeError>) {
        if let Some(known) = self.lock().get_mut(place) {
            known.told = Some(Instant::now());
            known.rejected = match result {
                Ok(()) => None,
                Err(error) => error.server_message().map(str::to_owned).or(known.rejected.take()),
            };
        }
    }

    /// Removes all entries of a deleted cluster.
    pub fn forget(&self, cluster: &ClusterKey) {
        self.lock().retain(|(key, _), _| key != cluster);
    }

    fn known<T>(&self, process: Process<'_>, desired: &DesiredCertificate, of: impl FnOnce(&mut Known) -> T) -> T {
        let mut all = self.lock();
        let fresh = || Known {
            run_id: process.run_id.to_owned(),
            desired: desired.clone(),
            since: Instant::now(),
            applied: false,
            served_another: false,
            marked: false,
            told: None,
            rejected: None,
        };
        let known = all.entry(process.place()).or_insert_with(fresh);
        if known.run_id != process.run_id || known.desired != *desired {
            *known = fresh();
        }
        of(known)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Place, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn saw(&mut self, served: &[u8], trusted: bool) -> Applied {
        if served != self.desired.leaf {
            self.served_another = true;
            return self.rejected.clone().map_or(Applied::No, Applied::Rejected);
        }
        let arrived = self.told.is_some_and(|told| told > self.since + ARRIVED);
        self.applied = trusted || self.served_another || arrived;
        if self.applied { Applied::Yes } else { Applied::No }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> Known {
        Known {
            run_id: "one".to_owned(),
            desired: DesiredCertificate {
                leaf: b"new".to_vec(),
                authorities: 1,
            },
            since: Instant::now(),
            applied: false,
            served_another: false,
            marked: false,
            told: None,
            rejected: None,
        }
    }

    #[test]
    fn a_certificate_is_applied_when_it_is_served_and_a_ca_alone_when_it_must_have_arrived() {
        assert_eq!(known().saw(b"new", true), Applied::Yes);
        let mut renewed = known();
        assert_eq!(renewed.saw(b"old", false), Applied::No);
        assert_eq!(renewed.saw(b"new", false), Applied::Yes, "read together with its CA");
        let mut authority = known();
        assert_eq!(authority.saw(b"new", false), Applied::No, "it served this one before");
        authority.told = Some(authority.since + ARRIVED / 2);
        assert_eq!(authority.saw(b"new", false), Applied::No);
        authority.told = Some(authority.since + ARRIVED + Duration::from_secs(1));
        assert_eq!(authority.saw(b"new", false), Applied::Yes);
    }

    #[test]
    fn what_a_server_refused_is_told_until_it_serves_it() {
        let mut known = known();
        known.rejected = Some("ERR no".to_owned());
        assert_eq!(known.saw(b"old", true), Applied::Rejected("ERR no".to_owned()));
        assert_eq!(known.saw(b"new", true), Applied::Yes);
    }
}

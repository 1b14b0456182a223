//! Whether a primary confirms the link of a replica that was frozen.
//!
//! A replica that resumes still reports `master_link_status:up`, although its primary may have closed the link while the
//! replica was frozen: the replica notices it only after it has read what was sent before (measured: 0.15 s). The primary
//! knows: it lists the replica as online, and the replica has acknowledged since.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use candor_engine::model::MemberRef;
use candor_engine::observation::Server;
use tokio::time::Instant;
use valkey_admin::Reply;
use valkey_admin::info::{OnlineReplica, online_replicas};

use super::member::Watched;
use super::{ClusterKey, Monitor, questions, timing};

/// A replica acknowledges every second, and the age is rounded down.
const RECENT_SECONDS: u64 = 1;

impl Monitor {
    /// Corrects replicas that responded again after a silence: they are in sync only once their primaries confirm it.
    pub(super) fn unconfirmed(&self, cluster: &ClusterKey, observation: &mut BTreeMap<MemberRef, Server>) {
        let clusters = self.clusters();
        let Some(watch) = clusters.get(cluster) else { return };
        for (at, server) in observation {
            let Server::Up(facts) = server else { continue };
            let Some(replica) = watch.members.get(at).filter(|_| facts.in_sync) else {
                continue;
            };
            let Some((address, since)) = replica.unconfirmed() else {
                continue;
            };
            let mut others = watch.members.values();
            let primary = others.find(|other| other.endpoint().address == address);
            let confirmed = primary.is_some_and(|primary| primary.lists(replica.endpoint().address));
            if confirmed || since.elapsed() > timing::CONFIRMATION {
                replica.confirmed();
            } else {
                facts.in_sync = false;
            }
        }
    }
}

impl Watched {
    /// The address of its primary, and since when it responds again, if its primary has not confirmed its link since.
    fn unconfirmed(&self) -> Option<(SocketAddr, Instant)> {
        let known = self.known();
        Some((known.following.primary()?, known.resumed?))
    }

    /// Records that its primary confirmed its link.
    fn confirmed(&self) {
        self.known().resumed = None;
    }

    /// Whether it lists a replica that acknowledged its data lately, according to its last full reply.
    fn lists(&self, replica: SocketAddr) -> bool {
        lists(&self.known().told, replica)
    }
}

/// Whether a primary's full reply lists a replica that acknowledged lately.
fn lists(told: &[Reply], replica: SocketAddr) -> bool {
    let same = |one: &OnlineReplica| one.host.parse() == Ok(replica.ip()) && one.port == replica.port();
    let replicas = questions::info_text(told).map(|text| online_replicas(&text));
    let mut replicas = replicas.into_iter().flatten();
    replicas.any(|one| same(&one) && one.lag_seconds <= RECENT_SECONDS)
}

//! Leader election with a Lease: one of several operators acts. Time is the local monotonic clock, never the clock of
//! another node. Another operator's lease has expired when this process has not observed a renewal for the whole lease
//! duration.
//!
//! A lease belongs to this process if both the holder and the acquire time match. Two operators with the same identity
//! therefore never lead at the same time: each of them treats the other's lease as held by another operator.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::PostParams;
use kube::{Api, ResourceExt};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// How long a lease lasts and how often it is renewed.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// Another operator may acquire the lease after this time without a renewal.
    pub duration: Duration,
    /// Interval of renewals, and of checks while another operator holds the lease.
    pub renew: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            duration: Duration::from_secs(15),
            renew: Duration::from_secs(5),
        }
    }
}

/// The time until which this operator may act.
#[derive(Clone, Debug)]
pub struct Leadership {
    until: Arc<watch::Sender<Option<Instant>>>,
}

impl Default for Leadership {
    fn default() -> Self {
        Self {
            until: Arc::new(watch::channel(None).0),
        }
    }
}

impl Leadership {
    /// For a single operator that needs no lease.
    pub fn unshared() -> Self {
        let leadership = Self::default();
        // About 100 years: practically unlimited, but still a valid `Instant`.
        leadership
            .until
            .send_replace(Instant::now().checked_add(Duration::from_secs(100 * 365 * 86_400)));
        leadership
    }

    /// Whether this operator may act now.
    pub fn is_ours(&self) -> bool {
        self.until.borrow().is_some_and(|until| Instant::now() < until)
    }

    /// Waits until this operator may act.
    pub async fn acquired(&self) {
        // The sender lives as long as this handle.
        let _ = self.until.subscribe().wait_for(Option::is_some).await;
    }
}

/// Why this operator lost the lease.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// Another operator holds it.
    #[error("the lease {0} was taken by {1}: this operator ends, so that two never act at once")]
    Taken(String, String),
    /// It could not be renewed in time.
    #[error("the lease {0} could not be renewed for {1:?}: this operator ends, so that two never act at once")]
    Expired(String, Duration, #[source] Option<Box<kube::Error>>),
}

/// Returns an identity that no other process has: the host name and a random suffix. In a container the process id is
/// 1, and users may set the host name, so neither is unique.
pub fn unique_identity(host: &str) -> Result<String, ring::error::Unspecified> {
    let random = ring::rand::generate::<[u8; 8]>(&ring::rand::SystemRandom::new())?.expose();
    let host = if host.is_empty() { "candor" } else { host };
    Ok(format!("{host}_{:016x}", u64::from_be_bytes(random)))
}

/// The last observed state of a lease, and since when it has not changed.
#[derive(Clone, Debug, PartialEq)]
struct Sighting {
    holder: Option<String>,
    renewed: Option<MicroTime>,
    since: Instant,
}

/// Acquires a lease, renews it, and ends when it is lost.
pub struct Keeper {
    api: Api<Lease>,
    name: String,
    identity: String,
    timing: Timing,
    leadership: Leadership,
    sighting: Option<Sighting>,
    /// When this process acquired the lease, as written in the Lease object.
    acquired: Option<MicroTime>,
}

impl Keeper {
    /// Creates the keeper without sending a request.
    pub fn new(api: Api<Lease>, name: String, identity: String, timing: Timing, leadership: Leadership) -> Self {
        Self {
            api,
            name,
            identity,
            timing,
            leadership,
            sighting: None,
            acquired: None,
        }
    }

    /// Runs until the lease is lost.
    pub async fn keep(mut self) -> LeaseError {
        let mut held: Option<Instant> = None;
        let mut problem = None;
        loop {
            let begun = Instant::now();
            // A response after the lease has expired is useless, hence the timeout.
            let turn = timeout(self.timing.renew, self.turn(begun)).await;
            match turn {
                Ok(Ok(None)) => {
                    held = Some(begun);
                    problem = None;
                    self.leadership.until.send_replace(Some(begun + self.timing.duration));
                }
                Ok(Ok(Some(other))) if held.is_some() => {
                    self.leadership.until.send_replace(None);
                    return LeaseError::Taken(self.name, other);
                }
                Ok(Ok(Some(_))) => {}
                Ok(Err(error)) => {
                    tracing::warn!(lease = self.name, %error, "the lease could not be read or written");
                    problem = Some(Box::new(error));
                }
                Err(_) => tracing::warn!(lease = self.name, "no answer about the lease in time"),
            }
            if held.is_some_and(|since| since.elapsed() >= self.timing.duration) {
                self.leadership.until.send_replace(None);
                return LeaseError::Expired(self.name, self.timing.duration, problem);
            }
            let pause = if held.is_some() && problem.is_none() {
                self.timing.renew
            } else {
                self.timing.renew.min(Duration::from_secs(1))
            };
            sleep(pause).await;
        }
    }

    /// Releases the lease, so that the next operator need not wait until it expires. Call it only while this operator
    /// is the leader: another operator may hold the lease under the same identity.
    pub async fn release(api: &Api<Lease>, name: &str, identity: &str) -> Result<(), kube::Error> {
        let Some(mut lease) = api.get_opt(name).await? else {
            return Ok(());
        };
        let spec = lease.spec.get_or_insert_default();
        if spec.holder_identity.as_deref() == Some(identity) {
            spec.holder_identity = None;
            spec.renew_time = None;
            api.replace(name, &PostParams::default(), &lease).await?;
        }
        Ok(())
    }

    /// Tries once to acquire or renew the lease: `None` on success, else the holder.
    async fn turn(&mut self, now: Instant) -> Result<Option<String>, kube::Error> {
        let Some(lease) = self.api.get_opt(&self.name).await? else {
            let fresh = Lease {
                metadata: ObjectMeta {
                    name: Some(self.name.clone()),
                    ..ObjectMeta::default()
                },
                spec: Some(self.spec(None)),
            };
            return match self.api.create(&PostParams::default(), &fresh).await {
                Ok(_) => Ok(None),
                Err(kube::Error::Api(status)) if status.code == 409 => Ok(Some("another operator".to_owned())),
                Err(error) => Err(error),
            };
        };
        let spec = lease.spec.clone().unwrap_or_default();
        if !self.may_take(&spec, now) {
            return Ok(spec.holder_identity);
        }
        let mut next = lease;
        next.spec = Some(self.spec(Some(&spec)));
        match self.api.replace(&next.name_any(), &PostParams::default(), &next).await {
            Ok(_) => Ok(None),
            // Optimistic locking: another writer was faster.
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(Some("another operator".to_owned())),
            Err(error) => Err(error),
        }
    }

    /// Whether to acquire or renew an observed lease; otherwise another operator holds it.
    fn may_take(&mut self, spec: &LeaseSpec, now: Instant) -> bool {
        let holder = spec.holder_identity.clone().filter(|holder| !holder.is_empty());
        if holder.is_none() || self.is_ours(spec) {
            return true;
        }
        let same = self
            .sighting
            .as_ref()
            .filter(|observation| observation.holder == holder && observation.renewed == spec.renew_time);
        let since = same.map_or(now, |observation| observation.since);
        self.sighting = Some(Sighting {
            holder,
            renewed: spec.renew_time.clone(),
            since,
        });
        let lasts = spec
            .lease_duration_seconds
            .and_then(|seconds| u64::try_from(seconds).ok());
        let lasts = lasts.map_or(self.timing.duration, Duration::from_secs);
        now.duration_since(since) >= lasts
    }

    /// Whether this process wrote the lease, and not another process with the same identity.
    fn is_ours(&self, spec: &LeaseSpec) -> bool {
        self.acquired.is_some()
            && spec.acquire_time == self.acquired
            && spec.holder_identity.as_deref() == Some(&self.identity)
    }

    fn spec(&mut self, before: Option<&LeaseSpec>) -> LeaseSpec {
        let now = now();
        let ours = before.is_some_and(|spec| self.is_ours(spec));
        let transitions = before.and_then(|spec| spec.lease_transitions).unwrap_or(0);
        if !ours {
            // Stored before the request is sent: the write may succeed even if its response is lost.
            self.acquired = Some(now.clone());
        }
        LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            // Other operators count whole seconds: round up, so that they never wait less than this operator assumes.
            lease_duration_seconds: i32::try_from(self.timing.duration.as_millis().div_ceil(1000)).ok(),
            acquire_time: self.acquired.clone(),
            renew_time: Some(now),
            lease_transitions: Some(transitions + i32::from(!ours && before.is_some())),
            ..LeaseSpec::default()
        }
    }
}

/// The current time in microseconds, as a Lease stores it.
fn now() -> MicroTime {
    let now = Timestamp::now();
    MicroTime(Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now))
}

#[cfg(test)]
mod tests {
    use super::unique_identity;

    #[test]
    fn two_processes_on_the_same_host_have_different_identities() {
        let (one, other) = (
            unique_identity("candor-0").unwrap(),
            unique_identity("candor-0").unwrap(),
        );
        assert!(one.starts_with("candor-0_"), "{one}");
        assert_ne!(one, other);
        assert!(!unique_identity("").unwrap().starts_with('_'));
    }
}

//! The part of Robin that acts: a driver is called round by round, never twice at once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use candor_api::RedkeyCluster;
use candor_engine::outcome::Rejected;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;

use super::super::api::{Operation, Replicas, RobinStatus};
use super::super::link::ObservedServer;
use super::check;
pub use super::passwords::Passwords;
use super::requests::Request;
use crate::kinds::redkey::objects::robin_config::Configuration;
use crate::monitor::{ClusterKey, Monitor};

/// Everything that one round may use. The servers were queried for this round.
#[derive(Clone, Copy)]
pub struct Round<'a> {
    /// The cluster, in the member monitor too.
    pub key: &'a ClusterKey,
    /// The `RedkeyCluster` as last read.
    pub cluster: &'a RedkeyCluster,
    /// Robin's own configuration.
    pub configuration: &'a Configuration,
    /// The status that decides what Robin does automatically.
    pub status: RobinStatus,
    /// The topology to reach: that of the spec, unless another one was requested in Maintenance.
    pub replicas: Replicas,
    /// The pods, by ordinal.
    pub pods: &'a BTreeMap<u32, Arc<Pod>>,
    /// The servers, by ordinal: one for every pod.
    pub servers: &'a BTreeMap<u32, ObservedServer>,
    /// The passwords of the servers.
    pub passwords: &'a Passwords,
    /// The member monitor, for clients: `monitor.node(key, member(ordinal))`.
    pub monitor: &'a Monitor,
    /// The request to carry out, if there is one.
    pub request: Option<&'a Request>,
    /// The time.
    pub now: Timestamp,
}

/// What a round did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Driven {
    /// The generation that the plan was made for.
    pub generation: Option<i64>,
    /// Whether that plan was empty: the servers are as this generation desires.
    pub plan_empty: bool,
    /// What Robin is doing.
    pub operation: Operation,
    /// Commands that servers reject again and again.
    pub rejected: Vec<Rejected>,
    /// Whether the request is finished. None: it is not, or there is none.
    pub finished: Option<Result<(), String>>,
    /// When to run again at the latest. None: when something changes, or after the interval of the configuration.
    pub again: Option<Duration>,
}

impl Default for Driven {
    fn default() -> Self {
        Self {
            generation: None,
            plan_empty: false,
            operation: Operation::Unknown,
            rejected: Vec::new(),
            finished: None,
            again: None,
        }
    }
}

/// Acts on the servers of a cluster.
pub trait Driver: Send + Sync + 'static {
    /// Makes a plan and executes what can be done now. It waits for nothing that takes longer than a second: waiting is
    /// [`Driven::again`]. It may be cancelled at any point, so every step must be safe to repeat.
    fn drive(&self, round: Round<'_>) -> impl Future<Output = Driven> + Send;

    /// Whether a request fits the current plan, and if not, why. In Maintenance every request is accepted without this
    /// question.
    fn fits(&self, request: &Request) -> Result<(), String> {
        match request {
            // This is what Robin does anyway.
            Request::Fix => Ok(()),
            other => Err(format!(
                "{other} does not fit what Robin does by itself: set the annotation \
                 redkey.inditex.dev/maintenance: \"true\" on the RedkeyCluster first"
            )),
        }
    }
}

/// A driver that changes nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Observing;

impl Driver for Observing {
    async fn drive(&self, round: Round<'_>) -> Driven {
        let check = check::check(&round.key.name, round.servers);
        let replicas = round.replicas;
        let per_shard = replicas.replicas_per_primary.saturating_add(1);
        let desired = replicas.primaries.saturating_mul(per_shard);
        let complete = u32::try_from(round.servers.len()) == Ok(desired);
        let whole = complete && check.errors.is_empty() && check.warnings.is_empty();
        Driven {
            generation: round.cluster.metadata.generation,
            plan_empty: whole,
            operation: if whole { Operation::Ready } else { Operation::Error },
            finished: round.request.map(|_| Err("this Robin only observes".to_owned())),
            ..Driven::default()
        }
    }
}

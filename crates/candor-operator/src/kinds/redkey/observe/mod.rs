//! Observes a `RedkeyCluster`: objects from the caches, servers by ordinal, and the desired objects built from the spec.

mod desired;
mod members;
mod replies;

use std::collections::BTreeMap;

use candor_api::{RedkeyCluster, RedkeyClusterStatus};
use candor_engine::kinds::redkey::operation::Set;
use candor_engine::kinds::redkey::report::{Ignored, PasswordChange};
use candor_engine::model::{MemberRef, ShardIndex};
use candor_engine::observation::{About, Applied, Facts, Member, Observation, Problem};
use candor_engine::seats::Ordinal;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use valkey_admin::client::Credentials;

use self::members::pods_by_ordinal;
use self::replies::{desired_password, query_servers, servers_from_robin, stored_password};
use super::config::{self, Merged, Password, Storage};
use super::objects::{self, Kept, Objects, REVISION, names};
use super::robin::link::Frame;
use super::storage;
use crate::act::ownership::Owner;
use crate::observe::pods_unknown;
use crate::runtime::cache::ClusterKey;
use crate::runtime::context::Context;

pub(super) use self::desired::preflight_name;
pub(super) use self::members::claims;

/// Annotation of a volume claim: its server was proven to own no slots when it left.
pub(super) const DRAINED: &str = "redkey.inditex.dev/drained";

/// The result of one observation, with the desired objects.
pub struct Observed {
    /// Everything but the servers.
    pub base: Observation,
    /// The servers.
    pub members: BTreeMap<Ordinal, Member>,
    /// The live `StatefulSet`.
    pub set: Option<Set>,
    /// The desired objects; none if they cannot be built.
    pub objects: Option<Objects>,
    /// The revision of the pod template that the spec asks for.
    pub revision: String,
    /// The desired node timeout in milliseconds.
    pub node_timeout: u64,
    /// The preflight pod that a fast operation needs.
    pub preflight: Option<Pod>,
    /// The password that servers should have.
    pub password: Option<Password>,
    /// Parts of the spec that have no effect.
    pub ignored: Vec<Ignored>,
    /// All servers have another password than the stored one.
    pub password_change: Option<PasswordChange>,
    /// Claims of servers that are gone for good, which `deletePVC` removes.
    pub removed_claims: Vec<String>,
    /// What is kept of a `StatefulSet` that the existing operator made.
    pub kept: Option<Kept>,
}

/// The member monitor knows servers by ordinal: a change of the seat does not interrupt a connection.
pub fn place(member: MemberRef) -> MemberRef {
    MemberRef {
        shard: ShardIndex(0),
        node: member.node,
    }
}

/// The credentials of the default user.
pub fn credentials(password: Option<&Password>) -> Option<Credentials> {
    password.map(|password| Credentials {
        user: "default".to_owned(),
        password: password.expose().to_owned(),
    })
}

/// Observes a cluster.
///
/// `frame` is what Robin observes; without it, the operator queries the servers itself.
pub async fn observe(context: &Context, key: &ClusterKey, cluster: &RedkeyCluster, frame: Option<&Frame>) -> Observed {
    let nothing = RedkeyClusterStatus::default();
    let status = cluster.status.as_ref().unwrap_or(&nothing);
    let mut base = Observation {
        deleting: cluster.metadata.deletion_timestamp.is_some(),
        pods_unknown: pods_unknown(context, key).await,
        ..Observation::default()
    };
    let live = Owner::of(context, key).get(&context.caches.stateful_sets, &key.name);
    let stored = stored_password(context, key);
    let desired = desired_password(context, key, cluster, stored.as_ref(), &mut base).await;
    let config = merged(cluster, desired.as_ref(), &mut base);
    let password = config.as_ref().map_or(desired, |config| config.password.clone());
    let revision = config
        .as_ref()
        .map(|config| objects::revision(&cluster.spec, config))
        .unwrap_or_default();
    let pods = pods_by_ordinal(context, key, live.as_deref(), is_fast(status) || !status.formed);
    // Passwords are applied by the operator, over its own connections.
    let servers = match frame.filter(|_| stored == password) {
        Some(frame) => {
            context.monitor.forget(key);
            servers_from_robin(frame, &pods)
        }
        None => query_servers(context, key, &pods, stored.as_ref(), password.as_ref()).await,
    };
    let set = live.as_deref().map(set_of);
    let kept = live.as_deref().and_then(|live| {
        let all = pods.values().flatten().map(|pod| &**pod);
        Kept::of(live, &cluster.spec, &revision, all)
    });
    let mut observed = Observed {
        members: BTreeMap::new(),
        node_timeout: config
            .as_ref()
            .map_or(candor_engine::kinds::redkey::NODE_TIMEOUT, |config| config.node_timeout),
        objects: None,
        preflight: None,
        ignored: config
            .iter()
            .flat_map(|config| &config.ignored)
            .map(|one| Ignored::Config(one.to_string()))
            .collect(),
        password_change: None,
        removed_claims: Vec::new(),
        base,
        set,
        revision,
        password,
        kept,
    };
    observed.observe_members(context, key, cluster, &pods, servers);
    Box::pin(observed.observe_evidence(context, key, status, &pods)).await;
    observed.observe_passwords(context, key, stored.as_ref());
    let all_have_it = observed.answering().all(|facts| facts.config == Applied::Yes);
    if all_have_it && stored != observed.password && observed.answering().next().is_some() {
        observed.password_change = Some(if observed.password.is_some() {
            PasswordChange::Set
        } else {
            PasswordChange::Removed
        });
    }
    observed.removed_claims = storage::removed_claims(context, key, cluster, &observed);
    let to_store = if all_have_it { observed.password.clone() } else { stored };
    if let Some(config) = config {
        observed.build(
            context,
            key,
            cluster,
            live.as_deref(),
            &Merged {
                password: to_store,
                ..config
            },
        );
    }
    observed
}

/// Whether a fast operation runs.
fn is_fast(status: &RedkeyClusterStatus) -> bool {
    use candor_api::redkey::status::OperationMode;
    status
        .operation
        .as_ref()
        .is_some_and(|one| one.mode == OperationMode::Fast)
}

fn set_of(live: &StatefulSet) -> Set {
    let spec = live.spec.as_ref();
    Set {
        replicas: spec
            .and_then(|spec| spec.replicas)
            .map_or(1, |count| u32::try_from(count).unwrap_or(0)),
        revision: live.annotations().get(REVISION).cloned().unwrap_or_default(),
        leaving: live.metadata.deletion_timestamp.is_some(),
        adopted: live.annotations().contains_key(objects::ADOPTED),
    }
}

fn merged(cluster: &RedkeyCluster, password: Option<&Password>, base: &mut Observation) -> Option<Merged> {
    let storage = if cluster.spec.ephemeral {
        Storage::Ephemeral
    } else {
        Storage::Volume
    };
    let text = cluster.spec.config.as_deref().unwrap_or_default();
    match config::merge(text, storage, password) {
        Ok(config) => Some(config),
        Err(error) => {
            base.problems.push(Problem {
                about: About::Configuration,
                message: error.to_string(),
            });
            None
        }
    }
}

impl Observed {
    fn answering(&self) -> impl Iterator<Item = &Facts> {
        self.members.values().filter_map(Member::facts)
    }

    /// The label selector of the servers.
    pub fn selector(&self, key: &ClusterKey) -> String {
        let kept = self.kept.as_ref().map(|kept| kept.selector.clone());
        names::selector_text(&kept.unwrap_or_else(|| names::server_selector(&key.name)))
    }
}

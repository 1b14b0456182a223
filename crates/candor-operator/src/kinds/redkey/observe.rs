//! Observes a `RedkeyCluster`: objects from the caches, servers by ordinal, and the desired objects built from the spec.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;

use candor_api::redkey::status::ClusterStatus;
use candor_api::redkey::{COMPONENT_LABEL, REDIS};
use candor_api::{RedkeyCluster, RedkeyClusterStatus};
use candor_engine::kinds::redkey::memory;
use candor_engine::kinds::redkey::operation::Set;
use candor_engine::kinds::redkey::report::{Ignored, PasswordChange};
use candor_engine::model::{MemberRef, ShardIndex};
use candor_engine::observation::{About, Applied, Claim, Member, Observation, Problem, Server, Volume, Workload};
use candor_engine::seats::Ordinal;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::ResourceExt;
use valkey_admin::client::{Credentials, Endpoint};

use super::config::{self, Merged, Password, Storage};
use super::objects::credentials::{PASSWORD, password_of};
use super::objects::{self, Inputs, Kept, Note, Objects, PORT, REVISION, RobinCredentials, names};
use super::robin::link::Frame;
use super::storage;
use crate::act::apply::{is_right, message};
use crate::act::ownership::Owner;
use crate::objects::labels::REDKEY_PREFLIGHT_OF;
use crate::objects::preflight_pod;
use crate::observe::pods_unknown;
use crate::observe::{evidence, orphans, pods, preflight};
use crate::runtime::cache::ClusterKey;
use crate::runtime::context::Context;

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
    let pods = pods_by_ordinal(context, key, live.as_deref(), is_fast(status));
    // Passwords are applied by the operator, over its own connections.
    let servers = match frame.filter(|_| stored == password) {
        Some(frame) => {
            context.monitor.forget(key);
            told(frame, &pods)
        }
        None => ask(context, key, &pods, stored.as_ref(), password.as_ref()).await,
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

/// Whether a fast operation runs: pods of an earlier `StatefulSet` are not servers of this cluster any more.
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

/// The password that is stored for servers to start with.
fn stored_password(context: &Context, key: &ClusterKey) -> Option<Password> {
    let secret = context.caches.secrets.get(key, &names::robin(&key.name))?;
    let bytes = secret.data.as_ref()?.get(PASSWORD)?;
    Password::new(String::from_utf8(bytes.0.clone()).ok()?)
}

/// The password of the user's Secret. While it cannot be read, servers keep the one they have.
async fn desired_password(
    context: &Context,
    key: &ClusterKey,
    cluster: &RedkeyCluster,
    stored: Option<&Password>,
    base: &mut Observation,
) -> Option<Password> {
    let name = cluster.spec.auth.as_ref().and_then(|auth| auth.secret.clone());
    let name = name.filter(|name| !name.is_empty())?;
    let names = BTreeSet::from([name.clone()]);
    let read = context.secrets.of(&context.client, &context.caches, key, names).await;
    let found = match read {
        Ok(found) => password_of(found.get(&name), &name),
        Err(error) => {
            base.secrets_unread = Some(format!("Secret {name} could not be read: {}", message(&error)));
            return stored.cloned();
        }
    };
    match found {
        Ok(password) => Some(password),
        Err(error) => {
            base.problems.push(Problem {
                about: About::Users,
                message: error.to_string(),
            });
            stored.cloned()
        }
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
                message: format!("spec.config: {error}"),
            });
            None
        }
    }
}

/// The pods of the servers. A pod without a controller was orphaned, and its `StatefulSet` adopts it.
fn pods_by_ordinal(
    context: &Context,
    key: &ClusterKey,
    live: Option<&StatefulSet>,
    fast: bool,
) -> BTreeMap<Ordinal, Vec<Arc<Pod>>> {
    let uid = live.and_then(ResourceExt::uid);
    let mut pods: BTreeMap<Ordinal, Vec<Arc<Pod>>> = BTreeMap::new();
    for pod in context.caches.pods.list(key) {
        let server = pod
            .labels()
            .get(COMPONENT_LABEL)
            .is_some_and(|component| component == REDIS);
        let mut owners = pod.owner_references().iter();
        let controller = owners.find(|owner| owner.controller == Some(true));
        // Older pods of the existing operator have another component label.
        let ours = match controller {
            Some(owner) => {
                let set = owner.kind == "StatefulSet" && owner.name == key.name;
                set && (!fast || Some(&owner.uid) == uid.as_ref())
            }
            None => server,
        };
        if let Some(ordinal) = names::ordinal(&key.name, &pod.name_any()).filter(|_| ours) {
            pods.entry(ordinal).or_default().push(pod);
        }
    }
    pods
}

/// What Robin observed of the pods that exist now.
fn told(frame: &Frame, pods: &BTreeMap<Ordinal, Vec<Arc<Pod>>>) -> BTreeMap<Ordinal, Server> {
    let server = |ordinal: &Ordinal, pods: &Vec<Arc<Pod>>| {
        let uid = pods::reachability(pods.iter().map(|pod| &**pod))?.uid()?;
        let observed = frame.servers.get(ordinal).filter(|one| one.pod_uid == uid)?;
        Some(observed.server.clone())
    };
    let told = pods
        .iter()
        .filter_map(|(ordinal, pods)| Some((*ordinal, server(ordinal, pods)?)));
    told.collect()
}

/// Queries all servers, each with the password that it is known to have.
async fn ask(
    context: &Context,
    key: &ClusterKey,
    pods: &BTreeMap<Ordinal, Vec<Arc<Pod>>>,
    stored: Option<&Password>,
    desired: Option<&Password>,
) -> BTreeMap<Ordinal, Server> {
    let rejecting: BTreeSet<Ordinal> = context.monitor.rejecting(key).into_keys().map(|at| at.node).collect();
    let has_desired = context.states.with(key, |state| {
        for ordinal in rejecting.iter().filter(|_| stored != desired) {
            if !state.has_desired_password.remove(ordinal) {
                state.has_desired_password.insert(*ordinal);
            }
        }
        state.has_desired_password.clone()
    });
    let endpoint = |ordinal: Ordinal, pods: &Vec<Arc<Pod>>| {
        let pod = pods::reachability(pods.iter().map(|pod| &**pod))?;
        let ip = pod.status.as_ref()?.pod_ip.as_ref()?.parse().ok()?;
        let password = if has_desired.contains(&ordinal) {
            desired
        } else {
            stored.or(desired)
        };
        Some(Endpoint {
            address: SocketAddr::new(ip, PORT),
            credentials: credentials(password),
            tls: None,
        })
    };
    let place = |ordinal: Ordinal| {
        place(MemberRef {
            shard: ShardIndex(0),
            node: ordinal,
        })
    };
    let endpoints = pods
        .iter()
        .filter_map(|(ordinal, pods)| Some((place(*ordinal), endpoint(*ordinal, pods)?)));
    context.monitor.watch(key, endpoints.collect());
    let servers = context.monitor.scrape(key).await;
    servers.into_iter().map(|(at, server)| (at.node, server)).collect()
}

impl Observed {
    fn answering(&self) -> impl Iterator<Item = &candor_engine::observation::Facts> {
        self.members.values().filter_map(Member::facts)
    }

    fn observe_members(
        &mut self,
        context: &Context,
        key: &ClusterKey,
        cluster: &RedkeyCluster,
        pods: &BTreeMap<Ordinal, Vec<Arc<Pod>>>,
        mut servers: BTreeMap<Ordinal, Server>,
    ) {
        let nothing = RedkeyClusterStatus::default();
        let status = cluster.status.as_ref().unwrap_or(&nothing);
        let adopted = self.kept.as_ref().map(|kept| kept.adopted.clone());
        let claims = claims(context, key);
        let memory = memory::memory(status);
        let seats = memory::seats(status);
        let replicas = self.set.as_ref().map_or(0, |set| set.replicas);
        let everybody: BTreeSet<Ordinal> = (0..replicas)
            .chain(pods.keys().copied())
            .chain(claims.keys().copied())
            .chain(seats.keys().copied())
            .collect();
        for ordinal in everybody {
            let all = pods.get(&ordinal).map(Vec::as_slice).unwrap_or_default();
            let reachability = pods::reachability(all.iter().map(|pod| &**pod));
            let mut pod = reachability.map(|pod| pods::see(pod, None, &context.caches.nodes));
            if let (Some(observation), Some(live)) = (&mut pod, reachability) {
                observation.current = objects::is_current(live, adopted.as_deref(), &cluster.spec, &self.revision);
            }
            let last = seats
                .get(&ordinal)
                .and_then(|shard| memory.topology.get(shard)?.pods.get(&ordinal));
            let deleted = last.filter(|last| context.caches.terminated.contains(&last.uid));
            let mut terminated_pods = pods::terminated(all.iter().map(|pod| &**pod));
            terminated_pods.extend(deleted.map(|last| last.uid.clone()));
            let (volume, claim) = claims
                .get(&ordinal)
                .map_or((Volume::None, Claim::Absent), |claim| volume(claim));
            let server = servers.remove(&ordinal).unwrap_or_default();
            let member = MemberRef {
                shard: ShardIndex(0),
                node: ordinal,
            };
            let up = matches!(server, Server::Up(_));
            let workload = self.workload(ordinal, pod.as_ref());
            self.members.insert(
                ordinal,
                Member {
                    workload,
                    pod,
                    volume,
                    claim,
                    claim_uid: claims.get(&ordinal).and_then(|claim| claim.uid()).unwrap_or_default(),
                    terminated_pods,
                    other_addresses: pods::other_addresses(all.iter().map(|pod| &**pod), reachability),
                    may_run_elsewhere: pods::may_run_elsewhere(all.iter().map(|pod| &**pod), reachability),
                    server,
                    undecodable: context.monitor.trouble(key, member).filter(|_| !up),
                    ..Member::default()
                },
            );
        }
    }

    fn workload(&self, ordinal: Ordinal, pod: Option<&candor_engine::observation::Pod>) -> Workload {
        match &self.set {
            None => Workload::Absent,
            Some(set) if set.leaving => Workload::Leaving,
            Some(set) if ordinal >= set.replicas => Workload::Absent,
            Some(_) if pod.is_some_and(|pod| !pod.current) => Workload::Outdated,
            Some(_) => Workload::Current,
        }
    }

    /// Looks for pods that lost their labels, and whether the nodes of vanished pods confirm that they have terminated.
    async fn observe_evidence(
        &mut self,
        context: &Context,
        key: &ClusterKey,
        status: &RedkeyClusterStatus,
        pods: &BTreeMap<Ordinal, Vec<Arc<Pod>>>,
    ) {
        let seats = memory::seats(status);
        let at = |ordinal: Ordinal| {
            let shard = seats.get(&ordinal).copied().unwrap_or(ShardIndex(u32::MAX));
            MemberRef { shard, node: ordinal }
        };
        let members = std::mem::take(&mut self.members);
        let mut observation = Observation {
            members: members
                .into_iter()
                .map(|(ordinal, member)| (at(ordinal), member))
                .collect(),
            ..self.base.clone()
        };
        let memory = memory::memory(status);
        let pods = pods
            .iter()
            .map(|(ordinal, pods)| (at(*ordinal), pods.clone()))
            .collect();
        orphans::observe(context, key, (&memory, &pods), &mut observation).await;
        self.base.pods_at.clone_from(&observation.pods_at);
        evidence::observe(context, key, &memory, &mut observation).await;
        self.members = observation
            .members
            .into_iter()
            .map(|(at, member)| (at.node, member))
            .collect();
    }

    /// Which servers do not have the desired password yet.
    fn observe_passwords(&mut self, context: &Context, key: &ClusterKey, stored: Option<&Password>) {
        if stored == self.password.as_ref() || (stored.is_none() && self.answering().next().is_none()) {
            context.states.with(key, |state| state.has_desired_password.clear());
            return;
        }
        let has_desired = context.states.with(key, |state| state.has_desired_password.clone());
        for (ordinal, member) in &mut self.members {
            if let Server::Up(facts) = &mut member.server
                && !has_desired.contains(ordinal)
            {
                facts.config = Applied::No;
            }
        }
    }

    /// Builds the desired objects, or records why they cannot be built.
    fn build(
        &mut self,
        context: &Context,
        key: &ClusterKey,
        cluster: &RedkeyCluster,
        live: Option<&StatefulSet>,
        config: &Merged,
    ) {
        let kept = context.caches.secrets.get(key, &names::robin(&key.name));
        let kept = kept.as_deref().and_then(RobinCredentials::from_secret);
        let credentials = kept.map_or_else(
            || RobinCredentials::generate(&key.name, &ring::rand::SystemRandom::new()),
            Ok,
        );
        let credentials = match credentials {
            Ok(credentials) => credentials,
            Err(error) => {
                self.base.problems.push(Problem {
                    about: About::Configuration,
                    message: error.to_string(),
                });
                return;
            }
        };
        let replicas = self
            .set
            .as_ref()
            .map_or(cluster.spec.nodes(), |set| i32::try_from(set.replicas).unwrap_or(0));
        let paused = candor_engine::kinds::redkey::operation::is_paused(cluster);
        let kept = self.kept.clone();
        let inputs = Inputs {
            kept: kept.as_ref(),
            cluster,
            config,
            credentials: &credentials,
            robin_image: &context.settings.exporter_image,
            replicas,
            // The goal, not the row: it does not change with every write of status.
            status: if paused {
                ClusterStatus::Maintenance
            } else {
                ClusterStatus::Ready
            },
        };
        match objects::build(&inputs) {
            Ok(objects) => {
                self.ignored.extend(objects.notes.iter().map(|note| match note {
                    Note::OverrideIgnored { .. } => Ignored::Override(note.to_string()),
                    Note::RobinReplaced { .. } => Ignored::RobinTemplate(note.to_string()),
                }));
                let differs = live.and_then(|live| storage::difference(live, &objects.stateful_set));
                self.base.problems.extend(differs.map(|message| Problem {
                    about: About::Storage,
                    message,
                }));
                self.look_at_preflight(context, key, cluster, live, &objects);
                self.base.objects_ready = self.objects_ready(context, key, &objects);
                self.objects = Some(objects);
            }
            Err(error) => self.base.problems.push(Problem {
                about: About::Configuration,
                message: error.to_string(),
            }),
        }
    }

    /// The preflight of a fast operation: a pod with the new template.
    fn look_at_preflight(
        &mut self,
        context: &Context,
        key: &ClusterKey,
        cluster: &RedkeyCluster,
        live: Option<&StatefulSet>,
        objects: &Objects,
    ) {
        let template = |set: &StatefulSet| set.spec.as_ref().map(|spec| spec.template.clone());
        let differs = self.set.as_ref().is_some_and(|set| set.revision != self.revision);
        let now = live
            .filter(|_| differs && cluster.spec.primaries > 0)
            .and_then(template);
        let name = preflight_name(&key.name);
        self.preflight = now.zip(template(&objects.stateful_set)).and_then(|(now, desired)| {
            let mut metadata = objects.config_map.metadata.clone();
            metadata.name = Some(name.clone());
            metadata.annotations = None;
            metadata.labels = Some([(REDKEY_PREFLIGHT_OF.to_owned(), key.name.clone())].into());
            preflight_pod(metadata, &desired, &now)
        });
        (self.base.preflight, self.base.old_preflight) =
            preflight::result(context, key, &name, self.preflight.as_ref());
    }

    /// The label selector of the servers.
    pub fn selector(&self, key: &ClusterKey) -> String {
        let kept = self.kept.as_ref().map(|kept| kept.selector.clone());
        names::selector_text(&kept.unwrap_or_else(|| names::server_selector(&key.name)))
    }

    /// Whether every object exists and matches. The `StatefulSet` is compared only if it has the desired revision: an
    /// older one is replaced by an operation.
    fn objects_ready(&self, context: &Context, key: &ClusterKey, objects: &Objects) -> bool {
        let caches = &context.caches;
        let set = match &self.set {
            None => false,
            Some(set) if set.revision == self.revision && !set.leaving => {
                is_right(context, &caches.stateful_sets, key, &objects.stateful_set)
            }
            Some(_) => true,
        };
        let budget = if let Some(budget) = &objects.budget {
            is_right(context, &caches.budgets, key, budget)
        } else {
            let name = names::budget(&key.name);
            Owner::of(context, key).get(&caches.budgets, &name).is_none()
        };
        let robin = &objects.robin;
        set && budget
            && self.removed_claims.is_empty()
            && is_right(context, &caches.services, key, &objects.service)
            && is_right(context, &caches.configs, key, &objects.config_map)
            && is_right(context, &caches.configs, key, &robin.config_map)
            && is_right(context, &caches.secrets, key, &robin.secret)
            && is_right(context, &caches.service_accounts, key, &robin.service_account)
            && is_right(context, &caches.roles, key, &robin.role)
            && is_right(context, &caches.role_bindings, key, &robin.role_binding)
            && is_right(context, &caches.deployments, key, &robin.deployment)
    }
}

/// The name of the preflight pod.
pub(super) fn preflight_name(cluster: &str) -> String {
    format!("{cluster}-preflight")
}

/// The volume claims of the servers.
pub(super) fn claims(context: &Context, key: &ClusterKey) -> BTreeMap<Ordinal, Arc<PersistentVolumeClaim>> {
    let all = context.caches.claims.list(key).into_iter();
    let named = all.filter_map(|claim| {
        let name = claim.name_any();
        let ordinal = names::ordinal(&key.name, name.strip_prefix("data-")?)?;
        Some((ordinal, claim))
    });
    named.collect()
}

fn volume(claim: &PersistentVolumeClaim) -> (Volume, Claim) {
    let volume = if claim.metadata.deletion_timestamp.is_some() {
        Volume::None
    } else if claim.annotations().contains_key(DRAINED) {
        Volume::Drained
    } else {
        Volume::Kept
    };
    (volume, crate::observe::volumes::claim(claim, None))
}

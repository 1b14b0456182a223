//! Observes a cluster: reads objects from the caches, queries all members concurrently, and converts both into the
//! engine's types.

pub(crate) mod applied;
pub(crate) mod drift;
pub(crate) mod evidence;
pub(crate) mod orphans;
pub(crate) mod pods;
pub(crate) mod preflight;
pub(crate) mod volumes;
pub(crate) mod workloads;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;

use candor_api::ValkeyCluster;
use candor_engine::kinds::valkey;
use candor_engine::memory::Memory;
use candor_engine::model::{Desired, MemberRef};
use candor_engine::observation::{
    About, Applied, Claim, Login, Member, Observation, Orphan, Problem as Told, Server, Volume, Workload,
};
use futures::future::join_all;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::ResourceExt;
use valkey_admin::Version;
use valkey_admin::client::{Credentials, Endpoint, Tls};

use crate::act::apply::{is_right, message};
use crate::act::ownership::Owner;
use crate::credentials::certificates::Certificates;
use crate::credentials::repair::Repair;
use crate::objects::{
    self, Inputs, MIGRATOR, MemberObjects, OPERATOR, PORT, Problem, Remembered, Settings, SharedObject,
    SystemPasswords, labels, names, referenced_secrets,
};
use crate::observe::applied::Process;
use crate::observe::workloads::Live;
use crate::runtime::cache::{ClusterKey, ClusterKind};
use crate::runtime::context::Context;
use crate::runtime::limits::within;

/// The result of one observation, with the desired state.
pub struct Observed {
    /// The desired state.
    pub desired: Desired,
    /// The observed state.
    pub observation: Observation,
    /// The state that is stored in status.
    pub memory: Memory,
    /// The desired objects that all members share.
    pub shared: Vec<SharedObject>,
    /// The desired objects of each member.
    pub members: BTreeMap<MemberRef, MemberObjects>,
    /// The desired settings of the servers.
    pub settings: Option<Settings>,
    /// The preflight pod that tests whether members can run with the desired template, if the running members do not
    /// prove it.
    pub preflight: Option<Pod>,
    /// The user that moves keys individually.
    pub migrator: Credentials,
    /// The certificates of the servers, with TLS.
    pub certificates: Option<Certificates>,
    /// Identifies and repairs members that reject the operator's user.
    pub repair: Repair,
}

/// Observes a cluster.
pub async fn observe(
    context: &Context,
    key: &ClusterKey,
    cluster: &ValkeyCluster,
    passwords: &SystemPasswords,
) -> Observed {
    let memory = valkey::memory(
        cluster
            .status
            .as_ref()
            .unwrap_or(&candor_api::ValkeyClusterStatus::default()),
    );
    let (desired, excess) = within(
        valkey::desired(cluster),
        || existing(context, key, &memory),
        context.settings.max_members,
    );
    let (secrets, unread) = match context
        .secrets
        .of(&context.client, &context.caches, key, referenced_secrets(cluster))
        .await
    {
        Ok(secrets) => (secrets, None),
        Err(error) => (BTreeMap::new(), Some(message(&error))),
    };
    let mut observed = Observed {
        migrator: Credentials {
            user: MIGRATOR.to_owned(),
            password: passwords.migrator.clone(),
        },
        repair: Repair::new(&memory, passwords),
        desired,
        memory,
        observation: Observation {
            deleting: cluster.metadata.deletion_timestamp.is_some(),
            ..Observation::default()
        },
        shared: Vec::new(),
        members: BTreeMap::new(),
        settings: None,
        certificates: {
            let own = context.caches.secrets.get(key, &names::system_secret(&key.name));
            Certificates::of(cluster, &secrets, own.as_deref())
        },
        preflight: None,
    };
    observed.observation.pods_unknown = pods_unknown(context, key).await;
    let pods = pods_by_member(context, key);
    let parts = parts(passwords, observed.certificates.as_ref());
    let servers = ask(context, key, &pods, parts).await;
    let version = servers
        .values()
        .filter_map(version_of)
        .min_by_key(|version| (version.major, version.minor));
    let live = Live::read(context, key);
    let config = context.caches.configs.get(key, &names::shared(&key.name));
    let mut remembered = Remembered::from_config_map(config.as_deref());
    for unknown in unknown_keys(context, key, remembered.lost(cluster), &servers).await {
        remembered.forget(&unknown);
    }
    let inputs = Inputs {
        cluster,
        image: valkey::image(cluster),
        exporter_image: &context.settings.exporter_image,
        passwords,
        secrets: &secrets,
        version,
        remembered: &remembered,
    };
    match unread {
        // A Secret that could not be read must not count as missing: all objects stay unchanged.
        Some(message) => observed.observation.secrets_unread = Some(format!("Secrets could not be read: {message}")),
        None => match excess {
            Some(reason) => observed.note(&Problem::shape("spec", reason), About::Configuration),
            None => observed.build(&live, key, &inputs),
        },
    }
    observed.look_at_members(context, key, (&live, &pods), servers);
    orphans::observe(context, key, (&observed.memory, &pods), &mut observed.observation).await;
    evidence::observe(context, key, &observed.memory, &mut observed.observation).await;
    observed.observe_logins(context, key).await;
    preflight::look(context, key, cluster, &live, &mut observed);
    observed.look_at_settings(context, key).await;
    observed.keep_users_that_nobody_took(context, key);
    observed.look_at_certificates(context, key).await;
    observed.look_at_objects(context, key, cluster, &live);
    observed
}

/// Why the pods are not known. After a failed watch this lists the pods once: otherwise the recovery would be noticed
/// only with the next event.
pub async fn pods_unknown(context: &Context, key: &ClusterKey) -> Option<String> {
    // A pod that does not decode still exists.
    if let Some(error) = context.caches.pods.undecodable(key) {
        return Some(format!("pod {error}"));
    }
    context.caches.pods.trouble(key.kind)?;
    let api: kube::Api<Pod> = kube::Api::namespaced(context.client.clone(), &key.namespace);
    let label = match key.kind {
        ClusterKind::Valkey => labels::CLUSTER,
        ClusterKind::Redkey => candor_api::redkey::CLUSTER_LABEL,
    };
    let selector = format!("{label}={}", key.name);
    match api.list(&kube::api::ListParams::default().labels(&selector)).await {
        Ok(list) => {
            for pod in list.items {
                context.caches.pods.put(pod);
            }
            context.caches.pods.recover(key.kind);
            None
        }
        Err(error) => Some(message(&error)),
    }
}

/// Members that have a workload or a pod, or that are in status. Labels alone do not make an object a member's.
fn existing(context: &Context, key: &ClusterKey, memory: &Memory) -> impl Iterator<Item = MemberRef> {
    fn of<K: ResourceExt>(objects: Vec<Arc<K>>) -> impl Iterator<Item = MemberRef> {
        objects
            .into_iter()
            .filter_map(|object| labels::member_of(object.labels()))
    }
    let (caches, owner) = (&context.caches, Owner::of(context, key));
    let pods = pods_by_member(context, key).into_keys();
    of(owner.list(&caches.deployments))
        .chain(of(owner.list(&caches.stateful_sets)))
        .chain(pods)
        .chain(memory.topology.iter().flat_map(|(shard, before)| {
            let shard = *shard;
            before.members.keys().map(move |node| MemberRef { shard, node: *node })
        }))
}

fn pods_by_member(context: &Context, key: &ClusterKey) -> BTreeMap<MemberRef, Vec<Arc<Pod>>> {
    let mut pods: BTreeMap<MemberRef, Vec<Arc<Pod>>> = BTreeMap::new();
    for pod in context.caches.pods.list(key) {
        if let Some(at) = pods::member_of(&pod, &key.name) {
            pods.entry(at).or_default().push(pod);
        }
    }
    pods
}

/// How to connect to servers: as the operator's own user, and always with TLS if the spec enables it. `own` is the
/// operator's own Secret of this cluster.
pub fn endpoint_parts(
    cluster: &ValkeyCluster,
    passwords: &SystemPasswords,
    secrets: &BTreeMap<String, Secret>,
    own: Option<&Secret>,
) -> Option<(Credentials, Option<Tls>)> {
    parts(passwords, Certificates::of(cluster, secrets, own).as_ref())
}

fn parts(passwords: &SystemPasswords, certificates: Option<&Certificates>) -> Option<(Credentials, Option<Tls>)> {
    let credentials = Credentials {
        user: OPERATOR.to_owned(),
        password: passwords.operator.clone(),
    };
    match certificates {
        None => Some((credentials, None)),
        Some(certificates) => Some((credentials, Some(certificates.tls().ok()?))),
    }
}

/// Passes the members to the member monitor and queries all of them. If the Secret with their certificates is missing,
/// unreadable or invalid, servers keep what they have loaded, and the operator keeps connecting as before.
async fn ask(
    context: &Context,
    key: &ClusterKey,
    pods: &BTreeMap<MemberRef, Vec<Arc<Pod>>>,
    parts: Option<(Credentials, Option<Tls>)>,
) -> BTreeMap<MemberRef, Server> {
    let Some((credentials, tls)) = parts else {
        return context.monitor.scrape(key).await;
    };
    let endpoint = |pods: &Vec<Arc<Pod>>| {
        let pod = pods::reachability(pods.iter().map(|pod| &**pod))?;
        let ip = pod.status.as_ref()?.pod_ip.as_ref()?.parse().ok()?;
        Some(Endpoint {
            address: SocketAddr::new(ip, PORT),
            credentials: Some(credentials.clone()),
            tls: tls.clone(),
        })
    };
    let endpoints = pods.iter().filter_map(|(at, pods)| Some((*at, endpoint(pods)?)));
    context.monitor.watch(key, endpoints.collect());
    context.monitor.scrape(key).await
}

/// The keys that no responding server knows. A rejected key is remembered as if it had been set. Removing such a key
/// from the spec must not restart a member.
async fn unknown_keys(
    context: &Context,
    key: &ClusterKey,
    keys: Vec<&str>,
    servers: &BTreeMap<MemberRef, Server>,
) -> Vec<String> {
    let mut unknown = Vec::new();
    for name in keys {
        let up = servers.iter().filter(|(_, server)| matches!(server, Server::Up(_)));
        let asked = up.filter_map(|(at, _)| context.monitor.node(key, *at));
        let answers = join_all(asked.map(async |node| node.config_get(name).await)).await;
        let nowhere = answers.iter().all(|answer| matches!(answer, Ok(None)));
        if nowhere && !answers.is_empty() {
            unknown.push(name.to_owned());
        }
    }
    unknown
}

fn version_of(server: &Server) -> Option<Version> {
    match server {
        Server::Up(facts) => facts.version,
        _ => None,
    }
}

impl Observed {
    /// Builds the desired objects and settings, or records why they cannot be built.
    fn build(&mut self, live: &Live, key: &ClusterKey, inputs: &Inputs<'_>) {
        match objects::shared(inputs) {
            Ok(shared) => self.shared = shared,
            Err(problem) => self.note(&problem, problem.about(inputs.cluster)),
        }
        if let Some(problem) = self.certificates.as_ref().and_then(|found| found.problem.clone()) {
            self.note(&problem, About::Configuration);
        }
        for at in self.desired.members().collect::<Vec<_>>() {
            let name = names::workload(&key.name, at);
            match objects::member_beside(inputs, at, live.template(&name)) {
                Ok(objects) => {
                    self.members.insert(at, objects);
                }
                Err(problem) => {
                    self.note(&problem, About::Configuration);
                    break;
                }
            }
        }
        match objects::settings(inputs) {
            Ok(settings) => self.settings = Some(settings),
            Err(problem) => self.note(&problem, About::Users),
        }
    }

    fn note(&mut self, problem: &Problem, about: About) {
        let message = problem.to_string();
        if problem.is_missing() && !self.observation.missing.contains(&message) {
            self.observation.missing.push(message.clone());
        }
        let told = Told { about, message };
        if !self
            .observation
            .problems
            .iter()
            .any(|known| known.message == told.message)
        {
            self.observation.problems.push(told);
        }
    }

    /// Keeps the current ACL file, which starting servers read, until a running server has accepted the new users and
    /// none has rejected them.
    fn keep_users_that_nobody_took(&mut self, context: &Context, key: &ClusterKey) {
        let desired = self
            .observation
            .answering()
            .filter(|(at, _)| self.desired.includes(*at));
        let answers: Vec<&Applied> = desired.map(|(_, facts)| &facts.users).collect();
        let rejected = answers.iter().any(|users| matches!(users, Applied::Rejected(_)));
        if answers.contains(&&Applied::Yes) && !rejected {
            return;
        }
        for object in &mut self.shared {
            if let SharedObject::AclSecret(secret) = object {
                let live = context.caches.secrets.get(key, &secret.name_any());
                objects::keep_users(secret, live.as_deref());
            }
        }
    }

    /// Whether each responding server presents the desired certificate. The previous CA is discarded once every member
    /// is observed to present it.
    async fn look_at_certificates(&mut self, context: &Context, key: &ClusterKey) {
        let Some(certificates) = &self.certificates else { return };
        let looks = self.observation.answering().filter_map(|(at, facts)| {
            let node = context.monitor.node(key, at)?;
            Some(async move {
                let process = Process {
                    cluster: key,
                    member: at,
                    run_id: &facts.run_id,
                };
                (at, context.served.look(&node, process, certificates).await)
            })
        });
        let looks: BTreeMap<MemberRef, Applied> = join_all(looks).await.into_iter().collect();
        let mut members = self.observation.members.iter().filter(|(_, member)| member.exists());
        let all_serve = members.all(|(at, _)| looks.get(at) == Some(&Applied::Yes));
        for object in &mut self.shared {
            if let SharedObject::SystemSecret(secret) = object {
                certificates.note(secret, all_serve);
            }
        }
        for (at, certificate) in looks {
            if let Some(Server::Up(facts)) = self.observation.members.get_mut(&at).map(|member| &mut member.server) {
                facts.certificate = certificate;
            }
        }
    }

    /// Whether every object that can be built exists and matches. An object that cannot be built is a problem, not a
    /// missing object: running members stay unchanged.
    fn look_at_objects(&mut self, context: &Context, key: &ClusterKey, cluster: &ValkeyCluster, live: &Live) {
        let built = !self.shared.is_empty();
        let right = self.shared.iter().all(|object| shared_is_right(context, key, object));
        let workloads = self.members.values().all(|member| live.is_kept(context, member));
        let claims = volumes::claims(context, key);
        let owned = claims
            .values()
            .all(|claim| volumes::other_owners(claim, cluster).is_none());
        self.observation.objects_ready = (right && workloads && owned) || !built;
    }

    fn look_at_members(
        &mut self,
        context: &Context,
        key: &ClusterKey,
        (live, pods): (&Live, &BTreeMap<MemberRef, Vec<Arc<Pod>>>),
        mut servers: BTreeMap<MemberRef, Server>,
    ) {
        let workloads = live.by_member();
        let claims = volumes::claims(context, key);
        let remembered = self.memory.topology.iter().flat_map(|(shard, before)| {
            let shard = *shard;
            before.members.keys().map(move |node| MemberRef { shard, node: *node })
        });
        let everybody: BTreeSet<MemberRef> = self
            .desired
            .members()
            .chain(workloads.keys().copied())
            .chain(pods.keys().copied())
            .chain(claims.keys().copied())
            .chain(remembered)
            .collect();
        for at in everybody {
            let template = self.members.get(&at).map(|member| member.workload.template_hash());
            let workload = match workloads.get(&at) {
                None => Workload::Absent,
                Some(live) if live.leaving => Workload::Leaving,
                Some(live) if template.is_some_and(|desired| live.template != desired) => Workload::Outdated,
                Some(_) => Workload::Current,
            };
            let reachability = pods
                .get(&at)
                .and_then(|pods| pods::reachability(pods.iter().map(|pod| &**pod)));
            let pod = reachability.map(|pod| pods::see(pod, template, &context.caches.nodes));
            let desired = self.members.get(&at).and_then(|member| member.claim.as_ref());
            let (volume, claim) = claims.get(&at).map_or((Volume::None, Claim::Absent), |live| {
                (volumes::volume(live), volumes::claim(live, desired))
            });
            let server = servers.remove(&at).unwrap_or_default();
            let up = matches!(server, Server::Up(_));
            let undecodable = context.monitor.trouble(key, at).filter(|_| !up);
            let all = pods.get(&at).map(Vec::as_slice).unwrap_or_default();
            let last = self
                .memory
                .topology
                .get(&at.shard)
                .and_then(|before| before.pods.get(&at.node));
            let deleted = last.filter(|last| context.caches.terminated.contains(&last.uid));
            let mut terminated_pods = pods::terminated(all.iter().map(|pod| &**pod));
            terminated_pods.extend(deleted.map(|last| last.uid.clone()));
            self.observation.members.insert(
                at,
                Member {
                    workload,
                    pod,
                    volume,
                    claim,
                    claim_uid: claims.get(&at).and_then(|live| live.uid()).unwrap_or_default(),
                    last_node_believed: false,
                    terminated_pods,
                    other_addresses: pods::other_addresses(all.iter().map(|pod| &**pod), reachability),
                    may_run_elsewhere: pods::may_run_elsewhere(all.iter().map(|pod| &**pod), reachability),
                    orphan: Orphan::default(),
                    server,
                    login: Login::default(),
                    undecodable,
                },
            );
        }
        self.look_at_nonsense();
    }

    /// Which members reject the operator's user, and which of those are proven to be members. Only pods that exist now
    /// count: the address of an earlier pod may belong to any server.
    async fn observe_logins(&mut self, context: &Context, key: &ClusterKey) {
        if self.observation.pods_unknown.is_some() {
            return;
        }
        let rejecting = context.monitor.rejecting(key).into_iter();
        let here = rejecting.filter(|(at, endpoint)| {
            let member = self.observation.members.get(at);
            member.and_then(Member::ip) == Some(endpoint.address.ip())
        });
        let repair = &self.repair;
        let logins = here.map(async |(at, endpoint)| {
            let possible = repair.is_possible(&endpoint).await;
            (at, if possible { Login::Repairable } else { Login::Rejected })
        });
        for (at, login) in join_all(logins).await {
            if let Some(member) = self.observation.members.get_mut(&at) {
                member.login = login;
            }
        }
    }

    /// An undecodable reply of one member is a problem of that member; the others are still reconciled. If no member's
    /// reply can be decoded, or the cluster has never formed, the spec is reported as the problem.
    fn look_at_nonsense(&mut self) {
        if self.memory.formed && self.observation.answering().next().is_some() {
            return;
        }
        for (at, member) in &mut self.observation.members {
            if let Some(message) = member.undecodable.take() {
                self.observation.problems.push(Told {
                    about: About::Configuration,
                    message: format!("member {at}: {message}"),
                });
            }
        }
    }

    /// Whether each responding server runs with the desired settings. A server is queried only if the answer is not
    /// cached.
    async fn look_at_settings(&mut self, context: &Context, key: &ClusterKey) {
        let Some(settings) = &self.settings else { return };
        let answering = self.observation.answering().filter(|(_, facts)| !facts.loading);
        let looks = answering.filter_map(|(at, facts)| {
            let node = context.monitor.node(key, at)?;
            let process = Process {
                cluster: key,
                member: at,
                run_id: &facts.run_id,
            };
            Some(async move { (at, context.applied.look(&node, process, settings).await) })
        });
        let looks: Vec<_> = join_all(looks).await;
        for (at, look) in looks {
            let member = self.observation.members.get_mut(&at);
            let Some(Server::Up(facts)) = member.map(|member| &mut member.server) else {
                continue;
            };
            // No response in time: the next reconcile queries again. Until then the settings count as not applied.
            let (config, users) = look.unwrap_or((Applied::No, Applied::No));
            facts.config = config;
            facts.users = users;
        }
    }
}

fn shared_is_right(context: &Context, key: &ClusterKey, object: &SharedObject) -> bool {
    let caches = &context.caches;
    match object {
        SharedObject::HeadlessService(desired) | SharedObject::ClientService(desired) => {
            is_right(context, &caches.services, key, desired)
        }
        SharedObject::ConfigMap(desired) => is_right(context, &caches.configs, key, desired),
        SharedObject::AclSecret(desired) | SharedObject::SystemSecret(desired) => {
            is_right(context, &caches.secrets, key, desired)
        }
        SharedObject::PodDisruptionBudget(desired) => is_right(context, &caches.budgets, key, desired),
        SharedObject::NoPodDisruptionBudget(name) => Owner::of(context, key).get(&caches.budgets, name).is_none(),
    }
}

//! Observes a cluster: reads objects from the caches, queries all members concurrently, and converts both into the
//! engine's types.

pub(crate) mod applied;
mod connect;
pub(crate) mod drift;
pub(crate) mod evidence;
mod members;
pub(crate) mod orphans;
pub(crate) mod pods;
pub(crate) mod preflight;
mod settings;
pub(crate) mod volumes;
pub(crate) mod workloads;

use std::collections::BTreeMap;

use candor_api::ValkeyCluster;
use candor_engine::kinds::valkey;
use candor_engine::memory::Memory;
use candor_engine::model::{Desired, MemberRef};
use candor_engine::observation::{About, Observation, Problem as SpecProblem, Server};
use k8s_openapi::api::core::v1::Pod;
use valkey_admin::Version;
use valkey_admin::client::Credentials;

use self::connect::{parts, query_servers, unknown_keys};
use self::members::{existing, pods_by_member};
use crate::act::apply::{is_right, message};
use crate::act::ownership::Owner;
use crate::credentials::certificates::Certificates;
use crate::credentials::passwords;
use crate::credentials::repair::Repair;
use crate::objects::{
    self, Inputs, MIGRATOR, MemberObjects, Problem, Remembered, Settings, SharedObject, SystemPasswords, labels, names,
    referenced_secrets,
};
use crate::observe::workloads::Live;
use crate::runtime::cache::{ClusterKey, ClusterKind};
use crate::runtime::context::Context;
use crate::runtime::limits::within;

pub use self::connect::endpoint_parts;

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
    /// The operator's own passwords; none if they are lost.
    pub passwords: Option<SystemPasswords>,
    /// Identifies and repairs members that reject the operator's user.
    pub repair: Repair,
}

/// Observes a cluster.
pub async fn observe(context: &Context, key: &ClusterKey, cluster: &ValkeyCluster) -> Observed {
    let (passwords, credentials) = passwords::observe(context, key, cluster).await;
    let observation = Observation {
        pods_unknown: pods_unknown(context, key).await,
        credentials,
        ..Observation::default()
    };
    match passwords {
        Some(passwords) => observe_with(context, key, cluster, &passwords, observation).await,
        // Nothing can be asked, and no object can be built.
        None => Observed::unseen(cluster, observation),
    }
}

async fn observe_with(
    context: &Context,
    key: &ClusterKey,
    cluster: &ValkeyCluster,
    passwords: &SystemPasswords,
    observation: Observation,
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
        passwords: Some(passwords.clone()),
        desired,
        memory,
        observation: Observation {
            deleting: cluster.metadata.deletion_timestamp.is_some(),
            ..observation
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
    let pods = pods_by_member(context, key);
    let parts = parts(passwords, observed.certificates.as_ref());
    let servers = query_servers(context, key, &pods, parts).await;
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
    observed.observe_members(context, key, (&live, &pods), servers);
    orphans::observe(context, key, (&observed.memory, &pods), &mut observed.observation).await;
    evidence::observe(context, key, &observed.memory, &mut observed.observation).await;
    observed.observe_logins(context, key).await;
    preflight::observe(context, key, cluster, &live, &mut observed);
    observed.observe_settings(context, key).await;
    observed.keep_accepted_users(context, key);
    observed.observe_certificates(context, key).await;
    observed.observe_objects(context, key, cluster, &live);
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

fn version_of(server: &Server) -> Option<Version> {
    match server {
        Server::Up(facts) => facts.version,
        _ => None,
    }
}

impl Observed {
    /// A cluster with members that were not observed.
    pub fn unseen(cluster: &ValkeyCluster, observation: Observation) -> Self {
        Self {
            desired: valkey::desired(cluster),
            memory: cluster.status.as_ref().map_or_else(Memory::default, valkey::memory),
            observation,
            shared: Vec::new(),
            members: BTreeMap::new(),
            settings: None,
            certificates: None,
            preflight: None,
            passwords: None,
            repair: Repair::default(),
            migrator: Credentials {
                user: String::new(),
                password: String::new(),
            },
        }
    }

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
        let problem = SpecProblem { about, message };
        if !self
            .observation
            .problems
            .iter()
            .any(|known| known.message == problem.message)
        {
            self.observation.problems.push(problem);
        }
    }

    /// Whether every object that can be built exists and matches. An object that cannot be built is a problem, not a
    /// missing object: running members stay unchanged.
    fn observe_objects(&mut self, context: &Context, key: &ClusterKey, cluster: &ValkeyCluster, live: &Live) {
        let built = !self.shared.is_empty();
        let right = self.shared.iter().all(|object| shared_is_right(context, key, object));
        let workloads = self.members.values().all(|member| live.is_kept(context, member));
        let claims = volumes::claims(context, key);
        let owned = claims
            .values()
            .all(|claim| volumes::other_owners(claim, cluster).is_none());
        self.observation.objects_ready = (right && workloads && owned) || !built;
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

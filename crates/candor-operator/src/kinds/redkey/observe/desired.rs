//! The desired objects, built from the spec, and whether the live ones match them.

use candor_api::RedkeyCluster;
use candor_api::redkey::status::ClusterStatus;
use candor_engine::kinds::redkey::report::Ignored;
use candor_engine::observation::{About, Credentials, Problem};
use k8s_openapi::api::apps::v1::StatefulSet;

use super::super::config::Merged;
use super::super::objects::{self, Inputs, Note, Objects, RobinCredentials, names};
use super::super::storage;
use super::Observed;
use crate::act::apply::is_right;
use crate::act::ownership::Owner;
use crate::objects::labels::REDKEY_PREFLIGHT_OF;
use crate::objects::preflight_pod;
use crate::observe::preflight;
use crate::runtime::cache::ClusterKey;
use crate::runtime::context::Context;

impl Observed {
    /// Builds the desired objects, or records why they cannot be built.
    pub(super) fn build(
        &mut self,
        context: &Context,
        key: &ClusterKey,
        cluster: &RedkeyCluster,
        live: Option<&StatefulSet>,
        config: &Merged,
    ) {
        let kept = context.caches.secrets.get(key, &names::robin(&key.name));
        let kept = kept.as_deref().and_then(RobinCredentials::from_secret);
        let Some(credentials) = kept else {
            self.base.credentials = Credentials::Missing;
            return;
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
                self.observe_preflight(context, key, cluster, live, &objects);
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
    fn observe_preflight(
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
pub(in super::super) fn preflight_name(cluster: &str) -> String {
    format!("{cluster}-preflight")
}

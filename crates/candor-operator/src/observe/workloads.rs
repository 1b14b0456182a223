//! The live workloads of members, of all kinds.

use std::collections::BTreeMap;
use std::sync::Arc;

use candor_engine::model::MemberRef;
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use kube::ResourceExt;

use crate::act::apply::Object;
use crate::act::ownership::Owner;
use crate::objects::{MemberObjects, WorkloadObject, labels, names};
use crate::runtime::cache::ClusterKey;
use crate::runtime::context::Context;

/// The live workloads by name. They are read once, because each read unpacks them.
pub struct Live {
    deployments: BTreeMap<String, Arc<Deployment>>,
    stateful_sets: BTreeMap<String, Arc<StatefulSet>>,
}

/// The parts of a workload that the plan needs.
pub struct LiveWorkload {
    /// The hash of the template that it was built from.
    pub template: String,
    /// It is being deleted.
    pub leaving: bool,
}

impl Live {
    /// Reads the workloads that belong to a cluster and have the name of a member's workload.
    pub fn read(context: &Context, key: &ClusterKey) -> Self {
        let by_name = |name: String, labels: &BTreeMap<String, String>| {
            let at = labels::member_of(labels)?;
            (name == names::workload(&key.name, at)).then_some(name)
        };
        let owner = Owner::of(context, key);
        let deployments = owner.list(&context.caches.deployments).into_iter();
        let stateful_sets = owner.list(&context.caches.stateful_sets).into_iter();
        Self {
            deployments: deployments
                .filter_map(|one| Some((by_name(one.name_any(), one.labels())?, one)))
                .collect(),
            stateful_sets: stateful_sets
                .filter_map(|one| Some((by_name(one.name_any(), one.labels())?, one)))
                .collect(),
        }
    }

    /// The pod template of a workload.
    pub fn template(&self, name: &str) -> Option<&PodTemplateSpec> {
        let of_set = || Some(&self.stateful_sets.get(name)?.spec.as_ref()?.template);
        let of_deployment = || Some(&self.deployments.get(name)?.spec.as_ref()?.template);
        of_deployment().or_else(of_set)
    }

    /// Whether a workload needs no repair. A workload with the current template that was edited elsewhere is repaired
    /// without a rolling update.
    pub fn is_kept(&self, context: &Context, member: &MemberObjects) -> bool {
        fn kept<K: Object>(context: &Context, hash: &str, desired: &K, live: Option<&Arc<K>>) -> bool {
            live.is_none_or(|live| {
                annotation(&**live) != Some(hash)
                    || live.meta().deletion_timestamp.is_some()
                    || context.shapes.fits(desired, &**live)
            })
        }
        let hash = member.workload.template_hash();
        match &member.workload {
            WorkloadObject::Deployment(desired) => {
                kept(context, hash, desired, self.deployments.get(&desired.name_any()))
            }
            WorkloadObject::StatefulSet(desired) => {
                kept(context, hash, desired, self.stateful_sets.get(&desired.name_any()))
            }
        }
    }

    /// The workloads by member.
    pub fn by_member(&self) -> BTreeMap<MemberRef, LiveWorkload> {
        fn live(object: &impl ResourceExt) -> Option<(MemberRef, LiveWorkload)> {
            let template = annotation(object).unwrap_or_default().to_owned();
            let leaving = object.meta().deletion_timestamp.is_some();
            Some((labels::member_of(object.labels())?, LiveWorkload { template, leaving }))
        }
        let deployments = self.deployments.values().filter_map(|object| live(&**object));
        let stateful_sets = self.stateful_sets.values().filter_map(|object| live(&**object));
        deployments.chain(stateful_sets).collect()
    }
}

fn annotation(object: &impl ResourceExt) -> Option<&str> {
    object.annotations().get(labels::TEMPLATE_HASH).map(String::as_str)
}

//! The objects of one member: its workload, its volume and its `ValkeyNode`.

use std::collections::BTreeMap;

use candor_api::valkey::spec::{Persistence, ReclaimPolicy, WorkloadType};
use candor_api::{ValkeyCluster, ValkeyNode, ValkeyNodeSpec};
use candor_engine::model::MemberRef;
use k8s_openapi::api::apps::v1::{
    Deployment, DeploymentSpec, DeploymentStrategy, StatefulSet, StatefulSetSpec, StatefulSetUpdateStrategy,
};
use k8s_openapi::api::core::v1::{
    PersistentVolumeClaim, PersistentVolumeClaimSpec, PodTemplateSpec, VolumeResourceRequirements,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;

use super::labels::{self, TEMPLATE_HASH};
use super::pod::TemplateVersion;
use super::{Inputs, Problem, names, pod};

/// A member's workload.
// Only one value exists at a time, so boxing the large variant has no benefit.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug, PartialEq)]
pub enum WorkloadObject {
    /// For a member without a volume.
    Deployment(Deployment),
    /// For a member with a volume, or if the spec asks for it.
    StatefulSet(StatefulSet),
}

impl WorkloadObject {
    /// The hash of the pod template. A live workload is current if and only if its hash equals this one.
    pub fn template_hash(&self) -> &str {
        let metadata = match self {
            Self::Deployment(deployment) => &deployment.metadata,
            Self::StatefulSet(set) => &set.metadata,
        };
        let annotations = metadata.annotations.as_ref();
        annotations
            .and_then(|all| all.get(TEMPLATE_HASH))
            .map_or("", String::as_str)
    }
}

impl WorkloadObject {
    /// The template of its pod.
    pub fn template(&self) -> Option<&PodTemplateSpec> {
        match self {
            Self::Deployment(deployment) => Some(&deployment.spec.as_ref()?.template),
            Self::StatefulSet(set) => Some(&set.spec.as_ref()?.template),
        }
    }
}

/// All objects of one member.
#[derive(Clone, Debug, PartialEq)]
pub struct MemberObjects {
    /// Its workload.
    pub workload: WorkloadObject,
    /// Its volume claim, if persistence is enabled. It is never deleted together with the workload.
    pub claim: Option<PersistentVolumeClaim>,
}

/// The workload kind of a cluster's members.
pub fn workload_type(cluster: &ValkeyCluster) -> WorkloadType {
    let derived = match cluster.spec.persistence {
        Some(_) => WorkloadType::StatefulSet,
        None => WorkloadType::Deployment,
    };
    cluster.spec.workload_type.unwrap_or(derived)
}

/// The objects of one member.
pub fn member(inputs: &Inputs<'_>, member: MemberRef) -> Result<MemberObjects, Problem> {
    member_with(inputs, member, TemplateVersion::default())
}

/// The objects of one member as another operator version builds them.
pub(super) fn member_with(
    inputs: &Inputs<'_>,
    member: MemberRef,
    version: TemplateVersion,
) -> Result<MemberObjects, Problem> {
    let cluster = inputs.cluster;
    let template = pod::template(inputs, member, version)?;
    let metadata = workload_meta(cluster, member, &template);
    let selector = labels::member_selector(cluster, member);
    let workload = match workload_type(cluster) {
        WorkloadType::Deployment => WorkloadObject::Deployment(Deployment {
            metadata,
            spec: Some(DeploymentSpec {
                replicas: Some(1),
                revision_history_limit: Some(1),
                selector,
                strategy: Some(DeploymentStrategy {
                    type_: Some("Recreate".to_owned()),
                    rolling_update: None,
                }),
                template,
                ..DeploymentSpec::default()
            }),
            status: None,
        }),
        WorkloadType::StatefulSet => WorkloadObject::StatefulSet(StatefulSet {
            metadata,
            spec: Some(StatefulSetSpec {
                replicas: Some(1),
                revision_history_limit: Some(1),
                selector,
                service_name: Some(names::shared(&cluster.name_any())),
                // A pod that never became ready must not block its own replacement.
                pod_management_policy: Some("Parallel".to_owned()),
                update_strategy: Some(StatefulSetUpdateStrategy {
                    type_: Some("RollingUpdate".to_owned()),
                    rolling_update: None,
                }),
                template,
                ..StatefulSetSpec::default()
            }),
            status: None,
        }),
    };
    let claim = cluster.spec.persistence.as_ref();
    Ok(MemberObjects {
        workload,
        claim: claim.map(|persistence| volume_claim(cluster, member, persistence)),
    })
}

fn workload_meta(cluster: &ValkeyCluster, member: MemberRef, template: &PodTemplateSpec) -> ObjectMeta {
    let name = names::workload(&cluster.name_any(), member);
    let mut metadata = labels::meta(cluster, name, labels::of_member(cluster, member));
    let hash = template
        .metadata
        .as_ref()
        .and_then(|metadata| metadata.annotations.as_ref()?.get(TEMPLATE_HASH));
    let hash = hash.map(|hash| (TEMPLATE_HASH.to_owned(), hash.clone()));
    metadata.annotations.get_or_insert_with(BTreeMap::new).extend(hash);
    metadata
}

fn volume_claim(cluster: &ValkeyCluster, member: MemberRef, persistence: &Persistence) -> PersistentVolumeClaim {
    let name = names::claim(&cluster.name_any(), member);
    let mut metadata = labels::meta(cluster, name, labels::of_member(cluster, member));
    // A retained claim must not be garbage collected with its owner.
    if persistence.reclaim_policy.unwrap_or_default() == ReclaimPolicy::Retain {
        metadata.owner_references = None;
    }
    PersistentVolumeClaim {
        metadata,
        spec: Some(PersistentVolumeClaimSpec {
            access_modes: Some(vec!["ReadWriteOnce".to_owned()]),
            resources: Some(VolumeResourceRequirements {
                requests: Some(BTreeMap::from([("storage".to_owned(), persistence.size.clone())])),
                limits: None,
            }),
            storage_class_name: persistence.storage_class_name.clone(),
            ..PersistentVolumeClaimSpec::default()
        }),
        status: None,
    }
}

/// A member's `ValkeyNode`.
pub fn node(cluster: &ValkeyCluster, member: MemberRef) -> ValkeyNode {
    let name = cluster.name_any();
    let number = |count: u32| i32::try_from(count).unwrap_or(i32::MAX);
    ValkeyNode {
        metadata: labels::meta(cluster, names::node(&name, member), labels::of_member(cluster, member)),
        spec: ValkeyNodeSpec {
            cluster: name,
            shard: number(member.shard.0),
            node: number(member.node),
        },
        status: None,
    }
}

//! Retains the current pod template when only minor parts changed. A new operator version has a new exporter image and
//! new probes, and users add labels or annotations to a cluster. None of these changes alone restarts a member. Its
//! pod retains the exporter, probes, labels and annotations that it was created with. It receives the new ones when it
//! is restarted for another reason, or when a user requests a restart.

use std::collections::BTreeMap;

use candor_api::ValkeyCluster;
use candor_engine::model::MemberRef;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use kube::ResourceExt;

use super::labels::{self, TEMPLATE_HASH};
use super::pod::TemplateVersion;
use super::workload::member_with;
use super::{Inputs, METRICS, MemberObjects, Problem, WorkloadObject, member};

/// The objects of a member, compared with the live template of its workload, if the workload exists.
pub fn member_beside(
    inputs: &Inputs<'_>,
    at: MemberRef,
    live: Option<&PodTemplateSpec>,
) -> Result<MemberObjects, Problem> {
    let desired = member(inputs, at)?;
    let Some(live) = live.and_then(Running::of) else {
        return Ok(desired);
    };
    if live.hash == desired.workload.template_hash() {
        return Ok(desired);
    }
    let cluster = live.cluster_then(inputs.cluster);
    let as_it_is = Inputs {
        cluster: &cluster,
        exporter_image: live.exporter_image,
        ..*inputs
    };
    for version in [TemplateVersion::Current, TemplateVersion::Release0_1_0] {
        let as_it_is = member_with(&as_it_is, at, version)?.workload;
        if as_it_is.template_hash() == live.hash {
            return Ok(with_template_of(desired, as_it_is));
        }
    }
    Ok(desired)
}

/// The parts of a live template that do not come from the spec.
struct Running<'a> {
    exporter_image: &'a str,
    hash: &'a str,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
}

impl<'a> Running<'a> {
    fn of(template: &'a PodTemplateSpec) -> Option<Self> {
        let metadata = template.metadata.as_ref()?;
        let annotations = metadata.annotations.as_ref()?;
        let containers = &template.spec.as_ref()?.containers;
        let exporter = containers.iter().find(|container| container.name == METRICS);
        Some(Self {
            exporter_image: exporter.and_then(|one| one.image.as_deref()).unwrap_or_default(),
            hash: annotations.get(TEMPLATE_HASH)?,
            labels: labels::inherited(metadata.labels.as_ref()?),
            annotations: labels::inherited(annotations),
        })
    }

    /// The cluster with the labels and annotations that it had when this template was created.
    fn cluster_then(&self, now: &ValkeyCluster) -> ValkeyCluster {
        let then = |message: &BTreeMap<String, String>, was: &BTreeMap<String, String>| {
            let fresh = labels::inherited(message);
            let kept = message.iter().filter(|(key, _)| !fresh.contains_key(*key));
            let kept = kept.map(|(key, value)| (key.clone(), value.clone()));
            Some(kept.chain(was.clone()).collect())
        };
        let mut cluster = now.clone();
        cluster.metadata.labels = then(now.labels(), &self.labels);
        cluster.metadata.annotations = then(now.annotations(), &self.annotations);
        cluster
    }
}

/// Applies the new labels to the workload but retains its pod template.
fn with_template_of(mut desired: MemberObjects, as_it_is: WorkloadObject) -> MemberObjects {
    let hash = as_it_is.template_hash().to_owned();
    let metadata = match (&mut desired.workload, as_it_is) {
        (WorkloadObject::Deployment(desired), WorkloadObject::Deployment(was)) => {
            if let (Some(spec), Some(was)) = (&mut desired.spec, was.spec) {
                spec.template = was.template;
            }
            &mut desired.metadata
        }
        (WorkloadObject::StatefulSet(desired), WorkloadObject::StatefulSet(was)) => {
            if let (Some(spec), Some(was)) = (&mut desired.spec, was.spec) {
                spec.template = was.template;
            }
            &mut desired.metadata
        }
        // The workload kind depends only on the spec, and the spec is the same.
        _ => return desired,
    };
    let annotations = metadata.annotations.get_or_insert_default();
    annotations.insert(TEMPLATE_HASH.to_owned(), hash);
    desired
}

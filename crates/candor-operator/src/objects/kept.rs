//! A new operator brings a new exporter, and that alone restarts nobody: a member whose pod differs in nothing else keeps
//! the exporter it has, until it is rolled for another reason or a person asks for a restart.

use candor_engine::model::MemberRef;
use k8s_openapi::api::core::v1::PodTemplateSpec;

use super::labels::TEMPLATE_HASH;
use super::{Inputs, METRICS, MemberObjects, Problem, member};

/// The objects of a member beside the template that its workload has now, if it is there.
pub fn member_beside(
    inputs: &Inputs<'_>,
    at: MemberRef,
    live: Option<&PodTemplateSpec>,
) -> Result<MemberObjects, Problem> {
    if let Some((exporter_image, hash)) = live.and_then(running)
        && exporter_image != inputs.exporter_image
    {
        let as_it_is = member(
            &Inputs {
                exporter_image,
                ..*inputs
            },
            at,
        )?;
        if as_it_is.workload.template_hash() == hash {
            return Ok(as_it_is);
        }
    }
    member(inputs, at)
}

/// The exporter's image and the hash of a template.
fn running(template: &PodTemplateSpec) -> Option<(&str, &str)> {
    let hash = template.metadata.as_ref()?.annotations.as_ref()?.get(TEMPLATE_HASH)?;
    let containers = &template.spec.as_ref()?.containers;
    let exporter = containers.iter().find(|container| container.name == METRICS)?;
    Some((exporter.image.as_deref()?, hash))
}

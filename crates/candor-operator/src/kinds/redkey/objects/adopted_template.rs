//! What is kept of a `StatefulSet` that the existing operator made. Its selector, `serviceName` and claim templates
//! cannot be changed, and its pod template stays until the next upgrade: a new one would restart servers.

use std::collections::BTreeMap;

use candor_api::RedkeyClusterSpec;
use candor_api::redkey::REDIS;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Pod, PodSpec, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::ResourceExt;
use serde_json::{Value, json};

use super::REVISION;
use crate::objects::quantity::thousandths;

/// Annotation of a `StatefulSet` that was taken over: the [`revision`](super::revision) of the spec that its pods
/// without a revision stand for.
pub const ADOPTED: &str = "redkey.inditex.dev/adopted";

/// The value of [`ADOPTED`] if the pod template was not what the spec asked for: the next slow upgrade replaces it.
const OUTDATED: &str = "outdated";

/// The parts of a `StatefulSet` that are kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    /// The labels that select its pods.
    pub selector: BTreeMap<String, String>,
    /// What its pods without a revision stand for.
    pub adopted: String,
    /// Its pod template, as long as it is not the operator's own and the spec asks for nothing else.
    pub template: Option<PodTemplateSpec>,
    /// Whether servers may start from a template of the existing operator, which reads the password from the
    /// configuration file.
    pub reads_password_from_config: bool,
    fixed: Value,
}

impl Kept {
    /// What is kept of a live `StatefulSet`; none if the operator created it. `revision` is the desired one, `pods` are
    /// its pods.
    pub fn of<'a>(
        live: &StatefulSet,
        spec: &RedkeyClusterSpec,
        revision: &str,
        mut pods: impl Iterator<Item = &'a Pod>,
    ) -> Option<Self> {
        let adopted = adopted(live, spec, revision)?;
        let set = live.spec.as_ref()?;
        let theirs = is_theirs(live);
        let stands_for = live.annotations().get(REVISION).unwrap_or(&adopted);
        let old = theirs || pods.any(|pod| !pod.annotations().contains_key(REVISION));
        Some(Self {
            selector: set.selector.match_labels.clone().unwrap_or_default(),
            template: (theirs && stands_for == revision).then(|| set.template.clone()),
            reads_password_from_config: old,
            fixed: json!({
                "selector": set.selector,
                "serviceName": set.service_name,
                "podManagementPolicy": set.pod_management_policy,
                "volumeClaimTemplates": set.volume_claim_templates,
            }),
            adopted,
        })
    }

    /// Puts the kept parts into the desired `StatefulSet`.
    pub(super) fn keep_in(&self, set: &mut Value) {
        set["metadata"]["annotations"][ADOPTED] = json!(self.adopted);
        let fixed = self.fixed.as_object().into_iter().flatten();
        for (field, value) in fixed {
            set["spec"][field] = value.clone();
        }
        match &self.template {
            Some(template) => set["spec"]["template"] = json!(template),
            None => {
                for (label, value) in &self.selector {
                    set["spec"]["template"]["metadata"]["labels"][label] = json!(value);
                }
            }
        }
    }
}

/// Whether the pod template of a `StatefulSet` is the one of the existing operator.
pub fn is_theirs(live: &StatefulSet) -> bool {
    let template = live.spec.as_ref().and_then(|spec| spec.template.metadata.as_ref());
    let annotations = template.and_then(|metadata| metadata.annotations.as_ref());
    !annotations.is_some_and(|all| all.contains_key(REVISION))
}

/// What the pods of a live `StatefulSet` without a revision stand for; none if the operator created it. Before it is
/// taken over, this is decided here: the revision of the spec, if the template has its image and resources. Differences
/// never count in a cluster with `purgeKeysOnRebalance`: an upgrade would delete its keys.
pub fn adopted(live: &StatefulSet, spec: &RedkeyClusterSpec, revision: &str) -> Option<String> {
    if let Some(adopted) = live.annotations().get(ADOPTED) {
        return Some(adopted.clone());
    }
    if live.annotations().contains_key(REVISION) {
        return None;
    }
    let template = live.spec.as_ref().and_then(|set| set.template.spec.as_ref());
    let same = spec.purge_keys_on_rebalance || template.is_some_and(|pod| has_spec(pod, spec));
    Some(if same { revision } else { OUTDATED }.to_owned())
}

/// Whether a pod has the template that the spec asks for. A pod without a revision is one of the existing operator. In
/// the middle of its upgrade some pods have the new image and some do not.
pub fn is_current(pod: &Pod, adopted: Option<&str>, spec: &RedkeyClusterSpec, revision: &str) -> bool {
    if let Some(own) = pod.annotations().get(REVISION) {
        return own == revision;
    }
    let same = || pod.spec.as_ref().is_some_and(|pod| has_spec(pod, spec));
    adopted == Some(revision) && (spec.purge_keys_on_rebalance || same())
}

/// Whether a pod of the existing operator has the image and the resources that the spec names.
fn has_spec(pod: &PodSpec, spec: &RedkeyClusterSpec) -> bool {
    let Some(server) = pod.containers.iter().find(|one| one.name == REDIS) else {
        return false;
    };
    let image = spec.image.as_ref().filter(|image| !image.is_empty());
    let same_image = image.is_none_or(|image| server.image.as_ref() == Some(image));
    let given = server.resources.clone().unwrap_or_default();
    let same_resources = spec.resources.as_ref().is_none_or(|desired| {
        has_amounts(&given.requests.unwrap_or_default(), &desired.requests)
            && has_amounts(&given.limits.unwrap_or_default(), &desired.limits)
    });
    same_image && same_resources
}

fn has_amounts(given: &BTreeMap<String, Quantity>, desired: &BTreeMap<String, Quantity>) -> bool {
    desired.iter().all(|(name, amount)| {
        let given = given.get(name).map(|given| thousandths(&given.0));
        given == Some(thousandths(&amount.0))
    })
}

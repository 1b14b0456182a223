//! The preflight pod of a rolling update. It has the images, pull secrets, security contexts and scheduling
//! constraints of the new member pods, and nothing else of them. It requests the resources that a member needs beyond
//! its current requests, mounts no volumes, has no pod affinity and ends immediately. If an image lacks the command
//! that the preflight pod runs, the container fails to start, but the image was pulled nevertheless.

use std::collections::BTreeMap;

use candor_api::ValkeyCluster;
use k8s_openapi::api::core::v1::{Affinity, Container, Pod, PodSpec, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use serde_json::{Value, json};

use super::labels::{self, PREFLIGHT_OF, TRIED};
use super::requests::{more, request};
use super::{hash, names};

/// The parts of a template that a preflight pod can check, except its resources. Fields that the API server defaults
/// are not included, so that a stored template equals the template that was applied.
fn tried(template: &PodTemplateSpec) -> Value {
    let spec = spec(template);
    let containers = spec.containers.iter();
    let containers = containers.map(|one| json!({"name": one.name, "image": one.image, "as": one.security_context}));
    json!({
        "containers": containers.collect::<Vec<_>>(),
        "pullSecrets": spec.image_pull_secrets,
        "as": spec.security_context,
        "nodes": spec.node_selector,
        "tolerations": spec.tolerations,
        "affinity": spec.affinity,
        "priority": spec.priority_class_name,
    })
}

/// The preflight pod for a new template that replaces the template `now`. None if no part that a preflight pod can
/// check has changed and the new template requests no more resources.
pub fn preflight(cluster: &ValkeyCluster, template: &PodTemplateSpec, now: &PodTemplateSpec) -> Option<Pod> {
    let name = cluster.name_any();
    let marks = [
        (PREFLIGHT_OF, name.as_str()),
        ("app.kubernetes.io/managed-by", labels::MANAGER),
    ];
    let marks = marks.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let metadata = labels::meta(cluster, names::preflight(&name), marks.into());
    preflight_pod(metadata, template, now)
}

/// The same with the pod's metadata.
pub fn preflight_pod(mut metadata: ObjectMeta, template: &PodTemplateSpec, now: &PodTemplateSpec) -> Option<Pod> {
    let desired = template.spec.as_ref()?;
    let more = more(desired, now.spec.as_ref()?);
    let tried = json!({"what": tried(template), "more": format!("{more:?}")});
    if more.is_empty() && tried["what"] == self::tried(now) {
        return None;
    }
    let annotations = metadata.annotations.get_or_insert_default();
    annotations.insert(TRIED.to_owned(), hash::fingerprint(&tried));
    let mut spec = spec(template);
    let nothing = BTreeMap::new();
    for (index, (container, of)) in spec.containers.iter_mut().zip(&desired.containers).enumerate() {
        // The first container requests everything: only the total of the pod matters.
        container.resources = Some(request(if index == 0 { &more } else { &nothing }, of));
    }
    Some(Pod {
        metadata,
        spec: Some(spec),
        status: None,
    })
}

fn spec(template: &PodTemplateSpec) -> PodSpec {
    let of = template.spec.clone().unwrap_or_default();
    let container = |one: Container| Container {
        name: one.name,
        image: one.image,
        image_pull_policy: one.image_pull_policy,
        security_context: one.security_context,
        command: Some(vec!["true".to_owned()]),
        ..Container::default()
    };
    let nodes = of.affinity.and_then(|affinity| affinity.node_affinity);
    PodSpec {
        containers: of.containers.into_iter().map(container).collect(),
        image_pull_secrets: of.image_pull_secrets,
        security_context: of.security_context,
        node_selector: of.node_selector,
        tolerations: of.tolerations,
        affinity: nodes.map(|nodes| Affinity {
            node_affinity: Some(nodes),
            ..Affinity::default()
        }),
        priority_class_name: of.priority_class_name,
        restart_policy: Some("Never".to_owned()),
        // The pod has no work to finish. Its name is free again as soon as it is deleted.
        termination_grace_period_seconds: Some(0),
        automount_service_account_token: Some(false),
        enable_service_links: Some(false),
        ..PodSpec::default()
    }
}

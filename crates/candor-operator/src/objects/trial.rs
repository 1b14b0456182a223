//! The pod that is tried before members are restarted into the like of it: their images, pulled by the same means and
//! started under the same rules on the same machines, and nothing else of theirs. It asks for the room that a member
//! would need beyond what it has, mounts nothing, keeps away from nobody and ends at once. An image without the command
//! it runs fails to start, and was pulled all the same.

use std::collections::BTreeMap;

use candor_api::ValkeyCluster;
use k8s_openapi::api::core::v1::{Affinity, Container, Pod, PodSpec, PodTemplateSpec};
use kube::ResourceExt;
use serde_json::{Value, json};

use super::labels::{self, TRIAL_OF, TRIED};
use super::room::{more, request};
use super::{hash, names};

/// What of a template a trial can tell anything of, but for its room. What the API server fills in by itself is no part of
/// it, so that a stored template and the one it was made from are equal here.
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

/// The pod that tries a template, which takes the place of another; none where that has nothing that a trial could tell
/// anything of, and asks for no more room.
pub fn trial(cluster: &ValkeyCluster, template: &PodTemplateSpec, now: &PodTemplateSpec) -> Option<Pod> {
    let wanted = template.spec.as_ref()?;
    let more = more(wanted, now.spec.as_ref()?);
    let tried = json!({"what": tried(template), "more": format!("{more:?}")});
    if more.is_empty() && tried["what"] == self::tried(now) {
        return None;
    }
    let name = cluster.name_any();
    let marks = [
        (TRIAL_OF, name.as_str()),
        ("app.kubernetes.io/managed-by", labels::MANAGER),
    ];
    let marks = marks.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let mut metadata = labels::meta(cluster, names::trial(&name), marks.into());
    let annotations = metadata.annotations.get_or_insert_default();
    annotations.insert(TRIED.to_owned(), hash::fingerprint(&tried));
    let mut spec = spec(template);
    let nothing = BTreeMap::new();
    for (index, (container, of)) in spec.containers.iter_mut().zip(&wanted.containers).enumerate() {
        // One of them asks for all: what counts is the pod.
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
        // There is nothing to wait for: its name is free again as soon as it is told to go.
        termination_grace_period_seconds: Some(0),
        automount_service_account_token: Some(false),
        enable_service_links: Some(false),
        ..PodSpec::default()
    }
}

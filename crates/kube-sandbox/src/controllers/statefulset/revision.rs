//! The history of a `StatefulSet`'s template, kept in `ControllerRevisions`. Pure.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use kube::ResourceExt;
use serde_json::{Value, json};

use super::identity;
use crate::controllers::hash::template_hash;
use crate::controllers::owners;

/// The label by which equal revisions are found.
const HASH_LABEL: &str = "controller.kubernetes.io/hash";

/// How the present template stands in the history.
#[derive(Debug, PartialEq)]
pub enum Update {
    /// It is the latest revision.
    Latest(Arc<ControllerRevision>),
    /// It is an earlier one, which becomes the latest (a rollback): the revision with its new number.
    Again(Box<ControllerRevision>),
    /// It was never there.
    New(Box<ControllerRevision>),
}

/// What a revision stores: the template, in the form of the patch that restores it.
fn data(set: &StatefulSet) -> Value {
    let template = set.spec.as_ref().map(|spec| &spec.template);
    let mut template = serde_json::to_value(template).unwrap_or_else(|_| json!({}));
    if let Some(template) = template.as_object_mut() {
        template.insert("$patch".into(), json!("replace"));
    }
    json!({"spec": {"template": template}})
}

/// The template a revision stores.
pub fn template(revision: &ControllerRevision) -> Option<PodTemplateSpec> {
    let data = &revision.data.as_ref()?.0;
    let mut template = data.pointer("/spec/template")?.clone();
    template.as_object_mut()?.remove("$patch");
    serde_json::from_value(template).ok()
}

/// Finds the place of the present template. `revisions` come in any order.
pub fn place(set: &StatefulSet, revisions: &[Arc<ControllerRevision>]) -> Update {
    let mut sorted = revisions.to_vec();
    sorted.sort_by_key(|revision| (revision.revision, revision.name_any()));
    let next = sorted.last().map_or(1, |latest| latest.revision + 1);
    let present = set.spec.as_ref().map(|spec| &spec.template);
    // Compared as types, so that a field spelled out as its zero value makes no new revision.
    let equal = |revision: &ControllerRevision| template(revision).as_ref() == present;
    if let Some(latest) = sorted.last().filter(|latest| equal(latest)) {
        return Update::Latest(latest.clone());
    }
    if let Some(earlier) = sorted.iter().rev().find(|revision| equal(revision)) {
        let mut again = (**earlier).clone();
        again.revision = next;
        return Update::Again(Box::new(again));
    }
    Update::New(Box::new(fresh(set, next)))
}

fn fresh(set: &StatefulSet, number: i64) -> ControllerRevision {
    let data = data(set);
    let collisions = set.status.as_ref().and_then(|status| status.collision_count);
    let hash = template_hash(&data, collisions);
    let template = set
        .spec
        .as_ref()
        .and_then(|spec| spec.template.metadata.clone())
        .unwrap_or_default();
    let mut labels = template.labels.unwrap_or_default();
    labels.insert(HASH_LABEL.into(), hash.clone());
    ControllerRevision {
        metadata: ObjectMeta {
            name: Some(format!("{}-{hash}", set.name_any())),
            namespace: set.namespace(),
            labels: Some(labels),
            annotations: set.metadata.annotations.clone(),
            owner_references: Some(vec![owners::controller_reference(set)]),
            ..ObjectMeta::default()
        },
        data: Some(RawExtension(data)),
        revision: number,
    }
}

/// Revisions that nothing uses, beyond the limit, oldest first.
pub fn surplus(
    set: &StatefulSet,
    pods: &[Arc<Pod>],
    revisions: &[Arc<ControllerRevision>],
    live: &[&str],
) -> Vec<Arc<ControllerRevision>> {
    let limit = set
        .spec
        .as_ref()
        .and_then(|spec| spec.revision_history_limit)
        .unwrap_or(10);
    let Ok(limit) = usize::try_from(limit) else {
        return Vec::new();
    };
    let mut unused: Vec<_> = revisions
        .iter()
        .filter(|revision| {
            let name = revision.name_any();
            !live.contains(&name.as_str()) && !pods.iter().any(|pod| identity::revision(pod) == name)
        })
        .cloned()
        .collect();
    unused.sort_by_key(|revision| revision.revision);
    unused.truncate(unused.len().saturating_sub(limit));
    unused
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(image: &str) -> StatefulSet {
        serde_json::from_value(json!({"metadata": {"name": "web", "namespace": "n", "uid": "s"},
            "spec": {"selector": {}, "serviceName": "", "revisionHistoryLimit": 1,
                "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": image}]}}}}))
        .unwrap()
    }

    fn new(set: &StatefulSet, revisions: &[Arc<ControllerRevision>]) -> Arc<ControllerRevision> {
        match place(set, revisions) {
            Update::New(revision) => Arc::new(*revision),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_template_gets_a_revision_once_and_a_rollback_renumbers_it() {
        let first = new(&set("a:1"), &[]);
        assert_eq!(first.revision, 1);
        assert!(first.name_any().starts_with("web-"));
        assert_eq!(
            place(&set("a:1"), std::slice::from_ref(&first)),
            Update::Latest(first.clone())
        );
        let second = new(&set("a:2"), std::slice::from_ref(&first));
        assert_eq!(second.revision, 2);
        match place(&set("a:1"), &[second, first.clone()]) {
            Update::Again(revision) => {
                assert_eq!(revision.name_any(), first.name_any());
                assert_eq!(revision.revision, 3);
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_revision_gives_its_template_back() {
        let revision = new(&set("a:7"), &[]);
        assert_eq!(template(&revision), Some(set("a:7").spec.unwrap().template));
    }

    #[test]
    fn live_revisions_are_kept_whatever_the_limit() {
        let all: Vec<_> = (1..=4)
            .map(|number| {
                let mut revision = (*new(&set(&format!("a:{number}")), &[])).clone();
                revision.revision = number;
                Arc::new(revision)
            })
            .collect();
        let names: Vec<_> = all.iter().map(|revision| revision.name_any()).collect();
        let pod: Pod = serde_json::from_value(
            json!({"metadata": {"name": "web-0", "labels": {"controller-revision-hash": names[0]}}}),
        )
        .unwrap();
        let gone = surplus(&set("a:4"), &[Arc::new(pod)], &all, &[&names[3]]);
        assert_eq!(gone.iter().map(|revision| revision.revision).collect::<Vec<_>>(), [2]);
    }
}

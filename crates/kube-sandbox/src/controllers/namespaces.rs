//! Deletes the content of namespaces that are being deleted, then the namespaces.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, NamespaceCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, PostParams, PropagationPolicy};

use super::plane::Plane;
use super::runtime::{Controller, Error, ObjectKey, Served, Writer, now};

/// Held by every namespace until its content is gone.
const FINALIZER: &str = "kubernetes";

/// The controller of namespaces.
pub struct Namespaces {
    plane: Plane,
}

/// What is left: counts by `plural.group`, and by finalizer.
#[derive(Debug, Default, PartialEq)]
struct Left {
    resources: BTreeMap<String, usize>,
    finalizers: BTreeMap<String, usize>,
    failures: Vec<String>,
}

impl Left {
    fn count(&mut self, served: &Served, finalizers: &[String]) {
        let name = format!("{}.{}", served.resource.plural, served.resource.group);
        *self.resources.entry(name).or_default() += 1;
        for finalizer in finalizers {
            *self.finalizers.entry(finalizer.clone()).or_default() += 1;
        }
    }
}

/// The five conditions of a namespace that is being deleted, worded as the real controller's.
fn conditions(old: &[NamespaceCondition], left: &Left, now: &Time) -> Vec<NamespaceCondition> {
    let list = |counts: &BTreeMap<String, usize>, line: &dyn Fn(&String, &usize) -> String| {
        let lines: Vec<String> = counts.iter().map(|(name, count)| line(name, count)).collect();
        (!lines.is_empty()).then(|| lines.join(", "))
    };
    let resources = list(&left.resources, &|name, count| {
        format!("{name} has {count} resource instances")
    })
    .map(|list| format!("Some resources are remaining: {list}"));
    let finalizers = list(&left.finalizers, &|name, count| {
        format!("{name} in {count} resource instances")
    })
    .map(|list| format!("Some content in the namespace has finalizers remaining: {list}"));
    let mut failures = left.failures.clone();
    failures.sort();
    let failures = (!failures.is_empty()).then(|| {
        let (count, list) = (failures.len(), failures.join(", "));
        format!("Failed to delete all resource types, {count} remaining: {list}")
    });
    let all = [
        (
            "NamespaceDeletionDiscoveryFailure",
            None,
            "",
            "ResourcesDiscovered",
            "All resources successfully discovered",
        ),
        (
            "NamespaceDeletionGroupVersionParsingFailure",
            None,
            "",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        (
            "NamespaceDeletionContentFailure",
            failures,
            "ContentDeletionFailed",
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
        (
            "NamespaceContentRemaining",
            resources,
            "SomeResourcesRemain",
            "ContentRemoved",
            "All content successfully removed",
        ),
        (
            "NamespaceFinalizersRemaining",
            finalizers,
            "SomeFinalizersRemain",
            "ContentHasNoFinalizers",
            "All content-preserving finalizers finished",
        ),
    ];
    all.into_iter()
        .map(|(kind, trouble, bad, good, fine)| {
            let (status, reason, message) = match trouble {
                Some(message) => ("True", bad, message),
                None => ("False", good, fine.to_owned()),
            };
            let known = old.iter().find(|known| known.type_ == kind && known.status == status);
            NamespaceCondition {
                type_: kind.into(),
                status: status.into(),
                reason: Some(reason.into()),
                message: Some(message),
                last_transition_time: known
                    .map_or_else(|| Some(now.clone()), |known| known.last_transition_time.clone()),
            }
        })
        .collect()
}

impl Namespaces {
    /// A controller on the plane.
    pub fn new(plane: &Plane) -> Self {
        Self { plane: plane.clone() }
    }

    fn resources(&self) -> Vec<Arc<Served>> {
        let mut all = self.plane.resources.all();
        all.retain(|served| served.namespaced);
        // Pods are deleted first, so that the objects they need still exist while they terminate.
        all.sort_by_key(|served| (served.resource.plural != "pods", served.resource.plural.clone()));
        all
    }

    /// Deletes everything of one resource and counts what stays.
    async fn empty(&self, served: &Served, namespace: &str, left: &mut Left) -> Result<(), Error> {
        let api: Api<DynamicObject> = Api::namespaced_with(self.plane.client.clone(), namespace, &served.resource);
        if api
            .list_metadata(&ListParams::default().limit(1))
            .await?
            .items
            .is_empty()
        {
            return Ok(());
        }
        let params = DeleteParams {
            propagation_policy: Some(PropagationPolicy::Background),
            ..DeleteParams::default()
        };
        api.delete_collection(&params, &ListParams::default()).await?;
        for object in api.list_metadata(&ListParams::default()).await?.items {
            left.count(served, object.finalizers());
        }
        Ok(())
    }

    async fn finish(&self, namespace: &Namespace) -> Result<(), Error> {
        let mut done = namespace.clone();
        let spec = done.spec.get_or_insert_default();
        if let Some(finalizers) = &mut spec.finalizers {
            finalizers.retain(|finalizer| finalizer != FINALIZER);
        }
        let api: Api<Namespace> = Api::all(self.plane.client.clone());
        match api
            .replace_subresource("finalize", &done.name_any(), &PostParams::default(), &done)
            .await
        {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Controller for Namespaces {
    const NAME: &'static str = "namespace";
    const WORKERS: usize = 4;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Option<Duration>, Error> {
        let Some(namespace) = self.plane.caches.namespaces.get(key) else {
            return Ok(None);
        };
        let finalizers = namespace
            .spec
            .as_ref()
            .and_then(|spec| spec.finalizers.clone())
            .unwrap_or_default();
        if namespace.metadata.deletion_timestamp.is_none() || !finalizers.iter().any(|name| name == FINALIZER) {
            return Ok(None);
        }
        let mut left = Left::default();
        for served in self.resources() {
            if let Err(error) = self.empty(&served, &key.name, &mut left).await {
                left.failures.push(error.message());
            }
            let pods_first = served.resource.plural == "pods" && !left.resources.is_empty();
            if pods_first {
                break;
            }
        }
        if left == Left::default() {
            self.finish(&namespace).await?;
            return Ok(None);
        }
        let mut updated = (*namespace).clone();
        let status = updated.status.get_or_insert_default();
        status.conditions = Some(conditions(
            status.conditions.as_deref().unwrap_or_default(),
            &left,
            &now(),
        ));
        if updated != *namespace {
            let api = Api::all(self.plane.client.clone());
            Writer::new(api, &self.plane.caches.namespaces)
                .replace_status(&updated)
                .await?;
        }
        if left.failures.is_empty() {
            // The deletion of every object in the namespace triggers a reconcile.
            Ok(None)
        } else {
            Err(Error::NotYet(left.failures.join(", ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn conditions_count_what_remains_and_keep_their_times() {
        let time = |text: &str| -> Time { serde_json::from_value(json!(text)).unwrap() };
        let left = Left {
            resources: BTreeMap::from([("pods.".into(), 2), ("widgets.example.com".into(), 1)]),
            finalizers: BTreeMap::from([("example.com/hold".into(), 1)]),
            failures: Vec::new(),
        };
        let first = conditions(&[], &left, &time("2026-01-01T00:00:00Z"));
        let message = |at: usize| first[at].message.clone().unwrap();
        assert_eq!(
            message(3),
            "Some resources are remaining: pods. has 2 resource instances, widgets.example.com has 1 resource instances"
        );
        assert_eq!(
            message(4),
            "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances"
        );
        assert_eq!(first[2].status, "False");
        let second = conditions(&first, &left, &time("2026-01-01T00:00:09Z"));
        assert_eq!(first, second);
        let third = conditions(&second, &Left::default(), &time("2026-01-01T00:00:10Z"));
        assert_eq!(third[3].message.as_deref(), Some("All content successfully removed"));
        assert_eq!(third[3].last_transition_time, Some(time("2026-01-01T00:00:10Z")));
    }
}

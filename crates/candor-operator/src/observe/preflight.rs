//! The preflight pod, which tests a new template before a rolling update: its result, its creation and its deletion.
//! Its state is stored in Kubernetes: the pod itself, with an annotation that identifies the tested template.

use candor_api::ValkeyCluster;
use candor_engine::observation::{Preflight, Trouble, Workload};
use candor_engine::outcome::{Change, Did, Failure, ObjectKind};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::api::{ListParams, PostParams};
use kube::{Api, ResourceExt};

use crate::act::apply::{delete, message};
use crate::act::ownership::Owner;
use crate::objects::labels::{PREFLIGHT_OF, REDKEY_PREFLIGHT_OF, TRIED};
use crate::objects::{self, names};
use crate::observe::Observed;
use crate::observe::pods::obstacle;
use crate::observe::workloads::Live;
use crate::runtime::cache::{ClusterKey, ClusterKind};
use crate::runtime::context::{Context, MANAGER};

/// Age after which a failed preflight pod is replaced. A pod that terminated before any container started (evicted,
/// rejected by its node) says nothing about the next one, but it must not be recreated in a tight loop.
const WORTH_ANOTHER: SignedDuration = SignedDuration::from_secs(10);

/// Determines whether a preflight pod is needed, and its result.
pub fn observe(context: &Context, key: &ClusterKey, cluster: &ValkeyCluster, live: &Live, observed: &mut Observed) {
    observed.preflight = desired(key, cluster, live, observed);
    let name = names::preflight(&key.name);
    (observed.observation.preflight, observed.observation.old_preflight) =
        result(context, key, &name, observed.preflight.as_ref());
}

/// The result of a desired preflight pod, and whether an old one is left.
pub fn result(context: &Context, key: &ClusterKey, name: &str, desired: Option<&Pod>) -> (Preflight, bool) {
    let pod = Owner::of(context, key).get(&context.caches.preflights, name);
    let what = desired.and_then(tried);
    let of_this = pod.as_deref().filter(|pod| what.is_some() && tried(pod) == what);
    let leaves = pod
        .as_ref()
        .is_some_and(|pod| pod.metadata.deletion_timestamp.is_some());
    let preflight = match (what, of_this) {
        (None, _) => Preflight::Needless,
        (Some(_), _) if leaves => Preflight::UnderWay,
        (Some(_), Some(pod)) => verdict(pod, Timestamp::now()),
        (Some(what), None) => Preflight::Missing {
            template: what.to_owned(),
        },
    };
    (preflight, pod.is_some() && of_this.is_none() && !leaves)
}

/// The desired preflight pod, if the template that members are to be updated to differs from the running one. All
/// members share their images and node constraints, so one pod represents all.
fn desired(key: &ClusterKey, cluster: &ValkeyCluster, live: &Live, observed: &Observed) -> Option<Pod> {
    let outdated = observed.members.iter().filter(|(at, _)| {
        let member = observed.observation.members.get(at);
        member.is_some_and(|member| member.workload == Workload::Outdated)
    });
    let mut templates = outdated.filter_map(|(at, objects)| {
        let now = live.template(&names::workload(&key.name, *at))?;
        Some((objects.workload.template()?, now))
    });
    templates.find_map(|(desired, now)| objects::preflight(cluster, desired, now))
}

fn tried(pod: &Pod) -> Option<&str> {
    pod.annotations().get(TRIED).map(String::as_str)
}

/// The result according to the scheduler and the kubelet. A container that terminated had started, even if it failed.
fn verdict(pod: &Pod, now: Timestamp) -> Preflight {
    let status = pod.status.as_ref();
    let statuses = status.and_then(|status| status.container_statuses.as_deref());
    let begun = |one: &ContainerStatus| {
        let state = one.state.as_ref();
        !one.image_id.is_empty() || state.is_some_and(|state| state.running.is_some() || state.terminated.is_some())
    };
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let mut statuses = containers.map(|one| statuses?.iter().find(|status| status.name == one.name));
    if statuses.all(|status| status.is_some_and(begun)) {
        return Preflight::Passed;
    }
    let over = status.is_some_and(|status| matches!(status.phase.as_deref(), Some("Failed" | "Succeeded")));
    let made = pod.metadata.creation_timestamp.as_ref();
    let old = made.is_some_and(|made| now.duration_since(made.0) > WORTH_ANOTHER);
    let mut rest = pod.clone();
    if let Some(statuses) = rest
        .status
        .as_mut()
        .and_then(|status| status.container_statuses.as_mut())
    {
        statuses.retain(|one| !begun(one));
    }
    match obstacle(&rest) {
        Some(trouble) => Preflight::Rejected {
            trouble,
            stale: over && old,
        },
        None if over => Preflight::Rejected {
            trouble: Trouble::NotStarting(format!("pod {}: it ended before it was started", pod.name_any())),
            stale: old,
        },
        None => Preflight::UnderWay,
    }
}

/// Creates the preflight pod. If the API server rejects it (a quota, a policy, RBAC permissions of an older
/// installation), that says nothing about members: the rolling update continues without a preflight pod.
pub async fn make(context: &Context, key: &ClusterKey, desired: Option<&Pod>) -> Result<Vec<Change>, Failure> {
    let Some(pod) = desired else {
        return Ok(Vec::new());
    };
    let api: Api<Pod> = Api::namespaced(context.client.clone(), &key.namespace);
    let params = PostParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PostParams::default()
    };
    let rejected = match api.create(&params, pod).await {
        Ok(made) => {
            context.caches.preflights.put(made);
            return Ok(Vec::new());
        }
        Err(kube::Error::Api(status)) if status.code == 409 => {
            if is_ours(context, key, &api, &pod.name_any()).await? {
                return Ok(Vec::new());
            }
            format!("another pod is called {}", pod.name_any())
        }
        Err(kube::Error::Api(status)) if matches!(status.code, 403 | 422) => status.message.clone(),
        Err(error) => {
            return Err(Failure::of_object(ObjectKind::PreflightPod, false, message(&error)));
        }
    };
    tracing::warn!(cluster = %key, why = rejected, "what members are rolled into cannot be tried first: the roll goes on");
    Ok(vec![Change {
        kind: ObjectKind::PreflightPod,
        name: pod.name_any(),
        did: Did::Rejected,
    }])
}

/// Whether an existing pod of that name, which the watch has not delivered yet, is this cluster's preflight pod. If so,
/// it is added to the cache.
async fn is_ours(context: &Context, key: &ClusterKey, api: &Api<Pod>, name: &str) -> Result<bool, Failure> {
    let label = match key.kind {
        ClusterKind::Valkey => PREFLIGHT_OF,
        ClusterKind::Redkey => REDKEY_PREFLIGHT_OF,
    };
    let ours = ListParams::default().labels(&format!("{label}={}", key.name));
    let found = api.list(&ours).await;
    let found = found.map_err(|error| Failure::of_object(ObjectKind::PreflightPod, false, message(&error)))?;
    let owner = Owner::of(context, key);
    let mut pods = found.items.into_iter();
    let pod = pods.find(|pod| pod.name_any() == name && owner.owns(pod));
    Ok(pod.map(|pod| context.caches.preflights.put(pod)).is_some())
}

/// Deletes the preflight pod.
pub async fn end(context: &Context, key: &ClusterKey, name: &str) -> Result<Vec<Change>, Failure> {
    let gone = delete(context, &context.caches.preflights, key, ObjectKind::PreflightPod, name).await?;
    Ok(gone.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(status: &Value) -> Pod {
        let containers = json!([{"name": "server", "image": "a"}, {"name": "metrics-exporter", "image": "b"}]);
        let pod = json!({"metadata": {"name": "valkey-c-trial", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"containers": containers}, "status": status});
        serde_json::from_value(pod).unwrap()
    }

    fn container(name: &str, image_id: &str, state: &Value) -> Value {
        json!({"name": name, "image": "", "imageID": image_id, "ready": false, "restartCount": 0, "state": state})
    }

    #[test]
    fn it_passes_once_every_image_is_there_and_fails_with_the_message_of_its_pod() {
        let ended = json!({"terminated": {"exitCode": 0, "reason": "Completed"}});
        let no_command = json!({"terminated": {"exitCode": 128, "reason": "StartError", "message": "no true"}});
        let creating = json!({"waiting": {"reason": "ContainerCreating"}});
        let no_image = json!({"waiting": {"reason": "ErrImagePull", "message": "b: not found"}});
        let no_start = json!({"waiting": {"reason": "RunContainerError", "message": "no true"}});
        let as_root = json!({"waiting": {"reason": "CreateContainerConfigError", "message": "image will run as root"}});
        let statuses = |server: &Value, id: &str, exporter: &Value| {
            json!({"phase": "Pending", "containerStatuses": [
                container("server", "a@1", server), container("metrics-exporter", id, exporter)]})
        };
        let unplaced = json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
            "reason": "Unschedulable", "message": "0/3 nodes are available"}]});
        let evicted = json!({"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource"});
        let table = [
            (json!({}), Ok(Preflight::UnderWay)),
            (json!({"phase": "Pending"}), Ok(Preflight::UnderWay)),
            (statuses(&ended, "", &creating), Ok(Preflight::UnderWay)),
            (statuses(&no_command, "", &creating), Ok(Preflight::UnderWay)),
            (statuses(&ended, "", &ended), Ok(Preflight::Passed)),
            (statuses(&ended, "", &no_command), Ok(Preflight::Passed)),
            (statuses(&ended, "b@1", &no_start), Ok(Preflight::Passed)),
            (statuses(&ended, "", &no_image), Err("b: not found")),
            (statuses(&ended, "", &as_root), Err("image will run as root")),
            (unplaced, Err("0/3 nodes are available")),
            (evicted, Err("The node was low on resource")),
        ];
        for (status, expected) in table {
            match (
                verdict(&pod(&status), "2026-01-01T00:00:05Z".parse().unwrap()),
                expected,
            ) {
                (found, Ok(expected)) => assert_eq!(found, expected, "{status}"),
                (Preflight::Rejected { trouble, stale }, Err(message)) => {
                    let (Trouble::NotStarting(said) | Trouble::Unschedulable(said)) = trouble;
                    assert!(said.contains(message), "{said}");
                    assert!(!stale);
                }
                (found, Err(message)) => panic!("{found:?} and not {message}"),
            }
        }
    }

    #[test]
    fn one_that_ended_unstarted_is_worth_another_after_a_while_and_one_that_waits_is_not() {
        let evicted = pod(&json!({"phase": "Failed", "reason": "Evicted", "message": "low on memory"}));
        let unplaced = pod(
            &json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
            "reason": "Unschedulable", "message": "no nodes"}]}),
        );
        let stale = |pod: &Pod, now: &str| {
            matches!(
                verdict(pod, now.parse().unwrap()),
                Preflight::Rejected { stale: true, .. }
            )
        };
        assert!(!stale(&evicted, "2026-01-01T00:00:09Z"));
        assert!(stale(&evicted, "2026-01-01T00:00:11Z"));
        assert!(
            !stale(&unplaced, "2026-01-01T01:00:00Z"),
            "the scheduler goes on by itself"
        );
    }
}

//! Robin as the operator sees it: where it is, whether it acts, and what it observes.

use std::sync::Arc;
use std::time::Duration;

use candor_api::RedkeyCluster;
use candor_api::redkey::{COMPONENT_LABEL, ROBIN};
use candor_engine::kinds::redkey::report::Robin;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Preconditions};
use kube::{Api, ResourceExt};
use tokio::time::Instant;

use super::adoption::old_robins;
use super::objects::{RobinCredentials, names};
use super::robin::link::{Frame, Mismatch, RobinEndpoint, RobinView};
use crate::observe::pods;
use crate::runtime::cache::ClusterKey;
use crate::runtime::context::Context;

/// How long a Robin that does not respond is left alone before its pod is deleted.
const PATIENCE: Duration = Duration::from_secs(15);
/// When a pod that was deleted, or could not be deleted, is checked again.
const AGAIN: Duration = Duration::from_secs(1);

/// What is known about the Robin of a cluster.
pub struct Followed {
    /// For the report.
    pub state: Robin,
    /// What it observes, if it responds.
    pub frame: Option<Arc<Frame>>,
    /// Whether the operator sends commands to servers itself: only if Robin certainly does not.
    pub stands_in: bool,
    /// The pod of a Robin that does not respond as it should, and when it is deleted.
    overdue: Option<Overdue>,
}

/// The pod of a Robin that is deleted if nothing changes.
struct Overdue {
    name: String,
    uid: String,
    /// How long it is still left alone.
    wait: Duration,
}

/// Follows the Robin of a cluster.
pub fn follow(context: &Context, key: &ClusterKey, cluster: &RedkeyCluster) -> Followed {
    if cluster.spec.primaries == 0 {
        context.robins.follow(key, None);
        return Followed::gone(Robin::Hibernating);
    }
    if !old_robins(context, key).is_empty() {
        context.robins.follow(key, None);
        let message = "the Robin of the existing operator still runs; it is being replaced";
        return Followed::silent(Robin::Outdated(message.to_owned()), None);
    }
    let robins: Vec<Arc<Pod>> = context.caches.pods.list(key);
    let robins = robins
        .iter()
        .filter(|pod| pod.labels().get(COMPONENT_LABEL).is_some_and(|one| one == ROBIN));
    let Some(pod) = pods::reachability(robins.map(|pod| &**pod)) else {
        context.robins.follow(key, None);
        return Followed::gone(missing(cluster, "Robin has no pod"));
    };
    let ip = pod
        .status
        .as_ref()
        .and_then(|status| status.pod_ip.as_ref()?.parse().ok());
    let secret = context.caches.secrets.get(key, &names::robin(&key.name));
    let credentials = secret.as_deref().and_then(RobinCredentials::from_secret);
    let endpoint = ip
        .zip(credentials)
        .and_then(|(ip, credentials)| RobinEndpoint::new(ip, &credentials).ok());
    context.robins.follow(key, endpoint);
    let running = is_running(pod);
    let view = context.robins.view(key);
    let view = match view {
        // Kubernetes reports that no process runs in its pod.
        RobinView::Connecting { .. } | RobinView::NotFollowed | RobinView::Silent { .. } if !running => {
            return Followed::gone(missing(cluster, &why_not(pod)));
        }
        view => view,
    };
    let uid = pod.uid().unwrap_or_default();
    let overdue = |wait: Duration| {
        Some(Overdue {
            name: pod.name_any(),
            uid: uid.clone(),
            wait,
        })
    };
    let after = |since: Instant| overdue(PATIENCE.saturating_sub(since.elapsed()));
    match view {
        RobinView::Live { frame, .. } => {
            let generation = cluster.metadata.generation.unwrap_or(0);
            if frame.generation != cluster.metadata.generation {
                context.robins.refresh(key);
            }
            Followed {
                state: if frame.confirms(generation) {
                    Robin::Ready
                } else {
                    Robin::Working
                },
                frame: Some(frame),
                stands_in: false,
                overdue: None,
            }
        }
        RobinView::NotFollowed => Followed::silent(Robin::Starting, None),
        RobinView::Connecting { since } => Followed::silent(Robin::Starting, after(since)),
        RobinView::Refused { .. } => Followed::gone(Robin::Terminated("Robin's process has terminated".to_owned())),
        RobinView::Silent { since, .. } => {
            Followed::silent(Robin::Unresponsive("Robin does not respond".to_owned()), after(since))
        }
        RobinView::Rejected {
            reason: reason @ Mismatch::Protocol(_),
            ..
        } => Followed::silent(Robin::Outdated(reason.to_string()), overdue(Duration::ZERO)),
        RobinView::Rejected { since, reason } => {
            Followed::silent(Robin::Unresponsive(reason.to_string()), after(since))
        }
    }
}

/// A cluster that was never complete waits for its Robin; later a missing Robin is a loss.
fn missing(cluster: &RedkeyCluster, message: &str) -> Robin {
    let formed = cluster.status.as_ref().is_some_and(|status| status.formed);
    if formed {
        Robin::Terminated(message.to_owned())
    } else {
        Robin::Starting
    }
}

fn is_running(pod: &Pod) -> bool {
    let statuses = pod
        .status
        .as_ref()
        .and_then(|status| status.container_statuses.as_ref());
    let robin = statuses.and_then(|all| all.iter().find(|one| one.name == ROBIN));
    robin.is_some_and(|one| one.state.as_ref().is_some_and(|state| state.running.is_some()))
}

fn why_not(pod: &Pod) -> String {
    let name = pod.name_any();
    match pods::obstacle(pod) {
        Some(
            candor_engine::observation::Trouble::NotStarting(message)
            | candor_engine::observation::Trouble::Unschedulable(message),
        ) => message,
        None => format!("Robin's pod {name} does not run"),
    }
}

impl Followed {
    fn gone(state: Robin) -> Self {
        Self {
            state,
            frame: None,
            stands_in: true,
            overdue: None,
        }
    }

    fn silent(state: Robin, overdue: Option<Overdue>) -> Self {
        Self {
            state,
            frame: None,
            stands_in: false,
            overdue,
        }
    }

    /// Whether Robin may be alive and was not heard: what it does is unknown.
    pub fn is_uncertain(&self) -> bool {
        self.frame.is_none() && !self.stands_in
    }

    /// Whether Robin is of an older version, or has not said of which: it is replaced before an operation begins.
    pub fn is_of_unknown_version(&self) -> bool {
        self.is_uncertain() && matches!(self.state, Robin::Starting | Robin::Outdated(_))
    }

    /// When to reconcile again to delete the pod of a Robin that still does not respond.
    pub fn due_in(&self) -> Option<Duration> {
        self.overdue.as_ref().map(|overdue| overdue.wait.max(AGAIN))
    }

    /// Deletes the pod of a Robin that has not responded for too long, by uid.
    pub async fn replace_overdue(&self, context: &Context, key: &ClusterKey) {
        let Some(Overdue { name, uid, wait }) = &self.overdue else {
            return;
        };
        if !wait.is_zero() {
            return;
        }
        let api: Api<Pod> = Api::namespaced(context.client.clone(), &key.namespace);
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: Some(uid.clone()),
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        match api.delete(name, &params).await {
            Ok(_) => tracing::warn!(cluster = %key, pod = name, "Robin does not respond: its pod is deleted"),
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
            Err(error) => tracing::warn!(cluster = %key, pod = name, %error, "Robin's pod could not be deleted"),
        }
    }
}

//! Logs of pods, redacted.

use futures::future::join_all;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::api::LogParams;
use kube::{Api, ResourceExt};

use super::redact::Redactor;
use super::{Entry, entry};
use crate::commands::connect::Connected;
use crate::commands::errors::CommandError;
use crate::commands::liveness::Liveness;

/// The number of lines of every log.
const LOG_LINES: i64 = 2000;

/// The logs of every container, and of the one before where it was restarted.
pub(super) async fn of_pods(at: &Connected, pods: &[Pod], redactor: &Redactor) -> Vec<Entry> {
    let api: Api<Pod> = Api::namespaced(at.client.clone(), &at.namespace);
    let one = |pod: &Pod, container: &str, previous: bool| {
        let (api, pod, container) = (api.clone(), pod.name_any(), container.to_owned());
        async move {
            let params = LogParams {
                container: Some(container.clone()),
                previous,
                tail_lines: Some(LOG_LINES),
                timestamps: true,
                ..LogParams::default()
            };
            let text = api
                .logs(&pod, &params)
                .await
                .unwrap_or_else(|error| format!("not available: {error}\n"));
            let before = if previous { ".before" } else { "" };
            (format!("logs/{pod}/{container}{before}.log"), text)
        }
    };
    let mut all = Vec::new();
    for pod in pods {
        let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
        let restarted = |name: &str| {
            let statuses = pod
                .status
                .iter()
                .flat_map(|status| status.container_statuses.iter().flatten());
            statuses
                .into_iter()
                .any(|status| status.name == name && status.restart_count > 0)
        };
        for container in containers {
            all.push(one(pod, &container.name, false));
            if restarted(&container.name) {
                all.push(one(pod, &container.name, true));
            }
        }
    }
    let texts = join_all(all).await;
    texts
        .into_iter()
        .map(|(path, text)| entry(&path, redactor.text(&text)))
        .collect()
}

/// The operator's log, by the lease: its holder is the operator's pod, where it runs in one.
pub(super) async fn of_operator(at: &Connected, operator: &Liveness, redactor: &Redactor) -> Vec<Entry> {
    let unknown = |message: String| vec![entry("logs/operator.txt", redactor.text(&format!("{message}\n")))];
    let (holder, lease) = match operator {
        Liveness::Alive { holder, lease }
        | Liveness::Gone {
            holder: Some(holder),
            lease,
            ..
        } => (holder, lease),
        other => return unknown(other.message(Timestamp::now()).unwrap_or_default()),
    };
    let namespace = lease.split('/').next().unwrap_or_default();
    let api: Api<Pod> = Api::namespaced(at.client.clone(), namespace);
    match api.get_opt(holder).await {
        Ok(Some(pod)) => {
            let there = Connected {
                namespace: namespace.to_owned(),
                ..at.clone()
            };
            of_pods(&there, &[pod], redactor).await
        }
        Ok(None) => unknown(format!(
            "{holder}, which holds the lease {lease}, is no pod of namespace {namespace}: its log is where it was started"
        )),
        Err(error) => unknown(CommandError::of(&error, "the operator's pod").to_string()),
    }
}

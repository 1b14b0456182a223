//! Checks that an operator is installed and running.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::ListParams;
use kube::{Api, ResourceExt};

use super::{Finding, Level};
use crate::commands::connect::Connected;
use crate::commands::errors::CommandError;
use crate::commands::liveness::{self, Liveness};

/// An operator's Deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Installed {
    namespace: String,
    name: String,
    ready: i32,
    desired: i32,
}

/// Checks the lease, or the Deployment if there is no lease. `reported` means that a cluster has a status.
pub(super) async fn check(at: &Connected, namespace: Option<&str>, reported: bool) -> Finding {
    let now = Timestamp::now();
    let liveness = liveness::fetch(&at.client, namespace, &at.namespace, now).await;
    let installed = match liveness {
        Liveness::NoLease => installed(at, namespace).await,
        _ => Ok(Vec::new()),
    };
    finding(&liveness, &installed, reported, now)
}

async fn installed(at: &Connected, namespace: Option<&str>) -> Result<Vec<Installed>, String> {
    let api: Api<Deployment> = match namespace {
        Some(namespace) => Api::namespaced(at.client.clone(), namespace),
        None => Api::all(at.client.clone()),
    };
    let ours = ListParams::default().labels(&candor_operator::manifests::selector());
    let found = api.list(&ours).await.map_err(|error| {
        let message = CommandError::of(&error, "Deployments").to_string();
        message.lines().next().unwrap_or_default().to_owned()
    })?;
    let read = |one: &Deployment| Installed {
        namespace: one.namespace().unwrap_or_default(),
        name: one.name_any(),
        ready: one
            .status
            .as_ref()
            .and_then(|status| status.ready_replicas)
            .unwrap_or(0),
        desired: one.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1),
    };
    Ok(found.items.iter().map(read).collect())
}

/// The finding from the lease and the Deployments.
pub(super) fn finding(
    liveness: &Liveness,
    installed: &Result<Vec<Installed>, String>,
    reported: bool,
    now: Timestamp,
) -> Finding {
    let what = "operator";
    match (liveness, installed.as_ref().map(Vec::as_slice)) {
        (Liveness::Alive { holder, lease }, _) => Finding::ok(what, format!("{holder} holds the lease {lease}")),
        (Liveness::Gone { .. }, _) => Finding::new(
            Level::Failed,
            what,
            liveness.message(now).unwrap_or_default(),
            "look at its pods and log, or start one: candor operator --lease-namespace NAMESPACE",
        ),
        (Liveness::Unknown { .. }, _) => {
            Finding::new(Level::Warning, what, liveness.message(now).unwrap_or_default(), "")
        }
        (Liveness::NoLease, Ok([one, ..])) => Finding::new(
            Level::Failed,
            what,
            format!(
                "Deployment {}/{} is installed ({} of {} pods ready) and has not taken its lease",
                one.namespace, one.name, one.ready, one.desired
            ),
            format!("kubectl -n {} logs deployment/{}", one.namespace, one.name),
        ),
        (Liveness::NoLease, Ok([])) if reported => Finding::new(
            Level::Warning,
            what,
            "none is installed here; the clusters' status was written by one that has no lease, or that is gone",
            "if none runs elsewhere: candor install",
        ),
        (Liveness::NoLease, Ok([])) => Finding::new(Level::Failed, what, "none is installed", "candor install"),
        (Liveness::NoLease, Err(message)) => Finding::new(
            Level::Warning,
            what,
            format!("no lease of one is found, and whether one is installed cannot be seen: {message}"),
            "if none is: candor install",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_no_operator_is_installed_it_says_so_and_how_to_install_one() {
        let there = Installed {
            namespace: "candor".to_owned(),
            name: "candor-operator".to_owned(),
            ready: 0,
            desired: 1,
        };
        let found = |installed: Result<Vec<Installed>, String>, reported| {
            let finding = finding(&Liveness::NoLease, &installed, reported, Timestamp::UNIX_EPOCH);
            (finding.level, finding.found, finding.remedy)
        };
        let none = found(Ok(Vec::new()), false);
        assert_eq!(
            none,
            (
                Level::Failed,
                "none is installed".to_owned(),
                "candor install".to_owned()
            )
        );
        assert_eq!(found(Ok(Vec::new()), true).0, Level::Warning);
        let stuck = found(Ok(vec![there]), false);
        assert!(
            stuck
                .1
                .contains("candor/candor-operator is installed (0 of 1 pods ready)"),
            "{stuck:?}"
        );
        assert_eq!(stuck.2, "kubectl -n candor logs deployment/candor-operator");
        let unseen = found(Err("deployments.apps is forbidden".to_owned()), false);
        assert!(
            unseen.0 == Level::Warning && unseen.1.contains("forbidden"),
            "{unseen:?}"
        );
        for (_, found, remedy) in [none, stuck, unseen] {
            assert!(!found.contains("--lease-namespace") && !remedy.contains("--lease-namespace"));
        }
    }
}

//! Deployment, `ReplicaSet`, `StatefulSet`, `DaemonSet`: replica arithmetic in the order a rollout happens.
//!
//! The trap of all four: an absent count is 0, an absent `spec.replicas` is 1, and every count is about an older
//! generation until `observedGeneration` has caught up (checked by the caller, see [`super::read_value`]).

use super::fields::{Fields, ObservedConditions, ReadError};
use super::reading::{Reading, or};

pub(super) fn deployment(object: &Fields<'_>) -> Result<Reading, ReadError> {
    let (spec, status) = (object.map("spec")?, object.map("status")?);
    let conditions = ObservedConditions::of(&status)?;
    let desired = spec.small("replicas")?.unwrap_or(1);
    let (all, updated) = (status.count("replicas")?, status.count("updatedReplicas")?);
    let (ready, available) = (status.count("readyReplicas")?, status.count("availableReplicas")?);

    let progress = conditions.find("Progressing");
    if let Some(late) = progress.filter(|observed| observed.is_false() && observed.reason == "ProgressDeadlineExceeded")
    {
        let message = format!(
            "{}; {available} of {desired} replicas available",
            or(late.message, "no progress in time")
        );
        return Ok(Reading::failed(late.reason, message).since(late.since));
    }
    if let Some(rejected) = conditions.find_true("ReplicaFailure") {
        let reason = or(rejected.reason, "ReplicaFailure");
        return Ok(
            Reading::stuck(reason, or(rejected.message, "pods cannot be created or deleted")).since(rejected.since),
        );
    }
    let since = progress.and_then(|observed| observed.since);
    let behind = rollout(&[
        (
            all < desired,
            "CreatingReplicas",
            format!("{all} of {desired} replicas created"),
        ),
        (
            updated < desired,
            "UpdatingReplicas",
            format!("{updated} of {desired} replicas updated"),
        ),
        (
            all > desired,
            "TerminatingReplicas",
            if all > updated {
                format!("{} old replicas still to go", all - updated)
            } else {
                format!("{} replicas still to go", all - desired)
            },
        ),
        (
            available < updated,
            "WaitingForReplicas",
            format!("{available} of {updated} replicas available"),
        ),
        (
            ready < desired,
            "WaitingForReplicas",
            format!("{ready} of {desired} replicas ready"),
        ),
    ]);
    if let Some((reason, message)) = behind {
        return Ok(if spec.flag("paused")? {
            Reading::stuck("DeploymentPaused", format!("the rollout is paused; {message}"))
        } else {
            Reading::progressing(reason, message)
        }
        .since(since));
    }
    if let Some(unavailable) = conditions.find("Available").filter(|observed| !observed.is_true()) {
        let reason = or(unavailable.reason, "NotAvailable");
        return Ok(Reading::progressing(reason, or(unavailable.message, "not available")).since(unavailable.since));
    }
    // With a deadline set the deployment controller says when it is done; until then the counts may be an echo.
    let deadline = spec.small("progressDeadlineSeconds")?.unwrap_or(600);
    if progress.is_none() && deadline < i64::from(i32::MAX) && conditions.find("Available").is_none() {
        return Ok(Reading::progressing(
            "NotYetReported",
            "the deployment controller has not reported progress yet",
        ));
    }
    let since = conditions.find("Available").and_then(|observed| observed.since);
    Ok(Reading::ready(
        "ReplicasAvailable",
        format!("{available} of {desired} replicas available"),
    )
    .since(since))
}

pub(super) fn replica_set(object: &Fields<'_>) -> Result<Reading, ReadError> {
    let (spec, status) = (object.map("spec")?, object.map("status")?);
    let conditions = ObservedConditions::of(&status)?;
    let desired = spec.small("replicas")?.unwrap_or(1);
    let (all, labelled) = (status.count("replicas")?, status.count("fullyLabeledReplicas")?);
    let (ready, available) = (status.count("readyReplicas")?, status.count("availableReplicas")?);
    if let Some(rejected) = conditions.find_true("ReplicaFailure") {
        let reason = or(rejected.reason, "ReplicaFailure");
        return Ok(
            Reading::stuck(reason, or(rejected.message, "pods cannot be created or deleted")).since(rejected.since),
        );
    }
    let behind = rollout(&[
        (
            labelled < desired,
            "CreatingReplicas",
            format!("{labelled} of {desired} replicas created"),
        ),
        (
            available < desired,
            "WaitingForReplicas",
            format!("{available} of {desired} replicas available"),
        ),
        (
            ready < desired,
            "WaitingForReplicas",
            format!("{ready} of {desired} replicas ready"),
        ),
        (
            all > desired,
            "TerminatingReplicas",
            format!("{} replicas still to go", all - desired),
        ),
    ]);
    Ok(match behind {
        Some((reason, message)) => Reading::progressing(reason, message),
        None => Reading::ready(
            "ReplicasAvailable",
            format!("{available} of {desired} replicas available"),
        ),
    })
}

pub(super) fn stateful_set(object: &Fields<'_>) -> Result<Reading, ReadError> {
    let (spec, status) = (object.map("spec")?, object.map("status")?);
    ObservedConditions::of(&status)?;
    let desired = spec.small("replicas")?.unwrap_or(1);
    let (all, ready) = (status.count("replicas")?, status.count("readyReplicas")?);
    // A server before 1.22 leaves it out; then readiness is all there is.
    let available = status.small("availableReplicas")?.unwrap_or(ready);
    let updated = status.count("updatedReplicas")?;
    let strategy = spec.map("updateStrategy")?;
    let partition = strategy.map("rollingUpdate")?.count("partition")?;
    let to_update = if strategy.text("type")? == Some("OnDelete") {
        0
    } else {
        (desired - partition).max(0)
    };
    let (current_revision, update_revision) = (
        status.text_or_empty("currentRevision")?,
        status.text_or_empty("updateRevision")?,
    );
    let revisions_differ = partition == 0 && to_update > 0 && current_revision != update_revision;

    let behind = rollout(&[
        (
            all < desired,
            "CreatingReplicas",
            format!("{all} of {desired} replicas created"),
        ),
        (
            ready < desired,
            "WaitingForReplicas",
            format!("{ready} of {desired} replicas ready"),
        ),
        (
            available < desired,
            "WaitingForReplicas",
            format!("{available} of {desired} replicas available"),
        ),
        (
            all > desired,
            "TerminatingReplicas",
            format!("{} replicas still to go", all - desired),
        ),
        (
            // Before the first update every pod counts as current and updated; afterwards only the new ones do.
            updated < to_update && current_revision != update_revision,
            "UpdatingReplicas",
            format!("{updated} of {to_update} replicas updated"),
        ),
        (
            revisions_differ,
            "UpdatingReplicas",
            format!("revision {update_revision} is not complete yet"),
        ),
    ]);
    Ok(match behind {
        Some((reason, message)) => Reading::progressing(reason, message),
        None if partition > 0 => Reading::ready(
            "PartitionUpdated",
            format!(
                "{ready} of {desired} replicas ready; {to_update} updated, {} held by the partition",
                desired - to_update
            ),
        ),
        None => Reading::ready("ReplicasReady", format!("{ready} of {desired} replicas ready")),
    })
}

pub(super) fn daemon_set(object: &Fields<'_>) -> Result<Reading, ReadError> {
    let (spec, status) = (object.map("spec")?, object.map("status")?);
    ObservedConditions::of(&status)?;
    // The controller writes a count of 0 too: until it does, the nodes were not counted.
    let Some(desired) = status.small("desiredNumberScheduled")? else {
        return Ok(Reading::progressing(
            "NotYetReported",
            "the number of nodes to run on is not known yet",
        ));
    };
    if status.number("observedGeneration")?.is_none() {
        return Ok(Reading::progressing(
            "NotYetReported",
            "the daemon set controller has not looked yet",
        ));
    }
    let (scheduled, updated) = (
        status.count("currentNumberScheduled")?,
        status.count("updatedNumberScheduled")?,
    );
    let (ready, available) = (status.count("numberReady")?, status.count("numberAvailable")?);
    let on_delete = spec.map("updateStrategy")?.text("type")? == Some("OnDelete");
    let behind = rollout(&[
        (
            scheduled < desired,
            "CreatingReplicas",
            format!("{scheduled} of {desired} nodes have a pod"),
        ),
        (
            updated < desired && !on_delete,
            "UpdatingReplicas",
            format!("{updated} of {desired} pods updated"),
        ),
        (
            available < desired,
            "WaitingForReplicas",
            format!("{available} of {desired} pods available"),
        ),
        (
            ready < desired,
            "WaitingForReplicas",
            format!("{ready} of {desired} pods ready"),
        ),
    ]);
    Ok(match behind {
        Some((reason, message)) => Reading::progressing(reason, message),
        None => Reading::ready("ReplicasAvailable", format!("{available} of {desired} pods available")),
    })
}

/// The first step of a rollout that is not done.
fn rollout(steps: &[(bool, &'static str, String)]) -> Option<(&'static str, String)> {
    steps
        .iter()
        .find(|(open, ..)| *open)
        .map(|(_, reason, message)| (*reason, message.clone()))
}

//! Pod: the first obstacle on its way from scheduling to ready.
//!
//! The order is the pod's own: scheduled, init containers one after the other, containers, readiness gates.
//! The phase is not enough: a pod with an image that cannot be pulled stays Pending, and one in a crash loop is Running.

use super::container::{Role, obstacle};
use super::fields::{Fields, ObservedConditions, ReadError};
use super::reading::{Health, Reading, or};

pub(super) fn pod(object: &Fields<'_>) -> Result<Reading, ReadError> {
    let (spec, status) = (object.map("spec")?, object.map("status")?);
    let conditions = ObservedConditions::of(&status)?;
    let containers = containers(&spec, &status)?;
    match status.text_or_empty("phase")? {
        "Succeeded" => {
            return Ok(Reading::ready(
                "PodCompleted",
                "every container has ended with exit code 0",
            ));
        }
        "Failed" => return failed(&status, &containers),
        "Unknown" => {
            let message = or(status.text_or_empty("message")?, "the pod's node does not answer");
            return Ok(Reading::unknown(
                or(status.text_or_empty("reason")?, "NodeLost"),
                message,
            ));
        }
        _ => {}
    }
    if let Some(ready) = conditions.find_true("Ready") {
        return Ok(Reading::ready("PodReady", "every container is ready").since(ready.since));
    }
    if let Some(unplaced) = conditions.find("PodScheduled").filter(|observed| observed.is_false()) {
        let message = or(unplaced.message, "no node has been chosen");
        return Ok(match unplaced.reason {
            "SchedulingGated" => Reading::progressing("SchedulingGated", message),
            reason => Reading::stuck(or(reason, "Unschedulable"), message),
        }
        .since(unplaced.since));
    }
    let not_ready_since = conditions.find("Ready").and_then(|observed| observed.since);
    if let Some(worst) = first_obstacle(&containers)? {
        let since = worst.since.or(not_ready_since);
        return Ok(worst.since(since));
    }
    if let Some(gates) = unready_gates(&spec, &conditions)? {
        return Ok(Reading::progressing("ReadinessGatesNotReady", gates).since(not_ready_since));
    }
    Ok(match conditions.find("Ready") {
        Some(not_ready) => {
            Reading::progressing(or(not_ready.reason, "PodNotReady"), or(not_ready.message, "not ready"))
                .since(not_ready.since)
        }
        None if spec.text("nodeName")?.is_some() => {
            Reading::progressing("ContainerCreating", "the node has not started the pod yet")
        }
        None => Reading::progressing("PodPending", "the pod has not been scheduled yet"),
    })
}

/// Container statuses with their roles, in the order in which they must come up.
fn containers<'a>(spec: &Fields<'a>, status: &Fields<'a>) -> Result<Vec<(Role, Fields<'a>)>, ReadError> {
    let mut sidecars = Vec::new();
    for container in spec.list("initContainers")? {
        if container.text("restartPolicy")? == Some("Always") {
            sidecars.push(container.required_text("name")?);
        }
    }
    let mut all = Vec::new();
    for init in status.list("initContainerStatuses")? {
        let role = if sidecars.contains(&init.required_text("name")?) {
            Role::Sidecar
        } else {
            Role::Init
        };
        all.push((role, init));
    }
    all.extend(
        status
            .list("containerStatuses")?
            .into_iter()
            .map(|main| (Role::Main, main)),
    );
    Ok(all)
}

/// The obstacle to report. Init containers and sidecars come up one by one, so the first that is not there decides,
/// unless one of them is in real trouble; the containers proper start together, so the worst of them decides.
fn first_obstacle(containers: &[(Role, Fields<'_>)]) -> Result<Option<Reading>, ReadError> {
    let mut worst: Option<Reading> = None;
    let mut waiting_for_init = false;
    for (role, status) in containers {
        if *role == Role::Main && waiting_for_init {
            break;
        }
        let Some(found) = obstacle(status, *role)? else {
            continue;
        };
        waiting_for_init |= *role != Role::Main && found.reason != "ContainerNotReady";
        if worst.as_ref().is_none_or(|known| found.health > known.health) {
            worst = Some(found);
        }
    }
    let inits: Vec<_> = containers.iter().filter(|(role, _)| *role != Role::Main).collect();
    if let Some(reading) = worst.as_mut()
        && waiting_for_init
        && reading.health == Health::Progressing
    {
        let mut done = 0;
        for (role, status) in &inits {
            done += usize::from(obstacle(status, *role)?.is_none());
        }
        reading.message = format!("{} ({done} of {} init containers done)", reading.message, inits.len());
    }
    Ok(worst)
}

/// A pod that ended badly: evicted, past its deadline, refused by the node, or a container that failed.
fn failed(status: &Fields<'_>, containers: &[(Role, Fields<'_>)]) -> Result<Reading, ReadError> {
    if let Some(reason) = status.text("reason")? {
        return Ok(Reading::failed(
            reason,
            or(status.text_or_empty("message")?, "the pod has failed"),
        ));
    }
    for (role, container) in containers {
        if let Some(found) = obstacle(container, *role)?.filter(|found| found.health == Health::Failed) {
            return Ok(found);
        }
    }
    Ok(Reading::failed(
        "PodFailed",
        or(status.text_or_empty("message")?, "the pod has failed"),
    ))
}

/// The readiness gates that are not open, with what their owners say.
fn unready_gates(spec: &Fields<'_>, conditions: &ObservedConditions<'_>) -> Result<Option<String>, ReadError> {
    let mut unready = Vec::new();
    for gate in spec.list("readinessGates")? {
        let type_ = gate.required_text("conditionType")?;
        match conditions.find(type_) {
            Some(observed) if observed.is_true() => {}
            Some(observed) => unready.push(format!(
                "{type_} ({})",
                or(observed.message, or(observed.reason, observed.status))
            )),
            None => unready.push(format!("{type_} (not reported)")),
        }
    }
    Ok((!unready.is_empty()).then(|| format!("every container is ready; waiting for the gate {}", unready.join(", "))))
}

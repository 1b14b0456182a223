//! `PersistentVolumeClaim`: pending, bound, lost, being resized.

use super::fields::{Fields, ObservedConditions, ReadError};
use super::reading::{Reading, or};

/// A resize that the storage system or the node refused.
const REJECTED: [&str; 3] = ["ControllerResizeError", "NodeResizeError", "ModifyVolumeError"];
/// A resize under way. `FileSystemResizePending` waits for a pod to mount the volume.
const RUNNING: [&str; 3] = ["FileSystemResizePending", "Resizing", "ModifyingVolume"];

pub(super) fn claim(object: &Fields<'_>) -> Result<Reading, ReadError> {
    let (spec, status) = (object.map("spec")?, object.map("status")?);
    let conditions = ObservedConditions::of(&status)?;
    let desired = spec.map("resources")?.map("requests")?.text_or_empty("storage")?;
    let has = status.map("capacity")?.text_or_empty("storage")?;
    match status.text_or_empty("phase")? {
        "Lost" => {
            let volume = spec.text_or_empty("volumeName")?;
            Ok(Reading::failed(
                "VolumeLost",
                format!("the volume {volume} is gone, and the data with it"),
            ))
        }
        "Bound" => Ok(resize(&status, &conditions, desired, has)?
            .unwrap_or_else(|| Reading::ready("Bound", format!("bound, {has}")))),
        // The claim never says more than Pending; what it waits for stands in its events.
        "Pending" | "" => {
            let class = match spec.text("storageClassName")? {
                Some("") => "a volume made by hand".to_owned(),
                Some(class) => format!("a volume of storage class {class}"),
                None => "a volume of the default storage class".to_owned(),
            };
            let size = if desired.is_empty() {
                String::new()
            } else {
                format!(", {desired}")
            };
            Ok(Reading::progressing(
                "VolumePending",
                format!("waiting for {class}{size}"),
            ))
        }
        other => Ok(Reading::unknown(
            "PhaseUnknown",
            format!("the claim is in phase {other}"),
        )),
    }
}

fn resize(
    status: &Fields<'_>,
    conditions: &ObservedConditions<'_>,
    desired: &str,
    has: &str,
) -> Result<Option<Reading>, ReadError> {
    let change = format!("{has} to {desired}");
    if let Some(rejected) = REJECTED.iter().find_map(|type_| conditions.find_true(type_)) {
        let message = format!(
            "resize from {change} was refused: {}",
            or(rejected.message, "no cause given")
        );
        return Ok(Some(Reading::stuck(rejected.type_, message).since(rejected.since)));
    }
    let allocation = status.map("allocatedResourceStatuses")?.text_or_empty("storage")?;
    if allocation.ends_with("Infeasible") {
        let message = format!("resize from {change} is not possible ({allocation})");
        return Ok(Some(Reading::stuck("ResizeInfeasible", message)));
    }
    if let Some(running) = RUNNING.iter().find_map(|type_| conditions.find_true(type_)) {
        let message = format!("resize from {change}: {}", or(running.message, running.type_));
        return Ok(Some(Reading::progressing(running.type_, message).since(running.since)));
    }
    if !allocation.is_empty() {
        return Ok(Some(Reading::progressing(
            "Resizing",
            format!("resize from {change} ({allocation})"),
        )));
    }
    // Between the edit of the claim and the first look of the resizer nothing but the sizes tells.
    Ok(match (bytes(desired), bytes(has)) {
        (Some(desired), Some(has)) if desired > has => Some(Reading::progressing(
            "ResizePending",
            format!("resize from {change} has not begun"),
        )),
        _ => None,
    })
}

/// A quantity as bytes, precise enough to compare; `None` for what is no quantity.
fn bytes(quantity: &str) -> Option<f64> {
    const SUFFIXES: [(&str, f64); 13] = [
        ("Ki", 1024.0),
        ("Mi", 1_048_576.0),
        ("Gi", 1_073_741_824.0),
        ("Ti", 1_099_511_627_776.0),
        ("Pi", 1_125_899_906_842_624.0),
        ("Ei", 1_152_921_504_606_846_976.0),
        ("m", 1e-3),
        ("k", 1e3),
        ("M", 1e6),
        ("G", 1e9),
        ("T", 1e12),
        ("P", 1e15),
        ("E", 1e18),
    ];
    let suffixed = SUFFIXES.iter().find_map(|(suffix, factor)| {
        let number: f64 = quantity.strip_suffix(suffix)?.parse().ok()?;
        Some(number * factor)
    });
    suffixed.or_else(|| quantity.parse().ok())
}

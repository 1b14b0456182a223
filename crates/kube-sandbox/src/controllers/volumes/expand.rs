//! Growing a claim: the volume first, then the file system, as a real cluster shows it. Pure.

use k8s_openapi::api::core::v1::{
    PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimCondition, PersistentVolumeClaimStatus,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::matching::{capacity, requested};
use crate::quantity::thousandths;

/// The next step of an expansion.
#[derive(Debug, PartialEq)]
pub enum Step {
    /// Say that it began.
    Announce(PersistentVolumeClaimStatus),
    /// The volume gets its new size.
    GrowVolume(Quantity),
    /// The file system has to follow, when a pod mounts it.
    AwaitFileSystem(PersistentVolumeClaimStatus),
    /// Done.
    Finish(PersistentVolumeClaimStatus),
}

fn has(status: &PersistentVolumeClaimStatus, kind: &str) -> bool {
    status
        .conditions
        .iter()
        .flatten()
        .any(|condition| condition.type_ == kind)
}

fn with(
    status: &PersistentVolumeClaimStatus,
    kind: &str,
    message: Option<&str>,
    now: &Time,
) -> PersistentVolumeClaimStatus {
    let condition = PersistentVolumeClaimCondition {
        type_: kind.into(),
        status: "True".into(),
        message: message.map(Into::into),
        last_transition_time: Some(now.clone()),
        ..PersistentVolumeClaimCondition::default()
    };
    let mut status = without(status);
    status.conditions.get_or_insert_default().push(condition);
    status
}

fn without(status: &PersistentVolumeClaimStatus) -> PersistentVolumeClaimStatus {
    let mut status = status.clone();
    if let Some(conditions) = &mut status.conditions {
        conditions.retain(|condition| !matches!(condition.type_.as_str(), "Resizing" | "FileSystemResizePending"));
    }
    status.conditions = status.conditions.filter(|conditions| !conditions.is_empty());
    status
}

/// What a bound claim that asks for more needs next; `mounted` says whether a running pod uses it.
pub fn next(claim: &PersistentVolumeClaim, volume: &PersistentVolume, mounted: bool, now: &Time) -> Option<Step> {
    let status = claim.status.clone().unwrap_or_default();
    let request = requested(claim)?;
    let has_now = status.capacity.as_ref().and_then(|capacity| capacity.get("storage"));
    let (asked, has_claim, has_volume) = (
        thousandths(request)?,
        has_now.and_then(thousandths)?,
        capacity(volume).and_then(thousandths)?,
    );
    if asked <= has_claim {
        return (has(&status, "Resizing") || has(&status, "FileSystemResizePending"))
            .then(|| Step::Finish(without(&status)));
    }
    if asked > has_volume {
        return Some(if has(&status, "Resizing") {
            Step::GrowVolume(request.clone())
        } else {
            Step::Announce(with(&status, "Resizing", None, now))
        });
    }
    if !has(&status, "FileSystemResizePending") {
        let message = "Waiting for user to (re-)start a pod to finish file system resize of volume on node.";
        return Some(Step::AwaitFileSystem(with(
            &status,
            "FileSystemResizePending",
            Some(message),
            now,
        )));
    }
    mounted.then(|| {
        let mut done = without(&status);
        let size = capacity(volume).cloned().unwrap_or_else(|| request.clone());
        done.capacity.get_or_insert_default().insert("storage".into(), size);
        Step::Finish(done)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_expansion_passes_through_the_real_conditions() {
        let now: Time = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
        let mut claim: PersistentVolumeClaim = serde_json::from_value(json!({
            "spec": {"resources": {"requests": {"storage": "2Gi"}}},
            "status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}}))
        .unwrap();
        let mut volume: PersistentVolume =
            serde_json::from_value(json!({"spec": {"capacity": {"storage": "1Gi"}}})).unwrap();
        let kinds = |claim: &PersistentVolumeClaim| -> Vec<String> {
            let conditions = claim.status.as_ref().unwrap().conditions.iter().flatten();
            conditions.map(|condition| condition.type_.clone()).collect()
        };
        let Some(Step::Announce(status)) = next(&claim, &volume, false, &now) else {
            panic!()
        };
        claim.status = Some(status);
        assert_eq!(kinds(&claim), ["Resizing"]);
        let Some(Step::GrowVolume(size)) = next(&claim, &volume, false, &now) else {
            panic!()
        };
        volume
            .spec
            .as_mut()
            .unwrap()
            .capacity
            .as_mut()
            .unwrap()
            .insert("storage".into(), size);
        let Some(Step::AwaitFileSystem(status)) = next(&claim, &volume, false, &now) else {
            panic!()
        };
        claim.status = Some(status);
        assert_eq!(kinds(&claim), ["FileSystemResizePending"]);
        assert_eq!(next(&claim, &volume, false, &now), None, "it waits for a pod");
        let Some(Step::Finish(status)) = next(&claim, &volume, true, &now) else {
            panic!()
        };
        claim.status = Some(status);
        assert!(kinds(&claim).is_empty());
        assert_eq!(
            claim.status.as_ref().unwrap().capacity.as_ref().unwrap()["storage"].0,
            "2Gi"
        );
        assert_eq!(next(&claim, &volume, true, &now), None);
    }
}

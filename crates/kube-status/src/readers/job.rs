//! Job: done, failed for good, suspended, or running.
//!
//! Here Candor departs from kstatus, which calls a job current as soon as it has started: a Ready-like condition
//! that is True before the work is done would let a migration be skipped.

use super::fields::{Fields, ObservedConditions, ReadError};
use super::reading::{Reading, or};

pub(super) fn job(object: &Fields<'_>) -> Result<Reading, ReadError> {
    let (spec, status) = (object.map("spec")?, object.map("status")?);
    let conditions = ObservedConditions::of(&status)?;
    let (active, succeeded) = (status.count("active")?, status.count("succeeded")?);
    let (failed, started) = (status.count("failed")?, status.time("startTime")?);
    let desired = spec.small("completions")?.or(spec.small("parallelism")?).unwrap_or(1);
    let so_far = format!("{succeeded} of {desired} completions, {active} running, {failed} failed");

    if let Some(lost) = conditions.find_true("Failed") {
        let message = format!("{}; {so_far}", or(lost.message, "the job has failed"));
        return Ok(Reading::failed(or(lost.reason, "JobFailed"), message).since(lost.since));
    }
    if let Some(losing) = conditions.find_true("FailureTarget") {
        let message = format!(
            "{}; {so_far}",
            or(losing.message, "the job is failing, its pods are being stopped")
        );
        return Ok(Reading::failed(or(losing.reason, "JobFailing"), message).since(losing.since));
    }
    if let Some(done) = conditions.find_true("Complete") {
        return Ok(Reading::ready("JobComplete", so_far).since(done.since));
    }
    if spec.flag("suspend")? || conditions.find_true("Suspended").is_some() {
        let since = conditions.find_true("Suspended").and_then(|observed| observed.since);
        return Ok(Reading::progressing("JobSuspended", format!("the job is suspended; {so_far}")).since(since));
    }
    if started.is_none() {
        return Ok(Reading::progressing("JobNotStarted", "the job has not started yet"));
    }
    Ok(Reading::progressing("JobRunning", so_far).since(started))
}

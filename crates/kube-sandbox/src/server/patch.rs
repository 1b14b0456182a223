//! Patch: a change to the present state, tried again when someone else was faster.

use serde_json::Value;

use super::api::{Api, Call};
use super::negotiate::{Accepted, content_type, unsupported};
use super::read::object_reply;
use super::respond::Reply;
use super::update::Rejected;
use super::{body, meta};
use crate::patch;
use crate::status::ApiError;

/// How often a patch without a resourceVersion is tried against a state that moves.
const ATTEMPTS: usize = 5;

impl Api {
    pub(super) fn patch(&self, call: &Call) -> Result<Reply, ApiError> {
        let accepted = Accepted::of(&call.headers, true)?;
        let dry = call.query.dry_run("PatchOptions")?;
        let mut last = None;
        for _ in 0..ATTEMPTS {
            let current = self.find(call)?;
            let new = patched(call, current.value())?;
            let conditional = meta::text(&new, "resourceVersion") != meta::text(current.value(), "resourceVersion");
            match self.replace(call, &current, new, dry) {
                Ok(object) => return Ok(object_reply(call, 200, accepted, &object)),
                Err(Rejected::Raced) if !conditional => last = Some(Rejected::Raced),
                Err(rejected) => return Err(rejected.into_error(call)),
            }
        }
        Err(last.unwrap_or(Rejected::Raced).into_error(call))
    }
}

fn patched(call: &Call, current: &Value) -> Result<Value, ApiError> {
    match content_type(&call.headers) {
        "application/json-patch+json" => patch::json_patch(current, &body::json(&call.body)?),
        "application/merge-patch+json" => patch::merge_patch(current, &body::json(&call.body)?),
        "application/strategic-merge-patch+json" if !call.kind.custom => {
            patch::strategic_merge(current, &body::json(&call.body)?, &call.kind.schema)
        }
        _ if call.kind.custom => Err(unsupported(&[
            "application/json-patch+json",
            "application/merge-patch+json",
            "application/apply-patch+yaml",
        ])),
        _ => Err(unsupported(&[
            "application/json-patch+json",
            "application/merge-patch+json",
            "application/strategic-merge-patch+json",
            "application/apply-patch+yaml",
        ])),
    }
}

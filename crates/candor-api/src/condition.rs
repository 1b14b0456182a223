//! A condition as Candor's kinds carry it: `metav1.Condition` and how bad it is.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition as Plain, Time};
use kube_status::severity::Severity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `metav1.Condition` with an optional severity, present exactly while the condition is in its bad polarity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Which condition.
    #[serde(rename = "type")]
    #[schemars(length(min = 1, max = 316))]
    pub type_: String,
    /// True, False or Unknown.
    #[schemars(schema_with = "crate::schema::condition_status")]
    pub status: String,
    /// How bad it is, while it is bad: Error, Warning or Info.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::severity")]
    pub severity: Option<Severity>,
    /// A word for machines.
    #[schemars(length(max = 1024))]
    pub reason: String,
    /// A sentence for people.
    #[schemars(length(max = 32768))]
    pub message: String,
    /// When the status last turned.
    pub last_transition_time: Time,
    /// The generation it speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

impl Condition {
    /// A plain condition with a severity.
    pub fn graded(plain: Plain, severity: Option<Severity>) -> Self {
        Self {
            type_: plain.type_,
            status: plain.status,
            severity,
            reason: plain.reason,
            message: plain.message,
            last_transition_time: plain.last_transition_time,
            observed_generation: plain.observed_generation,
        }
    }

    /// Without its severity, as the library's rules take it.
    pub fn plain(&self) -> Plain {
        Plain {
            type_: self.type_.clone(),
            status: self.status.clone(),
            reason: self.reason.clone(),
            message: self.message.clone(),
            last_transition_time: self.last_transition_time.clone(),
            observed_generation: self.observed_generation,
        }
    }
}

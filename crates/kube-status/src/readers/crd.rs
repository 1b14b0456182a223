//! `CustomResourceDefinition`: its names must be accepted before it can be established.

use super::fields::{Fields, ObservedConditions, ReadError};
use super::reading::{Reading, or};

pub(super) fn crd(object: &Fields<'_>) -> Result<Reading, ReadError> {
    let conditions = ObservedConditions::of(&object.map("status")?)?;
    if let Some(rejected) = conditions.find("NamesAccepted").filter(|observed| observed.is_false()) {
        let message = or(rejected.message, "another definition holds these names");
        return Ok(Reading::failed(or(rejected.reason, "NamesNotAccepted"), message).since(rejected.since));
    }
    let Some(established) = conditions.find("Established") else {
        return Ok(Reading::progressing("Installing", "the definition is not served yet"));
    };
    Ok(match established.status {
        "True" => Reading::ready("Established", or(established.message, "served")),
        // The API server waits some seconds after accepting the names; everything else is a refusal.
        "False" if !matches!(established.reason, "Installing" | "NotAccepted" | "") => Reading::failed(
            established.reason,
            or(established.message, "the definition is not served"),
        ),
        _ => Reading::progressing(
            "Installing",
            or(established.message, "the definition is not served yet"),
        ),
    }
    .since(established.since))
}

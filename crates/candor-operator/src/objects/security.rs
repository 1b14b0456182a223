//! Security contexts that meet the `restricted` Pod Security Standard.

use k8s_openapi::api::core::v1::{Capabilities, Container, PodSecurityContext, SeccompProfile, SecurityContext};
use serde_json::Value;

use super::{Problem, merge, preserved_fields};

/// The user and group of the official images.
const SERVER_USER: i64 = 999;

/// The pod's default security context, overridden by that of the spec.
pub(super) fn of_pod(written: Option<&Value>) -> Result<PodSecurityContext, Problem> {
    const FIELD: &str = "spec.podSecurityContext";
    let defaults = PodSecurityContext {
        run_as_non_root: Some(true),
        run_as_user: Some(SERVER_USER),
        run_as_group: Some(SERVER_USER),
        fs_group: Some(SERVER_USER),
        // The kubelet does not change the owner of millions of files at every start.
        fs_group_change_policy: Some("OnRootMismatch".to_owned()),
        seccomp_profile: Some(SeccompProfile {
            type_: "RuntimeDefault".to_owned(),
            localhost_profile: None,
        }),
        ..PodSecurityContext::default()
    };
    let Some(written) = written else {
        return Ok(defaults);
    };
    preserved_fields::read::<PodSecurityContext>(FIELD, written)?;
    let mut whole = serde_json::to_value(&defaults).map_err(|error| Problem::shape(FIELD, error.to_string()))?;
    merge::merge(&mut whole, written);
    preserved_fields::read(FIELD, &whole)
}

/// The default security context of a container.
pub(super) fn of_container() -> SecurityContext {
    SecurityContext {
        allow_privilege_escalation: Some(false),
        capabilities: Some(Capabilities {
            drop: Some(vec!["ALL".to_owned()]),
            add: None,
        }),
        read_only_root_filesystem: Some(true),
        run_as_non_root: Some(true),
        ..SecurityContext::default()
    }
}

/// Sets the fields that the standard requires on a sidecar, unless the sidecar sets them itself.
pub(super) fn complete(container: &mut Container) {
    let context = container.security_context.get_or_insert_default();
    context.allow_privilege_escalation.get_or_insert(false);
    context.capabilities.get_or_insert_with(|| Capabilities {
        drop: Some(vec!["ALL".to_owned()]),
        add: None,
    });
}

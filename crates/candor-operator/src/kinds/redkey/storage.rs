//! Claim templates of a `StatefulSet` cannot be changed: a difference is an error that a person must resolve.

use k8s_openapi::api::apps::v1::StatefulSet;
use kube::ResourceExt;

/// The parts of a claim that the spec sets.
#[derive(PartialEq)]
struct Claim {
    size: Option<String>,
    class: Option<String>,
    modes: Option<Vec<String>>,
}

impl Claim {
    fn of(set: &StatefulSet) -> Option<Self> {
        let templates = set.spec.as_ref()?.volume_claim_templates.as_ref()?;
        let spec = templates.first()?.spec.as_ref()?;
        let requests = spec
            .resources
            .as_ref()
            .and_then(|resources| resources.requests.as_ref());
        Some(Self {
            size: requests.and_then(|all| all.get("storage")).map(|size| size.0.clone()),
            class: spec.storage_class_name.clone(),
            modes: spec.access_modes.clone(),
        })
    }
}

/// What to report if the live claim template differs from the desired one. A spec without a class gets the default one.
pub(super) fn difference(live: &StatefulSet, desired: &StatefulSet) -> Option<String> {
    let (now, wanted) = (Claim::of(live), Claim::of(desired));
    let differs = match (&now, &wanted) {
        (Some(now), Some(wanted)) => {
            let class = wanted.class.is_some() && now.class != wanted.class;
            now.size != wanted.size || now.modes != wanted.modes || class
        }
        (None, None) => false,
        _ => true,
    };
    differs.then(|| {
        format!(
            "the volume claims of StatefulSet {} cannot be changed: size, class or access mode of the spec differ from \
             them",
            live.name_any()
        )
    })
}

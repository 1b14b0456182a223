//! Kubelet refresh. A kubelet updates a changed Secret in a pod's volume at its next sync of that pod. That can take a
//! minute and a half, but happens at once if the pod object changes. The operator therefore annotates a member's pod
//! with the certificate that it should present.

use candor_engine::model::MemberRef;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::act::apply::message;
use crate::objects::hash::sha256;
use crate::objects::labels::CERTIFICATE;
use crate::observe::Observed;
use crate::runtime::cache::ClusterKey;
use crate::runtime::context::Context;

/// Annotates a member's pod, once for each certificate. If the API server rejects that, the kubelet updates the volume
/// later, at its next sync.
pub async fn refresh(context: &Context, key: &ClusterKey, observed: &Observed, member: MemberRef) {
    let desired = observed.certificates.as_ref().and_then(|found| found.desired.as_ref());
    let observation = observed
        .observation
        .members
        .get(&member)
        .and_then(|one| one.pod.as_ref());
    let pod = observation.and_then(|observation| context.caches.pods.get(key, &observation.name));
    let (Some(desired), Some(pod)) = (desired, pod) else {
        return;
    };
    if !context.served.is_unmarked(&(key.clone(), member)) {
        return;
    }
    let mark = &sha256(&[desired.leaf.as_slice(), &desired.authorities.to_be_bytes()].concat())[..16];
    if pod.annotations().get(CERTIFICATE).is_some_and(|marked| marked == mark) {
        return;
    }
    let api: Api<Pod> = Api::namespaced(context.client.clone(), &key.namespace);
    let patch = json!({"metadata": {"uid": pod.uid(), "annotations": {CERTIFICATE: mark}}});
    match api
        .patch(&pod.name_any(), &PatchParams::default(), &Patch::Merge(patch))
        .await
    {
        Ok(marked) => drop(context.caches.pods.put(marked)),
        Err(error) => {
            let why = message(&error);
            tracing::warn!(cluster = %key, pod = pod.name_any(), why, "the kubelet is not told of a new certificate");
        }
    }
}

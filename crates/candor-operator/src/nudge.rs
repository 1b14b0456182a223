//! A kubelet brings a changed Secret into a pod's volume when it next looks at that pod, which may be a minute and a half
//! later, or at once when something of the pod changes. So a member's pod is marked with the certificate that it shall
//! serve.

use candor_engine::model::MemberRef;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::apply::words;
use crate::cache::ClusterKey;
use crate::context::Context;
use crate::objects::hash::sha256;
use crate::objects::labels::CERTIFICATE;
use crate::observe::Observed;

/// Marks a member's pod, once for each certificate. Where that is refused the kubelet comes by itself, later.
pub async fn nudge(context: &Context, key: &ClusterKey, observed: &Observed, member: MemberRef) {
    let wanted = observed.certificates.as_ref().and_then(|found| found.wanted.as_ref());
    let seen = observed.seen.members.get(&member).and_then(|one| one.pod.as_ref());
    let pod = seen.and_then(|seen| context.caches.pods.get(key, &seen.name));
    let (Some(wanted), Some(pod)) = (wanted, pod) else {
        return;
    };
    if !context.served.is_unmarked(&(key.clone(), member)) {
        return;
    }
    let mark = &sha256(&[wanted.leaf.as_slice(), &wanted.authorities.to_be_bytes()].concat())[..16];
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
            let why = words(&error);
            tracing::warn!(cluster = %key, pod = pod.name_any(), why, "the kubelet is not told of a new certificate");
        }
    }
}

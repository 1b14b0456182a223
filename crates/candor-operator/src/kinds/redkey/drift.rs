//! Writes objects so that edits by hand are reverted. Server-side apply keeps what another field manager has added: where
//! that matters, a field is replaced as a whole.

use candor_engine::outcome::{Change, Did, Failure, ObjectKind};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Service;
use kube::api::Patch;
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use super::act::params;
use super::objects::is_theirs;
use crate::act::apply::{Object, message};
use crate::act::ownership::Owner;
use crate::runtime::cache::{Cache, ClusterKey};
use crate::runtime::context::Context;

/// Applies an object; says whether it was edited by hand.
pub(super) async fn apply<K: Object>(
    context: &Context,
    cache: &Cache<K>,
    key: &ClusterKey,
    kind: ObjectKind,
    desired: &K,
) -> Result<Option<Change>, Failure> {
    let live = cache.get(key, &desired.name_any());
    let edited = live.is_some_and(|live| context.shapes.was_right(desired, &*live));
    let change = crate::act::apply::apply(context, cache, key, kind, desired).await?;
    Ok(change.map(|change| {
        let did = if edited && change.did == Did::Updated {
            Did::Reverted
        } else {
            change.did
        };
        Change { did, ..change }
    }))
}

/// Applies the `StatefulSet`. A pod template of the existing operator is replaced as a whole, and so is another update
/// strategy, which the API server rejects in part.
pub(super) async fn apply_set(
    context: &Context,
    key: &ClusterKey,
    set: &StatefulSet,
) -> Result<Option<Change>, Failure> {
    let cache = &context.caches.stateful_sets;
    replacing(context, cache, key, ObjectKind::StatefulSet, set, fields_of_set).await
}

/// Applies the Service. Ports and selector are replaced as a whole: a port that was added by hand is removed.
pub(super) async fn apply_service(
    context: &Context,
    key: &ClusterKey,
    service: &Service,
) -> Result<Option<Change>, Failure> {
    let cache = &context.caches.services;
    replacing(
        context,
        cache,
        key,
        ObjectKind::HeadlessService,
        service,
        fields_of_service,
    )
    .await
}

/// Applies an object, and before that the fields of its spec that must be replaced as a whole, if there are any.
async fn replacing<K: Object>(
    context: &Context,
    cache: &Cache<K>,
    key: &ClusterKey,
    kind: ObjectKind,
    desired: &K,
    fields: impl Fn(&K, &K) -> Value,
) -> Result<Option<Change>, Failure> {
    let name = desired.name_any();
    let live = Owner::of(context, key).get(cache, &name);
    let mut replaced = None;
    if let Some(live) = live {
        let fields = fields(&live, desired);
        if fields.is_object() {
            let patch = json!({
                "metadata": {"uid": live.uid(), "resourceVersion": live.resource_version()},
                "spec": fields,
            });
            let edited = context.shapes.was_right(desired, &*live);
            let api: Api<K> = Api::namespaced(context.client.clone(), &key.namespace);
            let written = api.patch(&name, &params(), &Patch::Strategic(patch)).await;
            let failed = |error: &kube::Error| Failure::of_object(kind, true, message(error));
            cache.put(written.map_err(|error| failed(&error))?);
            let did = if edited { Did::Reverted } else { Did::Updated };
            replaced = Some(Change { kind, name, did });
        }
    }
    let applied = apply(context, cache, key, kind, desired).await?;
    Ok(replaced.or(applied))
}

/// The fields of a `StatefulSet` that are replaced as a whole; null if there is none.
fn fields_of_set(live: &StatefulSet, set: &StatefulSet) -> Value {
    let mut fields = Value::Null;
    if is_theirs(live) && !is_theirs(set) {
        fields["template"] = set.spec.as_ref().map(|spec| json!(spec.template)).unwrap_or_default();
        fields["template"]["$patch"] = json!("replace");
    }
    let strategy = live.spec.as_ref().and_then(|spec| spec.update_strategy.as_ref());
    if strategy.is_some_and(|strategy| strategy.type_.as_deref() != Some("OnDelete")) {
        fields["updateStrategy"] = json!({"$patch": "replace", "type": "OnDelete"});
    }
    fields
}

/// The fields of a Service that are replaced as a whole; null if there is none.
fn fields_of_service(live: &Service, desired: &Service) -> Value {
    let mut fields = Value::Null;
    let (Some(now), Some(spec)) = (live.spec.as_ref(), desired.spec.as_ref()) else {
        return fields;
    };
    let ports = |spec: &k8s_openapi::api::core::v1::ServiceSpec| {
        let ports = spec.ports.iter().flatten();
        let ports = ports.map(|port| {
            (
                port.port,
                port.name.clone(),
                port.protocol.clone().unwrap_or_else(|| "TCP".to_owned()),
            )
        });
        ports.collect::<Vec<_>>()
    };
    if ports(now) != ports(spec) {
        let own = spec.ports.iter().flatten().map(|port| json!(port));
        fields["ports"] = [json!({"$patch": "replace"})].into_iter().chain(own).collect();
    }
    if now.selector != spec.selector {
        fields["selector"] = json!(spec.selector);
        fields["selector"]["$patch"] = json!("replace");
    }
    fields
}

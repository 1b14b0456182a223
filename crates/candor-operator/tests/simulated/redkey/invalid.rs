//! Values that the schema accepts and the operator cannot carry out: status says what to write instead, nothing is
//! changed, and the cluster is Ready again when the value is.

use k8s_openapi::api::core::v1::Secret;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use super::spec;
use crate::support::redkey::{NAME, Redkey};
use crate::support::{Operator, Stage};

/// A change of the spec, and the message that it gets.
fn invalid() -> Vec<(Value, &'static [&'static str])> {
    vec![
        (
            json!({"config": "save 60 1\nmaxmemory\n"}),
            &["spec.config, line 2: maxmemory has no value; write maxmemory and its value on one line"],
        ),
        (
            json!({"config": "save \"60 1\n"}),
            &["spec.config, line 1 (save): unbalanced quotes; close every quote and put a space behind it"],
        ),
        (
            json!({"config": "maxmemory lots\n"}),
            &["spec.config, line 1: the value of maxmemory is wrong; "],
        ),
        (
            json!({"auth": {"secret": "no-such"}}),
            &["Secret no-such is missing: spec.auth.secret names it; create it with the key requirepass"],
        ),
        (
            json!({"auth": {"secret": "other-key"}}),
            &["Secret other-key has no key requirepass: spec.auth.secret names it; add the key"],
        ),
        (
            json!({"auth": {"secret": "empty"}}),
            &["Secret empty has an empty requirepass: write a password, or remove spec.auth.secret"],
        ),
        (
            json!({"override": {"statefulSet": {"spec": {"template": {"spec": {"nodeSelector": 7}}}}}}),
            &["spec.override.statefulSet", "write it as Kubernetes does"],
        ),
        (
            json!({"override": {"service": {"spec": {"sessionAffinity": 7}}}}),
            &["spec.override.service", "write it as Kubernetes does"],
        ),
        (
            json!({"robin": {"template": {"spec": {"nodeSelector": 7}}}}),
            &["spec.robin.template", "write it as Kubernetes does"],
        ),
    ]
}

async fn secret(stage: &Stage, name: &str, data: Value) {
    let secret = json!({"metadata": {"name": name}, "stringData": data});
    let api: Api<Secret> = Api::namespaced(stage.client(), "default");
    let secret = serde_json::from_value(secret).unwrap();
    api.create(&PostParams::default(), &secret).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_value_that_cannot_be_carried_out_says_what_to_write_and_changes_nothing() {
    let stage = Stage::set().await;
    let cluster = Redkey(&stage);
    let operator = Operator::start(stage.client());
    secret(&stage, "other-key", json!({"password": "a"})).await;
    secret(&stage, "empty", json!({"requirepass": ""})).await;
    // A purging cluster: what were taken for an upgrade would lose the keys.
    cluster.create(spec(2, true)).await;
    cluster.ready().await;
    let keys = cluster.write_keys().await;
    let pods: Vec<_> = cluster.pods().await.iter().map(ResourceExt::uid).collect();
    for (change, words) in invalid() {
        cluster.change(change.clone()).await;
        let said = async || {
            let error = cluster.status().await.status == "Error";
            let ready = cluster.condition("Ready").await;
            let fits = |message: &str| words.iter().all(|one| message.contains(one));
            error && ready.is_some_and(|ready| ready.status == "False" && fits(&ready.message))
        };
        cluster.until(&format!("{words:?}"), said).await;
        let fields = change.as_object().unwrap().keys();
        let removed: Vec<Value> = fields
            .map(|field| json!({"op": "remove", "path": format!("/spec/{field}")}))
            .collect();
        let patch: Patch<()> = Patch::Json(serde_json::from_value(json!(removed)).unwrap());
        let api = stage.redkey_clusters();
        api.patch(NAME, &PatchParams::default(), &patch).await.unwrap();
        cluster.ready().await;
        assert_eq!(cluster.keys(), keys, "{change}");
    }
    let after: Vec<_> = cluster.pods().await.iter().map(ResourceExt::uid).collect();
    assert_eq!(after, pods, "no server was replaced");
    operator.end().await;
}

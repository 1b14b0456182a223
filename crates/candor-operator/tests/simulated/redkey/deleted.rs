//! Deletion: finalizers of the operator's own, and of others.

use candor_api::RedkeyCluster;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use serde_json::json;

use super::recreated::stored;
use crate::support::redkey::{NAME, Redkey};
use crate::support::{Operator, Stage};

const OWN: &str = "redkey.inditex.dev/delete-pvc";
const FOREIGN: &str = "example.org/keep";

async fn finalizers(api: &Api<RedkeyCluster>) -> Option<Vec<String>> {
    let cluster = api.get_opt(NAME).await.unwrap()?;
    Some(cluster.metadata.finalizers.unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn finalizers_of_others_neither_hold_up_the_operator_nor_are_removed() {
    let stage = Stage::set().await;
    let cluster = Redkey(&stage);
    let operator = Operator::start(stage.client());
    let api = stage.redkey_clusters();
    let mut spec = stored(3, 0);
    spec["deletePVC"] = json!(true);
    cluster.create(spec).await;
    cluster.ready().await;
    assert_eq!(finalizers(&api).await.unwrap(), [OWN]);
    // Those of the existing operator are removed with the operator's own: nobody else would remove them.
    let all = [
        OWN,
        "redkey.inditex.dev/configmap-cleanup",
        FOREIGN,
        "redkey.inditex.dev/rdb-backup",
    ];
    let patch = Patch::Merge(json!({"metadata": {"finalizers": all}}));
    api.patch(NAME, &PatchParams::default(), &patch).await.unwrap();

    // It comes and goes with the field, and leaves the others in place.
    cluster.change(json!({"deletePVC": false})).await;
    let removed = async || finalizers(&api).await.unwrap() == all[1..];
    cluster.until("removed", removed).await;
    cluster.change(json!({"deletePVC": true})).await;
    let added = async || finalizers(&api).await.unwrap().contains(&OWN.to_owned());
    cluster.until("added", added).await;

    api.delete(NAME, &DeleteParams::default()).await.unwrap();
    cluster
        .until("left to others", async || finalizers(&api).await.unwrap() == [FOREIGN])
        .await;
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(stage.client(), "default");
    let deleted = async || claims.list(&ListParams::default()).await.unwrap().items.is_empty();
    cluster.until("without claims", deleted).await;
    let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    api.patch(NAME, &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(finalizers(&api).await, None);
    operator.end().await;
}

//! The database that is to be kept is never deleted, on any path.

use dittofs_operator::api::DittoServer;
use dittofs_operator::conditions::ServerCondition;
use dittofs_operator::objects::PERCONA_CRD;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, Patch, PatchParams, PropagationPolicy};
use kube::{Api, Resource, ResourceExt};
use kube_sandbox::faults::{Fault, Rule, Verb};
use serde_json::json;

use crate::world::{Desk, World, condition_text, is_ready};

/// A ready server with a database, and a test that drives every look itself.
async fn with_database(desk: &Desk<'_>, change: impl FnOnce(&mut DittoServer)) -> DittoServer {
    desk.serve("files", |server| {
        server.spec.percona.enabled = true;
        change(server);
    })
    .await;
    desk.reconcile("files").await;
    desk.database_is("files-postgres", "ready").await;
    desk.reconcile_until("files", "ready", is_ready).await
}

async fn delete(desk: &Desk<'_>) {
    desk.servers().delete("files", &DeleteParams::default()).await.unwrap();
}

/// Looks, with the clock going on, until the server is gone.
async fn reconcile_until_deleted(desk: &Desk<'_>) {
    desk.world
        .eventually("the server gone", async || {
            desk.reconcile("files").await;
            desk.servers().get_opt("files").await.unwrap().is_none().then_some(())
        })
        .await;
}

/// The database is there, nothing owns it, and the operator never asked for its deletion.
async fn assert_retained(desk: &Desk<'_>) {
    let database = desk
        .databases()
        .get_opt("files-postgres")
        .await
        .unwrap()
        .expect("the database is there");
    assert_eq!(database.metadata.deletion_timestamp, None);
    assert!(
        database.owner_references().is_empty(),
        "{:?}",
        database.owner_references()
    );
    assert_no_delete(desk);
}

fn assert_no_delete(desk: &Desk<'_>) {
    let deletes: Vec<_> = desk
        .faults
        .writes()
        .into_iter()
        .filter(|write| write.resource == "perconapgclusters")
        .filter(|write| matches!(write.verb, Verb::Delete | Verb::DeleteCollection))
        .collect();
    assert!(deletes.is_empty(), "{deletes:?}");
}

/// Garbage collection had its turn: an object that this server owned is gone.
async fn until_garbage_is_collected(desk: &Desk<'_>) {
    let maps = desk.api::<k8s_openapi::api::core::v1::ConfigMap>();
    desk.world
        .eventually("garbage collected", async || {
            maps.get_opt("files-config").await.unwrap().is_none().then_some(())
        })
        .await;
}

#[tokio::test]
async fn a_database_never_has_an_owner_from_its_first_moment() {
    let world = World::start().await;
    let desk = world.desk("keep").await;
    for doomed in [false, true] {
        with_database(&desk, |server| server.spec.percona.delete_with_server = doomed).await;
        let database = desk.databases().get("files-postgres").await.unwrap();
        assert!(database.owner_references().is_empty());
        delete(&desk).await;
        reconcile_until_deleted(&desk).await;
    }
}

#[tokio::test]
async fn the_database_is_kept_when_the_server_goes() {
    let world = World::start().await;
    let desk = world.desk("keep").await;
    with_database(&desk, |_| {}).await;
    delete(&desk).await;
    reconcile_until_deleted(&desk).await;
    until_garbage_is_collected(&desk).await;
    assert_retained(&desk).await;
    assert!(desk.recorded.reasons().contains(&"PerconaOrphaned".to_owned()));
}

#[tokio::test]
async fn the_database_is_kept_when_the_deadline_had_passed_before_the_first_reconcile() {
    let world = World::start().await;
    let desk = world.desk("keep").await;
    let server = with_database(&desk, |_| {}).await;
    own(&desk, &server).await;
    delete(&desk).await;
    // The operator was away for an hour, and its cleanup fails when it comes back.
    desk.wait(3_600);
    desk.faults
        .add(Rule::new("no deletes").verb(Verb::Delete).then(Fault::internal_error()));
    reconcile_until_deleted(&desk).await;
    assert!(
        desk.recorded.reasons().contains(&"CleanupTimeout".to_owned()),
        "{:?}",
        desk.recorded.reasons()
    );
    until_garbage_is_collected(&desk).await;
    assert_retained(&desk).await;
}

#[tokio::test]
async fn the_database_is_kept_when_percona_was_switched_off_before_the_deletion() {
    let world = World::start().await;
    let desk = world.desk("keep").await;
    // Even if it was to go with the server once: it is not this server's database any more.
    let server = with_database(&desk, |server| server.spec.percona.delete_with_server = true).await;
    own(&desk, &server).await;
    desk.change("files", json!({"spec": {"percona": {"enabled": false}}}))
        .await;
    let off = desk
        .reconcile_until("files", "without a database", |server| {
            is_ready(server) && condition_text(server, ServerCondition::DatabaseReady).is_empty()
        })
        .await;
    assert_eq!(off.status.unwrap().percona_cluster_name, None);
    assert_retained(&desk).await;
    delete(&desk).await;
    reconcile_until_deleted(&desk).await;
    until_garbage_is_collected(&desk).await;
    assert_retained(&desk).await;
    assert!(desk.recorded.reasons().contains(&"PerconaOrphaned".to_owned()));
}

#[tokio::test]
async fn a_server_is_deleted_cleanly_when_the_crd_of_its_database_was_removed() {
    let world = World::start().await;
    let desk = world.desk("keep").await;
    for doomed in [false, true] {
        with_database(&desk, |server| server.spec.percona.delete_with_server = doomed).await;
        let crds: Api<CustomResourceDefinition> = Api::all(world.admin.clone());
        crds.delete(PERCONA_CRD, &DeleteParams::default()).await.unwrap();
        desk.reconcile_until("files", "without the kind", |server| {
            condition_text(server, ServerCondition::DatabaseReady) == "False PerconaNotInstalled"
        })
        .await;
        delete(&desk).await;
        reconcile_until_deleted(&desk).await;
        assert_no_delete(&desk);
        world.install_percona().await;
    }
}

#[tokio::test]
async fn the_database_is_kept_while_the_api_fails_for_minutes() {
    let world = World::start().await;
    let desk = world.desk("keep").await;
    let server = with_database(&desk, |_| {}).await;
    own(&desk, &server).await;
    delete(&desk).await;
    for rule in [
        Rule::new("databases cannot be read")
            .resource("perconapgclusters")
            .verb(Verb::Get),
        Rule::new("databases cannot be written")
            .resource("perconapgclusters")
            .writes(),
    ] {
        desk.faults.add(rule.then(Fault::unavailable()));
        // Ten minutes, far beyond the deadline: what is to be kept is not safe, so the server stays.
        for _ in 0..60 {
            desk.reconcile("files").await;
            desk.wait(10);
        }
        let held = desk.servers().get("files").await.unwrap();
        assert_eq!(condition_text(&held, ServerCondition::Deleting), "True SafePartFailed");
        assert_eq!(condition_text(&held, ServerCondition::Progressing), "True Deleting");
        desk.faults.calm();
    }
    reconcile_until_deleted(&desk).await;
    until_garbage_is_collected(&desk).await;
    assert_retained(&desk).await;
}

/// Another client makes the server own the database.
async fn own(desk: &Desk<'_>, server: &DittoServer) {
    let owner = json!({"metadata": {"ownerReferences": [server.controller_owner_ref(&())]}});
    desk.databases()
        .patch("files-postgres", &PatchParams::default(), &Patch::Merge(owner))
        .await
        .unwrap();
}

#[tokio::test]
async fn an_owner_reference_on_the_database_is_removed_while_the_server_exists() {
    let world = World::start().await;
    let desk = world.desk("keep").await;
    let mut server = with_database(&desk, |_| {}).await;
    // The reference of an older server of the same name would let garbage collection take it at once.
    for uid in [server.uid().unwrap(), "11111111-2222-3333-4444-555555555555".to_owned()] {
        server.metadata.uid = Some(uid);
        let operator = desk.run();
        own(&desk, &server).await;
        world
            .eventually("disowned", async || {
                let database = desk.databases().get_opt("files-postgres").await.unwrap()?;
                database.owner_references().is_empty().then_some(())
            })
            .await;
        drop(operator);
    }
}

#[tokio::test]
async fn a_deletion_in_the_foreground_does_not_reach_the_database() {
    let world = World::start().await;
    let desk = world.desk("keep").await;
    with_database(&desk, |_| {}).await;
    let params = DeleteParams {
        propagation_policy: Some(PropagationPolicy::Foreground),
        ..DeleteParams::default()
    };
    desk.servers().delete("files", &params).await.unwrap();
    reconcile_until_deleted(&desk).await;
    until_garbage_is_collected(&desk).await;
    assert_retained(&desk).await;
}

#[tokio::test]
async fn a_database_that_was_not_made_for_the_server_is_used_and_never_deleted() {
    let world = World::start().await;
    let desk = world.desk("keep").await;
    let theirs = json!({"apiVersion": "pgv2.percona.com/v2", "kind": "PerconaPGCluster",
        "metadata": {"name": "files-postgres"}, "spec": {"theirs": true}});
    let theirs = serde_json::from_value(theirs).unwrap();
    desk.databases()
        .create(&kube::api::PostParams::default(), &theirs)
        .await
        .unwrap();
    with_database(&desk, |server| server.spec.percona.delete_with_server = true).await;
    let before = desk.databases().get("files-postgres").await.unwrap();
    assert_eq!(before.data["spec"], json!({"theirs": true}));
    delete(&desk).await;
    reconcile_until_deleted(&desk).await;
    until_garbage_is_collected(&desk).await;
    assert_retained(&desk).await;
}

#[tokio::test]
async fn a_kept_database_is_found_again_by_a_server_of_the_same_name() {
    let world = World::start().await;
    let desk = world.desk("keep").await;
    with_database(&desk, |_| {}).await;
    let uid = desk.databases().get("files-postgres").await.unwrap().uid();
    delete(&desk).await;
    reconcile_until_deleted(&desk).await;
    with_database(&desk, |_| {}).await;
    assert_eq!(desk.databases().get("files-postgres").await.unwrap().uid(), uid);
}

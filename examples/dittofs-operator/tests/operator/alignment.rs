//! Each row of the alignment table of the operator's design, as a test.

use dittofs_operator::words::ServerCondition;
use k8s_openapi::api::core::v1::Secret;
use serde_json::json;

use crate::world::{World, is_ready, says, status};

#[tokio::test]
async fn a_server_with_a_database_becomes_ready() {
    let world = World::start().await;
    let desk = world.desk("rows").await;
    let _operator = desk.run();
    desk.create::<Secret>(json!({"metadata": {"name": "keys"}, "stringData": {"a": "1"}}))
        .await;
    desk.serve("files", |server| {
        server.spec.percona.enabled = true;
        server.spec.secret_refs = serde_json::from_value(json!([{"name": "keys"}])).unwrap();
    })
    .await;
    let waiting = desk
        .until("files", "waits for its database", |server| {
            says(server, ServerCondition::Progressing) == "True WaitingForDatabase"
        })
        .await;
    assert_eq!(says(&waiting, ServerCondition::DatabaseReady), "False PerconaNotReady");
    desk.database_is("files-postgres", "ready").await;
    let ready = desk.until("files", "is ready", is_ready).await;
    println!("{}", serde_json::to_string_pretty(&status(&ready)).unwrap());
}

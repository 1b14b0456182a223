//! `candor plan -f` plans with the object that the API server would store for the file.

use serde_json::json;

use crate::desk::Desk;

const SHOP: &str = "apiVersion: valkey.io/v1alpha1\nkind: ValkeyCluster\nmetadata: {name: shop}\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_is_planned_as_the_api_server_would_have_it() {
    let desk = Desk::set().await;
    desk.ready("shop", json!({"shards": 2, "replicas": 1})).await;
    let write = |text: String| std::fs::write(desk.folder.path().join("shop.yaml"), text).unwrap();

    // Fields that others wrote stay: applying the original file changes nothing.
    desk.run("restart shop").await.well();
    write(format!("{SHOP}spec: {{shards: 2, replicas: 1}}\n"));
    let plan = desk.run("plan -f shop.yaml").await.well();
    assert!(plan.contains("Nothing needs to be done."), "{plan}");

    for (spec, why) in [
        ("{shards: 2000, replicas: 99}", "spec.shards"),
        ("{shards: 2, replicas: 1, shardz: 3}", "shardz"),
        (
            "{shards: 2, replicas: 1, workloadType: StatefulSet}",
            "workloadType is immutable",
        ),
    ] {
        write(format!("{SHOP}spec: {spec}\n"));
        let output = desk.run("plan -f shop.yaml").await.badly();
        assert!(
            output.contains("would be rejected") && output.contains(why),
            "{spec}: {output}"
        );
    }

    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: users}\n";
    let fresh = SHOP.replace("name: shop", "name: fresh");
    write(format!(
        "{secret}---\n{SHOP}spec: {{shards: 3, replicas: 1}}\n---\n{fresh}spec: {{shards: 2, replicas: 1}}\n"
    ));
    let plan = desk.run("plan -f shop.yaml").await.well();
    for part in [
        "default/shop from 2 shards with 1 replica each to 3 shards",
        "default/fresh is new",
        "Risk: With 2 shards there is no majority",
        "Not planned, because they are no clusters: Secret/users",
    ] {
        assert!(plan.contains(part), "{part} is missing: {plan}");
    }
    let clusters = desk.json("status").await["clusters"].as_array().unwrap().len();
    assert_eq!(clusters, 1, "nothing was made");
    desk.end().await;
}

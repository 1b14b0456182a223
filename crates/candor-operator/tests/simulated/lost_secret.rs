//! The operator's own Secret is deleted or emptied while no operator was running to cache it.

use std::time::{Duration, Instant};

use candor_api::ValkeyCluster;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::support::{Operator, Stage, is_ready};

const PATIENCE: Duration = Duration::from_secs(60);
const NAME: &str = "internal-cart-system-passwords";

/// What happens to the Secret.
#[derive(Clone, Copy, Debug)]
enum Mishap {
    Deleted,
    Emptied,
}

impl Mishap {
    async fn happen(self, secrets: &Api<Secret>) {
        match self {
            Self::Deleted => drop(secrets.delete(NAME, &DeleteParams::default()).await.unwrap()),
            Self::Emptied => {
                let patch = Patch::Json::<Secret>(
                    serde_json::from_value(json!([{"op": "replace", "path": "/data", "value": {}}])).unwrap(),
                );
                secrets.patch(NAME, &PatchParams::default(), &patch).await.unwrap();
            }
        }
    }
}

fn password(secret: &Secret, user: &str) -> Option<Vec<u8>> {
    Some(secret.data.as_ref()?.get(user)?.0.clone())
}

fn status(cluster: &ValkeyCluster) -> Value {
    serde_json::to_value(&cluster.status).unwrap()
}

fn is_locked_out(cluster: &ValkeyCluster) -> bool {
    let status = status(cluster);
    status["state"] == "Failed"
        && status["reason"] == "SecretError"
        && status["message"].as_str().is_some_and(|message| {
            message.contains("Restore it from a backup") && message.contains("ACL SETUSER default on nopass")
        })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_credentials_are_recovered_through_an_open_default_user_without_a_restart() {
    let stage = Stage::set().await;
    let secrets: Api<Secret> = Api::default_namespaced(stage.client());
    let operator = Operator::start(stage.client());
    stage.create("cart", json!({"shards": 2, "replicas": 1})).await;
    stage.ready("cart").await;
    let mut operator = Some(operator);
    for mishap in [Mishap::Deleted, Mishap::Emptied] {
        operator.take().unwrap().end().await;
        let (before, pods) = (secrets.get(NAME).await.unwrap(), stage.pods_of("cart").await);
        mishap.happen(&secrets).await;
        operator = Some(Operator::start(stage.client()));
        let begun = Instant::now();
        let after = loop {
            let there = secrets.get_opt(NAME).await.unwrap();
            match there.filter(|secret| password(secret, "_operator").is_some()) {
                Some(after) => break after,
                None => assert!(begun.elapsed() < PATIENCE, "{mishap:?}: it did not come back"),
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        assert_ne!(password(&after, "_operator"), password(&before, "_operator"));
        for user in ["_exporter", "_replication"] {
            assert_eq!(password(&after, user), password(&before, user), "pods know it: {user}");
        }
        let known = String::from_utf8(password(&after, "_operator").unwrap()).unwrap();
        let admits = |ip| stage.world.inspect(ip, |node| node.users.admits("_operator", &known));
        assert!(stage.world.members().into_iter().all(|ip| admits(ip) == Some(true)));
        stage.ready("cart").await;
        assert_eq!(stage.pods_of("cart").await, pods, "{mishap:?}: nobody was replaced");
        println!("{mishap:?}: back after {:?}", begun.elapsed());
        let events = crate::events(&stage, "QuorumLost").await;
        assert!(events.is_empty(), "{events:?}");
    }
    operator.unwrap().end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_that_is_locked_out_reports_what_to_do_and_nothing_about_members() {
    let stage = Stage::set().await;
    let secrets: Api<Secret> = Api::default_namespaced(stage.client());
    let mut operator = Operator::start(stage.client());
    let closed = json!([{"name": "default", "enabled": false, "resetpass": true}]);
    stage
        .create("cart", json!({"shards": 2, "replicas": 1, "users": closed}))
        .await;
    stage.ready("cart").await;
    for mishap in [Mishap::Deleted, Mishap::Emptied] {
        operator.end().await;
        let good = secrets.get(NAME).await.unwrap();
        let before = status(&stage.clusters("default").get("cart").await.unwrap());
        mishap.happen(&secrets).await;
        operator = Operator::start(stage.client());
        stage.until("cart", "locked out", PATIENCE, is_locked_out).await;
        let after = stage.clusters("default").get("cart").await.unwrap();
        let recorded = status(&after);
        for same in ["topology", "readyShards", "shards", "formed", "observedGeneration"] {
            assert_eq!(recorded[same], before[same], "{mishap:?}: {same}");
        }
        let conditions = recorded["conditions"].as_array().unwrap();
        let kind = |kind: &str| conditions.iter().find(|one| one["type"] == kind);
        assert!(
            kind("Degraded").is_none() && kind("NodesReady").is_none(),
            "{conditions:#?}"
        );
        assert_eq!(kind("ClusterFormed").unwrap()["status"], "True");
        let there = secrets.get_opt(NAME).await.unwrap();
        let made_up = there.and_then(|secret| password(&secret, "_operator"));
        assert!(made_up.is_none(), "{mishap:?}: a backup may still come");

        // Restores the backup.
        if matches!(mishap, Mishap::Emptied) {
            secrets.delete(NAME, &DeleteParams::default()).await.unwrap();
        }
        let backup = Secret {
            metadata: kube::core::ObjectMeta {
                name: Some(NAME.to_owned()),
                labels: Some(good.labels().clone()),
                ..kube::core::ObjectMeta::default()
            },
            data: good.data.clone(),
            ..Secret::default()
        };
        secrets.create(&PostParams::default(), &backup).await.unwrap();
        stage.until("cart", "Ready", PATIENCE, is_ready).await;
    }
    operator.end().await;
}

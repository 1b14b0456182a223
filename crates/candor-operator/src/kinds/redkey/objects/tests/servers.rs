//! `StatefulSet`, Service, `ConfigMap` and `PodDisruptionBudget`.

use kube::ResourceExt;
use serde_json::{Value, json};

use super::super::{names, revision};
use super::{given, with_password};
use crate::objects::violations;

const KEPT: &str = r#"{"ephemeral": false, "purgeKeysOnRebalance": false, "storage": "2Gi"}"#;

fn kept(more: &Value) -> Value {
    let mut spec: Value = serde_json::from_str(KEPT).unwrap();
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    spec
}

#[test]
fn the_stateful_set_starts_pods_together_and_restarts_none_by_itself() {
    let set = given(json!({"primaries": 3, "replicasPerPrimary": 1})).set();
    assert_eq!(set["metadata"]["name"], "c");
    let spec = &set["spec"];
    assert_eq!(spec["replicas"], 6);
    assert_eq!(spec["serviceName"], "c");
    assert_eq!(spec["podManagementPolicy"], "Parallel");
    assert_eq!(spec["updateStrategy"], json!({"type": "OnDelete"}));
    assert!(
        spec.get("volumeClaimTemplates")
            .is_none_or(|all| all.as_array().is_none_or(Vec::is_empty))
    );
    let owner = &set["metadata"]["ownerReferences"][0];
    assert_eq!(
        (&owner["kind"], &owner["controller"]),
        (&json!("RedkeyCluster"), &json!(true))
    );
    assert!(owner.get("blockOwnerDeletion").is_none());
}

#[test]
fn labels_are_exactly_those_of_the_contract() {
    let made = given(json!({"labels": {"team": "a", "redkey-cluster-name": "stolen"}}));
    let expected = json!({
        "redkey-cluster-name": "c",
        "redis.redkeycluster.operator/component": "redis",
        "team": "a",
    });
    let objects = made.objects();
    assert_eq!(made.pod()["metadata"]["labels"], expected);
    for labels in [
        objects.config_map.labels(),
        objects.service.labels(),
        objects.stateful_set.labels(),
    ] {
        assert_eq!(json!(labels), expected);
    }
    let selector = json!({"redkey-cluster-name": "c", "redis.redkeycluster.operator/component": "redis"});
    assert_eq!(made.set()["spec"]["selector"], json!({"matchLabels": selector}));
    assert_eq!(
        names::selector_text(&names::server_selector("c")),
        "redis.redkeycluster.operator/component=redis,redkey-cluster-name=c"
    );
    let mut of_robin = expected;
    of_robin["redis.redkeycluster.operator/component"] = json!("robin");
    assert_eq!(made.robin()["metadata"]["labels"], of_robin);
}

#[test]
fn storage_becomes_the_claim_template_data() {
    let set = given(kept(
        &json!({"storageClassName": "fast", "accessModes": ["ReadWriteMany"]}),
    ))
    .set();
    let claim = &set["spec"]["volumeClaimTemplates"][0];
    assert_eq!(claim["metadata"]["name"], "data");
    assert_eq!(claim["spec"]["accessModes"], json!(["ReadWriteMany"]));
    assert_eq!(claim["spec"]["resources"]["requests"]["storage"], "2Gi");
    assert_eq!(claim["spec"]["storageClassName"], "fast");
    let names: Vec<&str> = set["spec"]["template"]["spec"]["volumes"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|volume| volume["name"].as_str())
        .collect();
    assert_eq!(names, ["config", "credentials"], "the claim is the volume data");
    let plain = given(kept(&json!({}))).set();
    let claim = &plain["spec"]["volumeClaimTemplates"][0]["spec"];
    assert_eq!(claim["accessModes"], json!(["ReadWriteOnce"]));
    assert!(claim.get("storageClassName").is_none(), "the cluster's default class");
}

#[test]
fn resources_are_those_of_the_spec_or_follow_from_maxmemory() {
    let resources = |spec: Value| given(spec).pod()["spec"]["containers"][0]["resources"].clone();
    let default = json!({"cpu": "1", "memory": "1900Mi"});
    assert_eq!(resources(json!({})), json!({"requests": default, "limits": default}));
    assert_eq!(
        resources(json!({"config": "maxmemory 90mb"}))["limits"]["memory"],
        json!("390Mi")
    );
    let own = json!({"limits": {"cpu": "100m", "memory": "128Mi"}});
    assert_eq!(resources(json!({"resources": own})), own);
}

#[test]
fn the_server_starts_by_the_script_that_guards_against_an_empty_restart() {
    let made = given(json!({"image": "redis:7"}));
    let container = made.pod()["spec"]["containers"][0].clone();
    assert_eq!(container["image"], "redis:7");
    assert_eq!(
        container["command"],
        json!([
            "sh",
            "/scripts/start.sh",
            "/conf/redis.conf",
            "--include",
            "/credentials/auth.conf"
        ])
    );
    let data = made.objects().config_map.data.unwrap();
    for script in ["lib.sh", "guard.sh", "start.sh", "alive.sh", "ready.sh", "joined.sh"] {
        assert!(data.contains_key(script), "{script}");
    }
    let env = |spec: Value| given(spec).pod()["spec"]["containers"][0]["env"][1].clone();
    assert_eq!(env(json!({})), json!({"name": "VALKEY_DATA", "value": "kept"}));
    assert_eq!(env(json!({"config": "appendonly no"}))["value"], "lost");
    assert_eq!(env(kept(&json!({"config": "appendonly no"})))["value"], "kept");
    let ports = &container["ports"];
    assert_eq!(
        (&ports[0]["name"], &ports[0]["containerPort"], &ports[1]["name"]),
        (&json!("client"), &json!(6379), &json!("gossip"))
    );
}

#[test]
fn every_pod_meets_the_restricted_standard() {
    let made = given(json!({}));
    for pod in [made.pod(), made.robin()] {
        assert_eq!(violations(&pod), Vec::<String>::new());
    }
}

#[test]
fn the_service_is_headless_with_the_single_port_client() {
    let service = json!(given(json!({})).objects().service);
    assert_eq!(service["spec"]["clusterIP"], "None");
    assert_eq!(
        service["spec"]["ports"],
        json!([{"name": "client", "port": 6379, "protocol": "TCP", "targetPort": 6379}])
    );
}

#[test]
fn the_budget_is_there_only_when_enabled_and_with_more_than_one_primary() {
    let budget = |pdb: Value, primaries: i32| {
        let objects = given(json!({"primaries": primaries, "pdb": pdb})).objects();
        objects.budget.map(|one| {
            assert_eq!(one.name_any(), "c-pdb");
            let spec = json!(one)["spec"].clone();
            (spec["maxUnavailable"].clone(), spec["minAvailable"].clone())
        })
    };
    let on = |more: Value| {
        let mut pdb = json!({"enabled": true});
        pdb.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        pdb
    };
    assert_eq!(budget(json!({}), 3), None);
    assert_eq!(budget(json!({"enabled": false}), 3), None);
    assert_eq!(budget(on(json!({})), 1), None);
    assert_eq!(budget(on(json!({})), 3), Some((json!(1), Value::Null)));
    let both = json!({"pdbSizeUnavailable": "50%", "pdbSizeAvailable": 2});
    assert_eq!(budget(on(both), 3), Some((json!("50%"), Value::Null)));
    let zero = json!({"pdbSizeUnavailable": 0, "pdbSizeAvailable": "2"});
    assert_eq!(budget(on(zero), 3), Some((Value::Null, json!(2))));
}

#[test]
fn hibernation_stops_robin_and_needs_no_budget() {
    let objects = given(json!({"primaries": 0, "pdb": {"enabled": true}})).objects();
    assert_eq!(objects.stateful_set.spec.unwrap().replicas, Some(0));
    assert_eq!(objects.robin.deployment.spec.unwrap().replicas, Some(0));
    assert!(objects.budget.is_none());
}

#[test]
fn the_revision_changes_with_what_restarts_servers_and_with_nothing_else() {
    let of = |spec: Value| {
        let made = given(spec);
        revision(&made.cluster.spec, &made.config)
    };
    let plain = of(json!({}));
    for same in [
        json!({"primaries": 7, "replicasPerPrimary": 2}),
        json!({"purgeKeysOnRebalance": false}),
        json!({"pdb": {"enabled": true}}),
        json!({"config": "# a note\nrequirepass secret\nport 1\nmaxmemory 1600mb"}),
        json!({"robin": {"template": {"metadata": {"labels": {"a": "b"}}}}}),
        json!({"override": {"service": {"metadata": {"labels": {"a": "b"}}}}}),
        json!({"paused": true, "image": ""}),
    ] {
        assert_eq!(of(same.clone()), plain, "{same}");
    }
    for other in [
        json!({"image": "redis:7"}),
        json!({"config": "maxmemory 1gb"}),
        json!({"labels": {"a": "b"}}),
        json!({"resources": {"limits": {"cpu": "1"}}}),
        json!({"override": {"statefulSet": {"spec": {"template": {"spec": {"priorityClassName": "high"}}}}}}),
    ] {
        assert_ne!(of(other.clone()), plain, "{other}");
    }
}

#[test]
fn no_password_stands_in_anything_but_the_secret() {
    for (spec, password) in [
        (
            json!({"config": "requirepass of-the-text\nmasterauth of-the-text"}),
            None,
        ),
        (json!({"auth": {"secret": "s"}}), Some("of-the-text")),
    ] {
        let made = with_password(spec, password);
        let mut objects = made.objects();
        assert_eq!(super::text(&objects.robin.secret, "requirepass"), "of-the-text");
        objects.robin.secret = k8s_openapi::api::core::v1::Secret::default();
        assert!(!format!("{objects:?}").contains("of-the-text"));
    }
}

#[test]
fn ordinals_are_read_from_the_names_of_pods() {
    assert_eq!(names::ordinal("c", "c-12"), Some(12));
    for other in ["c", "c-", "c-x", "c-01", "d-1", "c-robin-1", "c-1-2"] {
        assert_eq!(names::ordinal("c", other), None, "{other}");
    }
}

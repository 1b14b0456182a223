//! What is kept of a `StatefulSet` of the existing operator.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::super::{ADOPTED, Inputs, Kept, REVISION, adopted, build, is_current, revision};
use super::{Given, given, with_password};

/// The `StatefulSet` of the existing operator.
fn live(image: &str) -> StatefulSet {
    let labels = json!({"redkey-cluster-name": "c", "app": "redis"});
    let server = json!({"name": "redis", "image": image, "command": ["redis-server", "/conf/redis.conf"],
        "resources": {"limits": {"memory": "1Gi"}}});
    let set = json!({
        "metadata": {"name": "c", "labels": labels},
        "spec": {"replicas": 3, "serviceName": "headless", "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [server]}}},
    });
    serde_json::from_value(set).expect("a StatefulSet")
}

fn pod(image: &str, own: Option<&str>) -> Pod {
    let annotations = own.map_or(json!({}), |own| json!({(REVISION): own}));
    let pod = json!({"metadata": {"annotations": annotations},
        "spec": {"containers": [{"name": "redis", "image": image}]}});
    serde_json::from_value(pod).expect("a pod")
}

/// The desired objects, given what is live.
fn objects(given: &Given, live: &StatefulSet) -> (Value, Value, Value) {
    let revision = revision(&given.cluster.spec, &given.config);
    let kept = Kept::of(live, &given.cluster.spec, &revision, std::iter::empty());
    let inputs = Inputs {
        kept: kept.as_ref(),
        ..given.inputs()
    };
    let objects = build(&inputs).expect("objects");
    (
        json!(objects.stateful_set),
        json!(objects.service),
        json!(objects.config_map),
    )
}

#[test]
fn selector_service_name_and_template_are_kept_until_an_upgrade() {
    let given = given(json!({"image": "redis:8", "purgeKeysOnRebalance": false}));
    let live = live("redis:8");
    let (set, service, _) = objects(&given, &live);
    let theirs = json!(live);
    for field in ["selector", "serviceName", "template"] {
        assert_eq!(set["spec"][field], theirs["spec"][field], "{field}");
    }
    assert_eq!(set["spec"]["updateStrategy"], json!({"type": "OnDelete"}));
    assert_eq!(service["spec"]["selector"], theirs["spec"]["selector"]["matchLabels"]);

    // Another image: the operator's own template, with the labels that the selector needs.
    let newer = super::given(json!({"image": "redis:9", "purgeKeysOnRebalance": false}));
    let mut taken = live.clone();
    let before = revision(&given.cluster.spec, &given.config);
    let annotations = [(REVISION.to_owned(), before.clone()), (ADOPTED.to_owned(), before)];
    taken.metadata.annotations = Some(annotations.into());
    let (set, ..) = objects(&newer, &taken);
    assert_eq!(set["spec"]["selector"], theirs["spec"]["selector"]);
    let template = &set["spec"]["template"];
    assert_eq!(template["spec"]["containers"][0]["image"], "redis:9");
    assert_eq!(template["metadata"]["labels"]["app"], "redis");
    assert!(template["metadata"]["annotations"][REVISION].is_string());
}

#[test]
fn a_password_stays_in_the_configuration_as_long_as_servers_read_it_there() {
    let given = with_password(json!({"purgeKeysOnRebalance": false}), Some("secret"));
    let mut live = live("redis:8");
    let (.., config) = objects(&given, &live);
    let file = config["data"]["redis.conf"].as_str().expect("a file");
    assert!(
        file.ends_with("requirepass \"secret\"\nmasterauth \"secret\"\n"),
        "{file}"
    );

    // The template is the operator's own, and no pod is left of the old one.
    let own = json!({"annotations": {(REVISION): "r"}});
    let spec = live.spec.as_mut().expect("a spec");
    spec.template.metadata = serde_json::from_value(own).expect("metadata");
    live.metadata.annotations = Some(
        [
            (REVISION.to_owned(), "r".to_owned()),
            (ADOPTED.to_owned(), "o".to_owned()),
        ]
        .into(),
    );
    let (.., config) = objects(&given, &live);
    assert!(!config.to_string().contains("secret"), "{config}");
}

#[test]
fn a_set_stands_for_the_spec_if_it_has_its_image_and_resources() {
    let table = [
        (json!({"purgeKeysOnRebalance": false}), "r"),
        (json!({"purgeKeysOnRebalance": false, "image": "redis:8"}), "r"),
        (json!({"purgeKeysOnRebalance": false, "image": "redis:9"}), "outdated"),
        (
            json!({"purgeKeysOnRebalance": false, "resources": {"limits": {"memory": "1024Mi"}}}),
            "r",
        ),
        (
            json!({"purgeKeysOnRebalance": false, "resources": {"limits": {"memory": "2Gi"}}}),
            "outdated",
        ),
        // An upgrade would purge the keys: it waits for an edit.
        (json!({"purgeKeysOnRebalance": true, "image": "redis:9"}), "r"),
    ];
    for (spec, expected) in table {
        let given = given(spec.clone());
        let found = adopted(&live("redis:8"), &given.cluster.spec, "r");
        assert_eq!(found.as_deref(), Some(expected), "{spec}");
    }
    let mut ours = live("redis:8");
    ours.metadata.annotations = Some([(REVISION.to_owned(), "r".to_owned())].into());
    assert_eq!(
        adopted(&ours, &given(json!({})).cluster.spec, "r"),
        None,
        "it was created here"
    );
}

#[test]
fn pods_of_the_existing_operator_are_current_if_they_have_what_the_spec_names() {
    let slow = given(json!({"purgeKeysOnRebalance": false, "image": "redis:9"}))
        .cluster
        .spec;
    let fast = given(json!({"purgeKeysOnRebalance": true, "image": "redis:9"}))
        .cluster
        .spec;
    let (old, new) = (pod("redis:8", None), pod("redis:9", None));
    assert!(is_current(&new, Some("r"), &slow, "r"));
    assert!(
        !is_current(&old, Some("r"), &slow, "r"),
        "their upgrade had not reached it"
    );
    assert!(
        is_current(&old, Some("r"), &fast, "r"),
        "it is not replaced, because that would purge keys"
    );
    assert!(!is_current(&new, Some("r"), &slow, "later"));
    assert!(!is_current(&new, None, &slow, "r"));
    assert!(is_current(&pod("redis:9", Some("r")), None, &slow, "r"));
}

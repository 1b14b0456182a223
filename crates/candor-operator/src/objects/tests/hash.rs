//! The template hash changes with everything that needs a restart, and with nothing else.

use k8s_openapi::api::core::v1::PodTemplateSpec;
use serde_json::{Value, json};

use super::{at, given};
use crate::objects::labels::TEMPLATE_HASH;
use crate::objects::pod::TemplateVersion;
use crate::objects::workload::member_with;
use crate::objects::{Inputs, Remembered, WorkloadObject, labels, member_beside};

fn hash(spec: Value) -> String {
    of(&given(spec))
}

fn of(given: &super::Given) -> String {
    given.pod()["metadata"]["annotations"][TEMPLATE_HASH]
        .as_str()
        .expect("a hash")
        .to_owned()
}

#[test]
fn the_hash_moves_with_what_needs_a_restart() {
    let plain = hash(json!({}));
    let restarts = [
        json!({"image": "valkey/valkey:8.0"}),
        json!({"resources": {"limits": {"memory": "1Gi"}}}),
        json!({"config": {"io-threads": "4"}}),
        json!({"config": {"databases": "1"}}),
        json!({"exporter": {"enabled": false}}),
        json!({"containers": [{"name": "x", "image": "y"}]}),
        json!({"terminationGracePeriodSeconds": 9}),
        json!({"scheduling": {"nodeSelector": {"a": "b"}}}),
        json!({"podSecurityContext": {"fsGroup": 3}}),
        json!({"networking": {"tls": {"certificates": {"server": {"secretName": "t"}}}}}),
    ];
    for spec in restarts {
        assert_ne!(hash(spec.clone()), plain, "{spec}");
    }
    let live = [
        json!({"shards": 3}),
        json!({"replicas": 2}),
        json!({"config": {"maxmemory": "100mb"}}),
        json!({"config": {"hz": "20", "slowlog-max-len": "1", "unheard-of": "x"}}),
        json!({"users": [{"name": "a", "nopass": true}]}),
        json!({"podDisruptionBudget": {"mode": "Disabled"}}),
        json!({"paused": true}),
    ];
    for spec in live {
        assert_eq!(hash(spec.clone()), plain, "{spec}");
    }
}

#[test]
fn a_larger_volume_restarts_no_member() {
    let of = |size: &str| hash(json!({"persistence": {"size": size}}));
    assert_eq!(of("1Gi"), of("2Gi"));
}

#[test]
fn members_of_one_cluster_have_hashes_of_their_own_and_workload_and_pod_agree() {
    let given = given(json!({"shards": 2}));
    let (one, two) = (given.workload(at(0, 0)).unwrap(), given.workload(at(1, 0)).unwrap());
    assert_ne!(
        one["metadata"]["annotations"][TEMPLATE_HASH],
        two["metadata"]["annotations"][TEMPLATE_HASH]
    );
    let pod = &one["spec"]["template"]["metadata"]["annotations"][TEMPLATE_HASH];
    assert_eq!(&one["metadata"]["annotations"][TEMPLATE_HASH], pod);
}

#[test]
fn a_key_without_a_known_default_is_put_back_by_a_restart() {
    let set = given(json!({"config": {"search.workers": "4", "hz": "20"}}));
    let map: k8s_openapi::api::core::v1::ConfigMap =
        serde_json::from_value(set.shared().unwrap()["config"].clone()).unwrap();
    assert_eq!(
        map.metadata.annotations.as_ref().unwrap()[labels::SET_BEFORE],
        "hz,search.workers"
    );
    let plain = given(json!({}));
    let mut reverted = given(json!({}));
    reverted.remembered = Remembered::from_config_map(Some(&map));
    assert_ne!(of(&reverted), of(&plain), "search.workers has no default that we know");
    assert_eq!(reverted.remembered.lost(&reverted.cluster), ["search.workers"]);
    reverted.remembered.forget("search.workers");
    assert_eq!(of(&reverted), of(&plain), "no server ever took it");
    let mut still = given(json!({"config": {"search.workers": "4"}}));
    still.remembered = Remembered::from_config_map(Some(&map));
    assert_eq!(of(&still), of(&plain), "hz goes back while the server runs");
    assert_eq!(still.settings().config["hz"], "10");
}

#[test]
fn the_same_spec_gives_the_same_bytes() {
    let spec = json!({
        "shards": 3, "replicas": 1, "config": {"hz": "20", "databases": "2"},
        "users": [{"name": "b", "nopass": true}, {"name": "a", "nopass": true}],
        "scheduling": {"nodeSelector": {"z": "1", "a": "2"}}, "containers": [{"name": "x", "image": "y"}],
    });
    let text = || {
        let given = given(spec.clone());
        let shared: Vec<String> = given.shared().unwrap().values().map(ToString::to_string).collect();
        format!("{shared:?}{}", given.workload(at(1, 1)).unwrap())
    };
    assert_eq!(text(), text());
}

#[test]
fn a_wish_to_restart_is_a_restart_and_the_same_wish_is_none() {
    let wished = |at: &str| {
        let mut given = given(json!({}));
        let annotations = given.cluster.metadata.annotations.get_or_insert_default();
        annotations.insert(candor_api::valkey::RESTARTED_AT.to_owned(), at.to_owned());
        of(&given)
    };
    assert_ne!(wished("2026-02-05T10:00:00Z"), hash(json!({})));
    assert_eq!(wished("2026-02-05T10:00:00Z"), wished("2026-02-05T10:00:00Z"));
    assert_ne!(wished("2026-02-05T10:00:00Z"), wished("2026-02-05T10:00:01Z"));
}

#[test]
fn a_new_operator_restarts_no_member_and_its_exporter_comes_with_the_next_roll() {
    let templates = |given: &super::Given, image: &str, live: Option<&PodTemplateSpec>| {
        let inputs = Inputs {
            exporter_image: image,
            ..given.inputs()
        };
        match member_beside(&inputs, at(0, 0), live).unwrap().workload {
            WorkloadObject::Deployment(one) => one.spec.unwrap().template,
            WorkloadObject::StatefulSet(one) => one.spec.unwrap().template,
        }
    };
    for spec in [json!({}), json!({"persistence": {"size": "1Gi"}})] {
        let given = given(spec.clone());
        let first = templates(&given, "candor:1", None);
        assert_eq!(
            templates(&given, "candor:2", Some(&first)),
            first,
            "nothing to restart for"
        );
        let mut changed = spec;
        changed["image"] = json!("valkey/valkey:8.0");
        let rolled = templates(&super::given(changed), "candor:2", Some(&first));
        let images: Vec<_> = rolled
            .spec
            .unwrap()
            .containers
            .into_iter()
            .map(|one| one.image.unwrap())
            .collect();
        assert_eq!(images, ["valkey/valkey:8.0", "candor:2"]);
    }
}

#[test]
fn a_label_or_an_annotation_restarts_no_member_and_reaches_pods_with_the_next_roll() {
    let labelled = |spec: serde_json::Value, team: &str| {
        let mut given = given(spec);
        let message = || Some([("team".to_owned(), team.to_owned())].into());
        (given.cluster.metadata.labels, given.cluster.metadata.annotations) = (message(), message());
        given
    };
    let made = |given: &super::Given, live: Option<&PodTemplateSpec>| {
        let workload = member_beside(&given.inputs(), at(0, 0), live).unwrap().workload;
        let hash = workload.template_hash().to_owned();
        match workload {
            WorkloadObject::Deployment(one) => (one.metadata, one.spec.unwrap().template, hash),
            WorkloadObject::StatefulSet(one) => (one.metadata, one.spec.unwrap().template, hash),
        }
    };
    for spec in [json!({}), json!({"persistence": {"size": "1Gi"}})] {
        let (_, first, hash) = made(&labelled(spec.clone(), "red"), None);
        let (metadata, kept, same) = made(&labelled(spec.clone(), "blue"), Some(&first));
        assert_eq!((kept, same), (first.clone(), hash), "nothing to restart for");
        assert_eq!(metadata.labels.unwrap()["team"], "blue", "the workload has it at once");
        assert_eq!(metadata.annotations.unwrap()["team"], "blue");
        let mut changed = spec;
        changed["image"] = json!("valkey/valkey:8.0");
        let (_, rolled, _) = made(&labelled(changed, "blue"), Some(&first));
        assert_eq!(rolled.metadata.unwrap().labels.unwrap()["team"], "blue");
    }
}

fn template(workload: &WorkloadObject) -> PodTemplateSpec {
    workload.template().expect("a template").clone()
}

/// The template hash of a cluster with default settings. A change here restarts every member of every cluster at an
/// operator upgrade, unless the previous template is added to [`TemplateVersion`]. Otherwise announce the change in
/// docs/upgrades.md.
#[test]
fn the_templates_of_this_version_and_of_the_released_one_are_still_made() {
    let made = |version| {
        let given = given(json!({}));
        let workload = member_with(&given.inputs(), at(0, 0), version).unwrap().workload;
        workload.template_hash().to_owned()
    };
    assert_eq!(made(TemplateVersion::Release0_1_0), "3b0667d777d8e642");
    assert_eq!(made(TemplateVersion::Current), "1d544f7ec96bbb9b");
}

#[test]
fn a_member_of_the_released_version_keeps_its_template_until_it_is_rolled() {
    for spec in [
        json!({}),
        json!({"persistence": {"size": "1Gi"}}),
        json!({"exporter": {"enabled": false}}),
        json!({"exporter": {"image": "another"}}),
        json!({"networking": {"tls": {"certificates": {"server": {"secretName": "t"}}}}}),
    ] {
        let first = given(spec.clone());
        let then = Inputs {
            exporter_image: "candor:0",
            ..first.inputs()
        };
        let then = member_with(&then, at(0, 0), TemplateVersion::Release0_1_0).unwrap();
        let then = template(&then.workload);
        let now = member_beside(&first.inputs(), at(0, 0), Some(&then)).unwrap();
        assert_eq!(template(&now.workload), then, "{spec}: nothing to restart for");
        let mut changed = spec;
        changed["image"] = json!("valkey/valkey:8.0");
        let changed = given(changed);
        let rolled = template(
            &member_beside(&changed.inputs(), at(0, 0), Some(&then))
                .unwrap()
                .workload,
        );
        let fresh = template(&member_beside(&changed.inputs(), at(0, 0), None).unwrap().workload);
        assert_eq!(rolled, fresh, "a roll brings the probes of this version");
        assert_ne!(
            rolled.spec.unwrap().containers[0].readiness_probe,
            then.spec.unwrap().containers[0].readiness_probe
        );
    }
}

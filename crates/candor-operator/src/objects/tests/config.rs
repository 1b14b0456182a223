//! The configuration: defaults, keys of the spec, precedence, and settings of running servers.

use serde_json::{Value, json};
use valkey_admin::Version;
use valkey_admin::ids::Family;

use super::given;
use crate::objects::Remembered;

fn conf(spec: Value) -> Vec<String> {
    given(spec).conf()
}

#[test]
fn defaults_stand_in_the_file_and_the_persons_keys_win() {
    let table = [
        (json!({}), "cluster-node-timeout 5000"),
        (
            json!({"config": {"cluster-node-timeout": "9000"}}),
            "cluster-node-timeout 9000",
        ),
        (json!({}), "cluster-replica-validity-factor 0"),
        (
            json!({"persistence": {"size": "1Gi"}}),
            "cluster-replica-validity-factor 10",
        ),
        (json!({}), "cluster-allow-replica-migration no"),
        (json!({}), "repl-diskless-sync-delay 0"),
        (json!({}), "repl-diskless-load on-empty-db"),
        (json!({}), "replica-ignore-disk-write-errors yes"),
        (json!({}), "protected-mode no"),
        (json!({}), "appendonly no"),
        (json!({}), "save \"\""),
        (json!({"persistence": {"size": "1Gi"}}), "appendonly yes"),
        (
            json!({"persistence": {"size": "1Gi"}, "config": {"appendonly": "no"}}),
            "appendonly no",
        ),
        (json!({"config": {"save": "900 1"}}), "save 900 1"),
        (json!({"config": {"SAVE": "900 1"}}), "save 900 1"),
        (json!({"config": {"save": ""}}), "save \"\""),
        (
            json!({"config": {"proc-title-template": "{title} \"x\""}}),
            "proc-title-template \"{title} \\\"x\\\"\"",
        ),
        (
            json!({"resources": {"limits": {"memory": "1Gi"}}}),
            "maxmemory 805306368",
        ),
        (
            json!({"resources": {"limits": {"memory": "1Gi"}}, "config": {"maxmemory": "1gb"}}),
            "maxmemory 1gb",
        ),
        (json!({}), "cluster-enabled yes"),
        (json!({}), "dir /data"),
        (json!({}), "port 6379"),
        (json!({}), "aclfile /config/users/users.acl"),
    ];
    for (spec, line) in table {
        let conf = conf(spec.clone());
        assert_eq!(
            conf.iter().filter(|have| *have == line).count(),
            1,
            "{spec}: {line} in {conf:#?}"
        );
        let key = line.split(' ').next().unwrap();
        let same = conf.iter().filter(|have| have.split(' ').next() == Some(key)).count();
        assert_eq!(same, 1, "{key} stands once in {conf:#?}");
    }
}

#[test]
fn owned_keys_and_broken_values_are_refused_with_what_to_do() {
    let table = [
        ("Port", "1", "the operator owns this key"),
        ("TLS-port", "1", "TLS is set under networking.tls"),
        ("cluster-announce-ip", "1", "members announce"),
        ("requirepass", "x", "put the password into a Secret"),
        ("masterauth", "x", "members have a user of their own"),
        ("daemonize", "yes", "the server is the container's process"),
        ("include", "/x", "write the keys themselves"),
        ("hz", "10\nport 1", "line end"),
        ("hz ", "10", "not the name of a configuration key"),
        ("a b", "10", "not the name of a configuration key"),
    ];
    for (key, value, message) in table {
        let problem = given(json!({"config": {key: value}})).shared().unwrap_err().to_string();
        assert!(
            problem.starts_with("spec.config[") && problem.contains(message),
            "{key}: {problem}"
        );
    }
}

#[test]
fn running_servers_get_the_settings_that_can_be_changed_live() {
    let mut given = given(json!({
        "config": {"hz": "20", "io-threads": "4", "unheard-of": "x", "proc-title-template": "\"{title} x\""},
    }));
    let told = given.settings().config;
    assert_eq!(told["hz"], "20");
    assert_eq!(told["unheard-of"], "x", "the server itself says what it thinks of it");
    assert_eq!(told["cluster-node-timeout"], "5000");
    assert_eq!(told["proc-title-template"], "{title} x");
    assert!(!told.contains_key("io-threads"));
    assert!(!told.contains_key("port") && !told.contains_key("aclfile"));
    assert!(!told.contains_key("shutdown-on-sigterm"));
    given.version = Some(Version::parse(Family::Valkey, "9.1.2").unwrap());
    assert_eq!(given.settings().config["shutdown-on-sigterm"], "failover");
    given.version = Some(Version::parse(Family::Valkey, "8.0.1").unwrap());
    assert!(!given.settings().config.contains_key("shutdown-on-sigterm"));
}

#[test]
fn a_key_that_is_set_no_longer_goes_back_to_its_default() {
    let before = given(json!({
        "config": {"hz": "20", "cluster-node-timeout": "9000", "io-threads": "2"},
        "resources": {"limits": {"memory": "1Gi"}},
        "users": [{"name": "default", "resetpass": true}],
    }));
    let map = serde_json::from_value(before.shared().unwrap()["config"].clone()).unwrap();
    let mut after = given(json!({}));
    assert!(!after.settings().config.contains_key("hz"));
    assert!(!after.settings().users.contains_key("default"));
    after.remembered = Remembered::from_config_map(Some(&map));
    let told = after.settings();
    assert_eq!(told.config["hz"], "10");
    assert_eq!(told.config["maxmemory"], "0");
    assert_eq!(
        told.config["cluster-node-timeout"], "5000",
        "the operator's default, not the server's"
    );
    assert_eq!(told.users["default"], ["reset", "on", "nopass", "~*", "&*", "+@all"]);
    let again = after.shared().unwrap();
    assert_eq!(
        again["config"]["metadata"]["annotations"],
        json!(map.metadata.annotations),
        "it is never forgotten"
    );
}

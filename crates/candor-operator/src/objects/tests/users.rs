//! Users as ACL rules.

use serde_json::{Value, json};
use valkey_admin::Version;
use valkey_admin::ids::Family;

use super::given;

/// The SHA-256 of `one` and `two`.
const ONE: &str = "#7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed";
const TWO: &str = "#3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3";

fn rules(user: &Value) -> String {
    let given = given(json!({"users": [user]}))
        .secret("c-users", &[("alice", "one\n"), ("empty", "")])
        .secret("other", &[("old", "one"), ("new", "two")]);
    given.settings().users["alice"].join(" ")
}

#[test]
fn every_field_of_a_user_becomes_its_rules() {
    let table = [
        (json!({"name": "alice"}), format!("reset on {ONE} resetchannels")),
        (
            json!({"name": "alice", "enabled": false}),
            "reset off resetchannels".to_owned(),
        ),
        (
            json!({"name": "alice", "nopass": true}),
            "reset on nopass resetchannels".to_owned(),
        ),
        (
            json!({"name": "alice", "resetpass": true}),
            "reset on resetpass resetchannels".to_owned(),
        ),
        (
            json!({"name": "alice", "passwordSecret": {"name": "other", "keys": ["old", "new"]}}),
            format!("reset on {ONE} {TWO} resetchannels"),
        ),
        (
            json!({"name": "alice", "nopass": true, "commands": {"allow": ["@read", "+get"], "deny": ["keys"]}}),
            "reset on nopass +@read +get -keys resetchannels".to_owned(),
        ),
        (
            json!({"name": "alice", "nopass": true, "keys": {"readWrite": ["a:*"], "readOnly": ["b:*"], "writeOnly": ["c:*"]}}),
            "reset on nopass ~a:* %R~b:* %W~c:* resetchannels".to_owned(),
        ),
        (
            json!({"name": "alice", "nopass": true, "channels": {"patterns": ["news.*"]}}),
            "reset on nopass resetchannels &news.*".to_owned(),
        ),
        (
            json!({"name": "alice", "nopass": true, "permissions": "+@all  -@dangerous ~*"}),
            "reset on nopass resetchannels +@all -@dangerous ~*".to_owned(),
        ),
        (
            json!({"name": "alice", "nopass": true, "permissions": "(+get ~a:* %RW~b:*) skip-sanitize-payload"}),
            "reset on nopass resetchannels (+get ~a:* %RW~b:*) skip-sanitize-payload".to_owned(),
        ),
        (
            json!({"name": "alice", "permissions": ">one +get"}),
            format!("reset on resetchannels {ONE} +get"),
        ),
    ];
    for (user, expected) in table {
        assert_eq!(rules(&user), expected, "{user}");
    }
}

#[test]
fn the_file_has_the_same_users_and_leaves_default_alone() {
    let given = given(json!({"users": [{"name": "alice", "nopass": true, "commands": {"allow": ["get"]}}]}));
    let objects = given.shared().unwrap();
    let secret: k8s_openapi::api::core::v1::Secret = serde_json::from_value(objects["acl"].clone()).unwrap();
    let text = String::from_utf8(secret.data.unwrap()["users.acl"].0.clone()).unwrap();
    let names: Vec<&str> = text.lines().map(|line| line.split(' ').nth(1).unwrap()).collect();
    assert_eq!(names, ["_exporter", "_operator", "_replication", "alice"]);
    assert!(text.contains("user alice on nopass +get resetchannels\n"), "{text}");
    assert!(!text.contains("reset "), "{text}");
}

#[test]
fn the_migrator_is_there_only_where_slots_cannot_move_themselves() {
    let mut given = given(json!({}));
    let table = [
        (None, false),
        (Some(Version::parse(Family::Valkey, "9.1.2").unwrap()), false),
        (Some(Version::parse(Family::Valkey, "8.0.1").unwrap()), true),
        (Some(Version::parse(Family::Redis, "7.0.15").unwrap()), true),
    ];
    for (version, there) in table {
        given.version = version;
        assert_eq!(given.settings().users.contains_key("_migrator"), there, "{version:?}");
    }
}

#[test]
fn what_is_missing_is_named() {
    let table = [
        (
            json!({"name": "bob"}),
            "Secret c-users has nothing under the key bob: it holds the password of the user bob",
        ),
        (
            json!({"name": "empty"}),
            "Secret c-users has an empty value under the key empty: it holds the password of the user empty",
        ),
        (
            json!({"name": "bob", "passwordSecret": {"name": "nowhere"}}),
            "Secret nowhere is missing: it holds the password of the user bob under the key bob; create it in the cluster's namespace",
        ),
        (
            json!({"name": "bob", "nopass": true, "keys": {"readWrite": ["a b"]}}),
            "spec.users[bob]: \"~a b\" has a space in it: ACL rules are single words",
        ),
        (
            json!({"name": "bob", "nopass": true, "permissions": "+get all-keys"}),
            "spec.users[bob].permissions: \"all-keys\" is no ACL rule; write one of +command, -command, +@category, \
             ~pattern, %R~pattern, &channel, on, off, nopass …",
        ),
    ];
    for (user, message) in table {
        let given = given(json!({"users": [user]})).secret("c-users", &[("empty", "")]);
        let problem = super::settings(&given.inputs()).unwrap_err();
        assert_eq!(problem.to_string(), message);
        assert_eq!(problem.is_missing(), message.starts_with("Secret"));
        assert!(given.shared().is_err(), "the file needs it too");
    }
}

#[test]
fn the_secrets_a_spec_names_are_known() {
    let spec = json!({
        "users": [{"name": "a"}, {"name": "b", "nopass": true}, {"name": "d", "passwordSecret": {"name": "x"}}],
        "networking": {"tls": {"certificates": {"server": {"secretName": "t"}}}},
    });
    let names: Vec<String> = crate::objects::referenced_secrets(&given(spec).cluster)
        .into_iter()
        .collect();
    assert_eq!(names, ["c-users", "t", "x"]);
}

//! The CEL rules, and a spec that violates each of them.

use serde_json::Value;

/// A violation of a rule.
pub struct Violation {
    /// The message of the rule.
    pub message: &'static str,
    /// The spec before the change, if the rule is about a change.
    pub before: Option<&'static str>,
    /// The spec that violates the rule.
    pub wrong: &'static str,
    /// The violation is the length of the cluster's name.
    pub long_name: bool,
}

pub const fn made(message: &'static str, wrong: &'static str) -> Violation {
    let (before, long_name) = (None, false);
    Violation {
        message,
        before,
        wrong,
        long_name,
    }
}

pub const fn changed(message: &'static str, before: &'static str, wrong: &'static str) -> Violation {
    let (before, long_name) = (Some(before), false);
    Violation {
        message,
        before,
        wrong,
        long_name,
    }
}

const OWNED: &str = "config may not set cluster-enabled, cluster-config-file, dir, port, aclfile, tls-* or \
    cluster-announce-*: the operator owns them; remove the key (TLS is set under networking.tls)";
const TLS: &str = "networking.tls cannot be added or removed after creation: members with and without it cannot talk to \
    each other; make a second cluster";
const SECURE: &str =
    r#"{"shards": 1, "networking": {"tls": {"certificates": {"server": {"secretName": "certificate"}}}}}"#;
const QUANTITY: &str = "write a quantity of 0 or more: a number with an optional unit, such as 500m, 2 or 10Gi";
const CONTAINER: &str = "a container's name has lower-case letters, digits and dashes, and begins and ends with a \
    letter or digit, such as server";
const INVISIBLE: &str = "a user's name has no control characters and no invisible ones in it: remove them";
const VALID: &str = r#"{"shards": 1, "persistence": {"size": "2Gi", "storageClassName": "fast"}}"#;

pub const VIOLATIONS: &[Violation] = &[
    Violation {
        message: "the name may have at most 40 characters: objects of its members are named after it",
        before: None,
        wrong: r#"{"shards": 1}"#,
        long_name: true,
    },
    changed(
        "workloadType is immutable",
        r#"{"shards": 1}"#,
        r#"{"shards": 1, "workloadType": "StatefulSet"}"#,
    ),
    changed(
        "workloadType is immutable",
        r#"{"shards": 1, "workloadType": "StatefulSet"}"#,
        r#"{"shards": 1, "workloadType": "Deployment"}"#,
    ),
    made(
        "persistence requires workloadType StatefulSet",
        r#"{"shards": 1, "workloadType": "Deployment", "persistence": {"size": "1Gi"}}"#,
    ),
    changed(
        "persistence cannot be removed once set",
        VALID,
        r#"{"shards": 1, "workloadType": "StatefulSet"}"#,
    ),
    changed(
        "persistence cannot be added after creation",
        r#"{"shards": 1, "workloadType": "StatefulSet"}"#,
        r#"{"shards": 1, "workloadType": "StatefulSet", "persistence": {"size": "1Gi"}}"#,
    ),
    changed(
        "persistence.size may only be expanded",
        VALID,
        r#"{"shards": 1, "persistence": {"size": "2000Mi", "storageClassName": "fast"}}"#,
    ),
    changed(
        "persistence.storageClassName is immutable",
        VALID,
        r#"{"shards": 1, "persistence": {"size": "2Gi", "storageClassName": "slow"}}"#,
    ),
    changed(
        "persistence.storageClassName is immutable",
        VALID,
        r#"{"shards": 1, "persistence": {"size": "2Gi"}}"#,
    ),
    changed(TLS, r#"{"shards": 1}"#, SECURE),
    changed(TLS, SECURE, r#"{"shards": 1}"#),
    made(OWNED, r#"{"shards": 1, "config": {"port": "1"}}"#),
    made(OWNED, r#"{"shards": 1, "config": {"tls-port": "1"}}"#),
    made(OWNED, r#"{"shards": 1, "config": {"cluster-announce-ip": "1"}}"#),
    made(OWNED, r#"{"shards": 1, "config": {"aclfile": "1"}}"#),
    made(
        "a user's name may not start with _: such names are the operator's own; choose another",
        r#"{"shards": 1, "users": [{"name": "_operator"}]}"#,
    ),
    made(
        "a user's name has no spaces in it: write one word",
        r#"{"shards": 1, "users": [{"name": "two words"}]}"#,
    ),
    made(INVISIBLE, r#"{"shards": 1, "users": [{"name": "a\u001b[2Jb"}]}"#),
    made(INVISIBLE, r#"{"shards": 1, "users": [{"name": "a\u009b31m"}]}"#),
    made(INVISIBLE, r#"{"shards": 1, "users": [{"name": "a\u202eb"}]}"#),
    made(CONTAINER, r#"{"shards": 1, "containers": [{"name": "Server"}]}"#),
    made(CONTAINER, r#"{"shards": 1, "containers": [{"name": "-a"}]}"#),
    made(QUANTITY, r#"{"shards": 1, "persistence": {"size": "10 Gi"}}"#),
    made(QUANTITY, r#"{"shards": 1, "persistence": {"size": "-1Gi"}}"#),
    made(QUANTITY, r#"{"shards": 1, "resources": {"limits": {"memory": "1GB"}}}"#),
    made(QUANTITY, r#"{"shards": 1, "resources": {"requests": {"cpu": ""}}}"#),
    made(
        QUANTITY,
        r#"{"shards": 1, "exporter": {"resources": {"requests": {"cpu": "much"}}}}"#,
    ),
];

/// The messages of all rules of a CRD, except those in status, which users do not write.
pub fn messages(crd: &Value) -> Vec<String> {
    let mut schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone();
    if let Some(fields) = schema["properties"].as_object_mut() {
        fields.remove("status");
    }
    let mut all = Vec::new();
    gather(&schema, &mut all);
    all
}

fn gather(value: &Value, all: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            let rules = fields.get("x-kubernetes-validations").and_then(Value::as_array);
            for rule in rules.into_iter().flatten() {
                let message = rule["message"].as_str();
                all.push(
                    message
                        .unwrap_or_else(|| panic!("a rule without words: {rule}"))
                        .to_owned(),
                );
            }
            fields.values().for_each(|inner| gather(inner, all));
        }
        Value::Array(items) => items.iter().for_each(|inner| gather(inner, all)),
        _ => {}
    }
}

//! The CEL rules of `RedkeyCluster`, and a spec that violates each of them.

use super::rules::{Violation, changed, made};

const QUANTITY: &str = "write a quantity of 0 or more: a number with an optional unit, such as 500m, 2 or 10Gi";
const VOLUME: &str = "write the size of a volume: a number above 0 with an optional unit, such as 500Mi or 10Gi";
const COUNT: &str = "write a number of servers such as 1, or a percentage such as 50%";
const BACK_OFF: &str = "write seconds such as 10, or a duration such as 500ms, 10s or 1m";
const LABEL_VALUE: &str = "a label's value has letters, digits, dashes, underscores and dots, and begins and ends with a \
    letter or digit, such as a-team";
const LABEL_KEY: &str = "a label's key has letters, digits, dashes, underscores and dots, at most 63, after an optional \
    domain and a slash, such as team or example.org/team";
const VALID: &str = r#"{"primaries": 3, "ephemeral": false, "purgeKeysOnRebalance": false, "storage": "1Gi", "storageClassName": "fast"}"#;

pub const VIOLATIONS: &[Violation] = &[
    Violation {
        message: "the name may have at most 52 characters and no dots: a StatefulSet and a Service are named after it",
        before: None,
        wrong: r#"{"primaries": 3}"#,
        long_name: true,
    },
    made(
        "Ephemeral or storage must be set",
        r#"{"primaries": 3, "ephemeral": false, "purgeKeysOnRebalance": false}"#,
    ),
    made(
        "Ephemeral and storage cannot be combined",
        r#"{"primaries": 3, "ephemeral": true, "storage": "1Gi"}"#,
    ),
    made(
        "Ephemeral and storage cannot be combined",
        r#"{"primaries": 3, "storage": "1Gi"}"#,
    ),
    made(
        "Cannot set purgeKeysOnRebalance to true for non-ephemeral clusters",
        r#"{"primaries": 3, "ephemeral": false, "storage": "1Gi"}"#,
    ),
    made(
        "Cannot set purgeKeysOnRebalance to true for non-ephemeral clusters",
        r#"{"primaries": 3, "ephemeral": false, "purgeKeysOnRebalance": true, "storage": "1Gi"}"#,
    ),
    changed(
        "Changing the ephemeral field is not allowed",
        r#"{"primaries": 3}"#,
        r#"{"primaries": 3, "ephemeral": false, "purgeKeysOnRebalance": false, "storage": "1Gi"}"#,
    ),
    changed(
        "Changing the storage size is not allowed",
        VALID,
        r#"{"primaries": 3, "ephemeral": false, "purgeKeysOnRebalance": false, "storage": "2Gi", "storageClassName": "fast"}"#,
    ),
    changed(
        "Changing the storage class name is not allowed",
        VALID,
        r#"{"primaries": 3, "ephemeral": false, "purgeKeysOnRebalance": false, "storage": "1Gi", "storageClassName": "slow"}"#,
    ),
    changed(
        "Changing the storage class name is not allowed",
        VALID,
        r#"{"primaries": 3, "ephemeral": false, "purgeKeysOnRebalance": false, "storage": "1Gi"}"#,
    ),
    changed(
        "Changing the storage access modes is not allowed",
        r#"{"primaries": 3}"#,
        r#"{"primaries": 3, "accessModes": ["ReadWriteMany"]}"#,
    ),
    made(
        VOLUME,
        r#"{"primaries": 3, "ephemeral": false, "purgeKeysOnRebalance": false, "storage": "much"}"#,
    ),
    made(
        VOLUME,
        r#"{"primaries": 3, "ephemeral": false, "purgeKeysOnRebalance": false, "storage": "0"}"#,
    ),
    made(
        QUANTITY,
        r#"{"primaries": 3, "resources": {"limits": {"memory": "1GB"}}}"#,
    ),
    made(
        QUANTITY,
        r#"{"primaries": 3, "resources": {"requests": {"cpu": "-1"}}}"#,
    ),
    made(COUNT, r#"{"primaries": 3, "pdb": {"pdbSizeUnavailable": "half"}}"#),
    made(COUNT, r#"{"primaries": 3, "pdb": {"pdbSizeAvailable": -1}}"#),
    made(COUNT, r#"{"primaries": 3, "pdb": {"pdbSizeAvailable": "101%"}}"#),
    made(
        BACK_OFF,
        r#"{"primaries": 3, "robin": {"config": {"cluster": {"backOff": "10 s"}}}}"#,
    ),
    made(
        BACK_OFF,
        r#"{"primaries": 3, "robin": {"config": {"cluster": {"backOff": -1}}}}"#,
    ),
    made(LABEL_VALUE, r#"{"primaries": 3, "labels": {"team": "a team"}}"#),
    made(LABEL_VALUE, r#"{"primaries": 3, "labels": {"team": "-a"}}"#),
    made(LABEL_KEY, r#"{"primaries": 3, "labels": {"a team": "a"}}"#),
    made(LABEL_KEY, r#"{"primaries": 3, "labels": {"Example.org/team": "a"}}"#),
];

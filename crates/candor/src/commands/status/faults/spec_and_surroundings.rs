//! Faults of the spec and its Secrets, and faults around the cluster: quota, permissions, network, operator.

use super::{EARLIER, degraded, failed, initializing};
use crate::commands::snapshot::Snapshot;
use crate::commands::status::{fixtures, redkey_fixtures};

pub fn specs() -> Vec<(&'static str, Snapshot)> {
    let tls = "spec.networking.tls asks for TLS; it needs ca.crt, tls.crt and tls.key";
    let users = "it holds the password of the user app under the key app; create it in the cluster's namespace";
    vec![
        (
            "no TLS Secret at creation",
            initializing(&format!(
                "Secret shop-tls is missing: {tls}; create it in the cluster's namespace"
            )),
        ),
        (
            "TLS Secret without a key",
            initializing(&format!("Secret shop-tls has nothing under the key tls.key: {tls}")),
        ),
        (
            "no Secret of a user at creation",
            initializing(&format!("Secret shop-users is missing: {users}")),
        ),
        (
            "Secret of a user deleted",
            failed("UsersInvalid", &format!("Secret shop-users is missing: {users}")),
        ),
        (
            "typo in a user's rules",
            failed(
                "UsersRefused",
                "member 0-0: ERR Error in ACL SETUSER modifier '+nosuchcommand': Unknown command or category name in ACL",
            ),
        ),
        (
            "unknown setting",
            failed(
                "ConfigurationRefused",
                "member 0-0: ERR Unknown option or number of arguments for CONFIG SET - 'maxmemmory'",
            ),
        ),
        (
            "invalid spec",
            failed(
                "SpecInvalid",
                "spec.containers[0]: invalid type: string \"none\", expected a sequence",
            ),
        ),
        (
            "older version",
            failed(
                "DowngradeRefused",
                "the image is 8.0 and the data is of Valkey 9.1.0, which an older server may not read: set a newer image, \
                 or insist with the annotation valkey.io/allow-downgrade: \"true\"",
            ),
        ),
    ]
}

pub fn around() -> Vec<(&'static str, Snapshot)> {
    vec![
        (
            "quota exceeded",
            failed(
                "DeploymentError",
                "deployments.apps \"valkey-shop-3-0\" is forbidden: exceeded quota: team",
            ),
        ),
        (
            "permission missing",
            failed(
                "ServiceError",
                "services \"valkey-shop\" is forbidden: User \"candor\" cannot patch resource",
            ),
        ),
        (
            "NetworkPolicy between members",
            degraded(
                EARLIER,
                "NodeAddFailed",
                "Failed to add node: 10.0.2.1: no answer to CLUSTER MEET in time",
            ),
        ),
        (
            "slots that cannot move",
            degraded(
                EARLIER,
                "RebalanceFailed",
                "10.0.0.0: CLUSTER MIGRATESLOTS: OOM command not allowed",
            ),
        ),
        (
            "unknown node in the map",
            degraded(
                EARLIER,
                "ForeignNode",
                "node f00 at 10.9.0.1:6379 is in the cluster map and is none of its members",
            ),
        ),
        ("API server does not list pods", fixtures::unreachable()),
        ("paused", fixtures::paused()),
        ("operator gone", fixtures::no_operator()),
        ("no operator", fixtures::unseen()),
        ("RedkeyCluster: server terminated", redkey_fixtures::degraded()),
        ("RedkeyCluster: preflight failed", redkey_fixtures::error()),
        ("RedkeyCluster: not observed", redkey_fixtures::unknown()),
        ("RedkeyCluster: another operator", redkey_fixtures::other_operator()),
    ]
}

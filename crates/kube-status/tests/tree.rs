//! What people see: trees at the widths terminals have.
#![cfg(feature = "tree")]

use jiff::{SignedDuration, Timestamp};
use kube_status::severity::Severity;
use kube_status::tree::{Line, Node, Show, Tone, View};
use kube_status::{Draft, Polarity, Status};
use proptest::prelude::*;
use unicode_width::UnicodeWidthStr;

fn now() -> Timestamp {
    "2026-02-05T10:00:00Z".parse().unwrap()
}

fn ago(seconds: i64) -> Timestamp {
    now() - SignedDuration::from_secs(seconds)
}

fn line(type_: &str, status: Status, reason: &str, message: &str, seconds: i64) -> Line {
    let negative = matches!(type_, "Degraded" | "Progressing" | "Paused");
    let polarity = if negative {
        Polarity::Negative
    } else {
        Polarity::Positive
    };
    let severity = match reason {
        "Reconciling" => Some(Severity::Info),
        "RebalancingSlots" | "PodNotReady" => Some(Severity::Warning),
        _ => None,
    };
    let condition = Draft::new(type_, status, reason)
        .message(message)
        .into_condition(1, ago(seconds));
    Line::with_severity(&condition, polarity, severity)
}

fn member(name: &str) -> Node {
    Node::new("ValkeyNode", name)
        .line(line("Ready", Status::True, "MemberReady", "in sync", 273_600))
        .line(line("UsersApplied", Status::True, "Applied", "", 273_600))
        .child(Node::new("Pod", format!("valkey-{name}-0")).line(line("Ready", Status::True, "PodReady", "", 273_600)))
}

/// A cluster in trouble: a lost replica, a claim that cannot be resized, a move of slots, everything else well.
fn troubled() -> Node {
    let pod = Node::new("Pod", "valkey-prod-1-1-0").line(line(
        "Ready",
        Status::False,
        "CrashLoopBackOff",
        "container server keeps crashing: last exit OOMKilled (exit code 137, SIGKILL); 5 restarts",
        125,
    ));
    let lost = Node::new("ValkeyNode", "prod-1-1")
        .line(line("Ready", Status::False, "PodNotReady", "The pod is not ready", 125))
        .line(line(
            "UsersApplied",
            Status::Unknown,
            "NoAnswer",
            "The member does not answer",
            120,
        ))
        .child(pod);
    let claim = |name: &str| {
        Node::new("PersistentVolumeClaim", name).line(line(
            "Ready",
            Status::False,
            "ControllerResizeError",
            "resize from 1Gi to 2Gi was refused: quota",
            7_200,
        ))
    };
    Node::new("ValkeyCluster", "prod")
        .line(line(
            "Ready",
            Status::False,
            "MissingReplicas",
            "* Degraded: Replica lost in shard 1: no answer for 3 s\n* Progressing: Rebalancing slots across primaries",
            125,
        ))
        .line(line(
            "Progressing",
            Status::True,
            "RebalancingSlots",
            "Rebalancing slots across primaries, 120/5461",
            44,
        ))
        .line(line(
            "Degraded",
            Status::True,
            "ReplicaLost",
            "Replica lost in shard 1: no answer for 3 s",
            125,
        ))
        .line(line(
            "ClusterFormed",
            Status::True,
            "TopologyComplete",
            "All nodes joined cluster",
            273_600,
        ))
        .child(member("prod-0-0"))
        .child(member("prod-0-1"))
        .child(member("prod-1-0"))
        .child(lost)
        .child(member("prod-2-0"))
        .child(member("prod-2-1"))
        .child(claim("valkey-prod-0-0-data"))
        .child(claim("valkey-prod-0-1-data"))
}

#[test]
fn a_troubled_cluster_at_200_columns() {
    insta::assert_snapshot!(View::new(now()).width(200).render(&troubled()));
}

#[test]
fn a_troubled_cluster_at_120_columns() {
    insta::assert_snapshot!(View::new(now()).width(120).render(&troubled()));
}

#[test]
fn a_troubled_cluster_at_80_columns_has_its_messages_below() {
    insta::assert_snapshot!(View::new(now()).width(80).render(&troubled()));
}

#[test]
fn a_troubled_cluster_at_20_columns_is_narrow_but_whole() {
    insta::assert_snapshot!(View::new(now()).width(20).render(&troubled()));
}

#[test]
fn a_pipe_has_no_width() {
    insta::assert_snapshot!(View::new(now()).render(&troubled()));
}

#[test]
fn all_conditions_ungrouped() {
    insta::assert_snapshot!(
        View::new(now())
            .width(140)
            .show(Show::All)
            .group(false)
            .render(&troubled())
    );
}

#[test]
fn one_kind_in_full_one_object_without_conditions() {
    let view = View::new(now())
        .width(140)
        .show_for("ValkeyCluster", Show::All)
        .show_for("ValkeyNode/prod-1-1", Show::None)
        .show_for("ValkeyNode/prod-0-0", Show::All);
    insta::assert_snapshot!(view.render(&troubled()));
}

#[test]
fn colours_follow_polarity_and_severity() {
    let text = View::new(now()).width(120).colour(true).render(&troubled());
    for (number, word) in [
        (31, "MissingReplicas"),
        (33, "RebalancingSlots"),
        (31, "ReplicaLost"),
        (32, "MemberReady"),
        (35, "NoAnswer"),
    ] {
        assert!(
            text.contains(&format!("\u{1b}[{number}m{word}\u{1b}[0m")),
            "{word} should be in {number}"
        );
    }
    let plain = View::new(now()).width(120).render(&troubled());
    let mut bare = text;
    for number in [0, 31, 32, 33, 35, 36] {
        bare = bare.replace(&format!("\u{1b}[{number}m"), "");
    }
    let trimmed = |text: &str| text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
    assert_eq!(trimmed(&bare), trimmed(&plain), "colour changes nothing else");
}

#[test]
fn wide_characters_keep_the_columns_straight() {
    let tree = Node::new("Laden", "京都")
        .line(line(
            "Ready",
            Status::False,
            "Größe",
            "在庫がありません。明日もう一度お試しください。 Ganz schön viele Wörter stehen hier.",
            61,
        ))
        .child(Node::new("Regal", "e\u{301}tage").line(line("Ready", Status::True, "Voll", "", 5)));
    insta::assert_snapshot!(View::new(now()).width(80).render(&tree));
}

#[test]
fn foreign_escape_sequences_do_not_reach_the_terminal() {
    let evil = line(
        "Ready",
        Status::False,
        "R\u{1b}[2J",
        "clear \u{1b}]0;title\u{7} me\rover",
        1,
    );
    let text = View::new(now())
        .width(80)
        .render(&Node::new("Pod", "x\u{1b}[0m").line(evil));
    assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
}

#[test]
fn good_conditions_are_grouped_with_any_message_and_bad_ones_only_with_the_same() {
    let cart = |name: &str, status, message: &str| Node::new("Cart", name).line(line("Ready", status, "R", message, 9));
    let shop = |status, first: &str, second: &str| {
        View::new(now()).render(
            &Node::new("Shop", "s")
                .child(cart("a", status, first))
                .child(cart("b", status, second)),
        )
    };
    assert!(shop(Status::True, "one", "two").contains("2 Carts..."));
    assert!(!shop(Status::False, "one", "two").contains("2 Carts..."));
    assert!(shop(Status::False, "same", "same").contains("2 Carts..."));
}

#[test]
fn trouble_further_down_is_never_hidden_in_a_group() {
    let sick = Node::new("ValkeyNode", "prod-2-2")
        .line(line("Ready", Status::True, "MemberReady", "", 9))
        .child(Node::new("Pod", "p").line(line("Ready", Status::False, "Evicted", "low on memory", 9)));
    let text = View::new(now()).render(
        &Node::new("ValkeyCluster", "prod")
            .child(member("a"))
            .child(member("b"))
            .child(sick),
    );
    assert!(text.contains("2 ValkeyNodes...") && text.contains("Evicted"), "{text}");
}

fn owned(
    api_version: &str,
    kind: &str,
    name: &str,
    uid: &str,
    owner: &str,
    status: &serde_json::Value,
) -> serde_json::Value {
    serde_json::json!({"apiVersion": api_version, "kind": kind, "status": status,
        "metadata": {"name": name, "uid": uid, "ownerReferences": [{"uid": owner}]}})
}

#[test]
fn a_tree_grows_from_objects_as_they_were_read() {
    use serde_json::json;
    let transitioned = "2026-02-05T09:58:00Z";
    let cluster = json!({"apiVersion": "valkey.io/v1alpha1", "kind": "ValkeyCluster", "metadata": {"name": "prod", "uid": "c", "generation": 2},
        "spec": {}, "status": {"conditions": [
            {"type": "Ready", "status": "False", "severity": "Warning", "reason": "Reconciling", "message": "Cluster is Reconciling", "lastTransitionTime": transitioned},
            {"type": "Progressing", "status": "True", "severity": "Info", "reason": "AddingNodes", "message": "Adding nodes to cluster", "lastTransitionTime": transitioned},
            {"type": "SlotsAssigned", "status": "True", "reason": "AllSlotsAssigned", "message": "", "lastTransitionTime": transitioned}]}});
    let deployment = owned(
        "apps/v1",
        "Deployment",
        "valkey-prod-0-0",
        "d",
        "c",
        &json!({"replicas": 1, "updatedReplicas": 1, "conditions": [
        {"type": "Progressing", "status": "True", "reason": "ReplicaSetUpdated", "message": "", "lastTransitionTime": transitioned}]}),
    );
    let set = owned(
        "apps/v1",
        "ReplicaSet",
        "valkey-prod-0-0-5d",
        "r",
        "d",
        &json!({"replicas": 1, "fullyLabeledReplicas": 1}),
    );
    let pod = owned(
        "v1",
        "Pod",
        "valkey-prod-0-0-5d-x",
        "p",
        "r",
        &json!({"phase": "Pending", "conditions": [
            {"type": "PodScheduled", "status": "True", "lastTransitionTime": transitioned},
            {"type": "Ready", "status": "False", "reason": "ContainersNotReady", "message": "", "lastTransitionTime": transitioned}],
        "containerStatuses": [{"name": "server", "image": "valkey/valkey:9.9", "state": {"waiting": {"reason": "ErrImagePull", "message": "not found"}}}]}),
    );
    let unrelated = owned("v1", "Pod", "stranger", "s", "elsewhere", &json!({}));
    let tree = Node::grow(&cluster, &[pod, set, deployment, unrelated], &["Progressing"]).unwrap();
    insta::assert_snapshot!(View::new(now()).width(140).render(&tree));
    assert_eq!(
        tree.lines[0].tone,
        Tone::Warning,
        "the severity of the object's own condition counts"
    );
}

#[test]
fn a_ring_of_owners_ends() {
    let status = serde_json::json!({});
    let (a, b) = (
        owned("v1", "ConfigMap", "a", "a", "b", &status),
        owned("v1", "ConfigMap", "b", "b", "a", &status),
    );
    let tree = Node::grow(&a, &[a.clone(), b], &[]).unwrap();
    assert_eq!(tree.children.len(), 1);
    assert!(tree.children[0].children.is_empty());
}

#[test]
fn tones_cover_every_combination() {
    use {
        Polarity::{Negative, Positive},
        Status::{False, True, Unknown},
    };
    for (status, polarity, severity, tone) in [
        (True, Positive, None, Tone::Good),
        (False, Negative, None, Tone::Good),
        (False, Negative, Some(Severity::Error), Tone::Good),
        (False, Positive, None, Tone::Error),
        (True, Negative, Some(Severity::Info), Tone::Info),
        (False, Positive, Some(Severity::Warning), Tone::Warning),
        (True, Negative, Some(Severity::Error), Tone::Error),
        (Unknown, Positive, Some(Severity::Info), Tone::Unknown),
        (Unknown, Negative, None, Tone::Unknown),
    ] {
        assert_eq!(
            Tone::of(status, polarity, severity),
            tone,
            "{status} {polarity:?} {severity:?}"
        );
    }
}

fn any_node() -> impl Strategy<Value = Node> {
    let line = (
        "[A-Z][a-zé漢]{0,30}",
        0_usize..3,
        "[A-Z][A-Za-z]{0,40}",
        "[ \\*a-z漢\n]{0,120}",
        0_i64..10_000_000,
    )
        .prop_map(|(type_, status, reason, message, seconds)| {
            line(
                &type_,
                [Status::True, Status::False, Status::Unknown][status],
                &reason,
                &message,
                seconds,
            )
        });
    let leaf =
        ("[A-Z][a-z]{0,20}", "[a-z0-9-]{1,63}", prop::collection::vec(line, 0..4)).prop_map(|(kind, name, lines)| {
            Node {
                kind,
                name,
                lines,
                children: Vec::new(),
            }
        });
    leaf.prop_recursive(6, 24, 4, |inner| {
        (
            "[A-Z][a-z]{0,20}",
            "[a-z0-9-]{1,63}",
            prop::collection::vec(inner, 0..4),
        )
            .prop_map(|(kind, name, children)| Node {
                kind,
                name,
                lines: Vec::new(),
                children,
            })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn no_row_is_wider_than_the_terminal(node in any_node(), width in 20_usize..200) {
        let text = View::new(now()).width(width).show(Show::All).render(&node);
        for row in text.lines() {
            prop_assert!(row.width() <= width, "{width}: {row:?}");
        }
    }
}

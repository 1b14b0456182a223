//! What is in a frame, and which bytes are none.

use serde_json::{Value, json};

use super::super::frame::FRAME_LIMIT;
use super::*;
use candor_engine::observation::Applied;
use candor_engine::outcome::{CommandKind, Rejected};
use jiff::Timestamp;
use valkey_admin::Version;
use valkey_admin::ids::Family;

fn nodes(count: usize, myself: usize) -> String {
    let line = |at: usize| {
        let flags = if at == myself { "myself,master" } else { "master" };
        format!(
            "{at:040x} 10.0.0.{at}:6379@16379,,shard-id={at:040x} {flags} - {myself} {at} {at} connected {}",
            at * 10
        )
    };
    (0..count).map(line).collect::<Vec<_>>().join("\n")
}

fn big(count: usize) -> Frame {
    let servers = (0..count).map(|at| {
        let map = ClusterNodes::parse(&nodes(count, at)).unwrap();
        let facts = Facts {
            users: Applied::Rejected("no".to_owned()),
            version: Version::parse(Family::Redis, "8.0.6").ok(),
            ..Facts::new(map.0[at].id, map)
        };
        let observed = ObservedServer {
            pod_uid: format!("u{at}"),
            ip: "fd00::1".parse().ok(),
            server: Server::Up(Box::new(facts)),
            trouble: None,
            rejects_login: false,
        };
        (u32::try_from(at).unwrap(), observed)
    });
    Frame::new(servers.collect())
}

fn untimed(mut frame: Frame) -> Frame {
    for observed in frame.servers.values_mut() {
        if let Server::Up(facts) = &mut observed.server {
            for entry in &mut facts.map.0 {
                (entry.ping_sent, entry.pong_received) = (0, 0);
            }
        }
    }
    frame
}

#[test]
fn every_state_of_a_server_survives_the_wire() {
    let since = Timestamp::now();
    let mut whole = Frame {
        generation: Some(7),
        plan_empty: true,
        rejected: vec![Rejected {
            kind: CommandKind::Join,
            shard: None,
            times: 3,
            message: "CLUSTER MEET failed:\nno".to_owned(),
        }],
        ..big(6)
    };
    for (ordinal, server) in [
        (6, Server::Nowhere),
        (7, Server::Dead { since }),
        (8, Server::Silent { since }),
    ] {
        let observed = ObservedServer {
            pod_uid: "u".to_owned(),
            ip: "10.0.0.9".parse().ok(),
            server,
            trouble: Some("WRONGPASS".to_owned()),
            rejects_login: true,
        };
        whole.servers.insert(ordinal, observed);
    }
    let line = whole.encode().unwrap();
    assert_eq!(
        line.iter().position(|byte| *byte == b'\n'),
        Some(line.len() - 1),
        "one line"
    );
    let read = Frame::decode(&line[..line.len() - 1]).unwrap();
    assert_eq!(read, untimed(whole));
    assert!(read.confirms(7) && !read.confirms(8));
}

#[test]
fn a_frame_grows_little_faster_than_its_cluster() {
    let size = |count: usize| big(count).encode().unwrap().len();
    assert!(size(6) < 10_000, "{}", size(6));
    assert!(size(200) < 800_000, "{}", size(200));
}

/// A valid frame, changed.
fn changed(change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let line = frame(true, 1).encode().unwrap();
    let mut value: Value = serde_json::from_slice(&line).unwrap();
    change(&mut value);
    serde_json::to_vec(&value).unwrap()
}

#[test]
fn what_is_no_frame_is_rejected_with_its_reason() {
    assert!(Frame::decode(&changed(|_| {})).is_ok());
    for (bytes, reason) in [
        (b"{".to_vec(), "decoded"),
        (b"null".to_vec(), "decoded"),
        (b"\xff\xfe".to_vec(), "decoded"),
        (changed(|value| value["protocol"] = json!(0)), "protocol 0 instead of 1"),
        (changed(|value| value["protocol"] = json!(2)), "protocol 2 instead of 1"),
        (changed(|value| value["protocol"] = json!("1")), "decoded"),
        (
            changed(|value| value["servers"]["0"]["map"] = json!([7])),
            "entry 7 of 1",
        ),
        (changed(|value| value["servers"]["0"]["ip"] = json!("here")), "decoded"),
        (changed(|value| value["servers"]["x"] = json!({})), "decoded"),
        (
            changed(|value| value["servers"]["0"]["server"]["Up"]["id"] = json!("1")),
            "decoded",
        ),
        (
            changed(|value| value["entries"][0]["slots"] = json!("0-99999")),
            "decoded",
        ),
        (vec![b' '; FRAME_LIMIT + 1], "larger than"),
    ] {
        let error = Frame::decode(&bytes).unwrap_err().to_string();
        assert!(error.contains(reason), "{error} instead of {reason}");
    }
}

#[test]
fn a_short_line_cannot_fill_the_memory() {
    let bytes = changed(|value| {
        value["entries"][0]["address"]["hostname"] = json!("x".repeat(1 << 20));
        value["servers"]["0"]["map"] = json!(vec![0; 100_000]);
    });
    assert!(bytes.len() < FRAME_LIMIT);
    let error = Frame::decode(&bytes).unwrap_err().to_string();
    assert!(error.contains("maps of a frame are larger"), "{error}");
}

#[test]
fn only_a_change_that_matters_triggers_a_reconcile() {
    let before = frame(true, 5);
    assert!(!frame(true, 6).differs_from(&before));
    assert!(frame(true, 0).differs_from(&before), "the last key is gone");
    assert!(frame(false, 5).differs_from(&before));
    let confirmed = Frame {
        generation: Some(1),
        ..before.clone()
    };
    assert!(confirmed.differs_from(&before));
    let mut replaced = before.clone();
    replaced.servers.get_mut(&0).unwrap().pod_uid = "u1".to_owned();
    assert!(replaced.differs_from(&before));
}

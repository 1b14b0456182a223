//! Slots move with the permissions of the operator's own users only: whole slots if the server supports it, otherwise
//! keys one by one.

use std::time::Duration;

use redis::cmd;
use serde_json::json;
use valkey_admin::client::{Credentials, Node};
use valkey_admin::mover::{Legacy, Move, Primaries, Push, SlotMover};
use valkey_admin::{Capabilities, Reply, Slot};

use crate::servers::{GENERATIONS, Place};
use crate::world::{at, client, eventually, form, operator, passwords, user};
use candor_operator::objects;

/// Writes a key of every type that is migrated differently.
async fn fill(node: &Node) -> Vec<(&'static str, &'static str)> {
    let commands: [&[&str]; 9] = [
        &["SET", "{b}:string", "v"],
        &["SET", "{b}:short", "v", "PX", "600000"],
        &["RPUSH", "{b}:list", "a", "b", "c"],
        &["HSET", "{b}:hash", "f", "1", "g", "2"],
        &["SADD", "{b}:set", "a", "b"],
        &["ZADD", "{b}:zset", "1", "a", "2", "b"],
        &["XADD", "{b}:stream", "1-1", "f", "v"],
        &["XGROUP", "CREATE", "{b}:stream", "g", "0"],
        &["SETBIT", "{b}:bits", "70000", "1"],
    ];
    for message in commands {
        node.order(cmd(message[0]).arg(&message[1..])).await.unwrap();
    }
    vec![
        ("{b}:string", "string"),
        ("{b}:short", "string"),
        ("{b}:list", "list"),
        ("{b}:hash", "hash"),
        ("{b}:set", "set"),
        ("{b}:zset", "zset"),
        ("{b}:stream", "stream"),
        ("{b}:bits", "string"),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_of_every_type_move_with_the_systems_users_alone() {
    for generation in GENERATIONS {
        let spec = json!({"config": {"cluster-node-timeout": "1000"}});
        let mut places: Vec<Place> = (0..2).map(|_| Place::new(generation, &spec)).collect();
        for place in &mut places {
            place.start();
        }
        for place in &places {
            eventually("a server answers", 20, async || operator(place.ip).ping().await.is_ok()).await;
        }
        let made = crate::world::Made::of(json!({"shards": 2}));
        form(&made, &[(at(0, 0), places[0].ip), (at(1, 0), places[1].ip)].into()).await;
        let source = client(places[0].ip);
        let keys = fill(&source).await;
        let version = operator(places[0].ip).info(&["server"]).await.unwrap().version.unwrap();
        let push = Capabilities::of(version).moves == valkey_admin::capability::MoveBy::Push;
        let (from, to) = (
            operator(places[0].ip).my_id().await.unwrap(),
            operator(places[1].ip).my_id().await.unwrap(),
        );
        let moves = [Move {
            from,
            to,
            slots: "3299-3301".parse().unwrap(),
        }];
        let gone = async |primaries: &Primaries| {
            let budget = Duration::from_millis(300);
            let turn = if push {
                Push.advance(primaries, &moves, budget).await.unwrap()
            } else {
                let credentials = Credentials {
                    user: objects::MIGRATOR.to_owned(),
                    password: passwords().migrator,
                };
                let legacy = Legacy {
                    credentials: Some(credentials),
                };
                legacy.advance(primaries, &moves, budget).await.unwrap()
            };
            assert!(turn.failed.is_empty(), "{generation:?}: {:?}", turn.failed);
            turn.left == 0
        };
        let mut primaries = Primaries::new();
        for (id, place) in [(from, &places[0]), (to, &places[1])] {
            let node = operator(place.ip);
            if push {
                primaries.insert(id, node);
            } else {
                let rules = objects::migrator(&passwords().migrator);
                node.acl_set_user(objects::MIGRATOR, &rules).await.unwrap();
                primaries.insert(id, user(place.ip, objects::MIGRATOR, &passwords().migrator));
            }
        }
        eventually("the slots have moved", 30, async || gone(&primaries).await).await;
        let there = client(places[1].ip);
        eventually("the new owner serves", 10, async || {
            operator(places[1].ip)
                .cluster_nodes()
                .await
                .is_ok_and(|map| map.get(to).is_some_and(|me| me.slots.contains(Slot::of_key(b"{b}"))))
        })
        .await;
        for (key, kind) in keys {
            let found = there.ask(cmd("TYPE").arg(key)).await.unwrap();
            assert_eq!(found, Reply::from(kind), "{generation:?}: {key}");
        }
        let left = there
            .ask(cmd("PTTL").arg("{b}:short"))
            .await
            .unwrap()
            .int("PTTL")
            .unwrap();
        assert!(left > 500_000, "{generation:?}: {left}");
        let groups = there.ask(cmd("XINFO").arg("GROUPS").arg("{b}:stream")).await.unwrap();
        assert_eq!(groups.items("XINFO").unwrap().len(), 1, "{generation:?}: {groups:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn users_of_the_spec_have_their_permissions_from_the_first_start_and_after_a_change() {
    let users = json!([
        {"name": "reader", "nopass": true, "commands": {"allow": ["@read", "@connection"], "deny": ["keys"]}, "keys": {"readOnly": ["a:*"]}},
        {"name": "writer", "permissions": ">pw +@all -@dangerous ~a:*"},
        {"name": "gone", "enabled": false},
        {"name": "listener", "nopass": true, "commands": {"allow": ["subscribe", "publish"]}, "channels": {"patterns": ["news.*"]}},
    ]);
    for generation in GENERATIONS {
        let spec = json!({"users": users, "config": {"cluster-require-full-coverage": "no"}});
        let mut place = Place::new(generation, &spec);
        place.start();
        let system = operator(place.ip);
        eventually("the server answers", 20, async || system.ping().await.is_ok()).await;
        system.add_slots(&"0-16383".parse().unwrap()).await.unwrap();
        let writer = user(place.ip, "writer", "pw");
        eventually("it serves", 20, async || {
            writer.order(cmd("SET").arg("a:1").arg("v")).await.is_ok()
        })
        .await;
        // The same rules again on a running server, as the operator sets them.
        let made = crate::world::Made::of(json!({"shards": 1, "users": users}));
        let settings = objects::settings(&made.inputs()).unwrap();
        for turn in ["from the file", "live"] {
            let reader = user(place.ip, "reader", "anything");
            reader.order(cmd("GET").arg("a:1")).await.unwrap();
            let table: [(&Node, &[&str]); 5] = [
                (&reader, &["SET", "a:1", "x"]),
                (&reader, &["GET", "b:1"]),
                (&reader, &["KEYS", "*"]),
                (&writer, &["SET", "b:1", "x"]),
                (&writer, &["FLUSHALL"]),
            ];
            for (who, message) in table {
                let rejected = who
                    .order(cmd(message[0]).arg(&message[1..]))
                    .await
                    .unwrap_err()
                    .to_string();
                assert!(
                    rejected.contains("NOPERM"),
                    "{generation:?} {turn}: {message:?}: {rejected}"
                );
            }
            let listener = user(place.ip, "listener", "x");
            listener.order(cmd("PUBLISH").arg("news.a").arg("x")).await.unwrap();
            assert!(listener.order(cmd("PUBLISH").arg("other").arg("x")).await.is_err());
            assert!(user(place.ip, "gone", "x").ping().await.is_err());
            assert!(user(place.ip, "writer", "wrong").ping().await.is_err());
            for (name, rules) in &settings.users {
                system.acl_set_user(name, rules).await.unwrap();
            }
        }
        client(place.ip).order(cmd("GET").arg("a:1")).await.unwrap();
    }
}

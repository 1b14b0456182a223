//! The client and the movers against real servers.

mod servers;

use std::time::Duration;

use redis::cmd;
use servers::{Generation, PORT, Server, cluster, eventually};
use valkey_admin::capability::MoveBy;
use valkey_admin::client::{Failover, Node, NodeError, SetSlot};
use valkey_admin::info::RoleKind;
use valkey_admin::mover::{Legacy, Move, Primaries, Push, SlotMover};
use valkey_admin::role::{Link, Role};
use valkey_admin::{Capabilities, Slot, SlotSet};

async fn primaries(servers: &[Server]) -> (Primaries, Vec<valkey_admin::NodeId>) {
    let mut map = Primaries::new();
    let mut ids = Vec::new();
    for server in servers {
        let node = server.node();
        let id = node.my_id().await.unwrap();
        ids.push(id);
        map.insert(id, node);
    }
    (map, ids)
}

/// Writes `count` keys through the node that owns their slot.
async fn fill(owner: &Node, owned: &SlotSet, count: usize) -> Vec<String> {
    let keys: Vec<String> = (0..)
        .map(|n| format!("key:{n}"))
        .filter(|key| owned.contains(Slot::of_key(key.as_bytes())))
        .take(count)
        .collect();
    let writes = keys.iter().map(|key| {
        let mut command = cmd("SET");
        command.arg(key).arg(format!("value of {key}"));
        async move { owner.order(&command).await }
    });
    futures::future::try_join_all(writes).await.unwrap();
    keys
}

/// Every key is at one of the nodes, with its value.
async fn all_there(nodes: &Primaries, keys: &[String]) {
    for key in keys {
        let mut found = 0;
        for node in nodes.values() {
            if let Ok(reply) = node.ask(cmd("GET").arg(key)).await {
                assert_eq!(reply, valkey_admin::Reply::from(format!("value of {key}").as_str()));
                found += 1;
            }
        }
        assert_eq!(found, 1, "{key}");
    }
}

async fn moves_everything<M: SlotMover>(mover: M, generation: Generation) {
    let servers = cluster(generation, &[Some("0-8191"), Some("8192-16383"), None]).await;
    let (nodes, ids) = primaries(&servers).await;
    let share: SlotSet = "0-8191".parse().unwrap();
    let keys = fill(&nodes[&ids[0]], &share, 2000).await;
    let leaving: SlotSet = "100-399,500".parse().unwrap();
    let moves = [
        Move {
            from: ids[0],
            to: ids[2],
            slots: leaving.clone(),
        },
        Move {
            from: ids[1],
            to: ids[2],
            slots: "8192-8291".parse().unwrap(),
        },
    ];
    let mut moved = SlotSet::new();
    eventually("all slots have moved", async || {
        let turn = mover.advance(&nodes, &moves, Duration::from_millis(300)).await.unwrap();
        assert_eq!(turn.failed, []);
        moved = moved.union(&turn.moved);
        turn.done()
    })
    .await;
    assert_eq!(moved.len(), 401);
    for node in nodes.values() {
        eventually("every node knows the new owner", async || {
            let map = node.cluster_nodes().await.unwrap();
            map.get(ids[2]).is_some_and(|entry| entry.slots.len() == 401) && map.0.iter().all(|n| n.marks.is_empty())
        })
        .await;
    }
    all_there(&nodes, &keys).await;
    let again = mover.advance(&nodes, &moves, Duration::from_millis(300)).await.unwrap();
    assert!(
        again.done() && again.moved.is_empty(),
        "a finished move is not begun again"
    );
}

#[tokio::test]
async fn the_newest_valkey_pushes_slots() {
    moves_everything(Push, Generation::Newest).await;
}

#[tokio::test]
async fn the_legacy_mover_serves_the_newest_valkey() {
    moves_everything(Legacy::default(), Generation::Newest).await;
}

#[tokio::test]
async fn the_legacy_mover_serves_valkey_8() {
    moves_everything(Legacy::default(), Generation::Valkey8).await;
}

#[tokio::test]
async fn the_legacy_mover_serves_redis_7() {
    moves_everything(Legacy::default(), Generation::Redis7).await;
}

#[tokio::test]
async fn the_legacy_mover_serves_redis_8() {
    moves_everything(Legacy::default(), Generation::Redis8).await;
}

#[tokio::test]
async fn the_legacy_mover_finishes_a_migration_that_another_client_began() {
    let servers = cluster(Generation::Redis7, &[Some("0-16383"), None]).await;
    let (nodes, ids) = primaries(&servers).await;
    let keys = fill(&nodes[&ids[0]], &SlotSet::full(), 200).await;
    let slot = Slot::of_key(keys[0].as_bytes());
    nodes[&ids[1]].set_slot(slot, SetSlot::Importing(ids[0])).await.unwrap();
    nodes[&ids[0]].set_slot(slot, SetSlot::Migrating(ids[1])).await.unwrap();
    let moves = [Move {
        from: ids[0],
        to: ids[1],
        slots: SlotSet::from_iter([slot]),
    }];
    eventually("the slot has moved", async || {
        Legacy::default()
            .advance(&nodes, &moves, Duration::from_millis(300))
            .await
            .unwrap()
            .done()
    })
    .await;
    all_there(&nodes, &keys).await;
}

#[tokio::test]
async fn memory_usage_of_a_deleted_key_is_zero_also_in_a_migrating_slot() {
    let servers = cluster(Generation::Valkey8, &[Some("0-16383"), None]).await;
    let (nodes, ids) = primaries(&servers).await;
    let source = &nodes[&ids[0]];
    let gone = [b"gone".to_vec()];
    assert_eq!(source.memory_usage(&gone).await.unwrap(), [0]);
    let slot = Slot::of_key(b"gone");
    nodes[&ids[1]].set_slot(slot, SetSlot::Importing(ids[0])).await.unwrap();
    source.set_slot(slot, SetSlot::Migrating(ids[1])).await.unwrap();
    assert_eq!(source.memory_usage(&gone).await.unwrap(), [0]);
}

#[tokio::test]
async fn an_unsupported_command_is_reported_as_unknown() {
    for generation in [Generation::Valkey8, Generation::Redis8, Generation::Redis7] {
        let server = Server::start(generation, &[]);
        let node = server.node();
        eventually("the server answers", async || node.ping().await.is_ok()).await;
        assert!(node.slot_migrations().await.unwrap_err().is_unknown_command());
        let version = node.info(&["server"]).await.unwrap().version.unwrap();
        assert_eq!(Capabilities::of(version).moves, MoveBy::Legacy, "{version}");
    }
}

#[tokio::test]
async fn a_killed_server_refuses_connections_and_a_frozen_one_times_out() {
    let mut server = Server::start(Generation::Newest, &[]);
    let node = server.node();
    eventually("the server answers", async || node.ping().await.is_ok()).await;
    server.signal("-STOP");
    assert!(matches!(node.ping().await, Err(NodeError::Timeout(..))));
    server.signal("-CONT");
    eventually("it answers again on a new connection", async || {
        node.ping().await.is_ok()
    })
    .await;
    server.kill();
    let first = node.ping().await.unwrap_err();
    assert!(
        matches!(first, NodeError::Closed(..) | NodeError::ConnectionRefused(..)),
        "{first}"
    );
    assert!(matches!(node.ping().await, Err(NodeError::ConnectionRefused(..))));
    server.restart();
    eventually("it answers when it is back", async || node.ping().await.is_ok()).await;
}

#[tokio::test]
async fn credentials_are_named_as_the_fault_and_never_shown() {
    let server = Server::start(Generation::Newest, &["--requirepass", "right"]);
    let admin = server.node_as("default", "right");
    eventually("the server answers", async || admin.ping().await.is_ok()).await;
    let wrong = server
        .node_as("default", "secret-that-is-wrong")
        .ping()
        .await
        .unwrap_err();
    assert!(matches!(wrong, NodeError::Credentials(..)), "{wrong:?}");
    assert!(!format!("{wrong} {wrong:?} {:?}", server.node_as("x", "hidden").endpoint()).contains("hidden"));
    assert!(matches!(server.node().ping().await, Err(NodeError::Credentials(..))));
    let rules = ["on".to_owned(), ">pw".to_owned(), "+ping".to_owned()];
    admin.acl_set_user("probe", &rules).await.unwrap();
    let probe = server.node_as("probe", "pw");
    probe.ping().await.unwrap();
    let error = probe.config_get("maxmemory").await.unwrap_err();
    assert!(
        error.server_message().is_some_and(|message| message.contains("NOPERM")),
        "{error}"
    );
    assert!(
        admin
            .acl_list()
            .await
            .unwrap()
            .iter()
            .any(|line| line.starts_with("user probe on"))
    );
}

#[tokio::test]
async fn a_replica_is_made_promoted_and_forgotten() {
    for generation in [
        Generation::Newest,
        Generation::Valkey8,
        Generation::Redis8,
        Generation::Redis7,
    ] {
        let servers = cluster(
            generation,
            &[Some("0-5460"), Some("5461-10922"), Some("10923-16383"), None],
        )
        .await;
        let (nodes, ids) = primaries(&servers).await;
        let replica = &nodes[&ids[3]];
        eventually("it knows its primary", async || replica.replicate(ids[0]).await.is_ok()).await;
        eventually("it is in sync", async || replica.info(&[]).await.unwrap().in_sync()).await;
        assert!(matches!(
            replica.role().await.unwrap(),
            Role::Replica {
                link: Link::Connected,
                ..
            }
        ));
        eventually("another node lists it as a replica", async || {
            let shards = nodes[&ids[1]].cluster_shards().await.unwrap();
            shards.iter().any(|shard| {
                shard
                    .nodes
                    .iter()
                    .any(|n| n.id == ids[3] && n.role == RoleKind::Replica)
            })
        })
        .await;
        for node in nodes.values() {
            eventually(
                "every node takes the two for one shard, and the others for shards of their own",
                async || {
                    let mut map = node.cluster_nodes().await.unwrap();
                    map.group(&node.cluster_shards().await.unwrap());
                    let shard = |at: usize| map.get(ids[at]).and_then(|entry| entry.shard().map(str::to_owned));
                    shard(3).is_some() && shard(3) == shard(0) && shard(1) != shard(0) && shard(2) != shard(1)
                },
            )
            .await;
        }
        eventually("the primary gives way", async || {
            let _ = replica.failover(Failover::Agreed).await;
            matches!(replica.role().await, Ok(Role::Primary { .. }))
        })
        .await;
        let old = &nodes[&ids[0]];
        eventually("the old primary follows", async || {
            matches!(old.role().await, Ok(Role::Replica { .. }))
        })
        .await;
        nodes[&ids[1]].forget(ids[0]).await.unwrap();
        assert!(nodes[&ids[1]].cluster_nodes().await.unwrap().get(ids[0]).is_none());
    }
}

#[tokio::test]
async fn options_are_set_and_read() {
    let server = Server::start(Generation::Newest, &[]);
    let node = server.node();
    eventually("the server answers", async || node.ping().await.is_ok()).await;
    node.config_set(&[("maxmemory", "104857600"), ("maxmemory-policy", "allkeys-lru")])
        .await
        .unwrap();
    assert_eq!(
        node.config_get("maxmemory-policy").await.unwrap().as_deref(),
        Some("allkeys-lru")
    );
    assert_eq!(node.config_get("no-such-option").await.unwrap(), None);
    let refused = node.config_set(&[("no-such-option", "1")]).await.unwrap_err();
    assert!(
        refused
            .server_message()
            .is_some_and(|message| message.contains("Unknown option")),
        "{refused}"
    );
    assert_eq!(node.address().port(), PORT);
}

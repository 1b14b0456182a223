//! Simulated members do what real ones do, as far as the operator's client and movers can tell.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use valkey_admin::client::{Credentials, Deadlines, Endpoint, Failover, Node, NodeError};
use valkey_admin::mover::{Legacy, Move, Primaries, Push, SlotMover};
use valkey_admin::role::{Link, Role};
use valkey_admin::{NodeId, Slot, SlotSet};
use valkey_sim::world::PORT;
use valkey_sim::{Start, Timing, World};

async fn eventually<F: AsyncFnMut() -> bool>(what: &str, mut so: F) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !so().await {
        assert!(Instant::now() < deadline, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

fn node(ip: IpAddr) -> Node {
    Node::new(Endpoint::plain(ip, PORT), Deadlines::default())
}

/// A world with a cluster: three primaries, each with one replica.
struct Six {
    world: World,
    ips: Vec<IpAddr>,
    nodes: Vec<Node>,
    ids: Vec<NodeId>,
}

impl Six {
    async fn formed(timeout: &str) -> Self {
        let world = World::new(Timing::default());
        let mut start = Start::default();
        start
            .config
            .insert("cluster-node-timeout".to_owned(), timeout.to_owned());
        let (mut ips, mut nodes, mut ids) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..6 {
            let ip = World::address();
            world.start(ip, &start).await.unwrap();
            ips.push(ip);
            nodes.push(node(ip));
            ids.push(nodes.last().unwrap().my_id().await.unwrap());
        }
        for ip in &ips[1..] {
            nodes[0].meet(*ip, PORT).await.unwrap();
        }
        for (at, slots) in ["0-5460", "5461-10922", "10923-16383"].iter().enumerate() {
            nodes[at].add_slots(&slots.parse().unwrap()).await.unwrap();
        }
        let six = Self { world, ips, nodes, ids };
        for at in 3..6 {
            let (replica, primary) = (&six.nodes[at], six.ids[at - 3]);
            eventually("the replica knows its primary", async || {
                replica.replicate(primary).await.is_ok()
            })
            .await;
        }
        six.whole(6).await;
        six
    }

    async fn whole(&self, members: usize) {
        for (ip, node) in self.ips.iter().zip(&self.nodes) {
            if self.world.inspect(*ip, |_| ()).is_none() {
                continue;
            }
            eventually("every node says ok, knows all and is linked", async || {
                let info = node.cluster_info().await.unwrap();
                let linked = match node.role().await.unwrap() {
                    Role::Primary { .. } => true,
                    Role::Replica { link, .. } => link == Link::Connected,
                };
                info.ok && info.known_nodes as usize == members && linked && info.size == 3
            })
            .await;
        }
    }

    fn primaries(&self) -> Primaries {
        self.ids
            .iter()
            .copied()
            .zip(self.nodes.iter().cloned())
            .take(3)
            .collect()
    }
}

#[tokio::test]
async fn six_members_meet_take_slots_and_follow() {
    let start = Instant::now();
    let six = Six::formed("5000").await;
    println!("formed in {:?}", start.elapsed());
    let maps = futures::future::join_all(six.nodes.iter().map(Node::cluster_nodes)).await;
    for map in maps {
        let map = map.unwrap();
        assert_eq!(map.covered(), SlotSet::full());
        assert_eq!(map.primaries().count(), 3);
    }
    assert_eq!(six.nodes[4].cluster_shards().await.unwrap().len(), 3);
}

#[tokio::test]
async fn a_killed_primary_is_replaced_by_a_requested_or_an_automatic_failover() {
    let six = Six::formed("300").await;
    let keys = Slot::new(7).unwrap();
    assert!(six.world.write(six.ips[0], keys, 9));
    eventually("the replica has them", async || {
        six.nodes[3].count_keys_in_slot(keys).await.unwrap() == 9
    })
    .await;
    six.world.kill(six.ips[0]);
    assert!(matches!(
        six.nodes[0].ping().await,
        Err(NodeError::Closed(..) | NodeError::ConnectionRefused(..))
    ));
    assert!(matches!(
        six.nodes[0].ping().await,
        Err(NodeError::ConnectionRefused(..))
    ));
    let start = Instant::now();
    six.nodes[3].failover(Failover::Force).await.unwrap();
    eventually("told: promoted", async || {
        matches!(six.nodes[3].role().await, Ok(Role::Primary { .. }))
    })
    .await;
    assert!(start.elapsed() < Duration::from_millis(250), "before the node timeout");
    assert_eq!(six.nodes[3].count_keys_in_slot(keys).await.unwrap(), 9);

    six.world.freeze(six.ips[1]);
    let other = six.nodes[4].clone();
    eventually("by itself: promoted", async || {
        matches!(other.role().await, Ok(Role::Primary { .. }))
    })
    .await;
    six.world.thaw(six.ips[1]);
    let old = six.nodes[1].clone();
    eventually("the old primary follows", async || {
        matches!(old.role().await, Ok(Role::Replica { .. }))
    })
    .await;
}

#[tokio::test]
async fn without_a_majority_no_replica_is_elected_and_a_takeover_works() {
    let six = Six::formed("100").await;
    six.world.kill(six.ips[0]);
    six.world.kill(six.ips[1]);
    eventually("the rest knows", async || {
        !six.nodes[2].cluster_info().await.unwrap().ok
    })
    .await;
    six.nodes[3].failover(Failover::Force).await.unwrap();
    let map = six.nodes[2].cluster_nodes().await.unwrap();
    eventually("they are suspected", async || {
        let map = six.nodes[2].cluster_nodes().await.unwrap();
        map.get(six.ids[0]).is_some_and(|entry| entry.flags.suspected)
    })
    .await;
    assert!(!map.get(six.ids[0]).unwrap().flags.failed, "nobody can declare it");
    assert!(matches!(six.nodes[3].role().await, Ok(Role::Replica { .. })));
    for at in [3, 4] {
        six.nodes[at].failover(Failover::Takeover).await.unwrap();
    }
    eventually("all slots are served", async || {
        six.nodes[2].cluster_info().await.unwrap().ok
    })
    .await;
}

#[tokio::test]
async fn slots_move_by_both_movers() {
    let six = Six::formed("5000").await;
    let slots: SlotSet = "100-199".parse().unwrap();
    for slot in slots.iter() {
        assert!(six.world.write(six.ips[0], slot, 3));
    }
    let way = |from: usize, to: usize| Move {
        from: six.ids[from],
        to: six.ids[to],
        slots: slots.clone(),
    };
    let nodes = six.primaries();
    let budget = Duration::from_millis(300);
    eventually("pushed", async || {
        let turn = Push.advance(&nodes, &[way(0, 1)], budget).await.unwrap();
        assert_eq!(turn.failed, []);
        turn.done()
    })
    .await;
    assert_eq!(six.world.inspect(six.ips[1], valkey_sim::node::Node::total), Some(300));
    eventually("moved by hand", async || {
        let turn = Legacy::default().advance(&nodes, &[way(1, 2)], budget).await.unwrap();
        assert_eq!(turn.failed, []);
        turn.done()
    })
    .await;
    assert_eq!(six.world.inspect(six.ips[2], valkey_sim::node::Node::total), Some(300));
    eventually("everybody knows", async || {
        let map = six.nodes[3].cluster_nodes().await.unwrap();
        map.get(six.ids[2])
            .is_some_and(|entry| slots.difference(&entry.slots).is_empty())
    })
    .await;
    six.whole(6).await;
}

#[tokio::test]
async fn a_forgotten_member_stays_forgotten_and_a_volume_restores_its_identity() {
    let six = Six::formed("5000").await;
    let disk = six.world.kill(six.ips[5]);
    for at in 0..5 {
        six.nodes[at].forget(six.ids[5]).await.unwrap();
    }
    six.whole(5).await;
    let start = Start {
        disk,
        ..Start::default()
    };
    six.world.start(six.ips[5], &start).await.unwrap();
    eventually("it is who it was", async || {
        six.nodes[5].my_id().await.is_ok_and(|id| id == six.ids[5])
    })
    .await;
    // Nodes with a ban ignore gossip about it for a minute: each needs its MEET.
    for at in 0..5 {
        six.nodes[at].meet(six.ips[5], PORT).await.unwrap();
    }
    six.whole(6).await;
    assert!(six.nodes[0].reset(true).await.is_ok(), "it has no keys");
    assert_ne!(six.nodes[0].my_id().await.unwrap(), six.ids[0]);
}

#[tokio::test]
async fn users_need_their_passwords() {
    let world = World::new(Timing::default());
    let ip = World::address();
    let users = [
        "user default off".to_owned(),
        "user _operator on >secret ~* +@all".to_owned(),
    ];
    let start = Start {
        users: users.to_vec(),
        ..Start::default()
    };
    world.start(ip, &start).await.unwrap();
    assert!(matches!(node(ip).ping().await, Err(NodeError::Credentials(..))));
    let as_operator = |password: &str| {
        let credentials = Credentials {
            user: "_operator".to_owned(),
            password: password.to_owned(),
        };
        let endpoint = Endpoint {
            credentials: Some(credentials),
            ..Endpoint::plain(ip, PORT)
        };
        Node::new(endpoint, Deadlines::default())
    };
    assert!(matches!(
        as_operator("wrong").ping().await,
        Err(NodeError::Credentials(..))
    ));
    let operator = as_operator("secret");
    operator.ping().await.unwrap();
    let refused = operator
        .acl_set_user("bad", &["nonsense".to_owned()])
        .await
        .unwrap_err();
    assert!(refused.to_string().contains("Syntax error"), "{refused}");
    let refused = operator.config_set(&[("no-such-option", "1")]).await.unwrap_err();
    assert!(refused.to_string().contains("Unknown option"), "{refused}");
    assert_eq!(operator.acl_list().await.unwrap().len(), 2);
}

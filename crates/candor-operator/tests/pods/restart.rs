//! The empty restart: a primary that returns without its data must not cost its replicas their data. This holds at any
//! speed of restart, with any server, and without an operator.

use std::time::{Duration, Instant};

use redis::cmd;
use serde_json::{Value, json};
use valkey_admin::client::Failover;

use crate::servers::{GENERATIONS, Place};
use crate::world::{at, client, eventually, form, operator};
use candor_operator::objects;

/// A hash tag in slot 3300, which belongs to the first of three shards.
const TAG: &str = "{b}";
pub const KEYS: usize = 500;

/// A short node timeout, so that an election takes a second or two.
pub fn spec() -> Value {
    json!({"config": {"cluster-node-timeout": "1000"}})
}

pub async fn keys(ip: std::net::IpAddr) -> usize {
    let info = operator(ip).info(&["keyspace"]).await;
    info.map_or(0, |info| usize::try_from(info.keys).unwrap())
}

pub struct World {
    /// Members 0 and 1 of each shard, for `shards` shards.
    pub places: Vec<Place>,
}

impl World {
    pub async fn new(generation: (&'static str, &'static str), shards: usize, spec: &Value) -> Self {
        let mut places: Vec<Place> = (0..shards * 2).map(|_| Place::new(generation, spec)).collect();
        for place in &mut places {
            place.start();
        }
        for place in &places {
            let node = operator(place.ip);
            eventually(&format!("a server answers: {}", place.log()), 20, async || {
                node.ping().await.is_ok()
            })
            .await;
        }
        let mut made = crate::world::Made::of(json!({"shards": shards, "replicas": 1}));
        made.cluster.spec.config.clear();
        let member = |index: usize| at(u32::try_from(index / 2).unwrap(), u32::try_from(index % 2).unwrap());
        let ips = places
            .iter()
            .enumerate()
            .map(|(index, place)| (member(index), place.ip))
            .collect();
        form(&made, &ips).await;
        Self { places }
    }

    /// Which of the two members of shard 0 is the primary.
    pub async fn primary(&self) -> usize {
        for index in [0, 1] {
            let info = operator(self.places[index].ip).info(&["replication"]).await;
            if info.is_ok_and(|info| info.upstream.is_none()) {
                return index;
            }
        }
        panic!("shard 0 has no primary");
    }

    /// Writes keys to shard 0 and waits until its replica has all of them.
    pub async fn fill(&self, primary: usize) {
        for number in 0..KEYS {
            client(self.places[primary].ip)
                .order(cmd("SET").arg(format!("{TAG}{number}")).arg("v"))
                .await
                .unwrap();
        }
        eventually("the replica has it all", 10, async || {
            keys(self.places[1 - primary].ip).await == KEYS
        })
        .await;
    }

    /// Lets a member that returned without its identity rejoin, as an operator would.
    pub async fn rejoin(&self, back: usize, primary: usize) {
        let node = operator(self.places[back].ip);
        let new = operator(self.places[primary].ip);
        new.meet(self.places[back].ip, objects::PORT).await.unwrap();
        let upstream = new.my_id().await.unwrap();
        eventually("it follows the new primary", 20, async || {
            node.replicate(upstream).await.is_ok() && node.info(&["replication"]).await.is_ok_and(|info| info.in_sync())
        })
        .await;
        eventually("it has the data again", 20, async || {
            keys(self.places[back].ip).await == KEYS
        })
        .await;
        // A replica that the voters do not know yet is never elected, and one that does not know the voters ignores them.
        let id = node.my_id().await.unwrap();
        let mut ids = Vec::new();
        for place in &self.places {
            ids.push(operator(place.ip).my_id().await.unwrap());
        }
        for place in &self.places {
            eventually("everyone knows everyone", 20, async || {
                let map = operator(place.ip).cluster_nodes().await;
                map.is_ok_and(|map| {
                    let known = |id| map.get(id).is_some_and(|entry| !entry.flags.handshake);
                    ids.iter().all(|id| known(*id)) && (map.get(id)).is_some_and(|entry| entry.primary.is_some())
                })
            })
            .await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_killed_again_and_again_comes_back_blank_and_nothing_is_lost() {
    for generation in GENERATIONS {
        let mut world = World::new(generation, 3, &spec()).await;
        let first = world.primary().await;
        world.fill(first).await;
        for delay in [0, 20, 100, 300, 700, 1500] {
            let old = world.primary().await;
            let id = operator(world.places[old].ip).my_id().await.unwrap();
            world.places[old].kill();
            tokio::time::sleep(Duration::from_millis(delay)).await;
            let begun = Instant::now();
            world.places[old].start();
            let new = 1 - old;
            eventually(
                &format!("the replica is elected: {generation:?} {delay}"),
                20,
                async || {
                    operator(world.places[new].ip)
                        .info(&["replication"])
                        .await
                        .is_ok_and(|info| info.upstream.is_none())
                },
            )
            .await;
            assert_eq!(
                keys(world.places[new].ip).await,
                KEYS,
                "{generation:?} after {delay} ms: lost at the election"
            );
            let node = operator(world.places[old].ip);
            eventually("the killed one answers", 20, async || node.ping().await.is_ok()).await;
            println!(
                "{generation:?} back after {delay} ms: opened its port {:?} later",
                begun.elapsed()
            );
            assert_ne!(
                node.my_id().await.unwrap(),
                id,
                "{generation:?}: it must not be who it was"
            );
            assert_eq!(
                keys(world.places[new].ip).await,
                KEYS,
                "{generation:?} after {delay} ms: lost at the return"
            );
            world.rejoin(old, new).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_majority_the_replicas_copy_is_waited_for() {
    for generation in GENERATIONS {
        let mut world = World::new(generation, 1, &spec()).await;
        world.fill(0).await;
        world.places[0].kill();
        world.places[0].start();
        // More than two node timeouts: no majority exists for an election, and the replica still replicates from the
        // same address.
        let until = Instant::now() + Duration::from_millis(4500);
        while Instant::now() < until {
            assert!(
                operator(world.places[0].ip).ping().await.is_err(),
                "{generation:?}: {}",
                world.places[0].log()
            );
            assert_eq!(keys(world.places[1].ip).await, KEYS, "{generation:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        operator(world.places[1].ip).failover(Failover::Takeover).await.unwrap();
        eventually("the killed one opens its port", 10, async || {
            operator(world.places[0].ip).ping().await.is_ok()
        })
        .await;
        assert_eq!(keys(world.places[1].ip).await, KEYS, "{generation:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_on_an_empty_volume_is_a_new_node_and_on_its_old_volume_the_same_node() {
    for generation in GENERATIONS {
        let mut spec = spec();
        spec["persistence"] = json!({"size": "1Gi"});
        let mut world = World::new(generation, 3, &spec).await;
        world.fill(0).await;
        let id = operator(world.places[0].ip).my_id().await.unwrap();
        // A busy disk makes the server write its log up to two seconds later.
        let mut persistence = cmd("INFO");
        persistence.arg("persistence");
        eventually("its log is written", 20, async || {
            let reply = operator(world.places[0].ip).ask(&persistence).await;
            reply.is_ok_and(|reply| {
                reply
                    .text("INFO")
                    .is_ok_and(|text| text.contains("aof_buffer_length:0"))
            })
        })
        .await;
        world.places[0].kill();
        let begun = Instant::now();
        world.places[0].start();
        let node = operator(world.places[0].ip);
        eventually("it answers", 20, async || node.ping().await.is_ok()).await;
        println!("{generation:?} with its data: answers after {:?}", begun.elapsed());
        assert_eq!(node.my_id().await.unwrap(), id, "{generation:?}");
        eventually("its data is there", 20, async || keys(world.places[0].ip).await == KEYS).await;

        let old = world.primary().await;
        let new = 1 - old;
        eventually("the replica follows again", 20, async || {
            operator(world.places[new].ip)
                .info(&["replication"])
                .await
                .is_ok_and(|info| info.in_sync())
        })
        .await;
        world.places[old].kill();
        std::fs::remove_dir_all(world.places[old].data().join("appendonlydir")).unwrap();
        world.places[old].start();
        let node = operator(world.places[old].ip);
        eventually("it answers", 20, async || node.ping().await.is_ok()).await;
        assert_ne!(
            node.my_id().await.unwrap(),
            id,
            "{generation:?}: {}",
            world.places[old].log()
        );
        assert_eq!(
            keys(world.places[new].ip).await,
            KEYS,
            "{generation:?}: {}",
            world.places[old].log()
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_from_before_appendonly_was_enabled_is_loaded() {
    let generation = GENERATIONS[0];
    let spec = json!({"persistence": {"size": "1Gi"}, "config": {"appendonly": "no", "save": ""}});
    let mut place = Place::new(generation, &spec);
    place.start();
    let node = operator(place.ip);
    eventually("it answers", 20, async || node.ping().await.is_ok()).await;
    node.add_slots(&"0-16383".parse().unwrap()).await.unwrap();
    eventually("it serves", 20, async || {
        client(place.ip).order(cmd("SET").arg("a").arg("b")).await.is_ok()
    })
    .await;
    client(place.ip).order(&cmd("SAVE")).await.unwrap();
    let id = node.my_id().await.unwrap();
    place.kill();
    let text = std::fs::read_to_string(place.conf())
        .unwrap()
        .replace("appendonly no", "appendonly yes");
    std::fs::write(place.conf(), text).unwrap();
    place.start();
    eventually("it answers with its key", 20, async || keys(place.ip).await == 1).await;
    assert_eq!(operator(place.ip).my_id().await.unwrap(), id);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_ran_runs_again_whatever_was_written_into_its_configuration() {
    for generation in GENERATIONS {
        let mut place = Place::new(generation, &json!({"config": {"hz": "20"}}));
        let first = std::fs::read_to_string(place.conf()).unwrap();
        place.start();
        let answers = async |place: &Place| operator(place.ip).ping().await.is_ok();
        eventually("it answers", 20, async || answers(&place).await).await;
        for broken in ["no-such-key yes\n", "maxmemory plenty\n"] {
            place.kill();
            std::fs::write(place.conf(), format!("{first}{broken}")).unwrap();
            place.start();
            eventually("it answers with the configuration before", 20, async || {
                answers(&place).await
            })
            .await;
            let log = place.log();
            assert!(
                log.contains("start.sh: the configuration is not understood"),
                "{generation:?}: {log}"
            );
        }
        place.kill();
        std::fs::write(place.conf(), first.replace("hz 20", "hz 30")).unwrap();
        place.start();
        eventually("it answers", 20, async || answers(&place).await).await;
        let hz = operator(place.ip).config_get("hz").await.unwrap();
        assert_eq!(hz.as_deref(), Some("30"), "{generation:?}: a corrected one is used");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_member_with_an_invalid_configuration_prints_the_error_and_exits() {
    let mut place = Place::new(GENERATIONS[0], &json!({"config": {"no-such-key": "yes"}}));
    place.start();
    eventually("it ends", 20, async || place.ended()).await;
    assert!(place.log().contains("Bad directive"), "{}", place.log());
}

//! The empty restart where the map of the killed primary is older than what its peers know, or does not lead to a peer
//! that knows better: its replica must not lose its data.

use std::net::{IpAddr, TcpListener};

use candor_operator::objects;

use crate::restart::{KEYS, World, keys, spec};
use crate::servers::{GENERATIONS, Place, free_address};
use crate::world::{eventually, operator};

/// A row of `nodes.conf` for a replica of a node that does not exist.
fn replica_at(ip: IpAddr, digit: &str) -> String {
    let (id, primary) = (digit.repeat(40), "f".repeat(40));
    format!("{id} {ip}:6379@16379 slave {primary} 0 1 1 connected\n")
}

/// The rows of a map but for those that `drop` names.
fn without(map: &str, drop: impl Fn(&str) -> bool) -> String {
    let rows = map.lines().filter(|row| !drop(row));
    rows.fold(String::new(), |text, row| text + row + "\n")
}

/// The map of a server that is still a replica and owns nothing.
fn before_its_promotion(map: &str) -> String {
    map.lines().fold(String::new(), |text, row| {
        let mut fields: Vec<&str> = row.split(' ').collect();
        if fields.len() > 8 && fields[2] == "myself,master" {
            fields[2] = "myself,slave";
            fields.truncate(8);
        }
        text + &fields.join(" ") + "\n"
    })
}

/// Kills the primary of shard 0, rewrites its map, restarts it at once, and lets it rejoin when its replica was promoted.
async fn restart_with(world: &mut World, what: &str, rewrite: impl Fn(&str, IpAddr) -> String) {
    let old = world.primary().await;
    let new = 1 - old;
    let replica = world.places[new].ip;
    world.places[old].kill();
    let path = world.places[old].data().join("nodes.conf");
    let map = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, rewrite(&map, replica)).unwrap();
    world.places[old].start();
    let node = operator(world.places[old].ip);
    eventually(&format!("{what}: the killed server answers"), 20, async || {
        node.ping().await.is_ok()
    })
    .await;
    eventually(&format!("{what}: its replica is promoted"), 20, async || {
        let info = operator(replica).info(&["replication"]).await;
        info.is_ok_and(|info| info.upstream.is_none()) || keys(replica).await == 0
    })
    .await;
    assert_eq!(keys(replica).await, KEYS, "{what}: {}", world.places[old].log());
    world.rejoin(old, new).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_primary_with_an_old_map_costs_its_replica_nothing() {
    for generation in GENERATIONS {
        let mut world = World::new(generation, 3, &spec()).await;
        let first = world.primary().await;
        world.fill(first).await;

        let what = format!("{generation:?}, the first peer of the map is a blank server");
        let mut blank = Place::new(generation, &spec());
        blank.start();
        eventually("the blank server answers", 20, async || {
            operator(blank.ip).ping().await.is_ok()
        })
        .await;
        restart_with(&mut world, &what, |map, replica| {
            let rest = without(map, |row| row.contains(&format!("{replica}:")));
            replica_at(blank.ip, "a") + &rest
        })
        .await;

        let what = format!("{generation:?}, the only peer of the map does not respond");
        let silent = free_address();
        let listener = TcpListener::bind((silent, objects::PORT)).unwrap();
        restart_with(&mut world, &what, |map, _| {
            let rest = without(map, |row| !row.contains("myself") && !row.starts_with("vars"));
            replica_at(silent, "b") + &rest
        })
        .await;
        drop(listener);

        let what = format!("{generation:?}, the map is older than the promotion");
        restart_with(&mut world, &what, |map, _| before_its_promotion(map)).await;
    }
}

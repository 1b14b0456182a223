//! The member monitor with real servers: what it notices, how fast, and what triggers no reconcile.

#[allow(dead_code)] // it serves other tests too
#[path = "../../valkey-admin/tests/servers/mod.rs"]
mod servers;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use candor_engine::model::{MemberRef, ShardIndex};
use candor_engine::observation::{Facts, Server as Seen};
use candor_operator::monitor::{ClusterKey, ClusterKind, Monitor};
use servers::{Generation, PORT, Server, cluster, eventually};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::timeout;
use valkey_admin::client::{Credentials, Endpoint, Failover};

fn member(node: usize) -> MemberRef {
    MemberRef {
        shard: ShardIndex(0),
        node: u32::try_from(node).unwrap(),
    }
}

fn up(observation: &Seen) -> bool {
    matches!(observation, Seen::Up(_))
}

fn dead(observation: &Seen) -> bool {
    matches!(observation, Seen::Dead { .. })
}

fn silent(observation: &Seen) -> bool {
    matches!(observation, Seen::Silent { .. })
}

/// A monitor of servers, as members 0-0, 0-1 … of one cluster.
struct Bench {
    monitor: Monitor,
    key: ClusterKey,
    calls: UnboundedReceiver<ClusterKey>,
}

impl Bench {
    fn over(endpoints: impl IntoIterator<Item = Endpoint>) -> Self {
        let (sender, calls) = unbounded_channel();
        let bench = Self {
            monitor: Monitor::new(sender),
            key: ClusterKey {
                kind: ClusterKind::Valkey,
                namespace: "shop".to_owned(),
                name: "cart".to_owned(),
            },
            calls,
        };
        bench.watch(endpoints);
        bench
    }

    fn of(servers: &[Server]) -> Self {
        Self::over(servers.iter().map(|server| Endpoint::plain(server.ip, PORT)))
    }

    fn watch(&self, endpoints: impl IntoIterator<Item = Endpoint>) {
        let members = endpoints.into_iter().enumerate().map(|(at, one)| (member(at), one));
        self.monitor.watch(&self.key, members.collect());
    }

    async fn scrape(&self) -> BTreeMap<MemberRef, Seen> {
        self.monitor.scrape(&self.key).await
    }

    async fn one(&self, node: usize) -> Seen {
        self.scrape().await.remove(&member(node)).unwrap()
    }

    async fn facts(&self, node: usize) -> Box<Facts> {
        match self.one(node).await {
            Seen::Up(facts) => facts,
            other => panic!("member {node} is {other:?}"),
        }
    }

    /// Reads triggers until none has arrived for longer than two probe intervals.
    async fn calm(&mut self) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while timeout(Duration::from_millis(1500), self.calls.recv()).await.is_ok() {
            assert!(Instant::now() < deadline, "a healthy cluster keeps calling");
        }
    }

    /// The time until a trigger after which the condition holds for a member.
    async fn called(&mut self, what: &str, within: Duration, node: usize, so: impl Fn(&Seen) -> bool) -> Duration {
        let start = Instant::now();
        loop {
            let left = within.saturating_sub(start.elapsed());
            let call = timeout(left, self.calls.recv()).await;
            let observation = self.one(node).await;
            assert!(call.is_ok(), "not called in {within:?}: {what}; it is {observation:?}");
            let took = start.elapsed();
            if so(&observation) {
                println!("{what}: {took:?}");
                return took;
            }
        }
    }
}

/// Three primaries and a replica of the first, without pending triggers.
async fn four(generation: Generation) -> (Vec<Server>, Bench) {
    let shares = [Some("0-5460"), Some("5461-10922"), Some("10923-16383"), None];
    let servers = cluster(generation, &shares).await;
    let primary = servers[0].node().my_id().await.unwrap();
    let replica = servers[3].node();
    eventually("it follows", async || replica.replicate(primary).await.is_ok()).await;
    eventually("it is in sync", async || replica.info(&[]).await.unwrap().in_sync()).await;
    let mut bench = Bench::of(&servers);
    bench.calm().await;
    (servers, bench)
}

#[tokio::test]
async fn every_fact_of_a_member_is_read_on_every_server_version() {
    for generation in [Generation::Newest, Generation::Valkey8, Generation::Redis7] {
        let (servers, mut bench) = four(generation).await;
        let start = Instant::now();
        let observation = bench.scrape().await;
        println!(
            "{generation:?}: everything of {} members in {:?}",
            observation.len(),
            start.elapsed()
        );
        for (at, server) in servers.iter().enumerate() {
            let facts = bench.facts(at).await;
            assert_eq!(facts.id, server.node().my_id().await.unwrap());
            assert_eq!(facts.map.0.len(), 4);
            assert!(facts.ok && !facts.loading && !facts.link_down);
            assert_eq!(facts.node_timeout, 1000);
            assert!(facts.version.is_some() && !facts.run_id.is_empty());
            assert_eq!((facts.in_sync, facts.was_in_sync), (at == 3, at == 3));
            assert_eq!(facts.is_primary(), at != 3);
        }
        let node = bench.monitor.node(&bench.key, member(0)).unwrap();
        node.ping().await.unwrap();
        assert!(bench.monitor.node(&bench.key, member(9)).is_none());
        let call = bench.calls.try_recv();
        assert!(call.is_err(), "a look by ourselves calls for nothing");
    }
}

#[tokio::test]
async fn a_killed_primary_refuses_connections_at_once_and_its_replica_is_a_candidate() {
    let (mut servers, mut bench) = four(Generation::Newest).await;
    servers[0].kill();
    let took = bench.called("killed: dead", Duration::from_secs(1), 0, dead).await;
    assert!(took < Duration::from_millis(300), "{took:?}");
    eventually("the replica's own link is down", async || {
        bench.facts(3).await.link_down
    })
    .await;
    let candidate = bench.facts(3).await;
    assert!(
        candidate.was_in_sync && !candidate.in_sync && candidate.offset > 1,
        "{candidate:?}"
    );
    let node = bench.monitor.node(&bench.key, member(3)).unwrap();
    node.failover(Failover::Force).await.unwrap();
    bench
        .called(
            "FAILOVER FORCE: promoted",
            Duration::from_secs(5),
            3,
            |observation| matches!(observation, Seen::Up(facts) if facts.is_primary()),
        )
        .await;
    let id = bench.facts(3).await.id;
    servers[0].restart();
    let follows = |observation: &Seen| matches!(observation, Seen::Up(facts) if facts.me().is_some_and(|me| me.primary == Some(id)));
    bench
        .called(
            "restarted: follows the new primary",
            Duration::from_secs(10),
            0,
            follows,
        )
        .await;
    bench.calm().await;
    assert!(bench.facts(0).await.in_sync);
}

#[tokio::test]
async fn a_frozen_member_is_not_responding_within_the_deadline_and_responds_at_once_when_thawed() {
    let server = Server::start(Generation::Newest, &[]);
    let mut bench = Bench::of(std::slice::from_ref(&server));
    bench.called("a new server: up", Duration::from_secs(10), 0, up).await;
    bench.calm().await;
    server.signal("-STOP");
    let took = bench.called("frozen: silent", Duration::from_secs(2), 0, silent).await;
    assert!(took > Duration::from_millis(900), "silence is a second long: {took:?}");
    let start = Instant::now();
    let first = bench.one(0).await;
    assert!(start.elapsed() < Duration::from_millis(50), "it is not asked again");
    assert_eq!(bench.one(0).await, first, "since when it is silent does not move");
    server.signal("-CONT");
    let took = bench.called("thawed: up", Duration::from_secs(2), 0, up).await;
    assert!(took < Duration::from_millis(500), "{took:?}");
    server.signal("-STOP");
    bench
        .called("frozen again: silent", Duration::from_secs(2), 0, silent)
        .await;
    server.signal("-KILL");
    bench
        .called("killed while frozen: dead", Duration::from_secs(1), 0, dead)
        .await;
}

#[tokio::test]
async fn a_refused_connection_is_evidence_only_after_the_member_has_listened() {
    let mut server = Server::start(Generation::Newest, &[]);
    server.kill();
    let mut bench = Bench::of(std::slice::from_ref(&server));
    assert_eq!(bench.one(0).await, Seen::Nowhere);
    assert!(bench.calls.try_recv().is_err(), "not up yet is no news");
    server.restart();
    bench.called("first start: up", Duration::from_secs(5), 0, up).await;
    for round in 1..=3 {
        let before = bench.facts(0).await.run_id;
        server.kill();
        server.restart();
        bench
            .called(
                &format!("restart {round}: another process"),
                Duration::from_secs(5),
                0,
                |observation| matches!(observation, Seen::Up(facts) if facts.run_id != before),
            )
            .await;
    }
    server.kill();
    bench.called("killed: dead", Duration::from_secs(1), 0, dead).await;
}

#[tokio::test]
async fn a_lost_link_is_noticed_and_a_primary_that_outlives_it_ends_the_candidacy() {
    let (servers, mut bench) = four(Generation::Newest).await;
    let primary = servers[0].node();
    primary.config_set(&[("requirepass", "changed")]).await.unwrap();
    let mut cut = redis::cmd("CLIENT");
    primary.order(cut.arg("KILL").arg("TYPE").arg("replica")).await.unwrap();
    bench
        .called(
            "the link is cut: down",
            Duration::from_secs(1),
            3,
            |observation| matches!(observation, Seen::Up(facts) if facts.link_down && !facts.in_sync),
        )
        .await;
    eventually("the primary went on without it", async || {
        !bench.facts(3).await.was_in_sync
    })
    .await;
    primary.config_set(&[("requirepass", "")]).await.unwrap();
    bench
        .called(
            "the link may come back: in sync",
            Duration::from_secs(10),
            3,
            |observation| matches!(observation, Seen::Up(facts) if facts.in_sync && facts.was_in_sync),
        )
        .await;
}

#[tokio::test]
async fn a_wrong_password_is_reported_and_the_right_one_keeps_what_is_known() {
    let mut server = Server::start(Generation::Newest, &["--requirepass", "right"]);
    let endpoint = |password: &str| Endpoint {
        credentials: Some(Credentials {
            user: "default".to_owned(),
            password: password.to_owned(),
        }),
        ..Endpoint::plain(server.ip, PORT)
    };
    let (wrong, right) = (endpoint("not-this"), endpoint("right"));
    let mut bench = Bench::over([wrong]);
    bench
        .called("a wrong password: nothing usable", Duration::from_secs(5), 0, silent)
        .await;
    let message = bench.monitor.trouble(&bench.key, member(0)).unwrap();
    assert!(
        message.contains("WRONGPASS") && !message.contains("not-this"),
        "{message}"
    );
    bench.watch([right]);
    bench.called("the right one: up", Duration::from_secs(2), 0, up).await;
    assert_eq!(bench.monitor.trouble(&bench.key, member(0)), None);
    server.kill();
    bench.called("killed: dead", Duration::from_secs(1), 0, dead).await;
    bench.monitor.forget(&bench.key);
    assert!(bench.scrape().await.is_empty());
}

/// Sends many small writes to a slot of the first primary, and waits for all replies.
async fn write_many(server: &Server, commands: usize) {
    let stream = tokio::net::TcpStream::connect((server.ip, PORT)).await.unwrap();
    let (reader, mut writer) = stream.into_split();
    let sending = tokio::spawn(async move {
        let batch = b"INCR b\r\n".repeat(1000);
        for _ in 0..commands / 1000 {
            writer.write_all(&batch).await.unwrap();
        }
        writer
    });
    let mut lines = BufReader::new(reader).lines();
    for _ in 0..commands {
        let line = lines.next_line().await.unwrap().unwrap();
        assert!(line.starts_with(':'), "{line}");
    }
    sending.await.unwrap();
}

#[tokio::test]
async fn a_thawed_replica_is_in_sync_only_after_its_primary_confirms_it() {
    for generation in [Generation::Newest, Generation::Valkey8, Generation::Redis7] {
        let (servers, mut bench) = four(generation).await;
        servers[3].signal("-STOP");
        bench.called("frozen: silent", Duration::from_secs(2), 3, silent).await;
        // The replica will read these writes from its socket before it notices that the link is closed.
        write_many(&servers[0], 300_000).await;
        let mut cut = redis::cmd("CLIENT");
        let primary = servers[0].node();
        primary.order(cut.arg("KILL").arg("TYPE").arg("replica")).await.unwrap();
        servers[3].signal("-CONT");
        let deadline = Instant::now() + Duration::from_secs(20);
        let mut was = false;
        loop {
            let in_sync = matches!(bench.one(3).await, Seen::Up(facts) if facts.in_sync);
            assert!(in_sync || !was, "{generation:?}: in sync, and then not any more");
            // In sync with the primary, not only in its own opinion.
            if in_sync && primary.info(&["replication"]).await.unwrap().connected_replicas == 1 && was {
                break;
            }
            was = in_sync;
            assert!(Instant::now() < deadline, "{generation:?}: never in sync again");
        }
    }
}

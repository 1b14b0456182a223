//! What servers of every generation say, and what no server should say.

use std::collections::BTreeSet;

use proptest::prelude::*;
use valkey_admin::decode::{Decoder, Limits};
use valkey_admin::ids::{Family, Version};
use valkey_admin::info::{ClusterInfo, Info, OnlineReplica, RoleKind, online_replicas};
use valkey_admin::migrations::{self, Direction, Progress};
use valkey_admin::nodes::Mark;
use valkey_admin::role::{Link, Role};
use valkey_admin::shards::{self, Health};
use valkey_admin::{Capabilities, ClusterNodes, NodeId, Reply, Slot, SlotRange, SlotSet, capability::MoveBy};

const A: &str = "07c37dfeb235213a872192d90877d0cd55635b91";
const B: &str = "67ed2db8d677e59ec4a4cefb06858cf2a1a89fa1";

fn text(text: &str) -> Reply {
    Reply::from(text)
}

fn list(items: Vec<Reply>) -> Reply {
    Reply::Array(items)
}

#[test]
fn cluster_nodes_of_valkey_with_shard_ids_and_host_names() {
    let map = ClusterNodes::parse(&format!(
        "{A} 10.0.0.1:6379@16379,one.example,shard-id={B} myself,master - 0 1426238317239 4 connected 0-5460 7000 [93->-{B}] [77-<-{B}]\n\
         {B} 10.0.0.2:6379@16379,,shard-id={A} slave,fail? {A} 1426238316232 0 5 disconnected\n"
    ))
    .unwrap();
    let me = map.myself().unwrap();
    assert_eq!(me.slots.to_string(), "0-5460,7000");
    assert_eq!(me.address.hostname.as_deref(), Some("one.example"));
    assert_eq!(me.aux("shard-id"), Some(B));
    let b: NodeId = B.parse().unwrap();
    assert_eq!(
        me.marks,
        [
            Mark::Migrating {
                slot: Slot::new(93).unwrap(),
                to: b
            },
            Mark::Importing {
                slot: Slot::new(77).unwrap(),
                from: b
            }
        ]
    );
    let other = map.get(b).unwrap();
    assert!(other.flags.replica && other.flags.suspected && !other.linked);
    assert_eq!(other.primary.map(|id| id.to_string()).as_deref(), Some(A));
    assert_eq!(map.covered().len(), 5462);
}

#[test]
fn cluster_nodes_of_ipv6_and_of_a_node_without_an_address() {
    let map = ClusterNodes::parse(&format!(
        "{A} fd00::12:6379@16379 myself,master - 0 0 1 connected\n{B} :0@0 master,noaddr - 0 0 0 disconnected"
    ))
    .unwrap();
    assert_eq!(map.myself().unwrap().address.to_string(), "[fd00::12]:6379");
    let gone = map.get(B.parse().unwrap()).unwrap();
    assert!(gone.flags.no_address);
    assert_eq!(gone.address.host, "");
}

#[test]
fn one_broken_line_fails_the_whole_map() {
    let good = format!("{A} 10.0.0.1:6379@16379 myself,master - 0 0 1 connected 0-5460");
    for bad in [
        "nonsense",
        &format!("{B} 10.0.0.2 master - 0 0 1 connected"),
        &format!("{good} 9-5"),
        &format!("{good} 20000"),
    ] {
        let error = ClusterNodes::parse(&format!("{good}\n{bad}")).unwrap_err();
        assert!(!error.to_string().is_empty(), "{bad}");
    }
}

#[test]
fn the_version_of_valkey_is_not_the_one_it_shows_to_old_clients() {
    let valkey = Info::parse("redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.1.2\r\n").unwrap();
    let first_valkey = Info::parse("redis_version:7.2.5\r\nserver_name:valkey\r\n").unwrap();
    let redis = Info::parse("# Server\r\nredis_version:7.0.15\r\n").unwrap();
    let version = |family, text| Some(Version::parse(family, text).unwrap());
    assert_eq!(valkey.version, version(Family::Valkey, "9.1.2"));
    assert_eq!(first_valkey.version, version(Family::Valkey, "7.2.5"));
    assert_eq!(redis.version, version(Family::Redis, "7.0.15"));
}

#[test]
fn slot_migration_uses_the_best_method_of_the_version() {
    for (family, version, way) in [
        (Family::Valkey, "7.2.4", MoveBy::Legacy),
        (Family::Valkey, "8.1.0", MoveBy::Legacy),
        (Family::Valkey, "9.0.0-rc1", MoveBy::Push),
        (Family::Valkey, "9.1.2", MoveBy::Push),
        (Family::Redis, "7.0.15", MoveBy::Legacy),
        (Family::Redis, "8.2.1", MoveBy::Legacy),
        (Family::Redis, "8.4.0", MoveBy::Pull),
    ] {
        assert_eq!(
            Capabilities::of(Version::parse(family, version).unwrap()).moves,
            way,
            "{family:?} {version}"
        );
    }
}

#[test]
fn a_replica_is_in_sync_only_with_its_link_up_and_no_copy_running() {
    let of = |link: &str, copying: u8, loading: u8| {
        Info::parse(&format!(
            "loading:{loading}\r\nrole:slave\r\nmaster_host:10.0.0.1\r\nmaster_port:6379\r\nmaster_link_status:{link}\r\n\
             master_sync_in_progress:{copying}\r\nslave_repl_offset:12\r\nmaster_repl_offset:11\r\ndb0:keys=3,expires=0\r\ndb12:keys=4"
        ))
        .unwrap()
    };
    let synced = of("up", 0, 0);
    assert_eq!(
        (synced.role, synced.offset, synced.keys),
        (Some(RoleKind::Replica), Some(12), 7)
    );
    assert!(synced.in_sync());
    assert!(!of("down", 0, 0).in_sync());
    assert!(!of("up", 1, 0).in_sync());
    assert!(!of("up", 0, 1).in_sync());
}

#[test]
fn cluster_info_needs_every_field_it_speaks_of() {
    let whole = "cluster_state:ok\r\ncluster_slots_assigned:16384\r\ncluster_slots_ok:16384\r\ncluster_slots_pfail:0\r\n\
                 cluster_slots_fail:0\r\ncluster_known_nodes:6\r\ncluster_size:3\r\ncluster_current_epoch:6\r\n\
                 cluster_my_epoch:2\r\ntotal_cluster_links_buffer_limit_exceeded:0\r\n";
    let info = ClusterInfo::parse(whole).unwrap();
    assert!(info.ok);
    assert_eq!((info.slots_ok, info.size, info.current_epoch.0), (16384, 3, 6));
    for line in whole.lines().filter(|line| line.starts_with("cluster_")) {
        let without: String = whole
            .lines()
            .filter(|other| *other != line)
            .collect::<Vec<_>>()
            .join("\n");
        assert!(ClusterInfo::parse(&without).is_err(), "{line}");
    }
}

#[test]
fn role_of_both_kinds() {
    let primary = list(vec![
        text("master"),
        Reply::Int(3_129_659),
        list(vec![list(vec![text("10.0.0.9"), text("6379"), text("3129242")])]),
    ]);
    let Role::Primary { offset, followers } = Role::parse(&primary).unwrap() else {
        panic!("a primary")
    };
    assert_eq!((offset, followers[0].offset), (3_129_659, 3_129_242));
    let replica = list(vec![
        text("slave"),
        text("10.0.0.1"),
        Reply::Int(6379),
        text("connected"),
        Reply::Int(-1),
    ]);
    assert_eq!(
        Role::parse(&replica).unwrap(),
        Role::Replica {
            host: "10.0.0.1".to_owned(),
            port: 6379,
            link: Link::Connected,
            offset: None
        }
    );
}

#[test]
fn cluster_shards_in_both_protocols() {
    let fields = [
        ("id", text(A)),
        ("port", Reply::Int(6379)),
        ("ip", text("10.0.0.1")),
        ("endpoint", Reply::Nil),
        ("role", text("master")),
        ("replication-offset", Reply::Int(72156)),
        ("health", text("loading")),
    ];
    let flat = |pairs: &[(&str, Reply)]| list(pairs.iter().flat_map(|(k, v)| [text(k), v.clone()]).collect());
    let map = |pairs: &[(&str, Reply)]| Reply::Map(pairs.iter().map(|(k, v)| (text(k), v.clone())).collect());
    let slots = list(vec![
        Reply::Int(0),
        Reply::Int(5460),
        Reply::Int(6000),
        Reply::Int(6000),
    ]);
    let old = list(vec![flat(&[
        ("slots", slots.clone()),
        ("nodes", list(vec![flat(&fields)])),
    ])]);
    let new = list(vec![map(&[("slots", slots), ("nodes", list(vec![map(&fields)]))])]);
    let parsed = shards::parse(&old).unwrap();
    assert_eq!(parsed, shards::parse(&new).unwrap());
    assert_eq!(parsed[0].slots.to_string(), "0-5460,6000");
    assert_eq!(parsed[0].nodes[0].health, Health::Loading);
}

#[test]
fn a_migration_runs_until_the_server_names_one_of_three_ends() {
    let of = |state: &str| {
        let pairs = [
            ("name", text("b1")),
            ("operation", text("EXPORT")),
            ("slot_ranges", text("0-10 12-12")),
            ("target_node", text(B)),
            ("source_node", text(A)),
            ("create_time", Reply::Int(1)),
            ("last_update_time", Reply::Int(2)),
            ("state", text(state)),
            ("message", text("why")),
        ];
        let job = Reply::Map(pairs.into_iter().map(|(k, v)| (text(k), v)).collect());
        migrations::parse(&list(vec![job])).unwrap().remove(0)
    };
    let running = of("waiting-to-snapshot");
    assert_eq!(
        (running.direction, running.progress),
        (Direction::Export, Progress::Running)
    );
    assert_eq!(running.slots.to_string(), "0-10,12");
    assert_eq!(of("success").progress, Progress::Success);
    assert_eq!(of("failed").progress, Progress::Failed);
    assert_eq!(of("cancelled").progress, Progress::Cancelled);
}

#[test]
fn an_error_shows_what_was_found_but_never_floods() {
    let error = ClusterNodes::parse(&"é".repeat(5000)).unwrap_err();
    assert!(error.to_string().chars().count() < 200, "{error}");
}

fn any_reply() -> impl Strategy<Value = Reply> {
    let text = prop_oneof![
        Just("role"),
        Just("slots"),
        Just("nodes"),
        Just("id"),
        Just(A),
        Just("master"),
        Just("slave"),
        Just("health"),
        Just("state"),
        Just("slot_ranges"),
        Just("0-16383"),
        Just("operation"),
        Just("connected"),
        Just("name"),
    ];
    let leaf = prop_oneof![
        Just(Reply::Nil),
        any::<i64>().prop_map(Reply::Int),
        proptest::collection::vec(any::<u8>(), 0..40).prop_map(Reply::Bytes),
        text.prop_map(Reply::from),
        ".*".prop_map(Reply::Error),
    ];
    leaf.prop_recursive(5, 64, 8, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..8).prop_map(Reply::Array),
            proptest::collection::vec((inner.clone(), inner), 0..8).prop_map(Reply::Map),
        ]
    })
}

/// Lines that are nearly right reach deeper into a parser than noise does.
fn nearly_nodes() -> impl Strategy<Value = String> {
    let field = prop_oneof![
        Just(A.to_owned()),
        Just(B.to_owned()),
        Just("-".to_owned()),
        Just("connected".to_owned()),
        Just("10.0.0.1:6379@16379,host,shard-id=x".to_owned()),
        Just("::1:6379@16379".to_owned()),
        Just("myself,master".to_owned()),
        Just("0-16383".to_owned()),
        Just("[5->-".to_owned() + A + "]"),
        "[0-9]{0,25}",
        "[-0-9<>\\[\\]]{0,12}",
        "\\PC{0,8}",
    ];
    proptest::collection::vec(proptest::collection::vec(field, 0..14), 0..6).prop_map(|lines| {
        lines
            .iter()
            .map(|fields| fields.join(" "))
            .collect::<Vec<_>>()
            .join("\n")
    })
}

/// As RESP3 puts it on the wire.
fn encode(reply: &Reply, wire: &mut Vec<u8>) {
    let line = |wire: &mut Vec<u8>, text: String| wire.extend((text + "\r\n").into_bytes());
    match reply {
        Reply::Nil => line(wire, "_".to_owned()),
        Reply::Int(number) => line(wire, format!(":{number}")),
        Reply::Bytes(bytes) => {
            line(wire, format!("${}", bytes.len()));
            wire.extend(bytes);
            wire.extend(b"\r\n");
        }
        Reply::Array(items) => {
            line(wire, format!("*{}", items.len()));
            for item in items {
                encode(item, wire);
            }
        }
        Reply::Map(pairs) => {
            line(wire, format!("%{}", pairs.len()));
            for (key, value) in pairs {
                encode(key, wire);
                encode(value, wire);
            }
        }
        Reply::Error(message) => {
            line(wire, format!("!{}", message.len()));
            line(wire, message.clone());
        }
    }
}

/// Overlapping, touching and apart, at both ends of what there is.
fn slot_ranges() -> impl Strategy<Value = Vec<SlotRange>> {
    let range = (0u16..60, 0u16..8, any::<bool>()).prop_filter_map("a range", |(first, more, low)| {
        let first = if low { first } else { 16383 - first };
        SlotRange::new(Slot::new(first)?, Slot::new((first + more).min(16383))?)
    });
    proptest::collection::vec(range, 0..12)
}

fn decoder(bytes: &[u8]) -> Decoder {
    let mut decoder = Decoder::new(Limits::REPLY);
    decoder.feed(bytes);
    decoder
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_text_makes_a_parser_panic(noise in "(?s).{0,400}", nearly in nearly_nodes()) {
        for text in [&noise, &nearly] {
            let _ = ClusterNodes::parse(text);
            let _ = Info::parse(text);
            let _ = ClusterInfo::parse(text);
            let _ = text.parse::<SlotRange>();
            let _ = text.parse::<NodeId>();
            let _ = text.parse::<SlotSet>();
            let _ = Version::parse(Family::Redis, text);
        }
    }

    #[test]
    fn what_was_encoded_is_decoded_whole_and_no_part_of_it_early(reply in any_reply(), cut in 1usize..50) {
        let mut wire = Vec::new();
        encode(&reply, &mut wire);
        for end in (0..wire.len()).step_by(1 + wire.len() / 40) {
            prop_assert_eq!(decoder(&wire[..end]).next_reply(), Ok(None), "{} of {}", end, wire.len());
        }
        let mut pieces = decoder(b"");
        for piece in wire.chunks(cut) {
            prop_assert_eq!(pieces.next_reply(), Ok(None));
            pieces.feed(piece);
        }
        prop_assert_eq!(pieces.next_reply(), Ok(Some(reply.clone())));
        prop_assert!(pieces.is_empty());
        let mut twice = wire.clone();
        twice.extend(&wire);
        let mut twice = decoder(&twice);
        prop_assert_eq!(twice.next_reply(), Ok(Some(reply.clone())));
        prop_assert_eq!(twice.next_reply(), Ok(Some(reply)));
        prop_assert!(twice.is_empty());
    }

    #[test]
    fn no_bytes_make_the_decoder_panic(noise in proptest::collection::vec(any::<u8>(), 0..200), kind in "[-+:$*%~>#_,(!=|]", length in -3i64..i64::MAX) {
        let _ = decoder(&noise).next_reply();
        let mut promised = format!("{kind}{length}\r\n").into_bytes();
        promised.extend(noise);
        let _ = decoder(&promised).next_reply();
    }

    #[test]
    fn no_reply_makes_a_parser_panic(reply in any_reply()) {
        let _ = Role::parse(&reply);
        let _ = shards::parse(&reply);
        let _ = migrations::parse(&reply);
    }

    #[test]
    fn a_set_of_slots_survives_being_written_and_read(numbers in proptest::collection::btree_set(0u16..16384, 0..300)) {
        let set: SlotSet = numbers.iter().filter_map(|n| Slot::new(*n)).collect();
        prop_assert_eq!(set.len(), numbers.len());
        prop_assert_eq!(set.iter().map(Slot::get).collect::<Vec<_>>(), numbers.into_iter().collect::<Vec<_>>());
        prop_assert_eq!(set.to_string().parse::<SlotSet>().unwrap(), set);
    }

    #[test]
    fn sets_of_slots_are_sets_of_numbers(
        one in slot_ranges(), two in slot_ranges(), taken in proptest::collection::vec(0u16..60, 0..10)
    ) {
        let numbers = |ranges: &[SlotRange]| -> BTreeSet<u16> {
            ranges.iter().flat_map(|range| range.slots()).map(Slot::get).collect()
        };
        let plain = |set: &SlotSet| -> BTreeSet<u16> { set.iter().map(Slot::get).collect() };
        let (mut a, b): (SlotSet, SlotSet) = (one.iter().copied().collect(), two.iter().copied().collect());
        let (mut x, y) = (numbers(&one), numbers(&two));
        for number in taken {
            let slot = Slot::new(number).unwrap();
            prop_assert_eq!(a.contains(slot), x.contains(&number));
            if number % 2 == 0 {
                prop_assert_eq!(a.remove(slot), x.remove(&number));
            } else {
                prop_assert_eq!(a.insert(slot), x.insert(number));
            }
        }
        prop_assert_eq!(plain(&a), x.clone());
        prop_assert_eq!(a.len(), x.len());
        prop_assert_eq!(plain(&a.union(&b)), x.union(&y).copied().collect::<BTreeSet<_>>());
        prop_assert_eq!(plain(&a.intersection(&b)), x.intersection(&y).copied().collect::<BTreeSet<_>>());
        prop_assert_eq!(plain(&a.difference(&b)), x.difference(&y).copied().collect::<BTreeSet<_>>());
        prop_assert_eq!(SlotSet::full().difference(&a).union(&a), SlotSet::full());
        let again: SlotSet = x.iter().rev().filter_map(|number| Slot::new(*number)).collect();
        prop_assert_eq!(again, a, "equal sets are equal however they came to be");
    }

    #[test]
    fn shards_share_all_slots_evenly_and_without_a_gap(shards in 1u32..1000) {
        let ranges: Vec<SlotRange> = (0..shards).map(|i| SlotRange::of_shard(i, shards).unwrap()).collect();
        prop_assert!(ranges.iter().copied().collect::<SlotSet>().is_full());
        prop_assert_eq!(ranges.iter().map(|r| u32::from(r.count())).sum::<u32>(), 16384);
        let sizes = ranges.iter().map(|r| r.count());
        prop_assert!(sizes.clone().max().unwrap() - sizes.min().unwrap() <= 1);
    }
}

#[test]
fn a_primarys_online_replicas_are_read_with_the_age_of_their_acknowledgement() {
    let text = "role:master\r\nconnected_slaves:4\r\n\
        slave0:ip=10.0.0.1,port=6379,state=online,offset=28,lag=3,type=replica\r\n\
        slave1:ip=fd00::1,port=6380,state=online,offset=28,lag=0\r\n\
        slave2:ip=10.0.0.2,port=6379,state=wait_bgsave,offset=0,lag=0,type=replica\r\n\
        slave3:ip=10.0.0.3,port=6379,state=online\r\n\
        slave_repl_offset:7\r\nslaves:ip=10.0.0.4,port=1,state=online,lag=0\r\n";
    let online = |host: &str, port, lag_seconds| OnlineReplica {
        host: host.to_owned(),
        port,
        lag_seconds,
    };
    assert_eq!(
        online_replicas(text),
        [online("10.0.0.1", 6379, 3), online("fd00::1", 6380, 0)]
    );
    assert_eq!(online_replicas("role:slave\r\n"), []);
}

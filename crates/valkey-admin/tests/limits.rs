//! What a reply may take: limits of the decoder, and its cost.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use valkey_admin::Reply;
use valkey_admin::decode::{DecodeError, Decoder, Exceeded, Limits};

const LIMITS: Limits = Limits {
    bytes: 1000,
    items: 20,
    depth: 3,
};

fn decode(bytes: &[u8]) -> Result<Option<Reply>, DecodeError> {
    let mut decoder = Decoder::new(LIMITS);
    decoder.feed(bytes);
    decoder.next_reply()
}

#[test]
fn a_reply_above_a_limit_is_rejected_before_it_has_arrived() {
    let bytes = Some(Exceeded::Bytes(1000));
    let items = Some(Exceeded::Items(20));
    let depth = Some(Exceeded::Depth(3));
    let table: [(&str, String, Option<Exceeded>); 14] = [
        ("a text within the limit", "$900\r\n".to_owned(), None),
        ("a text above it", "$1001\r\n".to_owned(), bytes),
        ("the longest there is", format!("${}\r\n", i64::MAX), bytes),
        (
            "texts that are above it together",
            format!("*2\r\n$900\r\n{}\r\n$100\r\n", "x".repeat(900)),
            bytes,
        ),
        ("a line without an end", "+".repeat(1001), bytes),
        ("a line with an end", format!("+{}\r\n", "x".repeat(1000)), bytes),
        ("a length without an end", format!("${}", "1".repeat(1001)), bytes),
        ("items within the limit", "*20\r\n".to_owned(), None),
        ("items above it", "*21\r\n".to_owned(), items),
        ("pairs above it", "%11\r\n".to_owned(), items),
        ("as many pairs as there can be", format!("%{}\r\n", i64::MAX), items),
        (
            "items that are above it together",
            "*2\r\n*10\r\n".to_owned() + &":1\r\n".repeat(10) + "*9\r\n",
            items,
        ),
        ("lists in lists within the limit", "*1\r\n".repeat(3), None),
        ("lists in lists above it", "*1\r\n".repeat(4), depth),
    ];
    for (what, wire, exceeded) in table {
        let expected = exceeded.map_or(Ok(None), |limit| Err(DecodeError::TooLarge(limit)));
        assert_eq!(decode(wire.as_bytes()), expected, "{what}");
    }
}

#[test]
fn each_request_has_the_limits_for_all_its_replies_together() {
    let half = format!("$600\r\n{}\r\n", "x".repeat(600));
    let mut decoder = Decoder::new(LIMITS);
    for _ in 0..3 {
        decoder.feed(half.as_bytes());
        decoder.begin(LIMITS);
        assert!(decoder.next_reply().unwrap().is_some());
    }
    decoder.feed(half.as_bytes());
    let exceeded = Err(DecodeError::TooLarge(Exceeded::Bytes(1000)));
    assert_eq!(decoder.next_reply(), exceeded, "without another request");
}

#[test]
fn a_long_error_message_is_cut() {
    let mut decoder = Decoder::new(Limits::STATE);
    decoder.feed(format!("-ERR {}\r\n", "x".repeat(100_000)).as_bytes());
    let Some(Reply::Error(message)) = decoder.next_reply().unwrap() else {
        panic!("no error");
    };
    assert!(
        message.starts_with("ERR xxx") && message.len() == 1024,
        "{}",
        message.len()
    );
}

/// One byte at a time: what is decoded again from its first byte at every read takes hours for these.
#[test]
fn decoding_costs_the_same_in_whatever_pieces_a_reply_arrives() {
    let text = format!("$1000000\r\n{}\r\n", "x".repeat(1_000_000));
    let line = format!("+{}\r\n", "x".repeat(1_000_000));
    let list = "*60000\r\n".to_owned() + &"$2\r\nhi\r\n".repeat(60_000);
    let begun = Instant::now();
    for wire in [text, line, list] {
        let mut decoder = Decoder::new(Limits::STATE);
        let (last, all) = wire.as_bytes().split_last().unwrap();
        for byte in all {
            decoder.feed(&[*byte]);
            assert_eq!(decoder.next_reply(), Ok(None));
        }
        decoder.feed(&[*last]);
        assert!(decoder.next_reply().unwrap().is_some());
        assert!(decoder.is_empty());
    }
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

#[test]
fn the_map_of_a_large_cluster_fits() {
    // 500 shards of two members, without two adjacent slots at one node.
    let mut map = String::new();
    for node in 0..1000 {
        let id = format!("{node:040x}");
        write!(
            map,
            "{id} 10.244.255.{}:6379@16379,,tls-port=0,shard-id={id} ",
            node % 256
        )
        .unwrap();
        map += "slave,fail? 07c37dfeb235213a872192d90877d0cd55635b91 1700000000000 1700000000000 1000 disconnected";
        for slot in (node..16384).step_by(1000) {
            write!(map, " {slot}").unwrap();
        }
        map += "\n";
    }
    let mut decoder = Decoder::new(Limits::STATE);
    decoder.feed(format!("${}\r\n{map}\r\n", map.len()).as_bytes());
    assert_eq!(
        decoder.next_reply().unwrap().map(|reply| reply.text("CLUSTER NODES")),
        Some(Ok(map))
    );
}

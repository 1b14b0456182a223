//! Hostile servers against the client. There is one test in this file, because it measures the memory of the process.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use valkey_admin::Slot;
use valkey_admin::client::{Deadlines, Endpoint, Node, NodeError, Wire};

#[derive(Clone, Copy, Debug)]
enum Attack {
    /// A text that never ends.
    EndlessText,
    /// A line that never ends.
    EndlessLine,
    /// Lists in lists in lists.
    EndlessNesting,
    /// More items than there is memory for.
    ManyItems,
    /// As many items as are allowed, in each of many lists.
    ManyLists,
    /// A text within the limits, one byte now and then.
    SlowDrip,
    /// Replies to what was not asked for.
    Unrequested,
}

const ATTACKS: [Attack; 7] = [
    Attack::EndlessText,
    Attack::EndlessLine,
    Attack::EndlessNesting,
    Attack::ManyItems,
    Attack::ManyLists,
    Attack::SlowDrip,
    Attack::Unrequested,
];

async fn attack(mut stream: TcpStream, how: Attack) -> std::io::Result<()> {
    let mut request = [0; 4096];
    if !matches!(how, Attack::Unrequested) && stream.read(&mut request).await? == 0 {
        return Ok(());
    }
    let (first, more): (&[u8], Vec<u8>) = match how {
        Attack::EndlessText => (b"$9223372036854775807\r\n", vec![b'x'; 65536]),
        Attack::EndlessLine => (b"+", vec![b'x'; 65536]),
        Attack::EndlessNesting => (b"", b"*1\r\n".repeat(16384)),
        Attack::ManyItems => (b"*2147483647\r\n", b":1\r\n".repeat(16384)),
        Attack::ManyLists => (b"*1000\r\n", [b"*65536\r\n".to_vec(), b"_\r\n".repeat(65536)].concat()),
        Attack::SlowDrip => (b"$1000000\r\n", Vec::new()),
        Attack::Unrequested => (b"", b"+OK\r\n".repeat(16384)),
    };
    stream.write_all(first).await?;
    loop {
        if more.is_empty() {
            stream.write_all(b"x").await?;
            tokio::time::sleep(Duration::from_millis(1)).await;
        } else {
            stream.write_all(&more).await?;
        }
    }
}

async fn hostile(how: Attack) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(attack(stream, how));
        }
    });
    address
}

/// The most memory that this process ever had, in MiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    let kib: u64 = line.split_ascii_whitespace().nth(1).unwrap().parse().unwrap();
    kib / 1024
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_server_takes_more_memory_than_its_limit_or_more_time_than_its_deadline() {
    let deadlines = Deadlines {
        connect: Duration::from_secs(1),
        answer: Duration::from_secs(1),
    };
    let before = peak();
    for how in ATTACKS {
        let address = hostile(how).await;
        let endpoint = Endpoint::plain(address.ip(), address.port());
        let begun = Instant::now();

        let node = Node::new(endpoint.clone(), deadlines);
        let error = node.cluster_nodes().await.unwrap_err();
        let message = error.to_string();
        match how {
            Attack::EndlessText | Attack::EndlessLine => {
                assert_eq!(message, format!("{address}: sent a reply above the limit of 4 MiB"));
            }
            Attack::EndlessNesting => {
                assert_eq!(
                    message,
                    format!("{address}: sent a reply above the limit of 8 levels of lists")
                );
            }
            Attack::ManyItems | Attack::ManyLists => {
                assert_eq!(
                    message,
                    format!("{address}: sent a reply above the limit of 65536 items")
                );
            }
            Attack::SlowDrip => assert!(matches!(error, NodeError::Timeout(..)), "{message}"),
            Attack::Unrequested => {}
        }
        let keys = node.keys_in_slot(Slot::of_key(b"key"), 1000).await;
        assert!(keys.is_err(), "{how:?}: {keys:?}");

        let stream = Wire::reach(address, deadlines.connect).await.unwrap();
        let mut wire = Wire::greet(stream, &endpoint, deadlines.connect).await.unwrap();
        wire.send(b"*1\r\n$4\r\nROLE\r\n").await.unwrap();
        let reply = tokio::time::timeout(deadlines.answer, wire.next()).await;
        match (how, reply) {
            (Attack::SlowDrip, Err(_)) | (Attack::Unrequested, Ok(Ok(_))) | (_, Ok(Err(NodeError::TooLarge(..)))) => {}
            (_, reply) => panic!("{how:?}: {reply:?}"),
        }
        assert!(
            begun.elapsed() < Duration::from_secs(10),
            "{how:?}: {:?}",
            begun.elapsed()
        );
    }
    let taken = peak() - before;
    assert!(taken < 48, "{taken} MiB");
}

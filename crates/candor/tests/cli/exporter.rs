//! `candor exporter` with a real server: metrics, health, and its replies after the server has stopped.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use kube_sandbox::kubelet::cached;

struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// The body of a page; `None` while the exporter does not respond.
fn get(address: SocketAddr, path: &str) -> Option<String> {
    let (code, body) = answer(address, path)?;
    assert_eq!(code, "200", "{body}");
    Some(body)
}

/// Status code and body.
fn answer(address: SocketAddr, path: &str) -> Option<(String, String)> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    let code = text.strip_prefix("HTTP/1.1 ")?.get(..3)?.to_owned();
    text.split_once("\r\n\r\n").map(|(_, body)| (code, body.to_owned()))
}

fn eventually<T>(what: &str, mut so: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(found) = so() {
            return found;
        }
        assert!(Instant::now() < deadline, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn metrics_have_the_known_names_and_a_stopped_server_is_down() {
    let folder = tempfile::tempdir().unwrap();
    let (server, listen) = (free_address(), free_address());
    let acl = "user default off\nuser reader on >word +info +ping +cluster|info +slowlog|len +hello\n\
        user admin on >word +@all ~*\n";
    std::fs::write(folder.path().join("users.acl"), acl).unwrap();
    std::fs::write(folder.path().join("password"), "word\n").unwrap();
    let port = server.port().to_string();
    let bus = free_address().port().to_string();
    let mut valkey = Command::new(cached("servers/valkey/bin/valkey-server").expect("run `make setup` once"));
    valkey
        .current_dir(folder.path())
        .args(["--bind", "127.0.0.1", "--port", &port, "--cluster-enabled", "yes"]);
    valkey.args(["--cluster-port", &bus, "--aclfile", "users.acl", "--save", ""]);
    let running = Process(valkey.stdout(Stdio::null()).spawn().unwrap());
    let mut exporter = Command::new(env!("CARGO_BIN_EXE_candor"));
    exporter
        .args(["exporter", "--user", "reader", "--password-file"])
        .arg(folder.path().join("password"));
    exporter.env("REDIS_ADDR", format!("redis://{server}"));
    exporter.env("REDIS_EXPORTER_WEB_LISTEN_ADDRESS", listen.to_string());
    let _exporter = Process(exporter.stderr(Stdio::null()).spawn().unwrap());

    assert_eq!(eventually("it is healthy", || get(listen, "/healthz")), "ok\n");
    // The first scrape does not count itself yet.
    let page = eventually("the server is up and has been asked before", || {
        get(listen, "/metrics").filter(|page| page.contains("redis_up 1\n") && page.contains("{cmd=\"info\"}"))
    });
    for start in [
        "redis_connected_clients ",
        "redis_memory_used_bytes ",
        "redis_commands_processed_total ",
        "redis_cluster_state 0",
        "redis_cluster_slots_assigned 0",
        "redis_uptime_in_seconds ",
        "redis_slowlog_length 0",
        "redis_instance_info{role=\"master\"",
        "redis_commands_total{cmd=\"info\"} ",
        "redis_cpu_user_seconds_total ",
    ] {
        assert!(page.lines().any(|line| line.starts_with(start)), "{start} in {page}");
    }
    let (code, reason) = answer(listen, "/readyz").unwrap();
    assert_eq!(
        (code.as_str(), reason.as_str()),
        ("503", "has not joined a cluster yet\n")
    );
    let mut client = TcpStream::connect(server).unwrap();
    // No other server listens on the bus port: this server owns every slot.
    write!(client, "AUTH admin word\r\nCLUSTER ADDSLOTSRANGE 0 16383\r\n").unwrap();
    eventually("a server with slots is ready", || {
        answer(listen, "/readyz").filter(|(code, _)| code == "200")
    });
    drop(running);
    let (code, reason) = answer(listen, "/readyz").unwrap();
    assert_eq!(code, "503", "{reason}");
    let page = get(listen, "/metrics").unwrap();
    assert!(page.lines().any(|line| line == "redis_up 0"), "{page}");
    assert!(
        !page.contains("redis_connected_clients"),
        "a server that is gone has no metrics"
    );
}

//! Real servers, each on its loopback address, which end with the test.

use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use valkey_admin::client::{Credentials, Deadlines, Endpoint, Node};

pub const PORT: u16 = 6379;

/// The generations that `make setup` puts into the cache.
#[derive(Clone, Copy, Debug)]
pub enum Generation {
    Newest,
    Valkey8,
    Redis8,
    Redis7,
}

impl Generation {
    pub fn program(self) -> PathBuf {
        let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cache");
        let cache = std::env::var_os("CANDOR_CACHE").map_or_else(
            || {
                std::env::var_os("XDG_CACHE_HOME")
                    .map_or_else(home, PathBuf::from)
                    .join("candor")
            },
            PathBuf::from,
        );
        let program = cache.join("servers").join(match self {
            Self::Newest => "valkey/bin/valkey-server",
            Self::Valkey8 => "valkey-8.0/bin/valkey-server",
            Self::Redis8 => "redis-8/bin/redis-server",
            Self::Redis7 => "redis-7.0/bin/redis-server",
        });
        assert!(
            program.exists(),
            "{} is missing: run `make setup` once",
            program.display()
        );
        program
    }
}

/// One server process.
pub struct Server {
    pub ip: IpAddr,
    pub process: Child,
    generation: Generation,
    extra: Vec<String>,
    folder: tempfile::TempDir,
}

impl Server {
    pub fn start(generation: Generation, extra: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let ip = free_address();
        let extra: Vec<String> = extra.iter().map(|&word| word.to_owned()).collect();
        Self {
            ip,
            process: launch(generation, ip, folder.path(), &extra),
            generation,
            extra,
            folder,
        }
    }

    /// Starts it again where it was, with what it left behind.
    pub fn restart(&mut self) {
        self.process = launch(self.generation, self.ip, self.folder.path(), &self.extra);
    }

    /// Ends it without a word.
    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    pub fn node(&self) -> Node {
        Node::new(Endpoint::plain(self.ip, PORT), Deadlines::default())
    }

    pub fn node_as(&self, user: &str, password: &str) -> Node {
        let credentials = Credentials {
            user: user.to_owned(),
            password: password.to_owned(),
        };
        let endpoint = Endpoint {
            credentials: Some(credentials),
            ..Endpoint::plain(self.ip, PORT)
        };
        Node::new(endpoint, Deadlines::default())
    }

    pub fn signal(&self, signal: &str) {
        let pid = self.process.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn launch(generation: Generation, ip: IpAddr, folder: &Path, extra: &[String]) -> Child {
    let ip = ip.to_string();
    let options = [
        ("--port", "6379"),
        ("--bind", &ip),
        ("--bind-source-addr", &ip),
        ("--cluster-enabled", "yes"),
        ("--cluster-announce-ip", &ip),
        ("--cluster-node-timeout", "1000"),
        ("--save", ""),
        ("--appendonly", "no"),
        ("--repl-diskless-sync-delay", "0"),
        ("--protected-mode", "no"),
        ("--cluster-allow-replica-migration", "no"),
    ];
    Command::new(generation.program())
        .current_dir(folder)
        .args(options.iter().flat_map(|(key, value)| [key, value]))
        .args(extra)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// A free address; the process id keeps test binaries apart, the counter tests.
pub fn free_address() -> IpAddr {
    static NEXT: AtomicU16 = AtomicU16::new(1);
    loop {
        let [high, low] = NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        let block = 64 + u8::try_from(std::process::id() % 32).unwrap();
        let ip = Ipv4Addr::new(127, block, high.wrapping_add(1), low);
        if low != 0 && low != 255 && TcpListener::bind((ip, PORT)).is_ok() {
            return ip.into();
        }
    }
}

/// Waits for something to become so.
pub async fn eventually<F: AsyncFnMut() -> bool>(what: &str, mut so: F) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !so().await {
        assert!(Instant::now() < deadline, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Servers that form one cluster: `shares[i]` is what server i owns.
pub async fn cluster(generation: Generation, shares: &[Option<&str>]) -> Vec<Server> {
    let servers: Vec<Server> = shares.iter().map(|_| Server::start(generation, &[])).collect();
    for (server, share) in servers.iter().zip(shares) {
        let node = server.node();
        eventually("the server answers", async || node.ping().await.is_ok()).await;
        if let Some(share) = share {
            node.add_slots(&share.parse().unwrap()).await.unwrap();
        }
    }
    let first = servers[0].node();
    for server in &servers[1..] {
        first.meet(server.ip, PORT).await.unwrap();
    }
    for server in &servers {
        let node = server.node();
        eventually("every node says ok and knows all", async || {
            node.cluster_info()
                .await
                .is_ok_and(|info| info.ok && info.known_nodes as usize == shares.len())
        })
        .await;
    }
    servers
}

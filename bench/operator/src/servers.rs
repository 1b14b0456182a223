//! Primaries without Kubernetes, for slot migration only.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use kube_sandbox::kubelet::{Subnet, cached};
use tempfile::TempDir;
use valkey_admin::SlotSet;

use crate::Result;
use crate::keys::{PORT, node};
use crate::wait::until;

/// A server version that `make setup` downloads.
#[derive(Clone, Copy, Debug)]
pub enum Generation {
    /// Valkey 9.1.
    Newest,
    /// Valkey 8.0, which has no built-in slot migration.
    Eight,
    /// Redis 8.0.
    Redis,
}

impl Generation {
    /// The path of its server.
    pub fn server(self) -> Result<PathBuf> {
        self.program("server")
    }

    /// The path of its command-line client.
    pub fn cli(self) -> Result<PathBuf> {
        self.program("cli")
    }

    fn program(self, name: &str) -> Result<PathBuf> {
        let (folder, product) = match self {
            Self::Newest => ("valkey-9.1", "valkey"),
            Self::Eight => ("valkey-8.0", "valkey"),
            Self::Redis => ("redis-8", "redis"),
        };
        Ok(cached(format!("servers/{folder}/bin/{product}-{name}"))?)
    }
}

struct Server {
    process: Child,
    _folder: TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Primaries that know each other. They stop when this is dropped.
pub struct Primaries {
    /// Their addresses: the first `owning` share the slots, the others are empty.
    pub members: Vec<SocketAddr>,
    _servers: Vec<Server>,
    _addresses: Subnet,
}

impl Primaries {
    /// Starts `count` primaries of which the first `owning` share all slots.
    pub async fn start(generation: Generation, count: u32, owning: u32) -> Result<Self> {
        let addresses = Subnet::claim()?;
        let mut members = Vec::new();
        let mut servers = Vec::new();
        for _ in 0..count {
            let ip = IpAddr::from(addresses.take()?);
            servers.push(launch(generation, ip)?);
            members.push(SocketAddr::new(ip, PORT));
        }
        let wait = Duration::from_secs(20);
        let first = node(members[0]);
        for (index, member) in (0..).zip(&members) {
            let node = node(*member);
            until("a server answers", wait, async || node.ping().await.ok()).await?;
            if index < owning {
                let share = valkey_admin::SlotRange::of_shard(index, owning).ok_or("more shards than slots")?;
                node.add_slots(&share.slots().collect::<SlotSet>()).await?;
            }
            if index > 0 {
                first.meet(member.ip(), PORT).await?;
            }
        }
        until("the primaries know each other", wait, async || {
            crate::keys::formed(&members).await.then_some(())
        })
        .await?;
        Ok(Self {
            members,
            _servers: servers,
            _addresses: addresses,
        })
    }
}

fn launch(generation: Generation, ip: IpAddr) -> Result<Server> {
    let folder = tempfile::tempdir()?;
    let ip = ip.to_string();
    let options = [
        ("--port", "6379"),
        ("--bind", &ip),
        ("--bind-source-addr", &ip),
        ("--cluster-announce-ip", &ip),
        ("--cluster-enabled", "yes"),
        ("--cluster-node-timeout", "5000"),
        ("--save", ""),
        ("--protected-mode", "no"),
    ];
    let process = Command::new(generation.server()?)
        .current_dir(folder.path())
        .args(options.iter().flat_map(|(key, value)| [key, value]))
        .stdout(Stdio::null())
        .spawn()?;
    Ok(Server {
        process,
        _folder: folder,
    })
}

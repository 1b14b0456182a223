//! Servers started by `start.sh` itself, without pods, so that they can be killed and restarted at any speed.

use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};

use candor_operator::objects::{self, SharedObject};
use kube_sandbox::kubelet::cached;
use serde_json::{Value, json};

use crate::world::Made;

/// The server versions that `make setup` fetched or built: folder, and name prefix of the programs.
pub const GENERATIONS: [(&str, &str); 3] = [
    ("valkey-9.1", "valkey"),
    ("valkey-8.0", "valkey"),
    ("redis-7.0", "redis"),
];

/// The folder with a version's programs.
pub fn programs(generation: (&str, &str)) -> PathBuf {
    cached(format!("servers/{}/bin", generation.0)).expect("run `make setup` once")
}

/// A member on the test host: its address and its folders, which outlive the process like a pod's volumes.
pub struct Place {
    pub ip: IpAddr,
    generation: (&'static str, &'static str),
    folder: tempfile::TempDir,
    kept: bool,
    process: Option<Child>,
}

impl Place {
    /// Creates the files of a pod from a spec.
    pub fn new(generation: (&'static str, &'static str), spec: &Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let kept = spec.get("persistence").is_some();
        let mut whole = json!({"shards": 1});
        whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        let at = folder.path();
        for name in ["data", "users", "scripts"] {
            std::fs::create_dir(at.join(name)).unwrap();
        }
        for object in objects::shared(&Made::of(whole).inputs()).unwrap() {
            match object {
                SharedObject::ConfigMap(map) => {
                    for (name, text) in map.data.unwrap() {
                        let text = moved(&text, at, name == "valkey.conf");
                        std::fs::write(at.join("scripts").join(name), text).unwrap();
                    }
                }
                SharedObject::AclSecret(secret) => {
                    for (name, text) in secret.data.unwrap() {
                        std::fs::write(at.join("users").join(name), text.0).unwrap();
                    }
                }
                _ => {}
            }
        }
        Self {
            ip: free_address(),
            generation,
            folder,
            kept,
            process: None,
        }
    }

    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    pub fn conf(&self) -> PathBuf {
        self.folder.path().join("scripts/valkey.conf")
    }

    /// Starts the server as the kubelet starts the container.
    pub fn start(&mut self) {
        let scripts = self.folder.path().join("scripts");
        let ip = self.ip.to_string();
        let path = format!(
            "{}:{}",
            programs(self.generation).display(),
            std::env::var("PATH").unwrap()
        );
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(self.folder.path().join("log"))
            .unwrap();
        let process = Command::new("sh")
            .arg(scripts.join("start.sh"))
            .arg(self.conf())
            .args(["--bind", &ip, "--bind-source-addr", &ip])
            .env("PATH", path)
            .env("POD_IP", &ip)
            .env("VALKEY_DATA", if self.kept { "kept" } else { "lost" })
            .current_dir(self.data())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        self.process = Some(process);
    }

    /// Sends SIGKILL.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    /// Whether the process ended by itself.
    pub fn ended(&mut self) -> bool {
        self.process
            .as_mut()
            .is_none_or(|process| process.try_wait().unwrap().is_some())
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("== {}\n{}", self.ip, self.log());
        }
        self.kill();
    }
}

/// Replaces the paths of a pod with local ones.
fn moved(text: &str, at: &Path, configuration: bool) -> String {
    if !configuration {
        return text.to_owned();
    }
    let at = at.display().to_string();
    text.replace("dir /data", &format!("dir {at}/data"))
        .replace("/config/users", &format!("{at}/users"))
}

/// An unused address. The process id separates test programs, the counter separates tests.
pub fn free_address() -> IpAddr {
    static NEXT: AtomicU16 = AtomicU16::new(1);
    loop {
        let [high, low] = NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        let block = 32 + u8::try_from(std::process::id() % 32).unwrap();
        let ip = Ipv4Addr::new(127, block, high.wrapping_add(1), low);
        if low != 0 && low != 255 && TcpListener::bind((ip, objects::PORT)).is_ok() {
            return ip.into();
        }
    }
}

//! One server, queried directly.

use std::net::SocketAddr;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use redis::FromRedisValue;
use redis::aio::MultiplexedConnection;
use tokio::time::timeout;

/// One server and what it reported.
#[derive(Clone)]
pub struct Server {
    /// Its pod.
    pub pod: String,
    /// The shard of its pod; pods of a `RedkeyCluster` have none.
    pub shard: u32,
    /// The address it listens on.
    pub address: SocketAddr,
    /// Whether it reports the role primary.
    pub primary: bool,
    /// Its version.
    pub version: String,
    connection: MultiplexedConnection,
}

impl Server {
    /// The server of a pod, if it responds.
    pub async fn of(pod: &Pod) -> Option<Self> {
        let labels = pod.metadata.labels.as_ref()?;
        let shard = labels
            .get("valkey.io/shard-index")
            .and_then(|arguments| arguments.parse().ok());
        let ip = pod.status.as_ref()?.pod_ip.as_ref()?.parse().ok()?;
        let address = SocketAddr::new(ip, 6379);
        let client = redis::Client::open(format!("redis://{address}")).ok()?;
        let dial = timeout(Duration::from_secs(1), client.get_multiplexed_async_connection());
        let mut server = Self {
            pod: pod.metadata.name.clone()?,
            shard: shard.unwrap_or_default(),
            address,
            primary: false,
            version: String::new(),
            connection: dial.await.ok()?.ok()?,
        };
        let info: String = server.ask(&["INFO"]).await?;
        let field = |name: &str| {
            info.lines()
                .find_map(|line| line.trim_end().strip_prefix(name))
                .map(str::to_owned)
        };
        server.primary = field("role:")? == "master";
        server.version = field("valkey_version:").or_else(|| field("redis_version:"))?;
        Some(server)
    }

    /// The reply to a command; `None` if there is none within a second or it is an error.
    pub async fn ask<T: FromRedisValue>(&self, arguments: &[&str]) -> Option<T> {
        let mut command = redis::cmd(arguments.first()?);
        command.arg(&arguments[1..]);
        let mut connection = self.connection.clone();
        timeout(Duration::from_secs(1), command.query_async(&mut connection))
            .await
            .ok()?
            .ok()
    }

    /// One setting, as the server reports it.
    pub async fn setting(&self, name: &str) -> Option<String> {
        let pair: Vec<String> = self.ask(&["CONFIG", "GET", name]).await?;
        pair.into_iter().nth(1)
    }
}

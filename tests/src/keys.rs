//! Keys that reached every replica before a fault: none of them may ever be missing.

use crate::{Cluster, Server};

/// Keys that were written and replicated.
pub struct Keys(Vec<String>);

async fn primaries(cluster: &Cluster<'_>) -> Vec<Server> {
    let servers = cluster.servers().await.into_values();
    servers.filter(|server| server.primary).collect()
}

impl Keys {
    /// Writes this many keys and waits until this many replicas of every shard have them.
    pub async fn write(cluster: &Cluster<'_>, count: usize, replicas: usize) -> Self {
        let primaries = primaries(cluster).await;
        let keys: Vec<String> = (0..count).map(|number| format!("key-{number}")).collect();
        for key in &keys {
            let mut taken = false;
            for server in &primaries {
                taken |= server.ask::<String>(&["SET", key, key]).await.is_some();
            }
            assert!(taken, "{}: nobody took {key}", cluster.name());
        }
        for server in &primaries {
            let copies = server.ask::<usize>(&["WAIT", &replicas.to_string(), "900"]).await;
            assert!(copies >= Some(replicas), "{}: {copies:?} copies", server.pod);
        }
        Self(keys)
    }

    /// Asserts that every key still exists.
    pub async fn are_all_in(&self, cluster: &Cluster<'_>) {
        let primaries = primaries(cluster).await;
        let mut missing = Vec::new();
        for key in &self.0 {
            let mut found = false;
            for server in &primaries {
                found |= server.ask::<Option<String>>(&["GET", key]).await.flatten().as_ref() == Some(key);
            }
            if !found {
                missing.push(key);
            }
        }
        let (count, of) = (missing.len(), self.0.len());
        assert!(missing.is_empty(), "{}: {count} of {of} keys are gone", cluster.name());
    }
}

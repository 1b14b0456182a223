//! Typed commands. Each says what it does and nothing of when to do it.

use std::net::IpAddr;
use std::time::Duration;

use redis::{Cmd, Pipeline, cmd};

use super::{Node, NodeError};
use crate::info::{ClusterInfo, Info};
use crate::migrations::{self, Migration};
use crate::reply::is_alive;
use crate::role::Role;
use crate::shards::{self, Shard};
use crate::{ClusterNodes, NodeId, Reply, Slot, SlotRange, SlotSet};

/// How a replica becomes primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failover {
    /// With the primary's help: nothing acknowledged is lost.
    Agreed,
    /// Without the primary, voted by the other primaries.
    Force,
    /// Without anybody: only after proof that the primary is dead.
    Takeover,
}

/// What `CLUSTER SETSLOT` says of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetSlot {
    /// It comes from this node.
    Importing(NodeId),
    /// It leaves for this node.
    Migrating(NodeId),
    /// It belongs to this node.
    Node(NodeId),
    /// It stays: marks are cleared.
    Stable,
}

fn cluster(subcommand: &str) -> Cmd {
    let mut command = cmd("CLUSTER");
    command.arg(subcommand);
    command
}

impl Node {
    async fn text(&self, command: &Cmd, what: &'static str) -> Result<String, NodeError> {
        let reply = self.ask(command).await?;
        self.understood(reply.text(what))
    }

    /// Sends a command whose answer is only that it was done.
    pub async fn order(&self, command: &Cmd) -> Result<(), NodeError> {
        self.ask(command).await.map(drop)
    }

    /// `PING`; LOADING, BUSY and MASTERDOWN are answers too.
    pub async fn ping(&self) -> Result<(), NodeError> {
        match self.order(&cmd("PING")).await {
            Err(NodeError::Server(_, _, words)) if is_alive(&words) => Ok(()),
            other => other,
        }
    }

    /// Its own id.
    pub async fn my_id(&self) -> Result<NodeId, NodeError> {
        let text = self.text(&cluster("MYID"), "CLUSTER MYID").await?;
        self.understood(text.parse())
    }

    /// The cluster as it sees it.
    pub async fn cluster_nodes(&self) -> Result<ClusterNodes, NodeError> {
        let text = self.text(&cluster("NODES"), "CLUSTER NODES").await?;
        self.understood(ClusterNodes::parse(&text))
    }

    /// The shards as it sees them.
    pub async fn cluster_shards(&self) -> Result<Vec<Shard>, NodeError> {
        let reply = self.ask(&cluster("SHARDS")).await?;
        self.understood(shards::parse(&reply))
    }

    /// The cheap look.
    pub async fn cluster_info(&self) -> Result<ClusterInfo, NodeError> {
        let text = self.text(&cluster("INFO"), "CLUSTER INFO").await?;
        self.understood(ClusterInfo::parse(&text))
    }

    /// `INFO`, the sections named, or the server's default ones.
    pub async fn info(&self, sections: &[&str]) -> Result<Info, NodeError> {
        let text = self.text(cmd("INFO").arg(sections), "INFO").await?;
        self.understood(Info::parse(&text))
    }

    /// What it is in replication.
    pub async fn role(&self) -> Result<Role, NodeError> {
        let reply = self.ask(&cmd("ROLE")).await?;
        self.understood(Role::parse(&reply))
    }

    /// The slot migrations it remembers.
    pub async fn slot_migrations(&self) -> Result<Vec<Migration>, NodeError> {
        let reply = self.ask(&cluster("GETSLOTMIGRATIONS")).await?;
        self.understood(migrations::parse(&reply))
    }

    /// Introduces it to another node.
    pub async fn meet(&self, ip: IpAddr, port: u16) -> Result<(), NodeError> {
        self.order(cluster("MEET").arg(ip.to_string()).arg(port)).await
    }

    /// Makes it a replica; an empty primary or a replica may be told so.
    pub async fn replicate(&self, primary: NodeId) -> Result<(), NodeError> {
        self.order(cluster("REPLICATE").arg(primary.to_string())).await
    }

    /// Makes it take a node out of its map for a minute.
    pub async fn forget(&self, node: NodeId) -> Result<(), NodeError> {
        self.order(cluster("FORGET").arg(node.to_string())).await
    }

    /// Makes it (a replica) the primary. The answer comes before the deed: look at its role afterwards.
    pub async fn failover(&self, how: Failover) -> Result<(), NodeError> {
        let mut command = cluster("FAILOVER");
        match how {
            Failover::Agreed => &mut command,
            Failover::Force => command.arg("FORCE"),
            Failover::Takeover => command.arg("TAKEOVER"),
        };
        self.order(&command).await
    }

    /// Gives it slots that nobody owns.
    pub async fn add_slots(&self, slots: &SlotSet) -> Result<(), NodeError> {
        self.order(cluster("ADDSLOTSRANGE").arg(bounds(&slots.ranges()))).await
    }

    /// Makes it forget who owns these slots.
    pub async fn delete_slots(&self, slots: &SlotSet) -> Result<(), NodeError> {
        self.order(cluster("DELSLOTSRANGE").arg(bounds(&slots.ranges()))).await
    }

    /// Marks or gives one slot.
    pub async fn set_slot(&self, slot: Slot, to: SetSlot) -> Result<(), NodeError> {
        let mut command = cluster("SETSLOT");
        command.arg(slot.get());
        match to {
            SetSlot::Importing(from) => command.arg("IMPORTING").arg(from.to_string()),
            SetSlot::Migrating(to) => command.arg("MIGRATING").arg(to.to_string()),
            SetSlot::Node(owner) => command.arg("NODE").arg(owner.to_string()),
            SetSlot::Stable => command.arg("STABLE"),
        };
        self.order(&command).await
    }

    /// Starts atomic migrations from this node (Valkey 9): all ranges of all moves in one command.
    pub async fn migrate_slots(&self, moves: &[(SlotSet, NodeId)]) -> Result<(), NodeError> {
        let mut command = cluster("MIGRATESLOTS");
        for (slots, to) in moves {
            command
                .arg("SLOTSRANGE")
                .arg(bounds(&slots.ranges()))
                .arg("NODE")
                .arg(to.to_string());
        }
        self.order(&command).await
    }

    /// Names of at most `most` keys in a slot: fewer where they are so long that the reply would be above the limit.
    pub async fn keys_in_slot(&self, slot: Slot, most: usize) -> Result<Vec<Vec<u8>>, NodeError> {
        let mut most = most;
        loop {
            match self.list_keys(slot, most).await {
                Err(NodeError::TooLarge(..)) if most > 1 => most = most.div_ceil(10),
                listed => return listed,
            }
        }
    }

    async fn list_keys(&self, slot: Slot, most: usize) -> Result<Vec<Vec<u8>>, NodeError> {
        const COMMAND: &str = "CLUSTER GETKEYSINSLOT";
        let reply = self.ask(cluster("GETKEYSINSLOT").arg(slot.get()).arg(most)).await?;
        let Reply::Array(keys) = reply else {
            return self.understood(Err(reply.unlike(COMMAND, "a list")));
        };
        let key = |item: Reply| match item {
            Reply::Bytes(bytes) => Ok(bytes),
            other => Err(other.unlike(COMMAND, "a key")),
        };
        self.understood(keys.into_iter().map(key).collect())
    }

    /// How many keys a slot has here.
    pub async fn count_keys_in_slot(&self, slot: Slot) -> Result<u64, NodeError> {
        let reply = self.ask(cluster("COUNTKEYSINSLOT").arg(slot.get())).await?;
        let count = self.understood(reply.int("CLUSTER COUNTKEYSINSLOT"))?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    /// Bytes that each key takes; 0 when it is gone, of which a slot that is being moved away says `ASK`.
    pub async fn memory_usage(&self, keys: &[Vec<u8>]) -> Result<Vec<u64>, NodeError> {
        let mut pipeline = Pipeline::with_capacity(keys.len());
        for key in keys {
            pipeline.cmd("MEMORY").arg("USAGE").arg(key);
        }
        let size = |answer| match answer {
            Ok(Reply::Nil) => Ok(0),
            Ok(reply) => Ok(u64::try_from(self.understood(reply.int("MEMORY USAGE"))?).unwrap_or(0)),
            Err(NodeError::Server(_, _, words)) if words.starts_with("ASK ") => Ok(0),
            Err(error) => Err(error),
        };
        self.ask_all(&pipeline).await?.into_iter().map(size).collect()
    }

    /// Sets options at run time, all or none.
    pub async fn config_set(&self, options: &[(&str, &str)]) -> Result<(), NodeError> {
        self.order(cmd("CONFIG").arg("SET").arg(options)).await
    }

    /// Reads one option.
    pub async fn config_get(&self, option: &str) -> Result<Option<String>, NodeError> {
        let reply = self.ask(cmd("CONFIG").arg("GET").arg(option)).await?;
        let pairs = self.understood(reply.pairs("CONFIG GET"))?;
        let value = pairs
            .iter()
            .find(|(key, _)| key == option)
            .map(|(_, value)| value.text("CONFIG GET"));
        self.understood(value.transpose())
    }

    /// Sets an ACL user from its rules.
    pub async fn acl_set_user(&self, user: &str, rules: &[String]) -> Result<(), NodeError> {
        self.order(cmd("ACL").arg("SETUSER").arg(user).arg(rules)).await
    }

    /// Whether a user may run a command, without running it. The server's reason for a denial is not an error.
    pub async fn acl_dry_run(&self, user: &str, command: &[&str]) -> Result<bool, NodeError> {
        let reply = self.ask(cmd("ACL").arg("DRYRUN").arg(user).arg(command)).await?;
        Ok(self.understood(reply.text("ACL DRYRUN"))? == "OK")
    }

    /// Removes ACL users.
    pub async fn acl_delete_users(&self, users: &[&str]) -> Result<(), NodeError> {
        self.order(cmd("ACL").arg("DELUSER").arg(users)).await
    }

    /// Every ACL user, one line each, passwords hashed.
    pub async fn acl_list(&self) -> Result<Vec<String>, NodeError> {
        let reply = self.ask(cmd("ACL").arg("LIST")).await?;
        let lines = self.understood(reply.items("ACL LIST"))?;
        self.understood(lines.iter().map(|line| line.text("ACL LIST")).collect())
    }

    /// Makes it a stranger: knows nobody, owns nothing, with a new id when `hard`. Refused while it has keys.
    pub async fn reset(&self, hard: bool) -> Result<(), NodeError> {
        self.order(cluster("RESET").arg(if hard { "HARD" } else { "SOFT" }))
            .await
    }

    /// Drops every key. For a node that is about to follow another or leave.
    pub async fn flush_all(&self, within: Duration) -> Result<(), NodeError> {
        self.ask_within(cmd("FLUSHALL").arg("ASYNC"), within).await.map(drop)
    }
}

fn bounds(ranges: &[SlotRange]) -> Vec<u16> {
    ranges
        .iter()
        .flat_map(|range| [range.first().get(), range.last().get()])
        .collect()
}

//! Typed commands.

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
    /// Takeover (`TAKEOVER`): without a vote. Only after evidence that the primary has terminated.
    Takeover,
}

/// States that `CLUSTER SETSLOT` sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetSlot {
    /// Imported from this node.
    Importing(NodeId),
    /// Migrating to this node.
    Migrating(NodeId),
    /// Owned by this node.
    Node(NodeId),
    /// Stable: importing and migrating marks are cleared.
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

    /// Sends a command and discards its reply.
    pub async fn order(&self, command: &Cmd) -> Result<(), NodeError> {
        self.ask(command).await.map(drop)
    }

    /// `PING`; LOADING, BUSY and MASTERDOWN count as replies.
    pub async fn ping(&self) -> Result<(), NodeError> {
        match self.order(&cmd("PING")).await {
            Err(NodeError::Server(_, _, message)) if is_alive(&message) => Ok(()),
            other => other,
        }
    }

    /// `CLUSTER MYID`.
    pub async fn my_id(&self) -> Result<NodeId, NodeError> {
        let text = self.text(&cluster("MYID"), "CLUSTER MYID").await?;
        self.understood(text.parse())
    }

    /// `CLUSTER NODES`: its cluster map.
    pub async fn cluster_nodes(&self) -> Result<ClusterNodes, NodeError> {
        let text = self.text(&cluster("NODES"), "CLUSTER NODES").await?;
        self.understood(ClusterNodes::parse(&text))
    }

    /// `CLUSTER SHARDS`.
    pub async fn cluster_shards(&self) -> Result<Vec<Shard>, NodeError> {
        let reply = self.ask(&cluster("SHARDS")).await?;
        self.understood(shards::parse(&reply))
    }

    /// `CLUSTER INFO`.
    pub async fn cluster_info(&self) -> Result<ClusterInfo, NodeError> {
        let text = self.text(&cluster("INFO"), "CLUSTER INFO").await?;
        self.understood(ClusterInfo::parse(&text))
    }

    /// `INFO` of the given sections, or of the default sections.
    pub async fn info(&self, sections: &[&str]) -> Result<Info, NodeError> {
        let text = self.text(cmd("INFO").arg(sections), "INFO").await?;
        self.understood(Info::parse(&text))
    }

    /// `ROLE`.
    pub async fn role(&self) -> Result<Role, NodeError> {
        let reply = self.ask(&cmd("ROLE")).await?;
        self.understood(Role::parse(&reply))
    }

    /// `CLUSTER GETSLOTMIGRATIONS`.
    pub async fn slot_migrations(&self) -> Result<Vec<Migration>, NodeError> {
        let reply = self.ask(&cluster("GETSLOTMIGRATIONS")).await?;
        self.understood(migrations::parse(&reply))
    }

    /// `CLUSTER MEET`.
    pub async fn meet(&self, ip: IpAddr, port: u16) -> Result<(), NodeError> {
        self.order(cluster("MEET").arg(ip.to_string()).arg(port)).await
    }

    /// `CLUSTER REPLICATE`: makes an empty primary or a replica a replica of this primary.
    pub async fn replicate(&self, primary: NodeId) -> Result<(), NodeError> {
        self.order(cluster("REPLICATE").arg(primary.to_string())).await
    }

    /// `CLUSTER FORGET`: removes a node from its map and bans it for a minute.
    pub async fn forget(&self, node: NodeId) -> Result<(), NodeError> {
        self.order(cluster("FORGET").arg(node.to_string())).await
    }

    /// `CLUSTER FAILOVER` at a replica. The reply comes before the failover has happened: check its role afterwards.
    pub async fn failover(&self, how: Failover) -> Result<(), NodeError> {
        let mut command = cluster("FAILOVER");
        match how {
            Failover::Agreed => &mut command,
            Failover::Force => command.arg("FORCE"),
            Failover::Takeover => command.arg("TAKEOVER"),
        };
        self.order(&command).await
    }

    /// `CLUSTER ADDSLOTSRANGE`: assigns slots that have no owner.
    pub async fn add_slots(&self, slots: &SlotSet) -> Result<(), NodeError> {
        self.order(cluster("ADDSLOTSRANGE").arg(bounds(&slots.ranges()))).await
    }

    /// `CLUSTER DELSLOTSRANGE`: removes the owner of slots from its map.
    pub async fn delete_slots(&self, slots: &SlotSet) -> Result<(), NodeError> {
        self.order(cluster("DELSLOTSRANGE").arg(bounds(&slots.ranges()))).await
    }

    /// `CLUSTER SETSLOT`.
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

    /// `CLUSTER MIGRATESLOTS` (Valkey 9 and later): starts atomic migrations from this node, all ranges in one command.
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

    /// `CLUSTER GETKEYSINSLOT`: names of at most `most` keys of a slot. Fewer if the names are so long that the reply
    /// would be above the limit.
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

    /// `CLUSTER COUNTKEYSINSLOT`.
    pub async fn count_keys_in_slot(&self, slot: Slot) -> Result<u64, NodeError> {
        let reply = self.ask(cluster("COUNTKEYSINSLOT").arg(slot.get())).await?;
        let count = self.understood(reply.int("CLUSTER COUNTKEYSINSLOT"))?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    /// `MEMORY USAGE` of each key in bytes; 0 if the key does not exist any more, for which a migrating slot replies `ASK`.
    pub async fn memory_usage(&self, keys: &[Vec<u8>]) -> Result<Vec<u64>, NodeError> {
        let mut pipeline = Pipeline::with_capacity(keys.len());
        for key in keys {
            pipeline.cmd("MEMORY").arg("USAGE").arg(key);
        }
        let size = |answer| match answer {
            Ok(Reply::Nil) => Ok(0),
            Ok(reply) => Ok(u64::try_from(self.understood(reply.int("MEMORY USAGE"))?).unwrap_or(0)),
            Err(NodeError::Server(_, _, message)) if message.starts_with("ASK ") => Ok(0),
            Err(error) => Err(error),
        };
        self.ask_all(&pipeline).await?.into_iter().map(size).collect()
    }

    /// `CONFIG SET` of several options, all or none.
    pub async fn config_set(&self, options: &[(&str, &str)]) -> Result<(), NodeError> {
        self.order(cmd("CONFIG").arg("SET").arg(options)).await
    }

    /// `CONFIG GET` of one option.
    pub async fn config_get(&self, option: &str) -> Result<Option<String>, NodeError> {
        let reply = self.ask(cmd("CONFIG").arg("GET").arg(option)).await?;
        let pairs = self.understood(reply.pairs("CONFIG GET"))?;
        let value = pairs
            .iter()
            .find(|(key, _)| key == option)
            .map(|(_, value)| value.text("CONFIG GET"));
        self.understood(value.transpose())
    }

    /// `ACL SETUSER`.
    pub async fn acl_set_user(&self, user: &str, rules: &[String]) -> Result<(), NodeError> {
        self.order(cmd("ACL").arg("SETUSER").arg(user).arg(rules)).await
    }

    /// Whether a user may run a command, without running it. The server's reason for a denial is not an error.
    pub async fn acl_dry_run(&self, user: &str, command: &[&str]) -> Result<bool, NodeError> {
        let reply = self.ask(cmd("ACL").arg("DRYRUN").arg(user).arg(command)).await?;
        Ok(self.understood(reply.text("ACL DRYRUN"))? == "OK")
    }

    /// `ACL DELUSER`.
    pub async fn acl_delete_users(&self, users: &[&str]) -> Result<(), NodeError> {
        self.order(cmd("ACL").arg("DELUSER").arg(users)).await
    }

    /// `ACL LIST`: one line per user, with hashed passwords.
    pub async fn acl_list(&self) -> Result<Vec<String>, NodeError> {
        let reply = self.ask(cmd("ACL").arg("LIST")).await?;
        let lines = self.understood(reply.items("ACL LIST"))?;
        self.understood(lines.iter().map(|line| line.text("ACL LIST")).collect())
    }

    /// `CLUSTER RESET`: it forgets all nodes and slots; with `hard` it also gets a new id. Rejected while it has keys.
    pub async fn reset(&self, hard: bool) -> Result<(), NodeError> {
        self.order(cluster("RESET").arg(if hard { "HARD" } else { "SOFT" }))
            .await
    }

    /// `FLUSHALL ASYNC`.
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

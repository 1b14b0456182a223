//! `CLUSTER …` and `MIGRATE`: what is asked of the map and done to it, with the refusals of a real server.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use valkey_admin::migrations::{Direction, Progress};
use valkey_admin::nodes::Mark;
use valkey_admin::{NodeId, Reply, Slot, SlotRange, SlotSet};

use crate::commands::{error, ok};
use crate::node::{Follow, Job, Map, Node, Peer, fresh_id};
use crate::world::{Mode, PORT, State};

/// How long a node that was forgotten stays so.
const BAN: Duration = Duration::from_secs(60);

type Answer = Result<Reply, String>;

impl State {
    pub(crate) fn cluster(&mut self, ip: IpAddr, sub: &str, arguments: &[String]) -> (Reply, bool) {
        let node = &mut self.members.get_mut(&ip).expect("the caller saw it").node;
        let requested = match sub {
            "INFO" => Some(Reply::from(info(&node.map).as_str())),
            "NODES" => Some(Reply::from(nodes(&node.map, ip).as_str())),
            "MYID" => Some(Reply::from(node.map.id.to_string().as_str())),
            "SHARDS" => Some(shards(&node.map, ip)),
            "GETSLOTMIGRATIONS" => Some(Reply::Array(node.jobs.iter().map(job).collect())),
            "COUNTKEYSINSLOT" => Some(count(node, arguments).unwrap_or_else(error)),
            "GETKEYSINSLOT" => Some(keys(node, arguments).unwrap_or_else(error)),
            _ => None,
        };
        if let Some(reply) = requested {
            return (reply, false);
        }
        let done = match sub {
            "MEET" => meet(node, ip, arguments),
            "ADDSLOTSRANGE" => add_slots(node, arguments),
            "DELSLOTSRANGE" => ranges(arguments).map(|slots| {
                let unknown_owner = fresh_id();
                node.map.assign(&slots, unknown_owner);
                ok()
            }),
            "REPLICATE" => replicate(node, arguments),
            "FORGET" => forget(node, arguments),
            "RESET" => reset(node, arguments),
            "SETSLOT" => set_slot(node, arguments),
            "BUMPEPOCH" | "SAVECONFIG" | "SET-CONFIG-EPOCH" => Ok(ok()),
            "FAILOVER" => self.failover(ip, arguments.first().map_or("", String::as_str)),
            "MIGRATESLOTS" => self.migrate_slots(ip, arguments),
            other => Err(format!("ERR unknown subcommand '{other}'. Try CLUSTER HELP.")),
        };
        (done.unwrap_or_else(error), true)
    }

    fn failover(&mut self, ip: IpAddr, how: &str) -> Answer {
        let node = &self.members[&ip].node;
        let Some(primary) = node.map.primary else {
            return Err("ERR You should send CLUSTER FAILOVER to a replica".to_owned());
        };
        let running = |id: NodeId| {
            let mut all = self.members.values();
            all.any(|other| other.node.map.id == id && other.is(Mode::Running))
        };
        match how.to_ascii_uppercase().as_str() {
            "TAKEOVER" => {
                self.promote(ip);
                return Ok(ok());
            }
            "" if !running(primary) || node.follow != Follow::Up => {
                return Err("ERR Master is down or failed, please use CLUSTER FAILOVER FORCE".to_owned());
            }
            "" | "FORCE" => {}
            _ => return Err("ERR syntax error".to_owned()),
        }
        let at = Instant::now() + self.timing.election;
        self.members.get_mut(&ip).expect("looked at above").node.election = Some(at);
        Ok(ok())
    }

    fn migrate_slots(&mut self, ip: IpAddr, arguments: &[String]) -> Answer {
        let due = Instant::now() + self.timing.migration;
        let node = &self.members[&ip].node;
        let mut jobs = Vec::new();
        for part in arguments
            .split(|argument| argument.eq_ignore_ascii_case("SLOTSRANGE"))
            .skip(1)
        {
            let at = part.iter().position(|argument| argument.eq_ignore_ascii_case("NODE"));
            let at = at.ok_or("ERR syntax error")?;
            let slots = ranges(&part[..at])?;
            let target = id(part.get(at + 1))?;
            if !slots.difference(&node.map.slots).is_empty() {
                return Err("ERR Slots are not served by this node.".to_owned());
            }
            if !node.map.peers.contains_key(&target) {
                return Err(format!("ERR Unknown node name: {target}"));
            }
            let busy = |job: &Job| job.progress == Progress::Running && !job.slots.intersection(&slots).is_empty();
            if node.jobs.iter().any(busy) {
                return Err("ERR Slot migration already in progress".to_owned());
            }
            jobs.push(Job {
                name: fresh_id().to_string(),
                direction: Direction::Export,
                slots,
                source: node.map.id,
                target,
                progress: Progress::Running,
                message: String::new(),
                due,
            });
        }
        for job in jobs {
            let arriving = Job {
                direction: Direction::Import,
                ..job.clone()
            };
            if let Some(target) = self
                .members
                .values_mut()
                .find(|member| member.node.map.id == job.target)
            {
                target.node.jobs.insert(0, arriving);
            }
            let node = &mut self.members.get_mut(&ip).expect("looked at above").node;
            node.jobs.insert(0, job);
        }
        Ok(ok())
    }

    /// Keys by their made-up names, from one member to another.
    pub(crate) fn migrate(&mut self, from: IpAddr, arguments: &[String]) -> Reply {
        let to = arguments.first().and_then(|host| host.parse::<IpAddr>().ok());
        let at = arguments
            .iter()
            .position(|argument| argument.eq_ignore_ascii_case("KEYS"));
        let (Some(to), Some(at)) = (to.filter(|to| self.members.contains_key(to)), at) else {
            return error("IOERR error or timeout connecting to the client");
        };
        for key in &arguments[at + 1..] {
            let Some(slot) = key.split(':').nth(1).and_then(|slot| slot.parse::<u16>().ok()) else {
                continue;
            };
            let source = &mut self.members.get_mut(&from).expect("the caller saw it").node.keys;
            let Some(count) = source.get_mut(&slot) else { continue };
            *count -= 1;
            if *count == 0 {
                source.remove(&slot);
            }
            let target = &mut self.members.get_mut(&to).expect("looked at above").node.keys;
            *target.entry(slot).or_default() += 1;
        }
        ok()
    }
}

fn id(argument: Option<&String>) -> Result<NodeId, String> {
    let argument = argument.ok_or("ERR syntax error")?;
    argument.parse().map_err(|_| format!("ERR Unknown node {argument}"))
}

fn slot(argument: Option<&String>) -> Result<Slot, String> {
    let number = argument.and_then(|argument| argument.parse().ok());
    number.ok_or_else(|| "ERR Invalid or out of range slot".to_owned())
}

fn ranges(arguments: &[String]) -> Result<SlotSet, String> {
    let mut slots = SlotSet::new();
    for pair in arguments.chunks(2) {
        let (first, last) = (slot(pair.first())?, slot(pair.get(1))?);
        let range = SlotRange::new(first, last);
        slots.extend([range.ok_or("ERR start slot number is greater than end slot number")?]);
    }
    Ok(slots)
}

fn meet(node: &mut Node, me: IpAddr, arguments: &[String]) -> Answer {
    let ip = arguments.first().and_then(|argument| argument.parse::<IpAddr>().ok());
    let ip = ip.ok_or("ERR Invalid node address specified")?;
    let known = node.map.peers.values().any(|peer| peer.ip == ip && !peer.no_address);
    if !known && ip != me {
        node.map.peers.insert(fresh_id(), Peer::at(ip, true));
    }
    Ok(ok())
}

fn add_slots(node: &mut Node, arguments: &[String]) -> Answer {
    let slots = ranges(arguments)?;
    if node.map.primary.is_some() {
        return Err("ERR You can't assign slots to a replica".to_owned());
    }
    if let Some(busy) = slots.intersection(&node.map.covered()).iter().next() {
        return Err(format!("ERR Slot {busy} is already busy"));
    }
    let me = node.map.id;
    node.map.assign(&slots, me);
    Ok(ok())
}

fn replicate(node: &mut Node, arguments: &[String]) -> Answer {
    let primary = id(arguments.first())?;
    if primary == node.map.id {
        return Err("ERR Can't replicate myself".to_owned());
    }
    let Some(peer) = node.map.peers.get(&primary).filter(|peer| !peer.handshake) else {
        return Err(format!("ERR Unknown node {primary}"));
    };
    if peer.primary.is_some() {
        return Err("ERR I can only replicate a master, not a replica.".to_owned());
    }
    if node.map.primary.is_none() && (!node.map.slots.is_empty() || !node.keys.is_empty()) {
        return Err("ERR To set a master the node must be empty and without assigned slots.".to_owned());
    }
    if node.map.primary != Some(primary) {
        (node.map.primary, node.map.shard) = (Some(primary), peer.shard);
        node.follow = Follow::Down {
            since: None,
            can_resync: false,
        };
    }
    Ok(ok())
}

fn forget(node: &mut Node, arguments: &[String]) -> Answer {
    let forgotten = id(arguments.first())?;
    if forgotten == node.map.id {
        return Err("ERR I tried hard but I can't forget myself...".to_owned());
    }
    if node.map.primary == Some(forgotten) {
        return Err("ERR Can't forget my master!".to_owned());
    }
    if node.map.peers.remove(&forgotten).is_none() {
        return Err(format!("ERR Unknown node {forgotten}"));
    }
    node.banned.insert(forgotten, Instant::now() + BAN);
    Ok(ok())
}

fn reset(node: &mut Node, arguments: &[String]) -> Answer {
    if node.map.primary.is_none() && !node.keys.is_empty() {
        return Err("ERR CLUSTER RESET can't be called with master nodes containing keys".to_owned());
    }
    let hard = arguments
        .first()
        .is_some_and(|argument| argument.eq_ignore_ascii_case("HARD"));
    if node.map.primary.take().is_some() {
        node.keys.clear();
    }
    node.follow = Follow::Down {
        since: None,
        can_resync: false,
    };
    node.map.peers.clear();
    node.map.slots = SlotSet::new();
    node.map.marks.clear();
    node.map.shard = fresh_id();
    if hard {
        node.map.id = fresh_id();
        (node.map.epoch, node.map.current_epoch) = (0, 0);
    }
    Ok(ok())
}

fn set_slot(node: &mut Node, arguments: &[String]) -> Answer {
    let slot = slot(arguments.first())?;
    let how = arguments
        .get(1)
        .map(|argument| argument.to_ascii_uppercase())
        .unwrap_or_default();
    if how == "STABLE" {
        node.map.marks.remove(&slot.get());
        return Ok(ok());
    }
    let other = id(arguments.get(2))?;
    if other != node.map.id && !node.map.peers.contains_key(&other) {
        return Err(format!("ERR I don't know about node {other}"));
    }
    let mine = node.map.slots.contains(slot);
    match how.as_str() {
        "MIGRATING" if !mine => return Err(format!("ERR I'm not the owner of hash slot {slot}")),
        "IMPORTING" if mine => return Err(format!("ERR I'm already the owner of hash slot {slot}")),
        "MIGRATING" => {
            node.map.marks.insert(slot.get(), Mark::Migrating { slot, to: other });
        }
        "IMPORTING" => {
            node.map.marks.insert(slot.get(), Mark::Importing { slot, from: other });
        }
        "NODE" => {
            if mine && other != node.map.id && node.keys.contains_key(&slot.get()) {
                return Err(format!(
                    "ERR Can't assign hashslot {slot} to a different node while I still hold keys for this hash slot."
                ));
            }
            let arrives = other == node.map.id && !mine;
            node.map.assign(&SlotSet::from_iter([slot]), other);
            if arrives {
                node.map.current_epoch += 1;
                node.map.epoch = node.map.current_epoch;
            }
        }
        _ => return Err("ERR Invalid CLUSTER SETSLOT action or number of arguments".to_owned()),
    }
    Ok(ok())
}

fn count(node: &Node, arguments: &[String]) -> Answer {
    let keys = node.keys.get(&slot(arguments.first())?.get()).copied().unwrap_or(0);
    Ok(Reply::Int(i64::try_from(keys).unwrap_or(i64::MAX)))
}

/// Names of keys by their slot, because there are no keys.
fn keys(node: &Node, arguments: &[String]) -> Answer {
    let slot = slot(arguments.first())?.get();
    let most: u64 = arguments.get(1).and_then(|argument| argument.parse().ok()).unwrap_or(0);
    let count = node.keys.get(&slot).copied().unwrap_or(0).min(most);
    Ok(Reply::Array(
        (0..count)
            .map(|n| Reply::from(format!("sim:{slot}:{n}").as_str()))
            .collect(),
    ))
}

fn info(map: &Map) -> String {
    let slots_of = |so: &dyn Fn(&Peer) -> bool| -> usize {
        map.peers
            .values()
            .filter(|peer| so(peer))
            .map(|peer| peer.slots.len())
            .sum()
    };
    let failed = slots_of(&|peer| peer.failed);
    let suspected = slots_of(&|peer| peer.suspected && !peer.failed);
    let assigned = map.covered().len();
    format!(
        "cluster_state:{}\r\ncluster_slots_assigned:{assigned}\r\ncluster_slots_ok:{}\r\ncluster_slots_pfail:{suspected}\r\n\
         cluster_slots_fail:{failed}\r\ncluster_known_nodes:{}\r\ncluster_size:{}\r\ncluster_current_epoch:{}\r\n\
         cluster_my_epoch:{}\r\n",
        if map.is_ok() { "ok" } else { "fail" },
        assigned - failed - suspected,
        map.peers.len() + 1,
        map.owners().count(),
        map.current_epoch,
        map.epoch,
    )
}

fn nodes(map: &Map, me: IpAddr) -> String {
    let mut text = String::new();
    let mut line = |id: NodeId,
                    ip: IpAddr,
                    flags: &str,
                    primary: Option<NodeId>,
                    epoch: u64,
                    linked: bool,
                    slots: &SlotSet,
                    marks: &str| {
        let primary = primary.map_or_else(|| "-".to_owned(), |id| id.to_string());
        let link = if linked { "connected" } else { "disconnected" };
        let slots = if slots.is_empty() {
            String::new()
        } else {
            slots
                .to_string()
                .split([',', ' '])
                .fold(String::new(), |all, range| all + " " + range)
        };
        // Writing into a String cannot fail.
        let _ = writeln!(
            text,
            "{id} {ip}:{PORT}@{} {flags} {primary} 0 0 {epoch} {link}{slots}{marks}",
            PORT + 10_000
        );
    };
    let role = |primary: Option<NodeId>| if primary.is_some() { "slave" } else { "master" };
    let marks = map.marks.values().fold(String::new(), |all, mark| match mark {
        Mark::Migrating { slot, to } => format!("{all} [{slot}->-{to}]"),
        Mark::Importing { slot, from } => format!("{all} [{slot}-<-{from}]"),
    });
    let flags = format!("myself,{}", role(map.primary));
    line(map.id, me, &flags, map.primary, map.epoch, true, &map.slots, &marks);
    for (id, peer) in &map.peers {
        let mut flags = if peer.handshake {
            "handshake".to_owned()
        } else {
            role(peer.primary).to_owned()
        };
        match (peer.failed, peer.suspected) {
            (true, _) => flags += ",fail",
            (false, true) => flags += ",fail?",
            (false, false) => {}
        }
        if peer.no_address {
            flags += ",noaddr";
        }
        line(
            *id,
            peer.ip,
            &flags,
            peer.primary,
            peer.epoch,
            peer.linked,
            &peer.slots,
            "",
        );
    }
    text
}

/// Id, address, whether it is a replica, slots, whether it has failed.
type Known<'a> = (NodeId, IpAddr, bool, &'a SlotSet, bool);

fn shards(map: &Map, me: IpAddr) -> Reply {
    let pair = |key: &str, value: Reply| (Reply::from(key), value);
    let node = |id: NodeId, ip: IpAddr, replica: bool, failed: bool| {
        Reply::Map(vec![
            pair("id", Reply::from(id.to_string().as_str())),
            pair("port", Reply::Int(PORT.into())),
            pair("ip", Reply::from(ip.to_string().as_str())),
            pair("endpoint", Reply::from(ip.to_string().as_str())),
            pair("role", Reply::from(if replica { "replica" } else { "master" })),
            pair("replication-offset", Reply::Int(1)),
            pair("health", Reply::from(if failed { "fail" } else { "online" })),
        ])
    };
    // By the shard's id, as servers do: a node whose shard is not known yet is in one of its own.
    let mut by_shard: BTreeMap<NodeId, Vec<Known<'_>>> = BTreeMap::new();
    let myself = (map.id, me, map.primary.is_some(), &map.slots, false);
    by_shard.entry(map.shard).or_default().push(myself);
    for (id, peer) in map.peers.iter().filter(|(_, peer)| !peer.handshake) {
        let peer_known = (*id, peer.ip, peer.primary.is_some(), &peer.slots, peer.failed);
        by_shard.entry(peer.shard).or_default().push(peer_known);
    }
    let shard = |known: Vec<Known<'_>>| {
        let slots = known
            .iter()
            .fold(SlotSet::new(), |all, (_, _, _, slots, _)| all.union(slots));
        let ranges = slots.ranges().into_iter();
        let bounds = ranges.flat_map(|range| [range.first(), range.last()]);
        let bounds = bounds.map(|slot| Reply::Int(slot.get().into())).collect();
        let nodes = known
            .into_iter()
            .map(|(id, ip, replica, _, failed)| node(id, ip, replica, failed));
        Reply::Map(vec![
            pair("slots", Reply::Array(bounds)),
            pair("nodes", Reply::Array(nodes.collect())),
        ])
    };
    Reply::Array(by_shard.into_values().map(shard).collect())
}

fn job(job: &Job) -> Reply {
    let text = |key: &str, value: &str| (Reply::from(key), Reply::from(value));
    let number = |key: &str| (Reply::from(key), Reply::Int(0));
    let ranges: Vec<String> = job
        .slots
        .ranges()
        .iter()
        .map(|range| format!("{}-{}", range.first(), range.last()))
        .collect();
    Reply::Map(vec![
        text("name", &job.name),
        text(
            "operation",
            if job.direction == Direction::Export {
                "EXPORT"
            } else {
                "IMPORT"
            },
        ),
        text("slot_ranges", &ranges.join(" ")),
        text("source_node", &job.source.to_string()),
        text("target_node", &job.target.to_string()),
        number("create_time"),
        number("last_update_time"),
        number("last_ack_time"),
        text(
            "state",
            match job.progress {
                Progress::Running => "snapshotting",
                Progress::Success => "success",
                Progress::Failed => "failed",
                Progress::Cancelled => "cancelled",
            },
        ),
        text("message", &job.message),
    ])
}

//! Problems of a cluster and its nodes, as Robin's HTTP API reports them. Pure functions of an observation.

use std::collections::BTreeMap;

use candor_engine::observation::{Facts, Server};
use valkey_admin::nodes::Mark;
use valkey_admin::{NodeEntry, SlotSet};

use super::super::api::{Check, Node};
use super::super::link::ObservedServer;
use crate::kinds::redkey::objects::names;

type Servers = BTreeMap<u32, ObservedServer>;

/// What every server says about the slots, and which servers say nothing. Coverage is judged by the map of every server:
/// with `cluster-require-full-coverage no` a server reports `cluster_state:ok` with holes in its map.
pub(super) fn check(cluster: &str, servers: &Servers) -> Check {
    let mut check = Check::default();
    for (ordinal, observed) in servers {
        let name = names::pod(cluster, *ordinal);
        match &observed.server {
            Server::Up(facts) => check_one(&name, facts, &mut check),
            Server::Nowhere => check.errors.push(format!("{name} is not up yet")),
            Server::Dead { .. } => check.errors.push(format!("{name} refuses connections")),
            Server::Silent { .. } => {
                let reason = observed.trouble.as_deref().unwrap_or("timeout");
                check.errors.push(format!("{name} does not respond: {reason}"));
            }
        }
    }
    disagreements(cluster, servers, &mut check);
    check
}

fn check_one(name: &str, facts: &Facts, check: &mut Check) {
    let missing = SlotSet::full().difference(&facts.map.covered());
    if !missing.is_empty() {
        check.errors.push(format!("{name}: slots {missing} have no owner"));
    }
    for entry in facts.map.0.iter().filter(|entry| entry.flags.failed) {
        check.errors.push(format!("{name}: node {} has failed", entry.id));
    }
    if !facts.ok {
        check.errors.push(format!("{name} reports cluster_state:fail"));
    }
    if let Some(reason) = &facts.disk_failed {
        check.errors.push(format!("{name} cannot write to its disk: {reason}"));
    }
    for mark in facts.me().map(|me| me.marks.as_slice()).unwrap_or_default() {
        check.warnings.push(match mark {
            Mark::Migrating { slot, to } => format!("{name}: slot {slot} is migrating to {to}"),
            Mark::Importing { slot, from } => format!("{name}: slot {slot} is imported from {from}"),
        });
    }
    if facts.loading {
        check.warnings.push(format!("{name} loads its dataset"));
    }
    if !facts.is_primary() && !facts.in_sync {
        check.warnings.push(format!("{name} is not in sync with its primary"));
    }
}

/// Servers that assign slots to other owners than the first server does.
fn disagreements(cluster: &str, servers: &Servers, check: &mut Check) {
    let mut up = servers
        .iter()
        .filter_map(|(ordinal, observed)| Some((ordinal, facts(observed)?)));
    let Some((first, reference)) = up.next() else { return };
    for (ordinal, facts) in up {
        if owners(facts) != owners(reference) {
            let (one, other) = (names::pod(cluster, *ordinal), names::pod(cluster, *first));
            check
                .errors
                .push(format!("{one} and {other} disagree about the owners of slots"));
        }
    }
}

fn owners(facts: &Facts) -> BTreeMap<valkey_admin::NodeId, &SlotSet> {
    let entries = facts.map.0.iter().filter(|entry| !entry.slots.is_empty());
    entries.map(|entry| (entry.id, &entry.slots)).collect()
}

fn facts(observed: &ObservedServer) -> Option<&Facts> {
    match &observed.server {
        Server::Up(facts) => Some(facts),
        _ => None,
    }
}

/// The nodes in the order of their ordinals, each with its slots. A server that does not respond is described as the
/// others know it.
pub(super) fn nodes(cluster: &str, servers: &Servers) -> Vec<(Node, String)> {
    let described = servers.iter().map(|(ordinal, observed)| {
        let (entry, observation) = known(observed, servers);
        let ip = observed.ip.map(|ip| ip.to_string()).unwrap_or_default();
        let mut node = Node {
            name: names::pod(cluster, *ordinal),
            ip,
            link_status: "disconnected".to_owned(),
            ..Node::default()
        };
        let Some(entry) = entry else {
            return (node, String::new());
        };
        node.id = entry.id.to_string();
        let role = if entry.flags.primary { "primary" } else { "replica" };
        role.clone_into(&mut node.role);
        node.primary_id = entry.primary.map(|id| id.to_string()).unwrap_or_default();
        node.failures = failures(entry, servers);
        let observation = observation.unwrap_or(entry);
        (node.sent, node.recv) = (observation.ping_sent, observation.pong_received);
        if observation.linked && facts(observed).is_some() {
            "connected".clone_into(&mut node.link_status);
        }
        (node, entry.slots.to_string())
    });
    described.collect()
}

/// A server's entry in its own map, else in that of another server; and how another server sees it.
fn known<'a>(observed: &'a ObservedServer, servers: &'a Servers) -> (Option<&'a NodeEntry>, Option<&'a NodeEntry>) {
    let own = facts(observed).and_then(Facts::me);
    let is_it = |entry: &NodeEntry| match own {
        Some(me) => entry.id == me.id,
        None => observed.ip.is_some_and(|ip| entry.address.host == ip.to_string()),
    };
    let maps = servers.values().filter_map(facts);
    let mut entries = maps.flat_map(|facts| &facts.map.0);
    let observation = entries.find(|entry| is_it(entry) && !entry.flags.myself);
    (own.or(observation), observation)
}

/// How many servers report a node as suspected or failed.
fn failures(node: &NodeEntry, servers: &Servers) -> u32 {
    let reports = servers.values().filter_map(facts).filter(|facts| {
        let entry = facts.map.get(node.id);
        entry.is_some_and(|entry| entry.flags.failed || entry.flags.suspected)
    });
    u32::try_from(reports.count()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use candor_engine::observation::Facts;
    use valkey_admin::ClusterNodes;

    use super::*;

    const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

    /// A server with this id. In its map, `A` and `B` own these slots.
    fn server(id: &str, slots_of_a: &str, slots_of_b: &str) -> ObservedServer {
        let line = |node: &str, ip: u8, slots: &str| {
            let flags = if node == id { "myself,master" } else { "master" };
            format!("{node} 10.0.0.{ip}:6379@16379 {flags} - 0 7 1 connected {slots}")
        };
        let text = [line(A, 0, slots_of_a), line(B, 1, slots_of_b)].join("\n");
        let facts = Facts {
            ok: true,
            ..Facts::new(id.parse().unwrap(), ClusterNodes::parse(&text).unwrap())
        };
        ObservedServer {
            pod_uid: String::new(),
            ip: None,
            server: Server::Up(Box::new(facts)),
            trouble: None,
            rejects_login: false,
        }
    }

    fn checked(a: ObservedServer, b: ObservedServer) -> Check {
        check("c", &BTreeMap::from([(0, a), (1, b)]))
    }

    #[test]
    fn a_whole_cluster_has_no_problems() {
        let (low, high) = ("0-8191", "8192-16383");
        assert_eq!(checked(server(A, low, high), server(B, low, high)), Check::default());
    }

    #[test]
    fn one_uncovered_slot_in_one_map_is_an_error_although_the_server_reports_ok() {
        let found = checked(server(A, "0-8191", "8192-16383"), server(B, "0-8191", "8193-16383"));
        assert_eq!(
            found.errors,
            [
                "c-1: slots 8192 have no owner",
                "c-1 and c-0 disagree about the owners of slots",
            ]
        );
    }

    #[test]
    fn an_open_slot_is_a_warning() {
        let moving = format!("0-8191 [5->-{B}]");
        let found = checked(server(A, &moving, "8192-16383"), server(B, "0-8191", "8192-16383"));
        assert_eq!(found.errors, Vec::<String>::new());
        assert_eq!(found.warnings, [format!("c-0: slot 5 is migrating to {B}")]);
    }
}

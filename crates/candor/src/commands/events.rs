//! `candor events`: the events of a cluster and of its members, the newest last.

use std::error::Error;

use candor_api::ValkeyNode;
use candor_operator::objects::names;
use clap::Args;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::Api;
use kube::api::ListParams;

use super::cluster::names::Names;
use super::cluster::{Address, ClusterRef, Kind, redkey};
use super::connect::{Connected, Connection};
use super::errors::CommandError;
use super::output::{Format, Screen, print, print_data};
use super::snapshot::happened;
use super::status::screen::{Transition, draw_transitions};

/// The events of a cluster, the newest last.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  candor events shop             of the cluster
  candor events shop --members   ... and of its members' objects")]
pub struct Events {
    /// The cluster: NAME, or vkc/NAME and rkcl/NAME.
    #[arg(add = super::completion::clusters())]
    name: Address,
    /// Also those of its nodes, workloads, pods and volumes.
    #[arg(long)]
    members: bool,
    /// How to write it.
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: Format,
    #[command(flatten)]
    at: Connection,
}

impl Events {
    /// Prints them.
    pub async fn run(self) -> Result<(), Box<dyn Error>> {
        let at = self.at.connect().await?;
        let (cluster, events) = futures::join!(at.resolve(&self.name), all(&at));
        let names = match &cluster {
            Ok(cluster) => names_of(&at, cluster).await,
            Err(_) => Names::default(),
        };
        let mut events = self.filter(cluster, events?)?;
        events.sort_by_key(happened);
        let shown: Vec<Transition> = events
            .iter()
            .map(|event| transition(event, &names, self.members))
            .collect();
        if print_data(&shown, self.output)? {
            return Ok(());
        }
        if shown.is_empty() {
            return print("No recent events. A healthy cluster emits none, and events are kept for about an hour.\n");
        }
        print(&draw_transitions(
            &shown,
            Timestamp::now(),
            &Screen::of_stdout(self.output),
        ))
    }

    /// The events of the cluster. Events outlive it: a cluster that is gone may still have some.
    fn filter(
        &self,
        cluster: Result<ClusterRef, CommandError>,
        events: Vec<Event>,
    ) -> Result<Vec<Event>, CommandError> {
        let (kinds, gone) = match cluster {
            Ok(cluster) => (vec![cluster.kind], None),
            Err(error @ CommandError::Ambiguous { .. }) => return Err(error),
            Err(error) => {
                let kinds = self.name.kind.map_or_else(|| Kind::ALL.into(), |kind| vec![kind]);
                (kinds, Some(error))
            }
        };
        let of_cluster = |event: &Event| {
            kinds
                .iter()
                .any(|kind| is_of(event, *kind, &self.name.name, self.members))
        };
        let events: Vec<Event> = events.into_iter().filter(of_cluster).collect();
        match gone {
            Some(error) if events.is_empty() => Err(error),
            _ => Ok(events),
        }
    }
}

async fn all(at: &Connected) -> Result<Vec<Event>, CommandError> {
    let api: Api<Event> = Api::namespaced(at.client.clone(), &at.namespace);
    let list = api.list(&ListParams::default()).await;
    Ok(list.map_err(|error| CommandError::of(&error, "Event"))?.items)
}

/// The names of the members, as far as their objects can be read.
async fn names_of(at: &Connected, cluster: &ClusterRef) -> Names {
    let selector = ListParams::default().labels(&cluster.kind.selector(&cluster.name));
    let nodes: Api<ValkeyNode> = Api::namespaced(at.client.clone(), &at.namespace);
    let pods: Api<Pod> = Api::namespaced(at.client.clone(), &at.namespace);
    let (object, nodes, pods) = futures::join!(at.cluster(cluster), nodes.list(&selector), pods.list(&selector));
    let nodes = nodes.map(|list| list.items).unwrap_or_default();
    let pods = pods.map(|list| list.items).unwrap_or_default();
    object.map_or_else(
        |_| Names::default(),
        |object| Names::of(&object.view_with(&nodes, &pods)),
    )
}

fn transition(event: &Event, names: &Names, with_object: bool) -> Transition {
    let mut transition = Transition::of(event, names);
    if with_object {
        let about = &event.involved_object;
        let (kind, name) = (
            about.kind.as_deref().unwrap_or_default(),
            about.name.as_deref().unwrap_or_default(),
        );
        transition.message = format!("{kind}/{name}: {}", transition.message);
    }
    transition
}

/// Whether an event is about a cluster or, if `members` is set, about an object that is named after it.
fn is_of(event: &Event, kind: Kind, cluster: &str, members: bool) -> bool {
    let about = &event.involved_object;
    let (of_kind, name) = (
        about.kind.as_deref().unwrap_or_default(),
        about.name.as_deref().unwrap_or_default(),
    );
    if let Some(other) = Kind::ALL.into_iter().find(|kind| kind.name() == of_kind) {
        return other == kind && name == cluster;
    }
    members
        && match kind {
            Kind::ValkeyCluster => is_part_of_valkey(of_kind, name, cluster),
            Kind::RedkeyCluster => is_part_of_redkey(name, cluster),
        }
}

/// `shop-0-1`, `valkey-shop-0-1-…`; `shop-eu-0-1` belongs to the cluster `shop-eu`.
fn is_part_of_valkey(kind: &str, name: &str, cluster: &str) -> bool {
    let shared = names::shared(cluster);
    let place = name
        .strip_prefix(&shared)
        .or_else(|| name.strip_prefix(cluster).filter(|_| kind == "ValkeyNode"));
    let is_member = |rest: &str| {
        let mut parts = rest.strip_prefix('-').unwrap_or_default().splitn(3, '-');
        let mut number = || {
            parts
                .next()
                .is_some_and(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
        };
        number() && number()
    };
    place.is_some_and(|rest| rest.is_empty() || rest == "-client" || is_member(rest))
}

/// `shop`, `shop-2`, `data-shop-2`, `shop-pdb`, `shop-robin-…`.
fn is_part_of_redkey(name: &str, cluster: &str) -> bool {
    let name = name.strip_prefix("data-").unwrap_or(name);
    let Some(rest) = name.strip_prefix(cluster) else {
        return false;
    };
    let of_robin = rest == "-robin" || rest.starts_with("-robin-");
    rest.is_empty() || rest == "-pdb" || of_robin || redkey::ordinal(cluster, name).is_some()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_are_recognized_by_their_names() {
        let event = |kind: &str, name: &str| -> Event {
            serde_json::from_value(json!({"metadata": {}, "involvedObject": {"kind": kind, "name": name}})).unwrap()
        };
        let (valkey, redkey) = (Kind::ValkeyCluster, Kind::RedkeyCluster);
        for (kind, name, is) in [
            ("ValkeyCluster", "shop", true),
            ("RedkeyCluster", "shop", false),
            ("ValkeyCluster", "shop-eu", false),
            ("ValkeyNode", "shop-0-1", true),
            ("ValkeyNode", "shop-eu-0-1", false),
            ("Pod", "valkey-shop-0-1-abc-xyz", true),
            ("Pod", "valkey-shop-eu-0-1-abc", false),
            ("Service", "valkey-shop-client", true),
            ("Pod", "other", false),
        ] {
            assert_eq!(is_of(&event(kind, name), valkey, "shop", true), is, "{kind} {name}");
        }
        assert!(!is_of(&event("ValkeyNode", "shop-0-1"), valkey, "shop", false));
        for (kind, name, is) in [
            ("RedkeyCluster", "shop", true),
            ("ValkeyCluster", "shop", false),
            ("StatefulSet", "shop", true),
            ("Pod", "shop-2", true),
            ("Pod", "shop-eu-2", false),
            ("Pod", "shop-robin-6d5-x", true),
            ("PersistentVolumeClaim", "data-shop-2", true),
            ("PodDisruptionBudget", "shop-pdb", true),
            ("Pod", "valkey-shop-0-1-abc", false),
        ] {
            assert_eq!(is_of(&event(kind, name), redkey, "shop", true), is, "{kind} {name}");
        }
    }
}

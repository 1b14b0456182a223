//! A snapshot: everything known of one cluster, fetched at once. Rendering it is pure.

use std::collections::BTreeMap;

use candor_api::{ValkeyCluster, ValkeyNode};
use candor_engine::model::MemberRef;
use candor_operator::objects::labels;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use valkey_admin::info::Info;

use super::connect::Connected;
use super::errors::CommandError;
use super::liveness::{self, Liveness};
use super::servers;

/// Everything known of one cluster.
#[derive(Clone, Debug)]
pub struct Picture {
    /// When it was taken.
    pub now: Timestamp,
    /// The cluster.
    pub cluster: ValkeyCluster,
    /// Its members' `ValkeyNode` objects.
    pub nodes: Vec<ValkeyNode>,
    /// Its pods.
    pub pods: Vec<Pod>,
    /// The zone of each node.
    pub zones: BTreeMap<String, String>,
    /// Its events, the oldest first.
    pub events: Vec<Event>,
    /// The replies of the servers that could be reached.
    pub servers: BTreeMap<MemberRef, Info>,
    /// Whether an operator is running.
    pub operator: Liveness,
    /// What could not be fetched, and why.
    pub notes: Vec<String>,
}

/// What to fetch besides the cluster itself.
#[derive(Clone, Debug, Default)]
pub struct Wish {
    /// The namespace of the operator's lease, if the user names it.
    pub operator_namespace: Option<String>,
    /// Whether to query the servers too.
    pub servers: bool,
}

impl Picture {
    /// Takes a snapshot. Only the cluster itself must be readable.
    pub async fn take(at: &Connected, name: &str, wish: &Wish) -> Result<Self, CommandError> {
        let namespace = &at.namespace;
        let now = Timestamp::now();
        let members = ListParams::default().labels(&format!("{}={name}", labels::CLUSTER));
        let about = ListParams::default().fields(&format!("involvedObject.name={name}"));
        let nodes: Api<ValkeyNode> = Api::namespaced(at.client.clone(), namespace);
        let pods: Api<Pod> = Api::namespaced(at.client.clone(), namespace);
        let events: Api<Event> = Api::namespaced(at.client.clone(), namespace);
        let machines: Api<Node> = Api::all(at.client.clone());
        let everything = ListParams::default();
        let (cluster, nodes, pods, events, machines, operator) = futures::join!(
            at.cluster(name),
            nodes.list(&members),
            pods.list(&members),
            events.list(&about),
            machines.list(&everything),
            liveness::look(&at.client, wish.operator_namespace.as_deref(), namespace, now),
        );
        let cluster = cluster?;
        let mut notes = Vec::new();
        let mut pods = kept(pods, "pods", &mut notes);
        pods.sort_by_key(ResourceExt::name_any);
        let mut events = kept(events, "events", &mut notes);
        events.retain(|event| is_about(event, name));
        events.sort_by_key(happened);
        let zones = kept(machines, "machines (for their zones)", &mut notes);
        let mut picture = Self {
            now,
            nodes: kept(nodes, "ValkeyNodes", &mut notes),
            zones: zones.iter().filter_map(zone).collect(),
            cluster,
            pods,
            events,
            servers: BTreeMap::new(),
            operator,
            notes,
        };
        if wish.servers {
            match servers::ask(at, &picture.cluster, &picture.pods).await {
                Ok(answers) => picture.servers = answers,
                Err(words) => picture.notes.push(words),
            }
        }
        // The queries took time; ages are as of their end.
        picture.now = Timestamp::now();
        Ok(picture)
    }
}

/// What was listed, or a note that explains why it was not.
fn kept<K: Clone>(
    listed: Result<kube::core::ObjectList<K>, kube::Error>,
    what: &str,
    notes: &mut Vec<String>,
) -> Vec<K> {
    match listed {
        Ok(list) => list.items,
        Err(kube::Error::Api(status)) => {
            let words = status.message.clone();
            notes.push(format!("{what} are not shown: {words}"));
            Vec::new()
        }
        Err(error) => {
            notes.push(format!("{what} are not shown: {error}"));
            Vec::new()
        }
    }
}

fn is_about(event: &Event, name: &str) -> bool {
    let about = &event.involved_object;
    about.kind.as_deref() == Some("ValkeyCluster") && about.name.as_deref() == Some(name)
}

/// When an event last happened. The older fields have a resolution of seconds and the newer ones are finer, so the
/// latest value counts.
pub fn happened(event: &Event) -> Option<Timestamp> {
    let last = event.last_timestamp.as_ref().map(|time| time.0);
    let series = event
        .series
        .as_ref()
        .and_then(|series| Some(series.last_observed_time.as_ref()?.0));
    let new = event.event_time.as_ref().map(|time| time.0);
    let first = event.first_timestamp.as_ref().map(|time| time.0);
    let made = event.metadata.creation_timestamp.as_ref().map(|time| time.0);
    last.max(series).max(new).or(first).or(made)
}

/// How often an event happened.
pub fn times(event: &Event) -> i32 {
    let series = event.series.as_ref().and_then(|series| series.count);
    event.count.max(series).unwrap_or(1)
}

fn zone(machine: &Node) -> Option<(String, String)> {
    let zone = machine.labels().get("topology.kubernetes.io/zone")?;
    Some((machine.name_any(), zone.clone()))
}

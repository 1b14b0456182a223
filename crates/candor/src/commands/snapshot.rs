//! A snapshot: everything known of one cluster, fetched at once. Rendering it is pure.

use std::collections::BTreeMap;

use candor_api::ValkeyNode;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use valkey_admin::info::Info;

use super::cluster::{Cluster, ClusterRef, Kind, MemberId, Object};
use super::connect::Connected;
use super::errors::CommandError;
use super::liveness::{self, Liveness};
use super::servers;
use super::surroundings::Surroundings;

/// Everything known of one cluster.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// When it was taken.
    pub now: Timestamp,
    /// The cluster's object.
    pub object: Object,
    /// Its members' `ValkeyNode` objects; a `RedkeyCluster` has none.
    pub nodes: Vec<ValkeyNode>,
    /// Its members' pods.
    pub pods: Vec<Pod>,
    /// The zone of each node.
    pub zones: BTreeMap<String, String>,
    /// Its events, the oldest first.
    pub events: Vec<Event>,
    /// The replies of the servers that could be reached.
    pub servers: BTreeMap<MemberId, Info>,
    /// Whether an operator is running.
    pub operator: Liveness,
    /// Service, volumes, budget and certificate.
    pub around: Surroundings,
    /// What could not be fetched, and why.
    pub notes: Vec<String>,
}

/// What to fetch besides the cluster itself.
#[derive(Clone, Debug, Default)]
pub struct Include {
    /// The namespace of the operator's lease, if the user names it.
    pub operator_namespace: Option<String>,
    /// Whether to query the servers too.
    pub servers: bool,
    /// Whether to read Service, volumes, budget and certificate too.
    pub around: bool,
}

impl Snapshot {
    /// Takes a snapshot. Only the cluster itself must be readable.
    pub async fn take(at: &Connected, cluster: &ClusterRef, include: &Include) -> Result<Self, CommandError> {
        let ClusterRef { kind, name } = cluster;
        let namespace = &at.namespace;
        let now = Timestamp::now();
        let members = ListParams::default().labels(&kind.member_selector(name));
        let about = ListParams::default().fields(&format!("involvedObject.name={name}"));
        let nodes: Api<ValkeyNode> = Api::namespaced(at.client.clone(), namespace);
        let nodes = async {
            match kind {
                Kind::ValkeyCluster => Some(nodes.list(&members).await),
                Kind::RedkeyCluster => None,
            }
        };
        let pods: Api<Pod> = Api::namespaced(at.client.clone(), namespace);
        let events: Api<Event> = Api::namespaced(at.client.clone(), namespace);
        let of_kubernetes: Api<Node> = Api::all(at.client.clone());
        let everything = ListParams::default();
        let (object, nodes, pods, events, of_kubernetes, operator) = futures::join!(
            at.cluster(cluster),
            nodes,
            pods.list(&members),
            events.list(&about),
            of_kubernetes.list(&everything),
            liveness::fetch(&at.client, include.operator_namespace.as_deref(), namespace, now),
        );
        let object = object?;
        let mut notes = Vec::new();
        let mut pods = listed(pods, "pods", &mut notes);
        pods.sort_by_key(ResourceExt::name_any);
        let mut events = listed(events, "events", &mut notes);
        events.retain(|event| is_about(event, cluster));
        events.sort_by_key(happened);
        let of_kubernetes = listed(of_kubernetes, "nodes (for their zones)", &mut notes);
        let mut snapshot = Self {
            now,
            nodes: nodes.map_or_else(Vec::new, |nodes| listed(nodes, "ValkeyNodes", &mut notes)),
            zones: of_kubernetes.iter().filter_map(zone).collect(),
            object,
            pods,
            events,
            servers: BTreeMap::new(),
            operator,
            around: Surroundings::default(),
            notes,
        };
        let around = async {
            if include.around {
                Surroundings::fetch(at, &snapshot.object).await
            } else {
                Surroundings::default()
            }
        };
        let answers = async {
            if include.servers {
                Some(servers::ask(at, &snapshot.object, &snapshot.pods).await)
            } else {
                None
            }
        };
        let (around, answers) = futures::join!(around, answers);
        snapshot.around = around;
        match answers {
            Some(Ok((answers, note))) => {
                snapshot.servers = answers;
                snapshot.notes.extend(note);
            }
            Some(Err(message)) => snapshot.notes.push(message),
            None => {}
        }
        // The queries took time; ages are as of their end.
        snapshot.now = Timestamp::now();
        Ok(snapshot)
    }

    /// The cluster, with what its members' objects report.
    pub fn cluster(&self) -> Cluster {
        self.object.view_with(&self.nodes, &self.pods)
    }
}

/// What was listed, or a note that explains why it was not.
fn listed<K: Clone>(
    found: Result<kube::core::ObjectList<K>, kube::Error>,
    what: &str,
    notes: &mut Vec<String>,
) -> Vec<K> {
    match found {
        Ok(list) => list.items,
        Err(kube::Error::Api(status)) => {
            notes.push(format!("{what} are not shown: {}", status.message));
            Vec::new()
        }
        Err(error) => {
            notes.push(format!("{what} are not shown: {error}"));
            Vec::new()
        }
    }
}

fn is_about(event: &Event, cluster: &ClusterRef) -> bool {
    let about = &event.involved_object;
    about.kind.as_deref() == Some(cluster.kind.name()) && about.name.as_deref() == Some(&cluster.name)
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

fn zone(node: &Node) -> Option<(String, String)> {
    let zone = node.labels().get("topology.kubernetes.io/zone")?;
    Some((node.name_any(), zone.clone()))
}

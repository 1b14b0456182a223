//! Everything that the watches of the API server reported: one plain value for all viewers, fed by events.

use std::collections::{BTreeMap, BTreeSet};
use std::marker::PhantomData;

use candor_api::ValkeyNode;
use candor_api::redkey::CLUSTER_LABEL;
use candor_operator::objects::labels;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use kube::ResourceExt;
use kube::api::DynamicObject;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::source::Source;
use crate::commands::cluster::fetch::decode;
use crate::commands::cluster::{ClusterRef, Kind, Object};
use crate::commands::liveness::Liveness;
use crate::commands::snapshot::{Snapshot, happened};

/// A cluster of any namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Its namespace.
    pub namespace: String,
    /// Its kind.
    pub kind: Kind,
    /// Its name.
    pub name: String,
}

impl Key {
    /// The path of its page.
    pub fn path(&self) -> String {
        format!("/c/{}/{}/{}", self.namespace, self.kind.short(), self.name)
    }

    /// The cluster within its namespace.
    pub fn reference(&self) -> ClusterRef {
        ClusterRef {
            kind: self.kind,
            name: self.name.clone(),
        }
    }
}

/// An object as JSON text: decoded, it takes several times as much memory, and is needed only when a page shows it.
#[derive(Debug)]
struct Packed<K> {
    text: Box<[u8]>,
    kind: PhantomData<K>,
}

impl<K: Serialize + DeserializeOwned> Packed<K> {
    fn of(object: &K) -> Result<Self, String> {
        let text = serde_json::to_vec(object).map_err(|error| error.to_string())?;
        Ok(Self {
            text: text.into(),
            kind: PhantomData,
        })
    }

    fn unpacked(&self) -> Option<K> {
        serde_json::from_slice(&self.text).ok()
    }
}

/// The objects of one cluster.
#[derive(Debug, Default)]
struct Parts {
    object: Option<Packed<Object>>,
    nodes: BTreeMap<String, Packed<ValkeyNode>>,
    pods: BTreeMap<String, Packed<Pod>>,
    events: BTreeMap<String, Packed<Event>>,
    /// Changes whenever one of them does.
    revision: u64,
}

impl Parts {
    fn is_empty(&self) -> bool {
        self.object.is_none() && self.nodes.is_empty() && self.pods.is_empty() && self.events.is_empty()
    }
}

/// The state of one watch.
#[derive(Debug, Default)]
struct Watched {
    /// Objects that it has, by namespace and name, with the cluster that they belong to.
    objects: BTreeMap<(String, String), Option<Key>>,
    /// While it lists: the objects of the new list.
    listing: Option<BTreeSet<(String, String)>>,
    is_complete: bool,
    trouble: Option<String>,
    undecoded: BTreeMap<(String, String), String>,
}

/// Everything that is known.
#[derive(Debug, Default)]
pub struct World {
    clusters: BTreeMap<Key, Parts>,
    leases: BTreeMap<(String, String), Lease>,
    zones: BTreeMap<String, String>,
    watches: BTreeMap<Source, Watched>,
    /// Changes with every change that a page may show.
    revision: u64,
    /// When the API server last responded.
    heard: Option<Timestamp>,
}

impl World {
    /// A world with these watches, none of which has reported yet.
    pub fn new(sources: impl IntoIterator<Item = Source>) -> Self {
        Self {
            watches: sources.into_iter().map(|source| (source, Watched::default())).collect(),
            ..Self::default()
        }
    }

    /// Changes with every change that a page may show.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// When the API server last responded.
    pub fn heard(&self) -> Option<Timestamp> {
        self.heard
    }

    /// The API server responded.
    pub fn hear(&mut self, now: Timestamp) {
        self.heard = Some(now);
    }

    /// A watch starts to list.
    pub fn begin(&mut self, source: Source) {
        self.watches.entry(source).or_default().listing = Some(BTreeSet::new());
    }

    /// A watch has listed everything: what it did not list again is gone.
    pub fn complete(&mut self, source: Source) {
        let watched = self.watches.entry(source).or_default();
        (watched.is_complete, watched.trouble) = (true, None);
        let listed = watched.listing.take().unwrap_or_default();
        let gone: Vec<_> = watched
            .objects
            .keys()
            .filter(|name| !listed.contains(*name))
            .cloned()
            .collect();
        for name in gone {
            self.forget(source, &name);
        }
        self.revision += 1;
    }

    /// A watch failed; it restarts by itself.
    pub fn fail(&mut self, source: Source, message: String) {
        let watched = self.watches.entry(source).or_default();
        if watched.trouble.as_ref() != Some(&message) {
            watched.trouble = Some(message);
            self.revision += 1;
        }
    }

    /// An object was created or changed.
    pub fn apply(&mut self, source: Source, mut object: DynamicObject) {
        let name = (object.namespace().unwrap_or_default(), object.name_any());
        if source != Source::Leases {
            object.metadata.managed_fields = None;
        }
        let key = self.store(source, &name, object);
        let watched = self.watches.entry(source).or_default();
        watched.trouble = None;
        if let Some(listing) = &mut watched.listing {
            listing.insert(name.clone());
        }
        match key {
            Ok(key) => {
                watched.undecoded.remove(&name);
                watched.objects.insert(name, key.clone());
                self.touch(source, key.as_ref());
            }
            Err(message) => {
                watched.undecoded.insert(name, message);
                self.revision += 1;
            }
        }
    }

    /// An object was deleted.
    pub fn remove(&mut self, source: Source, object: &DynamicObject) {
        let name = (object.namespace().unwrap_or_default(), object.name_any());
        self.forget(source, &name);
    }

    fn forget(&mut self, source: Source, name: &(String, String)) {
        let watched = self.watches.entry(source).or_default();
        watched.undecoded.remove(name);
        let Some(key) = watched.objects.remove(name) else {
            return;
        };
        if let Some(parts) = key.as_ref().and_then(|key| self.clusters.get_mut(key)) {
            match source {
                Source::Clusters(_) => parts.object = None,
                Source::Members => _ = parts.nodes.remove(&name.1),
                Source::Pods(_) => _ = parts.pods.remove(&name.1),
                Source::Events(_) => _ = parts.events.remove(&name.1),
                Source::Leases | Source::Nodes => {}
            }
        }
        match source {
            Source::Leases => _ = self.leases.remove(name),
            Source::Nodes => _ = self.zones.remove(&name.1),
            _ => {}
        }
        self.touch(source, key.as_ref());
        self.clusters.retain(|_, parts| !parts.is_empty());
    }

    /// Leases are renewed all the time and change a page only when an operator comes or goes.
    fn touch(&mut self, source: Source, key: Option<&Key>) {
        if source == Source::Leases {
            return;
        }
        self.revision += 1;
        if let Some(parts) = key.and_then(|key| self.clusters.get_mut(key)) {
            parts.revision = self.revision;
        }
    }

    /// Stores an object; returns the cluster that it belongs to.
    fn store(&mut self, source: Source, name: &(String, String), object: DynamicObject) -> Result<Option<Key>, String> {
        let of = |kind: Kind, cluster: &str| Key {
            namespace: name.0.clone(),
            kind,
            name: cluster.to_owned(),
        };
        let key = match source {
            Source::Clusters(kind) => {
                let key = of(kind, &name.1);
                self.parts(&key).object = Some(Packed::of(&decode(kind, object)?)?);
                Some(key)
            }
            Source::Members => {
                let node: ValkeyNode = typed(object)?;
                let key = node
                    .labels()
                    .get(labels::CLUSTER)
                    .map(|one| of(Kind::ValkeyCluster, one));
                if let Some(key) = &key {
                    self.parts(key).nodes.insert(name.1.clone(), Packed::of(&node)?);
                }
                key
            }
            Source::Pods(kind) => {
                let pod: Pod = typed(object)?;
                let label = match kind {
                    Kind::ValkeyCluster => labels::CLUSTER,
                    Kind::RedkeyCluster => CLUSTER_LABEL,
                };
                let key = pod.labels().get(label).map(|one| of(kind, one));
                if let Some(key) = key.as_ref().filter(|_| kind.member_of(&pod).is_some()) {
                    let pod = Packed::of(&pruned(pod))?;
                    self.parts(key).pods.insert(name.1.clone(), pod);
                }
                key
            }
            Source::Events(kind) => {
                let event: Event = typed(object)?;
                let key = event.involved_object.name.as_deref().map(|one| of(kind, one));
                if let Some(key) = &key {
                    self.parts(key).events.insert(name.1.clone(), Packed::of(&event)?);
                }
                key
            }
            Source::Leases => {
                self.leases.insert(name.clone(), typed(object)?);
                None
            }
            Source::Nodes => {
                let node: Node = typed(object)?;
                let zone = node.labels().get("topology.kubernetes.io/zone");
                self.zones.insert(name.1.clone(), zone.cloned().unwrap_or_default());
                None
            }
        };
        Ok(key)
    }

    fn parts(&mut self, key: &Key) -> &mut Parts {
        self.clusters.entry(key.clone()).or_default()
    }

    /// The clusters that exist, with the revision of each.
    pub fn clusters(&self) -> impl Iterator<Item = (&Key, u64)> {
        let existing = self.clusters.iter().filter(|(_, parts)| parts.object.is_some());
        existing.map(|(key, parts)| (key, parts.revision))
    }

    /// Whether the clusters of every kind have been listed once, or cannot be.
    pub fn is_complete(&self) -> bool {
        let mut clusters = self
            .watches
            .iter()
            .filter(|(source, _)| matches!(source, Source::Clusters(_)));
        clusters.all(|(_, watched)| watched.is_complete || watched.trouble.is_some())
    }

    /// Whether an operator is running, according to its lease.
    pub fn operator(&self, now: Timestamp) -> Liveness {
        if let Some(message) = self.watches.get(&Source::Leases).and_then(|one| one.trouble.clone()) {
            return Liveness::Unknown { message };
        }
        let renewed = |lease: &&Lease| lease.spec.as_ref().and_then(|spec| Some(spec.renew_time.as_ref()?.0));
        let newest = self.leases.values().max_by_key(renewed);
        newest.map_or(Liveness::NoLease, |lease| Liveness::of(lease, now))
    }

    /// Everything known of one cluster, except what its servers report.
    pub fn snapshot(&self, key: &Key, now: Timestamp) -> Option<Snapshot> {
        let parts = self.clusters.get(key)?;
        let object = parts.object.as_ref()?.unpacked()?;
        let mut events: Vec<Event> = parts.events.values().filter_map(Packed::unpacked).collect();
        events.sort_by_key(happened);
        Some(Snapshot {
            now,
            object,
            nodes: parts.nodes.values().filter_map(Packed::unpacked).collect(),
            pods: parts.pods.values().filter_map(Packed::unpacked).collect(),
            zones: self.zones.clone(),
            events,
            servers: BTreeMap::new(),
            around: crate::commands::surroundings::Surroundings::default(),
            operator: self.operator(now),
            notes: self.notes(|namespace| namespace == key.namespace),
        })
    }

    /// The namespaces that have clusters.
    pub fn namespaces(&self) -> BTreeSet<String> {
        self.clusters().map(|(key, _)| key.namespace.clone()).collect()
    }

    /// What is not shown, and why; of objects only those in namespaces that the viewer sees.
    pub fn notes(&self, sees: impl Fn(&str) -> bool) -> Vec<String> {
        let mut notes = Vec::new();
        for (source, watched) in &self.watches {
            if let Some(message) = watched.trouble.as_ref().filter(|_| *source != Source::Leases) {
                notes.push(format!("{} are not shown: {message}", source.name()));
            }
            let seen = watched.undecoded.iter().filter(|((namespace, _), _)| sees(namespace));
            for ((namespace, name), message) in seen {
                let what = source.name();
                notes.push(format!("{what}: {namespace}/{name} cannot be decoded: {message}"));
            }
        }
        notes
    }
}

fn typed<K: DeserializeOwned>(object: DynamicObject) -> Result<K, String> {
    let value = serde_json::to_value(object).map_err(|error| error.to_string())?;
    serde_json::from_value(value).map_err(|error| error.to_string())
}

/// What pages show of a pod; the rest would only take memory.
fn pruned(mut pod: Pod) -> Pod {
    pod.metadata.annotations = None;
    pod.metadata.owner_references = None;
    if let Some(spec) = &mut pod.spec {
        *spec = k8s_openapi::api::core::v1::PodSpec {
            node_name: spec.node_name.take(),
            ..Default::default()
        };
    }
    pod
}

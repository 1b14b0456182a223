//! Reads clusters of either kind. A kind without an installed CRD has no clusters, and an object that cannot be
//! decoded does not hide the others.

use candor_api::ValkeyNode;
use candor_api::redkey::{COMPONENT_LABEL, REDIS};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DynamicObject, ListParams};
use serde_json::json;

use super::{Address, ClusterRef, Kind, Object};
use crate::commands::connect::Connected;
use crate::commands::errors::CommandError;

/// Clusters, and what could not be listed.
#[derive(Clone, Debug, Default)]
pub struct Listed {
    /// The clusters of all kinds.
    pub objects: Vec<Object>,
    /// The members of the `ValkeyCluster`s.
    pub nodes: Vec<ValkeyNode>,
    /// The servers of the `RedkeyCluster`s.
    pub pods: Vec<Pod>,
    /// What is missing, and why.
    pub notes: Vec<String>,
}

impl Connected {
    /// The API of a kind in the connection's namespace.
    pub fn api(&self, kind: Kind) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), &self.namespace, &kind.resource())
    }

    /// A cluster; if there is none of that name, an error that suggests others.
    pub async fn cluster(&self, cluster: &ClusterRef) -> Result<Object, CommandError> {
        match self.get(cluster).await? {
            Some(object) => Ok(object),
            None => Err(self.no_cluster(Some(cluster.kind), &cluster.name).await),
        }
    }

    async fn get(&self, cluster: &ClusterRef) -> Result<Option<Object>, CommandError> {
        let found = self.api(cluster.kind).get_opt(&cluster.name).await;
        let found = found.map_err(|error| CommandError::of(&error, cluster.kind.name()))?;
        let decoded = found.map(|object| decode(cluster.kind, object)).transpose();
        decoded.map_err(|message| CommandError::Refused {
            what: format!("{cluster} cannot be decoded"),
            message,
        })
    }

    /// The cluster that a user means. A name alone is enough if only one kind has a cluster of that name.
    pub async fn resolve(&self, address: &Address) -> Result<ClusterRef, CommandError> {
        let named = |kind| ClusterRef {
            kind,
            name: address.name.clone(),
        };
        if let Some(kind) = address.kind {
            let cluster = named(kind);
            if self.exists(&cluster).await? {
                return Ok(cluster);
            }
            return Err(self.no_cluster(Some(kind), &address.name).await);
        }
        let [valkey, redkey] = Kind::ALL.map(named);
        let (one, other) = futures::join!(self.exists(&valkey), self.exists(&redkey));
        match choose(&address.name, &self.namespace, [(valkey, one), (redkey, other)])? {
            Some(cluster) => Ok(cluster),
            None => Err(self.no_cluster(None, &address.name).await),
        }
    }

    async fn exists(&self, cluster: &ClusterRef) -> Result<bool, CommandError> {
        let found = self.api(cluster.kind).get_metadata_opt(&cluster.name).await;
        Ok(found
            .map_err(|error| CommandError::of(&error, cluster.kind.name()))?
            .is_some())
    }

    /// Why there is no cluster of a name: its kind is not installed, or other clusters have similar names.
    async fn no_cluster(&self, kind: Option<Kind>, name: &str) -> CommandError {
        if let Some(kind) = kind
            && let Err(error) = self.list(kind, false).await
        {
            return error;
        }
        match self.clusters(false).await {
            Ok(listed) => {
                let known = match kind {
                    Some(_) => listed.objects.iter().map(Object::address).collect(),
                    None => names(&listed.objects),
                };
                CommandError::no_cluster(kind, name, &self.namespace, &known)
            }
            Err(error) => error,
        }
    }

    /// All clusters of the namespace, or of every namespace.
    pub async fn clusters(&self, everywhere: bool) -> Result<Listed, CommandError> {
        let (valkey, redkey) = futures::join!(
            self.list(Kind::ValkeyCluster, everywhere),
            self.list(Kind::RedkeyCluster, everywhere)
        );
        merge([(Kind::ValkeyCluster, valkey), (Kind::RedkeyCluster, redkey)])
    }

    /// All clusters with their members: which slots are served depends on these. Where members may not be read, that
    /// is not known.
    pub async fn clusters_with_members(&self, everywhere: bool) -> Result<Listed, CommandError> {
        let (nodes, pods): (Api<ValkeyNode>, Api<Pod>) = if everywhere {
            (Api::all(self.client.clone()), Api::all(self.client.clone()))
        } else {
            let namespace = &self.namespace;
            let client = || self.client.clone();
            (
                Api::namespaced(client(), namespace),
                Api::namespaced(client(), namespace),
            )
        };
        let servers = ListParams::default().labels(&format!("{COMPONENT_LABEL}={REDIS}"));
        let all = ListParams::default();
        let (listed, nodes, pods) = futures::join!(self.clusters(everywhere), nodes.list(&all), pods.list(&servers));
        Ok(Listed {
            nodes: nodes.map(|list| list.items).unwrap_or_default(),
            pods: pods.map(|list| list.items).unwrap_or_default(),
            ..listed?
        })
    }

    async fn list(&self, kind: Kind, everywhere: bool) -> Result<Listed, CommandError> {
        let api = if everywhere {
            Api::all_with(self.client.clone(), &kind.resource())
        } else {
            self.api(kind)
        };
        let found = api.list(&ListParams::default()).await;
        let mut listed = Listed::default();
        for object in found.map_err(|error| CommandError::of(&error, kind.name()))?.items {
            let metadata = &object.metadata;
            let name = format!(
                "{} {}/{}",
                kind.name(),
                metadata.namespace.as_deref().unwrap_or_default(),
                metadata.name.as_deref().unwrap_or_default()
            );
            match decode(kind, object) {
                Ok(object) => listed.objects.push(object),
                Err(message) => listed
                    .notes
                    .push(format!("{name} is not shown: it cannot be decoded: {message}")),
            }
        }
        Ok(listed)
    }
}

/// How to name each of these clusters: by its name alone where that is enough.
pub fn names(objects: &[Object]) -> Vec<String> {
    let all: Vec<String> = objects.iter().map(Object::name).collect();
    let is_shared = |name: &String| all.iter().filter(|other| *other == name).count() > 1;
    objects
        .iter()
        .zip(&all)
        .map(|(object, name)| {
            if is_shared(name) {
                object.address()
            } else {
                name.clone()
            }
        })
        .collect()
}

/// The cluster that a name alone means, among those that exist; `None` if there is none. A kind that may not be read
/// matters only if no other kind has the name.
fn choose(
    name: &str,
    namespace: &str,
    found: [(ClusterRef, Result<bool, CommandError>); 2],
) -> Result<Option<ClusterRef>, CommandError> {
    let mut existing = Vec::new();
    let mut failed = None;
    for (cluster, exists) in found {
        match exists {
            Ok(true) => existing.push(cluster),
            Ok(false) | Err(CommandError::NoDefinition(_)) => {}
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    match (existing.as_slice(), failed) {
        ([_, _, ..], _) => Err(CommandError::Ambiguous {
            name: name.to_owned(),
            namespace: namespace.to_owned(),
        }),
        ([one], _) => Ok(Some(one.clone())),
        ([], Some(error)) => Err(error),
        ([], None) => Ok(None),
    }
}

/// The lists of all kinds as one. A kind that is not installed is no error, unless none is.
fn merge(lists: [(Kind, Result<Listed, CommandError>); 2]) -> Result<Listed, CommandError> {
    let mut all: Option<Listed> = None;
    let mut failed: Option<(Kind, CommandError)> = None;
    let mut missing = None;
    for (kind, list) in lists {
        match list {
            Ok(listed) => {
                let all = all.get_or_insert_default();
                all.objects.extend(listed.objects);
                all.notes.extend(listed.notes);
            }
            Err(error @ CommandError::NoDefinition(_)) => missing = missing.or(Some(error)),
            Err(error) => failed = failed.or(Some((kind, error))),
        }
    }
    match (all, failed, missing) {
        (Some(mut all), failed, _) => {
            all.notes
                .extend(failed.map(|(kind, error)| format!("{}s are not shown: {}", kind.name(), error.first_line())));
            Ok(all)
        }
        (None, Some((_, error)), _) | (None, None, Some(error)) => Err(error),
        (None, None, None) => Ok(Listed::default()),
    }
}

/// The object as its kind. Items of a list may lack their kind.
pub fn decode(kind: Kind, object: DynamicObject) -> Result<Object, String> {
    let read = || -> Result<Object, serde_json::Error> {
        let mut value = serde_json::to_value(object)?;
        value["apiVersion"] = json!(kind.api_version());
        value["kind"] = json!(kind.name());
        Ok(match kind {
            Kind::ValkeyCluster => Object::Valkey(Box::new(serde_json::from_value(value)?)),
            Kind::RedkeyCluster => Object::Redkey(Box::new(serde_json::from_value(value)?)),
        })
    };
    read().map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forbidden() -> CommandError {
        CommandError::Forbidden {
            message: "redkeyclusters is forbidden".to_owned(),
            remedy: "ask".to_owned(),
        }
    }

    fn missing() -> CommandError {
        CommandError::NoDefinition("RedkeyCluster".to_owned())
    }

    #[test]
    fn a_name_alone_is_enough_when_one_kind_has_it() {
        let chosen = |valkey: Result<bool, CommandError>, redkey: Result<bool, CommandError>| {
            let named = |kind| ClusterRef {
                kind,
                name: "shop".to_owned(),
            };
            let [one, other] = Kind::ALL.map(named);
            match choose("shop", "default", [(one, valkey), (other, redkey)]) {
                Ok(found) => found.map_or("none".to_owned(), |found| found.to_string()),
                Err(error) => error.to_string(),
            }
        };
        assert_eq!(chosen(Ok(true), Ok(false)), "ValkeyCluster shop");
        assert_eq!(chosen(Ok(false), Ok(true)), "RedkeyCluster shop");
        assert_eq!(chosen(Ok(true), Err(missing())), "ValkeyCluster shop");
        assert_eq!(chosen(Ok(true), Err(forbidden())), "ValkeyCluster shop");
        assert_eq!(chosen(Err(missing()), Ok(true)), "RedkeyCluster shop");
        assert_eq!(chosen(Ok(false), Ok(false)), "none");
        assert_eq!(chosen(Ok(false), Err(missing())), "none");
        assert_eq!(chosen(Ok(false), Err(forbidden())), "redkeyclusters is forbidden\nask");
        assert_eq!(
            chosen(Ok(true), Ok(true)),
            "there are two clusters \"shop\" in namespace default, a ValkeyCluster and a RedkeyCluster\n\
             Name the one that you mean: vkc/shop or rkcl/shop"
        );
    }

    #[test]
    fn a_kind_that_is_not_installed_or_not_allowed_does_not_hide_the_other() {
        let merged = |valkey: Result<Listed, CommandError>, redkey: Result<Listed, CommandError>| {
            merge([(Kind::ValkeyCluster, valkey), (Kind::RedkeyCluster, redkey)])
        };
        assert_eq!(
            merged(Ok(Listed::default()), Err(missing())).unwrap().notes,
            Vec::<String>::new()
        );
        assert_eq!(
            merged(Ok(Listed::default()), Err(forbidden())).unwrap().notes,
            ["RedkeyClusters are not shown: redkeyclusters is forbidden"]
        );
        assert!(matches!(
            merged(Err(missing()), Err(missing())),
            Err(CommandError::NoDefinition(_))
        ));
        assert!(matches!(
            merged(Err(missing()), Err(forbidden())),
            Err(CommandError::Forbidden { .. })
        ));
    }

    #[test]
    fn an_object_that_cannot_be_decoded_says_why() {
        let object = json!({"metadata": {"name": "odd"}, "spec": {"primaries": "three"}});
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        let message = decode(Kind::RedkeyCluster, object).unwrap_err();
        assert!(message.contains("invalid type: string \"three\""), "{message}");
    }
}

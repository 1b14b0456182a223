//! Objects of one kind that do not decode, each with its decode error. Entries are small, and there are no more of them
//! than objects in the API server.

use std::collections::{BTreeMap, HashMap};

use super::{ClusterKey, Source};
use crate::runtime::guarded::Undecodable;

/// An object that does not decode.
#[derive(Clone, Debug)]
struct Skip {
    uid: Option<String>,
    version: Option<String>,
    error: String,
}

impl Skip {
    fn of(object: &Undecodable) -> Self {
        Self {
            uid: object.meta.uid.clone(),
            version: object.meta.resource_version.clone(),
            error: object.error.clone(),
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        self.uid == other.uid && self.version == other.version
    }
}

type Skips = HashMap<ClusterKey, BTreeMap<String, Skip>>;

/// The objects of one kind that do not decode.
#[derive(Debug, Default)]
pub(super) struct Skipped {
    now: Skips,
    /// Objects of lists in progress.
    listing: HashMap<Source, Skips>,
}

impl Skipped {
    /// Starts a list.
    pub(super) fn begin(&mut self, source: &Source) {
        self.listing.insert(source.clone(), Skips::new());
    }

    /// Adds an object to a list. Returns whether this version was not known before.
    pub(super) fn list(&mut self, source: &Source, key: ClusterKey, name: String, object: &Undecodable) -> bool {
        let skip = Skip::of(object);
        let known = self.now.get(&key).and_then(|group| group.get(&name));
        let news = known.is_none_or(|known| !known.is_same(&skip));
        let list = self.listing.entry(source.clone()).or_default();
        list.entry(key).or_default().insert(name, skip);
        news
    }

    /// The uids of the objects in a list that is in progress.
    pub(super) fn listed(&self, source: &Source) -> impl Iterator<Item = &String> {
        let listed = self.listing.get(source).into_iter().flat_map(HashMap::values);
        listed.flat_map(BTreeMap::values).filter_map(|skip| skip.uid.as_ref())
    }

    /// Completes a list: it replaces the entries of its source.
    pub(super) fn end(&mut self, source: &Source) {
        let fresh = self.listing.remove(source).unwrap_or_default();
        self.now.retain(|key, _| !source.covers(key));
        self.now.extend(fresh);
    }

    /// Records that an object does not decode. Returns whether this version was not known before.
    pub(super) fn put(&mut self, key: ClusterKey, name: String, object: &Undecodable) -> bool {
        let skip = Skip::of(object);
        let before = self.now.entry(key).or_default().insert(name, skip.clone());
        before.is_none_or(|before| !before.is_same(&skip))
    }

    /// Removes an object that decodes again or was deleted.
    pub(super) fn remove(&mut self, key: &ClusterKey, name: &str) {
        if let Some(group) = self.now.get_mut(key) {
            group.remove(name);
            if group.is_empty() {
                self.now.remove(key);
            }
        }
    }

    /// The first object of a cluster, by name, with its decode error.
    pub(super) fn first(&self, key: &ClusterKey) -> Option<String> {
        let (name, skip) = self.now.get(key)?.iter().next()?;
        Some(format!("{name} cannot be decoded: {}", skip.error))
    }

    pub(super) fn len(&self) -> usize {
        self.now.values().map(BTreeMap::len).sum()
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::ResourceExt;
    use kube::runtime::watcher::Event;

    use super::*;
    use crate::objects::labels;
    use crate::runtime::cache::Cache;

    fn meta(name: &str, version: u64) -> ObjectMeta {
        ObjectMeta {
            namespace: Some("shop".into()),
            name: Some(name.into()),
            uid: Some(format!("uid of {name}")),
            resource_version: Some(version.to_string()),
            labels: Some([(labels::CLUSTER.to_owned(), "c".to_owned())].into()),
            ..ObjectMeta::default()
        }
    }

    fn decoded(name: &str, version: u64) -> ConfigMap {
        ConfigMap {
            metadata: meta(name, version),
            ..ConfigMap::default()
        }
    }

    fn undecodable(name: &str, version: u64) -> Undecodable {
        Undecodable {
            meta: Box::new(meta(name, version)),
            error: "unknown variant".to_owned(),
        }
    }

    fn key() -> ClusterKey {
        ClusterKey {
            kind: crate::runtime::cache::ClusterKind::Valkey,
            namespace: "shop".into(),
            name: "c".into(),
        }
    }

    #[test]
    fn an_object_that_no_longer_decodes_is_forgotten_until_it_decodes_again() {
        let cache: Cache<ConfigMap> = Cache::of_clusters();
        cache.put(decoded("a", 1));
        cache.put(decoded("b", 2));
        assert!(cache.skip(&Source::default(), &Event::Apply(()), &undecodable("a", 3)));
        assert!(
            !cache.skip(&Source::default(), &Event::Apply(()), &undecodable("a", 3)),
            "no news"
        );
        let names: Vec<String> = cache.list(&key()).iter().map(|object| object.name_any()).collect();
        assert_eq!(names, ["b"], "every other object is as it was");
        assert_eq!(
            cache.undecodable(&key()).as_deref(),
            Some("a cannot be decoded: unknown variant")
        );
        assert_eq!(cache.take(&Source::default(), Event::Apply(decoded("a", 4))).len(), 1);
        assert_eq!((cache.undecodable_count(), cache.list(&key()).len()), (0, 2));
        cache.skip(&Source::default(), &Event::Apply(()), &undecodable("a", 5));
        cache.skip(&Source::default(), &Event::Delete(()), &undecodable("a", 5));
        assert_eq!(cache.undecodable_count(), 0);
    }

    #[test]
    fn a_list_with_an_object_that_does_not_decode_is_whole() {
        let cache: Cache<ConfigMap> = Cache::of_clusters();
        cache.expect(&Source::default());
        cache.put(decoded("a", 1));
        let list = |undecodables: &[Undecodable]| {
            cache.take(&Source::default(), Event::Init);
            let news: Vec<bool> = undecodables
                .iter()
                .map(|object| cache.skip(&Source::default(), &Event::InitApply(()), object))
                .collect();
            cache.take(&Source::default(), Event::InitApply(decoded("b", 2)));
            cache.take(&Source::default(), Event::InitDone);
            news
        };
        assert_eq!(list(&[undecodable("a", 3)]), [true]);
        assert!(cache.is_ready());
        assert_eq!((cache.undecodable_count(), cache.list(&key()).len()), (1, 1));
        assert_eq!(list(&[undecodable("a", 3)]), [false], "known since the last list");
        // The object is not deleted: the response to the operator's own write is stored.
        cache.put(decoded("a", 4));
        assert!(cache.get(&key(), "a").is_some());
        assert_eq!(list(&[]), [false; 0]);
        assert_eq!(cache.undecodable_count(), 0, "deleted while nobody watched");
    }
}

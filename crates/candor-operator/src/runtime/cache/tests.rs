//! The cache under events and the operator's own writes.

use k8s_openapi::api::core::v1::ConfigMap;

use super::*;
use crate::objects::labels;

fn object(name: &str, uid: &str, version: u64) -> ConfigMap {
    let mut object = ConfigMap::default();
    object.metadata.namespace = Some("shop".into());
    object.metadata.name = Some(name.into());
    object.metadata.uid = Some(uid.into());
    object.metadata.resource_version = Some(version.to_string());
    object.metadata.labels = Some([(labels::CLUSTER.to_owned(), "c".to_owned())].into());
    object
}

fn key() -> ClusterKey {
    ClusterKey {
        kind: ClusterKind::Valkey,
        namespace: "shop".into(),
        name: "c".into(),
    }
}

#[test]
fn a_watch_that_repeats_our_own_write_changes_nothing() {
    let cache = Cache::of_clusters();
    cache.put(object("a", "1", 7));
    assert!(
        cache
            .take(&Source::default(), Event::Apply(object("a", "1", 7)))
            .is_empty()
    );
    assert!(
        cache
            .take(&Source::default(), Event::Apply(object("a", "1", 6)))
            .is_empty(),
        "older still"
    );
    assert_eq!(
        cache.take(&Source::default(), Event::Apply(object("a", "1", 8))).len(),
        1
    );
}

#[test]
fn the_end_of_an_old_object_does_not_take_the_new_one_of_its_name() {
    let cache = Cache::of_clusters();
    cache.put(object("a", "2", 9));
    assert_eq!(
        cache.take(&Source::default(), Event::Delete(object("a", "1", 8))).len(),
        1
    );
    assert!(cache.get(&key(), "a").is_some());
}

#[test]
fn an_answer_that_comes_after_the_end_of_its_object_does_not_bring_it_back() {
    let cache = Cache::of_clusters();
    cache.put(object("a", "1", 7));
    cache.take(&Source::default(), Event::Delete(object("a", "1", 9)));
    let leaving = cache.put(object("a", "1", 8));
    assert_eq!(leaving.resource_version().as_deref(), Some("8"));
    assert!(cache.get(&key(), "a").is_none());
    cache.put(object("a", "2", 10));
    assert!(cache.get(&key(), "a").is_some(), "another of its name is not that one");
    for gone in 0..2 * TOMBSTONES {
        cache.gone(&object("b", &format!("b{gone}"), 11));
    }
    assert_eq!(cache.lock().tombstones.len(), TOMBSTONES);
}

#[test]
fn what_is_packed_comes_back_as_it_was_but_for_who_wrote_it() {
    let cache = Cache::of_clusters().packed();
    let mut one = object("a", "1", 7);
    one.data = Some([("valkey.conf".to_owned(), "appendonly yes".to_owned())].into());
    let light = one.clone();
    one.metadata.managed_fields = Some(Vec::new());
    assert_eq!(*cache.put(one), light);
    assert_eq!(*cache.get(&key(), "a").unwrap(), light);
    assert!(
        cache
            .take(&Source::default(), Event::Apply(object("a", "1", 7)))
            .is_empty()
    );
}

#[test]
fn a_new_list_tells_what_came_changed_and_went_meanwhile() {
    let cache = Cache::of_clusters();
    for object in [
        object("same", "1", 1),
        object("gone", "2", 2),
        object("changed", "3", 3),
    ] {
        cache.put(object);
    }
    cache.take(&Source::default(), Event::Init);
    for object in [object("same", "1", 1), object("changed", "3", 5), object("new", "4", 6)] {
        assert!(cache.take(&Source::default(), Event::InitApply(object)).is_empty());
    }
    cache.put(object("same", "1", 7));
    cache.take(&Source::default(), Event::InitApply(object("same", "1", 1)));
    assert_eq!(
        cache.list(&key()).len(),
        3,
        "the old list stands until the new one is whole"
    );
    let mut changed: Vec<String> = cache
        .take(&Source::default(), Event::InitDone)
        .iter()
        .map(|object| object.name_any())
        .collect();
    changed.sort();
    assert_eq!(changed, ["changed", "gone", "new"]);
    assert!(cache.is_ready());
    let same = cache.get(&key(), "same").unwrap();
    assert_eq!(
        same.resource_version().as_deref(),
        Some("7"),
        "our own write is newer than the list"
    );
}

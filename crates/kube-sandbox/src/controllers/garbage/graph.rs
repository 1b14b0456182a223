//! The graph of owners and dependents over every kind of the server: a plain value, updated by watches.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use crate::controllers::runtime::Served;

/// Keeps an owner until its blocking dependents are gone.
pub const FOREGROUND: &str = "foregroundDeletion";
/// Keeps an owner until its dependents have been let go.
pub const ORPHAN: &str = "orphan";

/// An object as far as garbage collection cares.
#[derive(Clone, Debug)]
pub struct Item {
    /// Its kind.
    pub served: Arc<Served>,
    /// Empty for cluster-wide ones.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// The version it was read at.
    pub version: Option<String>,
    /// Its owners.
    pub owners: Vec<OwnerReference>,
    /// Whether it is being deleted.
    pub leaving: bool,
    /// Its finalizers.
    pub finalizers: Vec<String>,
}

impl Item {
    /// From an object's metadata; `None` without a uid.
    pub fn new(served: &Arc<Served>, meta: &ObjectMeta) -> Option<Self> {
        Some(Self {
            served: served.clone(),
            namespace: meta.namespace.clone().unwrap_or_default(),
            name: meta.name.clone()?,
            uid: meta.uid.clone()?,
            version: meta.resource_version.clone(),
            owners: meta.owner_references.clone().unwrap_or_default(),
            leaving: meta.deletion_timestamp.is_some(),
            finalizers: meta.finalizers.clone().unwrap_or_default(),
        })
    }

    fn has(&self, finalizer: &str) -> bool {
        self.finalizers.iter().any(|known| known == finalizer)
    }

    /// Whether it waits for its dependents to go.
    pub fn waits_for_dependents(&self) -> bool {
        self.leaving && self.has(FOREGROUND)
    }

    /// Whether it waits for its dependents to be let go.
    pub fn orphans(&self) -> bool {
        self.leaving && self.has(ORPHAN)
    }
}

/// The graph.
#[derive(Default)]
pub struct Graph {
    items: HashMap<String, Item>,
    dependents: HashMap<String, BTreeSet<String>>,
}

impl Graph {
    /// One object.
    pub fn get(&self, uid: &str) -> Option<&Item> {
        self.items.get(uid)
    }

    /// What names an object as its owner.
    pub fn dependents(&self, uid: &str) -> Vec<&Item> {
        let uids = self.dependents.get(uid).into_iter().flatten();
        uids.filter_map(|uid| self.items.get(uid)).collect()
    }

    /// Adds or updates an object. Returns the uids of the objects to reconcile.
    #[must_use]
    pub fn put(&mut self, item: Item) -> Vec<String> {
        let uid = item.uid.clone();
        if let Some(old) = self.items.remove(&uid) {
            self.unlink(&old);
        }
        for owner in &item.owners {
            self.dependents
                .entry(owner.uid.clone())
                .or_default()
                .insert(uid.clone());
        }
        let mut affected = Vec::new();
        let unsure = |owner: &OwnerReference| self.items.get(&owner.uid).is_none_or(Item::waits_for_dependents);
        if item.orphans() || item.waits_for_dependents() || item.owners.iter().any(unsure) {
            affected.push(uid.clone());
        }
        if item.waits_for_dependents() {
            affected.extend(self.dependents.get(&uid).into_iter().flatten().cloned());
        }
        // An owner in the foreground may have waited for this reference to stop blocking.
        let owners = item
            .owners
            .iter()
            .filter(|owner| self.items.get(&owner.uid).is_some_and(Item::waits_for_dependents));
        affected.extend(owners.map(|owner| owner.uid.clone()));
        self.items.insert(uid, item);
        affected
    }

    /// Removes an object. Returns the uids of the objects to reconcile.
    #[must_use]
    pub fn remove(&mut self, uid: &str) -> Vec<String> {
        let Some(item) = self.items.remove(uid) else {
            return Vec::new();
        };
        self.unlink(&item);
        let orphans = self.dependents.get(uid).into_iter().flatten().cloned();
        let owners = item.owners.iter().map(|owner| owner.uid.clone());
        let waiting = owners.filter(|owner| self.items.get(owner).is_some_and(Item::waits_for_dependents));
        orphans.chain(waiting).collect()
    }

    fn unlink(&mut self, item: &Item) {
        for owner in &item.owners {
            if let Some(dependents) = self.dependents.get_mut(&owner.uid) {
                dependents.remove(&item.uid);
                if dependents.is_empty() {
                    self.dependents.remove(&owner.uid);
                }
            }
        }
    }

    /// Objects of a resource that a fresh list did not name.
    pub fn not_among(&self, group: &str, plural: &str, listed: &HashSet<String>) -> Vec<String> {
        let of_kind = |item: &&Item| {
            let resource = &item.served.resource;
            resource.group == group && resource.plural == plural
        };
        let missing = self
            .items
            .values()
            .filter(of_kind)
            .filter(|item| !listed.contains(&item.uid));
        missing.map(|item| item.uid.clone()).collect()
    }
}

/// What is known of one owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// It is there (or cannot be asked for, which must not cost anyone's life).
    Solid,
    /// It is there, and waits for its dependents to go.
    Waiting,
    /// It is not there, or another object has its name.
    Absent,
}

/// What becomes of an object with owners.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing.
    Keep,
    /// It lives on without the references to these uids.
    Release(Vec<String>),
    /// It goes, its own dependents first.
    DeleteForeground,
    /// It goes, its dependents after it.
    DeleteBackground,
    /// It goes, its dependents stay.
    DeleteOrphaning,
}

/// Judges an object by its owners. `parent` says whether it has dependents itself.
pub fn decide(item: &Item, owners: &[Owner], parent: bool) -> Action {
    if item.owners.is_empty() || (item.leaving && !item.waits_for_dependents()) {
        return Action::Keep;
    }
    let any = |kind: Owner| owners.contains(&kind);
    if any(Owner::Solid) {
        let others = item
            .owners
            .iter()
            .zip(owners)
            .filter(|(_, state)| **state != Owner::Solid);
        let others: Vec<String> = others.map(|(owner, _)| owner.uid.clone()).collect();
        return if others.is_empty() {
            Action::Keep
        } else {
            Action::Release(others)
        };
    }
    if item.leaving {
        return Action::Keep;
    }
    if any(Owner::Waiting) && parent {
        return Action::DeleteForeground;
    }
    if item.has(ORPHAN) {
        Action::DeleteOrphaning
    } else if item.has(FOREGROUND) {
        Action::DeleteForeground
    } else {
        Action::DeleteBackground
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::core::ApiResource;

    fn item(uid: &str, owners: &[&str], finalizers: &[&str], leaving: bool) -> Item {
        let resource = ApiResource {
            group: String::new(),
            version: "v1".into(),
            api_version: "v1".into(),
            kind: "Pod".into(),
            plural: "pods".into(),
        };
        let owner = |uid: &&str| OwnerReference {
            uid: (*uid).into(),
            ..OwnerReference::default()
        };
        Item {
            served: Arc::new(Served {
                resource,
                namespaced: true,
            }),
            namespace: "n".into(),
            name: uid.into(),
            uid: uid.into(),
            version: None,
            owners: owners.iter().map(owner).collect(),
            leaving,
            finalizers: finalizers.iter().map(|name| (*name).into()).collect(),
        }
    }

    #[test]
    fn an_object_is_reconciled_only_when_its_owner_is_unknown_or_being_deleted() {
        let mut graph = Graph::default();
        assert_eq!(graph.put(item("child", &["parent"], &[], false)), ["child"]);
        assert!(graph.put(item("parent", &[], &[], false)).is_empty());
        assert!(graph.put(item("child", &["parent"], &[], false)).is_empty());
        assert_eq!(graph.remove("parent"), ["child"]);
    }

    #[test]
    fn a_foreground_owner_wakes_its_dependents_and_is_woken_by_their_end() {
        let mut graph = Graph::default();
        let _ = graph.put(item("parent", &[], &[], false));
        let _ = graph.put(item("child", &["parent"], &[], false));
        assert_eq!(graph.put(item("parent", &[], &[FOREGROUND], true)), ["parent", "child"]);
        assert_eq!(graph.remove("child"), ["parent"]);
    }

    #[test]
    fn deletion_follows_the_owners() {
        use Owner::{Absent, Solid, Waiting};
        let one = item("i", &["a"], &[], false);
        let two = item("i", &["a", "b"], &[], false);
        let cases = [
            (&one, vec![Solid], false, Action::Keep),
            (&one, vec![Absent], false, Action::DeleteBackground),
            (&one, vec![Waiting], false, Action::DeleteBackground),
            (&one, vec![Waiting], true, Action::DeleteForeground),
            (&two, vec![Solid, Absent], false, Action::Release(vec!["b".into()])),
            (&two, vec![Waiting, Solid], true, Action::Release(vec!["a".into()])),
            (&two, vec![Absent, Absent], false, Action::DeleteBackground),
        ];
        for (item, owners, parent, expected) in cases {
            assert_eq!(decide(item, &owners, parent), expected, "{owners:?}");
        }
        let orphaning = item("i", &["a"], &[ORPHAN], false);
        assert_eq!(decide(&orphaning, &[Absent], true), Action::DeleteOrphaning);
        let leaving = item("i", &["a"], &[], true);
        assert_eq!(decide(&leaving, &[Absent], false), Action::Keep);
        assert_eq!(decide(&item("i", &[], &[], false), &[], false), Action::Keep);
    }

    #[test]
    fn an_object_missing_from_a_list_is_deleted() {
        let mut graph = Graph::default();
        let _ = graph.put(item("a", &[], &[], false));
        let _ = graph.put(item("b", &[], &[], false));
        assert_eq!(graph.not_among("", "pods", &HashSet::from(["a".into()])), ["b"]);
        assert!(graph.not_among("apps", "pods", &HashSet::new()).is_empty());
    }
}

//! Objects together with their schema: which of their parts are owned separately, what changed between two of them,
//! how two merge, and how parts are removed.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::misfit;
use super::set::{Element, Set};
use crate::schema::{Link, ListKind, Node, Type, builtin};

type Path = Vec<Element>;

static TEXT: LazyLock<Node> = LazyLock::new(|| Node {
    kind: Type::String,
    ..Node::default()
});

/// A place in a schema, or nowhere: below fields that no schema describes maps merge and lists are atomic.
#[derive(Clone, Copy, Debug)]
pub struct Typed<'a>(pub Option<&'a Node>);

/// How a value at a place is owned.
enum Form<'a> {
    /// As a whole.
    Leaf,
    /// Field by field.
    Map,
    /// Item by item.
    Set,
    /// Item by item, identified by keys.
    Keyed(&'a [Box<str>]),
}

impl<'a> Typed<'a> {
    /// The place of a field.
    #[must_use]
    pub fn field(self, name: &str) -> Self {
        let Some(node) = self.0 else { return self };
        if node.embedded {
            match name {
                "apiVersion" | "kind" => return Typed(Some(&TEXT)),
                "metadata" => {
                    return Typed(Some(builtin::definition(
                        "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
                    )));
                }
                _ => {}
            }
        }
        Typed(node.child(name))
    }

    /// The place of list items.
    #[must_use]
    pub fn item(self) -> Self {
        Typed(self.0.and_then(Node::item))
    }

    /// Whether the field is one of a known object, and no key of a free map.
    pub fn names(self, name: &str) -> bool {
        let Some(node) = self.0 else { return false };
        node.properties.contains_key(name) || (node.embedded && ["apiVersion", "kind", "metadata"].contains(&name))
    }

    fn form(self, value: &Value) -> Form<'a> {
        match (self.0, value) {
            (Some(node), Value::Object(_)) if node.atomic => Form::Leaf,
            (Some(node), Value::Object(_)) if matches!(node.kind, Type::Object | Type::Any) => Form::Map,
            (None, Value::Object(_)) => Form::Map,
            (Some(node), Value::Array(_)) => match &node.list {
                ListKind::Atomic => Form::Leaf,
                ListKind::Set => Form::Set,
                ListKind::Map(keys) => Form::Keyed(keys),
            },
            _ => Form::Leaf,
        }
    }

    /// The items of a list with what identifies them; of equal ones the last counts.
    fn items(self, list: &'a Value, keys: Option<&[Box<str>]>) -> Vec<(Element, &'a Value)> {
        let items = list.as_array().map(Vec::as_slice).unwrap_or_default();
        items.iter().map(|item| (self.element(item, keys), item)).collect()
    }

    fn element(self, item: &Value, keys: Option<&[Box<str>]>) -> Element {
        let Some(keys) = keys else {
            return Element::Value(item.to_string());
        };
        let default = |key: &str| {
            let child = self.item().0?.properties.get(key).map(Link::node)?;
            child.default.clone()
        };
        let present = keys.iter().filter_map(|key| {
            let value = item.get(key.as_ref()).filter(|v| !v.is_null()).cloned();
            Some((key.to_string(), value.or_else(|| default(key))?))
        });
        let map: BTreeMap<String, Value> = present.collect();
        Element::Key(Value::Object(map.into_iter().collect()).to_string())
    }

    /// All paths an applied configuration claims.
    pub fn field_set(self, value: &Value) -> Set {
        let mut set = Set::default();
        self.collect(value, &mut Vec::new(), &mut set);
        set
    }

    fn collect(self, value: &Value, path: &mut Path, set: &mut Set) {
        match self.form(value) {
            Form::Leaf => set.insert(path),
            Form::Map => {
                for (name, inner) in value.as_object().into_iter().flatten() {
                    path.push(Element::Field(name.clone()));
                    self.field(name).collect(inner, path, set);
                    let empty = inner.is_null() || inner.as_object().is_some_and(Map::is_empty);
                    if empty || !self.names(name) {
                        set.insert(path);
                    }
                    path.pop();
                }
            }
            Form::Set => self.collect_items(value, None, path, set),
            Form::Keyed(keys) => self.collect_items(value, Some(keys), path, set),
        }
    }

    fn collect_items(self, value: &Value, keys: Option<&[Box<str>]>, path: &mut Path, set: &mut Set) {
        for (element, item) in Typed(self.0).items(value, keys) {
            path.push(element);
            self.item().collect(item, path, set);
            set.insert(path);
            path.pop();
        }
    }

    /// Lists in an applied configuration that name an item twice.
    pub fn duplicates(self, value: &Value, path: &mut Path, found: &mut Vec<String>) {
        let keys = match self.form(value) {
            Form::Leaf => return,
            Form::Map => {
                for (name, inner) in value.as_object().into_iter().flatten() {
                    path.push(Element::Field(name.clone()));
                    self.field(name).duplicates(inner, path, found);
                    path.pop();
                }
                return;
            }
            Form::Set => None,
            Form::Keyed(keys) => Some(keys),
        };
        let items = Typed(self.0).items(value, keys);
        for (index, (element, item)) in items.iter().enumerate() {
            if items[..index].iter().any(|(other, _)| other == element) {
                found.push(format!("{}: duplicate entries for key {element}", shown(path)));
            }
            path.push(element.clone());
            self.item().duplicates(item, path, found);
            path.pop();
        }
    }

    /// What no schema declares, and values that are not of the declared type.
    pub fn undeclared(self, value: &Value, path: &mut Path, found: &mut Vec<String>) {
        let Some(node) = self.0 else { return };
        match value {
            Value::Object(map) if matches!(node.kind, Type::Object) => {
                let closed =
                    !node.preserve && node.additional.is_none() && (!node.properties.is_empty() || !node.atomic);
                for (name, inner) in map {
                    path.push(Element::Field(name.clone()));
                    if closed && !self.names(name) {
                        found.push(format!("{}: field not declared in schema", shown(path)));
                    } else {
                        self.field(name).undeclared(inner, path, found);
                    }
                    path.pop();
                }
            }
            Value::Array(items) if node.kind == Type::Array => {
                for (index, item) in items.iter().enumerate() {
                    path.push(match &node.list {
                        ListKind::Map(keys) => self.element(item, Some(keys)),
                        _ => Element::Index(index),
                    });
                    self.item().undeclared(item, path, found);
                    path.pop();
                }
            }
            _ => {}
        }
        if let Some(message) = misfit::misfit(node, value) {
            found.push(format!("{}: {message}", shown(path)));
        }
    }

    /// What an update from `old` to `new` touches.
    pub fn compare(self, old: &Value, new: &Value) -> Changes {
        let mut changes = Changes::default();
        self.differ(Some(old), Some(new), &mut Vec::new(), &mut changes);
        changes
    }

    fn differ(self, old: Option<&Value>, new: Option<&Value>, path: &mut Path, changes: &mut Changes) {
        let Some(sample) = new.filter(|v| !v.is_null()).or(old.filter(|v| !v.is_null())) else {
            return self.leaf(old, new, path, changes);
        };
        let same_form = |a: Option<&Value>, b: Option<&Value>| match (a, b) {
            (Some(a), Some(b)) => {
                a.is_null() || b.is_null() || a.is_object() == b.is_object() && a.is_array() == b.is_array()
            }
            _ => true,
        };
        let keys = match self.form(sample) {
            _ if !same_form(old, new) => return self.leaf(old, new, path, changes),
            Form::Leaf => return self.leaf(old, new, path, changes),
            Form::Map => {
                let fields = |v: Option<&Value>| {
                    v.and_then(Value::as_object)
                        .map(|m| m.keys().cloned().collect::<Vec<_>>())
                };
                let mut names = fields(old).unwrap_or_default();
                names.extend(fields(new).unwrap_or_default());
                names.sort();
                names.dedup();
                for name in names {
                    let (old, new) = (old.and_then(|v| v.get(&name)), new.and_then(|v| v.get(&name)));
                    path.push(Element::Field(name.clone()));
                    self.field(&name).differ(old, new, path, changes);
                    path.pop();
                }
                return changes.container(old, new, path);
            }
            Form::Set => None,
            Form::Keyed(keys) => Some(keys),
        };
        let of = |v: Option<&'_ Value>| -> BTreeMap<Element, Value> {
            v.map(|v| Typed(self.0).items_owned(v, keys)).unwrap_or_default()
        };
        let (before, after) = (of(old), of(new));
        let mut elements: Vec<&Element> = before.keys().chain(after.keys()).collect();
        elements.sort();
        elements.dedup();
        for element in elements {
            path.push(element.clone());
            self.item()
                .differ(before.get(element), after.get(element), path, changes);
            path.pop();
        }
        changes.container(old, new, path);
    }

    fn items_owned(self, list: &Value, keys: Option<&[Box<str>]>) -> BTreeMap<Element, Value> {
        let items = list.as_array().map(Vec::as_slice).unwrap_or_default();
        items
            .iter()
            .map(|item| (self.element(item, keys), item.clone()))
            .collect()
    }

    #[allow(clippy::unused_self)] // reads as one of a family with `differ`
    fn leaf(self, old: Option<&Value>, new: Option<&Value>, path: &Path, changes: &mut Changes) {
        match (old, new) {
            (None, Some(_)) => changes.added.insert(path),
            (Some(_), None) => changes.removed.insert(path),
            (Some(old), Some(new)) if old != new => changes.modified.insert(path),
            _ => {}
        }
    }

    /// Lays an applied configuration over the live object.
    pub fn merge(self, live: &Value, config: &Value) -> Value {
        match (self.form(config), live) {
            (Form::Map, Value::Object(old)) => {
                let mut merged = old.clone();
                for (name, inner) in config.as_object().into_iter().flatten() {
                    let value = match old.get(name) {
                        Some(before) => self.field(name).merge(before, inner),
                        None => inner.clone(),
                    };
                    merged.insert(name.clone(), value);
                }
                Value::Object(merged)
            }
            (Form::Set, Value::Array(_)) => self.merge_items(live, config, None),
            (Form::Keyed(keys), Value::Array(_)) => self.merge_items(live, config, Some(keys)),
            _ => config.clone(),
        }
    }

    /// The configuration's order holds for its items; what only the live list has keeps its place among them.
    fn merge_items(self, live: &Value, config: &Value, keys: Option<&[Box<str>]>) -> Value {
        let (left, right) = (Typed(self.0).items(live, keys), Typed(self.0).items(config, keys));
        let find = |list: &[(Element, &Value)], expected: &Element| list.iter().position(|(e, _)| e == expected);
        let mut shared = right
            .iter()
            .filter(|(e, _)| find(&left, e).is_some())
            .map(|(e, _)| e)
            .peekable();
        let mut taken: Vec<&Element> = Vec::new();
        let mut merged = Vec::new();
        let (mut l, mut r) = (0, 0);
        while l < left.len() || r < right.len() {
            if l < left.len() && r < right.len() {
                let element = &left[l].0;
                if *element == right[r].0 {
                    taken.push(element);
                    merged.push(self.item().merge(left[l].1, right[r].1));
                    (l, r) = (l + 1, r + 1);
                    shared.next();
                    continue;
                }
                if find(&right, element).is_some() && shared.peek().is_some_and(|next| *next != element) {
                    l += 1;
                    continue;
                }
            }
            if l < left.len() {
                let element = &left[l].0;
                if find(&right, element).is_none() {
                    merged.push(left[l].1.clone());
                    l += 1;
                    continue;
                }
                if taken.contains(&element) {
                    l += 1;
                }
            }
            if r < right.len() {
                let (element, item) = &right[r];
                taken.push(element);
                merged.push(match find(&left, element) {
                    Some(place) => self.item().merge(left[place].1, item),
                    None => (*item).clone(),
                });
                r += 1;
                if shared.peek().is_some_and(|next| *next == element) {
                    shared.next();
                }
            }
        }
        Value::Array(merged)
    }

    /// The value without the members of `gone`; nothing is left of a container that loses everything.
    pub fn without(self, value: &Value, gone: &Set) -> Option<Value> {
        match self.form(value) {
            Form::Leaf => Some(value.clone()),
            Form::Map => {
                let mut kept = Map::new();
                for (name, inner) in value.as_object().into_iter().flatten() {
                    let element = Element::Field(name.clone());
                    if gone.has(&element) {
                        continue;
                    }
                    // A value that loses everything is null for now: it is empty, but it was not removed.
                    let inner = match gone.below(&element) {
                        Some(below) => self.field(name).without(inner, below).unwrap_or(Value::Null),
                        None => inner.clone(),
                    };
                    kept.insert(name.clone(), inner);
                }
                (!kept.is_empty()).then_some(Value::Object(kept))
            }
            Form::Set => self.without_items(value, gone, None),
            Form::Keyed(keys) => self.without_items(value, gone, Some(keys)),
        }
    }

    fn without_items(self, value: &Value, gone: &Set, keys: Option<&[Box<str>]>) -> Option<Value> {
        let mut kept = Vec::new();
        for (element, item) in Typed(self.0).items(value, keys) {
            if gone.has(&element) {
                continue;
            }
            match gone.below(&element) {
                Some(below) => kept.extend(self.item().without(item, below)),
                None => kept.push(item.clone()),
            }
        }
        (!kept.is_empty()).then_some(Value::Array(kept))
    }
}

/// What differs between two objects.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// Only in the old one.
    pub removed: Set,
    /// In both, with other values.
    pub modified: Set,
    /// Only in the new one.
    pub added: Set,
}

impl Changes {
    fn container(&mut self, old: Option<&Value>, new: Option<&Value>, path: &Path) {
        match (old, new) {
            (None, Some(_)) => self.added.insert(path),
            (Some(_), None) => self.removed.insert(path),
            _ => {}
        }
    }

    /// Forgets what is below these fields.
    pub fn ignore(&mut self, fields: &[&str]) {
        self.removed.remove_below(fields);
        self.modified.remove_below(fields);
        self.added.remove_below(fields);
    }
}

fn shown(path: &Path) -> String {
    path.iter().map(ToString::to_string).collect()
}

//! Sets of field paths, as `managedFields` keeps them in `fieldsV1`.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

use super::typed::Typed;

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Element {
    /// `f:name`: a field or a map key.
    Field(String),
    /// `k:{…}`: an item of a keyed list, by its keys as JSON.
    Key(String),
    /// `v:…`: a member of a set, as JSON.
    Value(String),
    /// `i:0`: an item by place.
    Index(usize),
}

impl Element {
    fn parse(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once(':')?;
        match kind {
            "f" => Some(Self::Field(rest.to_owned())),
            "k" => Some(Self::Key(serde_json::from_str::<Value>(rest).ok()?.to_string())),
            "v" => Some(Self::Value(serde_json::from_str::<Value>(rest).ok()?.to_string())),
            "i" => rest.parse().ok().map(Self::Index),
            _ => None,
        }
    }

    fn encode(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Key(keys) => format!("k:{keys}"),
            Self::Value(value) => format!("v:{value}"),
            Self::Index(index) => format!("i:{index}"),
        }
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(keys) => {
                let keys: BTreeMap<String, Value> = serde_json::from_str(keys).unwrap_or_default();
                let shown: Vec<String> = keys.iter().map(|(k, v)| format!("{k}={v}")).collect();
                write!(f, "[{}]", shown.join(","))
            }
            Self::Value(value) => write!(f, "[={value}]"),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Entry {
    member: bool,
    below: Set,
}

/// A set of paths: a tree in which the marked nodes are members.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Set(BTreeMap<Element, Entry>);

impl Set {
    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.0.values().all(|entry| !entry.member && entry.below.is_empty())
    }

    /// Adds one path; the empty path is nothing.
    pub fn insert(&mut self, path: &[Element]) {
        if let Some((first, rest)) = path.split_first() {
            let entry = self.0.entry(first.clone()).or_default();
            if rest.is_empty() {
                entry.member = true;
            } else {
                entry.below.insert(rest);
            }
        }
    }

    /// Adds the path of these fields.
    pub fn insert_fields(&mut self, fields: &[&str]) {
        let path: Vec<Element> = fields.iter().map(|f| Element::Field((*f).to_owned())).collect();
        self.insert(&path);
    }

    /// Whether the step itself is a member.
    pub fn has(&self, element: &Element) -> bool {
        self.0.get(element).is_some_and(|entry| entry.member)
    }

    /// Whether the whole path is a member.
    pub fn contains(&self, path: &[Element]) -> bool {
        match path {
            [] => false,
            [last] => self.has(last),
            [first, rest @ ..] => self.0.get(first).is_some_and(|entry| entry.below.contains(rest)),
        }
    }

    /// What is below one step, where there is something.
    pub fn below(&self, element: &Element) -> Option<&Self> {
        self.0
            .get(element)
            .map(|entry| &entry.below)
            .filter(|below| !below.is_empty())
    }

    /// In either.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut all = self.clone();
        for (element, theirs) in &other.0 {
            let ours = all.0.entry(element.clone()).or_default();
            ours.member |= theirs.member;
            ours.below = ours.below.union(&theirs.below);
        }
        all
    }

    /// In both.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        self.combine(other, |ours, theirs| ours && theirs, Self::intersection)
    }

    /// In this one and not in the other.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        self.combine(other, |ours, theirs| ours && !theirs, Self::difference)
    }

    fn combine(&self, other: &Self, members: fn(bool, bool) -> bool, below: fn(&Self, &Self) -> Self) -> Self {
        let nothing = Entry::default();
        let combined = self.0.iter().map(|(element, ours)| {
            let theirs = other.0.get(element).unwrap_or(&nothing);
            let entry = Entry {
                member: members(ours.member, theirs.member),
                below: below(&ours.below, &theirs.below),
            };
            (element.clone(), entry)
        });
        Self(
            combined
                .filter(|(_, entry)| entry.member || !entry.below.is_empty())
                .collect(),
        )
    }

    /// Removes every path that starts with these fields, and the path itself.
    pub fn remove_below(&mut self, fields: &[&str]) {
        let Some((first, rest)) = fields.split_first() else {
            return;
        };
        let element = Element::Field((*first).to_owned());
        if rest.is_empty() {
            self.0.remove(&element);
        } else if let Some(entry) = self.0.get_mut(&element) {
            entry.below.remove_below(rest);
        }
    }

    /// The same set with every field of a known object that leads to a member made a member too.
    #[must_use]
    pub fn with_named_fields(&self, typed: Typed<'_>) -> Self {
        let all = self.0.iter().map(|(element, entry)| {
            let named = matches!(element, Element::Field(name) if typed.names(name)) && !entry.below.is_empty();
            let below = match element {
                Element::Field(name) => entry.below.with_named_fields(typed.field(name)),
                _ => entry.below.with_named_fields(typed.item()),
            };
            let member = entry.member || named;
            (element.clone(), Entry { member, below })
        });
        Self(all.collect())
    }

    /// Every path, members of a level before what is below them.
    pub fn paths(&self) -> Vec<Vec<Element>> {
        let mut all: Vec<Vec<Element>> = self
            .0
            .iter()
            .filter(|(_, e)| e.member)
            .map(|(e, _)| vec![e.clone()])
            .collect();
        for (element, entry) in &self.0 {
            for mut path in entry.below.paths() {
                path.insert(0, element.clone());
                all.push(path);
            }
        }
        all
    }

    /// Reads `fieldsV1`; nothing where it is not well formed.
    pub fn decode(fields: &Value) -> Option<Self> {
        let mut set = Self::default();
        for (key, inner) in fields.as_object()? {
            if key == "." {
                continue;
            }
            let below = Self::decode(inner)?;
            let inner = inner.as_object()?;
            let member = inner.is_empty() || inner.contains_key(".");
            set.0.insert(Element::parse(key)?, Entry { member, below });
        }
        Some(set)
    }

    /// Writes `fieldsV1`.
    pub fn encode(&self) -> Value {
        let entries = self.0.iter().map(|(element, entry)| {
            let mut below = match entry.below.encode() {
                Value::Object(below) => below,
                _ => Map::new(),
            };
            if entry.member && !below.is_empty() {
                below.insert(".".to_owned(), Value::Object(Map::new()));
            }
            (element.encode(), Value::Object(below))
        });
        Value::Object(entries.collect())
    }
}

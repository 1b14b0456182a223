//! The message of an aggregate: the messages of many objects, grouped, ordered and counted; at most three lines, and the
//! number of the rest.
//!
//! The cost is linear in the objects: members are collected in one pass, only the names that are shown are sorted, and
//! times are compared only where two messages are equal in everything else.

use std::cmp::{Ordering, Reverse};
use std::collections::{HashMap, HashSet};
use std::fmt::Write;

use super::{Input, Priority, lines};
use crate::plural::pluralize;

const SHOWN_MESSAGES: usize = 3;
const SHOWN_NAMES: usize = 3;

/// A message, of any number of objects. The same message with different priorities counts by the highest.
struct Text<'a> {
    message: &'a str,
    priority: Priority,
    prominent: bool,
    /// The groups of this text, one per kind: (kind, group).
    groups: Vec<(usize, usize)>,
}

/// The objects of one kind with the same message, in the order of the inputs.
struct Group {
    text: usize,
    members: Vec<u32>,
}

struct Crowd<'i, 'a> {
    inputs: &'i [Input<'a>],
    priorities: &'i [Priority],
    kinds: Vec<(&'a str, Vec<usize>)>,
    texts: Vec<Text<'a>>,
    groups: Vec<Group>,
    prominent: HashSet<&'a str>,
}

/// The message for the conditions of the top priority. With an issue or an unknown condition, both are reported and good
/// conditions are not; without any, good conditions without a message are left out.
pub(super) fn message(inputs: &[Input<'_>], priorities: &[Priority], top: Priority) -> String {
    let in_scope = |c: &Input<'_>, p: Priority| match top {
        Priority::Info => !c.message.is_empty(),
        _ => p != Priority::Info,
    };
    let mut crowd = Crowd::gather(inputs, priorities, in_scope);
    crowd.kinds.sort_by_key(|(kind, _)| *kind);
    let mut out = String::new();
    let mut room = SHOWN_MESSAGES;
    for (kind, groups) in std::mem::take(&mut crowd.kinds) {
        crowd.write_kind(&mut out, kind, groups, &mut room);
    }
    out
}

impl<'i, 'a> Crowd<'i, 'a> {
    fn gather(
        inputs: &'i [Input<'a>],
        priorities: &'i [Priority],
        in_scope: impl Fn(&Input<'_>, Priority) -> bool,
    ) -> Self {
        let mut crowd = Self {
            inputs,
            priorities,
            kinds: Vec::new(),
            texts: Vec::new(),
            groups: Vec::new(),
            prominent: HashSet::new(),
        };
        let mut by_text: HashMap<&str, usize> = HashMap::new();
        let mut by_kind: HashMap<&str, usize> = HashMap::new();
        let mut last_kind = ("", usize::MAX);
        for (at, (input, &p)) in inputs.iter().zip(priorities).enumerate() {
            if !in_scope(input, p) {
                continue;
            }
            if input.owner.kind != last_kind.0 || last_kind.1 == usize::MAX {
                let next = crowd.kinds.len();
                let kind = *by_kind.entry(input.owner.kind).or_insert(next);
                if kind == next {
                    crowd.kinds.push((input.owner.kind, Vec::new()));
                }
                last_kind = (input.owner.kind, kind);
            }
            let next = crowd.texts.len();
            let text = *by_text.entry(input.message).or_insert(next);
            if text == next {
                crowd.texts.push(Text {
                    message: input.message,
                    priority: p,
                    prominent: false,
                    groups: Vec::new(),
                });
            }
            crowd.add(at, last_kind.1, text, p);
        }
        crowd
    }

    fn add(&mut self, at: usize, kind: usize, text: usize, priority: Priority) {
        let owner = &self.inputs[at].owner;
        let entry = &mut self.texts[text];
        entry.priority = entry.priority.min(priority);
        if owner.prominent {
            entry.prominent = true;
            self.prominent.insert(owner.name);
        }
        let group = if let Some((_, group)) = entry.groups.iter().find(|(k, _)| *k == kind) {
            *group
        } else {
            let group = self.groups.len();
            entry.groups.push((kind, group));
            self.groups.push(Group {
                text,
                members: Vec::new(),
            });
            self.kinds[kind].1.push(group);
            group
        };
        // An object count beyond u32 would not fit in memory as inputs.
        self.groups[group].members.push(u32::try_from(at).unwrap_or(u32::MAX));
    }

    fn write_kind(&mut self, out: &mut String, kind: &str, mut groups: Vec<usize>, room: &mut usize) {
        let plural = pluralize(kind);
        self.order(&mut groups, *room);
        let shown = groups.len().min(*room);
        for &group in &groups[..shown] {
            self.write_group(out, kind, &plural, group);
        }
        *room -= shown;
        let mut others = [0usize; 3];
        for &group in &groups[shown..] {
            let group = &self.groups[group];
            others[self.texts[group.text].priority as usize] += group.members.len();
        }
        let endings = ["with other issues", "with status unknown", "with additional info"];
        for (count, ending) in others.into_iter().zip(endings) {
            if count > 0 {
                new_line(out);
                let noun = if count == 1 { kind } else { &plural };
                let _ = write!(out, "And {count} {noun} {ending}");
            }
        }
    }

    /// Prominent first, then by priority, then the more objects the earlier, then by the names in the order in which
    /// their conditions turned. Only as many places are settled as there is room for.
    fn order(&mut self, groups: &mut [usize], room: usize) {
        let key = |g: &Group| {
            let text = &self.texts[g.text];
            (Reverse(text.prominent), text.priority, Reverse(g.members.len()))
        };
        groups.sort_by_key(|g| key(&self.groups[*g]));
        let mut ties: Vec<std::ops::Range<usize>> = Vec::new();
        let mut start = 0;
        while start < groups.len().min(room) {
            let same = key(&self.groups[groups[start]]);
            let end = start
                + groups[start..]
                    .iter()
                    .take_while(|g| key(&self.groups[**g]) == same)
                    .count();
            if end - start > 1 {
                ties.push(start..end);
            }
            start = end;
        }
        for tie in ties {
            for &group in &groups[tie.clone()] {
                self.order_members(group);
            }
            groups[tie].sort_by(|a, b| self.compare_names(*a, *b));
        }
    }

    /// Issues before unknowns, the oldest first.
    fn order_members(&mut self, group: usize) {
        let (inputs, priorities) = (self.inputs, self.priorities);
        let members = &mut self.groups[group].members;
        members.sort_by_key(|at| (priorities[*at as usize], inputs[*at as usize].since));
    }

    fn compare_names(&self, a: usize, b: usize) -> Ordering {
        let names = |group: usize| {
            let names = self.groups[group]
                .members
                .iter()
                .map(|at| self.inputs[*at as usize].owner.name);
            names
                .enumerate()
                .flat_map(|(i, name)| (i > 0).then_some(b',').into_iter().chain(name.bytes()))
        };
        let message = |group: usize| self.texts[self.groups[group].text].message;
        names(a).cmp(names(b)).then_with(|| message(a).cmp(message(b)))
    }

    fn write_group(&self, out: &mut String, kind: &str, plural: &str, group: usize) {
        let group = &self.groups[group];
        let mut names: Vec<&str> = group
            .members
            .iter()
            .map(|at| self.inputs[*at as usize].owner.name)
            .collect();
        let total = names.len();
        let by_rank = |a: &&str, b: &&str| {
            let behind = |name: &str| !self.prominent.is_empty() && !self.prominent.contains(name);
            behind(a).cmp(&behind(b)).then_with(|| a.cmp(b))
        };
        if total > SHOWN_NAMES {
            names.select_nth_unstable_by(SHOWN_NAMES - 1, by_rank);
            names.truncate(SHOWN_NAMES);
        }
        names.sort_by(by_rank);
        new_line(out);
        let noun = if total == 1 { kind } else { plural };
        let _ = write!(out, "* {noun} {}", names.join(", "));
        if total > SHOWN_NAMES {
            let _ = write!(out, ", ... ({} more)", total - SHOWN_NAMES);
        }
        out.push(':');
        lines::indented(out, self.texts[group.text].message);
    }
}

fn new_line(out: &mut String) {
    if !out.is_empty() {
        out.push('\n');
    }
}

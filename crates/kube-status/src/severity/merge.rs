//! The merge of generation 1: conditions are grouped by status and severity, and the weightiest group speaks.

use std::borrow::Cow;

use jiff::Timestamp;

use super::{Condition, Draft, ORDER, Rules, Severity, set_in};
use crate::merge::Owner;
use crate::{Change, ConditionedMut, Polarity, Status};

/// One condition on its way into a merge.
#[derive(Clone, Copy)]
pub(super) struct Local<'o> {
    pub owner: Owner<'o>,
    pub condition: &'o Condition,
    pub polarity: Polarity,
}

/// How the merged reason and message are written.
#[derive(Default)]
pub(super) struct Wording<'w> {
    /// The types that come first for reason and message.
    pub order: &'w [Cow<'w, str>],
    /// Whether the reason names the object it came from.
    pub source: bool,
    /// The number of steps to count against, where steps are counted.
    pub steps: Option<usize>,
}

/// Conditions of one status and severity; the status is that of a positive type.
struct Group<'o> {
    status: Status,
    severity: Option<Severity>,
    members: Vec<Local<'o>>,
}

impl Group<'_> {
    /// Errors, warnings, infos, then good news, which here beats the unknown; a bad condition without a severity is
    /// last of all.
    fn weight(&self) -> u8 {
        match (self.status, self.severity) {
            (Status::False, Some(Severity::Error)) => 0,
            (Status::False, Some(Severity::Warning)) => 1,
            (Status::False, Some(Severity::Info)) => 2,
            (Status::True, _) => 3,
            (Status::Unknown, _) => 4,
            (Status::False, None) => 5,
        }
    }
}

/// The merged condition under the target type, or nothing where there was nothing to merge.
pub(super) fn merge<'o>(
    inputs: impl IntoIterator<Item = Local<'o>>,
    target: &str,
    rules: Rules,
    wording: &Wording<'_>,
) -> Option<Draft<'static>> {
    let groups = group(inputs, rules);
    let top = groups.iter().min_by_key(|g| g.weight())?;
    let target = Cow::Owned(target.to_owned());
    if top.status == Status::True {
        return Some(Draft::bare(target, Status::True));
    }
    let first = first(&top.members, wording.order)?;
    let reason = if wording.source {
        with_source(first)
    } else {
        first.condition.reason.clone()
    };
    let message = match wording.steps {
        Some(total) => format!("{} of {total} completed", completed(&groups)),
        None => first.condition.message.clone(),
    };
    Some(Draft {
        severity: top.severity.filter(|_| top.status == Status::False),
        reason: reason.into(),
        message: message.into(),
        ..Draft::bare(target, top.status)
    })
}

fn group<'o>(inputs: impl IntoIterator<Item = Local<'o>>, rules: Rules) -> Vec<Group<'o>> {
    let mut groups: Vec<Group<'o>> = Vec::new();
    for local in inputs {
        let status = match (local.polarity, local.condition.status) {
            (Polarity::Negative, Status::True) => Status::False,
            (Polarity::Negative, Status::False) => Status::True,
            (_, status) => status,
        };
        let severity = match (status, local.condition.severity) {
            (Status::False, None) if rules.missing_severity_is_error => Some(Severity::Error),
            (_, severity) => severity,
        };
        match groups.iter_mut().find(|g| g.status == status && g.severity == severity) {
            Some(group) => group.members.push(local),
            None => groups.push(Group {
                status,
                severity,
                members: vec![local],
            }),
        }
    }
    groups
}

/// The condition that gives reason and message: the caller's order first, else by type and then by the object's name.
fn first<'g, 'o>(members: &'g [Local<'o>], order: &[Cow<'_, str>]) -> Option<&'g Local<'o>> {
    let compare = |a: &&Local<'_>, b: &&Local<'_>| {
        let types = ORDER.compare(&a.condition.type_, &b.condition.type_);
        types.then_with(|| a.owner.name.cmp(b.owner.name))
    };
    let preferred = order.iter().find_map(|type_| {
        let named = members.iter().filter(|m| m.condition.type_ == *type_);
        named.min_by(compare)
    });
    preferred.or_else(|| members.iter().min_by(compare))
}

fn with_source(local: &Local<'_>) -> String {
    let reason = &local.condition.reason;
    if reason.contains('@') {
        return reason.clone();
    }
    format!("{reason} @ {}/{}", local.owner.kind, local.owner.name)
}

/// Good conditions without a severity.
fn completed(groups: &[Group<'_>]) -> usize {
    let good = groups.iter().find(|g| g.status == Status::True && g.severity.is_none());
    good.map_or(0, |g| g.members.len())
}

/// Sets the result of a merge or a mirror, if there is one.
pub(super) fn put<T: ConditionedMut<Condition> + ?Sized>(
    object: &mut T,
    draft: Option<Draft<'_>>,
    now: Timestamp,
    rules: Rules,
) -> Change {
    draft.map_or(Change::Nothing, |draft| {
        set_in(object.conditions_mut(), draft, now, rules)
    })
}

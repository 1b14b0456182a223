//! Which rule comes first. The table is executed as written here and quoted in docs/how-it-works.md.

use super::{Plan, View};

/// A rule for a cluster that was complete once. The first one that has something to do makes the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Lost primaries, replicas and majorities.
    Heal,
    /// Pods that cannot run.
    Unstick,
    /// Slots without an owner.
    Cover,
    /// A version that the data cannot go back to.
    RejectDowngrade,
    /// Slots move to or from shards.
    Scale,
    /// Members that are no longer desired leave.
    Remove,
    /// The rest of a spec that cannot be carried out.
    RejectSpec,
    /// Members are replaced one by one.
    Roll,
    /// A failover that a user requested.
    RequestedFailover,
    /// Primaries leave a cordoned node.
    Evacuate,
    /// Configuration, users, certificates, volumes.
    Configure,
    /// Unknown nodes in the cluster map.
    UnknownNodes,
}

/// The order of the rules.
pub const PRIORITIES: [Rule; 12] = [
    Rule::Heal,
    Rule::Unstick,
    Rule::Cover,
    Rule::RejectDowngrade,
    Rule::Scale,
    Rule::Remove,
    Rule::RejectSpec,
    Rule::Roll,
    Rule::RequestedFailover,
    Rule::Evacuate,
    Rule::Configure,
    Rule::UnknownNodes,
];

impl Rule {
    /// Whether nothing else is done in parallel with it, not even configuration.
    pub(super) fn comes_first(self) -> bool {
        matches!(self, Self::Heal | Self::Unstick | Self::Cover)
    }

    /// What it does, as quoted in the docs.
    pub fn purpose(self) -> &'static str {
        match self {
            Self::Heal => "lost primaries, replicas and majorities",
            Self::Unstick => "pods that cannot run",
            Self::Cover => "slots without an owner",
            Self::RejectDowngrade => "a server version that the data cannot go back to is rejected",
            Self::Scale => "slots move to new shards or leave shards that are no longer desired",
            Self::Remove => "members that are no longer desired, and own no slots, leave",
            Self::RejectSpec => "the rest of a spec that cannot be carried out is rejected",
            Self::Roll => "members are replaced one by one, replicas first",
            Self::RequestedFailover => "a failover that a user requested",
            Self::Evacuate => "primaries leave a cordoned node",
            Self::Configure => "configuration, users, certificates and volumes",
            Self::UnknownNodes => "unknown nodes in the cluster map are reported",
        }
    }
}

impl View<'_> {
    pub(super) fn apply(&self, rule: Rule) -> Option<Plan> {
        match rule {
            Rule::Heal => self.heal(),
            Rule::Unstick => self.stuck(),
            Rule::Cover => self.uncovered(),
            Rule::RejectDowngrade => self.reject_downgrade(),
            Rule::Scale => self.scale(),
            Rule::Remove => self.remove(),
            Rule::RejectSpec => self.reject_spec(),
            Rule::Roll => self.roll(),
            Rule::RequestedFailover => self.requested_failover(),
            Rule::Evacuate => self.evacuate(),
            Rule::Configure => self.configure(),
            Rule::UnknownNodes => self.foreign(),
        }
    }
}

//! What counts as a defect, and how soon status must report it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use crate::facts::{Facts, Role};
use crate::object::Desired;
use crate::reach::Unreached;
use crate::slots::SLOTS;

/// The result of one observation of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Observation {
    /// It has not been queried yet.
    NotQueried,
    /// It replied.
    Replied(Facts),
    /// It refused the connection, closed it, or sent an error reply; holds the message.
    Failed(String),
    /// It accepted the connection and did not reply.
    Timeout,
    /// Nothing is known of it, for a reason that is not the member's.
    Unreached(Unreached),
}

/// A defect that forbids Ready=True. Members are named by their pods.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Defect {
    /// There are fewer members than the spec asks for.
    MembersMissing,
    /// There are more members than the spec asks for.
    MembersLeft,
    /// A member accepts the connection and does not reply.
    NotResponding(String),
    /// A member refuses connections or sends an error reply.
    Failing(String),
    /// A member reports that its cluster is not ok.
    Down(String),
    /// The number of primaries that own slots is not the desired one.
    Shards,
    /// A slot has no owner that responds.
    Uncovered,
    /// A member's link to its primary is down, or a full synchronization is in progress.
    Unlinked(String),
    /// A primary has fewer replicas that follow it than the spec asks for.
    ReplicasMissing(String),
    /// A slot is being migrated.
    Moving,
    /// A canary's slot accepts no write, although a server responds.
    NoWrites,
    /// A canary's slot accepts no write because no server responds.
    OwnerNotResponding,
}

impl Defect {
    /// The deadline for status: 1 s where a connection or Kubernetes reports the defect, 2 s where the only evidence
    /// is a missing reply.
    pub fn deadline(&self) -> Duration {
        match self {
            Self::NotResponding(_) | Self::OwnerNotResponding => Duration::from_secs(2),
            _ => Duration::from_secs(1),
        }
    }
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MembersMissing => f.write_str("members are missing"),
            Self::MembersLeft => f.write_str("members are left over"),
            Self::NotResponding(pod) => write!(f, "{pod} does not respond"),
            Self::Failing(pod) => write!(f, "{pod} refuses connections or replies with an error"),
            Self::Down(pod) => write!(f, "{pod} reports that the cluster is down"),
            Self::Shards => f.write_str("the number of shards is not the desired one"),
            Self::Uncovered => f.write_str("slots have no owner that responds"),
            Self::Unlinked(pod) => write!(f, "{pod} is not linked to its primary"),
            Self::ReplicasMissing(pod) => write!(f, "{pod} has too few replicas"),
            Self::Moving => f.write_str("slots are being moved"),
            Self::NoWrites => f.write_str("a slot accepts no write"),
            Self::OwnerNotResponding => f.write_str("a slot's owner does not respond"),
        }
    }
}

/// All defects of members that should form a cluster.
pub(crate) fn defects(desired: Desired, members: &BTreeMap<String, Observation>) -> BTreeSet<Defect> {
    let mut wrong = BTreeSet::new();
    let want = desired.shards * (1 + desired.replicas);
    if members.len() < want {
        wrong.insert(Defect::MembersMissing);
    }
    if members.len() > want {
        wrong.insert(Defect::MembersLeft);
    }
    let mut replies: Vec<(&String, &Facts)> = Vec::new();
    for (pod, observed) in members {
        match observed {
            Observation::NotQueried => _ = wrong.insert(Defect::MembersMissing),
            Observation::Timeout => _ = wrong.insert(Defect::NotResponding(pod.clone())),
            Observation::Failed(_) => _ = wrong.insert(Defect::Failing(pod.clone())),
            // Nothing is known of it: neither healthy nor defective.
            Observation::Unreached(_) => {}
            Observation::Replied(facts) => replies.push((pod, facts)),
        }
    }
    // What a member that does not respond would have reported is not a further defect: the missing reply has its own
    // deadline, and nothing else can reveal it sooner.
    let all_respond = replies.len() == members.len();
    let owners = replies.iter().filter(|(_, facts)| facts.owns()).count();
    if owners > desired.shards || (all_respond && owners != desired.shards) {
        wrong.insert(Defect::Shards);
    }
    let claimed = |(_, facts): &(&String, &Facts)| if facts.owns() { count(facts) } else { 0 };
    // A hibernated cluster has no servers and owns no slots.
    let wants_slots = desired.shards > 0;
    if wants_slots && all_respond && replies.iter().map(claimed).sum::<usize>() != usize::from(SLOTS) {
        wrong.insert(Defect::Uncovered);
    }
    for (pod, facts) in &replies {
        if !facts.ok {
            wrong.insert(Defect::Down((*pod).clone()));
        }
        if facts.moving {
            wrong.insert(Defect::Moving);
        }
        match &facts.role {
            Role::Replica { linked: false, .. } => _ = wrong.insert(Defect::Unlinked((*pod).clone())),
            Role::Replica { .. } => {}
            Role::Primary if facts.slots.is_empty() => {}
            Role::Primary => {
                let follows = |other: &Facts| matches!(&other.role, Role::Replica { of, .. } if *of == facts.id);
                let followers = replies.iter().filter(|(_, other)| follows(other)).count();
                if all_respond && followers < desired.replicas {
                    wrong.insert(Defect::ReplicasMissing((*pod).clone()));
                }
            }
        }
    }
    wrong
}

fn count(facts: &Facts) -> usize {
    facts.slots.iter().map(ExactSizeIterator::len).sum()
}

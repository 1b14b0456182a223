//! What counts as a defect, and how soon status must report it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::facts::{Facts, Role};
use crate::object::Wanted;
use crate::reach::Unreached;
use crate::slots::SLOTS;

/// The result of one observation of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// It has not been queried yet.
    Unasked,
    /// It replied.
    Answers(Facts),
    /// It refused the connection, closed it, or sent an error reply; holds the message.
    Refuses(String),
    /// It accepted the connection and did not reply.
    Silent,
    /// Nothing is known of it, for a reason that is not the member's.
    Unreached(Unreached),
}

/// A defect that forbids Ready=True. Members are named by their pods.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Defect {
    /// There are fewer members than the spec asks for.
    MembersMissing,
    /// There are more members than the spec asks for.
    MembersLeft,
    /// A member accepts the connection and does not reply.
    Silent(String),
    /// A member refuses connections or sends an error reply.
    Refuses(String),
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
    NoAnswer,
}

impl Defect {
    /// The deadline for status: 1 s where a connection or Kubernetes reports the defect, 2 s where the only evidence
    /// is a missing reply.
    pub fn deadline(&self) -> Duration {
        match self {
            Self::Silent(_) | Self::NoAnswer => Duration::from_secs(2),
            _ => Duration::from_secs(1),
        }
    }
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MembersMissing => f.write_str("members are missing"),
            Self::MembersLeft => f.write_str("members are left over"),
            Self::Silent(pod) => write!(f, "{pod} is silent"),
            Self::Refuses(pod) => write!(f, "{pod} refuses"),
            Self::Down(pod) => write!(f, "{pod} says that the cluster is down"),
            Self::Shards => f.write_str("the number of shards is not the wanted one"),
            Self::Uncovered => f.write_str("slots have no owner that answers"),
            Self::Unlinked(pod) => write!(f, "{pod} is not linked to its primary"),
            Self::ReplicasMissing(pod) => write!(f, "{pod} has too few replicas"),
            Self::Moving => f.write_str("slots are being moved"),
            Self::NoWrites => f.write_str("a slot takes no write"),
            Self::NoAnswer => f.write_str("a slot's owner does not answer"),
        }
    }
}

/// All defects of members that should form a cluster.
pub(crate) fn defects(wanted: Wanted, members: &BTreeMap<String, Seen>) -> BTreeSet<Defect> {
    let mut wrong = BTreeSet::new();
    let want = wanted.shards * (1 + wanted.replicas);
    if members.len() < want {
        wrong.insert(Defect::MembersMissing);
    }
    if members.len() > want {
        wrong.insert(Defect::MembersLeft);
    }
    let mut answers: Vec<(&String, &Facts)> = Vec::new();
    for (pod, seen) in members {
        match seen {
            Seen::Unasked => _ = wrong.insert(Defect::MembersMissing),
            Seen::Silent => _ = wrong.insert(Defect::Silent(pod.clone())),
            Seen::Refuses(_) => _ = wrong.insert(Defect::Refuses(pod.clone())),
            // Nothing is known of it: neither healthy nor defective.
            Seen::Unreached(_) => {}
            Seen::Answers(facts) => answers.push((pod, facts)),
        }
    }
    // What a member that does not respond would have reported is not a further defect: the missing reply has its own
    // deadline, and nothing else can reveal it sooner.
    let all_answer = answers.len() == members.len();
    let owners = answers.iter().filter(|(_, facts)| facts.owns()).count();
    if owners > wanted.shards || (all_answer && owners != wanted.shards) {
        wrong.insert(Defect::Shards);
    }
    let claimed = |(_, facts): &(&String, &Facts)| if facts.owns() { count(facts) } else { 0 };
    // A hibernated cluster has no servers and owns no slots.
    let wants_slots = wanted.shards > 0;
    if wants_slots && all_answer && answers.iter().map(claimed).sum::<usize>() != usize::from(SLOTS) {
        wrong.insert(Defect::Uncovered);
    }
    for (pod, facts) in &answers {
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
                let followers = answers.iter().filter(|(_, other)| follows(other)).count();
                if all_answer && followers < wanted.replicas {
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

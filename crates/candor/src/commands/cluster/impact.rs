//! What clients notice: which slots are served, according to the last status. Pure.

use candor_api::valkey::status::MemberRole;
use jiff::Timestamp;
use kube_status::Status;
use kube_status::tree::since;
use valkey_admin::SlotSet;

use super::{Cluster, Member, ShardSlots};

/// Reasons of a primary that is not ready and still serves its slots.
const STILL_SERVES: [&str; 2] = ["Leaving", "Joining"];
/// With more ranges than this, slots are counted instead of listed.
const LISTED: usize = 3;

/// Which slots are served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Impact {
    /// All of them.
    AllServed,
    /// None: the cluster is being created.
    NotYet,
    /// Some slots have no primary that serves.
    Down {
        /// These slots.
        slots: SlotSet,
        /// Since when, if it is known.
        since: Option<Timestamp>,
    },
    /// All slots are served, and the primary of some rejects writes because its disk is full.
    NoWrites {
        /// These slots.
        slots: SlotSet,
    },
    /// It is not known.
    Unknown,
}

impl Impact {
    /// The impact according to the members of a cluster, or to its conditions where nothing is known of its members.
    pub fn of(cluster: &Cluster) -> Self {
        if cluster.ready() == Some(Status::Unknown) {
            return Self::Unknown;
        }
        let owning: Vec<&ShardSlots> = cluster.slots.iter().filter(|shard| !shard.slots.is_empty()).collect();
        if owning.is_empty() {
            return Self::NotYet;
        }
        let mut down = SlotSet::new();
        let mut began = None;
        for shard in owning {
            let members = || cluster.members.iter().filter(|one| one.shard == Some(shard.shard));
            if members().all(|one| one.ready.is_none()) {
                return Self::by_conditions(cluster);
            }
            if members().any(serves) {
                continue;
            }
            down = down.union(&shard.slots.parse().unwrap_or_default());
            let primary = members().find(|one| one.role == Some(MemberRole::Primary));
            let at = primary.and_then(|one| one.since);
            began = [began, at].into_iter().flatten().min();
        }
        let all = cluster
            .condition("SlotsAssigned")
            .is_none_or(|one| Status::of(one) != Status::False);
        match down.is_empty() {
            true if all => read_only(cluster).map_or(Self::AllServed, |slots| Self::NoWrites { slots }),
            true => Self::by_conditions(cluster),
            false => Self::Down {
                slots: down,
                since: began,
            },
        }
    }

    fn by_conditions(cluster: &Cluster) -> Self {
        match cluster.ready() {
            Some(Status::True) => Self::AllServed,
            _ => Self::Unknown,
        }
    }

    /// As the beginning of a sentence.
    pub fn text(&self, now: Timestamp) -> String {
        match self {
            Self::AllServed => "All 16384 slots served".to_owned(),
            Self::NotYet => "No slots served yet".to_owned(),
            Self::Unknown => "Not known whether all slots are served".to_owned(),
            Self::NoWrites { slots } => format!("{} take no writes", named(slots)),
            Self::Down { slots, since: at } => {
                let long = at.map_or(String::new(), |at| format!(" for {}", since(at, now)));
                format!("{} down{long}", named(slots))
            }
        }
    }
}

/// Whether a member is a primary that serves its slots.
fn serves(member: &Member) -> bool {
    let is_primary = member.role == Some(MemberRole::Primary);
    is_primary && (member.ready != Some(false) || STILL_SERVES.contains(&member.reason.as_str()))
}

/// The slots of the primary that rejects writes, as `StorageReady` names it.
fn read_only(cluster: &Cluster) -> Option<SlotSet> {
    let storage = cluster.condition("StorageReady")?;
    let message = storage.message.strip_prefix("member ")?;
    let (member, error) = message.split_once(": ")?;
    let member = cluster.members.iter().find(|one| one.id.to_string() == member)?;
    let rejects = error.starts_with("MISCONF") && member.role == Some(MemberRole::Primary);
    let shard = cluster.slots.iter().find(|shard| Some(shard.shard) == member.shard)?;
    rejects.then(|| shard.slots.parse().ok()).flatten()
}

fn named(slots: &SlotSet) -> String {
    let text = slots.to_string();
    let ranges = text.split(',').count();
    match slots.len() {
        16384 => "All 16384 slots".to_owned(),
        1 => format!("Slot {text}"),
        count if ranges > LISTED => format!("{count} of 16384 slots"),
        _ => format!("Slots {}", text.replace(',', ", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_listed_while_the_list_is_short() {
        let text = |slots: &str| {
            let slots = slots.parse().unwrap();
            let now: Timestamp = "2026-02-05T10:00:03Z".parse().unwrap();
            let since = Some("2026-02-05T10:00:00Z".parse().unwrap());
            Impact::Down { slots, since }.text(now)
        };
        assert_eq!(text("0-5460"), "Slots 0-5460 down for 3s");
        assert_eq!(text("7"), "Slot 7 down for 3s");
        assert_eq!(text("0-16383"), "All 16384 slots down for 3s");
        assert_eq!(text("0-9,20-29"), "Slots 0-9, 20-29 down for 3s");
        assert_eq!(text("1,3,5,7"), "4 of 16384 slots down for 3s");
    }
}

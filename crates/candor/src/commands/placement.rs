//! Where primaries run, as `candor status` and `candor failover --spread` look at it. Pure.

use candor_api::valkey::status::MemberRole;
use candor_engine::placement::{self, Placed, Role, Spread};

use super::cluster::MemberId;
use super::status::shards::{Member, Shard};

/// The failovers that spread primaries over zones.
pub fn spread(shards: &[Shard]) -> Vec<Spread<MemberId>> {
    placement::spread(&placed(shards))
}

/// The primaries of each zone in words, if they could be spread better.
pub fn piled_up(shards: &[Shard]) -> Option<String> {
    placement::piled_up(&placed(shards)).map(|zones| format!("primaries are piled up: {zones}"))
}

/// Members of shards with their zones. Only replicas that are in sync can be promoted.
fn placed(shards: &[Shard]) -> Vec<Placed<MemberId>> {
    let role = |one: &Member| match one.role {
        Some(MemberRole::Primary) => Role::Primary,
        Some(MemberRole::Replica) if one.ready == Some(true) && one.link_up != Some(false) => Role::Candidate,
        _ => Role::Other,
    };
    let of_shard = |shard: u32, one: &Member| Placed {
        shard,
        member: one.member,
        zone: one.zone.clone(),
        role: role(one),
    };
    let numbered = shards.iter().filter_map(|shard| Some((shard.shard?, &shard.members)));
    numbered
        .flat_map(|(shard, members)| members.iter().map(move |one| of_shard(shard, one)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::output::Screen;
    use crate::commands::snapshot::Snapshot;
    use crate::commands::status::fixtures;
    use crate::commands::status::screen::Report;
    use crate::commands::status::shards::shards;

    /// Three shards, the primaries of which run in one zone.
    fn place(all: &mut [Shard]) {
        for (shard, (primary, replica)) in all.iter_mut().zip([("a", "b"), ("a", "c"), ("a", "b")]) {
            primary.clone_into(&mut shard.members[0].zone);
            replica.clone_into(&mut shard.members[1].zone);
        }
    }

    #[test]
    fn status_of_a_ready_cluster_has_the_command_that_spreads_them_unbroken() {
        let zones = |snapshot: &Snapshot, width: Option<usize>| {
            let mut report = Report::of(snapshot);
            place(&mut report.shards);
            let screen = Screen {
                width,
                colour: false,
                wide: false,
            };
            let drawn = report.draw(&screen);
            let of_zones = drawn.lines().skip_while(|line| !line.starts_with("Zones"));
            let lines: Vec<String> = of_zones
                .take_while(|line| !line.is_empty())
                .map(str::to_owned)
                .collect();
            lines
        };
        let (healthy, command) = (fixtures::healthy(), "candor failover shop -n prod --spread");
        let piled = "Zones      primaries are piled up: 3 in a, 0 in b, 0 in c; spread them:";
        assert_eq!(
            zones(&healthy, Some(100)),
            [piled.to_owned(), format!("{:11}{command}", "")]
        );
        assert_eq!(zones(&healthy, None), [format!("{piled} {command}")]);
        assert_eq!(zones(&fixtures::primary_lost(), None), [""; 0], "other things first");
    }

    #[test]
    fn a_replica_that_is_not_in_sync_is_not_promoted() {
        let mut all = shards(&fixtures::healthy());
        place(&mut all);
        let to = |all: &[Shard]| spread(all).iter().map(|one| one.to.to_string()).collect::<Vec<_>>();
        assert_eq!(to(&all), ["0-1", "1-1"]);
        all[0].members[1].ready = Some(false);
        assert_eq!(to(&all), ["1-1", "2-1"]);
        all[1].members[1].link_up = Some(false);
        assert_eq!(to(&all), ["2-1"]);
        assert_eq!(
            piled_up(&all).unwrap(),
            "primaries are piled up: 3 in a, 0 in b, 0 in c"
        );
    }
}

//! Shards and their members, with what the servers themselves report.

use candor_api::valkey::status::MemberRole;
use kube_status::tree::Tone;
use maud::{Markup, html};

use super::marks::{class, sign};
use crate::commands::output::{bytes, count, some};
use crate::commands::status::screen::Report;
use crate::commands::status::shards::{self, Member, Shard};

/// The columns after the first.
const COLUMNS: [&str; 9] = [
    "Role", "State", "Sync", "Keys", "Memory", "Ops/s", "Zone", "Node", "Pod",
];

/// The table.
pub fn section(report: &Report) -> Markup {
    let members: usize = report.shards.iter().map(|shard| shard.members.len()).sum();
    let asked = report
        .shards
        .iter()
        .flat_map(|shard| &shard.members)
        .filter(|one| one.asked)
        .count();
    html! {
        section id="members" class="card" aria-labelledby="h-members" {
            h2 id="h-members" { "Shards and members" }
            p class="hint" { "Live figures of " (asked) " of " (some(i64::try_from(members).unwrap_or(0), "member")) "." }
            @if members > 0 {
                table role="table" aria-labelledby="h-members" {
                    thead role="rowgroup" {
                        tr role="row" {
                            th role="columnheader" scope="col" { "Member" }
                            @for column in COLUMNS {
                                th role="columnheader" scope="col" class=[is_number(column).then_some("number")] { (column) }
                            }
                        }
                    }
                    @for shard in &report.shards { (of_shard(shard)) }
                }
            }
        }
    }
}

fn is_number(column: &str) -> bool {
    matches!(column, "Keys" | "Memory" | "Ops/s")
}

fn of_shard(shard: &Shard) -> Markup {
    let id = shard.shard.map_or("none".to_owned(), |number| number.to_string());
    let slots = i64::try_from(shard.slot_count).unwrap_or(0);
    html! {
        tbody id={ "shard-" (id) } role="rowgroup" {
            tr role="row" class="shard" {
                th role="rowheader" scope="rowgroup" colspan="10" {
                    @match shard.shard {
                        Some(number) => {
                            "Shard " (number)
                            span class="hint" { (some(slots, "slot")) }
                        }
                        None => "Without a shard",
                    }
                }
            }
            @for member in &shard.members { (row(member)) }
        }
    }
}

fn row(member: &Member) -> Markup {
    let state = shards::state(member);
    let tone = state.tone.unwrap_or(Tone::Unknown);
    let (sync, sync_tone) = sync(member);
    html! {
        tr role="row" id={ "m-" (member.member) } {
            th role="rowheader" scope="row" { (member.member) }
            td role="cell" data-label="Role" {
                @let role = shards::role(member);
                @if member.role == Some(MemberRole::Primary) { strong { (role) } } @else { (role) }
                @if let Some(of) = member.replica_of { " of " (of) }
            }
            td role="cell" data-label="State" class=(class(tone)) {
                span class="sign" aria-hidden="true" { (sign(tone)) } (state.text)
            }
            td role="cell" data-label="Sync" class=[sync_tone.map(class)] { (sync) }
            td role="cell" data-label="Keys" class="number" { (shards::keys(member)) }
            td role="cell" data-label="Memory" class="number" {
                (shards::memory(member))
                @if let (Some(used), Some(most)) = (member.memory, member.memory_limit) {
                    meter min="0" max=(most) high=(most / 10 * 9) value=(used) aria-label="Used memory" { (bytes(used)) }
                }
            }
            td role="cell" data-label="Ops/s" class="number" { (member.operations.map(count).unwrap_or_default()) }
            td role="cell" data-label="Zone" { (member.zone) }
            td role="cell" data-label="Node" { (member.node) }
            td role="cell" data-label="Pod" { (member.pod) }
        }
    }
}

/// How far a replica is behind its primary.
fn sync(member: &Member) -> (String, Option<Tone>) {
    match (member.role, member.link_up, member.lag_bytes) {
        (Some(MemberRole::Replica), Some(false), _) => ("✕ no link".to_owned(), Some(Tone::Error)),
        (Some(MemberRole::Replica), Some(true), Some(0)) => ("in sync".to_owned(), None),
        (Some(MemberRole::Replica), _, Some(lag)) => (format!("{} behind", bytes(lag)), None),
        _ => (String::new(), None),
    }
}

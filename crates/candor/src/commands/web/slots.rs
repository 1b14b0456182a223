//! The slot map as a picture: which shard owns which of the 16,384 slots.

use maud::{Markup, html};
use valkey_admin::{SlotRange, SlotSet};

use crate::commands::cluster::Cluster;
use crate::commands::output::some;

/// Shards take turns with this many colours; the lane and its label name the shard in any case.
const COLOURS: u32 = 8;

/// One lane for each shard, and one for all of them.
pub fn section(cluster: &Cluster) -> Markup {
    let mut owners: Vec<(u32, SlotSet)> = cluster
        .slots
        .iter()
        .map(|one| (one.shard, one.slots.parse().unwrap_or_default()))
        .collect();
    owners.sort_by_key(|(shard, _)| *shard);
    let served = owners.iter().fold(SlotSet::new(), |all, (_, slots)| all.union(slots));
    let missing = SlotSet::full().difference(&served);
    let data: Vec<String> = owners.iter().map(|(shard, slots)| format!("{shard}:{slots}")).collect();
    html! {
        section id="slots" class="card" aria-labelledby="h-slots" data-owners=(data.join(";")) {
            h2 id="h-slots" { "Slots" }
            p class="hint" {
                @if owners.is_empty() { "No shard owns slots yet." }
                @else if missing.is_empty() { "All 16,384 slots have an owner." }
                @else { strong class="bad" { "✕ " (some(n(missing.len()), "slot")) " without an owner: " (missing) } }
            }
            @if !owners.is_empty() {
                div class="lanes" role="list" {
                    div class="lane all" role="listitem" {
                        span class="label" { "All" }
                        svg viewBox="0 0 16384 10" preserveAspectRatio="none" role="img" aria-label="All slots by owner" {
                            rect class="empty" width="16384" height="10" {}
                            @for range in missing.ranges() {
                                rect class="none" x=(range.first().get()) width=(range.count()) height="10" {}
                            }
                            @for (shard, slots) in &owners { @for range in slots.ranges() { (bar(*shard, range)) } }
                        }
                        span class="amount" { (served.len()) }
                    }
                    @for (shard, slots) in &owners {
                        div class="lane" role="listitem" id={ "lane-" (shard) } data-shard=(shard) {
                            span class="label" { "Shard " (shard) }
                            svg viewBox="0 0 16384 10" preserveAspectRatio="none" role="img"
                                aria-label={ "Shard " (shard) " owns " (words(slots)) } {
                                rect class="empty" width="16384" height="10" {}
                                @for range in slots.ranges() { (bar(*shard, range)) }
                            }
                            span class="amount" { (slots.len()) }
                        }
                    }
                    div class="lane scale" aria-hidden="true" {
                        span class="label" {}
                        span class="ends" { span { "0" } span { "4096" } span { "8192" } span { "12288" } span { "16383" } }
                        span class="amount" {}
                    }
                }
            }
        }
    }
}

fn bar(shard: u32, range: SlotRange) -> Markup {
    html! { rect class={ "s" (shard % COLOURS) } x=(range.first().get()) width=(range.count()) height="10" {} }
}

/// The first ranges, in words.
fn words(slots: &SlotSet) -> String {
    const SHOWN: usize = 4;
    let ranges = slots.ranges();
    let first: Vec<String> = ranges.iter().take(SHOWN).map(ToString::to_string).collect();
    let more = match ranges.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {}", some(n(more), "more range")),
    };
    match slots.len() {
        0 => "no slots".to_owned(),
        count => format!("{}: {}{more}", some(n(count), "slot"), first.join(", ")),
    }
}

fn n(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

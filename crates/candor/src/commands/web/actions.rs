//! The preview of another number of shards, and the changes that a user can request.

use maud::{Markup, html};

use super::cluster::PageOptions;
use crate::commands::cluster::{Cluster, Kind, Object};
use crate::commands::output::{bytes, count, some};
use crate::commands::plan::{self, Preview};
use crate::commands::snapshot::Snapshot;

/// The most shards that can be previewed.
pub const MOST: i32 = 1000;

/// The preview: a form, and the plan for the number in it.
pub fn plan(snapshot: &Snapshot, options: &PageOptions) -> Markup {
    let cluster = snapshot.object.view();
    let unit = cluster.kind.unit();
    let desired = options.shards.unwrap_or(cluster.shards + 1);
    html! {
        section id="plan" class="card" aria-labelledby="h-plan" {
            h2 id="h-plan" { "If it had another number of shards" }
            form method="get" action="#plan" class="inline" {
                label for="shards" { (some(2, unit).trim_start_matches("2 ")) }
                input id="shards" name="shards" type="number" min="1" max=(MOST) value=(desired) required;
                button { "Preview" }
            }
            @if let Some(shards) = options.shards {
                @let after = with_shards(&snapshot.object, shards);
                @let preview = plan::preview(Some(&snapshot.object), &after, &plan::weights(snapshot));
                p { (plan::heading(Some(&cluster), &after.view())) }
                @if let Some(first) = plan::first(&cluster) { p class="banner info" { (first) } }
                (steps(&preview))
                @if options.token.is_some() && preview.blocked.is_none() && shards != cluster.shards {
                    form method="get" action={ "/c/" (cluster.namespace) "/" (cluster.kind.short()) "/" (cluster.name) "/confirm" } {
                        input type="hidden" name="action" value="scale";
                        input type="hidden" name="shards" value=(shards);
                        button class="primary" { "Scale to " (some(shards.into(), unit)) "…" }
                    }
                }
            }
        }
    }
}

/// The cluster with another number of shards. Nothing is written.
pub fn with_shards(object: &Object, shards: i32) -> Object {
    let mut after = object.clone();
    match &mut after {
        Object::Valkey(after) => after.spec.shards = shards,
        Object::Redkey(after) => after.spec.primaries = shards,
    }
    after
}

/// The steps of a plan.
pub fn steps(preview: &Preview) -> Markup {
    html! {
        @if preview.steps.is_empty() && preview.blocked.is_none() { p { "Nothing needs to be done." } }
        ol class="steps" {
            @for step in &preview.steps {
                li {
                    (step.what)
                    @if !step.moves.is_empty() {
                        ul {
                            @for one in &step.moves {
                                li {
                                    "shard " (one.from) " to shard " (one.to) ": "
                                    (some(i64::try_from(one.count).unwrap_or(0), "slot")) ", about " (count(one.keys)) " keys"
                                    @if let Some(size) = one.bytes { ", about " (bytes(size)) }
                                }
                            }
                        }
                    }
                }
            }
        }
        @if !preview.steps.is_empty() { p class="total" { (preview.sum.text()) } }
        @for risk in &preview.risks { p class="banner warn" { "Risk: " (risk) "." } }
        @if let Some(why) = &preview.blocked {
            p class="banner bad" {
                (if preview.steps.is_empty() { "It would not start: " } else { "Then it would not continue: " }) (why)
            }
        }
    }
}

/// The changes that a user can request; each is confirmed on a page of its own.
pub fn section(cluster: &Cluster) -> Markup {
    let path = format!(
        "/c/{}/{}/{}/confirm",
        cluster.namespace,
        cluster.kind.short(),
        cluster.name
    );
    let pause = if cluster.paused {
        ("resume", "Resume…")
    } else {
        ("pause", "Pause…")
    };
    html! {
        section id="actions" class="card" aria-labelledby="h-actions" {
            h2 id="h-actions" { "Change it" }
            div class="buttons" {
                form method="get" action=(path) { button name="action" value=(pause.0) { (pause.1) } }
                @if cluster.kind == Kind::ValkeyCluster {
                    form method="get" action=(path) { button name="action" value="restart" { "Restart members…" } }
                }
                form method="get" action=(path) class="inline" {
                    input type="hidden" name="action" value="failover";
                    label for="shard" { "Fail over shard" }
                    select id="shard" name="shard" {
                        @for one in &cluster.slots { option value=(one.shard) { (one.shard) } }
                    }
                    button { "Fail over…" }
                }
            }
        }
    }
}

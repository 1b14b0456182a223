//! Plans as text, and that they complete.

use std::collections::BTreeMap;

use candor_api::ValkeyCluster;
use candor_engine::model::ShardIndex;
use serde_json::json;

use super::valkey;
use super::{Preview, Weights};
use crate::commands::output::Screen;
use crate::commands::status::fixtures;

fn draw(preview: &Preview) -> String {
    preview.draw(&Screen {
        width: Some(100),
        colour: false,
        wide: false,
    })
}

fn with(change: impl FnOnce(&mut ValkeyCluster)) -> Preview {
    let now = fixtures::valkey(&mut fixtures::healthy()).clone();
    let mut desired = now.clone();
    change(&mut desired);
    let weights: Weights = (0..3).map(|shard| (ShardIndex(shard), 12_582_912)).collect();
    valkey::preview(Some(&now), &desired, &weights)
}

#[test]
fn more_shards() {
    insta::assert_snapshot!(draw(&with(|cluster| cluster.spec.shards = 4)));
}

#[test]
fn fewer_shards() {
    insta::assert_snapshot!(draw(&with(|cluster| cluster.spec.shards = 2)));
}

#[test]
fn more_and_fewer_replicas() {
    insta::assert_snapshot!("more_replicas", draw(&with(|cluster| cluster.spec.replicas = Some(2))));
    insta::assert_snapshot!("fewer_replicas", draw(&with(|cluster| cluster.spec.replicas = Some(0))));
}

#[test]
fn a_new_image_is_a_roll_with_failovers() {
    let preview = with(|cluster| cluster.spec.image = Some("valkey/valkey:9.2".to_owned()));
    assert_eq!(
        (preview.sum.restarts, preview.sum.failovers, preview.blocked.clone()),
        (6, 3, None),
        "{}",
        draw(&preview)
    );
    insta::assert_snapshot!(draw(&preview));
}

#[test]
fn a_live_setting_restarts_nobody() {
    let preview = with(|cluster| {
        let (key, value) = ("maxmemory-policy".to_owned(), "allkeys-lru".to_owned());
        cluster.spec.config.insert(key, value);
    });
    assert_eq!(
        (preview.sum.restarts, preview.blocked.clone()),
        (0, None),
        "{}",
        draw(&preview)
    );
    insta::assert_snapshot!(draw(&preview));
}

#[test]
fn a_cluster_from_nothing() {
    let desired = json!({"apiVersion": "valkey.io/v1alpha1", "kind": "ValkeyCluster", "metadata": {"name": "new"},
        "spec": {"shards": 3, "replicas": 1}});
    let preview = valkey::preview(None, &serde_json::from_value(desired).unwrap(), &BTreeMap::new());
    assert_eq!(
        (preview.sum.created, preview.blocked.clone()),
        (6, None),
        "{}",
        draw(&preview)
    );
    insta::assert_snapshot!(draw(&preview));
}

#[test]
fn a_paused_cluster_and_an_older_image_go_nowhere() {
    let paused = with(|cluster| {
        cluster.spec.shards = 4;
        cluster.spec.paused = Some(true);
    });
    assert!(paused.steps.is_empty() && paused.blocked.is_some(), "{paused:?}");
    let older = with(|cluster| cluster.spec.image = Some("valkey/valkey:8.0".to_owned()));
    assert!(older.blocked.is_some() && older.sum.restarts == 0, "{older:?}");
}

#[test]
fn a_cluster_of_any_size_is_answered_soon() {
    let begun = std::time::Instant::now();
    let preview = with(|cluster| {
        cluster.spec.shards = 1000;
        cluster.spec.replicas = Some(16);
    });
    let words = preview.blocked.unwrap_or_default();
    assert!(words.contains("17000 members are too many"), "{words}");
    assert!(
        begun.elapsed() < std::time::Duration::from_secs(20),
        "{:?}",
        begun.elapsed()
    );
}

#[test]
fn an_unchanged_spec_needs_no_steps() {
    assert_eq!(draw(&with(|_| {})), "Nothing needs to be done.\n");
}

#[test]
fn every_scale_comes_to_its_end_with_the_fewest_moves() {
    for shards in 1..=8 {
        for replicas in 0..=2 {
            let preview = with(|cluster| {
                cluster.spec.shards = shards;
                cluster.spec.replicas = Some(replicas);
            });
            assert_eq!(
                preview.blocked,
                None,
                "{shards} shards, {replicas} replicas: {}",
                draw(&preview)
            );
            let moved = match shards {
                1 => 16384 - 5461,
                2 => 5461,
                3 => 0,
                more => {
                    let more = usize::try_from(more).unwrap();
                    16384 - 3 * (16384 / more) - (16384 % more).min(3)
                }
            };
            assert!(
                preview.sum.slots.abs_diff(moved) <= 1,
                "{shards}: {} instead of {moved}",
                preview.sum.slots
            );
        }
    }
}

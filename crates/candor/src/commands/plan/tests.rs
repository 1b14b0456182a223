//! Plans as text, and that they complete.

use std::collections::BTreeMap;

use candor_api::{RedkeyCluster, ValkeyCluster};
use candor_engine::model::ShardIndex;
use serde_json::json;

use super::{Preview, Weights, redkey, valkey};
use crate::commands::output::Screen;
use crate::commands::status::{fixtures, redkey_fixtures};

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
    let message = preview.blocked.unwrap_or_default();
    assert!(message.contains("17000 members are too many"), "{message}");
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

/// A `RedkeyCluster` of three primaries with a replica each, and what a change of it would do.
fn with_redkey(slow: bool, replicas: i32, change: impl FnOnce(&mut RedkeyCluster)) -> Preview {
    let mut now = redkey_fixtures::redkey(&mut redkey_fixtures::ready()).clone();
    now.spec.purge_keys_on_rebalance = !slow;
    now.spec.replicas_per_primary = replicas;
    let mut desired = now.clone();
    change(&mut desired);
    let weights: Weights = (0..3).map(|shard| (ShardIndex(shard), 12_582_912)).collect();
    redkey::preview(Some(&now), &desired, &weights)
}

#[test]
fn a_redkeycluster_is_previewed_by_its_documented_operations() {
    let scale = |primaries: i32| move |cluster: &mut RedkeyCluster| cluster.spec.primaries = primaries;
    let image = |cluster: &mut RedkeyCluster| cluster.spec.image = Some("redis:8.2".to_owned());
    let keep = |cluster: &mut RedkeyCluster| {
        cluster.spec.primaries = 0;
        (cluster.spec.ephemeral, cluster.spec.storage) = (false, Some("1Gi".to_owned()));
    };
    let both = |cluster: &mut RedkeyCluster| {
        cluster.spec.primaries = 4;
        cluster.spec.config = Some("maxmemory 100mb".to_owned());
    };
    for (name, preview) in [
        ("redkey_slow_up", with_redkey(true, 0, scale(5))),
        ("redkey_slow_down", with_redkey(true, 1, scale(2))),
        ("redkey_fast_up", with_redkey(false, 0, scale(5))),
        ("redkey_slow_upgrade", with_redkey(true, 0, image)),
        ("redkey_slow_upgrade_with_replicas", with_redkey(true, 1, image)),
        ("redkey_fast_upgrade", with_redkey(false, 0, image)),
        ("redkey_hibernate_ephemeral", with_redkey(true, 0, scale(0))),
        ("redkey_hibernate_with_volumes", with_redkey(true, 0, keep)),
        ("redkey_scale_and_upgrade", with_redkey(true, 0, both)),
    ] {
        insta::assert_snapshot!(name, draw(&preview));
    }
    let slow = with_redkey(true, 0, scale(5));
    assert_eq!(
        (slow.sum.created, slow.sum.slots, slow.sum.purged_keys),
        (2, 6553, None)
    );
    let fast = with_redkey(false, 0, scale(5));
    assert_eq!((fast.sum.slots, fast.sum.purged_keys), (0, Some(3600)));
}

#[test]
fn a_new_a_paused_and_a_wrong_redkeycluster() {
    let new = RedkeyCluster::new("new", serde_json::from_value(json!({"primaries": 3})).unwrap());
    let preview = redkey::preview(None, &new, &BTreeMap::new());
    assert_eq!((preview.sum.created, preview.blocked.clone()), (3, None));
    insta::assert_snapshot!("redkey_new", draw(&preview));
    let paused = with_redkey(true, 0, |cluster| {
        cluster.spec.primaries = 4;
        cluster.spec.paused = true;
    });
    assert!(paused.steps.is_empty(), "{paused:?}");
    assert_eq!(
        paused.blocked.as_deref(),
        Some("cache is paused; resume it with: candor resume cache")
    );
    let wrong = with_redkey(true, 0, |cluster| cluster.spec.config = Some("save \"60".to_owned()));
    assert!(wrong.blocked.unwrap_or_default().starts_with("spec.config: "));
    assert_eq!(
        draw(&with_redkey(true, 0, |cluster| {
            cluster.spec.config = Some("# a comment".to_owned());
        })),
        "Nothing needs to be done.\n",
        "a comment upgrades nothing"
    );
}

//! Properties of the screen, and the list of clusters.

use unicode_width::UnicodeWidthStr;

use super::listing::Listing;
use super::screen::Report;
use super::{fixtures, furnished, redkey_fixtures};
use crate::commands::cluster::Object;
use crate::commands::cluster::fetch::Listed;
use crate::commands::liveness::Liveness;
use crate::commands::output::Screen;
use crate::commands::snapshot::Snapshot;

fn screen(width: Option<usize>, colour: bool) -> Screen {
    Screen {
        width,
        colour,
        wide: false,
    }
}

#[test]
fn the_answer_fits_into_a_terminal_of_any_width() {
    for (name, snapshot) in fixtures::states() {
        for columns in [20, 40, 80, 120, 200] {
            let text = Report::of(&snapshot).draw(&screen(Some(columns), false));
            for line in text.lines() {
                // A command, a name or an address that is longer than the terminal is not broken, so that it can be copied.
                if line.starts_with("  kubectl ") || line.starts_with("  candor ") {
                    continue;
                }
                let word = line.split_whitespace().map(UnicodeWidthStr::width).max().unwrap_or(0);
                assert!(line.width() <= columns.max(word + 2), "{name} at {columns}: {line:?}");
            }
        }
    }
}

#[test]
fn one_line_per_cluster() {
    let mut states = fixtures::states();
    for ((_, snapshot), name) in states.iter_mut().zip([
        "shop", "new", "growing", "hurt", "stuck", "emptied", "resting", "leaving", "unseen", "orphan", "asked",
    ]) {
        fixtures::valkey(snapshot).metadata.name = Some(name.to_owned());
    }
    let mut nodes = Vec::new();
    for (_, snapshot) in &states {
        nodes.extend(snapshot.nodes.iter().cloned().map(|mut node| {
            node.spec.cluster = snapshot.object.name();
            node
        }));
    }
    let clusters: Vec<Object> = states.into_iter().map(|(_, snapshot)| snapshot.object).collect();
    let listed = |objects: &[Object]| Listed {
        objects: objects.to_vec(),
        nodes: nodes.clone(),
        ..Listed::default()
    };
    let alive = fixtures::healthy().operator;
    let now = fixtures::NOW.parse().unwrap();
    let listing = Listing::of(&listed(&clusters), &alive, now);
    for width in [20, 80, 120, 200] {
        insta::assert_snapshot!(
            format!("listing_{width}"),
            listing.draw(width > 100, &screen(Some(width), false))
        );
    }
    insta::assert_snapshot!(
        "listing_colour",
        crate::commands::screens::legible(&listing.draw(true, &screen(Some(120), true)))
    );
    let gone: Liveness = fixtures::no_operator().operator;
    insta::assert_snapshot!(
        "listing_no_operator",
        Listing::of(&listed(&clusters[..1]), &gone, now).draw(false, &screen(Some(80), false))
    );
    insta::assert_snapshot!(
        "listing_none",
        Listing::of(&listed(&[]), &alive, now).draw(false, &screen(Some(80), false))
    );
}

#[test]
fn certificate_users_and_volumes_are_shown() {
    let report = Report::of(&furnished::furnished());
    insta::assert_snapshot!("furnished", report.draw(&screen(Some(120), false)));
    let wide = Screen {
        wide: true,
        ..screen(Some(220), false)
    };
    insta::assert_snapshot!("furnished_wide", report.with_tree(true).draw(&wide));
}

#[test]
fn programs_read_the_same_as_people() {
    let report = Report::of(&fixtures::moving());
    insta::assert_json_snapshot!("moving_json", report);
}

#[test]
fn both_kinds_stand_in_one_list_and_what_is_missing_is_said() {
    let named = |snapshot: &mut Snapshot, name: &str| {
        redkey_fixtures::redkey(snapshot).metadata.name = Some(name.to_owned());
        snapshot.object.clone()
    };
    let mut objects = vec![
        fixtures::healthy().object,
        fixtures::primary_lost().object,
        named(&mut redkey_fixtures::ready(), "shop"),
    ];
    for ((state, mut snapshot), name) in redkey_fixtures::states().into_iter().zip([
        "cache", "new", "growing", "purging", "rolling", "broken", "asleep", "paused", "hurt", "unlisted", "foreign",
    ]) {
        assert!(state.starts_with("redkey_"));
        objects.push(named(&mut snapshot, name));
    }
    let listed = Listed {
        objects,
        nodes: fixtures::primary_lost().nodes,
        pods: Vec::new(),
        notes: vec!["RedkeyCluster prod/odd is not shown: it cannot be decoded: missing field `primaries`".to_owned()],
    };
    let listing = Listing::of(&listed, &fixtures::healthy().operator, fixtures::NOW.parse().unwrap());
    for width in [80, 120, 200] {
        insta::assert_snapshot!(
            format!("listing_both_{width}"),
            listing.draw(false, &screen(Some(width), false))
        );
    }
    insta::assert_json_snapshot!("listing_both_json", listing.clusters[..2]);
}

#[test]
fn programs_read_the_stage_of_a_redkeycluster() {
    insta::assert_json_snapshot!("upgrading_json", Report::of(&redkey_fixtures::upgrading()));
}

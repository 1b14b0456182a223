//! Every screen, in every state, at every width.

use unicode_width::UnicodeWidthStr;

use super::fixtures;
use super::listing::Listing;
use super::screen::Report;
use crate::commands::liveness::Liveness;
use crate::commands::output::Screen;
use crate::commands::picture::Picture;

fn states() -> Vec<(&'static str, Picture)> {
    vec![
        ("healthy", fixtures::healthy()),
        ("creating", fixtures::creating()),
        ("moving", fixtures::moving()),
        ("primary_lost", fixtures::primary_lost()),
        ("failed", fixtures::failed()),
        ("no_operator", fixtures::no_operator()),
        ("unseen", fixtures::unseen()),
    ]
}

fn screen(width: Option<usize>, colour: bool) -> Screen {
    Screen {
        width,
        colour,
        wide: false,
    }
}

#[test]
fn every_state_at_every_width() {
    for (name, picture) in states() {
        let report = Report::of(&picture);
        for width in [80, 120, 200] {
            insta::assert_snapshot!(format!("{name}_{width}"), report.draw(&screen(Some(width), false)));
        }
    }
}

#[test]
fn colour_is_added_and_nothing_else_changes() {
    for (name, picture) in states() {
        let report = Report::of(&picture);
        let coloured = report.draw(&screen(Some(80), true));
        assert!(coloured.contains("\u{1b}["), "{name} has no colour");
        let mut plain = String::new();
        let mut rest = coloured.as_str();
        while let Some((before, after)) = rest.split_once("\u{1b}[") {
            plain.push_str(before);
            rest = after.split_once('m').unwrap().1;
        }
        plain.push_str(rest);
        assert_eq!(plain, report.draw(&screen(Some(80), false)), "{name}");
    }
}

#[test]
fn the_answer_fits_into_a_terminal_of_any_width() {
    for (name, picture) in states() {
        for columns in [20, 40, 80, 120, 200] {
            let text = Report::of(&picture).draw(&screen(Some(columns), false));
            for line in text.lines() {
                // A name or an address that is longer than the terminal stays whole: it can be copied.
                let word = line.split_whitespace().map(UnicodeWidthStr::width).max().unwrap_or(0);
                assert!(line.width() <= columns.max(word + 2), "{name} at {columns}: {line:?}");
            }
        }
    }
}

#[test]
fn one_line_per_cluster() {
    let mut clusters: Vec<_> = states().into_iter().map(|(_, picture)| picture.cluster).collect();
    for (cluster, name) in clusters
        .iter_mut()
        .zip(["shop", "new", "growing", "hurt", "stuck", "other", "unseen"])
    {
        cluster.metadata.name = Some(name.to_owned());
    }
    let alive = fixtures::healthy().operator;
    let now = fixtures::NOW.parse().unwrap();
    let listing = Listing::of(&clusters, &alive, now);
    insta::assert_snapshot!("listing_80", listing.draw(false, &screen(Some(80), false)));
    insta::assert_snapshot!("listing_200", listing.draw(true, &screen(Some(200), false)));
    let gone: Liveness = fixtures::no_operator().operator;
    insta::assert_snapshot!(
        "listing_no_operator",
        Listing::of(&clusters[..1], &gone, now).draw(false, &screen(Some(80), false))
    );
    insta::assert_snapshot!(
        "listing_none",
        Listing::of(&[], &alive, now).draw(false, &screen(Some(80), false))
    );
}

#[test]
fn programs_read_the_same_as_people() {
    let report = Report::of(&fixtures::moving());
    insta::assert_json_snapshot!("moving_json", report);
}

//! How keys and updates change the screen.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};

use super::model::{Model, Press};
use super::screen::draw;
use super::source::Update;
use crate::commands::status::fixtures;

fn shown(model: &Model, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, model)).unwrap();
    terminal.backend().to_string()
}

fn model() -> Model {
    Model::new(fixtures::healthy(), false)
}

fn later(model: &mut Model, seconds: i64) {
    model.now += jiff::SignedDuration::from_secs(seconds);
}

#[test]
fn keys_mean_what_the_last_line_says() {
    let key = |code, modifiers| Press::of(&Event::Key(KeyEvent::new(code, modifiers)));
    let none = KeyModifiers::NONE;
    let table = [
        (KeyCode::Char('q'), none, Some(Press::Quit)),
        (KeyCode::Char('c'), KeyModifiers::CONTROL, Some(Press::Quit)),
        (KeyCode::Char('c'), none, None),
        (KeyCode::Char('f'), none, Some(Press::Pause)),
        (KeyCode::Char('p'), none, None),
        (KeyCode::Char('?'), none, Some(Press::Help)),
        (KeyCode::Char('s'), none, Some(Press::Sort)),
        (KeyCode::Down, none, Some(Press::Scroll(1))),
        (KeyCode::PageUp, none, Some(Press::Scroll(-10))),
    ];
    for (code, modifiers, press) in table {
        assert_eq!(key(code, modifiers), press, "{code:?}");
    }
    assert!(!model().press(Press::Quit));
}

#[test]
fn a_paused_picture_stays_as_it_is_and_says_how_old_it_is() {
    let mut model = model();
    assert!(model.press(Press::Pause));
    model.update(Update::Snapshot(Box::new(fixtures::primary_lost())));
    later(&mut model, 7);
    let paused = shown(&model, 80, 24);
    assert!(
        paused.contains("Frozen: this snapshot is 7s old, f continues"),
        "{paused}"
    );
    assert!(paused.contains("prod/shop: Ready"), "{paused}");
    model.press(Press::Pause);
    assert!(
        shown(&model, 80, 24).contains("prod/shop: Slots 5461-10922 down"),
        "what came meanwhile is shown"
    );
}

#[test]
fn a_page_explains_keys_and_columns() {
    let mut model = model();
    assert!(model.press(Press::Help));
    let page = shown(&model, 120, 30);
    assert!(page.contains("OPS/S       commands a second"), "{page}");
    assert!(model.press(Press::Quit), "the page is closed first");
    assert!(shown(&model, 120, 30).contains("prod/shop: Ready"));
    assert!(!model.press(Press::Quit));
}

#[test]
fn when_the_api_server_is_gone_the_last_picture_stays_with_its_age() {
    let mut model = model();
    later(&mut model, 12);
    model.update(Update::Trouble(
        "the API server does not answer: refused\nIs it up?".to_owned(),
    ));
    let old = shown(&model, 100, 24);
    assert!(
        old.contains("This snapshot is 12s old: the API server does not answer: refused"),
        "{old}"
    );
    assert!(old.contains("1-1"), "{old}");
    model.update(Update::Snapshot(Box::new(fixtures::healthy())));
    assert!(!shown(&model, 100, 24).contains("old"));
}

#[test]
fn members_are_sorted_by_what_is_asked_for() {
    let mut model = model();
    let order = |model: &Model| -> Vec<String> {
        let members = model.members(&model.report());
        members.into_iter().map(|one| one.member.to_string()).collect()
    };
    assert_eq!(order(&model), ["0-0", "0-1", "1-0", "1-1", "2-0", "2-1"]);
    for _ in 0..3 {
        model.press(Press::Sort);
    }
    assert_eq!(order(&model)[..2], ["2-1", "1-1"], "the one furthest behind first");
    assert!(shown(&model, 80, 24).contains("s sort (by lag)"));
    model.press(Press::Sort);
    assert_eq!(order(&model)[0], "0-0");
}

#[test]
fn members_that_do_not_fit_are_scrolled_to() {
    let mut model = model();
    let first = shown(&model, 80, 10);
    assert!(first.contains("0-0") && !first.contains("2-1"), "{first}");
    for _ in 0..20 {
        model.press(Press::Scroll(1));
    }
    let last = shown(&model, 80, 10);
    assert!(last.contains("2-1") && last.contains("MEMBER"), "{last}");
    model.press(Press::Scroll(-100));
    assert_eq!(shown(&model, 80, 10), first);
}

#[test]
fn there_is_no_size_at_which_it_fails() {
    for (state, snapshot) in fixtures::states() {
        let model = Model::new(snapshot, true);
        for width in [1, 5, 20, 80] {
            for height in (1..14).chain([20, 39]) {
                let text = shown(&model, width, height);
                assert!(!text.is_empty(), "{state} at {width}x{height}");
            }
        }
    }
}

#[test]
fn on_twenty_columns_the_answer_and_the_members_are_left() {
    let text = shown(&model(), 20, 12);
    assert!(
        text.contains("prod/shop: Ready for") && text.contains("MEMBER") && text.contains("0-0"),
        "{text}"
    );
}

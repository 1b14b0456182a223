//! The guide (`docs/conditions.md`) shows code of this test and what it prints: the page cannot drift from either.
//!
//! A block of the page is announced by `<!-- code: name -->` or `<!-- output: name -->`. Code is the region of
//! `story.rs` between `// [name]` and the next `// [`; output is what the story's function of that name returns.
//! `UPDATE_GUIDE=1 cargo test -p kube-status --test guide` rewrites the blocks.

mod story;

use std::fmt::Write;
use std::path::PathBuf;

const STORY: &str = include_str!("story.rs");

fn page() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/conditions.md")
}

#[test]
fn the_guide_shows_the_whole_story_and_what_it_prints() {
    let found = std::fs::read_to_string(page()).expect("the guide is in docs/");
    for name in STORY.lines().filter_map(mark).filter(|name| *name != "end") {
        let announced = format!("<!-- code: {name} -->");
        assert!(found.contains(&announced), "the page leaves {name} out");
    }
    let expected = with_blocks(&found);
    if std::env::var_os("UPDATE_GUIDE").is_some() {
        std::fs::write(page(), &expected).expect("the guide can be written");
        return;
    }
    for (line, (found, expected)) in found.lines().zip(expected.lines()).enumerate() {
        let place = line + 1;
        assert_eq!(
            found, expected,
            "docs/conditions.md:{place} is not what the story says; UPDATE_GUIDE=1 mends it"
        );
    }
    assert_eq!(
        found.len(),
        expected.len(),
        "docs/conditions.md has lines the story does not"
    );
}

/// The page with every announced block replaced by what it should be.
fn with_blocks(page: &str) -> String {
    let mut out = String::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let _ = writeln!(out, "{line}");
        let announced = line.strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->"));
        let (language, text) = match announced.and_then(|words| words.split_once(": ")) {
            Some(("code", name)) => ("rust", region(name)),
            Some(("output", name)) => ("text", story::output(name)),
            _ => continue,
        };
        let opened = lines.next().is_some_and(|fence| fence.starts_with("```"));
        assert!(opened, "a block must follow {line}");
        let _ = writeln!(out, "```{language}\n{}\n```", text.trim_end());
        assert!(lines.any(|line| line == "```"), "the block after {line} has no end");
    }
    out
}

fn mark(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix("// [")?.strip_suffix(']')
}

/// The lines of a region, without the indentation they share.
fn region(name: &str) -> String {
    let lines = STORY.lines().skip_while(|line| mark(line) != Some(name)).skip(1);
    let lines: Vec<&str> = lines.take_while(|line| mark(line).is_none()).collect();
    assert!(!lines.is_empty(), "the story has no part named {name}");
    let indent = |line: &&str| line.len() - line.trim_start().len();
    let shared = lines
        .iter()
        .filter(|line| !line.trim().is_empty())
        .map(indent)
        .min()
        .unwrap_or(0);
    let dedented = lines.iter().map(|line| line.get(shared..).unwrap_or_default());
    dedented.collect::<Vec<_>>().join("\n").trim_end().to_owned()
}

//! The pages show the source: every block of code on them must occur in it.

use std::fs;
use std::path::{Path, PathBuf};

/// Lines without their indentation, so that a page may show a part of a function at the margin.
fn flat(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    lines.join("\n")
}

/// The blocks of a page, each with the file that is named above it: `<!-- src/report.rs -->`.
fn blocks(page: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut lines = page.lines().peekable();
    let mut file = None;
    while let Some(line) = lines.next() {
        if let Some(name) = line.strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->")) {
            file = Some(PathBuf::from(name));
        } else if line.starts_with("```") {
            let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            let file = file
                .take()
                .unwrap_or_else(|| panic!("no file is named above the block {:?}", block.first()));
            found.push((file, block.join("\n")));
        }
    }
    found
}

#[test]
fn every_block_of_write_your_own_is_in_the_file_it_names() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(here.join("../../docs/write-your-own.md")).expect("the page is in docs/");
    let blocks = blocks(&page);
    assert!(blocks.len() >= 15, "the page shows {} blocks", blocks.len());
    for (file, block) in blocks {
        let source = fs::read_to_string(here.join(&file)).expect("the page names a file of the example");
        assert!(
            flat(&source).contains(&flat(&block)),
            "docs/write-your-own.md shows what {} does not say:\n{block}",
            file.display()
        );
    }
}

#[test]
fn the_readme_lists_every_condition_reason_and_event_as_declared() {
    use dittofs_operator::conditions::ServerCondition;
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = fs::read_to_string(here.join("README.md")).expect("the example has a README");
    let table = kube_status::documentation::<ServerCondition>();
    assert!(
        readme.contains(table.trim_end()),
        "the README lacks this table:\n{table}"
    );
}

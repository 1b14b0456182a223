//! The order of the rules, as the docs quote it.

use candor_engine::plan::PRIORITIES;

#[test]
fn the_docs_quote_the_table_that_plan_executes() {
    let page = include_str!("../../../docs/how-it-works.md");
    let quoted: Vec<&str> = page
        .lines()
        .skip_while(|line| !line.starts_with("| 1 |"))
        .take(12)
        .collect();
    let rows = PRIORITIES
        .iter()
        .enumerate()
        .map(|(place, rule)| format!("| {} | {rule:?} | {} |", place + 1, rule.purpose()));
    assert_eq!(quoted, rows.collect::<Vec<_>>());
}

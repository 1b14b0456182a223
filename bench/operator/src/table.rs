//! The table, for the terminal and as a docs page.

use std::fmt;
use std::fmt::Write;
use std::time::Duration;

use crate::Result;

/// The result of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Target {
    Met,
    Missed,
    NotMeasured,
}

/// One row.
#[derive(Clone, Debug)]
pub struct Row {
    what: String,
    must: String,
    measured: String,
    manual: String,
    target: Target,
}

impl Row {
    /// A measured figure, and whether it meets the target.
    pub fn new(what: &str, must: &str, measured: impl Into<String>, met: bool) -> Self {
        Self {
            what: what.to_owned(),
            must: must.to_owned(),
            measured: measured.into(),
            manual: String::new(),
            target: if met { Target::Met } else { Target::Missed },
        }
    }

    /// Adds the figure of the manual baseline.
    #[must_use]
    pub fn manual(mut self, figure: impl Into<String>) -> Self {
        self.manual = figure.into();
        self
    }

    fn not_measured(what: &str, why: &str) -> Self {
        Self {
            measured: why.replace(['\n', '|'], " "),
            target: Target::NotMeasured,
            ..Self::new(what, "", "", false)
        }
    }

    fn cells(&self) -> [&str; 5] {
        let target = match self.target {
            Target::Met => "met",
            Target::Missed => "MISSED",
            Target::NotMeasured => "NOT MEASURED",
        };
        [&self.what, &self.must, &self.measured, &self.manual, target]
    }
}

/// All rows so far.
#[derive(Clone, Debug, Default)]
pub struct Table {
    rows: Vec<Row>,
    facts: Vec<String>,
}

impl Table {
    /// Adds the rows of one part; a part that failed becomes a row too.
    pub fn add(&mut self, what: &str, rows: Result<Vec<Row>>) {
        match rows {
            Ok(rows) => rows.into_iter().for_each(|row| self.push(row)),
            Err(error) => self.push(Row::not_measured(what, &error.to_string())),
        }
    }

    fn push(&mut self, row: Row) {
        eprintln!("  {}", row.cells().join(" | "));
        self.rows.push(row);
    }

    /// Adds information about the run that is not a figure: the host, a version.
    pub fn fact(&mut self, words: impl Into<String>) {
        self.facts.push(words.into());
    }

    /// Whether everything could be measured.
    pub fn complete(&self) -> bool {
        self.rows.iter().all(|row| row.target != Target::NotMeasured)
    }

    /// The page for docs/.
    pub fn page(&self, small: bool) -> String {
        let mut page = String::from("# Benchmarks of the operator\n\nWritten by `make bench`; do not edit.\n\n");
        if small {
            page.push_str("**A trial with a hundredth of the keys: these are no figures of the operator.**\n\n");
        }
        for fact in &self.facts {
            let _ = writeln!(page, "- {fact}");
        }
        let _ = write!(page, "\n{self}\n");
        page.push_str(concat!(
            "\nA slot's outage and lost writes are the auditor's (`candor audit`): canaries over all slots, 2,000 a second, ",
            "each read back at the end. Its own longest stall is beside an outage where it matters: no figure is finer. ",
            "\"By hand\" is kubectl and valkey-cli with the servers' own defaults, in the same run.\n"
        ));
        page
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = ["what", "must reach", "measured", "by hand", ""];
        let mut lines = vec![head];
        lines.extend(self.rows.iter().map(Row::cells));
        let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..head.len()).map(width).collect();
        for (index, line) in lines.iter().enumerate() {
            for (cell, &width) in line.iter().zip(&widths) {
                write!(f, "| {cell:width$} ")?;
            }
            writeln!(f, "|")?;
            if index == 0 {
                for &width in &widths {
                    write!(f, "|{}", "-".repeat(width + 2))?;
                }
                writeln!(f, "|")?;
            }
        }
        Ok(())
    }
}

/// Formats seconds with two decimals.
pub fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}
/// The median of several rounds.
pub fn median(rounds: &[Duration]) -> Duration {
    let mut sorted = rounds.to_vec();
    sorted.sort();
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

/// Formats all rounds.
pub fn each(rounds: &[Duration]) -> String {
    let words: Vec<String> = rounds.iter().map(|took| format!("{:.2}", took.as_secs_f64())).collect();
    words.join(", ")
}

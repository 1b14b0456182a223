//! Output for a terminal, a pipe or a program.

use std::error::Error;
use std::io::{self, IsTerminal, Write};

use clap::ValueEnum;
use kube_status::tree::{Tone, use_colour};
use serde::Serialize;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::clean::{self, clean, tame};

/// How an answer is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Table,
    /// For people with room: more columns.
    Wide,
    /// For programs.
    Json,
    /// For programs, legible.
    Yaml,
}

/// The colours that are ever printed, as terminals name them: of tones, dim, and back to normal.
pub const PAINTS: [&str; 7] = ["0", "2", "31", "32", "33", "35", "36"];

/// What there is to draw on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Screen {
    /// Columns; none is as many as the text takes.
    pub width: Option<usize>,
    /// Whether to colour.
    pub colour: bool,
    /// Whether to show the columns that are left out usually.
    pub wide: bool,
}

impl Screen {
    /// Standard output as it is.
    pub fn of_stdout(format: Format) -> Self {
        let terminal = io::stdout().is_terminal();
        Self {
            width: terminal.then(|| size().map(|(columns, _)| columns)).flatten(),
            colour: colour(),
            wide: format == Format::Wide,
        }
    }

    /// A text in the colour of its tone.
    pub fn paint(&self, text: &str, tone: Tone) -> String {
        self.escape(
            text,
            match tone {
                Tone::Good => "32",
                Tone::Info => "36",
                Tone::Warning => "33",
                Tone::Error => "31",
                Tone::Unknown => "35",
            },
        )
    }

    /// A text that stands back.
    pub fn dim(&self, text: &str) -> String {
        self.escape(text, "2")
    }

    fn escape(&self, text: &str, code: &str) -> String {
        if self.colour && !text.is_empty() {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }
}

/// Columns and rows of the terminal.
pub fn size() -> Option<(usize, usize)> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    (size.ws_col > 0).then(|| (usize::from(size.ws_col), usize::from(size.ws_row)))
}

/// Whether to colour standard output.
fn colour() -> bool {
    use_colour(io::stdout().is_terminal(), std::env::var_os("NO_COLOR").as_deref())
}

/// Prints what people read, without anything of others that a terminal would act on.
pub fn print(text: &str) -> Result<(), Box<dyn Error>> {
    write(&clean(text, colour()))
}

/// Prints lines over the screen as it is: each is cleared to its end, and what is left below is cleared too.
pub fn print_frame(lines: &[String]) -> Result<(), Box<dyn Error>> {
    let mut out = String::from("\u{1b}[H");
    for line in lines {
        out.extend([&clean(line, colour()), "\u{1b}[K\r\n"]);
    }
    write(&(out + "\u{1b}[J"))
}

/// Clears the screen.
pub fn clear() -> Result<(), Box<dyn Error>> {
    write("\u{1b}[2J")
}

/// Prints an error, without anything of others that a terminal would act on.
pub fn print_error(text: &str) {
    eprintln!("{}", clean(text, false));
}

/// Writes as it is. That the reader has gone away (`| head`) is for `main` to judge.
fn write(text: &str) -> Result<(), Box<dyn Error>> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// Whether an error only means that the reader of the output has closed the pipe.
pub fn is_enough(error: &(dyn Error + 'static)) -> bool {
    error
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Prints for a program; nothing when people are meant.
pub fn print_data(value: &impl Serialize, format: Format) -> Result<bool, Box<dyn Error>> {
    match format {
        Format::Json => write(&(clean::json(&serde_json::to_string_pretty(value)?) + "\n"))?,
        Format::Yaml => print(&serde_norway::to_string(value)?)?,
        Format::Table | Format::Wide => return Ok(false),
    }
    Ok(true)
}

/// How many columns a text takes.
pub fn width(text: &str) -> usize {
    text.width()
}

/// At most so many columns, with a mark where something is left out.
pub fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut taken = 0;
    let room = columns.saturating_sub(1);
    let fits = |c: &char| {
        taken += c.width().unwrap_or(0);
        taken <= room
    };
    let mut short: String = text.chars().take_while(fits).collect();
    if columns > 0 {
        short.push('…');
    }
    short
}

/// Words on lines of at most so many columns; those after the first are indented. What they hold is text, and no
/// colours: they may be of others.
pub fn wrap(text: &str, columns: Option<usize>, indent: usize) -> Vec<String> {
    let text = tame(text);
    let Some(columns) = columns else {
        return vec![text];
    };
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    let mut begun = false;
    for word in text.split_whitespace() {
        if begun && width(&line) + 1 + width(word) > columns {
            lines.push(std::mem::replace(&mut line, " ".repeat(indent.min(columns / 2))));
            begun = false;
        }
        if begun {
            line.push(' ');
        }
        line.push_str(word);
        begun = true;
    }
    lines.push(line);
    lines
}

/// Bytes, as people say them.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["B", "K", "M", "G", "T"];
    let mut unit = 0;
    let mut whole = count;
    let mut rest = 0;
    while whole >= 1024 && unit + 1 < UNITS.len() {
        rest = whole % 1024;
        whole /= 1024;
        unit += 1;
    }
    if unit > 0 && whole < 10 {
        format!("{whole}.{}{}", rest * 10 / 1024, UNITS[unit])
    } else {
        format!("{whole}{}", UNITS[unit])
    }
}

/// A count, as people say it.
pub fn count(number: u64) -> String {
    match number {
        0..10_000 => number.to_string(),
        10_000..10_000_000 => format!("{}k", number / 1000),
        _ => format!("{}M", number / 1_000_000),
    }
}

/// `1 shard`, `3 shards`, `3 primaries`.
pub fn some(count: i64, what: &str) -> String {
    match what.strip_suffix('y') {
        _ if count == 1 => format!("1 {what}"),
        Some(stem) => format!("{count} {stem}ies"),
        None => format!("{count} {what}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_said_as_people_say_them() {
        for (number, text) in [
            (0, "0B"),
            (1023, "1023B"),
            (1536, "1.5K"),
            (104_857_600, "100M"),
            (5 << 40, "5.0T"),
        ] {
            assert_eq!(bytes(number), text);
        }
        assert_eq!([count(9999), count(12_345), count(45_000_000)], ["9999", "12k", "45M"]);
        assert_eq!([some(1, "shard"), some(0, "replica")], ["1 shard", "0 replicas"]);
        assert_eq!([some(1, "primary"), some(3, "primary")], ["1 primary", "3 primaries"]);
    }

    #[test]
    fn text_fits() {
        assert_eq!(cut("漢字漢字", 5), "漢字…");
        assert_eq!(cut("short", 9), "short");
        assert_eq!(wrap("one two three", Some(8), 2), ["one two", "  three"]);
        assert_eq!(wrap("one two", None, 2), ["one two"]);
    }
}

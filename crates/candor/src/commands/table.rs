//! Tables that fit the terminal: empty columns are omitted, and if space is scarce the least important columns go
//! first.

use kube_status::tree::Tone;

use super::clean::tame;
use super::output::{Screen, cut, width};

const GAP: usize = 2;

/// A column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its title.
    pub title: &'static str,
    /// Priority when space is scarce: the lowest is dropped first.
    pub keep: u8,
    /// Numbers are right-aligned.
    pub right: bool,
}

impl Column {
    /// A text column.
    pub const fn text(title: &'static str, keep: u8) -> Self {
        Self {
            title,
            keep,
            right: false,
        }
    }

    /// A number column.
    pub const fn number(title: &'static str, keep: u8) -> Self {
        Self {
            title,
            keep,
            right: true,
        }
    }
}

/// One field.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    /// Its text.
    pub text: String,
    /// Its colour.
    pub tone: Option<Tone>,
}

impl Cell {
    /// A cell with a colour.
    pub fn toned(text: impl AsRef<str>, tone: Tone) -> Self {
        Self {
            text: tame(text.as_ref()),
            tone: Some(tone),
        }
    }
}

impl<T: AsRef<str>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self {
            text: tame(text.as_ref()),
            tone: None,
        }
    }
}

/// A table with a line break after every row and no trailing blanks.
pub fn table(columns: &[Column], rows: &[Vec<Cell>], screen: &Screen) -> String {
    let widest = |index: usize| {
        let cells = rows.iter().filter_map(|row| row.get(index));
        cells.map(|cell| width(&cell.text)).max().unwrap_or(0)
    };
    let mut shown: Vec<(usize, usize)> = (0..columns.len())
        .filter(|&index| rows.is_empty() || widest(index) > 0)
        .map(|index| (index, widest(index).max(width(columns[index].title))))
        .collect();
    if let Some(room) = screen.width {
        fit(&mut shown, columns, room);
    }
    let mut out = String::new();
    let header: Vec<Cell> = columns.iter().map(|column| Cell::from(column.title)).collect();
    for row in std::iter::once(&header).chain(rows) {
        push_row(&mut out, columns, &shown, row, screen);
    }
    out
}

/// Drops columns until the table fits; the last remaining column is truncated.
fn fit(shown: &mut Vec<(usize, usize)>, columns: &[Column], room: usize) {
    /// The minimum useful width of a truncated last column.
    const USEFUL: usize = 12;
    let total = |shown: &[(usize, usize)]| {
        shown.iter().map(|(_, width)| width).sum::<usize>() + GAP * shown.len().saturating_sub(1)
    };
    while total(shown) > room && shown.len() > 1 {
        let over = total(shown) - room;
        let last = shown.len() - 1;
        let title = width(columns[shown[last].0].title).max(USEFUL);
        if !columns[shown[last].0].right && shown[last].1 >= over + title {
            shown[last].1 -= over;
            return;
        }
        let least = (0..shown.len())
            .min_by_key(|&at| columns[shown[at].0].keep)
            .unwrap_or(last);
        shown.remove(least);
    }
    if let Some(only) = shown.first_mut().filter(|(_, width)| *width > room) {
        only.1 = room;
    }
}

fn push_row(out: &mut String, columns: &[Column], shown: &[(usize, usize)], row: &[Cell], screen: &Screen) {
    let mut line = String::new();
    let mut blanks = 0;
    for (place, (index, room)) in shown.iter().enumerate() {
        if place > 0 {
            blanks += GAP;
        }
        let cell = row.get(*index).cloned().unwrap_or_default();
        let text = cut(&cell.text, *room);
        let spare = room - width(&text);
        if columns[*index].right {
            blanks += spare;
        }
        if !text.is_empty() {
            line.push_str(&" ".repeat(blanks));
            blanks = 0;
            match cell.tone {
                Some(tone) => line.push_str(&screen.paint(&text, tone)),
                None => line.push_str(&text),
            }
        }
        if !columns[*index].right {
            blanks += spare;
        }
    }
    out.push_str(&line);
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 4] = [
        Column::text("NAME", 9),
        Column::number("KEYS", 1),
        Column::text("ZONE", 5),
        Column::text("MESSAGE", 8),
    ];

    fn rows() -> Vec<Vec<Cell>> {
        vec![
            vec!["shop".into(), "12".into(), "".into(), "all is well in the shop".into()],
            vec!["billing".into(), "".into(), "".into(), "short".into()],
        ]
    }

    fn at(width: Option<usize>) -> String {
        let screen = Screen {
            width,
            colour: false,
            wide: false,
        };
        table(&COLUMNS, &rows(), &screen)
    }

    #[test]
    fn columns_that_say_nothing_are_left_out() {
        insta::assert_snapshot!(at(None), @"
        NAME     KEYS  MESSAGE
        shop       12  all is well in the shop
        billing        short
        ");
    }

    #[test]
    fn the_last_column_is_cut_and_then_the_least_telling_go() {
        insta::assert_snapshot!(at(Some(30)), @"
        NAME     KEYS  MESSAGE
        shop       12  all is well in…
        billing        short
        ");
        insta::assert_snapshot!(at(Some(22)), @"
        NAME     MESSAGE
        shop     all is well …
        billing  short
        ");
        insta::assert_snapshot!(at(Some(6)), @"
        NAME
        shop
        billi…
        ");
    }
}

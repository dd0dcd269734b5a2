//! Columns of text.

use crate::{render::clean::clean_line, style::Style};

/// Widest cell, in characters.
const MAX_CELL: usize = 80;

/// Between two columns.
const GAP: &str = "  ";

/// Before what has no room beside the columns before it.
const INDENT: &str = "    ";

/// How much of the last column is seen at least, in characters, where its line ends.
const LAST_AT_LEAST: usize = 20;

/// A heading and rows; the last column is as wide as it likes.
pub(crate) struct Table<const COLUMNS: usize> {
    rows: Vec<[String; COLUMNS]>,
}

/// A column that is shown, and its width.
#[derive(Clone, Copy)]
struct Column {
    index: usize,
    width: usize,
}

impl<const COLUMNS: usize> Table<COLUMNS> {
    pub(crate) fn new(heading: [&str; COLUMNS]) -> Self {
        Self {
            rows: vec![heading.map(str::to_owned)],
        }
    }

    /// Adds a row. What it holds may come from elsewhere and is made harmless.
    pub(crate) fn row(&mut self, cells: [String; COLUMNS]) {
        self.rows
            .push(cells.map(|cell| clean_line(&cell, MAX_CELL)));
    }

    /// The text. On a terminal of this many columns, what has no room beside the columns before it
    /// stands below them, and the last column is cut.
    pub(crate) fn show(&self, style: Style, terminal: Option<usize>) -> String {
        let lines = self.lines(terminal.unwrap_or(usize::MAX));
        let mut out = String::new();
        for (number, row) in self.rows.iter().enumerate() {
            for (place, columns) in lines.iter().enumerate() {
                let cells: Vec<_> = columns.iter().map(|column| column.of(row)).collect();
                let cells = cells.join(GAP);
                let line = match (place, cells.trim_end()) {
                    (0, cells) => cells.to_owned(),
                    (_, "") => continue,
                    (_, cells) => format!("{INDENT}{cells}"),
                };
                out.push_str(&match number {
                    0 => style.dim(&line),
                    _ => line,
                });
                out.push('\n');
            }
        }
        out
    }

    /// The columns that stand side by side, line by line. One that is empty throughout takes no room.
    fn lines(&self, terminal: usize) -> Vec<Vec<Column>> {
        let mut lines = vec![Vec::new()];
        let mut used = 0;
        for index in 0..COLUMNS {
            let lengths = self.rows.iter().map(|row| row[index].chars().count());
            let width = lengths.max().unwrap_or(0);
            let is_last = index == COLUMNS - 1;
            let needed = if is_last {
                width.min(LAST_AT_LEAST)
            } else {
                width
            };
            let (line, begins) = match lines.last_mut() {
                _ if width == 0 => continue,
                Some(line) if line.is_empty() => (line, 0),
                Some(line) if used + GAP.len() + needed <= terminal => (line, used + GAP.len()),
                _ => (lines.push_mut(Vec::new()), INDENT.len()),
            };
            let room = terminal.saturating_sub(begins).max(1);
            let width = if is_last { width.min(room) } else { width };
            line.push(Column { index, width });
            used = begins + width;
        }
        lines
    }
}

impl Column {
    /// Its cell of a row.
    fn of(self, row: &[String]) -> String {
        let Self { index, width } = self;
        match row[index].chars().count() > width {
            true => clean_line(&row[index], width - 1),
            false => format!("{:<width$}", row[index]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_below_their_headings() {
        let mut table = Table::new(["", "NAME", "STATE"]);
        table.row(["*".into(), "laptop".into(), "online".into()]);
        table.row(["".into(), "pc\x1b[2J".into(), "offline".into()]);
        assert_eq!(
            table.show(Style::new(false), None),
            "   NAME    STATE\n*  laptop  online\n   pc      offline\n"
        );
    }

    #[test]
    fn what_has_no_room_on_a_terminal_stands_below_and_the_last_column_is_cut() {
        let mut table = Table::new(["NAME", "SYSTEM", "OWNER", "WORKSPACE"]);
        let workspace = "laptop:/home/ann/work/of/this/year";
        let cells = ["laptop", "linux/x86_64", "ann", workspace];
        table.row(cells.map(str::to_owned));
        table.row(["pc", "linux/aarch64", "", ""].map(str::to_owned));
        let shown = |terminal| table.show(Style::new(false), Some(terminal));
        assert_eq!(
            shown(32),
            "NAME    SYSTEM         OWNER\n    WORKSPACE\n\
             laptop  linux/x86_64   ann\n    laptop:/home/ann/work/of/th…\n\
             pc      linux/aarch64\n"
        );
        assert!(shown(200).ends_with(&format!("{workspace}\npc      linux/aarch64\n")));
        for terminal in 14..100 {
            let longest = shown(terminal)
                .lines()
                .map(|line| line.chars().count())
                .max();
            assert!(longest <= Some(terminal.max(17)), "{}", shown(terminal));
        }
    }
}

//! Columns of text.

use crate::{render::clean::clean_line, style::Style};

/// Widest cell, in characters.
const MAX_CELL: usize = 80;

/// A heading and rows; the last column is as wide as it likes.
pub(crate) struct Table<const COLUMNS: usize> {
    rows: Vec<[String; COLUMNS]>,
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

    pub(crate) fn show(&self, style: Style) -> String {
        let width = |column: usize| {
            let lengths = self.rows.iter().map(|row| row[column].chars().count());
            lengths.max().unwrap_or(0)
        };
        let widths: [usize; COLUMNS] = std::array::from_fn(width);
        let mut out = String::new();
        for (number, row) in self.rows.iter().enumerate() {
            let cells = row.iter().zip(widths);
            // A column that is empty throughout takes no room.
            let shown = cells.filter(|(_, width)| *width > 0);
            let cells: Vec<_> = shown
                .map(|(cell, width)| format!("{cell:<width$}"))
                .collect();
            let line = cells.join("  ");
            let line = line.trim_end();
            out.push_str(&if number == 0 {
                style.dim(line)
            } else {
                line.to_owned()
            });
            out.push('\n');
        }
        out
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
            table.show(Style::new(false)),
            "   NAME    STATE\n*  laptop  online\n   pc      offline\n"
        );
    }
}

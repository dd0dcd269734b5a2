//! Columns of text.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::{render::clean::clean_line, style::Style};

/// Widest cell, in characters.
const MAX_CELL: usize = 80;

/// Between two columns.
const GAP: &str = "  ";

/// A column that may be left out is, before others become narrower than this.
const NARROW: usize = 16;

/// Stands where something was cut out.
const CUT: char = '…';

/// A heading and rows, each on one line. On a terminal the widest cells are cut in their middle, so that a line fits.
/// Cut cells are complete elsewhere, and with `--json`.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
    whole: &'static [usize],
    spare: &'static [usize],
    right: &'static [usize],
}

/// A column that is shown, and its width.
#[derive(Clone, Copy)]
struct Column {
    index: usize,
    width: usize,
    is_right: bool,
}

impl Table {
    pub(crate) fn new<'a>(heading: impl IntoIterator<Item = &'a str>) -> Self {
        let heading = heading.into_iter().map(|name| clean_line(name, MAX_CELL));
        Self {
            rows: vec![heading.collect()],
            whole: &[],
            spare: &[],
            right: &[],
        }
    }

    /// The cells of these columns, such as numbers, stand at the right.
    pub(crate) fn right(mut self, columns: &'static [usize]) -> Self {
        self.right = columns;
        self
    }

    /// These columns are never cut, such as ids that are to be typed.
    pub(crate) fn whole(mut self, columns: &'static [usize]) -> Self {
        self.whole = columns;
        self
    }

    /// These columns are left out, one after the other, where a terminal is too narrow for all.
    pub(crate) fn spare(mut self, columns: &'static [usize]) -> Self {
        self.spare = columns;
        self
    }

    /// Adds a row as wide as the heading. Its cells may be the text of others, so control characters are removed.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let cells = cells.into_iter().map(|cell| clean_line(&cell, MAX_CELL));
        let mut row: Vec<_> = cells.collect();
        row.resize(self.rows[0].len(), String::new());
        self.rows.push(row);
    }

    /// The text, for a terminal of this many columns.
    pub(crate) fn show(&self, style: Style, terminal: Option<usize>) -> String {
        let columns = self.fitted(terminal.unwrap_or(usize::MAX));
        let mut out = String::new();
        for (number, row) in self.rows.iter().enumerate() {
            let cells: Vec<_> = columns.iter().map(|column| column.of(row)).collect();
            let line = cells.join(GAP);
            out.push_str(&match number {
                0 => style.dim(line.trim_end()),
                _ => line.trim_end().to_owned(),
            });
            out.push('\n');
        }
        out
    }

    /// The columns that are shown. One that is empty throughout takes no room.
    fn fitted(&self, terminal: usize) -> Vec<Column> {
        let mut columns: Vec<_> = (0..self.rows[0].len())
            .map(|index| Column {
                index,
                width: self
                    .rows
                    .iter()
                    .map(|row| row[index].width())
                    .max()
                    .unwrap_or(0),
                is_right: self.right.contains(&index),
            })
            .filter(|column| {
                self.rows[1..]
                    .iter()
                    .any(|row| !row[column.index].is_empty())
            })
            .collect();
        let mut spare = self.spare.iter();
        loop {
            let most = self.most(&columns, terminal);
            let is_cut =
                |column: &Column| column.width > most && !self.whole.contains(&column.index);
            if most < NARROW
                && columns.iter().any(is_cut)
                && let Some(left_out) = spare.next()
            {
                columns.retain(|column| column.index != *left_out);
                continue;
            }
            for column in &mut columns {
                if !self.whole.contains(&column.index) {
                    column.width = column.width.min(most);
                }
            }
            return columns;
        }
    }

    /// The largest width of a column that may be cut, so that all columns fit.
    fn most(&self, columns: &[Column], terminal: usize) -> usize {
        let (whole, cut): (Vec<Column>, Vec<Column>) =
            (columns.iter().copied()).partition(|column| self.whole.contains(&column.index));
        let gaps = GAP.len() * columns.len().saturating_sub(1);
        let taken = gaps + whole.iter().map(|column| column.width).sum::<usize>();
        let room = terminal.saturating_sub(taken);
        let widest = cut.iter().map(|column| column.width).max().unwrap_or(0);
        let fits = |most: &usize| {
            cut.iter()
                .map(|column| column.width.min(*most))
                .sum::<usize>()
                <= room
        };
        (1..=widest).rev().find(fits).unwrap_or(1)
    }
}

impl Column {
    /// Its cell of a row.
    fn of(self, row: &[String]) -> String {
        let cell = cut(&row[self.index], self.width);
        let missing = self.width.saturating_sub(cell.width());
        let space = " ".repeat(missing);
        match self.is_right {
            true => space + &cell,
            false => cell + &space,
        }
    }
}

/// The beginning and the end of a text that is too wide.
fn cut(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let room = columns.saturating_sub(1);
    let end = fitting(text.chars().rev(), room / 2);
    let begin = fitting(text.chars(), room - room / 2);
    let end: String = end.chars().rev().collect();
    format!("{begin}{CUT}{end}")
}

/// The first letters that fit the columns.
fn fitting(letters: impl Iterator<Item = char>, columns: usize) -> String {
    let mut used = 0;
    let fits = |letter: &char| {
        used += letter.width().unwrap_or(0);
        used <= columns
    };
    letters.take_while(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_below_their_headings() {
        let mut table = Table::new(["", "NAME", "STATE"]).spare(&[2]);
        table.row(["*".into(), "laptop".into(), "online".into()]);
        table.row(["".into(), "pc\x1b[2J".into(), "offline".into()]);
        assert_eq!(
            table.show(Style::new(false), None),
            "   NAME    STATE\n*  laptop  online\n   pc      offline\n"
        );
    }

    #[test]
    fn a_row_is_one_line_that_fits_with_its_widest_cells_cut_in_the_middle() {
        let mut table = Table::new(["NAME", "SYSTEM", "OWNER", "WORKSPACE"])
            .whole(&[0])
            .spare(&[1]);
        let workspace = "laptop:/home/ann/work/of/this/year";
        let cells = ["laptop", "linux/x86_64", "ann", workspace];
        table.row(cells.map(str::to_owned));
        table.row(["pc", "linux/aarch64", "漢字漢字漢字漢字漢字", ""].map(str::to_owned));
        let shown = |terminal| table.show(Style::new(false), Some(terminal));
        assert_eq!(
            shown(40),
            "NAME    OWNER            WORKSPACE\n\
             laptop  ann              laptop:…is/year\n\
             pc      漢字漢…字漢字  \n"
                .replace("  \n", "\n")
        );
        assert!(shown(200).contains(workspace) && shown(200).contains("linux/aarch64"));
        for terminal in 12..100 {
            let shown = shown(terminal);
            assert_eq!(shown.lines().count(), 3, "{shown}");
            assert!(
                shown.lines().all(|line| line.width() <= terminal),
                "{shown}"
            );
        }
    }
}

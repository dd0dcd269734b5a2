//! Tables, fitted to a width.

use pulldown_cmark::Alignment;
use ratatui_core::text::{Line, Span};

use crate::paint::{palette, wrap};

/// Columns that each column of a table needs at least, if its text is as wide.
const NARROWEST: usize = 6;

/// The lines of a cell, not yet wrapped.
type Cell = Vec<Line<'static>>;

/// A table, gathered until it ends.
pub(super) struct Table {
    alignments: Vec<Alignment>,
    /// The first is the head.
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table without rows.
    pub(super) fn new(alignments: Vec<Alignment>) -> Self {
        Table {
            alignments,
            rows: Vec::new(),
        }
    }

    /// Begins another row; the first is the head.
    pub(super) fn start_row(&mut self) {
        self.rows.push(Vec::new());
    }

    /// Adds a cell to the row.
    pub(super) fn cell(&mut self, cell: Cell) {
        if let Some(row) = self.rows.last_mut() {
            row.push(cell);
        }
    }

    /// The rows of the table as a box, or as a list if the box is too wide.
    pub(super) fn rows(mut self, columns: usize) -> Vec<Line<'static>> {
        for cell in self.rows.iter_mut().take(1).flatten() {
            for span in cell.iter_mut().flat_map(|line| &mut line.spans) {
                span.style = palette::BOLD.patch(span.style);
            }
        }
        match fitted(&self.widths(), columns) {
            Some(widths) => self.boxed(&widths),
            None => self.listed(columns),
        }
    }

    /// The width of the widest line of each column.
    fn widths(&self) -> Vec<usize> {
        let mut widths = vec![1; self.alignments.len()];
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                let widest = cell.iter().map(line_width).max();
                *width = widest.unwrap_or(0).max(*width);
            }
        }
        widths
    }

    fn boxed(&self, widths: &[usize]) -> Vec<Line<'static>> {
        let rows: Vec<Vec<Line<'static>>> = self
            .rows
            .iter()
            .map(|row| self.boxed_row(row, widths))
            .collect();
        // Rules between all rows are needed only where a row has more than one line.
        let is_ruled = rows.iter().skip(1).any(|row| row.len() > 1);
        let mut lines = vec![rule(widths, ["┌", "┬", "┐"])];
        for (index, row) in rows.into_iter().enumerate() {
            if index == 1 || index > 1 && is_ruled {
                lines.push(rule(widths, ["├", "┼", "┤"]));
            }
            lines.extend(row);
        }
        lines.push(rule(widths, ["└", "┴", "┘"]));
        lines
    }

    fn boxed_row(&self, row: &[Cell], widths: &[usize]) -> Vec<Line<'static>> {
        let cells: Vec<Cell> = row
            .iter()
            .zip(widths)
            .map(|(cell, width)| {
                cell.iter()
                    .flat_map(|line| wrap::wrap(line, *width, 0))
                    .collect()
            })
            .collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        let bar = |text: &'static str| Span::styled(text, palette::DIM);
        let mut lines = Vec::with_capacity(height);
        for index in 0..height {
            let mut spans = vec![bar("│ ")];
            for (column, width) in widths.iter().enumerate() {
                if column > 0 {
                    spans.push(bar(" │ "));
                }
                let line = cells.get(column).and_then(|cell| cell.get(index));
                let alignment = self.alignments[column];
                padded(line, *width, alignment, &mut spans);
            }
            spans.push(bar(" │"));
            lines.push(Line::from(spans));
        }
        lines
    }

    /// Each row as `head: cell` lines.
    fn listed(&self, columns: usize) -> Vec<Line<'static>> {
        let Some((head, rows)) = self.rows.split_first() else {
            return Vec::new();
        };
        let mut lines = Vec::new();
        for row in rows {
            for (column, cell) in row.iter().enumerate() {
                let mark = if column == 0 { "• " } else { "  " };
                let mut line = Line::from(Span::styled(mark, palette::DIM));
                line.spans.extend(joined(head.get(column)));
                line.spans.push(Span::styled(": ", palette::DIM));
                line.spans.extend(joined(Some(cell)));
                lines.extend(wrap::wrap(&line, columns, 2));
            }
        }
        if rows.is_empty() {
            for cell in head {
                lines.extend(wrap::wrap(&Line::from_iter(joined(Some(cell))), columns, 2));
            }
        }
        lines
    }
}

/// The columns of a box in so many columns; none if they would be too narrow.
fn fitted(natural: &[usize], columns: usize) -> Option<Vec<usize>> {
    let mut left = columns.checked_sub(3 * natural.len() + 1)?;
    let mut widths = natural.to_vec();
    // The narrow columns keep their widths; the wide ones share what is left.
    let mut wide: Vec<usize> = (0..natural.len()).collect();
    wide.sort_by_key(|column| natural[*column]);
    while let Some(narrowest) = wide.first().copied() {
        let share = left / wide.len();
        if natural[narrowest] <= share {
            left -= natural[narrowest];
            wide.remove(0);
            continue;
        }
        if share < NARROWEST {
            return None;
        }
        let extra = left % wide.len();
        for (index, column) in wide.iter().rev().enumerate() {
            widths[*column] = share + usize::from(index < extra);
        }
        break;
    }
    Some(widths)
}

fn rule(widths: &[usize], [left, middle, right]: [&str; 3]) -> Line<'static> {
    let columns: Vec<String> = widths.iter().map(|width| "─".repeat(width + 2)).collect();
    Line::styled(
        format!("{left}{}{right}", columns.join(middle)),
        palette::DIM,
    )
}

fn padded(
    line: Option<&Line<'static>>,
    width: usize,
    side: Alignment,
    out: &mut Vec<Span<'static>>,
) {
    let blanks = width.saturating_sub(line.map_or(0, line_width));
    let before = match side {
        Alignment::None | Alignment::Left => 0,
        Alignment::Center => blanks / 2,
        Alignment::Right => blanks,
    };
    if before > 0 {
        out.push(Span::raw(" ".repeat(before)));
    }
    out.extend(line.into_iter().flat_map(|line| line.spans.iter().cloned()));
    if blanks > before {
        out.push(Span::raw(" ".repeat(blanks - before)));
    }
}

/// The lines of a cell as one.
fn joined(cell: Option<&Cell>) -> Vec<Span<'static>> {
    let mut spans = Vec::new();
    for (index, line) in cell.into_iter().flatten().enumerate() {
        if index > 0 {
            spans.push(Span::raw(" "));
        }
        spans.extend(line.spans.iter().cloned());
    }
    spans
}

fn line_width(line: &Line<'static>) -> usize {
    line.spans
        .iter()
        .map(|span| wrap::width(&span.content))
        .sum()
}

//! Markdown as styled rows.

use ratatui_core::text::Line;

use super::wrap;

/// Paints Markdown in rows of at most so many columns.
pub fn markdown(text: &str, columns: usize) -> Vec<Line<'static>> {
    let text = shared_types::clean::clean(text);
    let lines = text
        .trim_end()
        .lines()
        .map(|line| Line::raw(line.to_owned()));
    lines
        .flat_map(|line| wrap::wrap(&line, columns, 0))
        .collect()
}

/// The byte at which the last top-level block begins, which more text may still change.
///
/// The text before it never changes its looks when more text comes: its rows, a blank row and the
/// rows of the rest are the rows of the whole.
pub fn open_block(_text: &str) -> usize {
    0
}

//! Edits of files as styled rows.

use ratatui_core::text::Line;

use super::{palette, wrap};

/// Paints an edit: removed and added lines with their numbers, and three lines around them.
///
/// At most `most` rows are painted; a last one counts the rest.
pub fn replaced(
    before: &str,
    after: &str,
    _path: &str,
    columns: usize,
    most: usize,
) -> Vec<Line<'static>> {
    let diff = similar::TextDiff::from_lines(before, after);
    patched(&diff.unified_diff().to_string(), columns, most)
}

/// Paints a unified diff.
///
/// At most `most` rows are painted; a last one counts the rest.
pub fn patched(patch: &str, columns: usize, most: usize) -> Vec<Line<'static>> {
    let patch = shared_types::clean::clean(patch);
    let lines = patch.lines().map(|line| {
        let style = match line.as_bytes().first() {
            Some(b'+') => palette::ADDED,
            Some(b'-') => palette::REMOVED,
            _ => palette::DIM,
        };
        Line::styled(line.to_owned(), style)
    });
    lines
        .flat_map(|line| wrap::fold(&line, columns))
        .take(most)
        .collect()
}

/// Paints the beginning of a new file.
///
/// At most `most` rows are painted; a last one counts the rest.
pub fn written(content: &str, _path: &str, columns: usize, most: usize) -> Vec<Line<'static>> {
    let content = shared_types::clean::clean(content);
    let lines = content.lines().map(|line| Line::raw(line.to_owned()));
    lines
        .flat_map(|line| wrap::fold(&line, columns))
        .take(most)
        .collect()
}

//! All changes of files in a session, by file, as edits.

#[cfg(test)]
mod tests;

use ratatui_core::text::{Line, Span};

use super::{diff, look, palette};
use crate::transcript::changes::{Changes, Deed};

/// Paints all changes by file in rows of at most so many columns.
pub fn changes(changes: &Changes, columns: usize) -> Vec<Line<'static>> {
    let mut rows = Vec::new();
    if changes.is_empty() {
        rows.push(Line::from(Span::styled(
            "no file was changed by an edit or a write",
            palette::DIM,
        )));
    }
    if changes.dropped() > 0 {
        let words = format!("… {} older changes are not kept", changes.dropped());
        rows.push(Line::from(Span::styled(words, palette::DIM)));
    }
    for file in changes.by_file() {
        if !rows.is_empty() {
            rows.push(Line::default());
        }
        let count = look::counted(file.changes.len(), "change", "changes");
        let head = vec![
            Span::styled(file.path.to_owned(), palette::BOLD),
            Span::styled(format!(" · {count}"), palette::DIM),
        ];
        rows.extend(look::marked(
            Span::styled("● ", palette::ACCENT),
            head,
            columns,
        ));
        for change in file.changes {
            let inner = look::inner(columns);
            let body = match &change.deed {
                Deed::Edited {
                    old,
                    new,
                    every,
                    line,
                } => {
                    if *every {
                        rows.push(look::row("every occurrence:", palette::DIM, columns));
                    }
                    diff::replaced_at(line.unwrap_or(1), old, new, inner, usize::MAX)
                }
                Deed::Written { content, is_new } => {
                    let words = if *is_new {
                        "new file:"
                    } else {
                        "written whole:"
                    };
                    rows.push(look::row(words, palette::DIM, columns));
                    diff::written(content, file.path, inner, usize::MAX)
                }
            };
            rows.extend(look::indented(body));
        }
    }
    rows
}
